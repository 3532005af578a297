"""Reductions that leave NaN out, and comparisons within a tolerance. Integers have no NaN: there the plain
reductions run. Everything stays on the device and works in traces."""

from __future__ import annotations

from dovetail import _core
from dovetail._array import expect_array, is_complex
from dovetail._core import Array, DType
from dovetail._dtypes import result_type

__all__ = [
    "allclose", "isclose", "nan_to_num", "nanargmax", "nanargmin", "nanmax", "nanmean", "nanmin", "nanprod",
    "nanstd", "nansum", "nanvar",
]  # fmt: skip

_op = _core.op_function
Axis = int | tuple[int, ...] | None


def is_float(x: Array) -> bool:
    """Whether x can hold NaN."""
    return "floating" in x.dtype.kind


def _without_nan(name: str, x: Array, other: float) -> Array:
    """x with `other` in place of NaN."""
    expect_array(name, x)
    return _op("where")(_op("isnan")(x), other, x) if is_float(x) else x


def _wide(x: Array) -> Array:
    """x in a dtype that holds sums and counts: float32 of what is narrower."""
    if is_float(x) and x.dtype.itemsize > 2:
        return x
    return _op("astype")(x, "float32")


def _result(y: Array, x: Array) -> Array:
    """y, which was computed in _wide's dtype, in the dtype that a mean of x has."""
    return y if y.dtype == x.dtype or not is_float(x) else _op("astype")(y, x.dtype)


def _count(x: Array, axis: Axis, keepdims: bool, dtype: DType) -> Array:
    """How many elements are not NaN."""
    return _op("astype")(_op("count_nonzero")(_op("equal")(x, x), axis=axis, keepdims=keepdims), dtype)


# ---- sums --------------------------------------------------------------------------------------------------------


def nansum(x: Array, /, *, axis: Axis = None, dtype: DType | str | None = None, keepdims: bool = False) -> Array:
    """The sum of the elements that are not NaN; 0 where there are none. dtype: as sum has it."""
    return _op("sum")(_without_nan("nansum", x, 0), axis=axis, dtype=dtype, keepdims=keepdims)


def nanprod(x: Array, /, *, axis: Axis = None, dtype: DType | str | None = None, keepdims: bool = False) -> Array:
    """The product of the elements that are not NaN; 1 where there are none. dtype: as prod has it."""
    return _op("prod")(_without_nan("nanprod", x, 1), axis=axis, dtype=dtype, keepdims=keepdims)


