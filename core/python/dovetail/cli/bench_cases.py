"""What `dovetail bench` measures: operands of about so many elements, and the bytes and operations of a call."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

_ROW = 1024  # of reductions, softmax, norms


class Case(NamedTuple):
    label: str  # "1024x1024"
    args: list[Any]  # NumPy arrays become arrays of the device
    kwargs: dict[str, Any]
    bytes: float  # that have to move, every operand and result once
    flops: float  # 0 where counting says nothing


class Maker:
    """Makes operands in one dtype, the same ones in every run."""

    def __init__(self, size: int, dtype: Any) -> None:
        self.size, self.dtype = size, dtype
        self.rng = np.random.default_rng(0)

    def array(self, *shape: int) -> np.ndarray:
        kind = np.dtype(self.dtype).kind
        if kind in "iu":
            return self.rng.integers(1, 100, shape).astype(self.dtype)
        if kind == "b":
            return self.rng.integers(0, 2, shape).astype(bool)
        # In (0, 1): in the domain of logarithms, roots and inverse functions.
        return self.rng.uniform(0.05, 0.95, shape).astype(self.dtype)

    def rows(self) -> tuple[int, int]:
        return max(1, self.size // _ROW), min(self.size, _ROW)


def _label(*shape: int) -> str:
    return "x".join(map(str, shape))


def _nbytes(*arrays: np.ndarray) -> float:
    return float(sum(array.nbytes for array in arrays))


def _elementwise(count: int) -> Callable[[Maker], Case]:
    def make(m: Maker) -> Case:
        arrays = [m.array(m.size) for _ in range(count)]
        return Case(_label(m.size), list(arrays), {}, _nbytes(*arrays, arrays[0]), float(m.size))

    return make


def _rowwise(results: int, *extra: int, **kwargs: Any) -> Callable[[Maker], Case]:
    """Over rows; `results`: 1 if every row gives one number, else 0; `extra`: vectors of a row's length."""

    def make(m: Maker) -> Case:
        n, row = m.rows()
        x = m.array(n, row)
        vectors = [m.array(row) for _ in extra]
        args = [x, *([(row,)] if extra else []), *vectors]
        return Case(_label(n, row), args, kwargs, x.nbytes * (1 if results else 2), 0.0)

    return make


def _matmul(m: Maker) -> Case:
    n = max(1, math.isqrt(m.size))
    a, b = m.array(n, n), m.array(n, n)
    return Case(_label(n, n, n), [a, b], {}, _nbytes(a, b, a), 2.0 * n**3)


def _linear(m: Maker) -> Case:
    n = max(1, math.isqrt(m.size))
    x, w, bias = m.array(n, n), m.array(n, n), m.array(n)
    return Case(_label(n, n, n), [x, w, bias], {}, _nbytes(x, w, x), 2.0 * n**3)


def _attention(m: Maker) -> Case:
    heads, width = 8, 64
    length = max(16, m.size // (heads * width))
    q = m.array(1, heads, length, width)
    return Case(_label(1, heads, length, width), [q, q, q], {}, 4.0 * q.nbytes, 4.0 * heads * length**2 * width)


def _conv2d(m: Maker) -> Case:
    channels, side = 64, max(8, math.isqrt(m.size // 64))
    x, w = m.array(1, channels, side, side), m.array(channels, channels, 3, 3)
    flops = 2.0 * channels * channels * 9 * side * side
    return Case(f"{_label(*x.shape)} 3x3", [x, w], {"padding": 1}, _nbytes(x, w, x), flops)


def _pool(m: Maker) -> Case:
    side = max(8, math.isqrt(m.size // 64))
    x = m.array(1, 64, side, side)
    return Case(f"{_label(*x.shape)} 2x2", [x, 2], {}, x.nbytes * 1.25, 0.0)


def _take(m: Maker) -> Case:
    n, row = m.rows()
    x, indices = m.array(n, row), m.rng.permutation(n)
    return Case(_label(n, row), [x, indices], {"axis": 0}, 2.0 * x.nbytes, 0.0)


CASES: dict[str, Callable[[Maker], Case]] = {
    "sum": _rowwise(1, axis=1),
    "max": _rowwise(1, axis=1),
    "mean": _rowwise(1, axis=1),
    "argmax": _rowwise(1, axis=1),
    "cumulative_sum": _rowwise(0, axis=1),
    "sort": _rowwise(0),
    "softmax": _rowwise(0),
    "log_softmax": _rowwise(0),
    "layer_norm": _rowwise(0, 1, 1),
    "rms_norm": _rowwise(0, 1),
    "matmul": _matmul,
    "linear": _linear,
    "scaled_dot_product_attention": _attention,
    "conv2d": _conv2d,
    "max_pool2d": _pool,
    "avg_pool2d": _pool,
    "take": _take,
}
DEFAULT = ["add", "multiply", "exp", "tanh", "gelu", *CASES]


def case_of(op: dict[str, Any]) -> Callable[[Maker], Case] | None:
    """How to measure an op; None where nobody said. Elementwise ops of values need no word."""
    if op["name"] in CASES:
        return CASES[op["name"]]
    needed = [param for param in op["params"] if param["default"] is ... and not param["optional"]]
    if op["shape"] in ("same", "broadcast") and needed and all(param["kind"] == "value" for param in needed):
        return _elementwise(len(needed))
    return None
