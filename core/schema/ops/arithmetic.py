"""Arithmetic made of the primitives: signs, rounding, adjacent numbers, lengths."""

from __future__ import annotations

from .. import dtypes as dt
from ..declare import Tensor, op
from ..lazy_numpy import np
from ._float import (
    INF,
    NAN,
    bits,
    const,
    exponent_bias,
    flipped,
    from_bits,
    ldexp,
    magnitude,
    sign_bit,
    twin,
    with_sign,
)
from .logic import as_number, isinf, logical_not
from .primitives import (
    ROUNDED,
    add,
    astype,
    copy,
    divide,
    floor,
    maximum,
    minimum,
    multiply,
    quotient,
    sqrt,
    subtract,
    where,
)


@op(shape="same", dtype="numeric", half="native", reference=np.positive)
def positive(x: Tensor, /) -> Tensor:
    """+x."""
    return copy(x)


@op(shape="same", dtype="numeric", reference=np.negative)
def negative(x: Tensor, /) -> Tensor:
    """-x; integers wrap, zeros change their sign."""
    return flipped(x) if x.dtype.kind == "f" else subtract(0, x)


@op(shape="same", dtype="part", reference=np.abs)
def abs_(x: Tensor, /) -> Tensor:
    """The absolute value; the least integer is its own."""
    if x.dtype.kind in "ub":
        return copy(x)
    return magnitude(x) if x.dtype.kind == "f" else where(x < 0, subtract(0, x), x)


@op(shape="same", dtype="numeric", reference=np.sign)
def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1; NaN at NaN."""
    if x.dtype.kind == "u":
        return as_number(x > 0, x)
    s = as_number(x > 0, x) - as_number(x < 0, x)
    return where(x == x, s, x) if x.dtype.kind == "f" else s


@op(shape="same", dtype="promote", autocast="float32", tol=ROUNDED, reference=np.square)
def square(x: Tensor, /) -> Tensor:
    """x * x; integers wrap, bool is its own square."""
    return copy(x) if x.dtype.kind == "b" else multiply(x, x)


@op(shape="same", dtype="float", autocast="float32", tol=ROUNDED, reference=np.reciprocal)
def reciprocal(x: Tensor, /) -> Tensor:
    """1 / x, correctly rounded."""
    return divide(1.0, x)


@op(shape="same", dtype="float", autocast="float32", tol=2, reference=lambda x: 1 / np.sqrt(x))
def rsqrt(x: Tensor, /) -> Tensor:
    """1 / sqrt(x)."""
    return divide(1.0, sqrt(x))


@op(shape="same", dtype="same_real", reference=np.ceil)
def ceil(x: Tensor, /) -> Tensor:
    """The smallest integer not below x, keeping -0."""
    return copy(x) if x.dtype.kind in "iub" else flipped(floor(flipped(x)))


@op(shape="same", dtype="same_real", reference=np.trunc)
def trunc(x: Tensor, /) -> Tensor:
    """x without its fraction, keeping -0."""
    return copy(x) if x.dtype.kind in "iub" else with_sign(floor(magnitude(x)), x)


def to_nearest(x: Tensor) -> Tensor:
    """Half to even, by the rounding of one addition."""
    a, c = magnitude(x), 2.0**x.dtype.mant
    return with_sign(where(a < c, (a + c) - c, a), x)


@op(shape="same", dtype="numeric", reference=lambda x: np.rint(x) if x.dtype.kind in "fc" else x)
def round_(x: Tensor, /) -> Tensor:
    """The nearest integer, the even one of two, keeping -0."""
    return copy(x) if x.dtype.kind in "iub" else to_nearest(x)


def _clip(x, min, max):
    if min is not None:
        x = np.maximum(x, min)
    return x if max is None else np.minimum(x, max)


@op(shape="broadcast", dtype="promote", reference=_clip)
def clip(x: Tensor, /, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    """x, but not below min and not above max; max wins where they cross. NaN stays."""
    if min is not None:
        x = maximum(x, min)
    if max is not None:
        x = minimum(x, max)
    return copy(x) if min is None and max is None else x


@op(shape="broadcast", dtype="float", reference=np.copysign)
def copysign(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The magnitude of x1 with the sign of x2."""
    return with_sign(x1, x2)


