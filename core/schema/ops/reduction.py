"""Reductions, arg-reductions, scans and sorting."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from .. import dtypes as dt
from ..declare import DType, Ints, Tensor, op
from ..lazy_numpy import np
from ..loops import loop
from ..number import largest
from ..samples import Sample, draw, given, sample
from ._float import NAN
from .arithmetic import negative
from .logic import bitwise_invert, isinf, isnan, logical_not, truth
from .primitives import (
    ANY,
    accumulated,
    as_axes,
    astype,
    exp,
    extremum_samples,
    full,
    iota,
    log,
    max_,
    multiply,
    reduction_samples,
    sqrt,
    sum_,
    where,
)
from .views import permute_dims, reshape, set_slice, with_middle


def count(x: Tensor, reduced: Tensor) -> int:
    """How many elements of x each element of a reduction of it joins."""
    return math.prod(x.shape) // largest(1, math.prod(reduced.shape))


def reduced_shape(x: Tensor, axis: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    return tuple(1 if i in axis else n for i, n in enumerate(x.shape) if keepdims or i not in axis)


def _joined(x: Tensor, axis: tuple[int, ...]) -> Tensor:
    """x as (outer, n, inner): n goes over the axes of a reduction. Nothing is copied where they are adjacent."""
    first = axis[0] if axis else x.ndim
    if axis != tuple(range(first, first + len(axis))):
        kept = [i for i in range(x.ndim) if i not in axis]
        x, first = permute_dims(x, (*kept, *axis)), len(kept)
    return with_middle(x, first, len(axis))


@op(
    shape="reduce",
    dtype="same",
    tier="extended",
    dtypes=ANY,
    samples=extremum_samples,
    reference=lambda x, axis, keepdims: np.min(x, axis=as_axes(axis), keepdims=keepdims),
)
def min_(x: Tensor, /, *, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    """The smallest element over axis, NaN where there is one. Nothing to choose from is a ValueError."""
    turned = negative if x.dtype.kind in "fc" else bitwise_invert
    return turned(max_(turned(x), axis=axis, keepdims=keepdims))


def _prod(x, axis, dtype, keepdims):
    return np.prod(accumulated(x, dtype), axis=as_axes(axis), keepdims=keepdims)


def _prod_scale(x, axis, dtype, keepdims):
    """Every product rounds once."""
    p = _prod(x, axis, dtype, keepdims)
    return np.abs(p) * max(1, x.size // max(1, np.size(p)) / 4)


def _prod_samples() -> Iterator[Sample]:
    yield sample("all", draw(3, 4, 5, low=0.5, high=1.5))
    yield sample("first", draw(33, 5, low=-1.5, high=1.5), axis=0)
    yield sample("last", draw(5, 65, low=-2, high=2), axis=-1, keepdims=True)
    yield sample("two", draw(3, 4, 5), axis=(0, -1))
    yield sample("none", draw(3, 4), axis=())
    yield sample("empty", draw(0, 3), axis=0)
    yield sample("bad_axis", draw(3, 4), axis=2, error=ValueError)


def _prod_middle_samples() -> Iterator[Sample]:
    for n in (33, 64, 2, 1, 0):
        yield sample(f"{n}", draw(2, n, 3, low=-1.5, high=1.5))
    yield sample("no_rows", draw(0, 5, 3))
    yield sample("vector", draw(3), error=ValueError)


@op(
    shape="reduce_middle",
    dtype="same",
    private=True,
    tol=2,
    dtypes=(*dt.FLOATS, dt.int64, dt.uint64),
    scale=lambda x: _prod_scale(x, 1, None, False),
    samples=_prod_middle_samples,
    reference=lambda x: np.prod(x, axis=1),
)
def prod_middle(x: Tensor, /) -> Tensor:
    """The products of x, which has three axes, over the middle one; 1 of nothing."""
    outer, n, inner = x.shape
    size = 1 << largest(0, n - 1).bit_length()
    if size > n:
        ones = full((outer, size, inner), 1, dtype=x.dtype)
        x = set_slice(ones, x, start=(0, 0, 0), stop=x.shape, step=(1, 1, 1))

    def halves(i: int, x: Tensor) -> Tensor:
        half = x.shape[1] // 2
        return multiply(x[:, :half], x[:, half:])

    return reshape(loop(largest(0, n - 1).bit_length(), halves, x)[0], (outer, inner))


@op(
    shape="reduce",
    dtype="accum",
    autocast="float32",
    tier="extended",
    tol=2,
    scale=_prod_scale,
    samples=_prod_samples,
    reference=_prod,
)
def prod(x: Tensor, /, *, axis: Ints | None = None, dtype: DType | None = None, keepdims: bool = False) -> Tensor:
    """The product over axis, or of all; 1 of nothing."""
    axis = tuple(map(int, axis))  # each set of axes has a program of its own
    return reshape(prod_middle(_joined(x, axis)), reduced_shape(x, axis, keepdims))


def _mean(x, axis, keepdims=True):
    total = np.sum(x, axis=as_axes(axis), keepdims=keepdims)
    n = math.prod(np.shape(x)[a] for a in (range(np.ndim(x)) if axis is None else np.atleast_1d(axis).astype(int)))
    return total / (n or np.nan)


def _mean_samples() -> Iterator[Sample]:
    yield from reduction_samples()
    yield sample("empty", draw(0, 3), axis=0)


@op(
    shape="reduce",
    dtype="float",
    autocast="float32",
    tier="extended",
    tol=2,
    samples=_mean_samples,
    reference=lambda x, axis, keepdims: _mean(x, axis, keepdims),
    scale=lambda x, axis, keepdims: _mean(np.abs(x), axis, keepdims),
)
def mean(x: Tensor, /, *, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    """The mean over axis, or of all; NaN of nothing."""
    total = sum_(x, axis=axis, keepdims=keepdims)
    n = count(x, total)
    return total / (n if n else NAN)


def _var(x, axis, correction, keepdims):
    n = np.size(x) // max(1, np.size(np.sum(x, axis=as_axes(axis)))) - correction
    d = x - _mean(x, axis)
    return np.sum(d * d, axis=as_axes(axis), keepdims=keepdims) / (n if n > 0 else np.nan)


def _mean_error(x, axis, keepdims, like):
    """The rounding error of the mean, which is subtracted: for equal elements it is all that remains."""
    eps = (dt.float32 if like.itemsize == 2 else like).eps  # fp16 and bf16 compute in float32
    return eps, 2 * eps * np.max(np.abs(x), axis=as_axes(axis), keepdims=keepdims, initial=0)


def _var_scale(x, axis, correction, keepdims, like):
    eps, error = _mean_error(x, axis, keepdims, like)
    return error * error / eps


def _std_scale(x, axis, correction, keepdims, like):
    eps, error = _mean_error(x, axis, keepdims, like)
    std = np.sqrt(_var(x, axis, correction, keepdims))
    return (np.hypot(std, error) - std) / eps


def _var_samples() -> Iterator[Sample]:
    yield from reduction_samples()
    yield sample("unbiased", draw(5, 40), axis=1, correction=1.0)
    yield sample("far_mean", draw(5, 1000, low=99, high=101), axis=1)
    yield sample("constant", given([0.1, 1.0956934, 3.3] * 5, 5, 3), axis=0)
    yield sample("too_few", draw(5, 1), axis=1, correction=1.0)


@op(
    shape="reduce", dtype="float", autocast="float32", tol=8, reference=_var, scale=_var_scale, samples=_var_samples
)
def var(x: Tensor, /, *, axis: Ints | None = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance over axis, in two passes, divided by n - correction; NaN where that is not positive."""
    m = mean(x, axis=axis, keepdims=True)
    d, n = x - m, count(x, m) - correction
    return sum_(d * d, axis=axis, keepdims=keepdims) / (n if n > 0 else NAN)


