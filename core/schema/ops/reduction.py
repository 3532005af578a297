"""Reductions, arg-reductions, scans and sorting."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from .. import dtypes as dt
from ..declare import DType, Ints, Tensor, op
from ..lazy_numpy import np
from ..samples import Sample, draw, given, sample
from ._float import INF, NAN, bits, magnitude, magnitude_bits
from .arithmetic import negative
from .logic import bitwise_invert, isinf, isnan, logical_not, truth
from .movement import concat, moveaxis, take_along_axis
from .primitives import (
    ANY,
    accumulated,
    as_axes,
    astype,
    broadcast_to,
    copy,
    exp,
    extremum_samples,
    full,
    iota,
    log,
    max_,
    multiply,
    permute_dims,
    reduction_samples,
    reshape,
    set_slice,
    sqrt,
    sum_,
    where,
)


def count(x: Tensor, axis: tuple[int, ...]) -> int:
    """How many elements a reduction over axis joins."""
    return math.prod(x.shape[a] for a in axis)


def reduced_shape(x: Tensor, axis: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    return tuple(1 if i in axis else n for i, n in enumerate(x.shape) if keepdims or i not in axis)


def _joined(x: Tensor, axis: tuple[int, ...]) -> Tensor:
    """x with the axes of a reduction as one last axis."""
    kept = [i for i in range(x.ndim) if i not in axis]
    x = permute_dims(x, (*kept, *axis)) if axis else x
    return reshape(x, (*x.shape[: len(kept)], math.prod(x.shape[len(kept) :])))


@op(shape="reduce", dtype="same", tier="extended", dtypes=ANY, samples=extremum_samples,
    reference=lambda x, axis, keepdims: np.min(x, axis=as_axes(axis), keepdims=keepdims))  # fmt: skip
def min_(x: Tensor, /, *, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    """The smallest element over axis, NaN where there is one. Nothing to choose from is a ValueError."""
    turned = negative if x.dtype.kind in "fc" else bitwise_invert
    return turned(max_(turned(x), axis=axis, keepdims=keepdims))


def _prod_scale(x, axis, dtype, keepdims):
    """Every product rounds once."""
    p = np.prod(accumulated(x, dtype), axis=as_axes(axis), keepdims=keepdims)
    return np.abs(p) * max(1, x.size // max(1, np.size(p)) / 4)


def _prod_samples() -> Iterator[Sample]:
    yield sample("all", draw(3, 4, 5, low=0.5, high=1.5))
    yield sample("first", draw(33, 5, low=-1.5, high=1.5), axis=0)
    yield sample("last", draw(5, 65, low=-2, high=2), axis=-1, keepdims=True)
    yield sample("two", draw(3, 4, 5), axis=(0, -1))
    yield sample("none", draw(3, 4), axis=())
    yield sample("empty", draw(0, 3), axis=0)
    yield sample("bad_axis", draw(3, 4), axis=2, error=ValueError)


@op(shape="reduce", dtype="accum", tier="extended", tol=2, scale=_prod_scale, samples=_prod_samples,
    reference=lambda x, axis, dtype, keepdims: np.prod(accumulated(x, dtype), axis=as_axes(axis), keepdims=keepdims))  # fmt: skip
def prod(x: Tensor, /, *, axis: Ints | None = None, dtype: DType | None = None, keepdims: bool = False) -> Tensor:
    """The product over axis, or of all; 1 of nothing."""
    shape, x = reduced_shape(x, axis, keepdims), _joined(x, axis)
    if x.shape[-1] == 0:
        return full(shape, 1, dtype=x.dtype)
    odd = None
    while (n := x.shape[-1]) > 1:  # halves times halves
        if n % 2:
            odd = x[..., n - 1 :] if odd is None else multiply(odd, x[..., n - 1 :])
        x = multiply(x[..., : n // 2], x[..., n // 2 : n // 2 * 2])
    return reshape(x if odd is None else multiply(x, odd), shape)


def _mean(x, axis, keepdims=True):
    total = np.sum(x, axis=as_axes(axis), keepdims=keepdims)
    n = math.prod(np.shape(x)[a] for a in (range(np.ndim(x)) if axis is None else np.atleast_1d(axis).astype(int)))
    return total / (n or np.nan)


def _mean_samples() -> Iterator[Sample]:
    yield from reduction_samples()
    yield sample("empty", draw(0, 3), axis=0)


@op(shape="reduce", dtype="float", tier="extended", tol=2, samples=_mean_samples,
    reference=lambda x, axis, keepdims: _mean(x, axis, keepdims),
    scale=lambda x, axis, keepdims: _mean(np.abs(x), axis, keepdims))  # fmt: skip
def mean(x: Tensor, /, *, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    """The mean over axis, or of all; NaN of nothing."""
    return sum_(x, axis=axis, keepdims=keepdims) / float(count(x, axis) or NAN)


def _var(x, axis, correction, keepdims):
    n = np.size(x) // max(1, np.size(np.sum(x, axis=as_axes(axis)))) - correction
    d = x - _mean(x, axis)
    return np.sum(d * d, axis=as_axes(axis), keepdims=keepdims) / (n if n > 0 else np.nan)


def _var_samples() -> Iterator[Sample]:
    yield from reduction_samples()
    yield sample("unbiased", draw(5, 40), axis=1, correction=1.0)
    yield sample("far_mean", draw(5, 1000, low=99, high=101), axis=1)
    yield sample("too_few", draw(5, 1), axis=1, correction=1.0)


@op(shape="reduce", dtype="float", tol=8, reference=_var, samples=_var_samples)
def var(x: Tensor, /, *, axis: Ints | None = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance over axis, in two passes, divided by n - correction; NaN where that is not positive."""
    d = x - mean(x, axis=axis, keepdims=True)
    n = count(x, axis) - correction
    return sum_(d * d, axis=axis, keepdims=keepdims) / (float(n) if n > 0 else NAN)


