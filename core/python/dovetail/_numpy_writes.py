"""NumPy's functions that write to their argument: np.put(x, ...) and np.add.at(x, ...) change the Array."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import dovetail as dt
from dovetail._core import Array
from dovetail._numpy_ufuncs import array_like, refuse

__all__ = ["WRITES", "flat", "write_at"]


def flat(x: Any) -> Any:
    return dt.reshape(x, (x.size,))


def _as_array(value: Any, like: Array) -> Array:
    return value if isinstance(value, Array) else dt.asarray(value, device=like.device)


def _stored(x: Array, value: Any) -> None:
    """x[...] = value. Values of another dtype are cast, as NumPy does it, but never to a simpler kind."""
    x[...] = value.astype(x.dtype) if np.can_cast(str(value.dtype), str(x.dtype), "same_kind") else value


def _cycled(values: Array, place: Array) -> Array:
    """values at each place, which begin anew behind their last one."""
    values = flat(values)
    return dt.take(values, place % values.shape[0], axis=0)


def _copyto(dst: Array, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if casting != "same_kind":
        raise refuse("numpy.copyto", f"casting: got {casting!r}, expected 'same_kind'")
    src = array_like(src, dst)
    _stored(dst, src if where is True else dt.where(_as_array(where, dst), src, dst))


def _put(a: Array, ind: Any, v: Any, mode: str = "raise") -> None:
    if mode != "raise":
        raise refuse("numpy.put", f"mode: got {mode!r}, expected 'raise'")
    places, values = flat(_as_array(ind, a)), array_like(v, a).astype(a.dtype)
    if places.shape[0] and values.size:
        values = _cycled(values, dt.arange(places.shape[0], device=a.device))
        a[...] = dt.reshape(dt.scatter(flat(a), places, values), a.shape)


def _mask(name: str, mask: Any, of: Array) -> Array:
    mask = _as_array(mask, of)
    if mask.size != of.size:
        raise ValueError(
            f"[{name}] mask: got {mask.size} elements, expected {of.size}, one for each of the array's"
        )
    return dt.reshape(mask.astype(dt.bool), of.shape)


def _putmask(a: Array, mask: Any, values: Any) -> None:
    values, mask = array_like(values, a), _mask("putmask", mask, a)
    if not values.size:
        return
    if values.shape != a.shape:
        values = dt.reshape(_cycled(values, dt.arange(a.size, device=a.device)), a.shape)
    _stored(a, dt.where(mask, values, a))


def _place(arr: Array, mask: Any, vals: Any) -> None:
    mask, vals = _mask("place", mask, arr), array_like(vals, arr)
    if not vals.size:
        if bool(dt.any(mask)):
            raise ValueError("[place] vals: got an empty array for a mask with places to write to")
        return
    order = dt.cumulative_sum(flat(mask).astype(dt.int64)) - 1
    values = dt.reshape(_cycled(vals, dt.maximum(order, 0)), arr.shape)
    _stored(arr, dt.where(mask, values, arr))


def _fill_diagonal(a: Array, val: Any, wrap: bool = False) -> None:
    if wrap or a.ndim != 2:
        raise refuse("numpy.fill_diagonal", f"wrap={wrap} and shape {a.shape}: expected False and a matrix")
    row = dt.arange(a.shape[0], device=a.device)[:, None]
    values = dt.broadcast_to(_cycled(array_like(val, a), flat(row))[:, None], a.shape)
    _stored(a, dt.where(row == dt.arange(a.shape[1], device=a.device), values, a))


def _put_along_axis(arr: Array, indices: Any, values: Any, axis: int | None = -1) -> None:
    values = array_like(values, arr).astype(arr.dtype)
    if axis is None:
        arr[...] = dt.reshape(dt.put_along_axis(flat(arr).copy(), _as_array(indices, arr), values), arr.shape)
    else:
        dt.put_along_axis(arr, _as_array(indices, arr), values, axis)


WRITES = {
    "copyto": _copyto,
    "fill_diagonal": _fill_diagonal,
    "place": _place,
    "put": _put,
    "put_along_axis": _put_along_axis,
    "putmask": _putmask,
}

# ---- ufunc.at ----------------------------------------------------------------------------------------------------

_MODES = {"add": "add", "subtract": "add", "multiply": "multiply", "maximum": "max", "minimum": "min"}


def write_at(name: str, x: Any, key: Any, values: Any = None) -> bool:
    """numpy.<name>.at(x, key, values): joins values one after the other. False if there is no such join."""
    if name not in _MODES or not isinstance(x, Array):
        return False
    given = key if isinstance(key, tuple) else (key,)
    if any(k is None or k is Ellipsis or isinstance(k, slice) for k in given):
        # The places are NumPy's own answer.
        host = tuple(np.asarray(k) if isinstance(k, Array) else k for k in given)
        places = dt.asarray(np.arange(x.size).reshape(x.shape)[host], device=x.device)
        _join(name, flat(x), places, (), values, x)
        return True
    keys = [_as_array(k, x) for k in given]
    if len(keys) == 1 and keys[0].dtype == "bool":
        keys = list(dt.nonzero(keys[0]))
    if any("integer" not in k.dtype.kind for k in keys):
        raise refuse(f"numpy.{name}.at", "indices: expected integers, one array of bool, or a tuple of integers")
    keys = list(dt.broadcast_arrays(*keys))
    sizes, rest = x.shape[: len(keys)], x.shape[len(keys) :]
    place = dt.zeros(keys[0].shape, dtype=dt.int64, device=x.device)
    for k, n in zip(keys, sizes, strict=True):
        inside = (-n <= k) & (k < n)
        place = dt.where(inside, place * n + dt.where(k < 0, k + n, k), math.prod(sizes))  # else refused by scatter
    _join(name, dt.reshape(x, (math.prod(sizes), *rest)), place, rest, values, x)
    return True


def _join(name: str, rows: Array, place: Array, rest: tuple[int, ...], values: Any, x: Array) -> None:
    """x, of which rows (n, *rest) has the elements, with values joined to the rows at each place."""
    values = dt.broadcast_to(array_like(values, x).astype(x.dtype), (*place.shape, *rest))
    values = dt.reshape(-values if name == "subtract" else values, (place.size, *rest))
    x[...] = dt.reshape(dt.scatter(rows, flat(place), values, mode=_MODES[name]), x.shape)
