"""Scans: what the elements up to each place give together."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .. import dtypes as dt
from ..declare import DType, Tensor, op
from ..lazy_numpy import np
from ..loops import loop
from ..number import largest
from ..samples import Sample, draw, given, sample
from .exponential import logaddexp
from .primitives import ANY, accumulated, copy, full, iota, where
from .views import broadcast_to, reshape, set_slice


def _scanned(fn, x, axis, dtype, include_initial):
    x, axis = accumulated(x, dtype), 0 if axis is None else axis
    out = fn(x, axis=axis)
    if include_initial:
        unit = np.full_like(
            np.take(x, [], axis=axis), 0, shape=(*out.shape[: axis % x.ndim], 1, *out.shape[axis % x.ndim + 1 :])
        )
        out = np.concatenate([unit + (fn is np.cumprod), out], axis=axis)
    return out


def _scan_samples() -> Iterator[Sample]:
    yield sample("vector", draw(100, low=-1, high=1))
    yield sample("rows", draw(4, 33, low=-1, high=1), axis=-1)
    yield sample("columns", draw(33, 4, low=-1, high=1), axis=0, include_initial=True)
    yield sample("one", draw(3, 1), axis=1)
    yield sample("empty", draw(3, 0), axis=1)
    yield sample("no_axis", draw(3, 4), error=ValueError)


def _part(axis: int, start: int, stop: int | None = None) -> tuple[slice, ...]:
    return (*(slice(None),) * axis, slice(start, stop))


def _with(x: Tensor, updates: Tensor, axis: int, start: int) -> Tensor:
    """x with what starts at `start` on axis replaced."""
    low = tuple(start if i == axis else 0 for i in range(x.ndim))
    return set_slice(x, updates, start=low, stop=x.shape, step=(1,) * x.ndim)


def _scan(x: Tensor, join: Callable[..., Tensor], unit: int, axis: int, include_initial: bool) -> Tensor:
    """Round i joins every element with the one 2^i before it."""
    n = x.shape[axis]

    def joined(i: int, x: Tensor) -> Tensor:
        k = 1 << i
        return _with(x, join(x[_part(axis, 0, largest(n - k, 0))], x[_part(axis, k)]), axis, k)

    if n > 1:
        (x,) = loop((n - 1).bit_length(), joined, x)
    if include_initial:
        shape = tuple(m + (i == axis) for i, m in enumerate(x.shape))
        return _with(full(shape, unit, dtype=x.dtype), x, axis, 1)
    return x if n > 1 else copy(x)


def _scan_scale(x, axis, dtype, include_initial):
    return _scanned(np.cumsum, np.abs(x), axis, dtype, include_initial)


@op(
    shape="scan",
    dtype="accum",
    autocast="float32",
    tier="extended",
    tol=3,
    scale=_scan_scale,
    samples=_scan_samples,
    reference=lambda x, **how: _scanned(np.cumsum, x, **how),
)
def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None, include_initial: bool = False
) -> Tensor:
    """The sums of the first 1, 2, ... elements along axis, after a 0 with include_initial."""
    return _scan(x, lambda a, b: a + b, 0, axis, include_initial)


def _cumprod_scale(x, axis, dtype, include_initial):
    p = np.abs(_scanned(np.cumprod, x, axis, dtype, include_initial))
    steps = np.arange(p.shape[axis or 0]).reshape((-1, *(1,) * (p.ndim - 1 - (axis or 0) % p.ndim)))
    return p * np.maximum(1, steps / 4)


@op(
    shape="scan",
    dtype="accum",
    autocast="float32",
    tier="extended",
    tol=3,
    scale=_cumprod_scale,
    samples=_scan_samples,
    reference=lambda x, **how: _scanned(np.cumprod, x, **how),
)
def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None, include_initial: bool = False
) -> Tensor:
    """The products of the first 1, 2, ... elements along axis, after a 1 with include_initial."""
    return _scan(x, lambda a, b: a * b, 1, axis, include_initial)


# ---- running extremes and their places ---------------------------------------------------------------------------


def _running(x, axis, better):
    values, indices = np.array(x), np.zeros(x.shape, np.int64)
    v, i = (np.moveaxis(a, axis, 0) for a in (values, indices))
    for k in range(1, len(v)):
        wins = better(v[k], v[k - 1]) | (v[k] != v[k])
        v[k], i[k] = np.where(wins, v[k], v[k - 1]), np.where(wins, k, i[k - 1])
    return values, indices


def _running_samples() -> Iterator[Sample]:
    yield sample("vector", draw(100))
    yield sample("rows", draw(4, 33), axis=-1)
    yield sample("columns", draw(33, 4), axis=0)
    yield sample("ties", draw(3, 40, low=0, high=3, dtype=dt.int32), axis=1)
    yield sample("any_value", draw(3, 100, low=None), axis=1)
    yield sample("zeros", given([0.0, -0.0, 0.0, -1.0, -0.0]), only=dt.FLOATS)
    yield sample("nan", given([1.0, float("nan"), 2.0, float("nan"), -9.0]), only=dt.FLOATS)
    yield sample("one", draw(3, 1), axis=1)
    yield sample("empty", draw(3, 0), axis=1)
    yield sample("bad_axis", draw(3), axis=1, error=ValueError)


def _cumulative_extreme(x: Tensor, axis: int, better: Callable[..., Tensor]) -> tuple[Tensor, Tensor]:
    """Round i joins every element with the one 2^i before it, which wins where it is better."""
    n = x.shape[axis]
    shape = tuple(n if a == axis else 1 for a in range(x.ndim))
    index = broadcast_to(reshape(iota(n, dt.int64), shape), x.shape)

    def joined(i: int, x: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        k = 1 << i
        before, after = _part(axis, 0, largest(n - k, 0)), _part(axis, k)
        earlier, later = x[before], x[after]
        wins = better(later, earlier) | (later != later)
        values, indices = where(wins, later, earlier), where(wins, index[after], index[before])
        return _with(x, values, axis, k), _with(index, indices, axis, k)

    if n > 1:
        return loop((n - 1).bit_length(), joined, x, index)
    return copy(x), copy(index)


EXTREME = {
    "shape": "along_axis",
    "dtype": "same_and_index",
    "n_out": 2,
    "dtypes": ANY,
    "samples": _running_samples,
}


@op(**EXTREME, reference=lambda x, axis: _running(x, axis, np.greater_equal))
def cummax(x: Tensor, /, *, axis: int = -1) -> tuple[Tensor, Tensor]:
    """The largest of the first 1, 2, ... elements along axis, and their indices: (values, indices).

    As torch has them: of equal elements the last one counts, and from the first NaN on all is NaN.
    """
    return _cumulative_extreme(x, axis, lambda a, b: a >= b)


@op(**EXTREME, reference=lambda x, axis: _running(x, axis, np.less_equal))
def cummin(x: Tensor, /, *, axis: int = -1) -> tuple[Tensor, Tensor]:
    """The smallest of the first 1, 2, ... elements along axis, and their indices: (values, indices). As cummax."""
    return _cumulative_extreme(x, axis, lambda a, b: a <= b)


# ---- sums of exponentials ----------------------------------------------------------------------------------------


def _logcumsumexp_samples() -> Iterator[Sample]:
    yield sample("vector", draw(100))
    yield sample("rows", draw(4, 33), axis=-1)
    yield sample("columns", draw(33, 4), axis=0)
    yield sample("large", draw(3, 50, low=-1000, high=1000), axis=1)
    yield sample("infinite", given([-float("inf"), -float("inf"), 1.0, float("inf"), 2.0, float("nan"), 0.0]))
    yield sample("empty", draw(3, 0), axis=1)


def _logcumsumexp_scale(x, axis):
    """An error of the largest element is one of the sum; rounds of log2(n) joins add up."""
    largest_so_far = np.maximum.accumulate(np.where(np.isfinite(x), np.abs(x), 0.0), axis=axis)
    return largest_so_far + 8.0 * (x.shape[axis] > 1)


@op(
    shape="along_axis",
    dtype="float",
    autocast="float32",
    tol=8,
    reference=lambda x, axis: np.logaddexp.accumulate(x, axis=axis),
    scale=_logcumsumexp_scale,
    samples=_logcumsumexp_samples,
)
def logcumsumexp(x: Tensor, /, *, axis: int = -1) -> Tensor:
    """The logarithms of the sums of exp(x) over the first 1, 2, ... elements along axis, without overflow."""
    return _scan(x, logaddexp, 0, axis, False)
