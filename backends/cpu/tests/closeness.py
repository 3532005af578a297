"""The design's tolerance: error <= tol * ulp(max(|reference|, scale))."""

from __future__ import annotations

import numpy as np
from harness import bfloat16

DIGITS = {np.dtype("f2"): (10, -14), bfloat16: (7, -126), np.dtype("f4"): (23, -126), np.dtype("f8"): (52, -1022)}


def ulp(magnitude: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The distance to the next number in dtype at this magnitude."""
    digits, least = DIGITS[np.dtype(dtype)]
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.floor(np.log2(np.abs(magnitude))).astype(np.float64)
    exponent = np.where(np.isfinite(exponent), exponent, least)
    return np.exp2(np.maximum(exponent, least) - digits)


def errors(got: np.ndarray, reference: np.ndarray, scale: np.ndarray | float = 0.0) -> np.ndarray:
    """In ulp; NaN and infinity where the reference has them count as 0, elsewhere as infinite."""
    wide = np.longdouble if np.asarray(reference).dtype == np.longdouble else np.float64
    g, r = got.astype(wide), np.asarray(reference, wide)
    assert g.shape == r.shape, (g.shape, r.shape)
    with np.errstate(invalid="ignore"):
        error = np.abs(g - r) / ulp(np.maximum(np.abs(r), scale), got.dtype)
    same = (g == r) | (np.isnan(g) & np.isnan(r))
    largest = np.finfo(np.float64).max if got.dtype == np.float64 else _largest(got.dtype)
    same |= np.isinf(g) & (np.abs(r) >= largest) & (np.sign(g) == np.sign(r))  # overflowed as expected
    return np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))


def _largest(dtype: np.dtype) -> float:
    digits, _ = DIGITS[dtype]
    top = {np.dtype("f2"): 15, bfloat16: 127, np.dtype("f4"): 127}[dtype]
    return float((2 - 2.0**-digits / 2) * 2.0**top)


def assert_close(got: np.ndarray, reference: np.ndarray, tol: float, scale: np.ndarray | float = 0.0) -> None:
    error = errors(got, reference, scale)
    worst = np.unravel_index(np.argmax(error), error.shape) if error.size else ()
    if error.size and not error[worst] <= tol:
        want = np.asarray(reference)[worst]
        raise AssertionError(f"{error[worst]:.3g} ulp at {worst}: expected {want}, got {got[worst]}; allowed {tol}")
