"""x[key] and x[key] = value for keys of more than ints, forward slices, None and Ellipsis: as NumPy does them.

An index array is checked by the device: where it is synchronous, an index out of range raises IndexError at once
and names axis, size and index; else at the next wait.
"""

from __future__ import annotations

from math import prod
from typing import Any

from dovetail import _core
from dovetail._array import as_size, expect_array, symbolic, to_numpy
from dovetail._core import Array
from dovetail.schema.number import Number

_op = _core.op_function
_KINDS = ("bool", "integer", "real floating", "complex floating")


class Selection:
    """A key over an array's axes. The array is first sliced (`basic`, whose ints and None act as everywhere), then
    some of the axes that are left are flipped, then index arrays pick from some of them.

    axes: of the sliced array, those that are picked from, ascending; arrays: their indices, in that order,
    broadcast together. place: where the axes of the index arrays stand in the result. flips: axes of the sliced
    array.
    """

    __slots__ = ("arrays", "axes", "basic", "flips", "names", "place", "shape")

    def __init__(self, x: Array, key: Any):
        items = _expanded(x, key if isinstance(key, tuple) else (key,))
        self.basic: list[Any] = []
        self.axes: list[int] = []
        self.arrays: list[Array] = []
        self.flips: list[int] = []
        self.names: list[int] = []  # the axes of x that are picked from
        advanced: list[tuple[int, int]] = []  # (position in the key, axis of the sliced array) of arrays and ints
        axis = out = 0
        picks = any(isinstance(item, Array) for item in items)
        for position, item in enumerate(items):
            if isinstance(item, Array):
                self.basic.append(slice(None))
                self.axes.append(out)
                self.arrays.append(item)
                self.names.append(axis)
            elif item is None or isinstance(item, slice):
                if item is not None and item.step is not None and item.step < 0:
                    item = _forward(item, x.shape[axis])
                    self.flips.append(out)
                self.basic.append(item)
            else:
                self.basic.append(item)
            if isinstance(item, Array) or (picks and item is not None and not isinstance(item, slice)):
                advanced.append((position, out))
            axis += item is not None
            out += item is None or isinstance(item, (slice, Array))
        together = not advanced or advanced[-1][0] - advanced[0][0] == len(advanced) - 1
        self.place = advanced[0][1] if advanced and together else 0
        self._broadcast()

    def _broadcast(self) -> None:
        from dovetail._functions import broadcast_shapes

        shapes = [a.shape for a in self.arrays]
        try:
            self.shape = broadcast_shapes(*shapes)
        except ValueError:
            raise IndexError(f"[index] index arrays of shapes {shapes} do not broadcast together") from None
        alone = len(shapes) == 1
        self.arrays = [
            a if alone or a.shape == self.shape else _op("broadcast_to")(a, self.shape) for a in self.arrays
        ]

    def sliced(self, x: Array) -> Array:
        return x[tuple(self.basic)]

    def result_shape(self, sliced: tuple[int, ...]) -> tuple[int, ...]:
        rest = [n for axis, n in enumerate(sliced) if axis not in self.axes]
        return (*rest[: self.place], *self.shape, *rest[self.place :])

    def flat_index(self, sizes: list[int]) -> Array:
        """Row-major positions in a block of `sizes`; each index is checked against its own axis."""
        if len(self.arrays) == 1:
            return self.arrays[0]
        flat = None
        for index, size in zip(self.arrays, sizes):
            numbers = _op("iota")(size, "int64", device=index.device)
            checked = _op("take")(numbers, index, axis=0)  # also turns negative ones around
            flat = checked if flat is None else flat * size + checked
        return flat


# ---- keys --------------------------------------------------------------------------------------------------------


def _expanded(x: Array, key: tuple) -> list[Any]:
    """The key with one item per axis of x, and None as it was: no Ellipsis; lists and masks are index arrays."""
    items: list[Any] = []
    ellipsis = None
    used = 0
    for item in key:
        if item is Ellipsis:
            if ellipsis is not None:
                raise IndexError("[index] an index can have only one Ellipsis ('...')")
            ellipsis = len(items)
            continue
        if _is_int(item):
            item = as_size(item)  # otherwise a NumPy array without axes would come back here
        elif not (item is None or isinstance(item, slice)):
            item = _as_index(x, item)
        used += item.ndim if isinstance(item, Array) and item.dtype == "bool" else item is not None
        items.append(item)
    if used > x.ndim:
        raise IndexError(f"[index] too many indices: the array has {x.ndim} axes, but {used} were indexed")
    if ellipsis is None:
        ellipsis = len(items)
    items[ellipsis:ellipsis] = [slice(None)] * (x.ndim - used)
    return _without_masks(x, items)


