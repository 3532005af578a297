"""Arrays with other elements at the places that indices name."""

from __future__ import annotations

import math
from typing import Any

import dovetail as dt

from dovetail_torch.compile.lower.index import from_front, key_of, part_like, spread
from dovetail_torch.compile.table import Call, Unsupported, axis_of, cast, is_array, lower, op_function

_MODES = {"sum": "add", "add": "add", "prod": "multiply", "multiply": "multiply", "amax": "max", "amin": "min"}


@lower("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce")
def scatter(call: Call, x: Any, dim: int, indices: Any, values: Any, *, reduce: str | None = None) -> Any:
    return _put(call, x, dim, indices, values, "set" if reduce is None else _MODES[reduce])


@lower("scatter_add")
def scatter_add(call: Call, x: Any, dim: int, indices: Any, values: Any) -> Any:
    return _put(call, x, dim, indices, values, "add")


@lower("scatter_reduce.two")
def scatter_reduce(
    call: Call, x: Any, dim: int, indices: Any, values: Any, reduce: str, *, include_self: bool = True
) -> Any:
    if not include_self or reduce not in _MODES:
        raise Unsupported(f"reduce={reduce!r} with include_self={include_self}")
    return _put(call, x, dim, indices, values, _MODES[reduce])


def _put(call: Call, x: Any, dim: int, indices: Any, values: Any, mode: str) -> Any:
    _expect_axes(x, indices)
    axis = axis_of(dim, x.ndim)
    if is_array(values):  # torch takes as many of the values as there are indices
        sizes = indices.shape
        values = values[tuple(slice(0, n) for n in sizes)]
    region = part_like(call, x, 0, 2, axis)
    values = cast(values, x.dtype.name) if is_array(values) else dt.full(indices.shape, values, dtype=x.dtype)
    made = op_function("put_along_axis")(region, from_front(indices), values, axis=axis, mode=mode)
    if region is x:
        return made
    whole = dt.copy(x)
    whole[tuple(slice(None) if i == axis else slice(0, n) for i, n in enumerate(indices.shape))] = made
    return whole


def _expect_axes(*operands: Any) -> None:
    if not all(x.ndim for x in operands):
        raise Unsupported("an operand without axes")


@lower("index_add")
def index_add(call: Call, x: Any, dim: int, indices: Any, values: Any, *, alpha: Any = 1) -> Any:
    _expect_axes(x)
    values = cast(values, call.dtype)
    values = values if alpha == 1 else values * alpha
    return dt.scatter(x, from_front(indices), values, axis=axis_of(dim, x.ndim), mode="add")


@lower("index_copy")
def index_copy(call: Call, x: Any, dim: int, indices: Any, values: Any) -> Any:
    _expect_axes(x)
    return dt.scatter(x, from_front(indices), values, axis=axis_of(dim, x.ndim), mode="set")


@lower("index_fill.int_Scalar")
def index_fill(call: Call, x: Any, dim: int, indices: Any, value: Any) -> Any:
    _expect_axes(x)
    made = dt.copy(x)
    made[(slice(None),) * axis_of(dim, x.ndim) + (indices,)] = value
    return made


@lower("index_put", "_unsafe_index_put")
def index_put(call: Call, x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    given = [i for i in indices if i is not None]
    if len(given) == 1 and given[0].dtype == "bool" and indices[0] is given[0]:
        return _put_mask(x, given[0], values, accumulate)
    key = key_of(spread(call, indices))
    if accumulate:
        return _accumulated(x, key, values)
    made = dt.copy(x)
    made[key] = values
    return made


def _put_mask(x: Any, mask: Any, values: Any, accumulate: bool) -> Any:
    """One value, or one for each place behind the mask's axes."""
    if values.ndim > x.ndim - mask.ndim or accumulate:
        raise Unsupported("values for the places of a mask, whose number depends on elements")
    mask = dt.reshape(mask, (*mask.shape, *(1,) * (x.ndim - mask.ndim)))
    return dt.where(mask, values, x)


def _accumulated(x: Any, indices: Any, values: Any) -> Any:
    """x with values added: the indexed axes, which come first, as one."""
    n = len(indices)
    if any(isinstance(i, slice) for i in indices):
        raise Unsupported("accumulate=True with axes that are not indexed before ones that are")
    shape = indices[0].shape
    place: Any = 0
    for i, size in zip(indices, x.shape):
        place = place * size + dt.where(i < 0, i + size, i)
    place = dt.reshape(place, (-1,))
    rest = x.shape[n:]
    values = dt.reshape(dt.broadcast_to(values, (*shape, *rest)), (math.prod(shape), *rest))
    rows = dt.reshape(x, (math.prod(x.shape[:n]), *rest))
    return dt.reshape(dt.scatter(rows, place, values, axis=0, mode="add"), x.shape)
