"""Joining, repeating, reordering: ops that copy elements and compute nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from .. import dtypes as dt
from ..declare import Index, Ints, Scalar, Tensor, op
from ..lazy_numpy import np
from ..loops import loop
from ..number import largest, smallest
from ..samples import Sample, draw, given, indices, sample
from .logic import less_equal, not_equal
from .primitives import ANY, as_axes, copy, full, iota, subtract, take, where
from .views import broadcast_to, expand_dims, moveaxis, reshape, set_slice

MOVES = {"half": "native", "dtypes": ANY}


def _concat_samples() -> Iterator[Sample]:
    yield sample("vectors", [draw(3), draw(1), draw(4)])
    yield sample("columns", [draw(3, 2), draw(3, 5)], axis=1)
    yield sample("negative", [draw(2, 3, 4), draw(2, 3, 1), draw(2, 3, 0)], axis=-1)
    yield sample("flat", [draw(2, 3), draw(4)], axis=None)
    yield sample("one", [draw(2, 3)])
    yield sample("many", [draw(2, 3)] * 12)
    yield sample("mismatch", [draw(2, 3), draw(3, 3)], axis=1, error=ValueError)
    yield sample("ranks", [draw(2, 3), draw(2)], error=ValueError)
    yield sample("nothing", [], error=ValueError)


@op(
    shape="concat",
    dtype="promote",
    tier="extended",
    reference=lambda arrays, axis: np.concatenate(arrays, axis),
    samples=_concat_samples,
    **MOVES,
)
def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """The arrays one after the other along axis; axis=None flattens them first."""
    if axis is None:
        arrays, axis = [reshape(a, -1) for a in arrays], 0
    first = arrays[0]
    total = [*first.shape]
    total[axis] = sum(a.shape[axis] for a in arrays)
    out, at = full(tuple(total), 0, dtype=first.dtype), 0
    for a in arrays:
        start, stop = [0] * first.ndim, [*total]
        start[axis], stop[axis] = at, at + a.shape[axis]
        out = set_slice(out, a, start=tuple(start), stop=tuple(stop), step=(1,) * first.ndim)
        at = stop[axis]
    return out


def _stack_samples() -> Iterator[Sample]:
    yield sample("rows", [draw(3), draw(3)])
    yield sample("last", [draw(2, 3)] * 3, axis=-1)
    yield sample("scalars", [draw(), draw()])
    yield sample("mismatch", [draw(3), draw(4)], error=ValueError)


@op(
    shape="stack",
    dtype="promote",
    tier="extended",
    reference=lambda arrays, axis: np.stack(arrays, axis),
    samples=_stack_samples,
    **MOVES,
)
def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """The arrays, all of one shape, along a new axis."""
    return concat([expand_dims(a, axis=axis) for a in arrays], axis=axis)


# ---- repeating ---------------------------------------------------------------------------------------------------


def _repeat_samples() -> Iterator[Sample]:
    yield sample("flat", draw(2, 3), 2)
    yield sample("axis", draw(2, 3, 4), 3, axis=1)
    yield sample("zero", draw(2, 3), 0, axis=0)
    yield sample("negative", draw(2), -1, error=ValueError)


@op(
    shape="repeat",
    dtype="same",
    samples=_repeat_samples,
    reference=lambda x, repeats, axis: np.repeat(x, repeats, axis),
    **MOVES,
)
def repeat(x: Tensor, repeats: int, /, *, axis: int | None = None) -> Tensor:
    """Every element repeats times in a row, along axis or of the flattened x."""
    if axis is None:
        x, axis = reshape(x, -1), 0
    shape = [*x.shape]
    wide = broadcast_to(expand_dims(x, axis=axis + 1), (*shape[: axis + 1], repeats, *shape[axis + 1 :]))
    shape[axis] *= repeats
    return reshape(wide, tuple(shape))


def _tile_samples() -> Iterator[Sample]:
    yield sample("vector", draw(3), (4,))
    yield sample("matrix", draw(2, 3), (2, 3))
    yield sample("more_axes", draw(2, 3), (2, 1, 3))
    yield sample("fewer_axes", draw(2, 3), 2)
    yield sample("zero", draw(2, 3), (0, 1))


@op(
    shape="tile",
    dtype="same",
    samples=_tile_samples,
    reference=lambda x, repetitions: np.tile(x, repetitions),
    **MOVES,
)
def tile(x: Tensor, repetitions: Ints, /) -> Tensor:
    """x repetitions times along each axis, the last ones where they are fewer."""
    n = len(repetitions)
    shape = (1,) * (n - x.ndim) + x.shape
    apart = reshape(x, tuple(m for size in shape for m in (1, size)))
    wide = broadcast_to(apart, tuple(m for r, size in zip(repetitions, shape, strict=True) for m in (r, size)))
    return reshape(wide, tuple(r * size for r, size in zip(repetitions, shape, strict=True)))


# ---- turning -----------------------------------------------------------------------------------------------------


def _flip_samples() -> Iterator[Sample]:
    yield sample("all", draw(2, 3, 4))
    yield sample("axis", draw(2, 3, 4), axis=1)
    yield sample("two", draw(2, 3, 4), axis=(0, -1))
    yield sample("empty", draw(0, 3))
    yield sample("bad_axis", draw(2), axis=1, error=ValueError)


@op(shape="flip", dtype="same", samples=_flip_samples, reference=lambda x, axis: np.flip(x, as_axes(axis)), **MOVES)
def flip(x: Tensor, /, *, axis: Ints | None = None) -> Tensor:
    """x backwards along axis, or along every axis."""
    out = x
    for a in axis:
        n = x.shape[a]
        out = take(out, (n - 1) - iota(n, dt.int64), axis=a)
    return copy(x) if out is x else out


def _roll_samples() -> Iterator[Sample]:
    yield sample("flat", draw(2, 3), 4)
    yield sample("axis", draw(5, 3), 2, axis=0)
    yield sample("backward", draw(5, 3), -1, axis=-1)
    yield sample("two", draw(4, 5), (1, 7), axis=(0, 1))
    yield sample("same_axis", draw(5), (1, 1), axis=(0, 0))
    yield sample("empty", draw(0, 3), 1, axis=0)


def _rolled(x: Tensor, shift: int, axis: int) -> Tensor:
    cut = -shift % largest(x.shape[axis], 1)
    head = (slice(None),) * axis
    return concat([x[(*head, slice(cut, None))], x[(*head, slice(0, cut))]], axis=axis)


@op(
    shape="roll",
    dtype="same",
    samples=_roll_samples,
    reference=lambda x, shift, axis: np.roll(x, shift, as_axes(axis)),
    **MOVES,
)
def roll(x: Tensor, /, shift: Ints, *, axis: Ints | None = None) -> Tensor:
    """x moved shift places along axis, what leaves at one end coming in at the other.

    Without axis, the flattened x.
    """
    out, shape = x, x.shape
    if axis is None:
        return reshape(_rolled(reshape(x, -1), shift[0], 0), shape)
    for s, a in zip(shift, axis, strict=True):
        out = _rolled(out, s, a)
    return copy(x) if out is x else out


def _triangle_samples() -> Iterator[Sample]:
    for k in (0, 1, -2):
        yield sample(f"k{k}", draw(2, 4, 5), k=k)
    yield sample("outside", draw(3, 3), k=-5)
    yield sample("any_value", draw(40, 40, low=None))
    yield sample("vector", draw(3), error=ValueError)


def on_or_below(rows: int, columns: int, k: int) -> Tensor:
    """The mask of a matrix's places on and below its k-th diagonal."""
    row = reshape(iota(rows, dt.int64), (rows, 1))
    return less_equal(subtract(iota(columns, dt.int64), k), row)


