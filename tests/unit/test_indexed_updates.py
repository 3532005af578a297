"""scatter's modes, segment_sum, dynamic slices, attention over a part of the keys: equal results for equal calls,
decompositions and kernels alike, and a cache that is written in place.
"""

from __future__ import annotations

import os
import subprocess
import sys

import dovetail as dt
import numpy as np
import pytest
from dovetail.schema import op as declare
from dovetail.schema.declare import Index, Raw, Tensor
from dovetail.schema.ops.dynamic import dynamic_update_slice
from dovetail.schema.ops.primitives import add

DEVICES = ("cpu", "sim")
SEED = 20
print(f"seed {SEED}")


@pytest.fixture
def rng():
    return np.random.default_rng(SEED)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("mode", "join"), {"add": np.add, "max": np.maximum, "min": np.minimum}.items())
def test_scatter_joins_like_numpy(rng, device, mode, join):
    x, updates = rng.integers(-9, 9, (50, 3)), rng.integers(-9, 9, (400, 3))
    places = rng.integers(-50, 50, 400)
    expected = x.copy()
    join.at(expected, places, updates)
    got = dt.scatter(*(dt.asarray(a, device=device) for a in (x, places, updates)), mode=mode)
    np.testing.assert_array_equal(got.numpy(), expected)


def test_the_order_of_a_sum_does_not_depend_on_the_threads(rng):
    """Float sums in another order would differ in their last bits."""
    code = """if True:
        import hashlib, sys
        import dovetail as dt, numpy as np
        rng = np.random.default_rng(20)
        x, updates = rng.normal(size=(300, 64)).astype("f4"), rng.normal(size=(20_000, 64)).astype("f4")
        arrays = [dt.asarray(a) for a in (x, rng.integers(0, 300, 20_000), updates)]
        results = {hashlib.sha256(dt.scatter(*arrays, mode="add").numpy().tobytes()).hexdigest() for _ in range(3)}
        print(*results)
    """
    found = set()
    for threads in ("1", "2", "5"):
        made = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "DOVETAIL_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        )
        found |= set(made.stdout.split())
    assert len(found) == 1


@pytest.mark.parametrize("device", DEVICES)
def test_a_half_sum_is_rounded_once(rng, device):
    values = rng.uniform(0, 1, 3000).astype(np.float16)
    x, places = dt.zeros((1,), dtype=dt.float16, device=device), dt.zeros((3000,), dtype=dt.int64, device=device)
    got = dt.scatter(x, places, dt.asarray(values, device=device), mode="add").numpy()[0]
    assert got == np.float16(values.astype(np.float64).sum())


def test_a_place_that_no_update_names_keeps_its_bits(rng):
    x = np.array([-0.0, np.nan, 1.0], np.float32)
    for device in DEVICES:
        arrays = [dt.asarray(a, device=device) for a in (x, np.array([2]), np.array([1.0], np.float32))]
        got = dt.scatter(*arrays, mode="add").numpy()
        assert got.view(np.uint32)[:2].tolist() == x.view(np.uint32)[:2].tolist() and got[2] == 2


@pytest.mark.parametrize("device", DEVICES)
def test_segment_sum(device):
    x = dt.asarray(np.arange(10, dtype=np.float32).reshape(5, 2), device=device)
    ids = dt.asarray(np.array([1, 0, 1, -1, 3]), device=device)
    np.testing.assert_array_equal(dt.segment_sum(x, ids, 3).numpy(), [[2, 3], [4, 6], [0, 0]])


# ---- slices ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
def test_starts_are_clamped(device):
    x = dt.asarray(np.arange(10), device=device)
    for start, first in ((-5, 0), (3, 3), (8, 6), (2**40, 6)):
        at = dt.asarray(np.array(start), device=device)
        assert dt.dynamic_slice(x, at, 4, axis=0).numpy().tolist() == list(range(first, first + 4))
        written = dt.dynamic_update_slice(x, dt.zeros((4,), dtype=dt.int64, device=device), at, axis=0)
        expected = np.arange(10)
        expected[first : first + 4] = 0
        assert written.numpy().tolist() == expected.tolist()


@pytest.mark.usefixtures("leave_the_schema_as_it_was")
def test_a_free_buffer_is_written_in_place():
    """In a program whose last use of x is the update, the kernel gets x's memory for its result."""

    @declare(name="acme.cached", shape="same", dtype="same", reference=lambda x, row, at: x)
    def cached(x: Tensor, row: Raw, at: Index) -> Tensor:
        """A copy of x with two rows written to it."""
        first = dynamic_update_slice(add(x, 0.0), row, at, axis=(0,))
        return dynamic_update_slice(first, row, at + 1, axis=(0,))

    f = dt.register_op(cached)
    x, row, at = dt.zeros((1 << 16, 8)), dt.ones((1, 8)), dt.asarray(np.array(3))
    f(x, row, at)
    dt.memory.reset_peak("cpu:0")
    before = dt.memory.stats("cpu:0")["in_use"]
    y = f(x, row, at)
    assert dt.memory.stats("cpu:0")["peak"] - before < 1.5 * x.nbytes
    assert y.numpy()[:6, 0].tolist() == [0, 0, 0, 1, 1, 0] and not x.numpy().any()


@pytest.mark.parametrize("device", DEVICES)
def test_attention_over_a_cache_that_is_not_full(rng, device):
    q, k, v = (rng.normal(size=s).astype("f4") for s in ((2, 4, 1, 8), (2, 2, 32, 8), (2, 2, 32, 8)))
    k[:, :, 20:], v[:, :, 20:] = np.nan, np.nan
    arrays = [dt.asarray(a, device=device) for a in (q, k, v)]
    short = [dt.asarray(np.ascontiguousarray(a), device=device) for a in (q, k[:, :, :20], v[:, :, :20])]
    n = dt.asarray(np.array(20), device=device)
    got = dt.nn.scaled_dot_product_attention(*arrays, enable_gqa=True, kv_length=n)
    expected = dt.nn.scaled_dot_product_attention(*short, enable_gqa=True)
    np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
    each = dt.asarray(np.array([20, 0]), device=device)
    got = dt.nn.scaled_dot_product_attention(*arrays, enable_gqa=True, kv_length=each).numpy()
    np.testing.assert_allclose(got[0], expected.numpy()[0], rtol=1e-5, atol=1e-6)
    assert not got[1].any()
