"""Writing to places that indices name, along an axis or by slices, and sums of segments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from .. import dtypes as dt
from ..declare import Index, Tensor, Unsupported, op
from ..lazy_numpy import np
from ..loops import loop
from ..number import largest
from ..samples import Sample, draw, given, indices, sample
from .primitives import add, astype, copy, equal, full, iota, less, maximum, minimum, multiply, take, where
from .sorting import argsort
from .views import broadcast_to, moveaxis, reshape, with_middle

JOINS = {"add": "add", "max": "maximum", "min": "minimum", "multiply": "multiply"}
ORDERED = dt.NOT_COMPLEX  # complex numbers have no order, and not every device adds them up


def _scatter(x, indices, updates, axis, mode):
    out = np.moveaxis(np.array(x), axis, 0)
    region = [*x.shape]
    region[axis] = indices.size
    updates = np.moveaxis(np.broadcast_to(updates, region), axis, 0)
    if mode == "set":
        out[indices] = updates
    else:
        getattr(np, JOINS[mode]).at(out, indices, updates)
    return np.moveaxis(out, 0, axis)


def _scatter_scale(x, indices, updates, axis, mode):
    """What the rounding errors of one place are worth: they grow with the number of updates that meet there."""
    if mode not in ("add", "multiply"):
        return 0.0
    size = _scatter(np.abs(x), indices, np.abs(updates), axis, mode)
    n = np.moveaxis(np.zeros(x.shape), axis, 0)
    np.add.at(n, indices, 1)
    n = np.moveaxis(n, 0, axis)
    return size * np.maximum(1, n / 4 if mode == "multiply" else np.sqrt(n) / 2)


def _scatter_samples() -> Iterator[Sample]:
    yield sample("vector", draw(9), given([3, -1, 0], dtype=dt.int64), draw(3))
    yield sample("rows", draw(5, 4), given([4, 1], dtype=dt.int64), draw(2, 4))
    yield sample("columns", draw(5, 4), given([3, -3], dtype=dt.int64), draw(5, 2), axis=-1)
    yield sample("broadcast", draw(5, 4), given([2], dtype=dt.int64), draw(1, 1))
    yield sample("nothing", draw(5), given([], 0, dtype=dt.int64), draw(0))
    yield sample("beyond", draw(5), given([5], dtype=dt.int64), draw(1), error=IndexError)
    for mode in JOINS:
        near = {"low": 0.5, "high": 1.5} if mode == "multiply" else {}
        yield sample(f"{mode}_vector", draw(9), indices(30, size=9), draw(30, **near), mode=mode, only=ORDERED)
        yield sample(f"{mode}_rows", draw(5, 4), indices(12, size=5), draw(12, 4, **near), mode=mode, only=ORDERED)
        yield sample(
            f"{mode}_columns",
            draw(3, 5, 2),
            indices(9, size=5),
            draw(3, 9, 2, **near),
            axis=1,
            mode=mode,
            only=ORDERED,
        )
        yield sample(
            f"{mode}_broadcast",
            draw(4, 7),
            indices(6, size=7),
            draw(4, 1, **near),
            axis=-1,
            mode=mode,
            only=ORDERED,
        )
        yield sample(f"{mode}_nothing", draw(5), given([], 0, dtype=dt.int64), draw(0), mode=mode, only=ORDERED)
    yield sample("add_number", draw(6), indices(4, size=6), 2, mode="add", only=dt.REAL)
    yield sample("add_many", draw(3, 70), indices(300, size=3), draw(300, 70), mode="add", only=ORDERED)
    yield sample("add_no_columns", draw(5, 0), indices(3, size=5), draw(3, 0), mode="add", only=ORDERED)
    for mode in ("max", "min"):
        yield sample(
            f"{mode}_any_value",
            draw(7, low=None),
            indices(100, size=7),
            draw(100, low=None),
            mode=mode,
            only=ORDERED,
        )
    yield sample("add_beyond", draw(5), given([1, 5], dtype=dt.int64), draw(2), mode="add", error=IndexError)
    yield sample("add_before", draw(5), given([-6, 1], dtype=dt.int64), draw(2), mode="add", error=IndexError)
    yield sample("bad_mode", draw(5), given([1], dtype=dt.int64), draw(1), mode="mean", error=ValueError)


def _reduced(updates: Tensor, places: Tensor, join: Callable[..., Tensor]) -> Tensor:
    """Each row of updates joined with those before it that have the same place; places ascend. log2(n) rounds."""
    n = updates.shape[0]
    row = iota(n, dt.int64)

    def with_those_before(i: int, updates: Tensor) -> Tensor:
        k = 1 << i
        before = maximum(row - k, 0)
        same = equal(take(places, before, axis=0), places) & ~less(row, k)
        return where(reshape(same, (n, 1, 1)), join(take(updates, before, axis=0), updates), updates)

    return loop(largest(0, n - 1).bit_length(), with_those_before, updates)[0]


def _scatter_middle_samples() -> Iterator[Sample]:
    for mode in JOINS:
        near = {"low": 0.5, "high": 1.5} if mode == "multiply" else {}
        yield sample(f"{mode}", draw(3, 5, 2), indices(9, size=5), draw(3, 9, 2, **near), mode=mode)
        yield sample(f"{mode}_broadcast", draw(3, 5, 2), indices(9, size=5), draw(9, 1, **near), mode=mode)
        yield sample(f"{mode}_nothing", draw(3, 5, 2), given([], 0, dtype=dt.int64), draw(3, 0, 2), mode=mode)
    yield sample("add_beyond", draw(3, 5, 2), given([5], dtype=dt.int64), draw(), mode="add", error=IndexError)
    yield sample("matrix", draw(3, 5), given([1], dtype=dt.int64), draw(), mode="add", error=ValueError)
    yield sample("bad_mode", draw(3, 5, 2), given([1], dtype=dt.int64), draw(), mode="mean", error=ValueError)


@op(
    shape="scatter_middle",
    dtype="promote",
    private=True,
    tol=2,
    dtypes=ORDERED,
    reference=lambda x, indices, updates, mode: _scatter(x, indices, updates, 1, mode),
    scale=lambda x, indices, updates, mode: _scatter_scale(x, indices, updates, 1, mode),
    samples=_scatter_middle_samples,
)
def scatter_middle(x: Tensor, indices: Index, updates: Tensor, *, mode: str) -> Tensor:
    """x, which has three axes, with the updates joined to the slices along the middle one that indices names.

    As scatter does, for each mode but "set".
    """
    if mode == "set":
        raise Unsupported("mode='set' has no decomposition: it needs a kernel")
    if x.dtype.kind == "b":
        return astype(_scatter_joined(astype(x, dt.int32), indices, astype(updates, dt.int32), mode), dt.bool_)
    return _scatter_joined(x, indices, updates, mode)


def _scatter_joined(x: Tensor, indices: Tensor, updates: Tensor, mode: str) -> Tensor:
    """The updates of each place are brought together and joined in order; the last of each holds them all."""
    join = {"add": add, "max": maximum, "min": minimum, "multiply": multiply}[mode]
    n, (outer, size, inner) = indices.shape[0], x.shape
    if n == 0:
        return copy(x)
    x, updates = moveaxis(x, 1, 0), moveaxis(broadcast_to(updates, (outer, n, inner)), 1, 0)
    places = take(iota(size, dt.int64), indices, axis=0)  # counted from 0; an index out of range is an error
    order = argsort(places, axis=0)
    places = take(places, order, axis=0)
    updates = _reduced(take(updates, order, axis=0), places, join)
    row = iota(n, dt.int64)
    last = less(places, take(places, minimum(row + 1, n - 1), axis=0)) | equal(row, n - 1)
    # For each place of x the row that holds its updates, or n: rows that are not their place's last go behind x.
    source = scatter(full((size + 1,), n, dtype=dt.int64), where(last, places, size), row)[:size]
    source = where(equal(source, n), -1, source)
    joined = join(x, take(updates, source, axis=0))
    return moveaxis(where(reshape(less(source, 0), (size, 1, 1)), x, joined), 0, 1)


@op(
    shape="scatter",
    dtype="promote",
    tier="must",
    tol=2,
    dtypes=dt.NOT_COMPLEX,
    reference=_scatter,
    scale=_scatter_scale,
    samples=_scatter_samples,
    version=2,
    since={"mode": 2},
)
def scatter(x: Tensor, indices: Index, updates: Tensor, *, axis: int = 0, mode: str = "set") -> Tensor:
    """x with the slices that indices (a vector) names replaced by updates, or joined with them as mode says.

    updates broadcast to x's shape with as many slices on axis as there are indices. mode="set" replaces: of several
    writes to one place any may win. "add", "multiply", "max" and "min" join each place with all its updates; equal
    calls give equal results, as their order is fixed. float16 and bfloat16 add up and multiply in float32; max and
    min give NaN where there is one; of bool, add and max are or, multiply and min are and.
    """
    if mode == "set":
        raise Unsupported("mode='set' has no decomposition: it needs a kernel")
    if updates.ndim:
        region = (*x.shape[:axis], indices.shape[0], *x.shape[axis + 1 :])
        updates = with_middle(broadcast_to(updates, region), axis)
    return reshape(scatter_middle(with_middle(x, axis), indices, updates, mode=mode), x.shape)


# ---- along an axis -----------------------------------------------------------------------------------------------


def _put_along(x, indices, values, axis, mode):
    out, axis = np.array(x), axis % x.ndim
    shape = (*x.shape[:axis], indices.shape[axis], *x.shape[axis + 1 :])
    places = [np.expand_dims(np.arange(n), [b for b in range(x.ndim) if b != a]) for a, n in enumerate(x.shape)]
    places[axis] = np.broadcast_to(indices, shape)
    values = np.broadcast_to(values, shape)
    if mode == "set":
        out[tuple(places)] = values
    else:
        getattr(np, JOINS[mode]).at(out, tuple(places), values)
    return out


def _put_along_scale(x, indices, values, axis, mode):
    if mode not in ("add", "multiply"):
        return 0.0
    size = _put_along(np.abs(x), indices, np.abs(values), axis, mode)
    n = _put_along(np.zeros(x.shape), indices, np.ones(()), axis, "add")
    return size * np.maximum(1, n / 4 if mode == "multiply" else np.sqrt(n) / 2)


def _put_along_samples() -> Iterator[Sample]:
    places = given([3, -1, 0, 2, 1, -6], 2, 3, dtype=dt.int64)
    yield sample("rows", draw(2, 6), places, draw(2, 3))
    yield sample("columns", draw(5, 6), given([3, -1, 0, 2, 1, 4], 1, 6, dtype=dt.int64), draw(1, 6), axis=0)
    yield sample("number", draw(2, 6), places, 2, only=dt.REAL)
    yield sample("broadcast", draw(2, 3, 6), given([3, -1], 1, 1, 2, dtype=dt.int64), draw(3, 1))
    yield sample("nothing", draw(2, 6), given([], 2, 0, dtype=dt.int64), draw(2, 0))
    for mode in JOINS:
        near = {"low": 0.5, "high": 1.5} if mode == "multiply" else {}
        yield sample(f"{mode}_rows", draw(4, 6), indices(4, 20, size=6), draw(4, 20, **near), mode=mode)
        yield sample(f"{mode}_cube", draw(2, 5, 3), indices(2, 9, 3, size=5), draw(9, 1, **near), axis=1, mode=mode)
    yield sample("add_any_value", draw(3, 7, low=None), indices(3, 7, size=7), draw(3, 7, low=None), mode="max")
    yield sample("beyond", draw(2, 3), given([0, 3], 2, 1, dtype=dt.int64), draw(), error=IndexError)
    yield sample("ranks", draw(2, 3), indices(2, size=3), draw(), error=ValueError)
    yield sample("sizes", draw(2, 3), indices(3, 1, size=3), draw(), error=ValueError)
    yield sample("values", draw(2, 3), indices(2, 1, size=3), draw(2, 2), error=ValueError)
    yield sample("bad_mode", draw(2, 3), indices(2, 1, size=3), draw(), mode="mean", error=ValueError)


@op(
    shape="put_along_axis",
    dtype="promote",
    tol=2,
    dtypes=dt.NOT_COMPLEX,
    reference=_put_along,
    scale=_put_along_scale,
    samples=_put_along_samples,
)
def put_along_axis(x: Tensor, indices: Index, values: Tensor, /, *, axis: int = -1, mode: str = "set") -> Tensor:
    """x with the elements along axis that indices names replaced by values, or joined with them.

    out[..., indices[..., i, ...], ...] = values[..., i, ...]. dovetail.put_along_axis writes this to x, as NumPy's
    does, and returns x.

    The modes are those of scatter: "set", of whose writes to one place any may win, "add", "multiply", "max" and
    "min". indices has the axes of x, with its sizes or 1 but for axis; values broadcast to it. A negative index
    counts from the end, one outside of [-n, n) is an IndexError.
    """
    n, k, last = x.shape[axis], indices.shape[axis], x.ndim - 1
    rest = (*x.shape[:axis], *x.shape[axis + 1 :])
    values = broadcast_to(values, (*x.shape[:axis], k, *x.shape[axis + 1 :]))
    moved = moveaxis(x, axis, last)
    rows = math.prod(rest)
    places = reshape(broadcast_to(moveaxis(indices, axis, last), (*rest, k)), (rows, k))
    places = where(less(places, 0), places + n, places)
    beyond = less(places, 0) | ~less(places, n)  # it must not become an index of an adjacent row
    flat = where(beyond, rows * n, places + reshape(iota(rows, dt.int64) * n, (rows, 1)))
    flat, values = reshape(flat, (rows * k,)), reshape(moveaxis(values, axis, last), (rows * k,))
    out = scatter(reshape(moved, (rows * n,)), flat, values, axis=0, mode=mode)
    return moveaxis(reshape(out, (*rest, n)), last, axis)


# ---- segments ----------------------------------------------------------------------------------------------------


def _segment_sum(x, segment_ids, num_segments):
    out = np.zeros((num_segments, *x.shape[1:]), x.dtype)
    inside = (segment_ids >= 0) & (segment_ids < num_segments)
    np.add.at(out, segment_ids[inside], x[inside])
    return out


def _segment_sum_scale(x, segment_ids, num_segments):
    n = _segment_sum(np.ones(x.shape), segment_ids, num_segments)
    return _segment_sum(np.abs(x), segment_ids, num_segments) * np.maximum(1, np.sqrt(n) / 2)


def _segment_sum_samples() -> Iterator[Sample]:
    yield sample("sorted", draw(6, 3), given([0, 0, 1, 3, 3, 3], dtype=dt.int64), 5)
    yield sample("unsorted", draw(40), indices(40, size=7)._replace(low=0), 7)
    yield sample("outside", draw(5, 2), given([0, -1, 2, 7, 2], dtype=dt.int64), 3)
    yield sample("nothing", draw(0, 4), given([], 0, dtype=dt.int64), 3)
    yield sample("no_segments", draw(3, 4), given([0, 1, 2], dtype=dt.int64), 0)
    yield sample("mismatch", draw(3, 4), given([0, 1], dtype=dt.int64), 2, error=ValueError)
    yield sample("scalar", draw(), given([0], dtype=dt.int64), 2, error=ValueError)
    yield sample("negative", draw(3), given([0, 1, 2], dtype=dt.int64), -1, error=ValueError)


@op(
    shape="segment_sum",
    dtype="numeric",
    autocast="float32",
    tol=2,
    reference=_segment_sum,
    scale=_segment_sum_scale,
    samples=_segment_sum_samples,
)
def segment_sum(x: Tensor, segment_ids: Index, num_segments: int) -> Tensor:
    """The sums of those rows of x (slices of its first axis) that have the same segment id; 0 where there are none.

    A row whose id is outside of [0, num_segments) is left out. Equal calls give equal results; float16 and bfloat16
    add up in float32.
    """
    outside = less(segment_ids, 0) | ~less(segment_ids, num_segments)
    places = where(outside, num_segments, segment_ids)
    zeros = full((num_segments + 1, *x.shape[1:]), 0, dtype=x.dtype)
    return scatter(zeros, places, x, mode="add")[:num_segments]