def _is_int(item: Any) -> bool:
    return (
        hasattr(type(item), "__index__") and not isinstance(item, (bool, Array)) and not getattr(item, "shape", ())
    )


def _as_index(x: Array, item: Any) -> Array:
    if not isinstance(item, Array):
        from dovetail._creation import asarray

        if isinstance(item, (str, bytes, dict, set)):
            raise IndexError(_unfit(type(item).__name__))
        try:
            item = asarray(item, device=x.device)
        except (TypeError, ValueError):
            raise IndexError(_unfit(type(item).__name__)) from None
        if item.size == 0 and item.dtype == "float32":  # of an empty list
            item = item.astype("int64")
    if item.dtype != "bool" and "integer" not in item.dtype.kind:
        raise IndexError(_unfit(f"an array of {item.dtype}"))
    if item.device != x.device and joins(item):
        return _core.to_device(item, x.device)
    if item.device != x.device:
        raise ValueError(
            f"[index] an index on {item.device} for an array on {x.device}: bring it over with .to_device()"
        )
    return item


def joins(x: Array) -> bool:
    """Whether arrays of any device take this one as an operand: one without axes on a device of kind cpu."""
    return x.ndim == 0 and x.device.kind == "cpu"


def _unfit(got: str) -> str:
    return f"[index] expected integers, slices, Ellipsis, None, or arrays of integers or bool, got {got}"


def _without_masks(x: Array, items: list[Any]) -> list[Any]:
    if not any(isinstance(item, Array) and item.dtype == "bool" for item in items):
        return items
    from dovetail._searching import nonzero

    out: list[Any] = []
    axis = 0
    for item in items:
        if isinstance(item, Array) and item.dtype == "bool":
            if item.ndim == 0:
                raise IndexError("[index] a mask without axes among other indices: expected one axis or more")
            for k, n in enumerate(item.shape):
                if n not in (0, x.shape[axis + k]):
                    raise IndexError(
                        f"[index] a mask of size {n} for axis {axis + k} of size {x.shape[axis + k]}: "
                        "expected equal sizes, or 0 to take nothing"
                    )
            out.extend(nonzero(item))
            axis += item.ndim
        else:
            out.append(item)
            axis += item is not None
    return out


def _is_symbolic(item: slice, size: Any) -> bool:
    return any(map(symbolic, (size, item.start, item.stop, item.step)))


def _span(item: slice, size: Any) -> tuple[Any, Any, Any]:
    """(start, count, step) of a slice of an axis."""
    if _is_symbolic(item, size):
        from dovetail._tracer import slice_span

        return slice_span(item, size)
    r = range(*item.indices(size))
    return r.start, len(r), r.step


def _forward(item: slice, size: int) -> slice:
    """The elements of a backward slice, in forward order."""
    if _is_symbolic(item, size):
        from dovetail._tracer import forward

        return forward(item, size)
    r = range(*item.indices(size))
    return slice(r[-1], r[0] + 1, -r.step) if r else slice(0, 0, 1)


def _sole_mask(x: Array, key: Any) -> Array | None:
    """The mask, where the key is one over x's leading axes and nothing else."""
    if isinstance(key, tuple) and len(key) == 1:
        key = key[0]
    if isinstance(key, bool):
        from dovetail._creation import asarray

        return asarray(key, device=x.device)
    if isinstance(key, tuple) or key is None or key is Ellipsis or isinstance(key, slice) or _is_int(key):
        return None
    key = _as_index(x, key)
    return key if key.dtype == "bool" and key.shape == x.shape[: key.ndim] else None


# ---- x[key] ------------------------------------------------------------------------------------------------------


def getitem(x: Array, key: Any) -> Array:
    """x[key]: called by the Array where the key is not a basic one."""
    if isinstance(key, Array) and x.ndim and "integer" in key.dtype.kind and key.device == x.device:
        return _take(x, key)
    mask = _sole_mask(x, key)
    if mask is not None:
        return _masked(x, mask)
    s = Selection(x, key)
    y = s.sliced(x)
    if s.flips:
        y = _op("flip")(y, axis=tuple(s.flips))
    if not s.arrays:
        return y
    sizes = [y.shape[a] for a in s.axes]
    first = s.axes[0]
    if s.axes != list(range(first, first + len(s.axes))):  # bring the axes together, to the front
        rest = [a for a in range(y.ndim) if a not in s.axes]
        y = _op("permute_dims")(y, (*s.axes, *rest))
        first = 0
    if len(sizes) > 1:
        y = _op("reshape")(y, (*y.shape[:first], prod(sizes), *y.shape[first + len(sizes) :]))
    try:
        y = _op("take")(y, s.flat_index(sizes), axis=first)
    except IndexError:
        _explain(s.arrays, sizes, s.names)
        raise
    return _moved(y, first, s.place, len(s.shape))


