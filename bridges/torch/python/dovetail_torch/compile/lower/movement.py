"""Shapes, parts and joins of arrays."""

from __future__ import annotations

from typing import Any

import dovetail as dt
from dovetail import nn

from dovetail_torch.compile.table import Call, Unsupported, axis_of, cast, lower, number_axes

_END = 2**63 - 1


@lower("alias", "clone", "contiguous", "detach", "detach_", "lift", "lift_fresh", "lift_fresh_copy", "positive")
def same(call: Call, x: Any, **kwargs: Any) -> Any:
    return x


@lower("view", "reshape", "_unsafe_view", "view_copy", "_reshape_alias")
def reshape(call: Call, x: Any, shape: Any, *strides: Any) -> Any:
    return dt.reshape(x, tuple(shape))


@lower("flatten.using_ints")
def flatten(call: Call, x: Any, start: int = 0, end: int = -1) -> Any:
    return dt.reshape(x, call.shape)


@lower("expand")
def expand(call: Call, x: Any, shape: Any, *, implicit: bool = False) -> Any:
    return dt.broadcast_to(x, call.shape)


@lower("permute")
def permute(call: Call, x: Any, dims: Any) -> Any:
    return dt.permute_dims(x, number_axes(dims, x.ndim))


@lower("t", "numpy_T")
def transpose_all(call: Call, x: Any) -> Any:
    return dt.permute_dims(x, tuple(reversed(range(x.ndim))))


@lower("transpose.int")
def transpose(call: Call, x: Any, first: int, second: int) -> Any:
    order = list(range(x.ndim))
    if order:
        a, b = axis_of(first, x.ndim), axis_of(second, x.ndim)
        order[a], order[b] = order[b], order[a]
    return dt.permute_dims(x, tuple(order))


@lower("movedim.int")
def move_axis(call: Call, x: Any, source: int, destination: int) -> Any:
    return dt.moveaxis(x, source, destination)


@lower("unsqueeze")
def unsqueeze(call: Call, x: Any, dim: int) -> Any:
    return dt.expand_dims(x, axis=dim)


@lower("squeeze", "squeeze.dim", "squeeze.dims")
def squeeze(call: Call, x: Any, dim: Any = None) -> Any:
    """torch keeps axes whose size is not 1; which these are its graph has decided."""
    given = range(x.ndim) if dim is None else number_axes([dim] if isinstance(dim, int) else dim, x.ndim)
    sizes = call.node.args[0].meta["val"].shape
    ones = tuple(axis for axis in given if isinstance(sizes[axis], int) and sizes[axis] == 1)
    return dt.squeeze(x, ones) if ones else x


