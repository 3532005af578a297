"""Quantiles: elements of the sorted array, and values between them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from dovetail import _core
from dovetail._array import expect_array, expect_axis, symbolic
from dovetail._core import Array
from dovetail._nan import is_float

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

_op = _core.op_function
Axis = int | tuple[int, ...] | None

# alpha and beta of Hyndman and Fan (1996): the quantile is at n q + alpha + q (1 - alpha - beta) - 1, from 0 on.
_BETWEEN = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
# Methods whose results are elements of x.
_ELEMENTS = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
METHODS = ("linear", "midpoint", "averaged_inverted_cdf", *_BETWEEN, *_ELEMENTS)


def _position(method: str, n: Any, q: Any, xp: Any) -> tuple[Any, Any]:
    """Where in n sorted elements the quantiles are: (floor, weight of the next element), both floating.

    xp: NumPy or dovetail, whose arrays q is of; n is a number or an array that broadcasts with q.
    """
    last = (n - 1) * q
    if method == "averaged_inverted_cdf":
        at = n * q - 1.0
        low = xp.floor(at)
        return low, xp.where(at == low, 0.5, 1.0)
    if method == "closest_observation":
        at = n * q - 1.5
        low = xp.floor(at)
        tie_to_odd = (at == low) & (low - 2.0 * xp.floor(low / 2.0) == 1.0)
        return xp.where(tie_to_odd, low, low + 1.0), None
    if method in _ELEMENTS:
        whole = {"lower": xp.floor, "higher": xp.ceil, "nearest": xp.round, "inverted_cdf": xp.ceil}[method]
        return whole(n * q - 1.0 if method == "inverted_cdf" else last), None
    if method == "linear":
        at = last
    elif method == "midpoint":
        at = 0.5 * (xp.floor(last) + xp.ceil(last))
    else:
        alpha, beta = _BETWEEN[method]
        at = n * q + (q * (1.0 - alpha - beta) + (alpha - 1.0))
    low = xp.floor(at)
    return low, at - low


def _rows(name: str, x: Array, axis: Axis) -> tuple[Array, list[int]]:
    """x with the axes joined to one, which is the last, and the axes that they were."""
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = [expect_axis(name, a, x.ndim) for a in axes]
    if len(set(axes)) != len(axes):
        raise ValueError(f"[{name}] axis: got {axis!r}, expected each axis once")
    rest = [a for a in range(x.ndim) if a not in axes]
    moved = _op("permute_dims")(x, (*rest, *axes))
    return _op("reshape")(moved, (*(x.shape[a] for a in rest), prod(x.shape[a] for a in axes))), axes


def _host_q(name: str, q: Any) -> Any:
    import numpy as np

    q = np.asarray(q, dtype=np.float64)
    if not np.all((q >= 0) & (q <= 1)):
        what, most = ("q / 100", 100) if "percentile" in name else ("q", 1)
        raise ValueError(f"[{name}] {what}: got {q.tolist()}, expected q from 0 to {most}")
    return q


def _places(
    name: str, rows: Array, q: Any, method: str, skip_nan: bool
) -> tuple[Array, Array, Any, tuple[int, ...]]:
    """(lower indices, upper ones, weights of these or None, q's shape), along the last axis of the rows."""
    import dovetail

    n: Any = rows.shape[-1]
    dtype = rows.dtype if is_float(rows) and rows.dtype.itemsize > 2 else "float32"
    skip_nan = skip_nan and is_float(rows)
    if not isinstance(q, Array):
        q = _host_q(name, q)
    shape = tuple(q.shape)
    if not skip_nan and not symbolic(n) and not isinstance(q, Array):  # exact for any n, and no launch
        import numpy as np

        low, weight = _position(method, n, q.reshape(-1), np)
        ends = (np.clip(low + k, 0, n - 1).astype(np.int64) for k in (0, 1))
        low, high = (dovetail.asarray(i, device=rows.device) for i in ends)
        if weight is not None:
            weight = dovetail.asarray(weight, dtype=dtype, device=rows.device)
    else:
        if not isinstance(q, Array):
            q = dovetail.asarray(q, dtype=dtype, device=rows.device)
        q = _op("reshape")(_op("astype")(q, dtype), (-1,))
        if skip_nan:
            n = _op("astype")(_op("count_nonzero")(_op("equal")(rows, rows), axis=-1, keepdims=True), dtype)
        low, weight = _position(method, n, q, dovetail)
        high = _op("minimum")(low + 1.0, n - 1)
        low, high = (_op("maximum")(_op("minimum")(i, n - 1), 0.0) for i in (low, high))
        low, high = (_op("astype")(i, "int64") for i in (low, high))
    lead = (1,) * (rows.ndim - low.ndim)
    low, high = (_op("reshape")(i, (*lead, *i.shape)) for i in (low, high))
    return low, high, weight, shape


def _quantile(
    name: str, x: Array, q: Any, axis: Axis, method: str, keepdims: bool, skip_nan: bool = False
) -> Array:
    expect_array(name, x)
    if method not in METHODS:
        raise ValueError(f"[{name}] method: got {method!r}, expected one of {', '.join(METHODS)}")
    if x.dtype == "bool" or "complex" in x.dtype.kind:
        raise TypeError(f"[{name}] x is {x.dtype}: expected real numbers; astype() converts it")
    rows, axes = _rows(name, x, axis)
    n = rows.shape[-1]
    if not symbolic(n) and n == 0:
        raise ValueError(f"[{name}] shape {x.shape} has no elements along axis {axis}: expected one at least")
    low, high, weight, q_shape = _places(name, rows, q, method, skip_nan)
    rows = _op("sort")(rows)
    out = _op("take_along_axis")(rows, low)
    if weight is not None:
        out = _between(out, _op("take_along_axis")(rows, high), weight)
    if is_float(x) and not skip_nan:  # NaN is last
        out = _op("where")(_op("isnan")(rows[..., -1:]), float("nan"), out)
    rest = [1 if a in axes else m for a, m in enumerate(x.shape) if keepdims or a not in axes]
    return _op("reshape")(_op("moveaxis")(out, -1, 0), (*q_shape, *rest))


def _between(a: Array, b: Array, weight: Array) -> Array:
    """a + (b - a) * weight: exactly a and b at their ends, and infinite where one of them is."""
    dtype = a.dtype if is_float(a) else weight.dtype
    a, b = (_op("astype")(x, weight.dtype) for x in (a, b))
    apart = b - a
    y = _op("where")(weight < 0.5, a + apart * weight, b - apart * (1.0 - weight))
    y = _op("where")(_op("isfinite")(apart), y, a * (1.0 - weight) + b * weight)
    y = _op("where")(weight <= 0.0, a, _op("where")(weight >= 1.0, b, y))
    return y if y.dtype == dtype else _op("astype")(y, dtype)


Q = float | Sequence[float] | Array


def quantile(x: Array, q: Q, /, *, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Array:
    """The q-th quantile of x along axis, of all elements for None: of shape q.shape, then x's without the axes.

    q: a number from 0 to 1, several, or an array of them, which is not checked; method: one of NumPy's: "linear",
    "lower", "higher", "midpoint", "nearest", or an estimator of Hyndman and Fan, as "hazen" or "median_unbiased".
    Methods that choose an element keep x's dtype; for the others integers give float32. NaN where there is a NaN.
    Raises ValueError for an unknown method, a q out of range, or no elements.
    """
    return _quantile("quantile", x, q, axis, method, keepdims)


def nanquantile(x: Array, q: Q, /, *, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Array:
    """quantile of the elements that are not NaN; NaN where there are none."""
    return _quantile("nanquantile", x, q, axis, method, keepdims, skip_nan=True)


def _hundredth(q: Q) -> Any:
    if isinstance(q, Array):
        return q / 100.0
    import numpy as np

    return np.asarray(q, dtype=np.float64) / 100.0


def percentile(x: Array, q: Q, /, *, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Array:
    """quantile of q / 100, for q from 0 to 100."""
    return _quantile("percentile", x, _hundredth(q), axis, method, keepdims)


def nanpercentile(x: Array, q: Q, /, *, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Array:
    """percentile of the elements that are not NaN; NaN where there are none."""
    return _quantile("nanpercentile", x, _hundredth(q), axis, method, keepdims, skip_nan=True)


def median(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """The middle element along axis, of an even number the mean of the middle two: quantile of 0.5."""
    return _quantile("median", x, 0.5, axis, "linear", keepdims)


def nanmedian(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """median of the elements that are not NaN; NaN where there are none."""
    return _quantile("nanmedian", x, 0.5, axis, "linear", keepdims, skip_nan=True)
