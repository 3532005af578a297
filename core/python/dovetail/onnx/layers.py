"""Products and normalisation."""

from __future__ import annotations

from typing import Any

import dovetail as dt
from dovetail import nn
from dovetail.onnx.registry import Node, onnx_op
from dovetail.onnx.values import Dequantized, arrays_of, is_float, prod

# ---- products ----------------------------------------------------------------------------------------------------


@onnx_op("MatMul", quantized=(0, 1), may_grow=True)
def matmul(node: Node, a: Any, b: Any) -> Any:
    from dovetail.onnx.quantized import real_product

    if isinstance(a, Dequantized) and isinstance(b, Dequantized) and (made := real_product(a, b)) is not None:
        return made
    return dt.matmul(*arrays_of((a, b)))


@onnx_op("Gemm", quantized=(0, 1), may_grow=True)
def gemm(node: Node, a: Any, b: Any, c: Any = None) -> Any:
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    if isinstance(a, Dequantized) and isinstance(b, Dequantized) and not node.get("transA", 0):
        from dovetail.onnx.quantized import real_product, transposed

        made = real_product(a, transposed(b) if node.get("transB", 0) else b)
        if made is not None:
            made = _times(made, alpha)
            return made if c is None else made + _times(c, beta)
    a, b = arrays_of((a, b))
    a = dt.matrix_transpose(a) if node.get("transA", 0) else a
    if c is not None and c.ndim == 1 and node.get("transB", 0) and alpha == beta == 1.0 and is_float(a) \
            and _is_row(c, b):  # fmt: skip
        return nn.linear(a, b, c)
    made = dt.matmul(a, dt.matrix_transpose(b) if node.get("transB", 0) else b)
    made = _times(made, alpha)
    return made if c is None else made + _times(c, beta)


def _is_row(c: Any, b: Any) -> bool:
    n, m = c.shape[0], b.shape[0]
    return type(n) is int and type(m) is int and n == m


def _times(x: Any, factor: float) -> Any:
    if factor == 1.0:
        return x
    return x * (factor if is_float(x) else int(factor))


@onnx_op("Einsum", may_grow=True)
def einsum(node: Node, *xs: Any) -> Any:
    return dt.einsum(node.get("equation"), *xs)


@onnx_op("Det")
def det(node: Node, x: Any) -> Any:
    return dt.linalg.det(x)


# ---- normalisation -----------------------------------------------------------------------------------------------


def channels(v: Any, x: Any) -> Any:
    """A vector over axis 1 of x."""
    return dt.reshape(v, (1, -1, *(1,) * (x.ndim - 2)))


@onnx_op("BatchNormalization")
def batch_norm(node: Node, x: Any, scale: Any, bias: Any, mean: Any, var: Any) -> Any:
    eps = node.get("epsilon", 1e-5)
    trains = node.get("training_mode", 0) if node.opset >= 14 else node.opset < 7 and not node.get("is_test", 0)
    if trains and (node.opset >= 14 or node.wants(1)):
        momentum = node.get("momentum", 0.9)
        axes = (0, *range(2, x.ndim))
        own_mean, own_var = dt.mean(x, axis=axes), dt.var(x, axis=axes)
        y = _normalised(x, own_mean, own_var, scale, bias, eps)
        new = [old * momentum + dt.astype(own, old.dtype) * (1 - momentum)
               for old, own in ((mean, own_mean), (var, own_var))]  # fmt: skip
        return (y, *new) if node.opset >= 14 else (y, *new, own_mean, own_var)
    return _normalised(x, mean, var, scale, bias, eps)


def _normalised(x: Any, mean: Any, var: Any, scale: Any, bias: Any, eps: float) -> Any:
    mean, var, scale, bias = (v if v.dtype == x.dtype else dt.astype(v, x.dtype) for v in (mean, var, scale, bias))
    return nn.batch_norm(x, mean, var, scale, bias, eps=eps)


@onnx_op("InstanceNormalization")
def instance_norm(node: Node, x: Any, scale: Any, bias: Any) -> Any:
    return nn.instance_norm(x, weight=scale, bias=bias, eps=node.get("epsilon", 1e-5))


def _spread(v: Any, shape: tuple[Any, ...]) -> Any:
    if v is None or (v.ndim == len(shape) and all(type(n) is int and n == m for n, m in zip(v.shape, shape))):
        return v
    return dt.broadcast_to(v, shape)


def layer_norm_of(x: Any, scale: Any, bias: Any, axis: int, eps: float) -> Any:
    shape = x.shape[axis:]
    return nn.layer_norm(x, shape, _spread(scale, shape), _spread(bias, shape), eps=eps)


@onnx_op("LayerNormalization")
def layer_norm(node: Node, x: Any, scale: Any, bias: Any = None) -> Any:
    axis, eps = node.get("axis", -1) % x.ndim, node.get("epsilon", 1e-5)
    y = layer_norm_of(x, scale, bias, axis, eps)
    if not (node.wants(1) or node.wants(2)):
        return y
    wide = x if x.dtype == "float64" else dt.astype(x, "float32")
    axes = tuple(range(axis, x.ndim))
    mean = dt.mean(wide, axis=axes, keepdims=True)
    return y, mean, 1.0 / dt.sqrt(dt.var(wide, axis=axes, keepdims=True) + eps)


@onnx_op("RMSNormalization")
def rms_norm(node: Node, x: Any, scale: Any) -> Any:
    shape = x.shape[node.get("axis", -1) % x.ndim :]
    return nn.rms_norm(x, shape, _spread(scale, shape), eps=node.get("epsilon", 1e-5))


@onnx_op("GroupNormalization", since=21)
def group_norm(node: Node, x: Any, scale: Any, bias: Any) -> Any:
    return nn.group_norm(x, node.get("num_groups"), scale, bias, eps=node.get("epsilon", 1e-5))


@onnx_op("GroupNormalization", since=18)
def group_norm_of_groups(node: Node, x: Any, scale: Any, bias: Any) -> Any:
    """Before opset 21 there is a scale for each group."""
    groups = node.get("num_groups")
    each = x.shape[1] // groups
    return group_norm(node, x, dt.repeat(scale, each), dt.repeat(bias, each))


@onnx_op("LRN")
def local_response_norm(node: Node, x: Any) -> Any:
    size = node.get("size")
    if size % 2:
        return nn.local_response_norm(
            x, size, node.get("alpha", 1e-4), node.get("beta", 0.75), node.get("bias", 1.0)
        )
    before = (size - 1) // 2
    squares = dt.reshape(x * x, (x.shape[0], 1, x.shape[1], prod(x.shape[2:])))
    squares = nn.pad(squares, (0, 0, before, size - 1 - before))
    means = dt.reshape(nn.avg_pool2d(squares, (size, 1), 1), x.shape)
    return x / dt.pow(means * node.get("alpha", 1e-4) + node.get("bias", 1.0), node.get("beta", 0.75))
