"""Attention: the op of inference, the one that a backward pass and dropout need, and one of packed sequences."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .. import dtypes as dt
from ..declare import Index, Raw, Tensor, op
from ..lazy_numpy import np
from ..samples import Draw, Sample, draw, given, mask, sample
from ._float import INF
from .primitives import add, astype, dot_slack, equal, exp, iota, less, log, matmul, max_, multiply, sum_, where
from .random import CARRY, KEY, philox_words, uniform
from .reduction import finite_max
from .views import expand_dims, matrix_transpose, permute_dims, reshape, squeeze


def _scores(query, key, attn_mask, is_causal, scale, seen):
    """The scores, -inf where they are masked, and grouped keys made as many as the query's heads."""
    size = query.shape[-1]
    s = np.matmul(query, np.swapaxes(_heads(key, query), -1, -2)) * (
        1 / math.sqrt(size) if scale is None else scale
    )
    if is_causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    if attn_mask is not None:
        s = np.where(attn_mask, s, -np.inf) if attn_mask.dtype.kind == "b" else s + attn_mask
    return s if seen is None else np.where(seen, s, -np.inf)


def _heads(x, query):
    if x.ndim < 3 or query.ndim < 3 or x.shape[-3] in (1, query.shape[-3]):
        return x
    return np.repeat(x, query.shape[-3] // x.shape[-3], axis=-3)


def _weights(query, key, attn_mask, is_causal, scale, seen=None):
    """softmax of the scores, and the logarithm of what it divides by."""
    s = _scores(query, key, attn_mask, is_causal, scale, seen)
    m = np.max(s, axis=-1, keepdims=True, initial=-np.inf)
    m = np.where(np.isinf(m), 0, m)
    e = np.exp(s - m)
    total = np.sum(e, axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total), np.squeeze(np.log(total) + m, -1)


def _attention(query, key, value, attn_mask, kv_length, is_causal, scale, enable_gqa):
    seen = None
    if kv_length is not None:
        lengths = np.reshape(kv_length, (*np.shape(kv_length), *(1,) * (key.ndim - np.ndim(kv_length))))
        seen = np.arange(key.shape[-2]) < lengths
        key, value = (np.where(np.swapaxes(seen, -1, -2), x, 0) for x in (key, value))
    return np.matmul(_weights(query, key, attn_mask, is_causal, scale, seen)[0], _heads(value, query))


def _score_slack(query, key, scale):
    """Errors of a score weigh as much as the score: those of its sum of products, and of the largest one's."""
    size = query.shape[-1]
    terms = np.matmul(np.abs(query), np.swapaxes(np.abs(_heads(key, query)), -1, -2))
    terms = terms * (1 / math.sqrt(size) if scale is None else abs(scale))
    return max(1, np.max(terms, initial=1, where=np.isfinite(terms)) / 2 * dot_slack(size))


def _attention_scale(query, key, value, attn_mask, kv_length, is_causal, scale, enable_gqa):
    size = _attention(query, key, np.abs(value), attn_mask, kv_length, is_causal, scale, enable_gqa)
    return size * _score_slack(query, key, scale)


def _attention_samples() -> Iterator[Sample]:
    heads = draw(2, 4, 9, 16), draw(2, 4, 11, 16), draw(2, 4, 11, 16)
    square = draw(2, 4, 17, 16), draw(2, 4, 17, 16), draw(2, 4, 17, 16)
    yield sample("heads", *heads)
    yield sample("causal", *square, is_causal=True)
    yield sample("causal_wide", *heads, is_causal=True)
    yield sample("causal_long", *[draw(1, 1, 530, 8)] * 3, is_causal=True)
    yield sample("bool_mask", *heads, mask(9, 11))
    yield sample("head_mask", *heads, mask(2, 4, 9, 11))
    yield sample("float_mask", *heads, draw(2, 1, 9, 11))
    yield sample("masked_row", *heads, given([False], 1, 1, dtype=dt.bool_))
    unseen = draw(3, 2), given([1.0, 2.0, math.nan, 1.0, math.inf, -INF], 3, 2), draw(3, 5)
    yield sample("hidden_nan", *unseen, given([True, False, False], 1, 3, dtype=dt.bool_), only=dt.FLOATS)
    yield sample("scale", *heads, scale=0.5)
    yield sample("grouped", draw(2, 4, 9, 16), draw(2, 2, 11, 16), draw(2, 2, 11, 16), enable_gqa=True)
    yield sample(
        "grouped_causal", draw(1, 6, 5, 8), draw(1, 2, 5, 8), draw(1, 2, 5, 8), is_causal=True, enable_gqa=True
    )
    yield sample("plain", draw(9, 16), draw(11, 16), draw(11, 24))
    yield sample("mismatch", draw(9, 16), draw(11, 8), draw(11, 8), error=ValueError)


def _kv_length_samples() -> Iterator[Sample]:
    heads = draw(2, 4, 9, 16), draw(2, 4, 11, 16), draw(2, 4, 11, 16)
    for n in (0, 1, 7, 11, 12):
        yield sample(f"kv_length_{n}", *heads, kv_length=_length(n))
    widened = (dt.float32, dt.float64)  # devices of a profile without int64 need not convert int32 to it
    yield sample("kv_length_int32", *heads, kv_length=_length(5, dt.int32), only=widened)
    yield sample("kv_length_negative", *heads, kv_length=_length(-2))
    yield sample("kv_length_number", *heads, kv_length=6)
    yield sample("kv_length_batch", *heads, kv_length=given([3, 10], dtype=dt.int64))
    yield sample("kv_length_causal", *heads, is_causal=True, kv_length=_length(4))
    yield sample("kv_length_bool_mask", *heads, mask(9, 11), kv_length=_length(6))
    yield sample("kv_length_float_mask", *heads, draw(2, 1, 9, 11), kv_length=given([6, 2], dtype=dt.int64))
    grouped = draw(2, 6, 1, 8), draw(2, 2, 40, 8), draw(2, 2, 40, 8)
    yield sample("kv_length_decode", *grouped, enable_gqa=True, kv_length=given([17, 33], dtype=dt.int64))
    yield sample("kv_length_long", draw(1, 2, 3, 8), *[draw(1, 2, 1100, 8)] * 2, kv_length=_length(700))
    yield sample("kv_length_plain", draw(9, 16), draw(11, 16), draw(11, 24), kv_length=_length(8))
    behind = draw(3, 2), given([1.0, 2.0, math.nan, 1.0, math.inf, -INF], 3, 2)
    values = given([1.0, 2.0, math.nan, math.inf, -INF, 1.0], 3, 2)
    yield sample("kv_length_hides_nan", *behind, values, kv_length=_length(1), only=dt.FLOATS)
    yield sample("kv_length_of_other_batch", *heads, kv_length=given([1, 2, 3], dtype=dt.int64), error=ValueError)
    yield sample("kv_length_of_matrices", *[draw(5, 4)] * 3, kv_length=given([1], dtype=dt.int64), error=ValueError)
    yield sample("kv_length_of_floats", *heads, kv_length=draw(dtype=dt.float32), error=TypeError)


def _length(n: int, dtype: dt.DType = dt.int64) -> Draw:
    return given([n], dtype=dtype)._replace(shape=())


def _sdpa_samples() -> Iterator[Sample]:
    yield from _attention_samples()
    yield from _kv_length_samples()


def _grouped(x: Tensor, heads: int, groups: int) -> Tensor:
    """(..., heads * groups, n, m) as (..., heads, groups, n, m)."""
    return reshape(x, (*x.shape[:-3], heads, groups, *x.shape[-2:]))


def masked_scores(
    query: Tensor,
    key: Tensor,
    attn_mask: Tensor | None,
    is_causal: bool,
    scale: float,
    seen: Tensor | None = None,
) -> Tensor:
    """query @ key.T * scale, -inf where a mask hides it, of which seen is one more."""
    s = head_product(multiply(query, scale), matrix_transpose(key))
    if is_causal:
        row = reshape(iota(s.shape[-2], dt.int64), (-1, 1))
        s = where(less(row, iota(s.shape[-1], dt.int64)), -INF, s)
    if attn_mask is not None:
        s = where(attn_mask, s, -INF) if attn_mask.dtype.kind == "b" else add(s, astype(attn_mask, s.dtype))
    return s if seen is None else where(seen, s, -INF)


def _exp_and_total(s: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    """exp(s - m), its sum over the keys, and m; without keys there is no m."""
    last = (s.ndim - 1,)
    m = finite_max(s, last) if s.shape[-1] else None
    e = s if m is None else exp(s - m)
    return e, sum_(e, axis=last, keepdims=True), m


def head_product(x: Tensor, kv: Tensor) -> Tensor:
    """x @ kv, where each head of kv serves as many consecutive ones of x."""
    if x.ndim < 3 or kv.ndim < 3 or kv.shape[-3] in (1, x.shape[-3]):
        return matmul(x, kv)
    heads = kv.shape[-3]
    y = matmul(_grouped(x, heads, x.shape[-3] // heads), expand_dims(kv, axis=kv.ndim - 2))
    return reshape(y, (*y.shape[:-4], x.shape[-3], *y.shape[-2:]))


@op(
    shape="attention",
    dtype="float",
    autocast="lower",
    tier="extended",
    tol=6,
    reference=_attention,
    scale=_attention_scale,
    samples=_sdpa_samples,
    space="nn",
    version=2,
    since={"kv_length": 2},
)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Raw | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    kv_length: Index | None = None,
) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value; a row that is masked everywhere gives 0.

    attn_mask broadcasts to (..., L, S): bool, False hides; or floating, which is added. is_causal hides what comes
    after the row's own number. With enable_gqa fewer heads of key and value serve consecutive heads of query.
    kv_length, an integer or one per element of the first axis, is read on the device: only that many of the first
    keys and values take part, whatever the others hold, as in a cache that is not full yet.
    """
    seen = None
    if kv_length is not None:
        lengths = reshape(kv_length, (*kv_length.shape, *(1,) * (query.ndim - kv_length.ndim)))
        seen = less(iota(key.shape[-2], dt.int64), lengths)
        value = where(matrix_transpose(seen), value, 0.0)  # 0 times what is not a number would be none
    e, total, _ = _exp_and_total(masked_scores(query, key, attn_mask, is_causal, scale, seen))
    return head_product(e / where(total == 0.0, 1.0, total), value)


def _dropped(x, key, p):
    drawn = (philox_words(key, x.size) >> np.uint32(8)).astype(np.float64) * 2.0**-24
    return np.where(drawn.reshape(x.shape) < p, 0, x / (1 - p))


def _attention_with_logsumexp(query, key, value, attn_mask, dropout_key, is_causal, scale, enable_gqa, dropout_p):
    weights, logsumexp = _weights(query, key, attn_mask, is_causal, scale)
    if dropout_p:
        weights = _dropped(weights, dropout_key, dropout_p)
    return np.matmul(weights, _heads(value, query)), logsumexp


def _attention_with_logsumexp_scale(query, key, value, attn_mask, dropout_key, is_causal, scale, **attributes):
    out, logsumexp = _attention_with_logsumexp(
        query, key, np.abs(value), attn_mask, dropout_key, is_causal, scale, **attributes
    )
    slack = _score_slack(query, key, scale)
    return out * slack, np.maximum(np.where(np.isfinite(logsumexp), np.abs(logsumexp), 0), 2 * slack)


def dropped(x: Tensor, hit: Tensor, p: float) -> Tensor:
    """x / (1 - p), and 0 where it is hit."""
    return where(hit, 0.0, x if p == 1.0 else x * (1.0 / (1.0 - p)))


def _attention_with_logsumexp_samples() -> Iterator[Sample]:
    yield from _attention_samples()
    heads = draw(2, 4, 9, 16), draw(2, 4, 11, 16), draw(2, 4, 11, 16)
    yield sample("dropout", *heads, dropout_p=0.25, dropout_key=KEY)
    yield sample("dropout_causal", *heads, is_causal=True, dropout_p=0.5, dropout_key=CARRY)
    grouped = draw(1, 6, 5, 8), draw(1, 2, 5, 8), draw(1, 2, 5, 8)
    yield sample("dropout_grouped", *grouped, enable_gqa=True, dropout_p=0.75, dropout_key=KEY)
    yield sample("dropout_all", *heads, dropout_p=1.0, dropout_key=KEY)
    yield sample("dropout_none", *heads, dropout_key=KEY)
    yield sample("dropout_without_key", *heads, dropout_p=0.25, error=ValueError)
    yield sample("dropout_beyond_one", *heads, dropout_p=1.5, dropout_key=KEY, error=ValueError)
    yield sample("dropout_key_of_floats", *heads, dropout_p=0.5, dropout_key=draw(4), error=TypeError)


@op(
    shape="attention",
    dtype="float",
    autocast="lower",
    tier="extended",
    tol=6,
    n_out=2,
    reference=_attention_with_logsumexp,
    scale=_attention_with_logsumexp_scale,
    samples=_attention_with_logsumexp_samples,
    space="nn",
)
def scaled_dot_product_attention_with_logsumexp(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Raw | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    dropout_p: float = 0.0,
    dropout_key: Raw | None = None,
) -> tuple[Tensor, Tensor]:
    """scaled_dot_product_attention, with dropout; and log(sum(exp(scores))) of each row, of at least float32.

    The second result is what a backward pass and attention over parts of the keys need: -inf where a row is masked
    everywhere, and of the scores as they are before dropout. Dropout sets weights to 0 with probability dropout_p
    and divides the others by 1 - dropout_p: those where uniform(dropout_key, shape of the scores, float32) is below
    dropout_p. dropout_key is what dovetail.random.key() gives.
    """
    e, total, m = _exp_and_total(masked_scores(query, key, attn_mask, is_causal, scale))
    weights = e / where(total == 0.0, 1.0, total)
    if dropout_p:
        weights = dropped(weights, less(uniform(dropout_key, weights.shape, dt.float32), dropout_p), dropout_p)
    logsumexp = log(total) if m is None else log(total) + m
    return head_product(weights, value), squeeze(logsumexp, (logsumexp.ndim - 1,))


def _by_sequence(attention, query, key, value, cu_seq_q, cu_seq_k, is_causal, scale, enable_gqa):
    """`attention` of each sequence as if it were alone; 0 where no sequence is."""
    out = np.zeros((*query.shape[:2], value.shape[2]), query.dtype)
    for i in range(len(cu_seq_q) - 1):
        rows, keys = slice(*cu_seq_q[i : i + 2]), slice(*cu_seq_k[i : i + 2])
        alone = (np.swapaxes(x, 0, 1) for x in (query[rows], key[keys], value[keys]))
        out[rows] = np.swapaxes(attention(*alone, None, None, is_causal, scale, enable_gqa), 0, 1)
    return out


def _varlen_samples() -> Iterator[Sample]:
    def packed(queries: int, keys: int, heads: int = 4, key_heads: int = 4, size: int = 16) -> tuple:
        return draw(queries, heads, size), draw(keys, key_heads, size), draw(keys, key_heads, size)

    def offsets(*at: int, dtype: dt.DType = dt.int32) -> Draw:
        return given(at, dtype=dtype)

    ends = offsets(0, 4, 9, 17), offsets(0, 6, 8, 19)
    yield sample("sequences", *packed(17, 19), *ends)
    yield sample("causal", *packed(17, 17), ends[0], ends[0], is_causal=True)
    yield sample("causal_wide", *packed(17, 19), *ends, is_causal=True)
    yield sample("long_offsets", *packed(17, 19), *(offsets(*e.values, dtype=dt.int64) for e in ends))
    yield sample("one", *packed(9, 11), offsets(0, 9), offsets(0, 11))
    yield sample("without_queries", *packed(9, 11), offsets(0, 0, 4, 4, 9, 9), offsets(0, 2, 5, 6, 10, 11))
    yield sample("without_keys", *packed(9, 11), offsets(0, 2, 5, 9), offsets(0, 0, 11, 11))
    yield sample("outside", *packed(9, 11), offsets(1, 5, 7), offsets(2, 6, 9))
    yield sample("no_sequence", *packed(9, 11), offsets(0), offsets(0))
    yield sample("empty", *packed(0, 0), offsets(0, 0), offsets(0, 0))
    yield sample("scale", *packed(17, 19), *ends, scale=0.5)
    yield sample("grouped", *packed(17, 19, 6, 2, 8), *ends, is_causal=True, enable_gqa=True)
    yield sample("mismatch", *packed(17, 19), offsets(0, 17), ends[1], error=ValueError)
    yield sample("offsets_of_floats", *packed(17, 19), draw(4), draw(4), error=TypeError)
    yield sample(
        "matrices", draw(9, 16), draw(11, 16), draw(11, 16), offsets(0, 9), offsets(0, 11), error=ValueError
    )


def _places(offsets: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """For each row: how many sequences begin up to it, whether it lies in one, and its number there."""
    row = reshape(iota(size, dt.int64), (-1, 1))
    begins = ~less(row, offsets)
    sequence = sum_(astype(begins, dt.int64), axis=(1,))
    inside = (sequence > 0) & less(sequence, offsets.shape[0])
    first = max_(where(begins, offsets, 0), axis=(1,))
    return sequence, inside, row[:, 0] - first


@op(
    shape="attention_varlen",
    dtype="float",
    autocast="lower",
    tol=6,
    reference=lambda *args, **attributes: _by_sequence(_attention, *args, **attributes),
    scale=lambda *args, **attributes: _by_sequence(_attention_scale, *args, **attributes),
    samples=_varlen_samples,
    space="nn",
)
def scaled_dot_product_attention_varlen(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Raw,
    cu_seq_k: Raw,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """scaled_dot_product_attention of each of several sequences, packed one behind the other.

    query, key and value are (tokens, heads, size). cu_seq_q and cu_seq_k, int32 or int64 and of equal length, say
    where in query, and in key and value, each sequence begins and, last, where the last one ends. They ascend; a
    token before the first or behind the last offset belongs to no sequence and gives 0, as does one whose sequence
    has no keys. is_causal counts from the beginning of each sequence.
    """
    ends_q, ends_k = (astype(x, dt.int64) for x in (cu_seq_q, cu_seq_k))
    (sequence_q, inside, at_q), (sequence_k, _, at_k) = (
        _places(ends_q, query.shape[0]),
        _places(ends_k, key.shape[0]),
    )
    sees = equal(expand_dims(sequence_q, axis=1), sequence_k) & expand_dims(inside, axis=1)
    if is_causal:
        sees = sees & ~less(expand_dims(at_q, axis=1), at_k)
    q, k, v = (permute_dims(x, (1, 0, 2)) for x in (query, key, value))
    out = scaled_dot_product_attention(q, k, v, sees, scale=scale, enable_gqa=enable_gqa)
    return permute_dims(out, (1, 0, 2))
