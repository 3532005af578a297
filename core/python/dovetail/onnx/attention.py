"""Attention and rotary embeddings, by the ops of the schema where these have the rule."""

from __future__ import annotations

from typing import Any

import dovetail as dt
from dovetail import nn
from dovetail.onnx.registry import Node, onnx_op


def heads(x: Any, n: int) -> Any:
    """(batch, sequence, n * size) as (batch, n, sequence, size)."""
    return dt.permute_dims(dt.reshape(x, (x.shape[0], x.shape[1], n, -1)), (0, 2, 1, 3))


def joined(x: Any) -> Any:
    """(batch, n, sequence, size) as (batch, sequence, n * size)."""
    b, n, length, size = x.shape
    return dt.reshape(dt.permute_dims(x, (0, 2, 1, 3)), (b, length, n * size))


def hidden_after(rows: Any, columns: Any, offset: Any) -> Any:
    """A mask (..., rows, columns): row i sees columns up to i + offset, a number or (batch, 1, 1, 1)."""
    i = dt.reshape(dt.arange(rows), (-1, 1))
    return dt.arange(columns) <= i + offset


def both(mask: Any, other: Any) -> Any:
    """A mask of bools, or one that is added, and another one of bools."""
    if mask is None:
        return other
    return dt.logical_and(mask, other) if mask.dtype == "bool" else dt.where(other, mask, -float("inf"))


def _as_long(mask: Any, n: Any) -> Any:
    """A mask whose last axis may be shorter than the keys: what it lacks is hidden."""
    if mask is None or type(mask.shape[-1]) is not type(n) or mask.shape[-1] is n or mask.shape[-1] == n:
        return mask
    missing = n - mask.shape[-1]
    if mask.dtype == "bool":
        return dt.astype(nn.pad(dt.astype(mask, "uint8"), (0, missing)), "bool")
    return nn.pad(mask, (0, missing), value=-float("inf"))


@onnx_op("Attention", since=23)
def attention(
    node: Node, q: Any, k: Any, v: Any, mask: Any = None, past_k: Any = None, past_v: Any = None, length: Any = None
) -> Any:
    windowed = node.get("left_window_size", -1) >= 0 or node.get("right_window_size", -1) >= 0
    if node.get("softcap", 0.0) or node.wants(3) or windowed:  # the scores are changed, or wanted
        return node.importer.by_definition(node, (q, k, v, mask, past_k, past_v, length))
    flat = q.ndim == 3
    if flat:
        q, k, v = (heads(x, node.get(f"{n}_num_heads")) for x, n in ((q, "q"), (k, "kv"), (v, "kv")))
    before = 0
    if past_k is not None:
        before = past_k.shape[2]
        k, v = dt.concat([past_k, k], axis=2), dt.concat([past_v, v], axis=2)
    rows, columns = q.shape[2], k.shape[2]
    mask = _as_long(mask, columns)
    causal = bool(node.get("is_causal", 0))
    if causal and (past_k is not None or length is not None):
        offset = before if length is None else dt.reshape(dt.astype(length, "int64"), (-1, 1, 1, 1)) - rows
        mask, causal = both(mask, hidden_after(rows, columns, offset)), False
    y = nn.scaled_dot_product_attention(
        q, k, v, mask, is_causal=causal, scale=node.get("scale"), enable_gqa=q.shape[1] != k.shape[1],
        kv_length=length,
    )  # fmt: skip
    return (joined(y) if flat else y), k, v


@onnx_op("RotaryEmbedding", since=23)
def rotary_embedding(node: Node, x: Any, cos: Any, sin: Any, positions: Any = None) -> Any:
    flat = x.ndim == 3
    if flat:
        x = heads(x, node.get("num_heads"))
    if positions is not None:
        cos, sin = dt.take(cos, positions, axis=0), dt.take(sin, positions, axis=0)
    cos, sin = dt.expand_dims(cos, axis=1), dt.expand_dims(sin, axis=1)
    size = node.get("rotary_embedding_dim", 0)
    if size:
        cos, sin = cos[..., : size // 2], sin[..., : size // 2]
    y = nn.rotary_embedding(x, cos, sin, interleaved=bool(node.get("interleaved", 0)))
    return joined(y) if flat else y
