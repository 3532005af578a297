"""The MiniLM example against a forward pass in NumPy float64: all kernels, must-have ones only, baseline only."""

from __future__ import annotations

import dovetail
import numpy as np
import pytest
from dovetail import entry_points
from minilm_float64 import assert_agrees, embed, expected_embeddings


@pytest.mark.parametrize(
    "environment",
    [{}, {"DOVETAIL_CPU_KERNELS": "must"}, {"DOVETAIL_CPU_CAPABILITY": "default"}],
    ids=["all kernels", "must-have kernels", "baseline instructions"],
)
def test_embeddings_agree_with_float64(environment):
    _, _, got = embed("cpu", **environment)
    assert_agrees(got)


def test_other_devices_agree_too():
    """Any other installed device: at least the simulated accelerator; in a development tree perhaps none."""
    installed = {b.name for b in entry_points.backends() if b.distribution}  # other tests attach more
    for device in sorted({d.backend for d in dovetail.devices()} & installed - {"cpu"}):
        _, _, got = embed(device)
        assert_agrees(got)


def test_padding_does_not_change_an_embedding():
    """Only the shortest sentence is embedded without padding."""
    _, mask, together = embed("cpu")
    assert mask[2].sum() < mask.shape[1]
    np.testing.assert_allclose(together[2], expected_embeddings()[2], atol=1e-5)