@op(shape="matrix", dtype="same", samples=_triangle_samples, reference=lambda x, k: np.tril(x, k), **MOVES)
def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """x with zeros above its k-th diagonal."""
    return where(on_or_below(*x.shape[-2:], k), x, False if x.dtype.kind == "b" else 0)


@op(shape="matrix", dtype="same", samples=_triangle_samples, reference=lambda x, k: np.triu(x, k), **MOVES)
def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """x with zeros below its k-th diagonal."""
    return where(on_or_below(*x.shape[-2:], k - 1), False if x.dtype.kind == "b" else 0, x)


# ---- padding and picking -----------------------------------------------------------------------------------------


def _pad(x, pad_width, constant_values):
    w = [pad_width] if isinstance(pad_width, int) else list(pad_width)
    w = w * (2 if len(w) == 1 else 1)
    w = w * (x.ndim if len(w) == 2 else 1)
    return np.pad(x, [(w[2 * i], w[2 * i + 1]) for i in range(x.ndim)], constant_values=constant_values)


def _pad_samples() -> Iterator[Sample]:
    yield sample("all", draw(3, 4), 2)
    yield sample("both", draw(3, 4), (1, 2), constant_values=1)
    yield sample("each", draw(3, 4), (0, 1, 2, 0))
    yield sample("negative", draw(3), (-1, 0), error=ValueError)


