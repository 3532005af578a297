"""The gradient of attention."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .. import dtypes as dt
from ..declare import Raw, Tensor, op
from ..lazy_numpy import np
from ..samples import Draw, Sample, draw, given, mask, sample
from ._float import INF
from .attention import _dropped, _heads, _score_slack, _scores, dropped, head_product, masked_scores
from .primitives import astype, dot_slack, equal, exp, less, matmul, multiply, sum_, where
from .random import KEY, uniform
from .views import expand_dims, matrix_transpose, reshape


def _heads_of(x, key):
    """The sum over the query heads that each of key serves."""
    if key.ndim < 3 or x.shape[-3] == key.shape[-3]:
        return x
    heads = key.shape[-3]
    return np.sum(np.reshape(x, (*x.shape[:-3], heads, x.shape[-3] // heads, *x.shape[-2:])), -3)


def _weights_at(query, key, logsumexp, attn_mask, is_causal, scale):
    at = np.where(np.isinf(logsumexp), 0, logsumexp)[..., None]
    return np.exp(_scores(query, key, attn_mask, is_causal, scale, None) - at)


def _products(query, key, grad, weights, by_scores, scale):
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    by_query = np.matmul(by_scores, _heads(key, query)) * scale
    by_key = _heads_of(np.matmul(np.swapaxes(by_scores, -1, -2), query), key) * scale
    return by_query, by_key, _heads_of(np.matmul(np.swapaxes(weights, -1, -2), grad), key)


def _attention_grad(
    query, key, value, out, logsumexp, grad, attn_mask, dropout_key, is_causal, scale, enable_gqa, dropout_p
):
    p = _weights_at(query, key, logsumexp, attn_mask, is_causal, scale)
    by_weights = np.matmul(grad, np.swapaxes(_heads(value, query), -1, -2))
    weights = p
    if dropout_p:
        weights, by_weights = (_dropped(x, dropout_key, dropout_p) for x in (p, by_weights))
    by_scores = p * (by_weights - np.sum(grad * out, -1, keepdims=True))
    return _products(query, key, grad, weights, by_scores, scale)


def _attention_grad_scale(query, key, value, out, logsumexp, grad, attn_mask, dropout_key, is_causal, scale, **how):
    """Each weight's error is that of its score and of logsumexp; the sums' come on top."""
    p = _weights_at(query, key, logsumexp, attn_mask, is_causal, scale)
    p = p / (1 - how["dropout_p"] if how["dropout_p"] < 1 else 1)
    p = p * (_score_slack(query, key, scale) + np.max(np.abs(logsumexp), initial=0, where=np.isfinite(logsumexp)))
    query, key, value, out, grad = (np.abs(x) for x in (query, key, value, out, grad))
    by_scores = np.matmul(grad, np.swapaxes(_heads(value, query), -1, -2)) + np.sum(grad * out, -1, keepdims=True)
    slack = dot_slack(max(query.shape[-2], key.shape[-2], *value.shape[-1:]))
    return tuple(x * slack for x in _products(query, key, grad, p, p * by_scores, scale and abs(scale)))


def _attention_grad_samples() -> Iterator[Sample]:
    def heads(queries: int, keys: int, values: int = 16, key_heads: int = 4, size: int = 16) -> tuple[Draw, ...]:
        """Weights are not much larger than a softmax's: kernels may round them to float16."""
        q, kv = (2, 4, queries), (2, key_heads, keys)
        query, key = draw(*q, size, low=-1, high=1), draw(*kv, size, low=-1, high=1)
        return query, key, draw(*kv, values), draw(*q, values), logsumexp(*q), draw(*q, values)

    def logsumexp(*shape: int) -> Draw:
        return draw(*shape, low=2, high=4, wide=True)

    yield sample("heads", *heads(9, 11))
    yield sample("value_size", *heads(5, 7, values=24))
    yield sample("causal", *heads(17, 17), is_causal=True)
    yield sample("causal_wide", *heads(9, 11), is_causal=True)
    yield sample("long", *heads(130, 70, size=8), is_causal=True)
    yield sample("bool_mask", *heads(9, 11), mask(9, 11))
    yield sample("float_mask", *heads(9, 11), draw(2, 1, 9, 11))
    q, k, v, out, _, grad = heads(9, 11)
    hidden = given([-INF] * 72, 2, 4, 9)._replace(wide=True)
    yield sample("masked_row", q, k, v, out, hidden, grad, given([False], 1, 1, dtype=dt.bool_))
    yield sample("narrow_logsumexp", q, k, v, out, draw(2, 4, 9, low=2, high=4), grad)
    yield sample("scale", *heads(9, 11), scale=0.25)
    yield sample("grouped", *heads(9, 11, key_heads=2), enable_gqa=True)
    yield sample("one_key_head", *heads(5, 5, key_heads=1), enable_gqa=True, is_causal=True)
    yield sample("no_keys", *heads(3, 0))
    yield sample("no_queries", *heads(0, 3))
    plain = draw(9, 16, low=-1, high=1), draw(11, 16, low=-1, high=1), draw(11, 24), draw(9, 24), logsumexp(9)
    yield sample("plain", *plain, draw(9, 24))
    yield sample("dropout", *heads(9, 11), dropout_p=0.25, dropout_key=KEY)
    yield sample("dropout_grouped", *heads(5, 5, key_heads=2), enable_gqa=True, dropout_p=0.75, dropout_key=KEY)
    yield sample("dropout_all", *heads(5, 7), dropout_p=1.0, dropout_key=KEY)
    yield sample("dropout_without_key", *heads(5, 7), dropout_p=0.25, error=ValueError)
    yield sample("out_mismatch", q, k, v, draw(2, 4, 9, 8), draw(2, 4, 9), grad, error=ValueError)
    yield sample("logsumexp_mismatch", q, k, v, out, draw(2, 4, 11), grad, error=ValueError)
    yield sample("grad_mismatch", q, k, v, out, draw(2, 4, 9), draw(9, 16), error=ValueError)
    of_integers = given([1] * 72, 2, 4, 9, dtype=dt.int32)
    yield sample("logsumexp_of_integers", q, k, v, out, of_integers, grad, error=TypeError)


