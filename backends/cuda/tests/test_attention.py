"""The attention kernels on the emulated driver, and what the op makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from cuda_programs import EMULATED, python

HERE = str(Path(__file__).resolve().parent)
SIZES = [32, 64, 96, 128, 192, 256]
HOPPER_SIZES = [64, 128]
DTYPES = ["f16", "bf16"]
# Threads in another order, and copies that come at once instead of when they are waited for.
LATE, EARLY = {}, {"DOVETAIL_CUDA_EMULATED_COPIES": "early", "DOVETAIL_CUDA_EMULATED_ORDER": "shuffled:3"}
timings = pytest.mark.parametrize("timing", [LATE, EARLY], ids=["late", "early"])


def kernels(code: str, **variables: str) -> None:
    python("from attention_kernels import *\n" + code, **EMULATED, PYTHONPATH=HERE, timeout=600, **variables)


@timings
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_forward(dtype, size, timing):
    kernels(f"check_cases('forward', {dtype!r}, {size})", **timing)


@timings
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_masks_and_dropout(dtype, size, timing):
    kernels(f"check_cases('general', {dtype!r}, {size})", **timing)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sequences_of_several_lengths(dtype):
    kernels(f"check_sequences({dtype!r})")


@timings
@pytest.mark.parametrize("size", HOPPER_SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_hopper(dtype, size, timing):
    kernels(f"check_hopper({dtype!r}, {size})", **timing)


@timings
@pytest.mark.parametrize("size", [40, 64, 128])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients(dtype, size, timing):
    kernels(f"check_gradients({dtype!r}, {size})", **timing)


def test_what_serves_a_call(program):
    """Calls for each engine agree with the CPU: dense and strided heads, odd sizes, masks, groups, many axes."""
    program("""
from dovetail import nn
rng = np.random.default_rng(1)
def both(q, k, v, *mask, **attributes):
    results = []
    for device in ("cuda", "cpu"):
        operands = [dv.asarray(x, device=device) for x in (q, k, v, *mask)]
        y = nn.scaled_dot_product_attention(*operands, **attributes)
        results.append(dv.astype(y, dv.float64).numpy())
    np.testing.assert_allclose(*results, rtol=0, atol=0.01)
def draw(*shape, dtype="float16"):
    return rng.uniform(-1, 1, shape).astype(dtype)
for size in (8, 64, 80, 128, 200, 21):
    q, k, v = draw(2, 4, 33, size), draw(2, 2, 50, size), draw(2, 2, 50, size)
    both(q, k, v, enable_gqa=True)
    both(q, k, v, enable_gqa=True, is_causal=True)
    both(q, k, v, rng.random((33, 50)) < 0.5, enable_gqa=True)
    both(q, k, v, enable_gqa=True, scale=-0.5)
    both(q[0, 0], k[0, 0], v[0, 0, :, :16])
    both(draw(2, 3, 2, 9, size), draw(2, 3, 2, 7, size), draw(2, 3, 2, 7, size))
for dtype in ("float32", "float64"):
    q, k, v = (draw(2, 4, *shape, dtype=dtype) for shape in ((70, 21), (90, 21), (90, 70)))
    both(q, k, v, is_causal=True)
""")
