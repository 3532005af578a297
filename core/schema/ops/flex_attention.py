"""The ops of dovetail.nn.flex_attention: scores that a function may change, and attention over blocks of them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .. import dtypes as dt
from ..declare import Raw, Tensor, op
from ..lazy_numpy import np
from ..samples import Sample, draw, given, mask, sample
from ._float import INF
from .attention import _exp_and_total, _heads, _score_slack, head_product, masked_scores
from .primitives import astype, equal, iota, less, log, maximum, take, where
from .views import permute_dims, reshape, squeeze


def _attention_scores(query, key, scale, enable_gqa):
    return np.matmul(query, np.swapaxes(_heads(key, query), -1, -2)) * (
        1 / math.sqrt(query.shape[-1]) if scale is None else scale
    )


def _attention_scores_scale(query, key, scale, enable_gqa):
    """Of the sum of products, and of the query that was multiplied by the scale before it."""
    size = np.sqrt(query.shape[-1]) + 1
    return np.abs(_attention_scores(np.abs(query), np.abs(key), scale, enable_gqa)) * size


def _attention_scores_samples() -> Iterator[Sample]:
    heads = draw(2, 4, 9, 16), draw(2, 4, 11, 16)
    yield sample("heads", *heads)
    yield sample("scale", *heads, scale=0.5)
    yield sample("negative_scale", *heads, scale=-0.5)
    yield sample("grouped", draw(1, 6, 5, 8), draw(1, 2, 7, 8), enable_gqa=True)
    yield sample("one_row", draw(1, 1, 1, 8), draw(1, 1, 130, 8))
    yield sample("long", draw(1, 2, 130, 8), draw(1, 1, 520, 8), enable_gqa=True)
    yield sample("no_keys", draw(1, 2, 3, 8), draw(1, 2, 0, 8))
    yield sample("mismatch", draw(1, 1, 9, 16), draw(1, 1, 11, 8), error=ValueError)
    yield sample("matrices", draw(9, 16), draw(11, 16), error=ValueError)


@op(
    shape="attention_scores",
    dtype="float",
    tol=2,
    private=True,
    reference=_attention_scores,
    scale=_attention_scores_scale,
    samples=_attention_scores_samples,
    space="nn",
)
def attention_scores(query: Tensor, key: Tensor, *, scale: float | None = None, enable_gqa: bool = False) -> Tensor:
    """query @ key.T * scale, of (batch, heads, L, E) and (batch, key heads, S, E).

    With enable_gqa each key head serves several consecutive query heads. A device's compiler that finds elementwise
    ops between this op and block_attention may run them on one block of scores at a time.
    """
    return masked_scores(query, key, None, False, scale)


def _score_indices(query, key):
    sizes = enumerate((*query.shape[:3], key.shape[2]))
    return tuple(np.reshape(np.arange(n, dtype=np.int32), (n, *(1,) * (3 - axis))) for axis, n in sizes)


def _score_indices_samples() -> Iterator[Sample]:
    yield sample("several", draw(2, 4, 9, 16), draw(2, 4, 11, 16))
    yield sample("grouped", draw(2, 4, 9, 16), draw(2, 1, 11, 16))
    yield sample("one", draw(1, 1, 1, 1), draw(1, 1, 1, 1))
    yield sample("no_keys", draw(2, 1, 3, 5), draw(2, 1, 0, 5))
    yield sample("matrices", draw(9, 16), draw(11, 16), error=ValueError)


@op(
    shape="score_indices",
    dtype="int32",
    n_out=4,
    private=True,
    half="native",
    dtypes=dt.FLOATS,
    reference=_score_indices,
    samples=_score_indices_samples,
    space="nn",
)
def score_indices(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The batch, head, query and key of each score of attention_scores, as arrays that broadcast.

    An op of the operands, not four of their sizes: so what a function computes of indices is neither shared by
    several calls of attention nor computed ahead, but stays among the elementwise ops on the scores.
    """
    batch, heads, queries, keys = (iota(n, dt.int32) for n in (*query.shape[:3], key.shape[2]))
    return reshape(batch, (-1, 1, 1, 1)), reshape(heads, (-1, 1, 1)), reshape(queries, (-1, 1)), keys


def _seen(blocks, tiles, queries, keys):
    rows, columns = tiles.shape[1:]
    out = np.zeros((*blocks.shape[:2], queries, keys), bool)
    for at in np.ndindex(*blocks.shape):
        n, i, j = blocks[at], at[2] * rows, at[3] * columns
        part = out[at[0], at[1], i : i + rows, j : j + columns]
        part[...] = n == 1 if n < 2 else tiles[n - 2][: part.shape[0], : part.shape[1]]
    return out


def _block_attention(query, key, value, blocks, tiles, scores, scale, enable_gqa):
    s = _attention_scores(query, key, scale, enable_gqa) if scores is None else scores
    if blocks is not None:
        s = np.where(_seen(blocks, tiles, query.shape[2], key.shape[2]), s, -np.inf)
    top = np.max(s, axis=-1, keepdims=True, initial=-np.inf)
    top = np.where(np.isinf(top), 0, top)
    e = np.exp(s - top)
    total = np.sum(e, axis=-1, keepdims=True)
    out = np.matmul(e / np.where(total == 0, 1, total), _heads(value, query))
    return out, np.squeeze(np.log(total) + top, -1)


