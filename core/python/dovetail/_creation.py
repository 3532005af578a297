"""Arrays from numbers, lists, NumPy arrays, DLPack and buffers. zeros, arange and the like are ops."""

from __future__ import annotations

import sys
from typing import Any

from dovetail import _core
from dovetail._array import FOREIGN, PACKED, PART, STORED, as_size, expect_array, numpy_dtype, packed, symbolic
from dovetail._core import Array, Device, DType

__all__ = [
    "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "ones_like",
    "zeros_like",
]  # fmt: skip

_op = _core.op_function
_HOST = (1, 0)  # DLPack's name for the host's memory
_EXTENSION = 12
_names: dict[Any, str] = {}  # of NumPy's dtypes in native byte order


def asarray(
    obj: Any,
    /,
    *,
    dtype: DType | str | None = None,
    device: Device | str | None = None,
    copy: bool | None = None,
) -> Array:
    """An array of a Python number, nested lists or tuples, a NumPy array, another library's array, or an Array.

    dtype: by default that of `obj`; Python's numbers become bool, int64, float32 or complex64. device: by default
    that of an Array, else the current one. copy: False raises ValueError where one would be needed, True always
    makes one. What comes from other libraries is copied: they may go on writing to theirs, which from_dlpack would
    let show.
    """
    if isinstance(obj, Array):
        return _as_array(obj, dtype, device, copy)
    made = _made(obj, dtype, device, copy)
    trace = _core.recorder()
    if trace is not None and type(made) is Array:
        trace.made(made)
    return made


def _made(obj: Any, dtype: Any, device: Any, copy: bool | None) -> Array:
    if symbolic(obj):
        return _from_traced_numbers(obj, dtype, device)
    made = None
    numpy = sys.modules.get("numpy")
    if isinstance(obj, (bool, int, float, complex, list, tuple)) and not (numpy and isinstance(obj, numpy.generic)):
        _refuse_no_copy(copy, obj)
        made = _core.from_numbers(obj, dtype, device)
        if made is None and _core.recorder() is not None:
            made = _from_traced_numbers(obj, dtype, device)
        return _from_list(obj, dtype, device) if made is None else made
    if copy is False:
        if not hasattr(obj, "__dlpack__"):
            _refuse_no_copy(copy, obj)
        return _as_array(from_dlpack(obj, device=device, copy=False), dtype, None, False)
    if numpy and isinstance(obj, (numpy.ndarray, numpy.generic)):
        return _from_numpy(obj, dtype, device)
    if hasattr(type(obj), "__dlpack__"):
        return _as_array(from_dlpack(obj, device=device, copy=True), dtype, None, None)
    if hasattr(type(obj), "__dovetail_op__"):
        raise TypeError(
            "[asarray] a decomposition works on its operands: got a tracer, expected no conversion; the schema's "
            "full() makes constants"
        )
    return _from_other(obj, dtype, device)


def _refuse_no_copy(copy: bool | None, obj: Any) -> None:
    if copy is False:
        raise ValueError(
            f"[asarray] {type(obj).__name__} takes a copy to become an array: expected copy=None or True"
        )


def _as_array(x: Array, dtype: Any, device: Any, copy: bool | None) -> Array:
    out = x.__copy__()
    if device is not None and x.device != device:
        _refuse_move(copy, "another device")
        out = out.to_device(device)
    elif copy and (dtype is None or x.dtype == dtype):
        out = _op("copy")(out)
    if dtype is not None and out.dtype != dtype:
        _refuse_move(copy, "another dtype")
        out = _op("astype")(out, dtype)
    return out


def _refuse_move(copy: bool | None, what: str) -> None:
    if copy is False:
        raise ValueError(f"[asarray] {what} takes a copy: expected copy=None or True")


def _from_list(obj: list | tuple, dtype: Any, device: Any) -> Array:
    """An array of lists that contain more than numbers: Arrays are stacked, NumPy converts everything else."""
    if _has_arrays(obj):
        parts = [asarray(part, device=device) for part in obj]
        return _as_array(_op("stack")(parts), dtype, None, None)
    return _from_other(obj, dtype, device)


