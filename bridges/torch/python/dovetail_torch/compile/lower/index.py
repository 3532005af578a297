"""Elements by arrays of indices."""

from __future__ import annotations

from typing import Any

import dovetail as dt
from dovetail import nn

from dovetail_torch.compile.table import Call, Unsupported, axis_of, cast, lower


def from_front(indices: Any) -> Any:
    """Indices for an op in which torch counts none from the end: without its sign, a negative one is too large."""
    return dt.bitwise_and(cast(indices, "int64"), 2**63 - 1)


@lower("embedding")
def embedding(
    call: Call, weight: Any, indices: Any, padding: int = -1, scale: bool = False, sparse: bool = False
) -> Any:
    return nn.embedding(from_front(indices), weight)


@lower("index_select")
def index_select(call: Call, x: Any, dim: int, indices: Any) -> Any:
    if not x.ndim:
        raise Unsupported("an operand without axes")
    indices = indices if indices.ndim else indices[None]
    return dt.take(x, from_front(indices), axis=axis_of(dim, x.ndim))


@lower("gather")
def gather(call: Call, x: Any, dim: int, indices: Any, *, sparse_grad: bool = False) -> Any:
    if x.ndim != indices.ndim or not x.ndim:
        raise Unsupported(f"operands of {x.ndim} and {indices.ndim} axes")
    axis = axis_of(dim, x.ndim)
    return dt.take_along_axis(part_like(call, x, 0, 2, axis), from_front(indices), axis=axis)


def part_like(call: Call, x: Any, own: int, other: int, axis: int) -> Any:
    """The first elements of x on all axes but one: as many as the operand at the place `other` has."""
    sizes = call.node.args[own].meta["val"].shape
    wanted = call.node.args[other].meta["val"].shape
    key = [slice(None)] * len(sizes)
    for i, (n, m) in enumerate(zip(sizes, wanted)):
        if i != axis and not _is_same(n, m):
            key[i] = slice(0, call.lowering.number(m))
    return x if all(k == slice(None) for k in key) else x[tuple(key)]


def _is_same(n: Any, m: Any) -> bool:
    """Whether two sizes of a graph are one for every call."""
    return getattr(getattr(n, "node", None), "expr", n) == getattr(getattr(m, "node", None), "expr", m)


@lower("index.Tensor", "_unsafe_index.Tensor")
def index(call: Call, x: Any, indices: Any) -> Any:
    return x[key_of(spread(call, indices))]


def spread(call: Call, indices: Any) -> list[Any]:
    """Arrays of indices, the node's second argument, in their common shape.

    It is read from torch's graph: to compare sizes while tracing would fix whether they are 1.
    """
    shapes = [i.meta["val"].shape for i in call.node.args[1] if i is not None]
    ndim = max(map(len, shapes))
    sizes = []
    for axis in range(-ndim, 0):
        given = [shape[axis] for shape in shapes if len(shape) >= -axis]
        sizes.append(next((n for n in given if not (isinstance(n, int) and n == 1)), 1))
    shape = tuple(map(call.lowering.number, sizes))
    return [None if i is None else dt.broadcast_to(i, shape) for i in indices]


def key_of(indices: Any) -> tuple[Any, ...]:
    """A key of Python. Raises Unsupported for masks, whose number of elements a program cannot know."""
    if any(i is not None and i.dtype == "bool" for i in indices):
        raise Unsupported(
            "a mask as an index: the size of the result depends on elements; torch.where keeps the shape"
        )
    return tuple(slice(None) if i is None else i for i in indices)


@lower("searchsorted.Tensor")
def search_sorted(
    call: Call, places: Any, x: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Any = None,
) -> Any:  # fmt: skip
    if places.ndim != 1:
        raise Unsupported("searchsorted in several rows")
    return dt.searchsorted(places, x, side=side or ("right" if right else "left"), sorter=sorter)


@lower("bucketize.Tensor")
def bucketize(call: Call, x: Any, places: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    return dt.searchsorted(places, x, side="right" if right else "left")


@lower("one_hot")
def one_hot(call: Call, x: Any, classes: int = -1) -> Any:
    if classes < 0:
        raise Unsupported("one_hot without a number of classes, which depends on elements")
    return nn.one_hot(x, classes)
