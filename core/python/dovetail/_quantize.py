"""quantize and dequantize with one scale, one for each index of an axis, or one for each block along it."""

from __future__ import annotations

from dovetail import _core
from dovetail._array import PACKED, expect_array, expect_axis
from dovetail._core import Array, DType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["dequantize", "quantize"]

_op = _core.op_function


def quantize(
    x: Array,
    scale: Array | float,
    zero_point: Array | int | None = None,
    *,
    axis: int | None = None,
    block_size: int | None = None,
    dtype: DType | str | None = None,
) -> Array:
    """round(x / scale) + zero_point as integers: ties to even, and the nearest where it is beyond the dtype's.

    scale and zero_point are one value each, or one for each index of axis; without zero_point it is 0. With
    block_size they have x's shape, but one value for each block of so many elements along axis, the last of which
    may be shorter, as ONNX's QuantizeLinear has it. NaN gives zero_point, and so does 0 / 0. Raises ValueError
    where shapes do not match, TypeError for a dtype other than int8, uint8, int4, uint4, int2 and uint2.
    """
    how = {} if dtype is None else {"dtype": dtype}  # the op says what is missing
    if block_size is None:
        return _op("quantize")(x, scale, zero_point, axis=axis, **how)
    return _in_blocks("quantize", x, scale, zero_point, axis, block_size, how)


def dequantize(
    x: Array,
    scale: Array | float,
    zero_point: Array | int | None = None,
    *,
    axis: int | None = None,
    block_size: int | None = None,
) -> Array:
    """(x - zero_point) * scale of integers of at most 8 bits, in scale's dtype.

    scale and zero_point as in quantize. Raises ValueError where shapes do not match.
    """
    if block_size is None:
        return _op("dequantize")(x, scale, zero_point, axis=axis)
    return _in_blocks("dequantize", x, scale, zero_point, axis, block_size, {})


def _in_blocks(
    what: str,
    x: Array,
    scale: Array | float,
    zero_point: Array | int | None,
    axis: int | None,
    block_size: int,
    how: dict[str, Any],
) -> Array:
    """The op of blocks as rows, with a scale for each."""
    expect_array(what, x)
    x, zero_point = (
        _op("astype")(v, PACKED[v.dtype.name]) if isinstance(v, Array) and v.dtype.name in PACKED else v
        for v in (x, zero_point)
    )
    expect_array(what, scale, "scale")
    if axis is None or isinstance(block_size, bool) or not isinstance(block_size, int) or block_size < 1:
        raise ValueError(f"[{what}] block_size {block_size!r}, axis {axis!r}: expected an axis, and at least 1")
    axis, last = expect_axis(what, axis, x.ndim), x.ndim - 1
    n, blocks = x.shape[axis], -(-x.shape[axis] // block_size)
    expected = (*x.shape[:axis], blocks, *x.shape[axis + 1 :])
    for name, given in (("scale", scale), ("zero_point", zero_point)):
        if getattr(given, "ndim", 0) and given.shape != expected:
            raise ValueError(f"[{what}] {name}: got shape {given.shape}, expected {expected}, one for each block")

    def flat(v: Array | int | None) -> Array | int | None:
        return _op("reshape")(_op("moveaxis")(v, axis, last), (-1,)) if getattr(v, "ndim", 0) else v

    moved = _op("moveaxis")(x, axis, last)
    if spare := blocks * block_size - n:
        moved = _op("pad")(moved, (*(0, 0) * last, 0, spare))
    scales = flat(_op("broadcast_to")(scale, expected))
    made = _op(what)(_op("reshape")(moved, (-1, block_size)), scales, flat(zero_point), axis=0, **how)
    name = made.dtype.name
    if name in PACKED:  # these have no axes to move
        made = _op("astype")(made, PACKED[name])
    made = _op("reshape")(made, (*moved.shape[:last], blocks * block_size))
    made = _op("moveaxis")(made[..., :n] if spare else made, last, axis)
    return _op("astype")(made, name) if name in PACKED else made
