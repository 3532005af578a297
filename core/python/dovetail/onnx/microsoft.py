"""Ops of com.microsoft that quantisers and exporters write, with the rules of onnxruntime's ContribOperators.md."""

from __future__ import annotations

from typing import Any

import dovetail as dt
from dovetail import nn
from dovetail.onnx.attention import both, heads, hidden_after, joined
from dovetail.onnx.layers import gemm, layer_norm_of
from dovetail.onnx.quantized import dequantize_linear, integer_conv, integer_product, quantize_linear, requantized
from dovetail.onnx.registry import MICROSOFT, Node, onnx_op
from dovetail.onnx.values import integer, is_float, widened
from dovetail.onnx.window import Geometry


def _like(node: Node, **attributes: Any) -> Node:
    """The node as one of ONNX's own ops of opset 21."""
    return node.like(node.op, {**node.attributes, **attributes}, 21)


# ---- activations and normalisation -------------------------------------------------------------------------------


@onnx_op("Gelu", domain=MICROSOFT)
def gelu(node: Node, x: Any) -> Any:
    return nn.gelu(x)


@onnx_op("BiasGelu", domain=MICROSOFT)
def bias_gelu(node: Node, x: Any, bias: Any) -> Any:
    return nn.gelu(x + bias)


@onnx_op("FastGelu", domain=MICROSOFT)
def fast_gelu(node: Node, x: Any, bias: Any = None) -> Any:
    return nn.gelu(x if bias is None else x + bias, "tanh")


@onnx_op("QuickGelu", domain=MICROSOFT)
def quick_gelu(node: Node, x: Any) -> Any:
    return x * nn.sigmoid(x * node.get("alpha", 1.702))


