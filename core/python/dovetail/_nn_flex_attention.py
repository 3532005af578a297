"""Attention whose scores a function changes and whose mask is a table of blocks: as torch's flex_attention."""

from __future__ import annotations

from functools import lru_cache

from dovetail import _core
from dovetail._array import expect_array
from dovetail._block_mask import BlockMask, create_block_mask, expect_parameters, mask_of
from dovetail._core import Array
from dovetail._nn_common import op, working
from dovetail.schema.number import value_of

TYPE_CHECKING = False  # importing typing would take longer than everything else
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["BlockMask", "create_block_mask", "flex_attention"]

_WHAT = "flex_attention"
_AXES = ("b", "h", "q_idx", "kv_idx")


def flex_attention(
    query: Array,
    key: Array,
    value: Array,
    score_mod: Callable[[Array, Array, Array, Array, Array], Array] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    *,
    mask_mod: Callable[[Array, Array, Array, Array], Array] | None = None,
) -> Array | tuple[Array, Array]:
    """softmax(score_mod(query @ key.T * scale)) @ value, over the scores that the masks do not hide.

    query is (B, H, L, E), key (B, H, S, E), value (B, H, S, Ev), of one real floating dtype. score_mod(score, b, h,
    q_idx, kv_idx) returns the changed scores: it is traced, with float32 scores (float64 for float64 operands), and
    with int32 arrays of indices that broadcast against them. It may use other arrays. mask_mod(b, h, q_idx, kv_idx)
    returns bool; False hides a score. block_mask, which create_block_mask makes of a mask_mod, does the same, and
    a device that has a kernel for it does not compute the blocks of which it hides all. A row of which all scores
    are hidden gives 0.

    scale: 1 / sqrt(E) for None. enable_gqa: each head of key and value serves several consecutive heads of query.
    return_lse: also the logarithm of the sum of the exponentials of each row's scores, (B, H, L), in at least
    float32; -inf where all are hidden. Raises TypeError and ValueError for arguments that do not go together.
    """
    _check_operands(query, key, value)
    if block_mask is not None:
        _check_block_mask(block_mask, query, key)
    tables = (None, None) if block_mask is None else (block_mask._blocks, block_mask._tiles)
    kept = scale, bool(enable_gqa)
    if score_mod is None and mask_mod is None:
        out, lse = _block_attention(query, key, value, *tables, None, *kept)
    else:
        attend = _function_of(score_mod, mask_mod, query.dtype, block_mask is None, *kept)
        out, lse = attend(query, key, value, *tables, score_mod, mask_mod)
    return (out, lse) if return_lse else out


def _check_operands(query: Any, key: Any, value: Any) -> None:
    given = {"query": query, "key": key, "value": value}
    for name, x in given.items():
        expect_array(_WHAT, x, name)
        if x.ndim != 4:
            axis = "queries" if name == "query" else f"{name}s"
            cure = f"x[{', '.join(['None'] * (4 - x.ndim))}] adds axes" if x.ndim < 4 else "reshape it"
            raise ValueError(
                f"[{_WHAT}] {name}: got shape {x.shape}, expected four axes: batch, heads, {axis}, size; {cure}"
            )
        if x.dtype.kind != "real floating" or x.dtype != query.dtype:
            dtypes = ", ".join(f"{n} {y.dtype}" for n, y in given.items())
            raise TypeError(f"[{_WHAT}] got {dtypes}, expected one real floating dtype; astype makes them equal")


def _check_block_mask(mask: Any, query: Any, key: Any) -> None:
    if not isinstance(mask, BlockMask):
        raise TypeError(
            f"[{_WHAT}] block_mask: got {type(mask).__name__}, expected what create_block_mask returns; a function "
            "of indices is mask_mod="
        )
    batch, heads, queries, keys = *query.shape[:3], key.shape[2]
    if mask.shape[2] != queries or mask.shape[3] != keys:
        raise ValueError(
            f"[{_WHAT}] block_mask is for {mask.shape[2]} queries and {mask.shape[3]} keys, got {queries} and "
            f"{keys}: make one by create_block_mask(mask_mod, B, H, {queries}, {keys})"
        )
    for n, name, got in zip(mask.shape, ("B", "H"), (batch, heads), strict=False):
        if n != 1 and n != got:
            raise ValueError(
                f"[{_WHAT}] block_mask is for {name}={n}, got {got}: make one with {name}={got}, or "
                f"{name}=None where all have the same mask"
            )
    if mask.device != query.device:
        raise ValueError(
            f"[{_WHAT}] block_mask is on {mask.device}, query on {query.device}: expected one device; "
            "block_mask.to_device(query.device) copies it"
        )


def _block_attention(
    query: Any, key: Any, value: Any, blocks: Any, tiles: Any, scores: Any, scale: Any, gqa: Any
) -> Any:
    return op("block_attention")(query, key, value, blocks, tiles, scores, scale=scale, enable_gqa=gqa)


def _function_of(score_mod: Any, mask_mod: Any, *kept: Any) -> Any:
    """What computes attention with these functions; outside of traces compiled, so that the device may join the
    functions to its kernel. Functions are known by their identity: one that is made anew for each call is traced
    in each call."""
    try:
        attend, compiled = _known(score_mod, mask_mod, *kept)
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        attend, compiled = _known.__wrapped__(score_mod, mask_mod, *kept)
    return compiled if _core.recorder() is None else attend


@lru_cache(maxsize=64)
def _known(score_mod: Any, mask_mod: Any, dtype: Any, bare: bool, scale: Any, gqa: bool) -> tuple[Any, Any]:
    """A function for each choice: one compiled function has a limited number of traces."""
    from dovetail._compile import compile

    if score_mod is not None:
        expect_parameters(_WHAT, "score_mod", score_mod, ("score", *_AXES))
    if mask_mod is not None:
        expect_parameters(_WHAT, "mask_mod", mask_mod, _AXES)

    # The functions are arguments: arrays that they read may be others in another call.
    def flex_attention(
        query: Any, key: Any, value: Any, blocks: Any, tiles: Any, score_mod: Any, mask_mod: Any
    ) -> tuple[Any, Any]:
        q, k, v = (working(x) for x in (query, key, value))
        scores = op("attention_scores")(q, k, scale=scale, enable_gqa=gqa)
        at = op("score_indices")(q, k)
        changed = scores if score_mod is None else _changed(score_mod, scores, at)
        if mask_mod is not None:
            changed = op("where")(mask_of(_WHAT, mask_mod, at, changed.shape), changed, float("-inf"))
        out, lse = _block_attention(q, k, v, blocks, tiles, changed, scale, gqa)
        return (out if out.dtype == dtype else op("astype")(out, dtype)), lse

    return flex_attention, compile(flex_attention)


def _changed(score_mod: Any, scores: Any, at: tuple[Any, ...]) -> Any:
    made = score_mod(scores, *at)
    expect_array(_WHAT, made, "the result of score_mod")
    if made.dtype.kind != "real floating":
        raise TypeError(
            f"[{_WHAT}] score_mod returned {made.dtype}, expected scores of {scores.dtype}; "
            "dovetail.where(mask, score, -float('inf')) hides some"
        )
    if tuple(map(value_of, made.shape)) != tuple(map(value_of, scores.shape)):
        made = op("broadcast_to")(made, scores.shape)
    return made if made.dtype == scores.dtype else op("astype")(made, scores.dtype)
