"""What a point of each op computes: its operands, what it costs at least, and which results must agree.

The shapes of the ops whose operands do not follow from one array:

| op | shape |
|---|---|
| linear | rows, inputs, outputs; with a bias |
| sdpa | B, H, Lq, Lk, D: attention of queries (B, H, Lq, D) to keys and values (B, H, Lk, D) |
| conv2d | N, C, H, W, O, K, stride, groups: a kernel of K x K, padded by K // 2, without a bias |
| embedding | rows, vocabulary, width |
| max_pool2d | N, C, H, W: windows of 3 x 3, stride 2, padding 1 |
| concat | two arrays of the shape, along axis 0 or that of the point |
| where | a condition and two arrays of the shape |
| transpose | an array of the shape, permuted and then copied into row-major order |
| normal | standard normal numbers |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dovetail.cli.comparison.points import Point, Shape
from dovetail.entry_points.backend import did_you_mean

POOL = {"kernel_size": 3, "stride": 2, "padding": 1}
_DOMAINS = {
    "log": (0.1, 4), "log2": (0.1, 4), "log10": (0.1, 4), "log1p": (0, 4), "sqrt": (0, 4), "rsqrt": (0.1, 4),
    "pow": (0.1, 4), "acos": (-1, 1), "asin": (-1, 1), "atanh": (-0.9, 0.9), "acosh": (1, 4), "erfinv": (-0.9, 0.9),
    "lgamma": (0.1, 4), "divide": (0.5, 2),
}  # fmt: skip


class Values:
    """Operands of a point; every process makes the same ones."""

    def __init__(self, point: Point):
        self.point, self.rng = point, np.random.default_rng(0)

    def array(self, *shape: int, dtype: str | None = None) -> Any:
        from dovetail.schema.dtypes import by_name

        point, made = self.point, by_name[dtype or self.point.dtype]
        if made.kind == "b":
            return self.rng.random(shape, np.float32) < 0.5
        if made.kind in "iu":
            return self.rng.integers(1, 100, shape).astype(made.numpy)
        low, high = _DOMAINS.get(point.op, (None, None))
        low, high = (point.low if point.low is not None else low), (point.high if point.high is not None else high)
        draw = np.float64 if made.numpy == np.float64 else np.float32
        if low is None and high is None:
            return self.rng.standard_normal(shape, draw).astype(made.numpy)
        low = low if low is not None else high - 1
        high = high if high is not None else low + 1
        return (self.rng.random(shape, draw) * draw(high - low) + draw(low)).astype(made.numpy)

    def indices(self, shape: Shape, below: int) -> Any:
        return self.rng.integers(0, below, shape)


class TooLarge(ValueError):
    """An operand would have more bytes than NumPy can count."""


class Sizes(Values):
    """Makes no operands. Raises TooLarge for one that no machine can have."""

    def array(self, *shape: int, dtype: str | None = None) -> Any:
        from dovetail.schema.dtypes import by_name

        self._expect(shape, np.dtype(by_name[dtype or self.point.dtype].numpy).itemsize)

    def indices(self, shape: Shape, below: int) -> Any:
        self._expect(shape, np.dtype(np.int64).itemsize)

    @staticmethod
    def _expect(shape: Shape, itemsize: int) -> None:
        size = math.prod(n for n in shape if n) * itemsize  # NumPy's own limit disregards axes of 0
        if size > _MOST_BYTES:
            gib = size >> 30
            raise TooLarge(f"an operand of shape {list(shape)} has {gib} GiB, more than any array; make it smaller")


_MOST_BYTES = np.iinfo(np.intp).max
Operands = Callable[[Point, Values], list[Any]]
Arrays = Sequence[Any]


class Kind(NamedTuple):
    operands: Operands
    sizes: str = ""  # the names of the numbers in `shape`, where their count matters
    required: tuple[str, ...] = ()  # further fields of the point
    flops: Callable[[Point], float] | None = None  # of products; others are bound by memory
    read: Callable[[Point, Arrays], float] | None = None  # bytes, where not every operand is read once
    seen: Callable[[Point, Arrays, Arrays], Any] | None = None  # what must agree, instead of the first result


def _one(p: Point, v: Values) -> list[Any]:
    return [v.array(*p.shape)]


def _two(p: Point, v: Values) -> list[Any]:
    return [v.array(*p.shape), v.array(*(p.shape if p.shape2 is None else p.shape2))]


def _with_vectors(count: int) -> Operands:
    return lambda p, v: [v.array(*p.shape), *(v.array(p.shape[-1]) for _ in range(count))]


def _linear(p: Point, v: Values) -> list[Any]:
    rows, inputs, outputs = p.shape
    return [v.array(rows, inputs), v.array(outputs, inputs), v.array(outputs)]


def _sdpa(p: Point, v: Values) -> list[Any]:
    b, h, queries, keys, width = p.shape
    return [v.array(b, h, n, width) for n in (queries, keys, keys)]


def _conv2d(p: Point, v: Values) -> list[Any]:
    n, c, h, w, o, k, _, groups = p.shape
    return [v.array(n, c, h, w), v.array(o, c // groups, k, k)]


def _embedding(p: Point, v: Values) -> list[Any]:
    rows, vocabulary, width = p.shape
    return [v.indices((rows,), vocabulary), v.array(vocabulary, width)]


def _take_along_axis(p: Point, v: Values) -> list[Any]:
    return [v.array(*p.shape), v.indices(p.shape, p.shape[p.along])]


def _where(p: Point, v: Values) -> list[Any]:
    return [v.array(*p.shape, dtype="bool"), *_two(p, v)]


# ---- floating-point operations: a product and a sum are two ------------------------------------------------------


def _matmul_flops(p: Point) -> float:
    a, b = p.shape, p.shape if p.shape2 is None else p.shape2
    rows, columns = (a[-2] if len(a) > 1 else 1), (b[-1] if len(b) > 1 else 1)
    return 2.0 * math.prod(np.broadcast_shapes(a[:-2], b[:-2])) * rows * a[-1] * columns


def _sdpa_flops(p: Point) -> float:
    """Of both products. A causal mask leaves key j to query i where j <= i."""
    b, h, queries, keys, width = p.shape
    pairs = sum(min(i + 1, keys) for i in range(queries)) if p.causal else queries * keys
    return 4.0 * b * h * pairs * width


def conv2d_window(p: Point) -> dict[str, int]:
    return {"stride": p.shape[6], "padding": p.shape[5] // 2, "groups": p.shape[7]}


def _conv2d_flops(p: Point) -> float:
    n, c, h, w, o, k, stride, groups = p.shape
    high, wide = ((size + 2 * (k // 2) - k) // stride + 1 for size in (h, w))
    return 2.0 * n * o * high * wide * (c // groups) * k * k


# ---- results that may differ though each is right ---------------------------------------------------------------


def _chosen(p: Point, operands: Arrays, results: Arrays) -> Any:
    """The values at the indices: equal elements may come in any order."""
    x, at = operands[0], results[-1]
    if p.op.startswith("arg") and at.ndim < x.ndim:  # one index of each row
        return x.reshape(-1)[at] if p.axis is None else np.take_along_axis(x, np.expand_dims(at, p.axis), p.axis)
    return np.take_along_axis(x, at, p.along)


def _moments(p: Point, operands: Arrays, results: Arrays) -> Any:
    """Whether mean and standard deviation are those of a normal distribution, within six standard errors."""
    x = results[0].astype(np.float64)
    errors = [x.mean() * math.sqrt(x.size), (x.std() - 1) * math.sqrt(2 * x.size)]
    return np.array([abs(error) < 6 for error in errors])


def _rows_read(p: Point, operands: Arrays) -> float:
    """Indices, and the rows that they choose: not the whole vocabulary."""
    indices, weight = operands
    return indices.nbytes + len(indices) * weight[0].nbytes


_KINDS = {
    "matmul": Kind(_two, flops=_matmul_flops),
    "linear": Kind(_linear, "rows, inputs, outputs", flops=lambda p: 2.0 * math.prod(p.shape)),
    "sdpa": Kind(_sdpa, "B, H, Lq, Lk, D", flops=_sdpa_flops),
    "conv2d": Kind(_conv2d, "N, C, H, W, O, K, stride, groups", flops=_conv2d_flops),
    "max_pool2d": Kind(_one, "N, C, H, W"),
    "layer_norm": Kind(_with_vectors(2)),
    "rms_norm": Kind(_with_vectors(1)),
    "argmax": Kind(_one, seen=_chosen),
    "argmin": Kind(_one, seen=_chosen),
    "argsort": Kind(_one, seen=_chosen),
    "top_k": Kind(_one, required=("k",), seen=_chosen),
    "transpose": Kind(_one, required=("perm",)),
    "astype": Kind(_one, required=("to",)),
    "embedding": Kind(_embedding, "rows, vocabulary, width", read=_rows_read),
    "take_along_axis": Kind(_take_along_axis),
    "where": Kind(_where),
    "concat": Kind(_two),
    "normal": Kind(lambda p, v: [], seen=_moments),
} | dict.fromkeys(
    ["copy", "softmax", "log_softmax", "sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "sort",
     "cumulative_sum", "cumulative_prod"],
    Kind(_one),
)  # fmt: skip

# Fields that one op alone has.
_FIELDS_OF = {name: op for op, kind in _KINDS.items() for name in kind.required} | {"causal": "sdpa"}


def kind(op: str) -> Kind | None:
    """None for an op that no point can have. Elementwise ops of one or two operands need no entry of their own."""
    from dovetail.schema import registry
    from dovetail.schema.declare import REQUIRED

    if op in _KINDS:
        return _KINDS[op]
    if op not in registry or registry[op].spec.shape not in ("same", "broadcast"):
        return None
    needed = [p.kind for p in registry[op].params if p.default is REQUIRED and not p.optional]
    return {("value",): Kind(_one), ("value", "value"): Kind(_two)}.get(tuple(needed))


def known() -> list[str]:
    from dovetail.schema import registry

    return sorted({*_KINDS, *(op for op in registry if kind(op))})


def complaint(p: Point) -> str | None:
    """What is wrong with a point whose fields have the right types."""
    found = kind(p.op)
    if found is None:
        return f"there is no benchmark of {p.op!r}{did_you_mean(p.op, known())}"
    sizes = found.sizes.split(", ") if found.sizes else []
    if sizes and len(p.shape) != len(sizes):
        return f"shape: got {list(p.shape)}, expected the {len(sizes)} sizes {found.sizes}"
    for name in found.required:
        if getattr(p, name) is None:
            return f"{name!r} is missing; add it to the point"
    for name, op in _FIELDS_OF.items():
        if getattr(p, name) not in (None, False) and p.op != op:
            return f"{name!r} has no meaning for {p.op}; leave it out"
    if p.axis is not None and p.op not in _KINDS:
        return f"'axis' has no meaning for {p.op}; leave it out"
    rank = 1 if p.op == "embedding" else len(p.shape)
    if p.axis is not None and not -rank <= p.axis < rank:
        return f"axis: got {p.axis}, expected {-rank} to {rank - 1} for an array of {rank} axes"
    if p.k is not None and not (p.shape and 0 <= p.k <= p.shape[p.along]):
        return f"k: got {p.k}, expected 0 to the size of the axis, in {list(p.shape)}"
    if p.perm is not None and sorted(p.perm) != list(range(rank)):
        return f"perm: got {list(p.perm)}, expected every axis of 0 to {rank - 1} once"
    if p.low is not None and p.high is not None and not p.low < p.high:
        return f"low: got {p.low}, expected less than high, {p.high}"
    return _sizes_complaint(p) or _memory_complaint(found, p)


def _memory_complaint(kind: Kind, p: Point) -> str | None:
    try:
        kind.operands(p, Sizes(p))
    except TooLarge as error:
        return f"shape: {error}"
    return None


def _sizes_complaint(p: Point) -> str | None:
    a, b = p.shape, p.shape if p.shape2 is None else p.shape2
    if p.op == "conv2d":
        _, c, _, _, o, k, stride, groups = a
        if min(k, stride, groups) < 1 or c % groups or o % groups:
            return f"shape: got C={c}, O={o}, K={k}, stride={stride}, groups={groups}: groups must divide both"
    elif p.op == "matmul":
        if not a or not b or a[-1] != b[-2 if len(b) > 1 else 0]:
            return (
                f"shape2: got {list(b)}, expected its last axis but one to have the size of the last of {list(a)}"
            )
        a, b = a[:-2], b[:-2]
    if p.op == "concat" or p.shape2 is None:
        return None
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return f"shape2: got {list(p.shape2)}, expected a shape that broadcasts with {list(p.shape)}"
    return None