def _from_traced_numbers(obj: Any, dtype: Any, device: Any) -> Array | None:
    """An array of a number of a trace, or of lists with some; None of lists of more than numbers."""
    from dovetail._dtypes import iinfo
    from dovetail.schema.number import is_integer, pinned, value_of

    def mapped(x: Any, function: Any) -> Any:
        return [mapped(part, function) for part in x] if isinstance(x, (list, tuple)) else function(x)

    try:
        plain = _core.from_numbers(mapped(obj, value_of), dtype, device)
    except (ArithmeticError, TypeError, ValueError):  # perhaps not for other values
        return _core.from_numbers(mapped(obj, pinned), dtype, device)
    if plain is None:
        return None

    def made(x: Any) -> Array:
        if isinstance(x, (list, tuple)):
            return _op("stack")([made(part) for part in x])
        if not symbolic(x):
            return asarray(x, dtype=plain.dtype, device=device)
        if "integer" in plain.dtype.kind:
            limits = iinfo(plain.dtype)
            low, high = limits.min == -(2**63) or x >= limits.min, limits.max >= 2**63 - 1 or x <= limits.max
            assert low and high  # comparing leaves guards, as full() wraps around
        real = is_integer(x) and plain.dtype in ("float32", "float64")  # rounded as a double first
        return _op("full")((), x * 1.0 if real else x, dtype=plain.dtype, device=device)

    return made(obj)


def _has_arrays(obj: Any) -> bool:
    if isinstance(obj, (list, tuple)):
        return any(map(_has_arrays, obj))
    return isinstance(obj, Array)


def _from_other(obj: Any, dtype: Any, device: Any) -> Array:
    import numpy as np

    if isinstance(obj, (str, bytes)):
        raise TypeError(f"[asarray] expected numbers, lists or arrays, got {type(obj).__name__}")
    if isinstance(obj, range):
        return asarray(list(obj), dtype=dtype, device=device)
    try:
        return _from_numpy(np.asarray(obj), dtype, device, type(obj))
    except ValueError as why:  # raised by NumPy for ragged lists
        raise ValueError(f"[asarray] {why}") from None


def _from_numpy(x: Any, dtype: Any, device: Any, kind: type | None = None) -> Array:
    import numpy as np

    x = np.asarray(x)
    if not _names:  # found once, because NumPy builds a dtype's name at each access
        _names.update({numpy_dtype(name): name for name in _core.dtypes})
    own = _names.get(x.dtype)
    if dtype is None and own is not None and own not in FOREIGN and x.flags.c_contiguous:
        return _core.from_buffer(x, own, x.shape, device)
    if x.dtype.name not in _core.dtypes:
        what = f"{kind.__name__}, of which NumPy makes {x.dtype}" if kind else f"a NumPy array of {x.dtype}"
        raise TypeError(f"[asarray] expected numbers of one of dovetail's dtypes, got {what}: astype it first")
    if dtype is not None and x.dtype.name != (name := _core.to_dtype(dtype).name):
        if x.dtype.kind == "c" and name not in ("complex64", "complex128", "bool"):
            raise TypeError(f"[asarray] cannot store complex numbers as {name}: take .real first")
        with np.errstate(all="ignore"):
            x = (_to_odd(x) if name in FOREIGN and x.dtype == np.float64 else x).astype(numpy_dtype(name))
    name = x.dtype.name
    if name in PACKED:
        return _core.from_buffer(packed(x), name, x.shape, device)
    if not x.dtype.isnative:
        x = x.astype(x.dtype.newbyteorder("="))
    shape = x.shape
    x = np.ascontiguousarray(x)  # makes a 0-d array 1-d
    return _core.from_buffer(x.view(f"u{x.dtype.itemsize}") if name in FOREIGN else x, name, shape, device)