def nanmean(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """The mean of the elements that are not NaN; NaN where there are none. Of integers and bool: their mean."""
    expect_array("nanmean", x)
    if not is_float(x):
        return _op("mean")(x, axis=axis, keepdims=keepdims)
    wide = _wide(x)
    total = nansum(wide, axis=axis, keepdims=keepdims)
    return _result(total / _count(x, axis, keepdims, wide.dtype), x)


def nanvar(x: Array, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The variance of the elements that are not NaN.

    Their sum of squared deviations from the mean, divided by their number less `correction`; NaN where that is not
    positive.
    """
    expect_array("nanvar", x)
    if not is_float(x):
        return _op("var")(x, axis=axis, correction=correction, keepdims=keepdims)
    wide = _wide(x)
    away = wide - nanmean(wide, axis=axis, keepdims=True)
    total = nansum(away * away, axis=axis, keepdims=keepdims)
    n = _count(x, axis, keepdims, wide.dtype) - correction
    return _result(_op("where")(n > 0, total / n, float("nan")), x)


def nanstd(x: Array, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The square root of nanvar."""
    expect_array("nanstd", x)
    variance = nanvar(_wide(x), axis=axis, correction=correction, keepdims=keepdims)
    return _result(_op("sqrt")(variance), x)


# ---- extremes ----------------------------------------------------------------------------------------------------


def _extreme(name: str, x: Array, axis: Axis, keepdims: bool) -> Array:
    worst = float("-inf") if name.endswith("max") else float("inf")
    y = _op(name.removeprefix("nan"))(_without_nan(name, x, worst), axis=axis, keepdims=keepdims)
    if not is_float(x):
        return y
    return _op("where")(_op("all")(_op("isnan")(x), axis=axis, keepdims=keepdims), float("nan"), y)


def nanmax(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """The largest of the elements that are not NaN; NaN where there are none."""
    return _extreme("nanmax", x, axis, keepdims)


def nanmin(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """The smallest of the elements that are not NaN; NaN where there are none."""
    return _extreme("nanmin", x, axis, keepdims)


def _place(name: str, x: Array, axis: int | None, keepdims: bool) -> Array:
    expect_array(name, x)
    if not is_float(x):
        return _op(name.removeprefix("nan"))(x, axis=axis, keepdims=keepdims)
    best = _extreme(name.replace("arg", ""), x, axis, True)
    return _op("argmax")(_op("astype")(_op("equal")(x, best), "int32"), axis=axis, keepdims=keepdims)


def nanargmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index, int64, of the largest element that is not NaN, the first of equal ones.

    axis None: in the flattened x. 0 where all elements are NaN, where NumPy raises: values are on the device.
    """
    return _place("nanargmax", x, axis, keepdims)


def nanargmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index, int64, of the smallest element that is not NaN, as nanargmax has it."""
    return _place("nanargmin", x, axis, keepdims)


def nan_to_num(x: Array, /, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Array:
    """x with numbers in place of NaN, inf and -inf; None: the largest number of x's dtype, or its negative.

    The parts of complex numbers are replaced each by itself.
    """
    expect_array("nan_to_num", x)
    if is_complex(x):
        pairs = _op("bitcast")(x, "float32" if x.dtype == "complex64" else "float64")
        return _op("bitcast")(nan_to_num(pairs, nan=nan, posinf=posinf, neginf=neginf), x.dtype)
    if not is_float(x):
        return x.__copy__()
    from dovetail._dtypes import finfo

    most = finfo(x.dtype).max
    high, low = (most if posinf is None else posinf), (-most if neginf is None else neginf)
    finite = _op("where")(_op("isnan")(x), nan, x)
    finite = _op("where")(_op("equal")(x, float("inf")), high, finite)
    return _op("where")(_op("equal")(x, float("-inf")), low, finite)


# ---- tolerance ---------------------------------------------------------------------------------------------------


def isclose(
    x1: Array | float,
    x2: Array | float,
    /,
    *,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Array:
    """Whether abs(x1 - x2) <= atol + rtol * abs(x2), element by element: bool, of the operands' broadcast shape.

    Infinities are close to themselves alone; NaN is close to NaN with equal_nan, else to nothing. Raises TypeError
    where neither is an array.
    """
    if not isinstance(x1, Array) and not isinstance(x2, Array):
        raise TypeError("[isclose] expected at least one array, got two Python numbers")
    dtype = result_type(x1, x2) if _floating(x1) or _floating(x2) else "float32"
    device = x1.device if isinstance(x1, Array) else x2.device
    x1, x2 = (
        _op("astype")(x, dtype) if isinstance(x, Array) else _op("full")((), x, dtype=dtype, device=device)
        for x in (x1, x2)
    )
    equal = _op("equal")(x1, x2)
    limit = _op("add")(_op("multiply")(_op("abs")(x2), rtol), atol)
    within = _op("less_equal")(_op("abs")(_op("subtract")(x1, x2)), limit)
    near = _op("logical_or")(equal, _op("logical_and")(within, _op("isfinite")(x2)))
    if not equal_nan:
        return near
    return _op("logical_or")(near, _op("logical_and")(_op("isnan")(x1), _op("isnan")(x2)))


def _floating(x: Array | float) -> bool:
    return isinstance(x, Array) and is_float(x)


def allclose(
    x1: Array | float,
    x2: Array | float,
    /,
    *,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Array:
    """Whether all elements are close, as isclose has it: a bool array without axes, which `if` and bool() read."""
    return _op("all")(isclose(x1, x2, rtol=rtol, atol=atol, equal_nan=equal_nan))
