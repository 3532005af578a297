"""What AOTAutograd leaves of a backward pass, after its decompositions."""

from __future__ import annotations

from typing import Any

import dovetail as dt
from dovetail import nn

from dovetail_torch.compile.table import Call, Unsupported, axis_of, cast, lower, pair


@lower("threshold_backward")
def threshold_backward(call: Call, grad: Any, x: Any, least: Any) -> Any:
    return dt.where(x <= least, 0, grad)


@lower("tanh_backward")
def tanh_backward(call: Call, grad: Any, y: Any) -> Any:
    return grad * (1 - y * y)


@lower("sigmoid_backward")
def sigmoid_backward(call: Call, grad: Any, y: Any) -> Any:
    return grad * (y * (1 - y))


@lower("gelu_backward")
def gelu_backward(call: Call, grad: Any, x: Any, *, approximate: str = "none") -> Any:
    return nn.gelu_grad(x, grad, approximate)


@lower("silu_backward")
def silu_backward(call: Call, grad: Any, x: Any) -> Any:
    return nn.silu_grad(x, grad)


@lower("_softmax_backward_data")
def softmax_backward(call: Call, grad: Any, y: Any, dim: int, dtype: Any) -> Any:
    return nn.softmax_grad(y, grad, axis_of(dim, y.ndim))


@lower("_log_softmax_backward_data")
def log_softmax_backward(call: Call, grad: Any, y: Any, dim: int, dtype: Any) -> Any:
    return nn.log_softmax_grad(y, grad, axis_of(dim, y.ndim))


@lower("native_layer_norm_backward")
def layer_norm_backward(
    call: Call, grad: Any, x: Any, shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any, mask: Any
) -> Any:
    """From the saved moments, as torch does: they are what the forward pass has divided by."""
    leading = tuple(range(x.ndim - len(shape)))
    axes = tuple(range(len(leading), x.ndim))
    normal = (x - mean) * rstd
    weighted = grad if weight is None else grad * weight
    by_x = by_weight = by_bias = None
    if mask[0]:
        mean_of = dt.mean(weighted, axis=axes, keepdims=True)
        along = dt.mean(weighted * normal, axis=axes, keepdims=True)
        by_x = (weighted - mean_of - normal * along) * rstd
    if mask[1] and weight is not None:
        by_weight = dt.sum(grad * normal, axis=leading)
    if mask[2] and bias is not None:
        by_bias = dt.sum(grad, axis=leading)
    return by_x, by_weight, by_bias


@lower("convolution_backward")
def convolution_backward(
    call: Call, grad: Any, x: Any, weight: Any, bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: Any, mask: Any,
) -> Any:  # fmt: skip
    if transposed:
        raise Unsupported("the gradient of a transposed convolution")
    n = weight.ndim - 2
    how = (pair(stride, n), pair(padding, n), pair(dilation, n), groups)
    by_x = nn.conv_grad_input(weight, grad, x.shape, *how) if mask[0] else None
    by_weight = nn.conv_grad_weight(x, grad, weight.shape, *how) if mask[1] else None
    by_bias = dt.sum(grad, axis=(0, *range(2, n + 2))) if mask[2] else None
    return by_x, by_weight, by_bias


@lower("embedding_dense_backward")
def embedding_backward(call: Call, grad: Any, indices: Any, rows: Any, padding: Any, scale: bool) -> Any:
    if scale:
        raise Unsupported("scale_grad_by_freq")
    indices = dt.reshape(indices, (-1,))
    grad = dt.reshape(grad, (-1, grad.shape[-1]))
    if isinstance(padding, int) and padding >= 0:
        grad = dt.where((indices == padding)[:, None], 0, grad)
    return dt.scatter(dt.zeros((rows, grad.shape[-1]), dtype=call.dtype), indices, grad, axis=0, mode="add")


@lower("native_batch_norm_backward")
def batch_norm_backward(
    call: Call, grad: Any, x: Any, weight: Any, running_mean: Any, running_var: Any, mean: Any, rstd: Any,
    training: bool, eps: float, mask: Any,
) -> Any:  # fmt: skip
    if training:
        made = nn.batch_norm_train_grad(x, grad, weight, eps=eps)
        return tuple(m if wanted else None for m, wanted in zip(made, mask))
    axes = (0, *range(2, x.ndim))
    around = (1, -1, *(1,) * (x.ndim - 2))
    factor = dt.rsqrt(running_var + eps)
    normal = (x - dt.reshape(running_mean, around)) * dt.reshape(factor, around)
    by_x = grad * dt.reshape(factor if weight is None else factor * weight, around) if mask[0] else None
    by_weight = dt.sum(grad * normal, axis=axes) if mask[1] else None
    return by_x, by_weight, dt.sum(grad, axis=axes) if mask[2] else None


@lower("leaky_relu_backward")
def leaky_relu_backward(call: Call, grad: Any, x: Any, slope: float, of_result: bool) -> Any:
    return dt.where(x > 0, grad, grad * slope)


@lower("hardtanh_backward")
def hardtanh_backward(call: Call, grad: Any, x: Any, low: float, high: float) -> Any:
    return dt.where(dt.logical_or(x <= low, x >= high), 0, grad)


@lower("hardsigmoid_backward")
def hardsigmoid_backward(call: Call, grad: Any, x: Any) -> Any:
    return dt.where(dt.logical_and(x > -3, x < 3), grad * (1 / 6), 0)


@lower("hardswish_backward")
def hardswish_backward(call: Call, grad: Any, x: Any) -> Any:
    slope = dt.where(x <= -3, 0, dt.where(x < 3, x / 3 + 0.5, 1.0))
    return grad * cast(slope, call.dtype)