def _to_odd(x: Any) -> Any:
    """x as float32, rounded to odd: ml_dtypes rounds that again, and the second rounding is then exact."""
    import numpy as np

    near = x.astype(np.float32)
    inexact = (near != x) & np.isfinite(near)
    bits = near.view(np.uint32)
    return ((bits - (inexact & (np.abs(near) > np.abs(x)))) | inexact).astype(np.uint32).view(np.float32)


# ---- DLPack ------------------------------------------------------------------------------------------------------


def from_dlpack(x: Any, /, *, device: Device | str | None = None, copy: bool | None = None) -> Array:
    """An array of any object with __dlpack__, which shares the object's memory where it can.

    device: None keeps the object's own. copy: False raises BufferError where a copy would be needed, True always
    makes one. The array never writes to shared memory; what its owner writes there shows in the array. Memory of
    Dovetail's own that another library holds, as torch.ones(2, device="dovetail"), comes by the object's method
    __dovetail_array__(), which returns an Array or None.
    """
    from dovetail import _devices

    if not isinstance(x, Array) and (share := getattr(x, "__dovetail_array__", None)) is not None:
        shared = share()
        x = x if shared is None else shared
    if isinstance(x, Array):
        return _as_array(x, None, device, copy)
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(f"[from_dlpack] expected an object with __dlpack__, got {type(x).__name__}: see asarray()")
    target = _devices.device(device)  # looks for backends
    kind, number = map(int, x.__dlpack_device__())
    if kind == _EXTENSION:
        raise BufferError(f"[from_dlpack] DLPack has no common name for the device of this {type(x).__name__}")
    home = _core.dlpack_home(kind, number, target)
    if device is None and home is not None:
        target = home
    if home is None and kind not in (1, 3, 11):  # no device here can read it: its owner copies it to the host
        capsule = _capsule(x, dl_device=_HOST, copy=copy)
    else:
        capsule = _capsule(x, stream=None if home is None else _core.native_stream(home), copy=copy)
    if kind in (1, 3, 11) or home is None or home == target:
        return _core.import_dlpack(capsule, home, target, copy)
    if copy is False:
        raise BufferError(f"[from_dlpack] from {home} to {target} takes a copy: expected copy=None or True")
    return _core.to_device(_core.import_dlpack(capsule, home, home, None), target)


def _capsule(x: Any, *, copy: bool | None, **wanted: Any) -> Any:
    """The capsule of a producer of any DLPack version: arguments that it does not accept are left out."""
    wanted = {name: value for name, value in wanted.items() if value is not None}
    if copy is False:
        wanted["copy"] = False
    try:
        return x.__dlpack__(max_version=(1, 2), **wanted)
    except TypeError:
        wanted.pop("copy", None)
        if "dl_device" in wanted:
            raise BufferError(
                f"[from_dlpack] {type(x).__name__} is on a device that no installed backend can read, and cannot "
                "be asked for a copy on the host: bring it there first"
            ) from None
        return x.__dlpack__(**wanted)


# ---- from numbers ------------------------------------------------------------------------------------------------


def _expect_fits(op: str, value: Any, dtype: DType | str) -> None:
    given = _core.to_dtype(dtype)
    if type(value) in (int, float) and given.kind == "real floating" and given.itemsize > 1:
        return
    if type(value).__module__ == "numpy":
        value = {"c": complex, "f": float, "b": bool}.get(value.dtype.kind, int)(value)
    if not isinstance(value, (int, float, complex)):  # a number of a trace
        return
    if isinstance(value, float) and value.is_integer() and "integer" in given.kind:
        value = int(value)
    try:
        _core.from_numbers(value, dtype, None)
    except (TypeError, OverflowError) as e:
        raise type(e)(str(e).replace("[asarray]", f"[{op}]")) from None


