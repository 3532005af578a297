"""The data types in decompositions, samples and the generator."""

from __future__ import annotations

import math

KINDS = {"b": "bool", "i": "signed integer", "u": "unsigned integer", "f": "floating", "c": "complex"}


class DType:
    """One data type. There is one object per type: compare with `is` or `==`."""

    __slots__ = ("brief", "eps", "has_inf", "itemsize", "kind", "mant", "max", "min", "name", "tiny")

    def __init__(
        self,
        name: str,
        brief: str,
        kind: str,
        itemsize: int,
        mant: int = 0,
        exponent: int = 0,
        has_inf: bool = True,
    ):
        self.name, self.brief, self.kind, self.itemsize = name, brief, kind, itemsize
        self.mant = mant  # stored bits of the significand of a float
        self.has_inf = has_inf  # otherwise numbers have its exponent, too, and the last of them is NaN
        self.min: float
        self.max: float
        self.tiny = self.eps = 0.0
        if kind == "f":
            self.max = math.ldexp(2.0 - 2.0**-mant * (1 if has_inf else 2), exponent)
            self.min, self.tiny, self.eps = -self.max, 2.0 ** ((1 if has_inf else 2) - exponent), 2.0**-mant
        else:
            bits = 8 * itemsize
            self.min = -(2 ** (bits - 1)) if kind == "i" else 0
            self.max = {"b": 1, "i": 2 ** (bits - 1) - 1, "u": 2**bits - 1}.get(kind, 0)

    def __repr__(self) -> str:
        return self.name

    @property
    def bits(self) -> int:
        return 8 * self.itemsize

    @property
    def numpy(self):
        """The NumPy dtype; bfloat16 and those of 8 bits are those of ml_dtypes."""
        import numpy

        if self in FOREIGN:
            import ml_dtypes

            return numpy.dtype(getattr(ml_dtypes, self.name))
        return numpy.dtype(self.name)


bool_ = DType("bool", "bool", "b", 1)
int8, int16, int32, int64 = (DType(f"int{n}", f"i{n}", "i", n // 8) for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (DType(f"uint{n}", f"u{n}", "u", n // 8) for n in (8, 16, 32, 64))
float8_e4m3fn = DType("float8_e4m3fn", "f8e4m3fn", "f", 1, 3, 8, has_inf=False)
float8_e5m2 = DType("float8_e5m2", "f8e5m2", "f", 1, 2, 15)
float16 = DType("float16", "f16", "f", 2, 10, 15)
bfloat16 = DType("bfloat16", "bf16", "f", 2, 7, 127)
float32 = DType("float32", "f32", "f", 4, 23, 127)
float64 = DType("float64", "f64", "f", 8, 52, 1023)
complex64, complex128 = DType("complex64", "c64", "c", 8), DType("complex128", "c128", "c", 16)

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

FOREIGN = (*FLOAT8, bfloat16)  # NumPy has none of its own

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