@op(
    shape="reduce",
    dtype="float",
    autocast="float32",
    tol=6,
    samples=_var_samples,
    scale=_std_scale,
    reference=lambda x, axis, correction, keepdims: np.sqrt(_var(x, axis, correction, keepdims)),
)
def std(x: Tensor, /, *, axis: Ints | None = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The square root of the variance."""
    return sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


# ---- truth -------------------------------------------------------------------------------------------------------


def _truth_samples() -> Iterator[Sample]:
    yield from reduction_samples()
    yield sample("empty", draw(0, 3), axis=0)
    yield sample("rare", draw(200, 3, low=0, high=0.01), axis=1)


@op(
    shape="reduce",
    dtype="predicate",
    tier="extended",
    dtypes=ANY,
    samples=_truth_samples,
    reference=lambda x, axis, keepdims: np.any(x, axis=as_axes(axis), keepdims=keepdims),
)
def any_(x: Tensor, /, *, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    """Some element over axis is true (not 0); False of nothing."""
    if not math.prod(x.shape):
        return count_nonzero(x, axis=axis, keepdims=keepdims) != 0
    return max_(truth(x), axis=axis, keepdims=keepdims)


@op(
    shape="reduce",
    dtype="predicate",
    tier="extended",
    dtypes=ANY,
    samples=_truth_samples,
    reference=lambda x, axis, keepdims: np.all(x, axis=as_axes(axis), keepdims=keepdims),
)
def all_(x: Tensor, /, *, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    """Every element over axis is true (not 0); True of nothing."""
    return logical_not(any_(logical_not(x) if x.dtype.kind == "b" else x == 0, axis=axis, keepdims=keepdims))


@op(
    shape="reduce",
    dtype="index",
    dtypes=ANY,
    samples=_truth_samples,
    reference=lambda x, axis, keepdims: np.count_nonzero(x, axis=as_axes(axis), keepdims=keepdims),
)
def count_nonzero(x: Tensor, /, *, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    """How many elements over axis are not 0."""
    return sum_(astype(truth(x), dt.int64), axis=axis, keepdims=keepdims)


def finite_max(x: Tensor, axis: tuple[int, ...]) -> Tensor:
    """The largest element, or 0 where that is infinite: what to subtract before exp."""
    m = max_(x, axis=axis, keepdims=True)
    return where(isinf(m), 0.0, m)


def _logsumexp(x, axis, keepdims):
    m = np.max(x, axis=as_axes(axis), keepdims=True, initial=-np.inf)
    m = np.where(np.isinf(m), 0, m)
    out = np.log(np.sum(np.exp(x - m), axis=as_axes(axis), keepdims=True)) + m
    return out if keepdims else np.squeeze(out, tuple(range(x.ndim)) if axis is None else as_axes(axis))


def _logsumexp_scale(x, axis, keepdims):
    m = np.max(x, axis=as_axes(axis), keepdims=keepdims, initial=-np.inf)
    return np.maximum(1, np.where(np.isfinite(m), np.abs(m), 1))


@op(
    shape="reduce",
    dtype="float",
    autocast="float32",
    tol=4,
    reference=_logsumexp,
    scale=_logsumexp_scale,
    samples=reduction_samples,
)
def logsumexp(x: Tensor, /, *, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) over axis, without overflow; -inf of nothing."""
    if not math.prod(x.shape):
        return log(sum_(x, axis=axis, keepdims=keepdims))
    m = finite_max(x, axis)
    total = sum_(exp(x - m), axis=axis, keepdims=keepdims)
    return log(total) + reshape(m, total.shape)


# ---- arg-reductions ----------------------------------------------------------------------------------------------


def _arg_samples() -> Iterator[Sample]:
    yield sample("all", draw(4, 5))
    yield sample("rows", draw(6, 50), axis=1)
    yield sample("columns", draw(50, 6), axis=0, keepdims=True)
    yield sample("ties", draw(40, 30, low=0, high=3, dtype=dt.int32), axis=-1)
    yield sample("any_value", draw(60, 40, low=None), axis=0)
    yield sample("scalar", draw())
    yield sample("empty", draw(3, 0), axis=1, error=ValueError)
    yield sample("bad_axis", draw(3, 4), axis=2, error=ValueError)


def _first_hit(x: Tensor, best: Callable[..., Tensor], axis: int | None, keepdims: bool) -> Tensor:
    shape = (1,) * x.ndim if axis is None else reduced_shape(x, (axis,), True)
    if not keepdims:
        shape = () if axis is None else reduced_shape(x, (axis,), False)
    if axis is None:
        x, axis = reshape(x, -1), 0
    n = x.shape[axis]
    hit = x == best(x, axis=(axis,), keepdims=True)
    if x.dtype.kind == "f":
        hit = hit | isnan(x)
    down = reshape((n - 1) - iota(n, dt.int64), (n, *(1,) * (x.ndim - axis - 1)))
    return reshape((n - 1) - max_(where(hit, down, -1), axis=(axis,)), shape)


@op(
    shape="arg_reduce",
    dtype="index",
    tier="extended",
    samples=_arg_samples,
    reference=lambda x, axis, keepdims: np.argmax(x, axis, keepdims=keepdims),
)
def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The first position of the largest element along axis, or in all of x; the first NaN where there is one."""
    return _first_hit(x, max_, axis, keepdims)


@op(
    shape="arg_reduce",
    dtype="index",
    tier="extended",
    samples=_arg_samples,
    reference=lambda x, axis, keepdims: np.argmin(x, axis, keepdims=keepdims),
)
def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The first position of the smallest element along axis, or in all of x; the first NaN where there is one."""
    return _first_hit(x, min_, axis, keepdims)
