"""Exponentials, logarithms, powers, hyperbolic functions."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .. import dtypes as dt
from ..declare import Tensor, Unsupported, op
from ..lazy_numpy import np
from ..samples import Sample, draw, given, sample
from ._float import (
    INF,
    LN2,
    LOG2E,
    NAN,
    const,
    fit,
    flipped,
    ldexp,
    magnitude,
    polynomial,
    split_exponent,
    twin,
    two_product,
    with_sign,
)
from .arithmetic import clip
from .logic import isfinite, isnan, logical_not, signbit
from .primitives import astype, exp, floor, log, maximum, minimum, sqrt, where


@op(shape="same", dtype="float", autocast="float32", tier="extended", tol=4, reference=np.expm1)
def expm1(x: Tensor, /) -> Tensor:
    """exp(x) - 1, accurate near 0, keeping -0."""
    u = exp(x)
    d = u - 1.0
    near = where(u == 1.0, x, d * (x / log(u)))  # log(u) carries the error of u, which cancels
    return where(magnitude(x) < 1.0, near, d)


def _log1p(x):
    if x.dtype.kind != "c":
        return np.log1p(x)
    a, b = x.real, x.imag  # NumPy adds 1 first, which loses small numbers
    near = np.abs(x) < 0.5
    return np.where(near, 0.5 * np.log1p(a * (2 + a) + b * b), np.log(np.abs(1 + x))) + 1j * np.arctan2(b, 1 + a)


@op(shape="same", dtype="float", autocast="float32", tier="extended", tol=4, reference=_log1p)
def log1p(x: Tensor, /) -> Tensor:
    """log(1 + x), accurate near 0, keeping -0."""
    u = x + 1.0
    d = u - 1.0  # what of x arrived in u; log(u) / d varies slowly
    return where(d == 0.0, x, where(u == INF, u, log(u) * (x / d)))


@op(shape="same", dtype="float", autocast="float32", tol=2, reference=np.exp2)
def exp2(x: Tensor, /) -> Tensor:
    """2 to the power of x, exact at integers."""
    low, high = (-152.0, 130.0) if x.dtype is dt.float32 else (-1080.0, 1030.0)
    c = clip(x, low, high)
    n = floor(c + 0.5)
    return ldexp(exp((c - n) * LN2), astype(n, twin(x.dtype)))


@op(shape="same", dtype="float", autocast="float32", tol=3, reference=np.log2)
def log2(x: Tensor, /) -> Tensor:
    """The logarithm to base 2, exact at powers of 2."""
    m, e = split_exponent(x)
    return where((x > 0.0) & (x < INF), astype(e, x.dtype) + log(m) * LOG2E, log(x))


@op(shape="same", dtype="float", autocast="float32", tol=4, reference=np.log10)
def log10(x: Tensor, /) -> Tensor:
    """The logarithm to base 10."""
    return log(x) * (1 / math.log(10))


@op(shape="broadcast", dtype="float", autocast="float32", tol=8, reference=np.logaddexp,
    scale=lambda x1, x2: np.abs(np.maximum(x1, x2)))  # fmt: skip
def logaddexp(x1: Tensor, x2: Tensor, /) -> Tensor:
    """log(exp(x1) + exp(x2)) without overflow; accurate to the larger of the result and the operands."""
    m, n = maximum(x1, x2), minimum(x1, x2)
    d = n - m
    t = d - n
    e = (n - (d - t)) - (m + t)  # the rounding error of d
    r = m + log1p(exp(d) * (1.0 + where(d > -INF, e, 0.0)))
    return where(x1 == x2, x1 + LN2, r)


# ---- hyperbolic --------------------------------------------------------------------------------------------------


@op(shape="same", dtype="float", autocast="float32", tol=5, reference=np.sinh)
def sinh(x: Tensor, /) -> Tensor:
    """The hyperbolic sine."""
    a = magnitude(x)
    e, half = expm1(a), exp(a * 0.5)
    return with_sign(where(a < 20.0, (e + e / (e + 1.0)) * 0.5, (half * 0.5) * half), x)


@op(shape="same", dtype="float", autocast="float32", tol=5, reference=np.cosh)
def cosh(x: Tensor, /) -> Tensor:
    """The hyperbolic cosine."""
    a = magnitude(x)
    e, half = exp(a), exp(a * 0.5)
    return where(a < 20.0, e * 0.5 + 0.5 / e, (half * 0.5) * half)


@op(shape="same", dtype="float", tier="extended", tol=6, reference=np.tanh)
def tanh(x: Tensor, /) -> Tensor:
    """The hyperbolic tangent; -1 and 1 at infinities."""
    t = expm1(magnitude(x) * -2.0)
    return with_sign(t / (t + 2.0), x)


@op(shape="same", dtype="float", autocast="float32", tol=5, reference=np.arcsinh)
def asinh(x: Tensor, /) -> Tensor:
    """The inverse hyperbolic sine."""
    a = magnitude(x)
    near = log1p(a + a * a / (1.0 + sqrt(1.0 + a * a)))
    return with_sign(where(a < 1e9, near, log(a) + LN2), x)


@op(shape="same", dtype="float", autocast="float32", tol=5, reference=np.arccosh)
def acosh(x: Tensor, /) -> Tensor:
    """The inverse hyperbolic cosine; NaN below 1."""
    t = x - 1.0
    near = log1p(t + sqrt(t * (t + 2.0)))
    return where(x < 1.0, NAN, where(x < 1e9, near, log(x) + LN2))


@op(shape="same", dtype="float", autocast="float32", tol=5, reference=np.arctanh)
def atanh(x: Tensor, /) -> Tensor:
    """The inverse hyperbolic tangent; infinities at -1 and 1, NaN beyond."""
    a = magnitude(x)
    return with_sign(log1p(a * 2.0 / (1.0 - a)) * 0.5, x)


# ---- powers ------------------------------------------------------------------------------------------------------

# (atanh(s) / s - 1) / s**2 * 2 over s**2 <= 0.0295: minimax for float32
ATANH = (0.666667774, 0.39977398, 0.29876085)
ATANH_64 = tuple(2 / (2 * k + 3) for k in range(10))


def integer_pow(x1: Tensor, x2: Tensor) -> Tensor:
    r = where((x2 & 1) == 1, x1, 1)
    for k in range(1, x1.dtype.bits - (x1.dtype.kind == "i")):
        x1 = x1 * x1
        r = where(((x2 >> k) & 1) == 1, r * x1, r)
    return r


def _log2_in_two(a: Tensor) -> tuple[Tensor, Tensor]:
    """log2(a), a > 0, as a sum of two numbers."""
    d = a.dtype
    m, e = split_exponent(a)
    num, den = m - 1.0, m + 1.0
    s = num / den
    p, q = two_product(s, den)
    s_low = (((num - p) - q) - s * (m - (den - 1.0))) / den  # with the rounding error of den
    z = s * s
    low = s_low * 2.0 + s * z * polynomial(z, fit(d, ATANH, ATANH_64))  # ln(m) = 2 s + low
    log2e = LOG2E_32 if d is dt.float32 else LOG2E_64
    high, t = two_product(s * 2.0, const(log2e[0], a))
    t = t + s * (2 * log2e[1]) + low * log2e[0]
    e = astype(e, d)
    k = e + high
    r = (high - (k - e)) + t  # exact: e is 0 or larger than high
    total = k + r
    return total, r - (total - k)


# log2(e) as a number of the dtype and the rest
LOG2E_32 = (1.44269502162933349609375, 1.9259629911266175e-8)
LOG2E_64 = (1.4426950408889634, 2.0355273740931033e-17)


def float_pow(x1: Tensor, x2: Tensor) -> Tensor:
    """2 ** (x2 * log2(abs(x1))), logarithm and product in two numbers each."""
    d = x1.dtype
    single = d is dt.float32
    far, beyond = (2.0**36, 200.0) if single else (2.0**70, 1200.0)
    a = magnitude(x1)
    high, low = _log2_in_two(where(a == 0.0, 1.0, a))
    y = clip(x2, -far, far)
    p, q = two_product(y, high)
    p, q = clip(p, -beyond, beyond), where(magnitude(p) < beyond, q + y * low, 0.0)
    n = floor(p + 0.5)
    return ldexp(exp(((p - n) + q) * LN2), astype(n, twin(d)))


def _pow(x1, x2):
    """np.power of a scalar 0.5 is the square root: -0 of -0, NaN of -inf."""
    return (np.float_power if np.result_type(x1, x2).kind == "f" else np.power)(x1, x2)


def _pow_samples() -> Iterator[Sample]:
    yield sample("small_powers", draw(500, low=-12, high=12), draw(500, low=0, high=6))
    yield sample("roots", draw(500, low=0, high=100), draw(500, low=-2, high=2), only=dt.FLOATS)
    yield sample("values", draw(4000, low=None), draw(4000, low=None), only=dt.FLOATS)
    yield sample("row_column", draw(5, 1, low=1, high=3), draw(1, 7, low=0, high=4))
    yield sample("python_scalar", draw(3, 4), 2)
    yield sample("negative_power", draw(3), given([2, 0, -1]), only=dt.SIGNED, error=ValueError)
    yield sample("mismatch", draw(2, 3), draw(4), error=ValueError)


def _pow_scale(x1, x2):
    """Of complex numbers, exp(x2 * log(x1)): the error of an exponent is that many ulp of the result."""
    if np.result_type(x1, x2).kind != "c":
        return 0.0
    exponent = np.abs(x2 * np.log(np.asarray(x1, np.result_type(x1, np.complex64))))
    return np.nan_to_num(np.abs(np.power(x1, x2)) * np.maximum(1, exponent), nan=0.0, posinf=0.0)


@op(
    shape="broadcast",
    dtype="numeric",
    autocast="float32",
    tier="extended",
    traits=("integer_exponent",),
    tol=8,
    scale=_pow_scale,
    reference=_pow,
    samples=_pow_samples,
    domain=((-12, 12), (0, 6)),
)
def pow_(x1: Tensor, x2: Tensor, /) -> Tensor:
    """x1 to the power of x2; special cases as in C99. Integers wrap; a negative exponent of one is a ValueError.

    The runtime looks at the exponents of signed integers first, and waits for the device where they are an array.
    """
    if x1.dtype.kind in "iu":
        return integer_pow(x1, x2)
    if x1.dtype.kind != "f":
        raise Unsupported(f"no power of {x1.dtype.name}: expected integers or floats")
    a = magnitude(x1)
    r = float_pow(x1, x2)
    to_zero = (a < 1.0) ^ (x2 < 0.0)
    r = where((a == 0.0) | (a == INF), where(to_zero, 0.0, const(INF, x1)), r)
    half, finite, whole = x2 * 0.5, isfinite(x2), floor(x2) == x2
    odd = whole & logical_not(floor(half) == half) & finite
    r = where(signbit(x1) & odd, flipped(r), r)
    no_root = (x1 < 0.0) & (a < INF) & finite & logical_not(whole)
    r = where(no_root | isnan(x1) | isnan(x2), NAN, r)
    return where((x1 == 1.0) | (x2 == 0.0), 1.0, r)