@lower("slice.Tensor", "slice_copy.Tensor")
def part(call: Call, x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return x[_key(x, dim, slice(start, _stop(end), step))]


@lower("narrow")
def narrow(call: Call, x: Any, dim: int, start: Any, length: Any) -> Any:
    return x[_key(x, dim, slice(start, start + length))]


@lower("select.int", "select_copy.int")
def select(call: Call, x: Any, dim: int, index: Any) -> Any:
    n = call.node.args[0].meta["val"].shape[dim]
    if isinstance(n, int) and n == 1:
        return dt.squeeze(x, axis_of(dim, x.ndim))
    return x[_key(x, dim, index)]


def _key(x: Any, dim: int, item: Any) -> tuple[Any, ...]:
    return (slice(None),) * axis_of(dim, x.ndim) + (item,)


def _stop(end: Any) -> Any:
    return None if isinstance(end, int) and end >= _END else end


@lower("slice_scatter")
def put_part(
    call: Call, x: Any, source: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    made = dt.copy(x)
    made[_key(x, dim, slice(start, _stop(end), step))] = cast(source, call.dtype)
    return made


@lower("select_scatter")
def put_selected(call: Call, x: Any, source: Any, dim: int, index: Any) -> Any:
    made = dt.copy(x)
    made[_key(x, dim, index)] = cast(source, call.dtype)
    return made


@lower("split.Tensor", "split_with_sizes", "split_with_sizes_copy", "chunk")
def split(call: Call, x: Any, sizes: Any, dim: int = 0) -> Any:
    axis, at, parts = axis_of(dim, x.ndim), 0, []
    for value in call.node.meta["val"]:
        n = call.lowering.number(value.shape[axis])
        parts.append(x[_key(x, axis, slice(at, at + n))])
        at = at + n
    return tuple(parts)


@lower("unbind.int")
def unbind(call: Call, x: Any, dim: int = 0) -> Any:
    return tuple(x[_key(x, dim, i)] for i in range(len(call.node.meta["val"])))


@lower("cat")
def concat(call: Call, arrays: Any, dim: int = 0) -> Any:
    sizes = [a.meta["val"].shape for a in call.node.args[0]]
    kept = [x for x, shape in zip(arrays, sizes) if tuple(shape) != (0,)]  # torch joins an empty vector to anything
    if not kept:
        return cast(arrays[0], call.dtype)
    return dt.concat([cast(x, call.dtype) for x in kept], axis=axis_of(dim, kept[0].ndim))


@lower("stack")
def stack(call: Call, arrays: Any, dim: int = 0) -> Any:
    return dt.stack([cast(x, call.dtype) for x in arrays], axis=axis_of(dim, arrays[0].ndim + 1))


@lower("flip")
def flip(call: Call, x: Any, dims: Any) -> Any:
    return dt.flip(x, axis=number_axes(dims, x.ndim)) if dims and x.ndim else x


@lower("roll")
def roll(call: Call, x: Any, shifts: Any, dims: Any = ()) -> Any:
    if not dims:
        return dt.roll(x, shifts[0])
    return dt.roll(x, tuple(shifts), axis=number_axes(dims, x.ndim))


@lower("repeat", "tile")
def repeat(call: Call, x: Any, times: Any) -> Any:
    return dt.tile(x, tuple(times))


@lower("repeat_interleave.self_int")
def repeat_elements(call: Call, x: Any, times: Any, dim: int | None = None, *, output_size: Any = None) -> Any:
    return dt.repeat(x, times, axis=None if dim is None else axis_of(dim, x.ndim))


@lower("tril")
def lower_triangle(call: Call, x: Any, diagonal: Any = 0) -> Any:
    return dt.tril(x, k=diagonal)


@lower("triu")
def upper_triangle(call: Call, x: Any, diagonal: Any = 0) -> Any:
    return dt.triu(x, k=diagonal)


@lower("diagonal", "diagonal_copy")
def diagonal(call: Call, x: Any, offset: int = 0, first: int = 0, second: int = 1) -> Any:
    a, b = axis_of(first, x.ndim), axis_of(second, x.ndim)
    rest = [axis for axis in range(x.ndim) if axis not in (a, b)]
    return dt.linalg.diagonal(dt.permute_dims(x, (*rest, a, b)), offset=offset)


@lower("unfold")
def windows(call: Call, x: Any, dim: int, size: Any, step: Any) -> Any:
    if not x.ndim:
        raise Unsupported("an operand without axes")
    axis = axis_of(dim, x.ndim)
    count = call.shape[axis]
    places = dt.arange(count)[:, None] * step + dt.arange(size)[None, :]
    taken = dt.take(x, dt.reshape(places, (-1,)), axis=axis)
    shape = (*x.shape[:axis], count, size, *x.shape[axis + 1 :])
    return dt.moveaxis(dt.reshape(taken, shape), axis + 1, -1)


@lower("constant_pad_nd")
def pad(call: Call, x: Any, widths: Any, value: Any = 0) -> Any:
    return nn.pad(x, tuple(widths), value=value)


@lower("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def pad_reflected(call: Call, x: Any, widths: Any) -> Any:
    return nn.pad(x, tuple(widths), mode="reflect")


@lower("replication_pad1d", "replication_pad2d", "replication_pad3d")
def pad_replicated(call: Call, x: Any, widths: Any) -> Any:
    return nn.pad(x, tuple(widths), mode="replicate")


@lower("pixel_shuffle")
def pixel_shuffle(call: Call, x: Any, factor: int) -> Any:
    return nn.pixel_shuffle(x, factor)


@lower("pixel_unshuffle")
def pixel_unshuffle(call: Call, x: Any, factor: int) -> Any:
    return nn.pixel_unshuffle(x, factor)


@lower("as_strided")
def as_strided(call: Call, x: Any, size: Any, stride: Any, offset: Any = None) -> Any:
    """Where the strides are those of a row-major array, it is a reshape."""
    value, expected = call.node.args[0].meta["val"], 1
    for n, step in zip(reversed(size), reversed(stride)):
        if not isinstance(n, int) or not isinstance(step, int) or (n != 1 and step != expected):
            raise Unsupported("strides that are not row-major")
        expected *= n
    if offset or not value.is_contiguous() or expected != value.numel():
        raise Unsupported("a part of an array by strides")
    return dt.reshape(x, tuple(size))
