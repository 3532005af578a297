"""Calls of representative size, and what they cost: bytes that have to move, operations that count.

`dovetail bench` and the conformance suite measure these. An op's first workload is its usual one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from . import dtypes as dt
from .declare import REQUIRED, Op
from .dtypes import DType
from .lazy_numpy import np

_ROW = 1024  # of reductions, softmax, norms
_REPEATED = 1 << 20  # random values; more are these over again


class Workload(NamedTuple):
    label: str  # "1024x1024"
    args: tuple  # NumPy arrays become arrays of the device
    read: float  # bytes: every operand once
    written: float
    flops: float = 0.0  # 0 where a count means nothing
    kwargs: dict[str, Any] = {}  # noqa: RUF012  never changed

    @property
    def bytes(self) -> float:
        return self.read + self.written


class Maker:
    """Makes operands of one dtype, around `size` elements in the largest; without `rng` always the same ones."""

    def __init__(self, size: int, dtype: DType, rng: Any = None):
        self.size, self.dtype = size, dtype
        self.rng = rng or np.random.default_rng(0)

    def array(self, *shape: int, dtype: DType | None = None) -> Any:
        d, n = dtype or self.dtype, math.prod(shape)
        some = min(n, _REPEATED)
        if d.kind in "iu":
            values = self.rng.integers(1, 100, some)
        elif d.kind == "b":
            values = self.rng.integers(0, 2, some)
        else:  # in (0, 1): in the domain of logarithms, roots and inverse functions
            values = self.rng.uniform(0.05, 0.95, some)
        made = np.empty(n, d.numpy)
        for at in range(0, n, _REPEATED):
            made[at : at + some] = values[: n - at]
        return made.reshape(shape)

    def rows(self) -> tuple[int, int]:
        return max(1, self.size // _ROW), min(self.size, _ROW)

    def square(self) -> int:
        return max(1, math.isqrt(self.size))

    def bytes(self, *shape: int) -> float:
        """The bytes of a result in the workload's dtype."""
        return float(math.prod(shape) * self.dtype.itemsize)


Make = Callable[[Maker], Workload]


def _label(*shape: int) -> str:
    return "x".join(map(str, shape))


def _nbytes(*arrays: Any) -> float:
    return float(sum(a.nbytes for a in arrays))


# ---- elementwise ------------------------------------------------------------------------------------------------


def _elementwise(op: Op, outer: bool = False) -> Make:
    """On vectors; or on a column and a row that are broadcast."""
    needed = _needed(op)
    predicate = op.spec.dtype in ("compare", "logical", "predicate")

    def make(m: Maker) -> Workload:
        n = m.square()
        shapes = [(n, 1), (1, n)] if outer else [(m.size,)] * len(needed)
        arrays = [m.array(*shape, dtype=dt.bool_ if p.kind == "mask" else None) for shape, p in zip(shapes, needed)]
        results = n * n if outer else m.size
        written = results * (1 if predicate else m.dtype.itemsize)
        label = " ".join(_label(*shape) for shape in shapes) if outer else _label(m.size)
        return Workload(label, tuple(arrays), _nbytes(*arrays), written, float(results))

    return make


def _clip(m: Maker) -> Workload:
    x, low, high = m.array(m.size), m.array(1), m.array(1)
    return Workload(_label(m.size), (x, low, high), _nbytes(x, low, high), x.nbytes, float(m.size))


def _copy(m: Maker) -> Workload:
    x = m.array(m.size)
    return Workload(_label(m.size), (x,), x.nbytes, x.nbytes)


def _astype(m: Maker) -> Workload:
    to = dt.int32 if m.dtype is dt.float32 else dt.float32
    x = m.array(m.size)
    return Workload(_label(m.size), (x, to), x.nbytes, m.size * to.itemsize)


# ---- along axes -------------------------------------------------------------------------------------------------


def _reduction(axis: int | None, result: DType | None = None) -> Make:
    """To one number of each row, of each column, or of all; `result`: its dtype, where it is not that of x."""

    def make(m: Maker) -> Workload:
        n, row = m.rows()
        x = m.array(n, row)
        results = {0: row, 1: n, None: 1}[axis]
        written = results * (result or m.dtype).itemsize
        return Workload(_label(n, row), (x,), x.nbytes, written, float(x.size), {"axis": axis})

    return make


def _reductions(result: DType | None = None) -> dict[str, Make]:
    return {"rows": _reduction(1, result), "columns": _reduction(0, result), "all": _reduction(None, result)}


