"""Sums, extremes and what else makes one number of an axis; scans, sorting."""

from __future__ import annotations

from typing import Any

import dovetail as dt

from dovetail_torch.compile.table import Call, Unsupported, axes_of, axis_of, cast, lower, truth


@lower("sum", "sum.dim_IntList")
def total(call: Call, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return dt.sum(x, axis=axes_of(dim, x.ndim), dtype=call.dtype, keepdims=keepdim)


@lower("mean", "mean.dim")
def mean(call: Call, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return dt.mean(cast(x, call.dtype), axis=axes_of(dim, x.ndim), keepdims=keepdim)


@lower("prod", "prod.dim_int")
def product(call: Call, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return dt.prod(x, axis=axes_of(dim, x.ndim), dtype=call.dtype, keepdims=keepdim)


@lower("var.correction")
def variance(call: Call, x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    correction = 1.0 if correction is None else float(correction)
    return dt.var(x, axis=axes_of(dim, x.ndim), correction=correction, keepdims=keepdim)


@lower("std.correction")
def deviation(call: Call, x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    return dt.sqrt(variance(call, x, dim, correction=correction, keepdim=keepdim))


@lower("var_mean.correction")
def variance_and_mean(call: Call, x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    mean = dt.mean(x, axis=axes_of(dim, x.ndim), keepdims=keepdim)
    return variance(call, x, dim, correction=correction, keepdim=keepdim), mean


@lower("amax", "max")
def largest(call: Call, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return dt.max(x, axis=axes_of(dim, x.ndim), keepdims=keepdim)


@lower("amin", "min")
def smallest(call: Call, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return dt.min(x, axis=axes_of(dim, x.ndim), keepdims=keepdim)


@lower("max.dim")
def largest_and_place(call: Call, x: Any, dim: int, keepdim: bool = False) -> Any:
    return largest(call, x, dim, keepdim), place_of_largest(call, x, dim, keepdim)


@lower("min.dim")
def smallest_and_place(call: Call, x: Any, dim: int, keepdim: bool = False) -> Any:
    return smallest(call, x, dim, keepdim), place_of_smallest(call, x, dim, keepdim)


@lower("argmax")
def place_of_largest(call: Call, x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    return _place(dt.argmax, x, dim, keepdim)


@lower("argmin")
def place_of_smallest(call: Call, x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    return _place(dt.argmin, x, dim, keepdim)


def _place(function: Any, x: Any, dim: int | None, keepdim: bool) -> Any:
    if not x.ndim:
        return dt.zeros((), dtype="int64")
    return function(x, axis=None if dim is None else axis_of(dim, x.ndim), keepdims=keepdim)


@lower("any", "any.dim", "any.dims")
def any_of(call: Call, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return dt.any(truth(x), axis=axes_of(dim, x.ndim), keepdims=keepdim)


@lower("all", "all.dim", "all.dims")
def all_of(call: Call, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return dt.all(truth(x), axis=axes_of(dim, x.ndim), keepdims=keepdim)


@lower("logsumexp")
def log_of_sum(call: Call, x: Any, dim: Any, keepdim: bool = False) -> Any:
    return dt.logsumexp(cast(x, call.dtype), axis=axes_of(dim, x.ndim), keepdims=keepdim)


@lower("linalg_vector_norm")
def vector_norm(
    call: Call, x: Any, order: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    x = cast(x, call.dtype)
    return dt.linalg.vector_norm(x, axis=axes_of(dim, x.ndim), keepdims=keepdim, ord=float(order))


# ---- scans -------------------------------------------------------------------------------------------------------


@lower("cumsum")
def running_sum(call: Call, x: Any, dim: int, *, dtype: Any = None) -> Any:
    if not x.ndim:
        return cast(x, call.dtype)
    return dt.cumulative_sum(x, axis=axis_of(dim, x.ndim), dtype=call.dtype)


@lower("cumprod")
def running_product(call: Call, x: Any, dim: int, *, dtype: Any = None) -> Any:
    if not x.ndim:
        return cast(x, call.dtype)
    return dt.cumulative_prod(x, axis=axis_of(dim, x.ndim), dtype=call.dtype)


@lower("logcumsumexp")
def running_log_of_sum(call: Call, x: Any, dim: int) -> Any:
    return dt.logcumsumexp(x, axis=axis_of(dim, x.ndim)) if x.ndim else x


@lower("cummax")
def running_largest(call: Call, x: Any, dim: int) -> Any:
    _expect_axes(x)
    return dt.cummax(x, axis=axis_of(dim, x.ndim))


@lower("cummin")
def running_smallest(call: Call, x: Any, dim: int) -> Any:
    _expect_axes(x)
    return dt.cummin(x, axis=axis_of(dim, x.ndim))


# ---- order -------------------------------------------------------------------------------------------------------


@lower("topk")
def top_k(call: Call, x: Any, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    _expect_axes(x)
    axis, mode = axis_of(dim, x.ndim), "largest" if largest else "smallest"
    values, indices = dt.top_k(x, k, axis=axis, mode=mode)
    if not largest or not _has_nan(x):
        return values, indices
    is_nan = dt.isnan(x)  # torch has NaN as the largest value, Dovetail as the last one in both orders
    missing = dt.top_k(is_nan, k, axis=axis)[1]
    n = dt.sum(dt.astype(is_nan, "int64"), axis=axis, keepdims=True)
    place = dt.reshape(dt.arange(k, device=x.device), [k if i == axis else 1 for i in range(x.ndim)])
    place = dt.where(place < n, place, place + k - n)
    indices = dt.take_along_axis(dt.concat([missing, indices], axis=axis), place, axis=axis)
    return dt.take_along_axis(x, indices, axis=axis), indices


@lower("sort")
def sort(call: Call, x: Any, dim: int = -1, descending: bool = False) -> Any:
    return stable_sort(call, x, dim=dim, descending=descending)


@lower("sort.stable")
def stable_sort(call: Call, x: Any, *, stable: Any = True, dim: int = -1, descending: bool = False) -> Any:
    _expect_axes(x)
    axis = axis_of(dim, x.ndim)
    order = argsort(call, x, dim=dim, descending=descending)
    return dt.take_along_axis(x, order, axis=axis), order


@lower("argsort", "argsort.stable")
def argsort(call: Call, x: Any, *, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    _expect_axes(x)
    axis = axis_of(dim, x.ndim)
    order = dt.argsort(x, axis=axis, descending=descending)
    if not descending or not _has_nan(x):
        return order
    is_nan = dt.take_along_axis(dt.isnan(x), order, axis=axis)  # torch has NaN first
    return dt.take_along_axis(order, dt.argsort(is_nan, axis=axis, descending=True), axis=axis)


def _has_nan(x: Any) -> bool:
    return dt.isdtype(x.dtype, "real floating") and x.dtype.itemsize > 1


def _expect_axes(x: Any) -> None:
    if not x.ndim:
        raise Unsupported("an operand without axes")