def _nextafter(x1, x2, like):
    x1, x2 = np.asarray(x1), np.asarray(x2)
    if like is dt.bfloat16:  # float32 whose low half is 0
        a, b = (np.broadcast_arrays(x1, x2)[i].astype(np.float32) for i in (0, 1))
        return _ordered_step(a, b)
    a, b = x1.astype(like.numpy), x2.astype(like.numpy)
    return np.where(a == b, b, np.nextafter(a, b)).astype(
        np.float64
    )  # of two zeros NumPy's float16 gives the first


def _ordered_step(a, b):
    order = [
        np.where(v < 0, -(v & 0x7FFF), v)
        for v in ((w.view(np.int32) >> 16).astype(np.int16).astype(int) for w in (a, b))
    ]
    step = order[0] + np.sign(order[1] - order[0])
    word = np.where(step < 0, -step | 0x8000, np.where((step == 0) & np.signbit(a), 0x8000, step))
    out = (word.astype(np.uint32) << 16).view(np.float32)
    return np.where(np.isnan(a) | np.isnan(b), np.nan, np.where(a == b, b, out)).astype(np.float64)


@op(shape="broadcast", dtype="float", half="native", reference=_nextafter)
def nextafter(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The next number of this dtype after x1 on the way to x2; x2 where they are equal."""
    d = x1.dtype
    wide = dt.int32 if d.itemsize == 2 else twin(d)
    least = sign_bit(d)
    b1, b2 = (bits(x) if wide is twin(d) else astype(bits(x), wide) for x in (x1, x2))
    o1, o2 = where(b1 < 0, least - b1, b1), where(b2 < 0, least - b2, b2)  # in order; both zeros are 0
    step = o1 + (astype(o1 < o2, wide) - astype(o2 < o1, wide))
    word = where(step < 0, least - step, step)
    word = where(word == 0, b1 & least, word)  # zero is reached from its own side
    word = where(o1 == o2, b2, word)
    there = from_bits(word if wide is twin(d) else astype(word, twin(d)), d)
    return where((x1 == x1) & (x2 == x2), there, NAN)


def _hypot_range(x: Tensor) -> tuple[float, float, float]:
    return (2.0**-50, 2.0**60, 2.0**80) if x.dtype is dt.float32 else (2.0**-450, 2.0**500, 2.0**600)


@op(shape="broadcast", dtype="float", tol=2, reference=np.hypot)
def hypot(x1: Tensor, x2: Tensor, /) -> Tensor:
    """sqrt(x1**2 + x2**2) without overflow on the way; an infinity wins over NaN."""
    a1, a2 = magnitude(x1), magnitude(x2)
    big, small = maximum(a1, a2), minimum(a1, a2)
    low, high, k = _hypot_range(x1)
    k = where(big < low, k, where(high < big, 1 / k, const(1, x1)))  # a power of two: exact
    big, small = big * k, small * k
    length = sqrt(big * big + small * small) / k
    return where(isinf(x1) | isinf(x2), INF, length)


def _floor_divide(x1, x2, like):
    if like is None or like.kind != "f":
        return np.floor_divide(x1, x2)
    d = np.float32 if like.itemsize == 2 else like.numpy
    return np.floor(np.asarray(x1).astype(d) / np.asarray(x2).astype(d)).astype(np.float64)


def integer_floor_divide(x1: Tensor, x2: Tensor) -> Tensor:
    q = quotient(x1, x2)
    if q.dtype.kind == "u":
        return q
    inexact = (q * x2 != x1) & ((x1 ^ x2) < 0) & (x2 != 0)
    return q - astype(inexact, q.dtype)


@op(shape="broadcast", dtype="numeric", tol=ROUNDED, reference=_floor_divide)
def floor_divide(x1: Tensor, x2: Tensor, /) -> Tensor:
    """floor(x1 / x2); of floats the floor of the rounded quotient, of integers exact, and 0 where x2 is 0."""
    return floor(divide(x1, x2)) if x1.dtype.kind == "f" else integer_floor_divide(x1, x2)


def _remainder(x1, x2, like):
    if like is None or like.kind != "f":
        return np.remainder(x1, x2)
    a, b = np.broadcast_arrays(np.asarray(x1, np.float64), np.asarray(x2, np.float64))
    r = np.fmod(a, b)  # exact; what follows is too, or rounded once
    r = np.where((r != 0) & ((r < 0) != (b < 0)), r + b, np.where(r == 0, np.copysign(0.0, b), r))
    return np.where(np.isfinite(a) & np.isinf(b), np.where(a == 0, np.copysign(0.0, b), r), r)


def _unpacked(x: Tensor) -> tuple[Tensor, Tensor]:
    """Significand as int64 and biased exponent of abs(x)."""
    d, b = x.dtype, bits(magnitude(x))
    e, f = b >> d.mant, b & ((1 << d.mant) - 1)
    m = where(e == 0, f, f | (1 << d.mant))
    return m if d is dt.float64 else astype(m, dt.int64), maximum(e, 1)


def _modulo(x: Tensor, m: Tensor) -> Tensor:
    return x - quotient(x, m) * m


def _product_modulo(a: Tensor, b: Tensor, m: Tensor) -> Tensor:
    """a * b modulo m of int64 below 2**53, by digits of 9 bits: no sum reaches 2**63."""
    r = _modulo((a >> 45) * b, m)
    for k in range(36, -1, -9):
        r = _modulo((r << 9) + ((a >> k) & 511) * b, m)
    return r


def _shifted_modulo(x: Tensor, n: Tensor, m: Tensor) -> Tensor:
    """x * 2**n modulo m of int64 below 2**53, for n below 2**12: the powers of 2 by squaring."""
    power = _modulo(const(1, n) << (n >> 8), m)
    for k in range(7, -1, -1):
        power = _product_modulo(power, power, m)
        power = _modulo(power << ((n >> k) & 1), m)
    return _product_modulo(_modulo(x, m), power, m)


def _long_division(r: Tensor, gap: Tensor, m: Tensor) -> Tensor:
    """r * 2**gap modulo m of significands of float32, 39 bits a step: the gap is at most 277."""
    for _ in range(8):
        step = minimum(gap, 39)
        r, gap = _modulo(r << astype(step, dt.int64), m), gap - step
    return r


@op(shape="broadcast", dtype="numeric", tier="extended", tol=ROUNDED, reference=_remainder)
def remainder(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Python's x1 % x2: what floor division leaves, with the sign of x2; exact. Integers: 0 where x2 is 0."""
    if x1.dtype.kind != "f":
        return where(x2 == 0, 0, x1 - integer_floor_divide(x1, x2) * x2)
    d, bias = x1.dtype, exponent_bias(x1.dtype)
    twin(d)
    (r, e1), (m2, e2) = _unpacked(x1), _unpacked(x2)
    r = (_shifted_modulo if d is dt.float64 else _long_division)(r, maximum(e1 - e2, 0), m2)
    r = with_sign(where(e1 < e2, magnitude(x1), ldexp(astype(r, d), e2 - (bias + d.mant))), x1)
    r = where(r == 0.0, with_sign(r, x2), where((r < 0.0) ^ (x2 < 0.0), add(r, x2), r))
    legal = (magnitude(x1) < INF) & (x2 == x2) & logical_not(x2 == 0.0)
    return where(legal, r, NAN)
