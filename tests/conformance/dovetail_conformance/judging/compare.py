"""Is an answer near enough to the oracle's? Pure NumPy: no device, no op."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from dovetail.schema import dtypes as dt
from dovetail.schema.dtypes import DType

from .histogram import histogram


class Verdict(NamedTuple):
    ok: bool
    ulp: float = 0.0  # the worst error; inf where a special value or an integer is wrong
    wrong: int = 0  # elements beyond the tolerance
    message: str = ""
    index: tuple[int, ...] | None = None
    got: str = ""
    expected: str = ""
    errors: np.ndarray | None = None  # for floats: the histogram of all elements


def exponents(d: DType) -> tuple[int, int]:
    """The exponents of the smallest and the largest normal number."""
    return math.frexp(d.tiny)[1] - 1, math.frexp(d.max)[1] - 1


def ulp(magnitude: Any, d: DType) -> Any:
    """The distance to the next number of `d` at a magnitude, in the precision of the argument."""
    low, high = exponents(d)
    m = np.asarray(magnitude)
    exponent = np.where(np.isfinite(m), np.frexp(m)[1] - 1, high)
    exponent = np.where(m == 0, low, np.clip(exponent, low, high))
    return np.ldexp(m.dtype.type(1), exponent - d.mant)


def rounded(x: Any, d: DType) -> Any:
    """The numbers of `d` nearest to x, ties to even. Rounds once: astype of ml_dtypes goes by way of float32."""
    unit = ulp(np.abs(x), d)
    nearest = np.copysign(np.rint(x / unit) * unit, x)
    return np.where(np.abs(nearest) > d.max, np.copysign(np.inf, x), nearest)


def compare(
    got: Any,
    expected: Any,
    d: DType,
    tol: float = 0,
    scale: Any = 0.0,
    *,
    signed_zeros: bool = True,
    flushes: bool = False,
    flushed: tuple[Any, Any] | None = None,
) -> Verdict:
    """Compares an array of dtype `d` with the oracle's answer.

    Floats may err by tol * ulp(max(|expected|, scale)); with tol 0 they must be the expected value, rounded once.
    NaN, infinities and signed zeros, integers and bools must be the very same. For one that flushes subnormals,
    what is less than the smallest normal number off counts as right. flushed: (expected, scale) of operands without
    subnormals, if it may have flushed those, too: an element that equals either is right.
    """
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape:
        return Verdict(False, math.inf, got.size, f"shape {got.shape}, expected {expected.shape}")
    if got.dtype != d.numpy:
        return Verdict(False, math.inf, got.size, f"dtype {got.dtype.name}, expected {d.name}")
    with np.errstate(all="ignore"):
        if d.kind == "f":
            error, bad = _floats(got, expected, d, tol, scale, signed_zeros, flushes)
            if flushed is not None:
                of_flushed, also_bad = _floats(got, flushed[0], d, tol, flushed[1], signed_zeros, flushes)
                error, bad = np.where(bad & ~also_bad, of_flushed, error), bad & also_bad
        elif d.kind == "c":
            error, bad = _complex(got, expected, d, tol, scale)
        else:
            bad = _integers_differ(got, expected, d)
            error = np.where(bad, np.inf, 0.0)
    verdict = _verdict(got, expected, error, bad, d, tol)
    return verdict._replace(errors=histogram(error)) if d.kind in "fc" else verdict


def _integers_differ(got: Any, expected: Any, d: DType) -> Any:
    if expected.dtype.kind in "fc":  # exact in the oracle's wide type: no wrap to hide a difference
        return got.astype(expected.dtype) != expected
    return got != expected.astype(d.numpy)


def _wide(expected: Any) -> Any:
    return expected if expected.dtype == np.longdouble else expected.astype(np.float64)


def _floats(
    got: Any, expected: Any, d: DType, tol: float, scale: Any, signed_zeros: bool, flushes: bool
) -> tuple[Any, Any]:
    ref = _wide(expected)
    if not d.has_inf:
        ref = np.where(np.isfinite(rounded(ref, d)), ref, math.nan)
    value = got.astype(ref.dtype)
    special = ~np.isfinite(ref)
    same = np.where(np.isnan(ref), np.isnan(value), value == ref)
    overflow = np.ldexp(ref.dtype.type(1), exponents(d)[1] + 1)  # the value of an infinity, to measure a distance
    if tol == 0:
        ref = rounded(ref, d)
    error = np.abs(np.clip(value, -overflow, overflow) - np.clip(ref, -overflow, overflow))
    error = error / ulp(np.maximum(np.abs(ref), np.asarray(scale, ref.dtype)), d)
    error = np.where(special, np.where(same, 0.0, np.inf), np.where(np.isnan(value), np.inf, error))
    bad = error > tol
    if signed_zeros:
        flipped = (_wide(expected) == 0) & (np.asarray(scale) == 0) & (value == 0)
        flipped &= np.signbit(value) != np.signbit(ref)
        error, bad = np.where(flipped, np.inf, error), bad | flipped
    if flushes:
        small = np.abs(_wide(expected) - value) <= d.tiny
        error, bad = np.where(small, 0.0, error), bad & ~small
    return error.astype(np.float64), bad


def _complex(got: Any, expected: Any, d: DType, tol: float, scale: Any) -> tuple[Any, Any]:
    """Normwise: the parts of a product or a quotient may cancel."""
    part = dt.PART[d]
    ref = expected if expected.dtype == np.clongdouble else expected.astype(np.complex128)
    value = got.astype(ref.dtype)
    if tol == 0:
        ref = ref.astype(d.numpy).astype(ref.dtype)
    finite = np.isfinite(ref)
    size = np.where(finite, np.maximum(np.abs(ref), scale), 1.0)
    error = np.abs(value - ref) / ulp(size, part)
    parts = [
        np.where(np.isnan(r), np.isnan(v), v == r) for r, v in ((ref.real, value.real), (ref.imag, value.imag))
    ]
    error = np.where(finite, np.where(np.isnan(error), np.inf, error), np.where(parts[0] & parts[1], 0.0, np.inf))
    return error, error > tol


def _shown(x: Any, d: DType) -> str:
    if d.kind == "f":
        digits = {2: 5, 4: 9, 8: 17}[d.itemsize]
        return f"{float(x):.{digits}g}" if d.itemsize < 8 else np.format_float_scientific(x, digits - 1, trim="-")
    return str(x)


def _verdict(got: Any, expected: Any, error: Any, bad: Any, d: DType, tol: float) -> Verdict:
    worst = float(error.max(initial=0.0))
    wrong = int(np.count_nonzero(bad))
    if not wrong:
        return Verdict(True, worst)
    # Among equally bad ones the first.
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(np.where(bad, error, -1.0))), got.shape))
    shown = _shown(got[index], d), _shown(expected[index], d)
    what = f"{wrong} of {got.size} elements wrong" if got.size > 1 else "wrong"
    place = f"at {index[0] if len(index) == 1 else index}: " if index else ""
    size = "" if math.isinf(worst) else f", {worst:.3g} ulp off where {tol:g} are allowed"
    message = f"{what}{size}; {place}got {shown[0]}, expected {shown[1]}"
    return Verdict(False, worst, wrong, message, index, *shown)