def full(
    shape: int | tuple[int, ...],
    fill_value: complex | Array,
    *,
    dtype: DType | str | None = None,
    device: Device | str | None = None,
) -> Array:
    """fill_value everywhere: a number, or an array without axes, whose dtype and device are the default then.

    Raises OverflowError where the dtype cannot hold the number, and TypeError where it has no such numbers, as int8
    has no 2.5.
    """
    if not isinstance(fill_value, Array):
        if dtype is not None and _core.to_dtype(dtype).name in STORED and not symbolic(fill_value):
            return _repeated(asarray(fill_value, dtype=dtype, device=device), shape)  # rounded once
        if dtype is not None and not (type(fill_value) is int and 0 <= fill_value <= 127):
            _expect_fits("full", fill_value, dtype)
        return _op("full")(shape, fill_value, dtype=dtype, device=device)
    if fill_value.ndim:
        raise TypeError(
            f"[full] fill_value: got an array of shape {fill_value.shape}, expected a number or an array of shape "
            "(); broadcast_to() repeats an array"
        )
    return _repeated(_as_array(fill_value, dtype, device, None), shape)


def _repeated(value: Array, shape: Any) -> Array:
    name = value.dtype.name
    if name in PACKED:
        return _op("astype")(_op("broadcast_to")(_op("astype")(value, PACKED[name]), shape), name)
    return _op("copy")(_op("broadcast_to")(value, shape))


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DType | str | None = None,
    device: Device | str | None = None,
) -> Array:
    """1 on the k-th diagonal, 0 elsewhere; dtype is float32 by default."""
    k = as_size(k)
    if not symbolic(k):
        k = max(-(2**62), min(2**62, k))  # beyond the matrix all diagonals are empty
    return _op("eye")(n_rows, n_cols, k=k, dtype=dtype, device=device)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: DType | str | None = None,
    device: Device | str | None = None,
    endpoint: bool = True,
) -> Array:
    """num numbers from start to stop, evenly; the last one is stop itself, or the one before it.

    dtype: float32 by default, complex64 where an end is complex. Integer dtypes: rounded down, as NumPy's, from
    float64 numbers.
    """
    if isinstance(start, complex) or isinstance(stop, complex):
        part = PART.get("complex64" if dtype is None else _core.to_dtype(dtype).name)
        if part is None:
            raise TypeError(f"[linspace] dtype {dtype} of complex numbers: expected complex64 or complex128")
        ends = (start.real, stop.real), (start.imag, stop.imag)
        real, imag = (_op("linspace")(*e, num, dtype=part, device=device, endpoint=endpoint) for e in ends)
        return real + imag * 1j
    if dtype is None or "floating" in _core.to_dtype(dtype).kind:
        return _op("linspace")(start, stop, num, dtype=dtype, device=device, endpoint=endpoint)
    exact = _op("linspace")(start, stop, num, dtype="float64", device=device, endpoint=endpoint)
    return _op("astype")(_op("floor")(exact), dtype)


# ---- like others -------------------------------------------------------------------------------------------------


def empty(
    shape: int | tuple[int, ...], *, dtype: DType | str | None = None, device: Device | str | None = None
) -> Array:
    """An array whose elements are whatever the memory holds. dtype: float32 by default."""
    if _core.recorder() is not None:  # a program has no elements of any value
        return _op("zeros")(shape, dtype=dtype, device=device)
    return _core.empty(shape, "float32" if dtype is None else dtype, device)


def empty_like(x: Array, /, *, dtype: DType | str | None = None, device: Device | str | None = None) -> Array:
    """empty() with the shape, dtype and device of x where they are not given."""
    expect_array("empty_like", x)
    return empty(x.shape, dtype=x.dtype if dtype is None else dtype, device=x.device if device is None else device)


def full_like(
    x: Array,
    /,
    fill_value: complex | Array,
    *,
    dtype: DType | str | None = None,
    device: Device | str | None = None,
) -> Array:
    """full() with the shape, dtype and device of x where they are not given."""
    expect_array("full_like", x)
    device = x.device if device is None else device
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype, device=device)


def zeros_like(x: Array, /, *, dtype: DType | str | None = None, device: Device | str | None = None) -> Array:
    """zeros() with the shape, dtype and device of x where they are not given."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Array, /, *, dtype: DType | str | None = None, device: Device | str | None = None) -> Array:
    """ones() with the shape, dtype and device of x where they are not given."""
    return full_like(x, 1, dtype=dtype, device=device)