def _block_attention_scale(query, key, value, blocks, tiles, scores, scale, enable_gqa):
    out, logsumexp = _block_attention(query, key, np.abs(value), blocks, tiles, scores, scale, enable_gqa)
    slack = _score_slack(query, key, scale)
    return out * slack, np.maximum(np.where(np.isfinite(logsumexp), np.abs(logsumexp), 0), 2 * slack)


def _block_attention_samples() -> Iterator[Sample]:
    def blocks(*shape: int, low: int = 0, high: int = 3):
        return draw(*shape, low=low, high=high, dtype=dt.int32)

    heads = draw(2, 4, 9, 16), draw(2, 4, 11, 16), draw(2, 4, 11, 16)
    tiles = mask(2, 4, 4)
    yield sample("all", *heads)
    yield sample("scale", *heads, blocks(1, 1, 3, 3), tiles, scale=0.5)
    yield sample("negative_scale", *heads, blocks(1, 1, 3, 3), tiles, scale=-0.5)
    yield sample("blocks", *heads, blocks(1, 1, 3, 3), tiles)
    yield sample("blocks_of_heads", *heads, blocks(2, 4, 3, 3), tiles)
    yield sample("blocks_of_batch", *heads, blocks(2, 1, 3, 3), tiles)
    yield sample("tiles_only", *heads, blocks(1, 4, 3, 3, low=2), tiles)
    yield sample("rectangles", *heads, blocks(1, 1, 5, 2), mask(2, 2, 8))
    yield sample("one_block", *heads, blocks(1, 1, 1, 1), mask(2, 16, 128))
    yield sample("hidden", *heads, given([0], 1, 1, 1, 1, dtype=dt.int32), mask(1, 16, 16))
    yield sample("hidden_row", *heads, given([0, 0, 0, 1, 2, 1, 1, 0, 1], 1, 1, 3, 3, dtype=dt.int32), tiles)
    grouped = draw(1, 6, 5, 8), draw(1, 2, 7, 8), draw(1, 2, 7, 6)
    yield sample("grouped", *grouped, blocks(1, 6, 2, 2), mask(2, 4, 4), enable_gqa=True)
    long = draw(1, 2, 150, 8), draw(1, 2, 1100, 8), draw(1, 2, 1100, 8)
    yield sample("long", *long, blocks(1, 2, 2, 9), mask(2, 128, 128))
    yield sample("long_rows", *long, blocks(1, 2, 1, 2), mask(2, 160, 1024))
    yield sample("scores", *heads, None, None, draw(2, 4, 9, 11))
    yield sample("masked_scores", *heads, blocks(1, 1, 3, 3), tiles, draw(2, 4, 9, 11))
    yield sample("no_keys", draw(1, 2, 3, 8), draw(1, 2, 0, 8), draw(1, 2, 0, 8))
    yield sample("no_tiles", *heads, blocks(1, 1, 3, 3), error=ValueError)
    yield sample("few_blocks", *heads, blocks(1, 1, 2, 3), tiles, error=ValueError)
    yield sample("long_numbers", *heads, draw(1, 1, 3, 3, dtype=dt.int64), tiles, error=TypeError)
    yield sample("scores_of_others", *heads, None, None, draw(2, 4, 9, 9), error=ValueError)


def seen(blocks: Tensor, tiles: Tensor, queries: int, keys: int) -> Tensor:
    """The mask (..., queries, keys) of block_attention's operands."""
    batch, heads, n, m = blocks.shape
    _, rows, columns = tiles.shape
    numbers = reshape(blocks, (batch * heads * n * m,))
    chosen = take(tiles, maximum(numbers, 2) - 2, axis=0)
    numbers = reshape(numbers, (batch * heads * n * m, 1, 1))
    x = where(less(numbers, 2), equal(numbers, 1), chosen)
    x = permute_dims(reshape(x, (batch, heads, n, m, rows, columns)), (0, 1, 2, 4, 3, 5))
    return reshape(x, (batch, heads, n * rows, m * columns))[:, :, :queries, :keys]


@op(
    shape="block_attention",
    dtype="float",
    tol=6,
    n_out=2,
    private=True,
    reference=_block_attention,
    scale=_block_attention_scale,
    samples=_block_attention_samples,
    space="nn",
)
def block_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    blocks: Raw | None = None,
    tiles: Raw | None = None,
    scores: Raw | None = None,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Tensor, Tensor]:
    """scaled_dot_product_attention_with_logsumexp, whose mask is a table of blocks; of four axes.

    blocks, int32 (batch or 1, heads or 1, blocks of L, blocks of S), has for each block of scores 0 where it is
    hidden, 1 where all of it is seen, and otherwise 2 + the number of its mask in tiles, bool (masks, rows of a
    block, columns of a block). Other numbers give unspecified results. What lies beyond L and S in the last blocks
    has no influence. scores (batch, heads, L, S) take the place of query @ key.T * scale.
    """
    mask = None if blocks is None else seen(blocks, tiles, query.shape[2], key.shape[2])
    if scores is None:
        scores = masked_scores(query, key, mask, False, scale)
    else:
        scores = astype(scores, query.dtype)
        scores = scores if mask is None else where(mask, scores, -INF)
    e, total, m = _exp_and_total(scores)
    logsumexp = log(total) if m is None else log(total) + m
    return head_product(e / where(total == 0.0, 1.0, total), value), squeeze(logsumexp, (3,))