def _rows(*, vectors: int = 0, result: DType | None = None, **kwargs: Any) -> Make:
    """Rows that become rows; `vectors` of a row's length come after their shape."""

    def make(m: Maker) -> Workload:
        n, row = m.rows()
        x = m.array(n, row)
        more = tuple(m.array(row) for _ in range(vectors))
        args = (x, *(((row,),) if vectors else ()), *more)
        written = x.size * (result or m.dtype).itemsize
        return Workload(_label(n, row), args, _nbytes(x, *more), written, 0.0, kwargs)

    return make


def _top_k(m: Maker) -> Workload:
    """Candidates for the next token of a text."""
    n, row = m.rows()
    x, k = m.array(n, row), min(50, row)
    return Workload(_label(n, row), (x, k), _nbytes(x), n * k * (m.dtype.itemsize + 8.0))


def _rotary_embedding(m: Maker) -> Workload:
    heads, width = 8, 128
    length = max(1, m.size // (heads * width))
    x, cos, sin = m.array(1, heads, length, width), m.array(length, width // 2), m.array(length, width // 2)
    return Workload(_label(*x.shape), (x, cos, sin), _nbytes(x, cos, sin), x.nbytes, 3.0 * x.size)


def _quantize(m: Maker) -> Workload:
    n, row = m.rows()
    x, scale = m.array(n, row), m.array(row)
    return Workload(_label(n, row), (x, scale), _nbytes(x, scale), x.size, 0.0, {"axis": 1, "dtype": dt.int8})


def _dequantize(m: Maker) -> Workload:
    n, row = m.rows()
    x, scale = m.array(n, row, dtype=dt.int8), m.array(row)
    return Workload(_label(n, row), (x, scale), _nbytes(x, scale), m.bytes(n, row), 0.0, {"axis": 1})


# ---- products ---------------------------------------------------------------------------------------------------


def _product(m: Maker, batch: int, rows: int, terms: int, columns: int) -> Workload:
    lead = (batch,) if batch > 1 else ()
    a, b = m.array(*lead, rows, terms), m.array(*lead, terms, columns)
    label = _label(*lead, rows, terms, columns)
    return Workload(
        label, (a, b), _nbytes(a, b), m.bytes(batch, rows, columns), 2.0 * batch * rows * terms * columns
    )


def _square_product(m: Maker) -> Workload:
    return _product(m, 1, *[m.square()] * 3)


def _skinny_product(m: Maker) -> Workload:
    """A few rows by a matrix, as a language model makes its next words."""
    return _product(m, 1, 8, m.square(), m.square())


def _vector_product(m: Maker) -> Workload:
    return _product(m, 1, 1, m.square(), m.square())


def _batched_product(m: Maker) -> Workload:
    side = min(64, m.square())
    return _product(m, max(1, m.size // side**2), side, side, side)


def _linear(m: Maker) -> Workload:
    n = m.square()
    x, w, bias = m.array(n, n), m.array(n, n), m.array(n)
    return Workload(_label(n, n, n), (x, w, bias), _nbytes(x, w, bias), x.nbytes, 2.0 * n**3)


def _scaled_linear(dtype: DType) -> Make:
    def make(m: Maker) -> Workload:
        n = m.square()
        x, w, scale = m.array(n, n, dtype=dtype), m.array(n, n, dtype=dtype), m.array(n)
        label = f"{_label(n, n, n)} {dtype.brief}"
        return Workload(label, (x, w, 1.0, scale), _nbytes(x, w, scale), m.bytes(n, n), 2.0 * n**3)

    return make


def _matmul_integer(m: Maker) -> Workload:
    n = m.square()
    x1, x2 = m.array(n, n, dtype=dt.uint8), m.array(n, n, dtype=dt.int8)
    return Workload(f"{_label(n, n, n)} u8, i8", (x1, x2), _nbytes(x1, x2), 4 * n * n, 2.0 * n**3)


def _attention(m: Maker) -> Workload:
    heads, width = 8, 64
    length = max(16, m.size // (heads * width))
    q = m.array(1, heads, length, width)
    flops = 4.0 * heads * length**2 * width
    return Workload(_label(1, heads, length, width), (q, q, q), 3.0 * q.nbytes, q.nbytes, flops)


def _conv2d(m: Maker) -> Workload:
    channels, side = 64, max(8, math.isqrt(m.size // 64))
    x, w = m.array(1, channels, side, side), m.array(channels, channels, 3, 3)
    flops = 2.0 * channels * channels * 9 * side * side
    return Workload(f"{_label(*x.shape)} 3x3", (x, w), _nbytes(x, w), x.nbytes, flops, {"padding": 1})


def _conv1d(m: Maker) -> Workload:
    channels, length = 64, max(8, m.size // 64)
    x, w = m.array(1, channels, length), m.array(channels, channels, 3)
    flops = 2.0 * channels * channels * 3 * length
    return Workload(f"{_label(*x.shape)} 3", (x, w), _nbytes(x, w), x.nbytes, flops, {"padding": 1})


def _pool2d(m: Maker) -> Workload:
    side = max(8, math.isqrt(m.size // 64)) // 2 * 2
    x = m.array(1, 64, side, side)
    return Workload(f"{_label(*x.shape)} 2x2", (x, 2), x.nbytes, x.nbytes / 4)


def _pool1d(m: Maker) -> Workload:
    x = m.array(1, 64, max(8, m.size // 64) // 2 * 2)
    return Workload(f"{_label(*x.shape)} 2", (x, 2), x.nbytes, x.nbytes / 2)


# ---- indices and random numbers ---------------------------------------------------------------------------------


def _take(m: Maker) -> Workload:
    n, row = m.rows()
    x, indices = m.array(n, row), m.rng.permutation(n)
    return Workload(_label(n, row), (x, indices), _nbytes(x, indices), x.nbytes, 0.0, {"axis": 0})


def _take_along_axis(m: Maker) -> Workload:
    n, row = m.rows()
    x = m.array(n, row)
    indices = m.rng.integers(0, row, row)[np.arange(n * row) % row].reshape(n, row)
    return Workload(_label(n, row), (x, indices), _nbytes(x, indices), x.nbytes, 0.0, {"axis": 1})


def _scatter(m: Maker) -> Workload:
    n, row = m.rows()
    x, indices, updates = m.array(n, row), m.rng.permutation(n), m.array(n, row)
    return Workload(_label(n, row), (x, indices, updates), _nbytes(indices, updates), x.nbytes)


def _drawn(*attributes: Any) -> Make:
    """Random numbers; True stands for the dtype."""

    def make(m: Maker) -> Workload:
        key = np.array([1, 2, 3, 0], np.uint32)
        values = [m.dtype if a is True else a for a in attributes]
        return Workload(_label(m.size), (key, (m.size,), *values), key.nbytes, m.bytes(m.size))

    return make


WORKLOADS: dict[str, dict[str, Make]] = {
    "clip": {"": _clip},
    "copy": {"": _copy},
    "astype": {"": _astype},
    "sum": _reductions(),
    "prod": _reductions(),
    "max": _reductions(),
    "min": _reductions(),
    "mean": _reductions(),
    "any": _reductions(dt.bool_),
    "all": _reductions(dt.bool_),
    "argmax": _reductions(dt.int64),
    "argmin": _reductions(dt.int64),
    "cumulative_sum": {"": _rows(axis=1)},
    "cumulative_prod": {"": _rows(axis=1)},
    "sort": {"": _rows()},
    "argsort": {"": _rows(result=dt.int64)},
    "top_k": {"": _top_k},
    "softmax": {"": _rows()},
    "log_softmax": {"": _rows()},
    "layer_norm": {"": _rows(vectors=2)},
    "rms_norm": {"": _rows(vectors=1)},
    "rotary_embedding": {"": _rotary_embedding},
    "quantize": {"": _quantize},
    "dequantize": {"": _dequantize},
    "matmul": {"square": _square_product, "skinny": _skinny_product, "vector": _vector_product,
               "batched": _batched_product},
    "linear": {"": _linear},
    "matmul_integer": {"": _matmul_integer},
    "scaled_linear": {"int8": _scaled_linear(dt.int8), "float8": _scaled_linear(dt.float8_e4m3fn)},
    "scaled_dot_product_attention": {"": _attention},
    "conv2d": {"": _conv2d},
    "conv1d": {"": _conv1d},
    "max_pool2d": {"": _pool2d},
    "avg_pool2d": {"": _pool2d},
    "max_pool1d": {"": _pool1d},
    "avg_pool1d": {"": _pool1d},
    "take": {"": _take},
    "take_along_axis": {"": _take_along_axis},
    "scatter": {"": _scatter},
    "random_bits": {"": _drawn()},
    "uniform": {"": _drawn(True)},
    "normal": {"": _drawn(True)},
    "integers": {"": _drawn(0, 100, True)},
}  # fmt: skip


def _needed(op: Op) -> list:
    return [p for p in op.params if p.default is REQUIRED and not p.optional]


def workloads(op: Op) -> dict[str, Make]:
    """The workloads of an op by name; none where none are declared. Elementwise ops have one anyway."""
    if op.name in WORKLOADS:
        return WORKLOADS[op.name]
    kinds = {p.kind for p in _needed(op)}
    if op.spec.shape not in ("same", "broadcast") or not kinds or kinds - {"value", "mask"}:
        return {}
    return {"": _elementwise(op)} | ({"outer": _elementwise(op, outer=True)} if len(_needed(op)) == 2 else {})