def _take(x: Array, index: Array) -> Array:
    try:
        return _op("take")(x, index, axis=0)
    except IndexError:
        _explain([index], [x.shape[0]], [0])
        raise


def _masked(x: Array, mask: Array) -> Array:
    if mask.ndim == 0:
        return x[None][: int(mask)]
    rest = x.shape[mask.ndim :]
    rows = _op("reshape")(x, (mask.size, *rest))
    return _op("take")(rows, _core.nonzero(_op("reshape")(mask, (mask.size,)))[0], axis=0)


def _moved(y: Array, at: int, to: int, n: int) -> Array:
    """Moves `n` contiguous axes that begin at `at` so that they begin at `to`."""
    if at == to or n == 0:
        return y
    block = list(range(at, at + n))
    rest = [a for a in range(y.ndim) if a not in block]
    return _op("permute_dims")(y, (*rest[:to], *block, *rest[to:]))


def _explain(arrays: list[Array], sizes: list[int], axes: list[int]) -> None:
    """Raises IndexError with the index that is out of range; the kernel's error has neither axis nor index."""
    for index, size, axis in zip(arrays, sizes, axes):
        if type(index) is not Array:
            return  # a traced array has no elements
        values = to_numpy(index)
        if not values.size:
            continue
        low, high = int(values.min()), int(values.max())
        bad = low if low < -size else high
        if not -size <= bad < size:
            allowed = f"expected {-size} to {size - 1}" if size else "it has no elements"
            raise IndexError(
                f"[index] index {bad} is out of range for axis {axis} of size {size}: {allowed}"
            ) from None


# ---- x[key] = value ----------------------------------------------------------------------------------------------


def setitem(x: Array, key: Any, value: Any) -> None:
    """x[key] = value: called by the Array where the key is not a basic one."""
    value = stored(x, value)
    mask = _sole_mask(x, key)
    if mask is not None and mask.ndim == 0:
        spread = _spread(value, (int(mask), *x.shape))
        if spread.shape[0]:
            x[...] = spread[0]
        return
    if mask is not None and value.size == 1 and value.ndim <= x.ndim - mask.ndim + 1:
        spread = _op("reshape")(mask, (*mask.shape, *(1,) * (x.ndim - mask.ndim)))
        number = _op("reshape")(value, ())
        if type(x) is Array:
            _core.replace(x, _op("where"), spread, number, x)
        else:
            x.take_value(_op("where")(spread, number, x))
        return
    s = Selection(x, key)
    if not s.arrays:
        sliced = s.sliced(x)
        x[tuple(s.basic)] = _op("flip")(_spread(value, sliced.shape), axis=tuple(s.flips))
    elif len(s.arrays) == 1 and all(i is None or i == slice(None) for i in s.basic) and not s.flips:
        _put_slabs(x, s, value)
    else:
        _put_elements(x, s, value)


def stored(x: Array, value: Any) -> Array:
    """The value in x's dtype on x's device. Raises TypeError for a wider kind, by NumPy's same_kind."""
    from dovetail._creation import asarray

    number = _kind_of_number(value)
    if number is not None and number <= _kind(x):  # in x's dtype at once: the default one may be narrower
        return asarray(value, dtype=x.dtype, device=x.device)
    given = value
    if not isinstance(value, Array):
        value = asarray(value, device=x.device)
    if value.device != x.device and joins(value):
        value = value.to_device(x.device)
    if value.device != x.device:
        raise ValueError(
            f"[setitem] a value on {value.device} for an array on {x.device}: bring it over with .to_device()"
        )
    if _kind(value) > _kind(x):
        what = f"values of {value.dtype}" if number is None else f"a {type(given).__name__}"
        raise TypeError(f"[setitem] cannot store {what} in an array of {x.dtype}: use .astype() on one of them")
    if value.dtype == x.dtype:
        return value
    if isinstance(given, (list, tuple)):
        return asarray(given, dtype=x.dtype, device=x.device)
    return _op("astype")(value, x.dtype)


def _kind_of_number(x: Any) -> int | None:
    if isinstance(x, Number):
        return 2 if x.is_real else 1
    return next((i for i, kind in enumerate((bool, int, float, complex)) if isinstance(x, kind)), None)


def _kind(x: Array) -> int:
    return next(i for i, kind in enumerate(_KINDS) if kind in x.dtype.kind)


