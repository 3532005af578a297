"""Random tensors: by a node's seed, or else by dovetail.random's generator."""

from __future__ import annotations

from typing import Any

import numpy as np

import dovetail as dt
from dovetail import _core
from dovetail.onnx.registry import Node, onnx_op
from dovetail.onnx.values import Dynamic, dtype_of_number, is_float
from dovetail.random import Generator


class _Default:
    """dovetail.random, for nodes without a seed."""

    uniform = staticmethod(lambda shape, dtype: dt.random.uniform(shape, dtype=dtype))
    normal = staticmethod(lambda shape, dtype: dt.random.normal(shape, dtype=dtype))


def generator(node: Node) -> Any:
    """Where a node's numbers come from. Without a seed each call draws others, which a program cannot."""
    seed = node.get("seed")
    if seed is not None:
        return Generator(int(np.float32(seed).view(np.uint32)))
    if _core.recorder() is not None:
        raise Dynamic("each call draws other numbers")
    return _Default


@onnx_op("RandomUniform", "RandomUniformLike", may_grow=True)
def uniform(node: Node, x: Any = None) -> Any:
    shape, dtype = _type(node, x)
    low, high = node.get("low", 0.0), node.get("high", 1.0)
    wide = dtype if dtype in ("float32", "float64") else "float32"
    return dt.astype(generator(node).uniform(shape, dtype=wide) * (high - low) + low, dtype)


@onnx_op("RandomNormal", "RandomNormalLike", may_grow=True)
def normal(node: Node, x: Any = None) -> Any:
    shape, dtype = _type(node, x)
    wide = dtype if dtype in ("float32", "float64") else "float32"
    made = generator(node).normal(shape, dtype=wide) * node.get("scale", 1.0) + node.get("mean", 0.0)
    return dt.astype(made, dtype)


def _type(node: Node, x: Any) -> tuple[tuple[Any, ...], str]:
    shape = x.shape if x is not None else tuple(node.get("shape"))
    if node.get("dtype"):
        return shape, dtype_of_number(node.get("dtype"))
    return shape, x.dtype.name if x is not None and is_float(x) else "float32"


@onnx_op("Bernoulli")
def bernoulli(node: Node, x: Any) -> Any:
    dtype = dtype_of_number(node.get("dtype")) if node.get("dtype") else x.dtype.name
    drawn = generator(node).uniform(x.shape, dtype="float64" if x.dtype == "float64" else "float32")
    return dt.astype(drawn < x, dtype)


@onnx_op("Multinomial")
def multinomial(node: Node, x: Any) -> Any:
    """Classes by their unnormalised log probabilities, x (batch, classes): the first whose share is reached."""
    n = node.get("sample_size", 1)
    shares = dt.cumulative_sum(dt.nn.softmax(dt.astype(x, "float32"), axis=-1), axis=-1)
    drawn = generator(node).uniform((x.shape[0], n), dtype="float32")
    picked = dt.sum(dt.astype(drawn[:, :, None] >= shares[:, None, :-1], "int64"), axis=-1)
    return dt.astype(picked, dtype_of_number(node.get("dtype", 6)))
