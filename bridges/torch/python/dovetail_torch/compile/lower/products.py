"""Products of matrices, convolutions and attention."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import torch
from dovetail import nn

from dovetail_torch.compile.table import Call, Unsupported, cast, lower, pair

_TRANSPOSES = (torch.ops.aten.t.default, torch.ops.aten.permute.default, torch.ops.aten.transpose.int)


@lower("mm", "bmm", "matmul", "mv", "dot")
def matmul(call: Call, x: Any, y: Any) -> Any:
    weight = _before_transpose(call, call.node.args[1])
    return dt.matmul(x, y) if weight is None or x.ndim != 2 else nn.linear(x, weight)


@lower("linear")
def linear(call: Call, x: Any, weight: Any, bias: Any = None) -> Any:
    return nn.linear(x, weight, bias)


@lower("addmm")
def add_matmul(call: Call, bias: Any, x: Any, y: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    weight = _before_transpose(call, call.node.args[2])
    if weight is not None and bias.ndim == 1 and beta == 1 and alpha == 1:
        return nn.linear(x, weight, bias)
    return _added(bias, dt.matmul(x, y), beta, alpha)


@lower("baddbmm")
def add_batched(call: Call, bias: Any, x: Any, y: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return _added(bias, dt.matmul(x, y), beta, alpha)


@lower("addmv")
def add_matvec(call: Call, bias: Any, x: Any, y: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return _added(bias, dt.matmul(x, y), beta, alpha)


def _added(bias: Any, product: Any, beta: Any, alpha: Any) -> Any:
    if product.dtype.kind != "real floating":
        beta, alpha = int(beta), int(alpha)  # as torch has it
    product = product if alpha == 1 else product * alpha
    if beta == 0:  # torch then ignores NaN in it
        return product
    return dt.add(product, bias if beta == 1 else bias * beta)


def _before_transpose(call: Call, node: Any) -> Any:
    """The weight (out, in) of a transposed one, which linear() takes as it is; None for any other operand."""
    if not isinstance(node, torch.fx.Node) or node.target not in _TRANSPOSES or node.meta["val"].ndim != 2:
        return None
    source = node.args[0]
    is_swap = tuple(node.meta["val"].stride()) == tuple(reversed(source.meta["val"].stride()))
    return call.lowering.values.get(source) if is_swap and source.meta["val"].ndim == 2 else None


@lower("outer")
def outer(call: Call, x: Any, y: Any) -> Any:
    return cast(x, call.dtype)[:, None] * cast(y, call.dtype)[None, :]


@lower("_int_mm")
def integer_product(call: Call, x: Any, y: Any) -> Any:
    return dt.matmul(x, y, dtype="int32")


# ---- convolutions ------------------------------------------------------------------------------------------------


@lower("convolution")
def convolution(
    call: Call, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: Any,
) -> Any:  # fmt: skip
    n = weight.ndim - 2
    stride, padding, dilation = pair(stride, n), pair(padding, n), pair(dilation, n)
    name = f"conv_transpose{n}d" if transposed else f"conv{n}d"
    if n not in (1, 2, 3):
        raise Unsupported(f"a convolution over {n} axes")
    if transposed:
        return getattr(nn, name)(x, weight, bias, stride, padding, pair(output_padding, n), groups, dilation)
    return getattr(nn, name)(x, weight, bias, stride, padding, dilation, groups)


@lower("conv1d", "conv2d", "conv3d", "conv1d.padding", "conv2d.padding", "conv3d.padding")
def conv(
    call: Call, x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Any:  # fmt: skip
    n = weight.ndim - 2
    batch = x if x.ndim == n + 2 else x[None]
    padding = padding if isinstance(padding, str) else pair(padding, n)
    made = getattr(nn, f"conv{n}d")(batch, weight, bias, pair(stride, n), padding, pair(dilation, n), groups)
    return made if x.ndim == n + 2 else made[0]


# ---- attention ---------------------------------------------------------------------------------------------------


def _mask(mask: Any, query: Any) -> Any:
    return mask if mask is None or mask.dtype == "bool" else cast(mask, query.dtype.name)


@lower("scaled_dot_product_attention")
def attention(
    call: Call, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    _expect_no_dropout(dropout_p)
    return nn.scaled_dot_product_attention(
        query, key, value, _mask(attn_mask, query), is_causal=is_causal, scale=scale, enable_gqa=enable_gqa
    )


@lower("_scaled_dot_product_flash_attention_for_cpu")
def attention_of_cpu(
    call: Call, query: Any, key: Any, value: Any, dropout_p: float = 0.0, is_causal: bool = False, *,
    attn_mask: Any = None, scale: float | None = None,
) -> Any:  # fmt: skip
    _expect_no_dropout(dropout_p)
    heads, key_heads = (node.meta["val"].shape[1] for node in call.node.args[:2])
    how = {"is_causal": is_causal, "scale": scale, "enable_gqa": heads != key_heads}
    mask = _mask(attn_mask, query)
    if not call.uses(1):
        return nn.scaled_dot_product_attention(query, key, value, mask, **how), None
    return nn.scaled_dot_product_attention_with_logsumexp(query, key, value, mask, **how)


@lower("_scaled_dot_product_flash_attention_for_cpu_backward")
def attention_of_cpu_backward(
    call: Call, grad: Any, query: Any, key: Any, value: Any, out: Any, logsumexp: Any, dropout_p: float,
    is_causal: bool, *, attn_mask: Any = None, scale: float | None = None,
) -> Any:  # fmt: skip
    _expect_no_dropout(dropout_p)
    heads, key_heads = (node.meta["val"].shape[1] for node in call.node.args[1:3])
    how = {"is_causal": is_causal, "scale": scale, "enable_gqa": heads != key_heads}
    return nn.scaled_dot_product_attention_grad(
        query, key, value, out, logsumexp, grad, _mask(attn_mask, query), **how
    )


@lower("_scaled_dot_product_fused_attention_overrideable")
def attention_of_device(
    call: Call, query: Any, key: Any, value: Any, attn_bias: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, return_debug_mask: bool = False, *, scale: float | None = None,
) -> Any:  # fmt: skip
    _expect_no_dropout(dropout_p)
    how = {"is_causal": is_causal, "scale": scale, "enable_gqa": _is_grouped(*call.node.args[:2])}
    mask = _mask(attn_bias, query)
    sums = None
    if call.uses(1):
        made, sums = nn.scaled_dot_product_attention_with_logsumexp(query, key, value, mask, **how)
        sums = sums if query.ndim == 4 else sums[None]
    else:
        made = nn.scaled_dot_product_attention(query, key, value, mask, **how)
    lengths, seed = (query.shape[-2], key.shape[-2]), dt.zeros((), dtype="int64")
    return made, sums, None, None, *lengths, seed, seed, None


@lower("_scaled_dot_product_fused_attention_overrideable_backward")
def attention_of_device_backward(
    call: Call, grad: Any, query: Any, key: Any, value: Any, attn_bias: Any, grad_input_mask: Any, out: Any,
    logsumexp: Any, *rest: Any, scale: float | None = None,
) -> Any:  # fmt: skip
    *_, dropout_p, is_causal, _, _ = rest
    _expect_no_dropout(dropout_p)
    if grad_input_mask[3] and attn_bias is not None:
        raise Unsupported("the gradient by attn_mask")
    how = {"is_causal": is_causal, "scale": scale, "enable_gqa": _is_grouped(*call.node.args[1:3])}
    sums = logsumexp if query.ndim == 4 else logsumexp[0]
    made = nn.scaled_dot_product_attention_grad(query, key, value, out, sums, grad, _mask(attn_bias, query), **how)
    return *made, None


def _is_grouped(query: torch.fx.Node, key: torch.fx.Node) -> bool:
    return query.meta["val"].shape[-3] != key.meta["val"].shape[-3]


def _expect_no_dropout(p: float) -> None:
    if p:
        raise Unsupported(f"dropout of {p} in attention; model.eval() leaves it out")
