"""Masks of attention as tables of blocks: which blocks of scores are hidden, seen, or have a mask of their own."""

from __future__ import annotations

import math

from dovetail import _core
from dovetail._array import expect_array
from dovetail._core import Array
from dovetail._devices import device as to_device
from dovetail._nn_common import each, is_integer, op

TYPE_CHECKING = False  # importing typing would take longer than everything else
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    import numpy as np

    from dovetail._core import Device

__all__ = ["BlockMask", "create_block_mask", "expect_parameters", "mask_of"]

_HIDDEN, _SEEN, _TILES = 0, 1, 2  # numbers of blocks; from _TILES on those of masks
_MOST_SCORES = 1 << 24  # of which mask_mod is asked at once


class BlockMask:
    """A mask of attention's scores (B, H, Q_LEN, KV_LEN) in blocks, which create_block_mask makes.

    Blocks that are hidden or seen as a whole are numbers; the masks of the others are stored once where they are
    equal. The table does not change when arrays that mask_mod uses do.

    shape: (B, H, Q_LEN, KV_LEN), where B and H are 1 if all have the same mask. BLOCK_SIZE: (rows, columns) of a
    block. mask_mod: the function that it was made of. kv_num_blocks and kv_indices: how many blocks of each row of
    blocks are seen in part, and their columns, followed by those of the others; full_kv_num_blocks and
    full_kv_indices: the same of blocks that are seen as a whole.
    """

    def __init__(
        self,
        blocks: Array,
        tiles: Array,
        shape: tuple[int, int, int, int],
        mask_mod: Callable[[Array, Array, Array, Array], Array] | None,
    ) -> None:
        self._blocks, self._tiles = blocks, tiles  # operands of the op block_attention
        self.shape, self.mask_mod = shape, mask_mod
        self.BLOCK_SIZE: tuple[int, int] = tiles.shape[1], tiles.shape[2]

    seq_lengths = property(lambda self: self.shape[2:])
    device = property(lambda self: self._blocks.device)
    kv_num_blocks = property(lambda self: self._array(self._chosen(False).sum(-1)))
    kv_indices = property(lambda self: self._array(_columns(self._chosen(False))))
    full_kv_num_blocks = property(lambda self: self._array(self._chosen(True).sum(-1)))
    full_kv_indices = property(lambda self: self._array(_columns(self._chosen(True))))

    def _chosen(self, full: bool) -> np.ndarray:
        numbers = self._blocks.numpy()
        return numbers == _SEEN if full else numbers >= _TILES

    def _array(self, x: np.ndarray) -> Array:
        from dovetail._creation import asarray

        return asarray(x.astype("int32"), device=self.device)

    def numel(self) -> int:
        """How many scores it is for."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """The part of the blocks that is hidden, in percent."""
        numbers = self._blocks.numpy()
        return 100.0 * float((numbers == _HIDDEN).mean()) if numbers.size else 0.0

    def to_dense(self) -> Array:
        """int32 (B, H, blocks of rows, blocks of columns): 1 for a block of which any score is seen."""
        return self._array(self._blocks.numpy() != _HIDDEN)

    def to_device(self, device: Device | str) -> BlockMask:
        """The same mask for attention on another device."""
        blocks, tiles = (x.to_device(device) for x in (self._blocks, self._tiles))
        return BlockMask(blocks, tiles, self.shape, self.mask_mod)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, BLOCK_SIZE={self.BLOCK_SIZE}, device={str(self.device)!r})"


def _columns(chosen: np.ndarray) -> np.ndarray:
    """The columns of the chosen blocks of each row, then those of the others."""
    return (~chosen).argsort(axis=-1, kind="stable")


def create_block_mask(
    mask_mod: Callable[[Array, Array, Array, Array], Array],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Device | str | None = None,
    BLOCK_SIZE: int | tuple[int, int] = 128,
) -> BlockMask:
    """The mask mask_mod(b, h, q_idx, kv_idx) of flex_attention, in blocks of BLOCK_SIZE scores.

    mask_mod gets int32 arrays of indices that broadcast against each other, and returns bool: False hides a score.
    B and H: None where all have the same mask. device: that of the operands of attention, by default the current
    one. BLOCK_SIZE: rows and columns of a block. It reads what mask_mod computes, and so is no part of a traced
    function. Raises TypeError and ValueError for other arguments, and for a mask_mod that does not return bool.
    """
    what = "create_block_mask"
    if _core.recorder() is not None:
        raise TypeError(
            f"[{what}] which blocks are hidden follows from the elements of a mask: make it outside of the traced "
            "function and pass or capture it, or give flex_attention mask_mod= instead"
        )
    expect_parameters(what, "mask_mod", mask_mod, ("b", "h", "q_idx", "kv_idx"))
    shape = (
        *(1 if n is None else _size(what, name, n, 1) for name, n in (("B", B), ("H", H))),
        *(_size(what, name, n, 0) for name, n in (("Q_LEN", Q_LEN), ("KV_LEN", KV_LEN))),
    )
    rows, columns = (_size(what, "BLOCK_SIZE", n, 1) for n in each(what, "BLOCK_SIZE", BLOCK_SIZE, 2))
    numbers, tiles = _numbered(_rows_of_blocks(what, mask_mod, shape, rows, device), shape, rows, columns)
    from dovetail._creation import asarray

    return BlockMask(asarray(numbers, device=device), asarray(tiles, device=device), shape, mask_mod)


def _size(what: str, name: str, n: Any, least: int) -> int:
    if not is_integer(n):
        raise TypeError(f"[{what}] {name}: got {n!r}, expected an integer")
    if n < least:
        raise ValueError(f"[{what}] {name}: got {n}, expected at least {least}")
    return int(n)


def _rows_of_blocks(
    what: str, mask_mod: Any, shape: tuple[int, ...], rows: int, device: Any
) -> Iterator[tuple[int, np.ndarray]]:
    """(first row, the mask of whole rows of blocks from there on)."""
    batch, heads, queries, keys = shape
    step = rows * max(1, _MOST_SCORES // max(1, batch * heads * keys * rows))
    home = to_device(device)
    for first in range(0, queries, step):
        n = min(step, queries - first)
        at = _indices((batch, heads, n, keys), home)
        at[2] = at[2] + first
        yield first, mask_of(what, mask_mod, at, (batch, heads, n, keys)).numpy()


def _numbered(
    parts: Iterator[tuple[int, np.ndarray]], shape: tuple[int, ...], rows: int, columns: int
) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the blocks, and the masks that they refer to."""
    import numpy as np

    batch, heads, queries, keys = shape
    numbers = np.zeros((batch, heads, -(-queries // rows), -(-keys // columns)), np.int32)
    known: dict[bytes, int] = {}
    for first, mask in parts:
        n = mask.shape[2]
        counted = _in_blocks(np.ones((1, 1, n, keys), bool), rows, columns).sum((3, 5))
        blocks = _in_blocks(mask, rows, columns)
        seen = blocks.sum((3, 5))
        here = numbers[:, :, first // rows : first // rows + counted.shape[2]]
        here[...] = (seen == counted) & (counted > 0)
        for b, h, i, j in zip(*np.nonzero((seen > 0) & (seen < counted)), strict=True):
            tile = blocks[b, h, i, :, j].tobytes()
            here[b, h, i, j] = known.setdefault(tile, _TILES + len(known))
    made = np.frombuffer(b"".join(known) or bytes(rows * columns), np.bool_)
    return numbers, made.reshape(-1, rows, columns)


def _in_blocks(mask: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """(batch, heads, rows of blocks, rows, columns of blocks, columns); False beyond the mask."""
    import numpy as np

    batch, heads, n, m = mask.shape
    mask = np.pad(mask, ((0, 0), (0, 0), (0, -n % rows), (0, -m % columns)))
    return mask.reshape(batch, heads, -(-n // rows), rows, -(-m // columns), columns)


# ---- functions of indices ----------------------------------------------------------------------------------------


def _indices(shape: tuple[int, ...], device: Any) -> list[Array]:
    """The indices of scores of this shape: int32 (B, 1, 1, 1), (H, 1, 1), (L, 1) and (S)."""
    axes = [op("iota")(n, "int32", device=device) for n in shape]
    return [x if i == 3 else op("reshape")(x, (-1, *(1,) * (3 - i))) for i, x in enumerate(axes)]


def expect_parameters(what: str, name: str, fn: Any, parameters: tuple[str, ...]) -> None:
    """Raises TypeError for what cannot be called with as many arguments."""
    from inspect import signature

    if not callable(fn):
        raise TypeError(f"[{what}] {name}: got {type(fn).__name__}, expected a function of {', '.join(parameters)}")
    try:
        takes = signature(fn)
    except (TypeError, ValueError):  # functions written in C may have no signature
        return
    try:
        takes.bind(*parameters)
    except TypeError:
        raise TypeError(
            f"[{what}] {name}: got a function of {takes}, expected one of {', '.join(parameters)}"
        ) from None


def mask_of(what: str, mask_mod: Any, at: Sequence[Array], shape: tuple[Any, ...]) -> Array:
    """mask_mod of these indices, as a mask of this shape."""
    mask = mask_mod(*at)
    expect_array(what, mask, "the result of mask_mod")
    if mask.dtype.kind != "bool":
        raise TypeError(
            f"[{what}] mask_mod returned {mask.dtype}, expected bool: compare indices, and join masks by & and |"
        )
    return op("broadcast_to")(mask, shape)
