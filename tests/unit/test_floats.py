"""Conversions to fp16, bf16 and fp8: one rounding, to nearest even, and NaN keeps its sign. Tested in
dovetail/floats.hpp, which the devices share, and on devices."""

from __future__ import annotations

import ctypes

import dovetail
import ml_dtypes
import numpy as np
import pytest

SEED = 11
NARROW = {
    "bf16": (ml_dtypes.bfloat16, "bfloat16"),
    "f16": (np.float16, "float16"),
    "f8e4m3fn": (ml_dtypes.float8_e4m3fn, "float8_e4m3fn"),
    "f8e5m2": (ml_dtypes.float8_e5m2, "float8_e5m2"),
}
NAN = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0xFFD5A000, 0x7FFFFFFF], np.uint32)
NAN_BITS = {
    "bf16": [0x7FC0, 0xFFC0, 0x7FC0, 0xFFC0, 0xFFD5, 0x7FFF],
    "f16": [0x7E00, 0xFE00, 0x7E00, 0xFE00, 0xFEAD, 0x7FFF],
    "f8e4m3fn": [0x7F, 0xFF, 0x7F, 0xFF, 0xFF, 0x7F],
    "f8e5m2": [0x7F, 0xFF, 0x7F, 0xFF, 0xFF, 0x7F],
}


def call(functions: ctypes.CDLL, name: str, x: np.ndarray, dtype: type) -> np.ndarray:
    y = np.empty(x.shape, dtype)
    pointers = (ctypes.c_void_p(a.ctypes.data) for a in (x, y))
    getattr(functions, name)(*pointers, ctypes.c_size_t(x.size))
    return y


def numbers() -> np.ndarray:
    """Any float32 but NaN, and all whose lower bits are at or next to a tie."""
    rng = np.random.default_rng(SEED)
    bits = rng.integers(0, 2**32, 100_000, dtype=np.uint32)
    ties = [
        (bits & ~np.uint32(2 * half - 1)) | np.uint32(half + off)
        for half in (1 << 15, 1 << 12, 1 << 19, 1 << 20)
        for off in (-1, 0, 1)
    ]
    x = np.concatenate([bits, *ties]).view(np.float32)
    return x[~np.isnan(x)]


@pytest.mark.parametrize("kind", NARROW)
def test_rounds_to_nearest_even(functions, kind):
    dtype = NARROW[kind][0]
    bits = f"u{np.dtype(dtype).itemsize}"
    x = numbers()
    with np.errstate(over="ignore"):
        want = x.astype(dtype)
    np.testing.assert_array_equal(call(functions, f"{kind}_of_f32", x, bits), want.view(bits))


@pytest.mark.parametrize("kind", NARROW)
def test_nan_keeps_its_sign_and_payload(functions, kind):
    bits = f"u{np.dtype(NARROW[kind][0]).itemsize}"
    assert call(functions, f"{kind}_of_f32", NAN.view(np.float32), bits).tolist() == NAN_BITS[kind]


def test_widening_is_exact(functions):
    every = np.arange(2**16, dtype=np.uint16)
    want = every.view(np.float16).astype(np.float32)
    want = want.view("u4") | np.where(np.isnan(want), np.uint32(0x400000), np.uint32(0))  # quiet
    np.testing.assert_array_equal(call(functions, "f32_of_f16", every, "u4"), want)
    np.testing.assert_array_equal(call(functions, "f32_of_bf16", every, "u4"), every.astype("u4") << 16)


# The bfloat16 after 2^62 is 2^55 larger. This number is one more than halfway between them and rounds upwards; as a
# double it would be halfway, and then round down to even.
ABOVE_THE_MIDDLE = 2**62 + 2**54 + 1
UP = 0x5E81


@pytest.mark.parametrize("kind", ["i64", "u64"])
def test_integers_are_rounded_once(functions, kind):
    x = np.array([ABOVE_THE_MIDDLE], {"i64": "i8", "u64": "u8"}[kind])
    assert call(functions, f"bf16_of_{kind}", x, "u2") == UP


@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_devices_round_integers_once(device):
    x = dovetail.asarray(np.array([ABOVE_THE_MIDDLE, -ABOVE_THE_MIDDLE]), device=device)
    narrow = np.asarray(dovetail.astype(x, dovetail.bfloat16))
    assert narrow.view("u2").tolist() == [UP, UP | 0x8000]


@pytest.mark.parametrize("device", ["cpu", "sim"])
@pytest.mark.parametrize("kind", NARROW)
def test_devices_keep_the_sign_of_nan(device, kind):
    x = dovetail.asarray(NAN.view(np.float32), device=device)
    narrow = np.asarray(dovetail.astype(x, getattr(dovetail, NARROW[kind][1])))
    assert narrow.view(f"u{narrow.itemsize}").tolist() == NAN_BITS[kind]