def _per_key_head(x: Tensor, key: Tensor) -> Tensor:
    """(..., heads, L, n) as (..., key heads, rows of all query heads that each serves, n)."""
    if key.ndim < 3 or x.shape[-3] == key.shape[-3]:
        return x
    heads = key.shape[-3]
    return reshape(x, (*x.shape[:-3], heads, (x.shape[-3] // heads) * x.shape[-2], x.shape[-1]))


def _transposed_product(x: Tensor, y: Tensor, key: Tensor) -> Tensor:
    return matmul(matrix_transpose(_per_key_head(x, key)), _per_key_head(y, key))


@op(
    shape="attention_grad",
    dtype="floats",
    autocast="lower",
    tier="extended",
    tol=6,
    n_out=3,
    reference=_attention_grad,
    scale=_attention_grad_scale,
    samples=_attention_grad_samples,
    space="nn",
)
def scaled_dot_product_attention_grad(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Raw,
    grad: Tensor,
    attn_mask: Raw | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    dropout_p: float = 0.0,
    dropout_key: Raw | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of scaled_dot_product_attention_with_logsumexp by query, key and value.

    out and logsumexp are its results for the other arguments, which are those of that call; grad is the gradient of
    some loss by out, and has its shape. The weights are computed again, as exp(scores - logsumexp): the second
    pass of FlashAttention (Dao et al. 2022, arXiv:2205.14135, algorithm 4).
    """
    last = query.ndim - 1
    at = expand_dims(astype(logsumexp, query.dtype), axis=last)
    p = exp(masked_scores(query, key, attn_mask, is_causal, scale) - where(equal(at, -INF), 0.0, at))
    by_weights = head_product(grad, matrix_transpose(value))
    weights = p
    if dropout_p:
        hit = less(uniform(dropout_key, p.shape, dt.float32), dropout_p)
        weights, by_weights = dropped(p, hit, dropout_p), dropped(by_weights, hit, dropout_p)
    by_scores = multiply(p * (by_weights - sum_(grad * out, axis=(last,), keepdims=True)), scale)
    by_key, by_value = _transposed_product(by_scores, query, key), _transposed_product(weights, grad, key)
    return head_product(by_scores, key), by_key, by_value
