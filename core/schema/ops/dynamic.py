"""Slices whose starts are values on the device."""

from __future__ import annotations

from collections.abc import Iterator

from .. import dtypes as dt
from ..declare import Index, Ints, Tensor, op
from ..lazy_numpy import np
from ..samples import Sample, draw, given, sample
from .movement import MOVES
from .primitives import copy, iota, maximum, minimum, take
from .scatter import scatter
from .views import reshape


def _region(shape, starts, sizes, axis):
    """The slices of the region, with starts clamped so that it lies within the shape."""
    axis = range(len(shape)) if axis is None else [a % len(shape) for a in np.atleast_1d(axis)]
    where = [slice(None)] * len(shape)
    for a, start, size in zip(axis, np.atleast_1d(starts), np.atleast_1d(sizes), strict=True):
        start = min(max(int(start), 0), shape[a] - int(size))
        where[a] = slice(start, start + int(size))
    return tuple(where)


def _dynamic_slice(x, starts, sizes, axis):
    return x[_region(x.shape, starts, sizes, axis)]


def _dynamic_update_slice(x, update, starts, axis):
    out = np.array(x)
    axes = range(x.ndim) if axis is None else [a % x.ndim for a in np.atleast_1d(axis)]
    out[_region(x.shape, starts, [update.shape[a] for a in axes], axis)] = update
    return out


def _starts(*values: int, dtype: dt.DType = dt.int64):
    return given(values, dtype=dtype)


def _start(value: int, dtype: dt.DType = dt.int64):
    return given([value], dtype=dtype)._replace(shape=())


def _dynamic_slice_samples() -> Iterator[Sample]:
    yield sample("matrix", draw(5, 7), _starts(1, 3), (2, 4))
    yield sample("int32_starts", draw(5, 7), _starts(1, 3, dtype=dt.int32), (2, 4))
    yield sample("clamped", draw(5, 7), _starts(-3, 6), (2, 4))
    yield sample("far", draw(5, 7), _starts(2**62, -(2**62)), (2, 4))
    yield sample("one_axis", draw(2, 9, 3), _start(4), 3, axis=1)
    yield sample("one_axis_int32", draw(2, 9, 3), _start(4, dt.int32), 3, axis=-2)
    yield sample("two_axes", draw(4, 5, 6), _starts(2, 1), (3, 2), axis=(-1, 0))
    yield sample("number", draw(2, 9), 5, 2, axis=1)
    yield sample("all", draw(3, 4), _starts(1, 1), (3, 4))
    yield sample("no_elements", draw(3, 4), _starts(1, 9), (2, 0))
    yield sample("scalar", draw(), given([], 0, dtype=dt.int64), ())
    yield sample("too_large", draw(3, 4), _starts(0, 0), (4, 1), error=ValueError)
    yield sample("too_few", draw(3, 4), _starts(0), (1, 1), error=ValueError)
    yield sample("no_axis", draw(3, 4), _start(0), (1, 1), error=ValueError)
    yield sample("axis_twice", draw(3, 4), _starts(0, 0), (1, 1), axis=(0, -2), error=ValueError)


def _clamped(start: Tensor, most: int) -> Tensor:
    return minimum(maximum(start, 0), most)


def _places(starts: Tensor, axis: Ints, x: Tensor, sizes: tuple[int, ...]) -> list[tuple[int, Tensor]]:
    """Each axis of which a part is meant, and the indices of that part."""
    starts = reshape(starts, (len(axis),))
    return [
        (a, _clamped(starts[i : i + 1], x.shape[a] - size) + iota(size, dt.int64))
        for i, (a, size) in enumerate(zip(axis, sizes, strict=True))
        if size != x.shape[a]
    ]


def _dynamic_slice_axis_samples() -> Iterator[Sample]:
    for name, start in (("part", 2), ("before", -9), ("behind", 9)):
        yield sample(name, draw(2, 5, 3), _starts(start), 2, axis=1)
    yield sample("int32_start", draw(5), _starts(2, dtype=dt.int32), 2)
    yield sample("all", draw(5, 3), _starts(1), 3, axis=-1)
    yield sample("no_elements", draw(5, 3), _starts(1), 0)
    yield sample("too_large", draw(5), _starts(0), 6, error=ValueError)
    yield sample("two_starts", draw(5, 3), _starts(0, 1), 1, error=ValueError)


