"""NumPy's functions on Arrays: np.sum(x, axis=0) runs on x's device and returns an Array.

Array.__array_ufunc__ and Array.__array_function__ import this module at their first call. A function that dovetail
does not have raises TypeError: NumPy would otherwise copy the array to the host without a word.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import dovetail as dt
from dovetail._array import as_size, numpy_dtype
from dovetail._core import Array
from dovetail._functions import rounded
from dovetail._names import RENAMED
from dovetail._numpy_table import PARAMETERS, SAME
from dovetail._numpy_ufuncs import array_like, device_of, operands, refuse, stored, to_arrays, ufunc, unknown
from dovetail._numpy_writes import WRITES, flat

__all__ = ["function", "operands", "ufunc"]

# ---- functions ---------------------------------------------------------------------------------------------------

# Functions whose result is on the host anyway: a file or text.
_ON_HOST = {"array2string", "array_repr", "array_str", "save", "savetxt", "savez", "savez_compressed"}
_NEUTRAL = {
    "casting": ("same_kind",), "kind": ("stable", "quicksort", "sort", "table"),
    "order": ("C", "K", "A"), "stable": (True,), "subok": (True,),
}  # fmt: skip


def _shown(value: Any) -> str:
    """The value of an option, as a message names it: an array by its type, its elements may be many."""
    return f"an array of {value.dtype}" if isinstance(value, (dt.Array, np.ndarray)) else repr(value)


def _bind(
    name: str, row: str, args: tuple[Any, ...], kwargs: dict[str, Any], device: Any
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of NumPy's function as dovetail's takes them."""
    parameters = row.split()
    plain = [p.strip("*@!").partition(">")[0] for p in parameters]
    if len(args) > len(plain):
        raise refuse(name, f"got {len(args)} arguments, expected at most {len(plain)}")
    given = dict(zip(plain, args, strict=False)) | kwargs
    positional, named = [], {}
    for parameter, key in zip(parameters, plain, strict=True):
        if key not in given:
            continue
        value = given.pop(key)
        if value is np._NoValue:
            continue
        if parameter[0] in "*@":
            as_array = parameter[0] == "@" and isinstance(value, (list, tuple))
            positional.append(dt.asarray(value, device=device) if as_array else value)
        elif parameter[0] != "!":
            named[parameter.partition(">")[2] or key] = value
        elif value is not None and value is not False and value not in _NEUTRAL.get(key, ()):
            raise refuse(name, f"{key}: got {_shown(value)}, expected none")
    if given:
        raise refuse(name, f"got {'= and '.join(given)}=, expected {', '.join(plain)}")
    return positional, named