@op(shape="reduce", dtype="float", tol=6, samples=_var_samples,
    reference=lambda x, axis, correction, keepdims: np.sqrt(_var(x, axis, correction, keepdims)))  # fmt: skip
def std(x: Tensor, /, *, axis: Ints | None = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The square root of the variance."""
    return sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


# ---- truth -------------------------------------------------------------------------------------------------------


def _truth_samples() -> Iterator[Sample]:
    yield from reduction_samples()
    yield sample("empty", draw(0, 3), axis=0)
    yield sample("rare", draw(200, 3, low=0, high=0.01), axis=1)


@op(shape="reduce", dtype="predicate", tier="extended", dtypes=ANY, samples=_truth_samples,
    reference=lambda x, axis, keepdims: np.any(x, axis=as_axes(axis), keepdims=keepdims))  # fmt: skip
def any_(x: Tensor, /, *, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    """Some element over axis is true (not 0); False of nothing."""
    if not count(x, axis):
        return full(reduced_shape(x, axis, keepdims), False)
    return max_(truth(x), axis=axis, keepdims=keepdims)


@op(shape="reduce", dtype="predicate", tier="extended", dtypes=ANY, samples=_truth_samples,
    reference=lambda x, axis, keepdims: np.all(x, axis=as_axes(axis), keepdims=keepdims))  # fmt: skip
def all_(x: Tensor, /, *, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    """Every element over axis is true (not 0); True of nothing."""
    return logical_not(any_(logical_not(x) if x.dtype.kind == "b" else x == 0, axis=axis, keepdims=keepdims))


@op(shape="reduce", dtype="index", dtypes=ANY, samples=_truth_samples,
    reference=lambda x, axis, keepdims: np.count_nonzero(x, axis=as_axes(axis), keepdims=keepdims))  # fmt: skip
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


@op(shape="reduce", dtype="float", tol=4, reference=_logsumexp, scale=_logsumexp_scale, samples=reduction_samples)
def logsumexp(x: Tensor, /, *, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) over axis, without overflow; -inf of nothing."""
    shape = reduced_shape(x, axis, keepdims)
    if not count(x, axis):
        return full(shape, -INF, dtype=x.dtype)
    m = finite_max(x, axis)
    return reshape(log(sum_(exp(x - m), axis=axis, keepdims=True)) + m, shape)


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


@op(shape="arg_reduce", dtype="index", tier="extended", samples=_arg_samples,
    reference=lambda x, axis, keepdims: np.argmax(x, axis, keepdims=keepdims))  # fmt: skip
def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where along axis, or in all of x, the largest element is first; the first NaN where there is one."""
    return _first_hit(x, max_, axis, keepdims)


@op(shape="arg_reduce", dtype="index", tier="extended", samples=_arg_samples,
    reference=lambda x, axis, keepdims: np.argmin(x, axis, keepdims=keepdims))  # fmt: skip
def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where along axis, or in all of x, the smallest element is first; the first NaN where there is one."""
    return _first_hit(x, min_, axis, keepdims)


# ---- scans -------------------------------------------------------------------------------------------------------


def _scanned(fn, x, axis, dtype, include_initial):
    x, axis = accumulated(x, dtype), 0 if axis is None else axis
    out = fn(x, axis=axis)
    if include_initial:
        unit = np.full_like(np.take(x, [], axis=axis), 0, shape=(*out.shape[: axis % x.ndim], 1, *out.shape[axis % x.ndim + 1 :]))
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
    """Each round joins every element with the one k before it: log2(n) rounds."""
    n, k = x.shape[axis], 1
    while k < n:
        x = _with(x, join(x[_part(axis, 0, n - k)], x[_part(axis, k)]), axis, k)
        k *= 2
    if include_initial:
        shape = tuple(m + (i == axis) for i, m in enumerate(x.shape))
        return _with(full(shape, unit, dtype=x.dtype), x, axis, 1)
    return x if n > 1 else copy(x)


def _scan_scale(x, axis, dtype, include_initial):
    return _scanned(np.cumsum, np.abs(x), axis, dtype, include_initial)


@op(shape="scan", dtype="accum", tier="extended", tol=3, scale=_scan_scale, samples=_scan_samples,
    reference=lambda x, **how: _scanned(np.cumsum, x, **how))  # fmt: skip
def cumulative_sum(x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None,
                   include_initial: bool = False) -> Tensor:  # fmt: skip
    """The sums of the first 1, 2, ... elements along axis, after a 0 with include_initial."""
    return _scan(x, lambda a, b: a + b, 0, axis, include_initial)


def _cumprod_scale(x, axis, dtype, include_initial):
    p = np.abs(_scanned(np.cumprod, x, axis, dtype, include_initial))
    steps = np.arange(p.shape[axis or 0]).reshape((-1, *(1,) * (p.ndim - 1 - (axis or 0) % p.ndim)))
    return p * np.maximum(1, steps / 4)


@op(shape="scan", dtype="accum", tier="extended", tol=3, scale=_cumprod_scale, samples=_scan_samples,
    reference=lambda x, **how: _scanned(np.cumprod, x, **how))  # fmt: skip
def cumulative_prod(x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None,
                    include_initial: bool = False) -> Tensor:  # fmt: skip
    """The products of the first 1, 2, ... elements along axis, after a 1 with include_initial."""
    return _scan(x, lambda a, b: a * b, 1, axis, include_initial)


# ---- sorting -----------------------------------------------------------------------------------------------------


def _argsort(x, axis, descending, stable):
    order = np.unique(x, return_inverse=True, equal_nan=True)[1].reshape(x.shape).astype(np.int64)
    if descending:
        order = np.where(np.isnan(x), x.size, -order) if x.dtype.kind == "f" else -order
    return np.argsort(order, axis=axis, kind="stable")


def _sort_samples() -> Iterator[Sample]:
    for n in (1, 2, 17, 100):
        yield sample(f"{n}", draw(3, n))
    yield sample("descending", draw(3, 33), descending=True)
    yield sample("axis0", draw(20, 3), axis=0)
    yield sample("ties", draw(4, 40, low=0, high=3, dtype=dt.int32), descending=True)
    yield sample("any_value", draw(2, 100, low=None))
    yield sample("any_value_down", draw(2, 100, low=None), descending=True)
    yield sample("zeros", given([0.0, -0.0, 1.0, -0.0, 0.0, float("nan"), -1.0]), only=dt.FLOATS)
    yield sample("empty", draw(3, 0))
    yield sample("bad_axis", draw(3), axis=1, error=ValueError)


def _order_key(x: Tensor, descending: bool) -> Tensor:
    """Integers in the order of x: zeros are one, NaN is last."""
    if x.dtype.kind != "f":
        key = astype(x, dt.uint8) if x.dtype.kind == "b" else x
        return bitwise_invert(key) if descending else key
    b, most = bits(x + 0.0), magnitude_bits(x.dtype)
    key = where(b < 0, b ^ most, b)
    return where(x == x, bitwise_invert(key) if descending else key, most)


def _pairs(x: Tensor, step: int) -> tuple[Tensor, Tensor]:
    """Along the last axis, the elements and those `step` further, block by block."""
    x = reshape(x, (*x.shape[:-1], x.shape[-1] // (2 * step), 2, step))
    return x[..., 0:1, :], x[..., 1:2, :]


def _exchange(key: Tensor, index: Tensor, block: int, step: int) -> tuple[Tensor, Tensor]:
    """One round of the bitonic network: upwards in even blocks, downwards in odd ones."""
    (ka, kb), (ia, ib) = _pairs(key, step), _pairs(index, step)
    up = (iota(key.shape[-1] // (2 * step), dt.int32) * (2 * step) & block) == 0
    swap = ((kb < ka) | ((kb == ka) & (ib < ia))) == reshape(up, (-1, 1, 1))
    key = reshape(concat([where(swap, kb, ka), where(swap, ka, kb)], axis=-2), key.shape)
    return key, reshape(concat([where(swap, ib, ia), where(swap, ia, ib)], axis=-2), index.shape)


@op(shape="along_axis", dtype="index", tier="extended", dtypes=ANY, samples=_sort_samples, reference=_argsort)
def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort x along axis; NaN comes last, equal elements keep their order (in both directions)."""
    n = x.shape[axis]
    key = moveaxis(_order_key(x, descending), axis, x.ndim - 1)
    size = 1 << max(0, n - 1).bit_length()
    whole = (*key.shape[:-1], size)
    if size > n:
        padded = full(whole, int(key.dtype.max), dtype=key.dtype)
        key = set_slice(padded, key, start=(0,) * key.ndim, stop=(*whole[:-1], n), step=(1,) * key.ndim)
    index = broadcast_to(iota(size, dt.int32), whole)
    block = 2
    while block <= size:
        step = block // 2
        while step:
            key, index = _exchange(key, index, block, step)
            step //= 2
        block *= 2
    return moveaxis(astype(index[..., :n], dt.int64), x.ndim - 1, axis)


@op(shape="along_axis", dtype="same", tier="extended", dtypes=ANY, samples=_sort_samples,
    reference=lambda x, **how: np.take_along_axis(x, _argsort(x, **how), how["axis"]))  # fmt: skip
def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """x sorted along axis; NaN comes last, equal elements (zeros of both signs) keep their order."""
    return take_along_axis(x, argsort(x, axis=axis, descending=descending, stable=stable), axis=axis)


# ---- norms -------------------------------------------------------------------------------------------------------


def _vector_norm(x, axis, keepdims, ord):
    a, axes = np.abs(x), as_axes(axis)
    if ord == np.inf:
        return np.max(a, axis=axes, keepdims=keepdims)
    if ord == -np.inf:
        return np.min(a, axis=axes, keepdims=keepdims)
    if ord == 0:
        return np.sum(a != 0, axis=axes, keepdims=keepdims) * 1.0
    return np.sum(a**ord, axis=axes, keepdims=keepdims) ** (1 / ord)


def _norm_samples() -> Iterator[Sample]:
    for ord in (2.0, 1.0, 3.0, 0.0, INF, -INF):
        yield sample(f"ord{ord:g}", draw(5, 40), axis=1, ord=ord)
    yield sample("all", draw(3, 4, 5), keepdims=True)
    yield sample("large", draw(4, 50, low=1e37, high=3e37), axis=1, only=(dt.float32, dt.float64))
    yield sample("small", draw(4, 50, low=0, high=1e-37), axis=1, only=(dt.float32, dt.float64))
    yield sample("zero", draw(4, 5, low=0, high=0), axis=1)


def _power_of_two_near(m: Tensor) -> Tensor:
    """Scales m, the largest of several magnitudes, to about 1 without rounding."""
    d = m.dtype
    single = d is not dt.float64
    high, low = (2.0**40, 2.0**-50) if single else (2.0**300, 2.0**-450)
    k = 2.0**-100 if single else 2.0**-600
    one = full((), 1.0, dtype=d)
    return where(m < low, 1 / k, where(high < m, k, one))


@op(shape="reduce", dtype="float", space="linalg", tol=12, reference=_vector_norm, samples=_norm_samples)
def vector_norm(x: Tensor, /, *, axis: Ints | None = None, keepdims: bool = False, ord: float = 2.0) -> Tensor:
    """The norm sum(abs(x)**ord)**(1/ord) over axis; the largest or smallest magnitude for infinite ord, the count for 0."""
    a = magnitude(x)
    if ord in (INF, -INF):
        return (max_ if ord > 0 else min_)(a, axis=axis, keepdims=keepdims)
    if ord == 0:
        return astype(count_nonzero(x, axis=axis, keepdims=keepdims), x.dtype)
    if ord == 1:
        return sum_(a, axis=axis, keepdims=keepdims)
    if ord != 2:
        return sum_(a**ord, axis=axis, keepdims=keepdims) ** (1.0 / ord)
    if not count(x, axis):
        return full(reduced_shape(x, axis, keepdims), 0.0, dtype=x.dtype)
    k = _power_of_two_near(max_(a, axis=axis, keepdims=True))
    scaled = a * k
    return reshape(sqrt(sum_(scaled * scaled, axis=axis, keepdims=True)) / k, reduced_shape(x, axis, keepdims))
