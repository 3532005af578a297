"""The data types: the only table of them.

generate.py writes core/include/dovetail/dtypes.hpp from it, which the core and the headers for backends read.
Python asks the core.
"""

from __future__ import annotations

import math

KINDS = {"b": "bool", "i": "signed integer", "u": "unsigned integer", "f": "floating", "c": "complex"}
CODES = {"b": "BOOL", "i": "INT", "u": "UINT", "f": "FLOAT", "c": "COMPLEX"}


class DType:
    """One data type. There is one object per type: compare with `is` or `==`."""

    __slots__ = ("bits", "brief", "code", "eps", "has_inf", "kind", "mant", "max", "min", "name", "tiny")

    def __init__(
        self,
        name: str,
        brief: str,
        kind: str,
        bits: int,
        mant: int = 0,
        exponent: int = 0,
        code: str | None = None,
        *,
        least: int | None = None,
        max: float | None = None,
        has_inf: bool = True,
    ):
        """Of a float: mant stored bits of the significand, the exponents of the largest and the least normal
        number, and the largest number; by default those that IEEE 754 derives from the largest exponent."""
        self.name, self.brief, self.kind, self.bits = name, brief, kind, bits
        self.code = code or CODES[kind]  # of a DLDataType, as abi.h names it after DVT_
        self.mant = mant
        self.has_inf = has_inf
        self.min: float
        self.max: float
        self.tiny = self.eps = 0.0
        if kind == "f":
            self.max = math.ldexp(2.0 - 2.0**-mant, exponent) if max is None else max
            self.tiny, self.eps = 2.0 ** (1 - exponent if least is None else least), 2.0**-mant
            self.min = -self.max
        else:
            self.min = -(2 ** (bits - 1)) if kind == "i" else 0
            self.max = {"b": 1, "i": 2 ** (bits - 1) - 1, "u": 2**bits - 1}.get(kind, 0)

    def __repr__(self) -> str:
        return self.name

    @property
    def itemsize(self) -> int:
        """Bytes of one element; 1 of those that share a byte."""
        return -(-self.bits // 8)

    @property
    def numpy(self):
        """The NumPy dtype; those that NumPy lacks are of ml_dtypes."""
        import numpy

        if self in FOREIGN:
            import ml_dtypes

            return numpy.dtype(getattr(ml_dtypes, self.name))
        return numpy.dtype(self.name)


bool_ = DType("bool", "bool", "b", 8)
int8, int16, int32, int64 = (DType(f"int{n}", f"i{n}", "i", n) for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (DType(f"uint{n}", f"u{n}", "u", n) for n in (8, 16, 32, 64))
float8_e4m3fn = DType("float8_e4m3fn", "f8e4m3fn", "f", 8, 3, 8, "F8_E4M3FN", least=-6, max=448.0, has_inf=False)
float8_e5m2 = DType("float8_e5m2", "f8e5m2", "f", 8, 2, 15, "F8_E5M2")
float16 = DType("float16", "f16", "f", 16, 10, 15)
bfloat16 = DType("bfloat16", "bf16", "f", 16, 7, 127, "BFLOAT")
float32 = DType("float32", "f32", "f", 32, 23, 127)
float64 = DType("float64", "f64", "f", 64, 52, 1023)
complex64, complex128 = DType("complex64", "c64", "c", 64), DType("complex128", "c128", "c", 128)

# Those that are only stored: astype() makes them and reads them, no op computes with them. Of 8 bits: floats with a
# NaN in the place of -0, and powers of two. Of fewer bits: elements that share bytes, the first in the lowest bits.
float8_e4m3fnuz = DType(
    "float8_e4m3fnuz", "f8e4m3fnuz", "f", 8, 3, 7, "F8_E4M3FNUZ", least=-7, max=240.0, has_inf=False
)
float8_e5m2fnuz = DType(
    "float8_e5m2fnuz", "f8e5m2fnuz", "f", 8, 2, 15, "F8_E5M2FNUZ", least=-15, max=57344.0, has_inf=False
)
float8_e8m0fnu = DType(
    "float8_e8m0fnu", "f8e8m0fnu", "f", 8, 0, 127, "F8_E8M0FNU", least=-127, max=2.0**127, has_inf=False
)
float8_e8m0fnu.min = float8_e8m0fnu.tiny  # it has no sign
int4, int2 = (DType(f"int{n}", f"i{n}", "i", n) for n in (4, 2))
uint4, uint2 = (DType(f"uint{n}", f"u{n}", "u", n) for n in (4, 2))
float4_e2m1fn = DType("float4_e2m1fn", "f4e2m1fn", "f", 4, 1, 2, "F4_E2M1FN", least=0, max=6.0, has_inf=False)

BOOL = (bool_,)
SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
INTEGERS = SIGNED + UNSIGNED
FLOAT8 = (float8_e4m3fn, float8_e5m2)
HALVES = (float16, bfloat16)
NARROW = FLOAT8 + HALVES  # decompositions compute in float32 instead
FLOATS = (*HALVES, float32, float64)
REAL = INTEGERS + FLOATS  # those of 8 bits are stored and moved: what an op computes on has more digits
COMPLEX = (complex64, complex128)
NOT_COMPLEX = BOOL + REAL
FLOAT8_STORED = (float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu)
PACKED = (int4, int2, uint4, uint2, float4_e2m1fn)
STORED = FLOAT8_STORED + PACKED
ALL = BOOL + INTEGERS + FLOAT8 + FLOATS + COMPLEX + STORED

# NumPy has none of its own.
FOREIGN = tuple(d for d in ALL if d in PACKED or (d.kind == "f" and d.code != "FLOAT"))

# The dtype of a complex number's parts.
PART = {complex64: float32, complex128: float64}

by_name: dict[str, DType] = {d.name: d for d in ALL} | {d.brief: d for d in ALL}

# What the elements of a stored dtype are read as, and made from: each is a value of it.
READ_AS = {int4: int8, int2: int8, uint4: uint8, uint2: uint8} | dict.fromkeys(
    (*FLOAT8_STORED, float4_e2m1fn), float32
)

# Integers of a float's size: what its bits are when looked at.
TWIN = {
    float8_e4m3fn: int8,
    float8_e5m2: int8,
    float16: int16,
    bfloat16: int16,
    float32: int32,
    float64: int64,
}


def of(array) -> DType:
    """The DType of a NumPy array."""
    return by_name[array.dtype.name]


def any_complex(arguments) -> bool:
    """Whether one of a call's arguments is a complex array, number or dtype, or a sequence with one."""
    return any(isinstance(a, complex) or getattr(_dtype(a), "kind", "") == "c" for a in _flat(arguments))


def any_stored(arguments) -> bool:
    """Whether one of a call's arguments is an array of a stored dtype, or such a dtype."""
    return any(_dtype(a) in STORED for a in _flat(arguments))


def _dtype(argument):
    return argument if isinstance(argument, DType) else getattr(argument, "dtype", None)


def _flat(arguments):
    for a in arguments:
        if isinstance(a, (list, tuple)):
            yield from _flat(a)
        else:
            yield a
