"""Shapes: reshape, transpose, slices, joins, padding, and tensors that are made of a shape."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import dovetail as dt
from dovetail import nn
from dovetail._array import PACKED
from dovetail.onnx.registry import Node, onnx_op
from dovetail.onnx.values import (
    Sizes,
    constant,
    dtype_of_number,
    elements,
    integer,
    integers,
    is_strings,
    is_traced,
    prod,
    scalar,
)
from dovetail.schema.number import Number, largest, value_of


def moved(x: Any, function: Callable[[Any], Any], of_strings: Callable[[Any], Any]) -> Any:
    """function(x), also of strings, and of dtypes of less than a byte, whose elements cannot be moved."""
    if is_strings(x):
        return of_strings(x)
    if x.dtype.name in PACKED:
        return dt.astype(function(dt.astype(x, PACKED[x.dtype.name])), x.dtype.name)
    return function(x)


def whole(n: int) -> tuple[slice, ...]:
    return (slice(None),) * n


# ---- what a shape is ---------------------------------------------------------------------------------------------


@onnx_op("Shape", numbers=(0,))
def shape(node: Node, x: Any) -> Any:
    sizes = x.shape[slice(node.get("start", 0), node.get("end"))]
    return Sizes.of(sizes, (len(sizes),), "int64")


@onnx_op("Size", numbers=(0,))
def size(node: Node, x: Any) -> Any:
    return Sizes.of([prod(x.shape)], (), "int64")


@onnx_op("Constant")
def constant_node(node: Node) -> Any:
    if (t := node.get("value")) is not None:
        return node.importer.source.constant(t)
    if (t := node.get("sparse_value")) is not None:
        return node.importer.sparse(t)
    for name, dtype in {"float": np.float32, "int": np.int64, "string": object}.items():
        for key in (f"value_{name}", f"value_{name}s"):
            if key in node.attributes:
                return constant(np.array(node.attributes[key], dtype=dtype))
    raise ValueError("got no value, expected one of value, sparse_value, value_float, value_int, value_string")


@onnx_op("ConstantOfShape", numbers=(0,), may_grow=True)
def constant_of_shape(node: Node, sizes: Any) -> Any:
    t = node.get("value")
    value = node.importer.source.array(t).reshape(-1) if t is not None else np.zeros(1, np.float32)
    if value.dtype.kind == "O":
        return np.full(integers(sizes), value[0], dtype=object)
    return dt.broadcast_to(constant(value[0]), tuple(integers(sizes))) if value.dtype.name in PACKED else \
        dt.full(tuple(integers(sizes)), value[0].item(), dtype=value.dtype.name)  # fmt: skip


@onnx_op("EyeLike", may_grow=True)
def eye_like(node: Node, x: Any) -> Any:
    to = node.get("dtype")
    return dt.eye(*x.shape, k=node.get("k", 0), dtype=dtype_of_number(to) if to else x.dtype)


@onnx_op("Range", numbers=(0, 1, 2), may_grow=True)
def range_of(node: Node, start: Any, limit: Any, delta: Any) -> Any:
    first, last, step = map(scalar, (start, limit, delta))
    dtype = start.dtype if isinstance(start.dtype, str) else start.dtype.name
    if not any(isinstance(n, Number) for n in (first, last, step)):
        count = max(0, math.ceil((last - first) / step))
        return dt.astype(dt.arange(count), dtype) * step + first if "float" in dtype else \
            dt.arange(first, first + count * step, step, dtype=dtype)  # fmt: skip
    count = largest(-((first - last) // step), 0)
    return dt.arange(count, dtype=dtype) * step + first


# ---- the same elements in another shape --------------------------------------------------------------------------


@onnx_op("Reshape", numbers=(1,))
def reshape(node: Node, x: Any, sizes: Any = None) -> Any:
    given = integers(sizes) if sizes is not None else list(node.get("shape"))
    if not node.get("allowzero", 0):
        given = [x.shape[i] if type(n) is int and n == 0 else n for i, n in enumerate(given)]
    return moved(x, lambda x: dt.reshape(x, tuple(given)), lambda x: x.reshape(given))


@onnx_op("Flatten")
def flatten(node: Node, x: Any) -> Any:
    axis = node.get("axis", 1)
    axis += x.ndim if axis < 0 else 0
    sizes = prod(x.shape[:axis]), prod(x.shape[axis:])
    return moved(x, lambda x: dt.reshape(x, sizes), lambda x: x.reshape(sizes))


@onnx_op("Transpose")
def transpose(node: Node, x: Any) -> Any:
    order = tuple(node.get("perm") or range(x.ndim - 1, -1, -1))
    return moved(x, lambda x: dt.permute_dims(x, order), lambda x: np.transpose(x, order))


@onnx_op("Unsqueeze", numbers=(1,))
def unsqueeze(node: Node, x: Any, axes: Any = None) -> Any:
    given = integers(axes) if axes is not None else node.get("axes")
    ndim = x.ndim + len(given)
    places = tuple(sorted(a % ndim for a in given))
    return moved(x, lambda x: dt.expand_dims(x, axis=places), lambda x: np.expand_dims(x, places))


@onnx_op("Squeeze", numbers=(1,))
def squeeze(node: Node, x: Any, axes: Any = None) -> Any:
    given = integers(axes) if axes is not None else node.get("axes")
    if given is None:
        places = tuple(i for i, n in enumerate(x.shape) if n == 1)
    else:
        places = tuple(a % x.ndim for a in given)
    return moved(x, lambda x: dt.squeeze(x, places), lambda x: np.squeeze(x, places))


@onnx_op("Expand", numbers=(1,), may_grow=True)
def expand(node: Node, x: Any, sizes: Any) -> Any:
    given = tuple(integers(sizes))
    return moved(x, lambda x: dt.broadcast_to(x, _joined(x.shape, given)),
                 lambda x: np.broadcast_to(x, np.broadcast_shapes(x.shape, given)))  # fmt: skip


def _joined(own: tuple[Any, ...], given: tuple[Any, ...]) -> tuple[Any, ...]:
    """What two shapes broadcast to, without a look at sizes that are not known."""
    n = max(len(own), len(given))
    own, given = (1,) * (n - len(own)) + tuple(own), (1,) * (n - len(given)) + given
    return tuple(a if type(b) is int and b == 1 else b if type(a) is int and a == 1 else
                 a if _same(a, b) else dt.broadcast_shapes((a,), (b,))[0] for a, b in zip(own, given))  # fmt: skip


def _same(a: Any, b: Any) -> bool:
    return isinstance(a, Number) and isinstance(b, Number) and a.table is b.table and a.entry == b.entry


# ---- parts and joins ---------------------------------------------------------------------------------------------


@onnx_op("Slice", numbers=(1, 2, 3, 4))
def slice_of(node: Node, x: Any, *operands: Any) -> Any:
    if node.opset < 10:
        starts, ends, axes, steps = node.get("starts"), node.get("ends"), node.get("axes"), None
    else:
        given = [None if v is None else integers(v) for v in operands]
        starts, ends, axes, steps = (*given, None, None)[:4]
    key: list[slice] = list(whole(x.ndim))
    for i, axis in enumerate(axes if axes is not None else range(len(starts))):
        step = steps[i] if steps else 1
        key[axis] = slice(*_bounds(starts[i], ends[i], step, x.shape[axis]), step)
    return moved(x, lambda x: x[tuple(key)], lambda x: x[tuple(key)])


def _bounds(start: Any, end: Any, step: int, n: Any) -> tuple[Any, Any]:
    if type(step) is int and step < 0 and type(end) is int and end < -value_of(n):
        return start, None  # Python would count such an end from behind
    if type(end) is int and end >= 2**31 - 1 and step > 0:
        end = None
    return start, end


@onnx_op("Split", numbers=(1,))
def split(node: Node, x: Any, sizes: Any = None) -> Any:
    axis = node.get("axis", 0) % x.ndim
    given = integers(sizes) if sizes is not None else node.get("split")
    if given is None:
        n, count = x.shape[axis], node.get("num_outputs", len(node.outputs))
        part = -(-n // count)
        given = [part] * (count - 1) + [n - part * (count - 1)]
    return parts(x, axis, given)


def parts(x: Any, axis: int, sizes: list[Any]) -> tuple[Any, ...]:
    made, at = [], 0
    for n in sizes:
        key = (*whole(axis), slice(at, at + n))
        made.append(moved(x, lambda x, key=key: x[key], lambda x, key=key: x[key]))
        at = at + n
    return tuple(made)


@onnx_op("Concat")
def concat(node: Node, *xs: Any) -> Any:
    axis = node.get("axis", 1)
    if any(map(is_strings, xs)):
        return np.concatenate(xs, axis)
    if xs[0].dtype.name in PACKED:
        wide = [dt.astype(x, PACKED[x.dtype.name]) for x in xs]
        return dt.astype(dt.concat(wide, axis=axis), xs[0].dtype.name)
    return dt.concat(list(xs), axis=axis)


@onnx_op("Tile", numbers=(1, 2), may_grow=True)
def tile(node: Node, x: Any, repeats: Any, axis: Any = None) -> Any:
    times = integers(repeats)
    if node.opset < 6:
        times = [times[0] if i == integer(axis) % x.ndim else 1 for i in range(x.ndim)]
    return moved(x, lambda x: dt.tile(x, tuple(times)), lambda x: np.tile(x, times))


@onnx_op("Trilu", numbers=(1,))
def trilu(node: Node, x: Any, k: Any = None) -> Any:
    diagonal = max(-(2**31), min(2**31 - 1, integer(k))) if k is not None else 0
    return (dt.triu if node.get("upper", 1) else dt.tril)(x, k=diagonal)


@onnx_op("DepthToSpace")
def depth_to_space(node: Node, x: Any) -> Any:
    block, (n, c, h, w) = node.get("blocksize"), x.shape
    c = c // (block * block)
    if node.get("mode", "DCR") == "DCR":
        y = dt.permute_dims(dt.reshape(x, (n, block, block, c, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        y = dt.permute_dims(dt.reshape(x, (n, c, block, block, h, w)), (0, 1, 4, 2, 5, 3))
    return dt.reshape(y, (n, c, h * block, w * block))


@onnx_op("SpaceToDepth")
def space_to_depth(node: Node, x: Any) -> Any:
    block, (n, c, h, w) = node.get("blocksize"), x.shape
    y = dt.reshape(x, (n, c, h // block, block, w // block, block))
    if node.get("mode", "DCR") == "DCR":
        y = dt.permute_dims(y, (0, 3, 5, 1, 2, 4))
    else:
        y = dt.permute_dims(y, (0, 1, 3, 5, 2, 4))
    return dt.reshape(y, (n, c * block * block, h // block, w // block))


# ---- padding -----------------------------------------------------------------------------------------------------

_MODES = {"reflect": "reflect", "edge": "replicate", "wrap": "circular"}


@onnx_op("Pad", numbers=(1, 3), may_grow=True)
def pad(node: Node, x: Any, pads: Any = None, value: Any = None, axes: Any = None) -> Any:
    given = integers(pads) if pads is not None else node.get("pads") or node.get("paddings")
    chosen = [a % x.ndim for a in integers(axes)] if axes is not None else list(range(x.ndim))
    pairs = [(0, 0)] * x.ndim
    for i, axis in enumerate(chosen):
        pairs[axis] = given[i], given[i + len(chosen)]
    fill = node.get("value", 0.0) if node.opset < 11 else 0
    if value is not None and (not is_traced(value) or value.size):
        fill = value
    return padded(x, pairs, node.get("mode", "constant"), fill)


def padded(x: Any, pairs: list[tuple[Any, Any]], mode: str = "constant", value: Any = 0) -> Any:
    """x with (before, after) more elements of each axis, or fewer where a number is negative."""
    flat = [n for pair in reversed(pairs) for n in pair]
    if mode != "constant":
        return nn.pad(x, flat, mode=_MODES[mode])
    if is_traced(value):
        return _filled(x, pairs, value)
    fill = value if isinstance(value, (int, float)) else elements(value)[0]
    if isinstance(fill, float) and "integer" in x.dtype.kind:
        fill = int(fill)
    if x.dtype == "bool":
        return dt.astype(nn.pad(dt.astype(x, "uint8"), flat, value=int(fill)), "bool")
    return nn.pad(x, flat, value=fill)


def _filled(x: Any, pairs: list[tuple[Any, Any]], value: Any) -> Any:
    """Padding by a value that is known only when the program runs: a mask chooses."""
    flat = [n for pair in reversed(pairs) for n in pair]
    inside = nn.pad(dt.ones(x.shape, dtype="uint8"), flat)
    return dt.where(dt.astype(inside, "bool"), nn.pad(x, flat), dt.reshape(value, ()))


@onnx_op("CenterCropPad", numbers=(1,), may_grow=True)
def center_crop_pad(node: Node, x: Any, sizes: Any) -> Any:
    axes = [a % x.ndim for a in node.get("axes", range(x.ndim))]
    for axis, n in zip(axes, integers(sizes)):
        have = x.shape[axis]
        if have > n:
            first = (have - n) // 2
            x = x[(*whole(axis), slice(first, first + n))]
        elif have < n:
            before = (n - have) // 2
            pairs = [(0, 0)] * x.ndim
            pairs[axis] = before, n - have - before
            x = padded(x, pairs)
    return x
