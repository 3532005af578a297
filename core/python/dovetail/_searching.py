"""Functions whose work or result depends on values: nonzero, masks, unique, searchsorted, isin, repeat with counts.

Where the size of a result depends on values, one number is read on the host; everything else stays on the device.
"""

from __future__ import annotations

from collections import namedtuple

from dovetail import _core
from dovetail._array import expect_array, expect_axis, expect_elements
from dovetail._core import Array
from dovetail._dtypes import result_type

__all__ = [
    "isin", "masked_scatter", "masked_select", "nonzero", "repeat", "searchsorted", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
]  # fmt: skip

_op = _core.op_function
_UNIQUE = "call it outside of the program, or use dovetail.sort() and keep the shape"
_MOST = 2**58  # elements of an array
UniqueAll = namedtuple("UniqueAll", "values indices inverse_indices counts")
UniqueCounts = namedtuple("UniqueCounts", "values counts")
UniqueInverse = namedtuple("UniqueInverse", "values inverse_indices")


def _numbers(n: int, like: Array) -> Array:
    return _op("iota")(n, "int64", device=like.device)


def _flat(x: Array) -> Array:
    return _op("reshape")(x, (x.size,))


# ---- where -------------------------------------------------------------------------------------------------------


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Positions of the elements that are not zero, in row-major order: one int64 array of shape (count,) per axis.

    Raises ValueError for an array without axes. Waits for the device.
    """
    expect_array("nonzero", x)
    expect_elements("nonzero", x, "use dovetail.where(mask, x, other) and keep the shape")
    return _core.nonzero(x)


def masked_select(x: Array, mask: Array, /) -> Array:
    """The elements of x where mask is True, as a vector in row-major order; x and mask broadcast.

    Waits for the device. Raises TypeError for a mask that is not bool, and in a trace.
    """
    x, mask = _with_mask("masked_select", x, mask)
    expect_elements("masked_select", x, "use dovetail.where(mask, x, other) and keep the shape")
    return x[mask]


def masked_scatter(x: Array, mask: Array, source: Array, /) -> Array:
    """x with the elements of source, in row-major order, at the places where mask is True; x and mask broadcast.

    source has x's dtype and as many elements as there are such places, or more, which are not used. With too few it
    is an IndexError, at once or at the next wait, as for an index out of range. Raises TypeError for other dtypes.
    """
    x, mask = _with_mask("masked_scatter", x, mask)
    expect_array("masked_scatter", source, "source")
    if source.dtype != x.dtype:
        raise TypeError(f"[masked_scatter] source: got {source.dtype}, expected x's {x.dtype}; use astype()")
    place = _op("cumulative_sum")(_op("astype")(_flat(mask), "int64"), axis=0)
    padded = _op("concat")([_op("zeros")((1,), dtype=x.dtype, device=x.device), _flat(source)])
    return _op("where")(mask, _op("reshape")(_op("take")(padded, place, axis=0), x.shape), x)


def _with_mask(op: str, x: Array, mask: Array) -> tuple[Array, Array]:
    expect_array(op, x)
    expect_array(op, mask, "mask")
    if mask.dtype != "bool":
        raise TypeError(f"[{op}] mask: got {mask.dtype}, expected bool")
    from dovetail._functions import broadcast_arrays

    return broadcast_arrays(x, mask)


# ---- unique ------------------------------------------------------------------------------------------------------


def unique_all(x: Array, /) -> UniqueAll:
    """The distinct values of x, sorted: (values, indices, inverse_indices, counts).

    indices: the first place of each value in the flattened x; inverse_indices: of x's shape, with
    values[inverse_indices] equal to x; counts: how often each occurs. All int64. NaNs are distinct from each other.
    """
    expect_array("unique_all", x)
    expect_elements("unique_all", x, _UNIQUE)
    return UniqueAll(*_core.unique(x))


def unique_counts(x: Array, /) -> UniqueCounts:
    """The distinct values of x, sorted, and how often each occurs. See unique_all."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Array, /) -> UniqueInverse:
    """The distinct values of x, sorted, and for each element of x the number of its value. See unique_all."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Array, /) -> Array:
    """The distinct values of x, sorted. NaNs are distinct from each other."""
    expect_array("unique_values", x)
    expect_elements("unique_values", x, _UNIQUE)
    return _core.unique(x, values_only=True)


# ---- searching ---------------------------------------------------------------------------------------------------


def searchsorted(x1: Array, x2: Array | float, /, *, side: str = "left", sorter: Array | None = None) -> Array:
    """The index in the sorted array x1 at which to insert each element of x2: int64, of x2's shape.

    x1 (n,) serves an x2 of any shape. x1 (..., n) has one sorted row for each row of x2 (..., m), as torch has it.
    side: "left" goes before equal elements, "right" behind them. sorter: positions that sort x1, of its shape,
    where it is not sorted itself. NaNs go to the end. Raises ValueError for shapes that do not fit or an
    unknown side.
    """
    if side not in ("left", "right"):
        raise ValueError(f"[searchsorted] side: expected 'left' or 'right', got {side!r}")
    expect_array("searchsorted", x1, "x1")
    dtype = result_type(x1, x2)
    if not isinstance(x2, Array):
        x2 = _op("full")((), x2, dtype=dtype, device=x1.device)
    if x1.ndim != 1 and (x1.ndim == 0 or x1.shape[:-1] != x2.shape[:-1]):
        raise ValueError(
            f"[searchsorted] x1: got shape {x1.shape}, expected one axis, or rows for those of x2 {x2.shape}"
        )
    pick = _op("take") if x1.ndim == 1 else _op("take_along_axis")
    if sorter is not None:
        x1 = pick(x1, sorter)
    x1, x2 = (x if x.dtype == dtype else _op("astype")(x, dtype) for x in (x1, x2))
    n = x1.shape[-1]
    low = _op("zeros")(x2.shape, dtype="int64", device=x1.device)
    if n == 0:
        return low
    high = low + n
    for _ in range(n.bit_length()):  # halves the span from low to high
        middle = _op("bitwise_right_shift")(low + high, 1)
        element = pick(x1, _op("minimum")(middle, n - 1), axis=-1)
        ahead = _before(element, x2) if side == "left" else _op("logical_not")(_before(x2, element))
        ahead = _op("logical_and")(ahead, _op("less")(low, high))
        low, high = _op("where")(ahead, middle + 1, low), _op("where")(ahead, high, middle)
    return low


def _before(a: Array, b: Array) -> Array:
    """a < b in sorted order, where NaN comes last."""
    less = _op("less")(a, b)
    if "floating" not in a.dtype.kind:
        return less
    return _op("logical_or")(less, _op("logical_and")(_op("isnan")(b), _op("logical_not")(_op("isnan")(a))))


def isin(x1: Array | float, x2: Array | float, /, *, invert: bool = False) -> Array:
    """Whether each element of x1 is among those of x2: bool, of x1's shape. NaN is among none.

    invert: whether it is not. Raises TypeError where neither is an array.
    """
    if not isinstance(x1, Array) and not isinstance(x2, Array):
        raise TypeError("[isin] expected at least one array, got two Python numbers")
    device = x1.device if isinstance(x1, Array) else x2.device
    dtype = result_type(x1, x2)
    x1, x2 = (_typed(x, dtype, device) for x in (x1, x2))
    among = _flat(x2)
    n = among.size
    if n == 0:
        found = _op("zeros")(x1.shape, dtype="bool", device=device)
    elif n <= 16 or dtype == "bool":
        found = _op("any")(_op("equal")(x1[..., None], among), axis=-1)
    else:
        among = _op("sort")(among)
        at = _op("minimum")(searchsorted(among, x1), n - 1)
        found = _op("equal")(_op("take")(among, at, axis=0), x1)
    return _op("logical_not")(found) if invert else found


def _typed(x: Array | float, dtype: object, device: object) -> Array:
    if not isinstance(x, Array):
        return _op("full")((), x, dtype=dtype, device=device)
    return x if x.dtype == dtype else _op("astype")(x, dtype)


def _total(counts: Array) -> int:
    """The sum of integers of at least 0, which may be too large for any dtype."""
    most = int(counts.max())
    if most * counts.size <= _MOST:
        return most * counts.size  # no smaller than the sum
    wide = counts if counts.dtype == "uint64" else _op("astype")(counts, "int64")
    high, low = _op("bitwise_right_shift")(wide, 32), _op("bitwise_and")(wide, 2**32 - 1)
    return (int(_op("sum")(high)) << 32) + int(_op("sum")(low))


def repeat(x: Array, repeats: int | Array, /, *, axis: int | None = None) -> Array:
    """Each element (each slice along `axis`) as often as `repeats` gives; axis None flattens first.

    repeats: a number, or a 1-D array of integers with one for each element (slice), or one for all. Waits for the
    device where it is an array. Raises ValueError for negative counts and for a length that fits not.
    """
    if not isinstance(repeats, Array):
        return _op("repeat")(x, repeats, axis=axis)
    expect_array("repeat", x)
    if "integer" not in repeats.dtype.kind:
        raise TypeError(f"[repeat] repeats: expected integers, got {repeats.dtype}")
    expect_elements("repeat", repeats, "pass one number for all, or an array that the program captures")
    if axis is None:
        x, axis = _flat(x), 0
    axis = expect_axis("repeat", axis, x.ndim)
    n = x.shape[axis]
    if repeats.ndim > 1 or (repeats.ndim == 1 and repeats.size not in (1, n)):
        raise ValueError(
            f"[repeat] repeats: expected one for each of {n}, or one for all, got shape {repeats.shape}"
        )
    if repeats.size == 1:
        return _op("repeat")(x, int(repeats), axis=axis)
    if n == 0:
        return x
    if (least := int(repeats.min())) < 0:
        raise ValueError(f"[repeat] repeats: expected numbers of at least 0, got {least}")
    if (total := _total(repeats)) > _MOST:
        raise ValueError(f"[repeat] repeats add up to {total}: expected at most 2^58 elements along axis {axis}")
    ends = _op("cumulative_sum")(repeats, dtype="int64")
    source = searchsorted(ends, _numbers(int(ends[-1]), x), side="right")
    return _op("take")(x, source, axis=axis)
