"""Norms and softmax."""

from __future__ import annotations

from typing import Any

import dovetail as dt
from dovetail import nn

from dovetail_torch.compile.table import Call, Unsupported, axis_of, cast, dtype_name, lower


@lower("softmax.int", "_softmax", "_safe_softmax")
def softmax(call: Call, x: Any, dim: int, dtype: Any = None) -> Any:
    x = cast(x, call.dtype)
    made = nn.softmax(x, axis_of(dim, x.ndim)) if x.ndim else dt.ones((), dtype=call.dtype)
    if call.node.target.overloadpacket.__name__ != "_safe_softmax":
        return made
    hidden = dt.all(dt.equal(x, -float("inf")), axis=axis_of(dim, x.ndim), keepdims=True)
    return dt.where(hidden, 0.0, made)


@lower("log_softmax.int", "_log_softmax")
def log_softmax(call: Call, x: Any, dim: int, dtype: Any = None) -> Any:
    x = cast(x, call.dtype)
    return nn.log_softmax(x, axis_of(dim, x.ndim)) if x.ndim else dt.zeros((), dtype=call.dtype)


@lower("layer_norm")
def layer_norm(
    call: Call, x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, cudnn: bool = True
) -> Any:
    return nn.layer_norm(x, tuple(shape), weight, bias, eps)


@lower("native_layer_norm")
def layer_norm_with_moments(call: Call, x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    made = nn.layer_norm(x, tuple(shape), weight, bias, eps)
    if not (call.uses(1) or call.uses(2)):
        return made, None, None
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    mean = dt.mean(x, axis=axes, keepdims=True)
    return made, mean, dt.rsqrt(dt.var(x, axis=axes, keepdims=True) + eps)


@lower("rms_norm")
def rms_norm(call: Call, x: Any, shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    return nn.rms_norm(x, tuple(shape), weight, eps)


@lower("_fused_rms_norm")
def rms_norm_with_moment(call: Call, x: Any, shape: Any, weight: Any, eps: float | None) -> Any:
    made = nn.rms_norm(x, tuple(shape), weight, eps)
    if not call.uses(1):
        return made, None
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    least = dt.finfo(x.dtype).eps if eps is None else eps
    return made, dt.rsqrt(dt.mean(dt.square(x), axis=axes, keepdims=True) + least)


@lower("group_norm")
def group_norm(
    call: Call, x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, cudnn: bool = True
) -> Any:
    return nn.group_norm(x, groups, weight, bias, eps)


@lower("native_group_norm")
def group_norm_with_moments(
    call: Call, x: Any, weight: Any, bias: Any, n: Any, c: Any, hw: Any, groups: int, eps: float
) -> Any:
    made = nn.group_norm(x, groups, weight, bias, eps)
    if not (call.uses(1) or call.uses(2)):
        return made, None, None
    rows = dt.reshape(x, (n, groups, c // groups * hw))
    return made, dt.mean(rows, axis=-1), dt.rsqrt(dt.var(rows, axis=-1) + eps)


@lower("batch_norm")
def batch_norm(
    call: Call, x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float,
    cudnn: bool = True,
) -> Any:  # fmt: skip
    if training:
        raise Unsupported(
            "batch_norm in training mode, which writes to its buffers; model.eval() makes it read them"
        )
    return nn.batch_norm(x, mean, var, weight, bias, eps=eps)


@lower("_native_batch_norm_legit_no_training")
def batch_norm_of_buffers(
    call: Call, x: Any, weight: Any, bias: Any, mean: Any, var: Any, momentum: float, eps: float
) -> Any:
    made = nn.batch_norm(x, mean, var, weight, bias, eps=eps)
    if not (call.uses(1) or call.uses(2)):
        return made, None, None
    saved = call.node.meta["val"][1]
    if saved.shape[0] == 0:  # on the CPU torch saves nothing: the gradient reads the buffers
        return made, *(dt.zeros((0,), dtype=dtype_name(saved.dtype)) for _ in range(2))
    return made, mean, dt.rsqrt(var + eps)


@lower("_native_batch_norm_legit_functional")
def batch_norm_of_batch(
    call: Call, x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float
) -> Any:
    if not training:
        made, *none = batch_norm_of_buffers(call, x, weight, bias, mean, var, momentum, eps)
        return made, *none, mean, var
    made, batch_mean, batch_var = nn.batch_norm_train(x, weight, bias, eps=eps)
    count = x.size / x.shape[1]
    unbiased = batch_var * (count / (count - 1))
    moved = mean + (batch_mean - mean) * momentum, var + (unbiased - var) * momentum
    return made, batch_mean, dt.rsqrt(batch_var + eps), *moved
