"""Products and convolutions by oneDNN: its own layouts, and faults of oneDNN that we avoid."""

import re
from pathlib import Path

import pytest
from programs import ON_CPU, python

PRELUDE = """
import dovetail as dv, numpy as np
from dovetail import nn

dv.set_default_device("xpu")
rng = np.random.default_rng(0)

def draw(*shape, dtype=dv.float32):
    return dv.astype(dv.asarray(rng.integers(-4, 5, shape).astype(np.float32)), dtype)
def numbers(x):
    return dv.astype(x, dv.float32).numpy()
def packed():
    return dv.memory.stats("xpu")["packed"]
"""


def program(code: str, **variables: str) -> str:
    return python(PRELUDE + code, **ON_CPU, **variables)


def onednn_multiplies_bfloat16() -> bool:
    """oneDNN 3.13 needs AVX-512 or AVX-NE-CONVERT; without them the device's own kernels multiply and pack
    nothing."""
    flags = set(re.findall(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)[0].split())
    return bool({"avx512bw", "avx_ne_convert"} & flags)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_weights_are_packed_for_their_second_product(dtype):
    packs = dtype == "float32" or onednn_multiplies_bfloat16()
    program(
        f"dtype, packs = dv.{dtype}, {packs}"
        + """
for call in (lambda x, w, b: x @ dv.matrix_transpose(w)), (lambda x, w, b: nn.linear(x, w)), nn.linear:
    x, w, b = (draw(*shape, dtype=dtype) for shape in ((16, 384), (96, 384), (96,)))
    plain = numbers(call(x, w, b))
    assert packed() == 0
    for _ in range(2):
        np.testing.assert_array_equal(numbers(call(x, w, b)), plain)
        assert packed() >= 96 * 384 * w.dtype.itemsize if packs else packed() == 0
    w[0] = 1.0
    assert packed() == 0
    np.testing.assert_array_equal(numbers(call(x, w, b))[:, 1:], plain[:, 1:])
"""
    )


def test_weights_are_packed_for_their_second_convolution():
    program("""
for groups in 1, 4:
    x, w, b = draw(2, 32, 14, 14), draw(64, 32 // groups, 3, 3), draw(64)
    plain = numbers(nn.conv2d(x, w, b, padding=1, groups=groups))
    assert packed() == 0
    for _ in range(2):
        np.testing.assert_array_equal(numbers(nn.conv2d(x, w, b, padding=1, groups=groups)), plain)
        assert packed() > 0
    del w
""")


def test_our_own_kernels_have_no_layout_of_their_own():
    program("""
for dtype in dv.int32, dv.float64:
    x, w = draw(16, 384, dtype=dtype), draw(96, 384, dtype=dtype)
    for _ in range(3):
        nn.linear(x, w)
    assert packed() == 0
""")


def test_images_with_gaps_between_them():
    program("""
for dtype in dv.float32, dv.bfloat16, dv.float16:
    for channels in 1, 3, 4:
        x = draw(6, channels, 4, 5, dtype=dtype)
        for kernel in 1, 2:
            w = draw(2, channels, kernel, kernel, dtype=dtype)
            np.testing.assert_array_equal(numbers(nn.conv2d(x[::2], w)), numbers(nn.conv2d(x, w))[::2])
""")


def test_interleaved_matrices():
    """Batched matrices that one operand is broadcast over, as in vecdot and attention."""
    program("""
for dtype in dv.float32, dv.bfloat16:
    for k in 2, 3, 8:
        x, y = draw(3, k, 5, dtype=dtype), draw(1, k, 5, dtype=dtype)
        expected = np.einsum("bkn,ckn->bn", numbers(x), numbers(y))
        np.testing.assert_array_equal(numbers(dv.vecdot(x, y, axis=-2)), expected)
        np.testing.assert_array_equal(numbers(dv.vecdot(y, x, axis=-2)), expected)
""")


def test_nan_and_infinity_do_not_spread():
    """oneDNN multiplies bfloat16 channels in pairs: of an odd number the last one's partner belongs elsewhere."""
    program("""
for dtype in dv.float32, dv.bfloat16, dv.float16:
    for channels in 1, 3, 4, 5:
        x, w = rng.integers(1, 5, (1, channels, 6, 6)) / 1.0, rng.integers(1, 5, (16, channels, 1, 1)) / 1.0
        x[0, -1, 2, 3], w[4, 0] = np.nan, np.inf
        for step in 1, 2:
            for weight in w[:4], w:
                args = (dv.astype(dv.asarray(a.astype(np.float32)), dtype) for a in (x, weight))
                got = numbers(nn.conv2d(*args, stride=(1, step)))[0]
                expected = np.einsum("oc,chw->ohw", weight[..., 0, 0], x[0])[..., ::step]
                np.testing.assert_array_equal(np.isnan(got), np.isnan(expected), f"{dtype} {channels} {step}")
""")