def _spread(value: Array, shape: tuple[int, ...]) -> Array:
    """The value over the selection's shape; axes of size 1 that it has too many in front are dropped."""
    extra = value.ndim - len(shape)
    if extra > 0 and all(n == 1 for n in value.shape[:extra]):
        value = _op("reshape")(value, value.shape[extra:])
    try:
        return _op("broadcast_to")(value, shape)
    except ValueError:
        raise ValueError(
            f"[setitem] a value of shape {value.shape} does not broadcast to the selection's shape {shape}"
        ) from None


def _put_slabs(x: Array, s: Selection, value: Array) -> None:
    """One index array over one axis, all of the others whole."""
    axis = s.names[0]
    value = _spread(value, s.result_shape(s.sliced(x).shape))
    shape = [*x.shape[:axis], prod(s.shape), *x.shape[axis + 1 :]]
    updates = _op("reshape")(value, shape)
    try:
        _put(x, _op("reshape")(s.arrays[0], (-1,)), updates, axis)
    except IndexError:
        _explain(s.arrays, [x.shape[axis]], s.names)
        raise


def _put_elements(x: Array, s: Selection, value: Array) -> None:
    """Any selection: by the row-major positions of its elements in x."""
    index = _position_of_each(x, s)
    value = _spread(value, index.shape)
    _put(x, _op("reshape")(index, (-1,)), _op("reshape")(value, (-1,)))


def _put(x: Array, indices: Array, updates: Array, axis: int | None = None) -> None:
    """x[indices] = updates along one axis, or without it over x's elements in row-major order."""
    if type(x) is Array:
        _core.put(x, indices, updates, axis)
    elif axis is None:
        flat = _op("scatter")(_op("reshape")(x, (x.size,)), indices, updates, axis=0)
        x.take_value(_op("reshape")(flat, x.shape))
    else:
        x.take_value(_op("scatter")(x, indices, updates, axis=axis))


def _position_of_each(x: Array, s: Selection) -> Array:
    """For each element of the selection, its place in x: the sum over x's axes of index times stride."""
    # the axes of the selection, with the index arrays' in front of those that are left of the slices
    n_new = len(s.shape)
    n_rest = sum(item is None or isinstance(item, slice) for item in s.basic) - len(s.axes)
    total = None
    offset = axis = out = rest = 0
    strides = [prod(x.shape[a + 1 :]) for a in range(x.ndim)]
    for item in s.basic:
        if item is None:
            out, rest = out + 1, rest + 1
            continue
        size, stride = x.shape[axis], strides[axis]
        part = None
        if out in s.axes and isinstance(item, slice):
            numbers = _op("iota")(size, "int64", device=x.device)
            part = _checked(s, numbers, axis) * stride
            part = _op("reshape")(part, (*s.shape, *(1,) * n_rest))
            out += 1
        elif isinstance(item, slice):
            start, count, step = _span(item, size)
            if out in s.flips:
                start, step = start + (count - 1) * step, -step
            numbers = _op("iota")(count, "int64", device=x.device)
            part = numbers * (step * stride)
            offset += start * stride
            after = n_rest - rest - 1
            part = _op("reshape")(part, (*(1,) * (n_new + rest), count, *(1,) * after))
            out, rest = out + 1, rest + 1
        else:
            i = as_size(item)
            offset += (i + size if i < 0 else i) * stride
        if part is not None:
            total = part if total is None else total + part
        axis += 1
    # axes that only None made have no part of their own, but a size of 1 that the reshapes above have
    return _moved(total + offset if offset else total, 0, s.place, n_new)


def _checked(s: Selection, numbers: Array, axis: int) -> Array:
    at = s.names.index(axis)
    try:
        return _op("take")(numbers, s.arrays[at], axis=0)
    except IndexError:
        _explain([s.arrays[at]], [numbers.size], [axis])
        raise


def put_along_axis(x: Array, indices: Array, values: Any, axis: int = -1, *, mode: str = "set") -> Array:
    """Writes values to the elements of x along axis that indices names, as numpy.put_along_axis, and returns x.

    x[..., indices[..., i, ...], ...] = values[..., i, ...]. indices: integers, with x's sizes or 1 but for axis;
    values broadcast to them. mode: "set", where any of several writes to one place may win, or "add", "multiply",
    "max" and "min", which join the element with the value. Raises IndexError for an index outside of [-n, n),
    ValueError where shapes do not match, TypeError where x cannot hold the values' dtype.
    """
    expect_array("put_along_axis", x)
    x[...] = _op("put_along_axis")(x, indices, values, axis=axis, mode=mode)
    return x
