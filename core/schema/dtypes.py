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
        has_inf: bool = True,
        code: str | None = None,
    ):
        self.name, self.brief, self.kind, self.bits = name, brief, kind, bits
        self.code = code or CODES[kind]  # of a DLDataType, as abi.h names it after DVT_
        self.mant = mant  # stored bits of the significand of a float
        self.has_inf = has_inf  # otherwise numbers have its exponent, too, and the last of them is NaN
        self.min: float
        self.max: float
        self.tiny = self.eps = 0.0
        if kind == "f":
            self.max = math.ldexp(2.0 - 2.0**-mant * (1 if has_inf else 2), exponent)
            self.min, self.tiny, self.eps = -self.max, 2.0 ** ((1 if has_inf else 2) - exponent), 2.0**-mant
        else:
            self.min = -(2 ** (bits - 1)) if kind == "i" else 0
            self.max = {"b": 1, "i": 2 ** (bits - 1) - 1, "u": 2**bits - 1}.get(kind, 0)

    def __repr__(self) -> str:
        return self.name

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.bits // 8

    @property
    def numpy(self):
        """The NumPy dtype; bfloat16 and those of 8 bits are those of ml_dtypes."""
        import numpy

        if self in FOREIGN:
            import ml_dtypes

            return numpy.dtype(getattr(ml_dtypes, self.name))
        return numpy.dtype(self.name)


bool_ = DType("bool", "bool", "b", 8)
int8, int16, int32, int64 = (DType(f"int{n}", f"i{n}", "i", n) for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (DType(f"uint{n}", f"u{n}", "u", n) for n in (8, 16, 32, 64))
float8_e4m3fn = DType("float8_e4m3fn", "f8e4m3fn", "f", 8, 3, 8, has_inf=False, code="F8_E4M3FN")
float8_e5m2 = DType("float8_e5m2", "f8e5m2", "f", 8, 2, 15, code="F8_E5M2")
float16 = DType("float16", "f16", "f", 16, 10, 15)
bfloat16 = DType("bfloat16", "bf16", "f", 16, 7, 127, code="BFLOAT")
float32 = DType("float32", "f32", "f", 32, 23, 127)
float64 = DType("float64", "f64", "f", 64, 52, 1023)
complex64, complex128 = DType("complex64", "c64", "c", 64), DType("complex128", "c128", "c", 128)

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
ALL = BOOL + INTEGERS + FLOAT8 + FLOATS + COMPLEX

FOREIGN = tuple(d for d in ALL if d.kind == "f" and d.code != "FLOAT")  # NumPy has none of its own

# The dtype of a complex number's parts.
PART = {complex64: float32, complex128: float64}

by_name: dict[str, DType] = {d.name: d for d in ALL} | {d.brief: d for d in ALL}

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
    for a in arguments:
        if isinstance(a, (list, tuple)):
            if any_complex(a):
                return True
            continue
        dtype = a if isinstance(a, DType) else getattr(a, "dtype", None)
        if isinstance(a, complex) or getattr(dtype, "kind", "") == "c":
            return True
    return False