def function(of: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of Array.__array_function__."""
    if not all(t in (Array, np.ndarray, np.memmap) or hasattr(t, "__dovetail_op__") for t in types):
        return NotImplemented
    module = of.__module__.partition(".")[2]
    key = of.__name__ if module in ("", "_core", "lib") else f"{module}.{of.__name__}"
    name = f"numpy.{key}"
    if key in _ON_HOST or (key in WRITES and not isinstance(_written_to(key, args, kwargs), Array)):
        return of(*map(_to_host, args), **{k: _to_host(v) for k, v in kwargs.items()})
    device = device_of((*args, *kwargs.values()))
    args, kwargs = to_arrays(args, device), {k: to_arrays(v, device) for k, v in kwargs.items()}
    if key in _WRITTEN:
        return _WRITTEN[key](*args, **kwargs)
    target = _target(key)
    if target is None:
        raise unknown(name)
    if key in SAME:
        return target(*args, **kwargs)
    positional, named = _bind(name, PARAMETERS[key], args, kwargs, device)
    return target(*positional, **named)


def _written_to(key: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function of WRITES writes to, its first parameter: perhaps an array of NumPy's."""
    return args[0] if args else kwargs.get(WRITES[key].__code__.co_varnames[0])


def _to_host(value: Any) -> Any:
    return value.numpy() if isinstance(value, Array) else value


def _target(key: str) -> Any:
    if key not in PARAMETERS and key not in SAME:
        return None
    found: Any = dt
    for part in key.split("."):
        found = getattr(found, RENAMED.get(part, part), None)
    return found


# ---- functions that need more than renamed arguments -----------------------------------------------------------

_WRITTEN: dict[str, Any] = dict(WRITES)


def _written(*names: str) -> Any:
    def keep(implementation: Any) -> Any:
        _WRITTEN.update(dict.fromkeys(names, implementation))
        return implementation

    return keep


def _no_more(name: str, **options: Any) -> None:
    """Raises TypeError for options whose value is not the default."""
    for key, value in options.items():
        if value is not None and value is not np._NoValue and value not in _NEUTRAL.get(key, ()):
            raise refuse(f"numpy.{name}", f"{key}: got {_shown(value)}, expected none")


_written("shape")(lambda a: a.shape)
_written("ndim")(lambda a: a.ndim)
_written("iscomplexobj")(lambda x: "complex" in x.dtype.kind)
_written("isrealobj")(lambda x: "complex" not in x.dtype.kind)
_written("real")(lambda val: val.real)
_written("imag")(lambda val: val.imag)
_written("argwhere")(lambda a: dt.stack(dt.nonzero(a), axis=1))
_written("flatnonzero")(lambda a: dt.nonzero(flat(a))[0])
_written("swapaxes")(lambda a, axis1, axis2: _swapped(a, axis1, axis2))
_written("fix")(lambda x, out=None: _no_more("fix", out=out) or dt.trunc(x))
_written("column_stack")(lambda tup: dt.concat([_as_column(x) for x in tup], axis=1))
_written("vstack", "row_stack")(lambda tup, **options: dt.concat([_at_least(x, 2) for x in tup], axis=0))
_written("result_type")(lambda *given: np.result_type(*map(_numpy_dtype, given)))
_written("can_cast")(lambda from_, to, casting="safe": np.can_cast(_numpy_dtype(from_), to, casting))


def _numpy_dtype(x: Any) -> Any:
    return numpy_dtype(x.dtype) if isinstance(x, Array) else x


def _swapped(x: Any, axis1: int, axis2: int) -> Any:
    axes = list(range(x.ndim))
    axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
    return dt.permute_dims(x, tuple(axes))


def _as_column(x: Any) -> Any:
    return dt.reshape(x, (x.size, 1)) if x.ndim < 2 else x


def _at_least(x: Any, ndim: int) -> Any:
    return x if x.ndim >= ndim else dt.reshape(x, (*(1,) * (ndim - x.ndim), *x.shape))


@_written("size")
def _size(a: Any, axis: Any = None) -> int:
    axes = range(a.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    size = 1
    for i in axes:
        size *= a.shape[i]
    return size


@_written("ravel")
def _ravel(a: Any, order: str = "C") -> Any:
    _no_more("ravel", order=order)
    return flat(a)


@_written("copy")
def _copy(a: Any, order: str = "K", subok: bool = True) -> Any:
    _no_more("copy", order=order)
    return a.copy()


@_written("atleast_1d")
def _atleast_1d(*arrays: Any) -> Any:
    made = tuple(_at_least(x, 1) for x in arrays)
    return made[0] if len(made) == 1 else made


@_written("atleast_2d")
def _atleast_2d(*arrays: Any) -> Any:
    made = tuple(_at_least(x, 2) for x in arrays)
    return made[0] if len(made) == 1 else made


@_written("transpose")
def _transpose(a: Any, axes: Any = None) -> Any:
    return dt.permute_dims(a, tuple(range(a.ndim))[::-1] if axes is None else tuple(axes))


@_written("squeeze")
def _squeeze(a: Any, axis: Any = None) -> Any:
    return dt.squeeze(a, tuple(i for i, n in enumerate(a.shape) if n == 1) if axis is None else axis)


@_written("hstack")
def _hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    _no_more("hstack", dtype=dtype, casting=casting)
    parts = [_at_least(x, 1) for x in tup]
    return dt.concat(parts, axis=0 if parts[0].ndim == 1 else 1)


@_written("split", "array_split")
def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    n, axis = ary.shape[axis], axis % ary.ndim
    if isinstance(indices_or_sections, int):
        sections = indices_or_sections
        each, longer = n // sections, n % sections  # so many parts have one slice more
        cuts = [each * i + dt.schema.number.smallest(i, longer) for i in range(1, sections)]
    else:
        cuts = [*map(as_size, indices_or_sections)]
    lead = (slice(None),) * axis
    ends = zip([0, *cuts], [*cuts, n], strict=True)
    return [ary[(*lead, slice(start, stop))] for start, stop in ends]


@_written("where")
def _where(condition: Any, /, *choices: Any) -> Any:
    if not choices:
        return dt.nonzero(condition)
    condition = condition if condition.dtype == "bool" else condition != 0
    return dt.where(condition, *choices)


@_written("clip")
def _clip(
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: Any = None,
    *,
    min: Any = None,
    max: Any = None,
    **options: Any,
) -> Any:
    _no_more("clip", **options)
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    return stored("clip", dt.clip(a, low, high), (out,), True)


@_written("round", "around")
def _round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    return stored("round", rounded(a, decimals), (out,), True)


@_written("take")
def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    _no_more("take", out=out, mode=None if mode == "raise" else mode)
    if not isinstance(indices, Array):
        indices = dt.asarray(indices, device=a.device)
    return dt.take(flat(a), indices, axis=0) if axis is None else dt.take(a, indices, axis=axis)


@_written("pad")
def _pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Any:
    if isinstance(constant_values, (tuple, list)):
        constant_values = np.unique(constant_values)
        if len(constant_values) != 1:
            raise refuse("numpy.pad", "constant_values: got several numbers, expected one")
        constant_values = constant_values[0].item()
    return dt.pad(array, pad_width, mode, constant_values=constant_values)


def _scanned(name: str) -> Any:
    def scan(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        _no_more(name, out=out)
        return getattr(dt, name)(flat(a) if axis is None else a, axis=0 if axis is None else axis, dtype=dtype)

    return scan


_written("cumsum")(_scanned("cumulative_sum"))
_written("cumprod")(_scanned("cumulative_prod"))


@_written("average")
def _average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    _no_more("average", returned=returned or None)
    keepdims = keepdims is True
    if weights is None:
        return dt.mean(a, axis=axis, keepdims=keepdims)
    if weights.shape != a.shape:
        _no_more("average", weights=f"shape {weights.shape} for {a.shape}")
    return dt.sum(a * weights, axis=axis, keepdims=keepdims) / dt.sum(weights, axis=axis, keepdims=keepdims)


def _variables(m: Any, y: Any, rowvar: bool) -> Any:
    """The rows that cov and corrcoef compare."""
    rows = [x.T if x.ndim == 2 and not rowvar else _at_least(x, 2) for x in (m, y) if x is not None]
    return m if y is None and m.ndim == 1 else dt.concat(rows, axis=0)


@_written("cov")
def _cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    _no_more("cov", dtype=dtype)
    correction = (0 if bias else 1) if ddof is None else ddof
    rows = _variables(m, y, rowvar)
    return dt.cov(rows, correction=correction, fweights=fweights, aweights=aweights)


@_written("corrcoef")
def _corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    _no_more("corrcoef", dtype=dtype)
    return dt.corrcoef(_variables(x, y, rowvar))


@_written("nan_to_num")
def _nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    if not copy:
        raise refuse("numpy.nan_to_num", "copy: got False, expected True; write x = numpy.nan_to_num(x)")
    return dt.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


@_written("ptp")
def _ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    _no_more("ptp", out=out)
    keepdims = keepdims is True
    return dt.max(a, axis=axis, keepdims=keepdims) - dt.min(a, axis=axis, keepdims=keepdims)


# ---- products, diagonals, comparisons ----------------------------------------------------------------------------


def _both_arrays(a: Any, b: Any) -> tuple[Array, Array]:
    return array_like(a, b if isinstance(b, Array) else a), array_like(b, a if isinstance(a, Array) else b)


@_written("dot")
def _dot(a: Any, b: Any, out: Any = None) -> Any:
    _no_more("dot", out=out)
    return dt.dot(*_both_arrays(a, b))


@_written("outer")
def _outer_product(a: Any, b: Any, out: Any = None) -> Any:
    _no_more("outer", out=out)
    return dt.linalg.outer(flat(a), flat(b))


@_written("diagonal")
def _diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return dt.linalg.diagonal(dt.moveaxis(a, (axis1, axis2), (-2, -1)), offset=offset)


_written("linalg.diagonal")(lambda x, /, *, offset=0: dt.linalg.diagonal(x, offset=offset))


@_written("trace")
def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    _no_more("trace", out=out)
    return dt.sum(_diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


_written("linalg.trace")(lambda x, /, *, offset=0, dtype=None: _trace(x, offset, -2, -1, dtype))


@_written("linalg.norm")
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if ord is None:
        return dt.linalg.vector_norm(x, axis=axis, keepdims=keepdims)
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if len(axes) == 1:
        return dt.linalg.vector_norm(x, axis=axes[0], keepdims=keepdims, ord=ord)
    if not hasattr(dt.linalg, "matrix_norm") or axes not in ((0, 1), (-2, -1)) or x.ndim != 2:
        raise unknown("numpy.linalg.norm")
    return dt.linalg.matrix_norm(x, keepdims=keepdims, ord=ord)


@_written("sort")
def _sort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    _no_more("sort", kind=kind, order=order, stable=stable or None)
    return dt.sort(flat(a)) if axis is None else dt.sort(a, axis=axis)


@_written("argsort")
def _argsort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    _no_more("argsort", kind=kind, order=order, stable=stable or None)
    return dt.argsort(flat(a)) if axis is None else dt.argsort(a, axis=axis)


@_written("allclose")
def _allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    return bool(dt.allclose(*_both_arrays(a, b), rtol=rtol, atol=atol, equal_nan=equal_nan))


@_written("array_equal")
def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    a1, a2 = _both_arrays(a1, a2)
    if a1.shape != a2.shape:
        return False
    same = a1 == a2
    return bool(dt.all(dt.logical_or(same, dt.logical_and(a1 != a1, a2 != a2)) if equal_nan else same))


@_written("unique")
def _unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    _no_more("unique", axis=axis)
    values, indices, inverse, counts = dt.unique_all(ar)
    n_nan = int(dt.count_nonzero(values != values)) if equal_nan else 0
    if n_nan > 1:  # NumPy counts NaNs as one value, the array API as many; they come last
        k = len(values) - n_nan
        values, indices, inverse = values[: k + 1], indices[: k + 1], dt.minimum(inverse, k)
        counts = dt.concat([counts[:k], dt.full((1,), n_nan, dtype=counts.dtype, device=ar.device)])
    more = [v for v, on in ((indices, return_index), (inverse, return_inverse), (counts, return_counts)) if on]
    return (values, *more) if more else values
