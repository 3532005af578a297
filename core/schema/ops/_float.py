"""Parts of floating-point decompositions: bits, exponents, polynomials, products without rounding."""

from __future__ import annotations

import math
import struct

from .. import dtypes as dt
from ..declare import DType, Tensor, Unsupported
from .primitives import astype, full, where
from .views import bitcast

INF, NAN, PI = math.inf, math.nan, math.pi
LN2, LOG2E = math.log(2), 1 / math.log(2)


def twin(d: DType) -> DType:
    """The integers that hold a float's bits."""
    if d not in dt.TWIN:
        raise Unsupported(f"no decomposition for {d.name}: expected a floating dtype; the op needs a kernel there")
    return dt.TWIN[d]


def bits(x: Tensor) -> Tensor:
    return bitcast(x, twin(x.dtype))


def from_bits(b: Tensor, d: DType) -> Tensor:
    return bitcast(b, d)


def magnitude_bits(d: DType) -> int:
    return int(twin(d).max)


def sign_bit(d: DType) -> int:
    return int(twin(d).min)


def magnitude(x: Tensor) -> Tensor:
    """abs of a float, in one launch."""
    return from_bits(bits(x) & magnitude_bits(x.dtype), x.dtype)


def flipped(x: Tensor) -> Tensor:
    """-x of a float, also of zeros and NaN, in one launch."""
    return from_bits(bits(x) ^ sign_bit(x.dtype), x.dtype)


def with_sign(x: Tensor, y: Tensor) -> Tensor:
    """abs(x) with the sign of y, zeros and NaN included."""
    d = x.dtype
    return from_bits((bits(x) & magnitude_bits(d)) | (bits(y) & sign_bit(d)), d)


def const(value: float, like: Tensor) -> Tensor:
    """A scalar array, where plain Python numbers alone would not have the dtype."""
    return full((), value, dtype=like.dtype)


def exponent_bias(d: DType) -> int:
    return 127 if d is dt.float32 else 1023


def pow2(n: Tensor, d: DType) -> Tensor:
    """2.0 ** n for integers n within the exponents of normal numbers."""
    return from_bits((n + exponent_bias(d)) << d.mant, d)


def ldexp(x: Tensor, n: Tensor) -> Tensor:
    """x * 2.0 ** n, in two steps so that only the last one rounds."""
    half = n >> 1
    return x * pow2(half, x.dtype) * pow2(n - half, x.dtype)


def split_exponent(x: Tensor) -> tuple[Tensor, Tensor]:
    """m, e with x = m * 2**e and m in [sqrt(1/2), sqrt(2)), for finite x > 0; subnormals too."""
    d = x.dtype
    tiny = x < d.tiny
    b = bits(where(tiny, x * 2.0**60, x))
    sqrt_half = struct.pack("<f" if d is dt.float32 else "<d", math.sqrt(0.5))
    e = (b - int.from_bytes(sqrt_half, "little")) >> d.mant
    return from_bits(b - (e << d.mant), d), e - astype(tiny, b.dtype) * 60


def polynomial(z: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """coefficients[0] + coefficients[1] * z + ..., by Horner."""
    r = z * coefficients[-1] + coefficients[-2]
    for c in coefficients[-3::-1]:
        r = r * z + c
    return r


def split(a: Tensor) -> tuple[Tensor, Tensor]:
    """a = high + low, where products of two such parts are exact (12 + 12 bits of float32, 26 + 27 of float64)."""
    high = from_bits(bits(a) & (~0xFFF if a.dtype is dt.float32 else ~0x7FFFFFF), a.dtype)
    return high, a - high


def two_product(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """a * b and its rounding error."""
    p, (ah, al), (bh, bl) = a * b, split(a), split(b)
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def fit(d: DType, single: tuple[float, ...], double: tuple[float, ...]) -> tuple[float, ...]:
    """The coefficients for a dtype; whatever is not float32 or float64 computes as one of them."""
    twin(d)
    return double if d is dt.float64 else single
