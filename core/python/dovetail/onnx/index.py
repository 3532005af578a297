"""Elements by index: Gather and Scatter in all forms, OneHot, NonZero, Unique, Compress."""

from __future__ import annotations

from typing import Any

import numpy as np

import dovetail as dt
from dovetail import _core
from dovetail.onnx.registry import Node, onnx_op
from dovetail.onnx.shape import moved
from dovetail.onnx.values import constant, expect_known, integer, is_strings, prod

_op = _core.op_function
_MODES = {"none": "set", "add": "add", "mul": "multiply", "max": "max", "min": "min"}
_SIZE = "the size of its result depends on elements"


@onnx_op("Gather")
def gather(node: Node, x: Any, indices: Any) -> Any:
    axis = node.get("axis", 0)
    if is_strings(x):
        expect_known(indices, "strings are on the host")
        return np.take(x, np.asarray(indices), axis=axis)
    return moved(x, lambda x: dt.take(x, indices, axis=axis), lambda x: x)


@onnx_op("GatherElements")
def gather_elements(node: Node, x: Any, indices: Any) -> Any:
    axis = node.get("axis", 0) % x.ndim
    key = tuple(slice(None) if d == axis else slice(0, n) for d, n in enumerate(indices.shape))
    return dt.take_along_axis(x[key], indices, axis=axis)


def _resolved(indices: Any, n: Any) -> Any:
    """Indices of which negative ones count from the end, as natural numbers."""
    indices = dt.astype(indices, "int64")
    return dt.where(indices < 0, indices + n, indices)


def _flat_index(indices: Any, shape: tuple[Any, ...]) -> Any:
    """Rows of indices (..., k) into the first k axes of a shape, as numbers of slices."""
    flat = None
    for d in range(indices.shape[-1]):
        here = _resolved(indices[..., d], shape[d])
        flat = here if flat is None else flat * shape[d] + here
    return dt.zeros(indices.shape[:-1], dtype="int64") if flat is None else flat


@onnx_op("GatherND")
def gather_nd(node: Node, x: Any, indices: Any) -> Any:
    batch, k = node.get("batch_dims", 0), int(indices.shape[-1])
    if is_strings(x):
        return x[tuple(np.moveaxis(np.asarray(indices), -1, 0))]
    lead = x.shape[:batch]
    if batch:  # the number of the batch is the first index
        n = prod(lead)
        x = dt.reshape(x, (n, *x.shape[batch:]))
        indices = dt.reshape(dt.astype(indices, "int64"), (n, *indices.shape[batch:]))
        number = dt.reshape(dt.arange(n), (n, *(1,) * (indices.ndim - 1)))
        number = dt.broadcast_to(number, (*indices.shape[:-1], 1))
        indices, k = dt.concat([number, indices], axis=-1), k + 1
    flat = _flat_index(indices, x.shape)
    made = dt.take(dt.reshape(x, (prod(x.shape[:k]), *x.shape[k:])), flat, axis=0)
    return dt.reshape(made, (*lead, *flat.shape[1:], *x.shape[k:])) if batch else made


@onnx_op("ScatterND")
def scatter_nd(node: Node, x: Any, indices: Any, updates: Any) -> Any:
    k = int(indices.shape[-1])
    rest = x.shape[k:]
    flat = dt.reshape(_flat_index(indices, x.shape), (-1,))
    rows, values = dt.reshape(x, (prod(x.shape[:k]), *rest)), dt.reshape(updates, (flat.shape[0], *rest))
    return dt.reshape(dt.scatter(rows, flat, values, axis=0, mode=_MODES[node.get("reduction", "none")]), x.shape)


@onnx_op("Scatter", "ScatterElements")
def scatter_elements(node: Node, x: Any, indices: Any, updates: Any) -> Any:
    axis, mode = node.get("axis", 0) % x.ndim, _MODES[node.get("reduction", "none")]
    flat = None
    for d in range(x.ndim):
        here = dt.reshape(dt.arange(indices.shape[d]), (-1, *(1,) * (x.ndim - 1 - d)))
        here = _resolved(indices, x.shape[d]) if d == axis else here
        flat = here if flat is None else flat * x.shape[d] + here
    flat = dt.reshape(dt.broadcast_to(flat, indices.shape), (-1,))
    made = dt.scatter(dt.reshape(x, (-1,)), flat, dt.reshape(updates, (-1,)), axis=0, mode=mode)
    return dt.reshape(made, x.shape)


@onnx_op("TensorScatter")
def tensor_scatter(node: Node, past: Any, update: Any, write: Any = None) -> Any:
    axis = node.get("axis", -2) % past.ndim
    n, m, batch = past.shape[axis], update.shape[axis], past.shape[0]
    first = dt.astype(write, "int64") if write is not None else dt.zeros((batch,), dtype="int64")
    place = dt.reshape(first, (-1, 1)) + dt.reshape(dt.arange(m), (1, -1))
    if node.get("mode", "linear") == "circular":
        place = dt.remainder(place, n)
    x, values = dt.moveaxis(past, axis, 1), dt.moveaxis(update, axis, 1)
    flat = dt.reshape(dt.reshape(dt.arange(batch), (-1, 1)) * n + place, (-1,))
    rows = dt.reshape(x, (batch * n, *x.shape[2:]))
    made = dt.scatter(rows, flat, dt.reshape(values, (batch * m, *x.shape[2:])), axis=0)
    return dt.moveaxis(dt.reshape(made, x.shape), 1, axis)


