"""Padding that repeats elements: dovetail.pad's modes, and torch's nn.pad."""

from __future__ import annotations

from dovetail import _core
from dovetail._array import expect_array
from dovetail._core import Array
from dovetail._nn_common import counting, is_integer, one_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["pad"]

_op = _core.op_function
MODES = ("edge", "reflect", "symmetric", "wrap")  # as NumPy calls them
_TORCH = {"replicate": "edge", "reflect": "reflect", "circular": "wrap"}


def repeated(what: str, x: Array, pairs: Sequence[tuple[int, int]], mode: str) -> Array:
    """x with elements of its own around it: (before, after) for each axis, in one of MODES."""
    for axis, (before, after) in enumerate(pairs):
        n = x.shape[axis]
        if (is_integer(before) and before < 0) or (is_integer(after) and after < 0):
            raise ValueError(f"[{what}] pad_width: got {(before, after)} for axis {axis}, expected at least 0")
        if type(before) is int and type(after) is int and before == after == 0:
            continue
        if n == 0:
            raise ValueError(f"[{what}] axis {axis} of shape {x.shape} is empty: expected elements to repeat")
        places = counting(before + n + after, "int64", x.device) - before
        x = _op("take")(x, _source(places, n, mode), axis=axis)
    return x


def _source(places: Array, n: int, mode: str) -> Array:
    """Which of n elements is at places, which begin below 0 and go on beyond n - 1."""
    if mode == "edge":
        return _op("clip")(places, 0, n - 1)
    if mode == "wrap":
        return _op("remainder")(places, n)
    last = n - 1 if mode == "reflect" else n  # the edge counts once or twice
    period = 2 * last if last != 0 else 1
    places = _op("remainder")(places, period)
    turned = period - places if mode == "reflect" else (period - 1) - places
    return _op("minimum")(places, turned) if n != 1 else places * 0


def pad(x: Array, pad: Sequence[int], mode: str = "constant", value: complex | None = None) -> Array:
    """x with more elements at the ends of its last axes, or with fewer where a number is negative.

    pad: (before, after) of the last axis, then of the one before it, and so on, as in torch. mode: "constant" puts
    value there (0 by default); "reflect" mirrors without the edge, "replicate" repeats the edge, "circular" goes on
    at the other end. Raises ValueError for an unknown mode, and for numbers that x's axes do not have.
    """
    expect_array("pad", x)
    one_of("pad", "mode", mode, "constant", *_TORCH)
    if value is not None and mode != "constant":
        raise ValueError(f"[pad] value: got {value!r} with mode {mode!r}, expected none; it is for mode 'constant'")
    if not isinstance(pad, (tuple, list)) or not all(map(is_integer, pad)):
        raise TypeError(f"[pad] pad: got {pad!r}, expected a sequence of integers")
    if len(pad) % 2 or len(pad) > 2 * x.ndim:
        raise ValueError(f"[pad] pad: got {len(pad)} integers, expected pairs for at most {x.ndim} axes")
    pairs = [(0, 0)] * (x.ndim - len(pad) // 2) + [*zip(pad[-2::-2], pad[::-2], strict=True)]
    if any(n < 0 for pair in pairs for n in pair):
        x, pairs = _cropped(x, pairs)
    if mode != "constant":
        return repeated("pad", x, pairs, _TORCH[mode])
    return _op("pad")(x, tuple(n for pair in pairs for n in pair), constant_values=0 if value is None else value)


def _cropped(x: Array, pairs: list[tuple[int, int]]) -> tuple[Array, list[tuple[int, int]]]:
    for axis, (before, after) in enumerate(pairs):
        left = x.shape[axis] + min(before, 0) + min(after, 0)
        if left < 0:
            raise ValueError(
                f"[pad] pad: got {(before, after)} for axis {axis} of shape {x.shape}: too few elements"
            )
    key = tuple(slice(max(-b, 0), n - max(-a, 0)) for n, (b, a) in zip(x.shape, pairs, strict=True))
    return x[key], [(max(b, 0), max(a, 0)) for b, a in pairs]
