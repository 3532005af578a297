"""Conversions from and to dtypes that are only stored, for devices without kernels for them: a few operations with
integers and floats of usual sizes."""

from __future__ import annotations

import math

from .. import dtypes as dt
from ..declare import DType, Ints, Scalar, Tensor
from ._float import NAN, bits, exponent_bias, from_bits, magnitude, magnitude_bits, pow2
from .arithmetic import clip, round_
from .logic import isnan, signbit
from .movement import concat, stack
from .primitives import astype, bitwise_or, copy, full, maximum, where
from .views import bitcast, reinterpret, reshape


@astype.of_stored
def _(x: Tensor, dtype: DType) -> Tensor:
    if x.dtype in dt.STORED:
        wide = dt.READ_AS[x.dtype]
        return _read(x) if dtype is wide else astype(astype(x, wide), dtype)
    wide = dt.READ_AS[dtype]
    if x.dtype is wide or (x.dtype is dt.float64 and wide is dt.float32):  # a float64 is rounded once
        return _made(x, dtype)
    return astype(astype(x, wide), dtype)


@copy.of_stored
def _(x: Tensor) -> Tensor:
    return reinterpret(copy(reinterpret(x, (-1,), dt.uint8)), x.shape, x.dtype)


@full.of_stored
def _(shape: Ints, fill_value: Scalar, *, dtype: DType) -> Tensor:
    return astype(full(shape, fill_value, dtype=dt.READ_AS[dtype]), dtype)


def _read(x: Tensor) -> Tensor:
    d = x.dtype
    if d is dt.float8_e8m0fnu:
        return _power(bitcast(x, dt.uint8))
    if d in dt.PACKED:
        codes = _unpacked(x)
        return _float(codes, d) if d.kind == "f" else _signed(codes, d) if d.kind == "i" else codes
    return _float(bitcast(x, dt.uint8), d)


def _made(x: Tensor, d: DType) -> Tensor:
    if d is dt.float8_e8m0fnu:
        return bitcast(_code_of_power(x), d)
    codes = _code_of_float(x, d) if d.kind == "f" else bitcast(x, dt.uint8)
    return _packed(codes, d) if d in dt.PACKED else bitcast(codes, d)


# ---- elements that share bytes -----------------------------------------------------------------------------------


def _unpacked(x: Tensor) -> Tensor:
    """The bits of each element, as uint8."""
    each, d = 8 // x.dtype.bits, x.dtype
    b = reinterpret(x, (-1,), dt.uint8)
    mask = 2**d.bits - 1
    columns = [b & mask, *((b >> d.bits * i) & mask for i in range(1, each - 1)), b >> d.bits * (each - 1)]
    return reshape(reshape(stack(columns, axis=1), (-1,))[: math.prod(x.shape)], x.shape)


def _packed(codes: Tensor, d: DType) -> Tensor:
    """The lowest bits of uint8 codes, side by side; those of elements that fill the last byte are 0."""
    each = 8 // d.bits
    rows = (math.prod(codes.shape) + each - 1) // each
    filled = concat([reshape(codes, (-1,)), full((each - 1,), 0, dtype=dt.uint8)], axis=0)[: rows * each]
    columns, mask = reshape(filled, (rows, each)), 2**d.bits - 1
    b = columns[:, 0] & mask
    for i in range(1, each):
        b = bitwise_or(b, (columns[:, i] & mask) << d.bits * i)
    return reinterpret(b, codes.shape, d)


def _signed(codes: Tensor, d: DType) -> Tensor:
    """Codes of an integer with a sign, as int8."""
    sign = 2 ** (d.bits - 1)
    return (bitcast(codes, dt.int8) ^ sign) - sign


# ---- floats ------------------------------------------------------------------------------------------------------


def _bias(d: DType) -> int:
    """That of the exponents: 1 is the exponent of the least normal number."""
    return 2 - math.frexp(d.tiny)[1]


def _float(codes: Tensor, d: DType) -> Tensor:
    """The float32 that has these bits in the format d."""
    sign = 2 ** (d.bits - 1)
    b = astype(codes, dt.int32)
    m = b & (sign - 1)
    normal = from_bits((m << (23 - d.mant)) + ((127 - _bias(d)) << 23), dt.float32)
    value = where(m < 2**d.mant, astype(m, dt.float32) * 2.0 ** (1 - _bias(d) - d.mant), normal)
    value = where(b >= sign, -value, value)
    return value if d is dt.float4_e2m1fn else where(b == sign, NAN, value)


def _code_of_float(x: Tensor, d: DType) -> Tensor:
    """The bits of x, float32 or float64, in the format d, as uint8: to the nearest, ties to even."""
    least, sign = 1 - _bias(d), 2 ** (d.bits - 1)
    wide = x.dtype
    beyond = 2.0 ** (_bias(d) + 2)  # larger than all numbers of the format; and below it exponents are small
    a = where(isnan(x), beyond, clip(magnitude(x), 0.0, beyond))
    exponent = maximum((bits(a) >> wide.mant) - exponent_bias(wide), least)
    digits = astype(round_(a * pow2(d.mant - exponent, wide)), bits(a).dtype)
    code, negative = digits + ((exponent - least) << d.mant), astype(signbit(x), digits.dtype) << d.bits - 1
    if d is dt.float4_e2m1fn:
        code = where(isnan(x), sign, clip(code, 0, sign - 1) | negative)
    else:
        code = where(code >= sign, sign, where(code > 0, code | negative, code))
    return astype(code, dt.uint8)


def _power(codes: Tensor) -> Tensor:
    """2.0**(code - 127) as float32; NaN for 255."""
    b = astype(codes, dt.int32)
    return where(b == 255, NAN, from_bits(where(b == 0, 0x400000, b << 23), dt.float32))


def _code_of_power(x: Tensor) -> Tensor:
    """The code of the nearest power of two, of two the larger one; 255 for what is not positive or too large."""
    b, half, bias = bits(x), 1 << (x.dtype.mant - 1), exponent_bias(x.dtype)
    code = clip(((b + half) >> x.dtype.mant) - (bias - 127), 0, 255)
    if x.dtype is dt.float32:  # which has subnormal numbers there
        code = where(b < 1 << 23, astype(b >= 0x600000, b.dtype), code)
    valid = (b > 0) & (b <= magnitude_bits(x.dtype) >> x.dtype.mant << x.dtype.mant)
    return astype(where(valid, code, 255), dt.uint8)