@onnx_op("OneHot", numbers=(1,), may_grow=True)
def one_hot(node: Node, indices: Any, depth: Any, values: Any) -> Any:
    n, axis = integer(depth), node.get("axis", -1) % (indices.ndim + 1)
    place = _resolved(indices, n)
    hot = dt.equal(dt.expand_dims(place, axis=axis), dt.reshape(dt.arange(n), (n, *(1,) * (indices.ndim - axis))))
    return dt.where(hot, values[1], values[0])


@onnx_op("NonZero", may_grow=True)
def nonzero(node: Node, x: Any) -> Any:
    expect_known(x, _SIZE)
    if not x.ndim:
        return dt.zeros((0, int(bool(x))), dtype="int64")
    return dt.stack(list(dt.nonzero(x)), axis=0)


@onnx_op("Compress")
def compress(node: Node, x: Any, condition: Any) -> Any:
    expect_known(condition, _SIZE)
    axis = node.get("axis")
    if is_strings(x):
        return np.compress(np.asarray(condition), x, axis=axis)
    if axis is None:
        x, axis = dt.reshape(x, (-1,)), 0
    return dt.take(x, dt.nonzero(condition)[0], axis=axis)


@onnx_op("Unique")
def unique(node: Node, x: Any) -> Any:
    expect_known(x, _SIZE)
    axis = node.get("axis")
    if is_strings(x):
        return _unique_strings(node, x)
    if axis is not None and x.ndim > 1:
        return _unique_along(node, x, axis % x.ndim)
    found = dt.unique_all(x)
    values, first, inverse, counts = (*found[:2], dt.reshape(found[2], (-1,)), found[3])
    return (
        (values, first, inverse, counts) if node.get("sorted", 1) else _by_place(values, 0, first, inverse, counts)
    )


def _by_place(values: Any, axis: int, first: Any, inverse: Any, counts: Any) -> tuple[Any, ...]:
    """The distinct values in the order of their first places."""
    order = dt.argsort(first)
    values = dt.take(values, order, axis=axis)
    back = dt.argsort(order)
    return values, dt.take(first, order, axis=0), dt.take(back, inverse, axis=0), dt.take(counts, order, axis=0)


def _unique_along(node: Node, x: Any, axis: int) -> tuple[Any, ...]:
    """The distinct slices: rows sorted by their last element, then stably by the one before it, and so on."""
    n = x.shape[axis]
    rows = dt.reshape(dt.moveaxis(x, axis, 0), (n, -1))
    order = dt.arange(n)
    for column in range(rows.shape[1] - 1, -1, -1):
        order = dt.take(order, dt.argsort(dt.take(rows[:, column], order, axis=0)), axis=0)
    ordered = dt.take(rows, order, axis=0)
    new = dt.concat([dt.ones((1,), dtype="bool"), dt.any(dt.not_equal(ordered[1:], ordered[:-1]), axis=1)])
    starts = dt.nonzero(new)[0]
    group = dt.cumulative_sum(dt.astype(new, "int64")) - 1
    inverse = dt.scatter(dt.zeros((n,), dtype="int64"), order, group, axis=0)
    first = dt.take(order, starts, axis=0)
    counts = dt.concat([starts[1:], dt.asarray([n])]) - starts
    values = dt.take(x, first, axis=axis)
    return (
        (values, first, inverse, counts)
        if node.get("sorted", 1)
        else _by_place(values, axis, first, inverse, counts)
    )


def _unique_strings(node: Node, x: Any) -> tuple[Any, ...]:
    values, first, inverse, counts = np.unique(
        x.astype(str), return_index=True, return_inverse=True, return_counts=True, axis=node.get("axis")
    )
    if not node.get("sorted", 1):
        order = np.argsort(first)
        values, first, counts = values[order], first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    return values.astype(object), *(constant(v.reshape(-1).astype(np.int64)) for v in (first, inverse, counts))


@onnx_op("ReverseSequence")
def reverse_sequence(node: Node, x: Any, lengths: Any) -> Any:
    time, batch = node.get("time_axis", 0), node.get("batch_axis", 1)
    y = dt.moveaxis(x, (batch, time), (0, 1))
    step = dt.reshape(dt.arange(y.shape[1]), (1, -1))
    length = dt.reshape(dt.astype(lengths, "int64"), (-1, 1))
    source = dt.where(step < length, length - 1 - step, step)
    source = dt.broadcast_to(dt.reshape(source, (*source.shape, *(1,) * (y.ndim - 2))), y.shape)
    return dt.moveaxis(dt.take_along_axis(y, source, axis=1), (0, 1), (batch, time))


@onnx_op("ArrayFeatureExtractor", domain="ai.onnx.ml")
def feature_extractor(node: Node, x: Any, indices: Any) -> Any:
    made = dt.take(x, dt.reshape(indices, (-1,)), axis=-1)
    return dt.reshape(made, (1, -1)) if x.ndim == 1 else made
