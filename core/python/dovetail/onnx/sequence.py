"""Sequences and optionals: lists and None while a model is imported, of which no program knows."""

from __future__ import annotations

from typing import Any

import numpy as np

import dovetail as dt
from dovetail.onnx.registry import Node, onnx_op
from dovetail.onnx.shape import concat, moved, parts
from dovetail.onnx.values import Sizes, constant, integer, integers, is_strings


@onnx_op("SequenceConstruct")
def construct(node: Node, *xs: Any) -> Any:
    return (list(xs),)


@onnx_op("SequenceEmpty")
def empty(node: Node) -> Any:
    return ([],)


@onnx_op("SequenceLength")
def length(node: Node, xs: list[Any]) -> Any:
    return constant(np.int64(len(xs)))


@onnx_op("SequenceAt", numbers=(1,))
def at(node: Node, xs: list[Any], i: Any) -> Any:
    return xs[integer(i)]


@onnx_op("SequenceInsert", numbers=(2,))
def insert(node: Node, xs: list[Any], x: Any, i: Any = None) -> Any:
    made = list(xs)
    made.insert(len(made) if i is None else integer(i), x)
    return (made,)


@onnx_op("SequenceErase", numbers=(1,))
def erase(node: Node, xs: list[Any], i: Any = None) -> Any:
    made = list(xs)
    made.pop(-1 if i is None else integer(i))
    return (made,)


@onnx_op("ConcatFromSequence")
def concat_from(node: Node, xs: list[Any]) -> Any:
    if node.get("new_axis", 0):
        return np.stack(xs, node.get("axis")) if any(map(is_strings, xs)) else dt.stack(xs, axis=node.get("axis"))
    return concat(node.like("Concat"), *xs)


@onnx_op("SplitToSequence", numbers=(1,))
def split_to(node: Node, x: Any, sizes: Any = None) -> Any:
    axis = node.get("axis", 0) % x.ndim
    n = int(x.shape[axis])
    if sizes is None:
        given = [1] * n
    elif not sizes.ndim:
        size = integer(sizes)
        given = [size] * (n // size) + ([n % size] if n % size else [])
    else:
        given = integers(sizes)
    made = list(parts(x, axis, given))
    if sizes is None and not node.get("keepdims", 1):
        made = [moved(v, lambda v: dt.squeeze(v, (axis,)), lambda v: np.squeeze(v, axis)) for v in made]
    return (made,)


@onnx_op("SequenceMap")
def map_(node: Node, xs: list[Any], *others: Any) -> Any:
    body = node.get("body")
    rows = [
        node.importer.graph(body, node.scope, [x, *(v[i] if isinstance(v, list) else v for v in others)])
        for i, x in enumerate(xs)
    ]
    return tuple([row[k] for row in rows] for k in range(len(body.output)))


@onnx_op("Optional")
def optional(node: Node, x: Any = None) -> Any:
    return (x,)


@onnx_op("OptionalHasElement", numbers=(0,))
def has_element(node: Node, x: Any = None) -> Any:
    return constant(np.bool_(x is not None))


@onnx_op("OptionalGetElement")
def get_element(node: Node, x: Any = None) -> Any:
    if x is None:
        raise ValueError("the optional has no element; ask OptionalHasElement first")
    return (x.array() if isinstance(x, Sizes) else x,)