@op(
    shape="dynamic_slice_axis",
    dtype="same",
    private=True,
    samples=_dynamic_slice_axis_samples,
    reference=lambda x, start, size, axis: _dynamic_slice(x, start, size, axis),
    **MOVES,
)
def dynamic_slice_axis(x: Tensor, start: Index, size: int, *, axis: int = 0) -> Tensor:
    """dynamic_slice along one axis; start is a vector of one integer.

    Nothing is copied where x has `size` elements there.
    """
    n = x.shape[axis]
    if size == n:
        return reshape(x, x.shape)
    return take(x, _clamped(start, n - size) + iota(size, dt.int64), axis=axis)


@op(
    shape="dynamic_slice",
    dtype="same",
    tier="extended",
    samples=_dynamic_slice_samples,
    reference=_dynamic_slice,
    **MOVES,
)
def dynamic_slice(x: Tensor, starts: Index, sizes: Ints, *, axis: Ints | None = None) -> Tensor:
    """The region of x that begins at starts and has the given sizes; starts are read on the device.

    starts has one integer per axis, or one per axis of `axis`, in that order; for one axis it may be 0-d. A region
    that would begin before x or end behind it is moved until it lies within x, as in JAX.
    """
    if not axis:
        return copy(x)
    starts = reshape(starts, (len(axis),))
    for i, (a, size) in enumerate(zip(axis, sizes, strict=True)):
        x = dynamic_slice_axis(x, starts[i : i + 1], size, axis=a)
    return x


def _dynamic_update_slice_samples() -> Iterator[Sample]:
    yield sample("matrix", draw(5, 7), draw(2, 4), _starts(1, 3))
    yield sample("int32_starts", draw(5, 7), draw(2, 4), _starts(1, 3, dtype=dt.int32))
    yield sample("clamped", draw(5, 7), draw(2, 4), _starts(-3, 6))
    yield sample("far", draw(5, 7), draw(2, 4), _starts(2**62, -(2**62)))
    yield sample("cache", draw(2, 3, 9, 4), draw(2, 3, 1, 4), _start(4), axis=2)
    yield sample("cache_int32", draw(2, 3, 9, 4), draw(2, 3, 2, 4), _start(8, dt.int32), axis=-2)
    yield sample("two_axes", draw(4, 5, 6), draw(2, 5, 3), _starts(2, 1), axis=(-1, 0))
    yield sample("number", draw(2, 9), draw(2, 2), 5, axis=1)
    yield sample("all", draw(3, 4), draw(3, 4), _starts(1, 1))
    yield sample("no_elements", draw(3, 4), draw(2, 0), _starts(1, 9))
    yield sample("scalar", draw(), draw(), given([], 0, dtype=dt.int64))
    yield sample("too_large", draw(3, 4), draw(4, 1), _starts(0, 0), error=ValueError)
    yield sample("other_axis", draw(3, 4), draw(1, 3), _start(0), axis=0, error=ValueError)
    yield sample("ranks", draw(3, 4), draw(3), _starts(0, 0), error=ValueError)
    yield sample("too_few", draw(3, 4), draw(1, 1), _starts(0), error=ValueError)


@op(
    shape="dynamic_update_slice",
    dtype="promote",
    tier="extended",
    samples=_dynamic_update_slice_samples,
    reference=_dynamic_update_slice,
    **MOVES,
)
def dynamic_update_slice(x: Tensor, update: Tensor, starts: Index, *, axis: Ints | None = None) -> Tensor:
    """x with the region of update's shape that begins at starts replaced by update; starts are read on the device.

    starts has one integer per axis, or one per axis of `axis`, in that order; for one axis it may be 0-d. A region
    that would begin before x or end behind it is moved until it lies within x, as in JAX. On the axes that axis
    leaves out, update has x's size. A kernel writes to x's own memory where nothing else needs it.
    """
    parts = _places(starts, axis, x, tuple(update.shape[a] for a in axis))
    return _updated(x, update, parts) if parts else copy(update)


def _updated(x: Tensor, update: Tensor, parts: list[tuple[int, Tensor]]) -> Tensor:
    (a, places), *rest = parts
    if rest:
        update = _updated(take(x, places, axis=a), update, rest)
    return scatter(x, places, update, axis=a)
