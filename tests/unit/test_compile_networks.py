"""Networks of examples/networks.py, compiled: the bits of eager calls, or errors that are not larger."""

import sys
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest
from compiled_calls import leaves

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from networks import NETWORKS


@pytest.mark.parametrize("device", ["cpu:0", "sim:0"])
@pytest.mark.parametrize("kind", NETWORKS, ids=lambda kind: kind.__name__)
def test_networks(kind, device):
    network = kind(device, seed=3)
    inputs = network.inputs()
    expected = leaves(network(*inputs))
    same = dt.compile(network, numerics="eager")
    for _ in range(2):
        for got, e in zip(leaves(same(*inputs)), expected, strict=True):
            np.testing.assert_array_equal(np.asarray(got), np.asarray(e))
    for got, e in zip(leaves(dt.compile(network)(*inputs)), expected, strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(e), rtol=1e-3, atol=1e-4)


def test_a_growing_cache_is_traced_once():
    network = next(kind for kind in NETWORKS if kind.__name__ == "GrowingCache")("cpu:0")
    step = dt.compile(type(network).__call__)
    x, cache = network.inputs()
    for _ in range(5):
        x, cache = step(network, x, cache)
    assert cache[0][0].shape[2] == 12
    assert "1 trace" in step.explain(network, x, cache)
