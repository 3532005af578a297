"""The values of an import: arrays, traced arrays, sizes, sequences, strings; and why no program can hold a node.

Handlers get and return these:

- Array: a tensor. In an import for a program an ArrayTracer, which is an Array to Python, or a constant
- Sizes: a small tensor with sizes of the inputs, which the program knows only when it runs; handlers get it in the
  places that they declare as `numbers`, and an array otherwise
- list: a sequence; None: an optional without an element, or an operand that is not there
- numpy.ndarray of objects: strings, which are on the host
- Map: keys and values, which are on the host
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import dovetail as dt
from dovetail import _core
from dovetail._array import FOREIGN, PACKED
from dovetail._core import Array
from dovetail._trace import Tracer
from dovetail.schema.number import Number

__all__ = [
    "DTYPES", "Dequantized", "Dynamic", "Map", "NeedsValue", "Sizes", "Unsupported", "constant", "dtype_of_number",
    "elements", "expect_known", "integer", "integers", "is_constant", "is_float", "is_integer_dtype",
    "is_strings", "is_traced", "number_of_dtype", "prod", "scalar", "widened",
]  # fmt: skip

STRING = 8  # TensorProto.STRING
DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
    17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz", 21: "uint4",
    22: "int4", 23: "float4_e2m1fn", 24: "float8_e8m0fnu", 25: "uint2", 26: "int2",
}  # fmt: skip
_NUMBERS = {name: number for number, name in DTYPES.items()}


class Unsupported(NotImplementedError):
    """The model needs what no version of this importer can do, or a node without a handler."""


class NeedsValue(Exception):
    """A handler reads elements of a traced array: the import has to know the inputs that they follow from."""

    def __init__(self, value: Any):
        super().__init__("its elements decide about shapes")
        self.value = value
        self.names: list[str] = []  # of the values of the graph that hold it, or that it was made of


class Dynamic(Exception):
    """A node cannot be a part of a program: it runs by itself, between programs."""


class Sizes:
    """A tensor of Python's numbers and of numbers of the trace."""

    __slots__ = ("_array", "dtype", "flat", "shape")

    def __init__(self, flat: Iterable[Any], shape: Sequence[int], dtype: str):
        self.flat, self.shape, self.dtype = list(flat), tuple(shape), dtype
        self._array: Any = None

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: len(self.flat))

    def array(self) -> Array:
        """The same as an array of the program that is being traced."""
        if self._array is None:
            self._array = _nested(self.flat, self.shape, self.dtype)
        return self._array

    @staticmethod
    def of(flat: Iterable[Any], shape: Sequence[int], dtype: str) -> Any:
        """Sizes, or an array where no number is one of the trace."""
        flat = list(flat)
        if any(isinstance(n, Number) for n in flat):
            return Sizes(flat, shape, dtype)
        return constant(np.array(flat, dtype=dtype).reshape(shape))


class Map(dict[Any, Any]):
    """ONNX's map: a dict with integers or strings as keys. dtype: that of its values, "string" among them."""

    __slots__ = ("dtype",)

    def __init__(self, items: Any, dtype: str):
        super().__init__(items)
        self.dtype = dtype


class Dequantized:
    """What DequantizeLinear gives, not computed yet: products take the integers, everything else the array.

    axis: along which scale and zero point have one value each; None: they are one value.
    """

    __slots__ = ("_array", "_recorder", "axis", "dtype", "q", "scale", "shape", "zero")

    def __init__(self, q: Any, scale: Any, zero: Any, axis: int | None):
        self.q, self.scale, self.zero, self.axis = q, scale, zero, axis
        self.shape, self.dtype = q.shape, scale.dtype
        self._array: Any = None
        self._recorder: Any = None

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: prod(self.shape))

    def array(self) -> Array:
        """The reals, once for each graph that is recorded."""
        recorder = _core.recorder()
        if self._array is None or self._recorder is not recorder:
            self._array = dt.dequantize(self.q, self.scale, self.zero, axis=self.axis)
            self._recorder = recorder
        return self._array


def arrays_of(values: Sequence[Any], keep: Iterable[int] = ()) -> list[Any]:
    """Values with arrays in place of those that are not computed yet, but for the places `keep`."""
    return [v.array() if isinstance(v, Dequantized) and i not in keep else v for i, v in enumerate(values)]


def _nested(flat: list[Any], shape: tuple[int, ...], dtype: str) -> Array:
    if not shape:
        return dt.asarray(flat[0], dtype=dtype)
    rows: list[Any] = flat
    for n in reversed(shape[1:]):
        rows = [rows[i : i + n] for i in range(0, len(rows), n)]
    return dt.asarray(rows, dtype=dtype)


def constant(x: Any) -> Any:
    """NumPy's array or number as an array on the importer's device; strings stay on the host."""
    x = np.asarray(x)
    if x.dtype.kind in "OUS":
        return x.astype(object)
    return dt.asarray(x)


def is_traced(x: Any) -> bool:
    return isinstance(x, Tracer)


def is_constant(x: Any) -> bool:
    """Whether all of a value is known while a program is traced."""
    if isinstance(x, list):
        return all(map(is_constant, x))
    return not isinstance(x, (Tracer, Sizes, Dequantized))


def is_strings(x: Any) -> bool:
    return isinstance(x, np.ndarray)


def elements(x: Any) -> list[Any]:
    """The elements as Python's numbers, or the trace's. Raises NeedsValue where an input decides about them."""
    if isinstance(x, Sizes):
        return list(x.flat)
    if isinstance(x, Tracer):
        raise NeedsValue(x)
    if isinstance(x, (list, tuple)):
        return list(x)
    return np.asarray(x).reshape(-1).tolist()


def integers(x: Any) -> list[Any]:
    """The elements of a tensor, or of an attribute, as integers."""
    return [n if isinstance(n, Number) else int(n) for n in elements(x)]


def scalar(x: Any) -> Any:
    """The one element of a tensor."""
    found = elements(x)
    if len(found) != 1:
        raise ValueError(f"got {len(found)} elements, expected one")
    return found[0]


def integer(x: Any) -> Any:
    n = scalar(x)
    return n if isinstance(n, Number) else int(n)


def expect_known(x: Any, why: str) -> None:
    """Raises Dynamic for a traced array: `why` the node needs its elements."""
    if isinstance(x, Tracer):
        raise Dynamic(why)


def is_float(x: Any) -> bool:
    return x.dtype.kind == "real floating"


def is_integer_dtype(x: Any) -> bool:
    return "integer" in x.dtype.kind


def dtype_of_number(number: int) -> str:
    """dovetail's name of TensorProto's dtype."""
    if number not in DTYPES:
        raise Unsupported(
            f"tensors of ONNX's dtype {number} are unknown to this version; export with another dtype"
        )
    return DTYPES[number]


def number_of_dtype(name: str) -> int:
    return _NUMBERS[name]


def widened(x: Array) -> Array:
    """A stored dtype in one that ops compute with: int8 or uint8 for less than a byte, else float32."""
    name = x.dtype.name
    if name in PACKED:
        return dt.astype(x, PACKED[name])
    return dt.astype(x, "float32") if name in FOREIGN and name != "bfloat16" else x


def prod(sizes: Iterable[Any]) -> Any:
    return math.prod(sizes)