@op(shape="pad", dtype="same", samples=_pad_samples, reference=_pad, **MOVES)
def pad(x: Tensor, pad_width: Ints, *, constant_values: Scalar = 0) -> Tensor:
    """x with constant_values around it.

    pad_width: one number for every side, (before, after) for every axis, or a pair for each axis in one flat row.
    """
    before, after = pad_width[::2], pad_width[1::2]
    shape = tuple(b + n + a for b, n, a in zip(before, x.shape, after, strict=True))
    value = bool(constant_values) if x.dtype.kind == "b" else constant_values
    stop = tuple(b + n for b, n in zip(before, x.shape, strict=True))
    return set_slice(full(shape, value, dtype=x.dtype), x, start=before, stop=stop, step=(1,) * x.ndim)


def _take_along(x, indices, axis):
    a = axis % x.ndim
    rest = np.broadcast_shapes(*((*s[:a], 1, *s[a + 1 :]) for s in (x.shape, indices.shape)))
    x, indices = (np.broadcast_to(v, (*rest[:a], v.shape[a], *rest[a + 1 :])) for v in (x, indices))
    return np.take_along_axis(x, indices, a)


def _take_along_samples() -> Iterator[Sample]:
    yield sample("rows", draw(5, 6), indices(5, 3, size=6))
    yield sample("columns", draw(5, 6), indices(2, 6, size=5), axis=0)
    yield sample("cube", draw(2, 5, 3), indices(2, 4, 3, size=5), axis=1)
    yield sample("broadcast", draw(5, 6), indices(1, 3, size=6))
    yield sample("beyond", draw(2, 3), given([0, 3], 2, 1, dtype=dt.int64), error=IndexError)
    yield sample("ranks", draw(2, 3), indices(2, size=3), error=ValueError)


@op(
    shape="take_along_axis",
    dtype="same",
    tier="extended",
    samples=_take_along_samples,
    reference=_take_along,
    **MOVES,
)
def take_along_axis(x: Tensor, indices: Index, /, *, axis: int = -1) -> Tensor:
    """out[..., i, ...] = x[..., indices[..., i, ...], ...] along axis; a negative index counts from the end.

    The other axes of x and indices broadcast. An index outside of [-n, n) is an IndexError.
    """
    n, k, last = x.shape[axis], indices.shape[axis], x.ndim - 1
    x, indices = moveaxis(x, axis, last), moveaxis(indices, axis, last)
    sizes = zip(x.shape[:-1], indices.shape[:-1], strict=True)
    rest = tuple(largest(a, b) * smallest(a, b, 1) for a, b in sizes)  # one of them is 1, or both are equal
    rows = math.prod(rest)
    x, indices = broadcast_to(x, (*rest, n)), reshape(broadcast_to(indices, (*rest, k)), (rows, k))
    indices = where(indices < 0, indices + n, indices)
    beyond = (indices < 0) | (n <= indices)  # it must not become an index of an adjacent row
    flat = where(beyond, rows * n, indices + reshape(iota(rows, dt.int64) * n, (rows, 1)))
    out = take(reshape(x, -1), flat, axis=0)
    return moveaxis(reshape(out, (*rest, k)), last, axis)


# ---- differences -------------------------------------------------------------------------------------------------


def _diff(x, prepend, append, axis, n):
    axis %= x.ndim
    if n == 0:
        return x
    parts = [prepend, x, append]
    one = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    parts = [np.broadcast_to(p, one) if np.ndim(p) == 0 else p for p in parts if p is not None]
    return np.diff(np.concatenate(parts, axis), n, axis)


def _diff_samples() -> Iterator[Sample]:
    yield sample("vector", draw(9))
    yield sample("axis", draw(4, 5), axis=0)
    yield sample("twice", draw(4, 5), n=2)
    yield sample("ends", draw(4, 5), prepend=draw(4, 1), append=draw(4, 2))
    yield sample("too_often", draw(3), n=4)
    yield sample("zero_times", draw(3), n=0)
    yield sample("zero_times_with_ends", draw(3), n=0, prepend=draw(2), append=draw(1))


@op(
    shape="diff",
    dtype="promote",
    tol=1,
    samples=_diff_samples,
    reference=_diff,
    scale=lambda x, prepend, append, axis, n: 4.0 * 2**n if n > 1 else 0.0,
)
def diff(
    x: Tensor, /, n: int = 1, *, axis: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The differences between successive elements along axis, n times over; x itself where n is 0.

    prepend and append are joined to x before the first difference. Of bool: whether successive elements differ.
    """
    if n == 0:
        return copy(x)
    one = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    parts = [broadcast_to(p, one) if p.ndim == 0 else p for p in (prepend, x, append) if p is not None]
    out = concat(parts, axis=axis) if len(parts) > 1 else x
    head, differ = (slice(None),) * axis, not_equal if out.dtype.kind == "b" else subtract

    def difference(_: int, x: Tensor) -> Tensor:
        return differ(x[(*head, slice(1, None))], x[(*head, slice(0, largest(x.shape[axis] - 1, 0)))])

    return loop(smallest(n, out.shape[axis]), difference, out)[0]