@onnx_op("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_norm(node: Node, x: Any, skip: Any, gamma: Any, beta: Any = None, bias: Any = None) -> Any:
    total = x + skip if bias is None else x + skip + bias
    y = layer_norm_of(total, gamma, beta, x.ndim - 1, node.get("epsilon", 1e-12))
    return y, None, None, total


@onnx_op("SimplifiedLayerNormalization", domain=MICROSOFT)
@onnx_op("SimplifiedLayerNormalization")
def simplified_layer_norm(node: Node, x: Any, scale: Any) -> Any:
    return nn.rms_norm(x, x.shape[node.get("axis", -1) % x.ndim :], scale, eps=node.get("epsilon", 1e-5))


@onnx_op("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified_layer_norm(node: Node, x: Any, skip: Any, gamma: Any, bias: Any = None) -> Any:
    total = x + skip if bias is None else x + skip + bias
    return nn.rms_norm(total, total.shape[-1:], gamma, eps=node.get("epsilon", 1e-12)), None, None, total


@onnx_op("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_norm(
    node: Node, ids: Any, segments: Any, words: Any, positions: Any, kinds: Any, gamma: Any, beta: Any,
    mask: Any = None, places: Any = None,
) -> Any:  # fmt: skip
    place = dt.take(positions, places, axis=0) if places is not None else positions[: ids.shape[1]]
    total = dt.take(words, ids, axis=0) + place
    if segments is not None:
        total = total + dt.take(kinds, segments, axis=0)
    y = layer_norm_of(total, gamma, beta, 2, node.get("epsilon", 1e-12))
    index = dt.sum(dt.astype(mask, "int32"), axis=1, dtype="int32") if mask is not None else \
        dt.zeros((ids.shape[0],), dtype="int32")  # fmt: skip
    return y, index, total


# ---- products ----------------------------------------------------------------------------------------------------


@onnx_op("FusedMatMul", "TransposeMatMul", domain=MICROSOFT, may_grow=True)
def fused_matmul(node: Node, a: Any, b: Any) -> Any:
    if node.get("transBatchA", 0) or node.get("transBatchB", 0):
        raise NotImplementedError("FusedMatMul with transBatchA or transBatchB; export the model without fusions")
    a = dt.matrix_transpose(a) if node.get("transA", 0) else a
    b = dt.matrix_transpose(b) if node.get("transB", 0) else b
    alpha = node.get("alpha", 1.0)
    y = dt.matmul(a, b)
    return y if alpha == 1.0 else y * alpha


_FUSED = {
    "Relu": lambda y, a: nn.relu(y), "Sigmoid": lambda y, a: nn.sigmoid(y), "Tanh": lambda y, a: dt.tanh(y),
    "LeakyRelu": lambda y, a: nn.leaky_relu(y, a[0]), "Clip": lambda y, a: dt.clip(y, a[0], a[1]),
    "HardSigmoid": lambda y, a: dt.clip(y * a[0] + a[1], 0.0, 1.0), "": lambda y, a: y,
}  # fmt: skip


@onnx_op("FusedGemm", domain=MICROSOFT, may_grow=True)
def fused_gemm(node: Node, a: Any, b: Any, c: Any = None) -> Any:
    slope = [node.get("activation_alpha", 0.01)]
    return _FUSED[node.get("activation", "")](gemm(_like(node), a, b, c), slope)


@onnx_op("FusedConv", domain=MICROSOFT, may_grow=True)
def fused_conv(node: Node, x: Any, weight: Any, bias: Any = None, other: Any = None) -> Any:
    from dovetail.onnx.window import convolution

    g = Geometry(node, x.shape[2:], [int(k) for k in weight.shape[2:]])
    y = convolution(g, x, weight, bias, node.get("group", 1))
    y = y if other is None else y + other
    return _FUSED[node.get("activation", "")](y, node.get("activation_params", [0.01]))


@onnx_op("MatMulNBits", domain=MICROSOFT, may_grow=True)
def matmul_n_bits(
    node: Node, a: Any, packed: Any, scales: Any, zeros: Any = None, index: Any = None, bias: Any = None
) -> Any:
    """a @ weight.T + bias, of a weight (N, K) of 2, 4 or 8 bits in blocks, the first in a byte's lowest bits."""
    k, n, block, bits = node.get("K"), node.get("N"), node.get("block_size"), node.get("bits", 4)
    if bits not in (2, 4, 8) or index is not None:
        raise NotImplementedError(
            f"MatMulNBits of {bits} bits, or with g_idx; export it with 2, 4 or 8 and without"
        )
    blocks = -(-k // block)
    weight = dt.reshape(_unpacked(dt.reshape(packed, (n, blocks, -1)), bits), (n, blocks, block))
    middle: Any = float(1 << (bits - 1))
    if zeros is not None:
        rows = dt.reshape(zeros, (n, -1))
        middle = rows if is_float(zeros) else dt.astype(_unpacked(rows, bits)[:, :blocks], scales.dtype)
        middle = dt.reshape(middle, (n, blocks, 1))
    wide = (dt.astype(weight, scales.dtype) - middle) * dt.reshape(scales, (n, blocks, 1))
    wide = dt.astype(dt.reshape(wide, (n, blocks * block))[:, :k], a.dtype)
    return nn.linear(a, wide, bias)


def _unpacked(x: Any, bits: int) -> Any:
    """Bytes (..., n) as their parts (..., n * 8 / bits)."""
    if bits == 8:
        return x
    parts = [dt.bitwise_and(dt.bitwise_right_shift(x, at), (1 << bits) - 1) for at in range(0, 8, bits)]
    return dt.reshape(dt.stack(parts, axis=-1), (*x.shape[:-1], -1))


# ---- quantised ---------------------------------------------------------------------------------------------------


@onnx_op("QuantizeLinear", domain=MICROSOFT)
def ms_quantize(node: Node, x: Any, scale: Any, zero: Any = None) -> Any:
    return quantize_linear(_like(node), x, scale, zero)


@onnx_op("DequantizeLinear", domain=MICROSOFT, may_grow=True)
def ms_dequantize(node: Node, x: Any, scale: Any, zero: Any = None) -> Any:
    return dequantize_linear(_like(node), x, scale, zero)


@onnx_op("DynamicQuantizeMatMul", domain=MICROSOFT, may_grow=True)
def dynamic_quantize_matmul(node: Node, a: Any, b: Any, b_scale: Any, b_zero: Any = None, bias: Any = None) -> Any:
    from dovetail.onnx.quantized import dynamic_quantize_linear

    rows, scale, zero = dynamic_quantize_linear(node, a)
    y = dt.astype(integer_product(rows, b, zero, b_zero), "float32") * (scale * b_scale)
    return y if bias is None else y + bias


@onnx_op("MatMulIntegerToFloat", domain=MICROSOFT, may_grow=True)
def matmul_integer_to_float(
    node: Node, a: Any, b: Any, a_scale: Any, b_scale: Any, a_zero: Any = None, b_zero: Any = None, bias: Any = None
) -> Any:
    a_scale = dt.reshape(a_scale, (-1, 1)) if a_scale.ndim == 1 and int(a_scale.shape[0]) > 1 else a_scale
    y = dt.astype(integer_product(a, b, a_zero, b_zero), "float32") * (a_scale * b_scale)
    return dt.astype(y if bias is None else y + bias, a_scale.dtype)


@onnx_op("QGemm", domain=MICROSOFT, may_grow=True)
def q_gemm(
    node: Node, a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, c: Any = None,
    y_scale: Any = None, y_zero: Any = None,
) -> Any:  # fmt: skip
    """alpha * A @ B + C, with C in steps of alpha * a_scale * b_scale; float without y_scale."""
    a = dt.matrix_transpose(a) if node.get("transA", 0) else a
    b = dt.matrix_transpose(b) if node.get("transB", 0) else b
    acc = integer_product(a, b, a_zero, b_zero)
    acc = acc if c is None else acc + c
    factor = a_scale * b_scale * node.get("alpha", 1.0)
    if y_scale is None:
        return dt.astype(acc, "float32") * factor
    return requantized(acc, factor / y_scale, y_zero)


@onnx_op("QLinearConv", domain=MICROSOFT, may_grow=True)
def ms_qlinear_conv(
    node: Node, x: Any, x_scale: Any, x_zero: Any, w: Any, w_scale: Any, w_zero: Any, y_scale: Any, y_zero: Any,
    bias: Any = None,
) -> Any:  # fmt: skip
    last = bool(node.get("channels_last", 0))
    x = dt.moveaxis(x, -1, 1) if last else x
    from dovetail.onnx.quantized import qlinear_conv

    y = qlinear_conv(node, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias)
    return dt.moveaxis(y, 1, -1) if last else y


@onnx_op("ConvInteger", domain=MICROSOFT, may_grow=True)
def ms_conv_integer(node: Node, x: Any, w: Any, x_zero: Any = None, w_zero: Any = None) -> Any:
    return integer_conv(node, x, w, x_zero, w_zero)


def _wide(x: Any, scale: Any, zero: Any) -> Any:
    return dt.dequantize(x, scale, None if zero is None else widened(zero))


def _narrow(y: Any, scale: Any, zero: Any, like: Any) -> Any:
    return dt.quantize(y, scale, zero, dtype=like.dtype.name)


@onnx_op("QLinearAdd", "QLinearMul", domain=MICROSOFT, may_grow=True)
def qlinear_binary(
    node: Node,
    a: Any,
    a_scale: Any,
    a_zero: Any,
    b: Any,
    b_scale: Any,
    b_zero: Any,
    y_scale: Any,
    y_zero: Any = None,
) -> Any:
    x, y = _wide(a, a_scale, a_zero), _wide(b, b_scale, b_zero)
    return _narrow(x + y if node.op == "QLinearAdd" else x * y, y_scale, y_zero, a)


@onnx_op("QLinearSigmoid", "QLinearLeakyRelu", domain=MICROSOFT)
def qlinear_unary(node: Node, x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any = None) -> Any:
    wide = _wide(x, x_scale, x_zero)
    y = nn.sigmoid(wide) if node.op == "QLinearSigmoid" else nn.leaky_relu(wide, node.get("alpha", 0.01))
    return _narrow(y, y_scale, y_zero, x)


@onnx_op("QLinearSoftmax", domain=MICROSOFT)
def qlinear_softmax(node: Node, x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any = None) -> Any:
    from dovetail.onnx.registry import find_handler

    handler = find_handler("", "Softmax", node.get("opset", 13))
    wide = _wide(x, x_scale, x_zero)
    made = handler.fn(node.like("Softmax", {"axis": node.get("axis", -1)}, node.get("opset", 13)), wide)
    return _narrow(made, y_scale, y_zero, x)


@onnx_op("QLinearConcat", domain=MICROSOFT)
def qlinear_concat(node: Node, y_scale: Any, y_zero: Any, *parts: Any) -> Any:
    rows = [_wide(*parts[i : i + 3]) for i in range(0, len(parts), 3)]
    return _narrow(dt.concat(rows, axis=node.get("axis")), y_scale, y_zero, parts[0])


@onnx_op("QLinearGlobalAveragePool", domain=MICROSOFT)
def qlinear_global_average_pool(node: Node, x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any) -> Any:
    last = bool(node.get("channels_last", 0))
    axes = tuple(range(1, x.ndim - 1)) if last else tuple(range(2, x.ndim))
    return _narrow(dt.mean(_wide(x, x_scale, x_zero), axis=axes, keepdims=True), y_scale, y_zero, x)


@onnx_op("QLinearAveragePool", domain=MICROSOFT)
def qlinear_average_pool(node: Node, x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any = None) -> Any:
    from dovetail.onnx.window import average_pool

    last = bool(node.get("channels_last", 0))
    wide = _wide(x, x_scale, x_zero)
    y = average_pool(_like(node), dt.moveaxis(wide, -1, 1) if last else wide)
    return _narrow(dt.moveaxis(y, 1, -1) if last else y, y_scale, y_zero, x)


@onnx_op("QLinearReduceMean", domain=MICROSOFT)
def qlinear_reduce_mean(node: Node, x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any) -> Any:
    y = dt.mean(_wide(x, x_scale, x_zero), axis=tuple(node.get("axes")), keepdims=bool(node.get("keepdims", 1)))
    return _narrow(y, y_scale, y_zero, x)


@onnx_op("QLinearWhere", domain=MICROSOFT)
def qlinear_where(node: Node, condition: Any, *given: Any) -> Any:
    x, y = _wide(*given[:3]), _wide(*given[3:6])
    return _narrow(dt.where(condition, x, y), given[6], given[7], given[0])


# ---- attention ---------------------------------------------------------------------------------------------------


def _mask_of(given: Any, rows: Any, columns: Any) -> Any:
    """A mask that broadcasts to scores, of lengths (batch,), of integers (batch, columns), or a full one."""
    if given is None:
        return None
    if given.ndim == 1:
        return dt.arange(columns) < dt.reshape(dt.astype(given, "int64"), (-1, 1, 1, 1))
    seen = given != 0 if given.dtype != "bool" else given
    return dt.expand_dims(seen, axis=(1, 2)) if given.ndim == 2 else dt.expand_dims(seen, axis=1)


@onnx_op("Attention", domain=MICROSOFT)
def ms_attention(
    node: Node, x: Any, weight: Any, bias: Any = None, mask: Any = None, past: Any = None, extra: Any = None
) -> Any:
    """Attention of x (batch, sequence, size) with query, key and value from one product."""
    n = node.get("num_heads")
    sizes = node.get("qkv_hidden_sizes") or [weight.shape[1] // 3] * 3
    y = dt.matmul(x, weight)
    y = y if bias is None else y + bias
    q, k, v = (heads(y[..., a : a + m], n) for a, m in zip((0, sizes[0], sizes[0] + sizes[1]), sizes))
    offset = 0
    if past is not None:
        offset = past.shape[3]
        k, v = dt.concat([past[0], k], axis=2), dt.concat([past[1], v], axis=2)
    present = dt.stack([k, v], axis=0) if node.wants(1) else None
    return joined(_attended(node, q, k, v, _mask_of(mask, q.shape[2], k.shape[2]), extra, offset)), present


@onnx_op("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(
    node: Node, q: Any, k: Any = None, v: Any = None, bias: Any = None, mask: Any = None, extra: Any = None,
    past_k: Any = None, past_v: Any = None,
) -> Any:  # fmt: skip
    n = node.get("num_heads")
    q, k, v = _query_key_value(q, k, v)
    if bias is not None:
        size = q.shape[-1]
        q = q + bias[:size]
        if k.ndim == 3:
            k, v = k + bias[size : size + k.shape[-1]], v + bias[size + k.shape[-1] :]
    q = heads(q, n)
    k, v = (heads(t, n) if t.ndim == 3 else t for t in (k, v))
    offset = 0
    if past_k is not None:
        offset = past_k.shape[2]
        k, v = dt.concat([past_k, k], axis=2), dt.concat([past_v, v], axis=2)
    return joined(_attended(node, q, k, v, _mask_of(mask, q.shape[2], k.shape[2]), extra, offset)), k, v


def _query_key_value(q: Any, k: Any, v: Any) -> tuple[Any, Any, Any]:
    """The three operands. q may hold all, as (batch, sequence, heads, 3, size), or k also v, as (..., 2, size)."""

    def part(x: Any, i: int) -> Any:
        return dt.reshape(x[..., i, :], (*x.shape[:2], -1))

    if q.ndim == 5:
        return part(q, 0), part(q, 1), part(q, 2)
    if k is None:
        raise ValueError("got no key, and a query of 3 axes; expected a packed query of 5 axes")
    if k.ndim == 5:
        return q, part(k, 0), part(k, 1)
    if v is None:
        raise ValueError(f"got no value, and a key of {k.ndim} axes; expected a packed key of 5 axes")
    return q, k, v


def _attended(node: Node, q: Any, k: Any, v: Any, mask: Any, extra: Any, offset: Any) -> Any:
    hidden = mask
    if node.get("unidirectional", 0):
        hidden = both(hidden, hidden_after(q.shape[2], k.shape[2], offset))
    if extra is not None:
        hidden = extra if hidden is None else both(extra, hidden)
    scale = node.get("scale") or None
    return nn.scaled_dot_product_attention(q, k, v, hidden, scale=scale, enable_gqa=q.shape[1] != k.shape[1])


@onnx_op("GroupQueryAttention", domain=MICROSOFT, numbers=(6,))
def group_query_attention(
    node: Node, q: Any, k: Any, v: Any, past_k: Any, past_v: Any, lengths: Any, total: Any, cos: Any = None,
    sin: Any = None, positions: Any = None, extra: Any = None,
) -> Any:  # fmt: skip
    """Attention with a cache that ends where the new keys begin; lengths + 1 keys of each batch count."""
    n, groups = node.get("num_heads"), node.get("kv_num_heads")
    if node.get("local_window_size", -1) >= 0 or node.get("softcap", 0.0):
        raise NotImplementedError("GroupQueryAttention with a window or soft cap; export the model without")
    if k is None:
        size = q.shape[-1] // (n + 2 * groups)
        q, k, v = q[..., : n * size], q[..., n * size : (n + groups) * size], q[..., (n + groups) * size :]
    q, k, v = heads(q, n), heads(k, groups), heads(v, groups)
    before = past_k.shape[2] if past_k is not None else 0
    if node.get("do_rotary", 0):
        place = positions if positions is not None else dt.reshape(dt.arange(q.shape[2]) + before, (1, -1))
        tables = [dt.expand_dims(dt.take(t, place, axis=0), axis=1) for t in (cos, sin)]
        how = {"interleaved": bool(node.get("rotary_interleaved", 0))}
        q, k = nn.rotary_embedding(q, *tables, **how), nn.rotary_embedding(k, *tables, **how)
    if past_k is not None:
        k, v = dt.concat([past_k, k], axis=2), dt.concat([past_v, v], axis=2)
    seen = dt.arange(k.shape[2]) <= dt.reshape(dt.astype(lengths, "int64"), (-1, 1, 1, 1))
    mask = both(hidden_after(q.shape[2], k.shape[2], before), seen)
    mask = mask if extra is None else both(extra, mask)
    scale = node.get("scale") or None
    return joined(nn.scaled_dot_product_attention(q, k, v, mask, scale=scale, enable_gqa=n != groups)), k, v


@onnx_op("RotaryEmbedding", domain=MICROSOFT)
def ms_rotary_embedding(node: Node, x: Any, positions: Any, cos: Any, sin: Any) -> Any:
    """Positions are (batch, sequence), or one number: that of the first element."""
    flat = x.ndim == 3
    if flat:
        size = node.get("rotary_embedding_dim", 0) or 2 * int(cos.shape[-1])
        x = heads(x, node.get("num_heads", 0) or x.shape[2] // size)
    if positions.ndim == 1:
        positions = dt.reshape(positions, (1, 1)) + dt.reshape(dt.arange(x.shape[2]), (1, -1))
    cos, sin = (dt.expand_dims(dt.take(t, positions, axis=0), axis=1) for t in (cos, sin))
    y = nn.rotary_embedding(x, cos, sin, interleaved=bool(node.get("interleaved", 0)))
    return joined(y) if flat else y


@onnx_op("Inverse", domain=MICROSOFT)
def inverse(node: Node, x: Any) -> Any:
    return dt.linalg.inv(x)


@onnx_op("Trilu", domain=MICROSOFT, numbers=(1,))
def ms_trilu(node: Node, x: Any, k: Any = None) -> Any:
    diagonal = integer(k) if k is not None else 0
    return (dt.triu if node.get("upper", 1) else dt.tril)(x, k=diagonal)
