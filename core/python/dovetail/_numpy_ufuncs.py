"""NumPy's universal functions on Arrays: np.sin(x) and np.add.reduce(x) run on x's device and return Arrays."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np

import dovetail as dt
from dovetail import _core
from dovetail._core import Array
from dovetail._names import RENAMED


def refuse(name: str, what: str, cure: str | None = None) -> TypeError:
    short = name.rpartition(".")[2]
    return TypeError(f"[{short}] {what}; {cure or f'{name}(numpy.asarray(x)) computes it on the host'}")


def unknown(name: str) -> TypeError:
    return refuse(name, f"dovetail has no counterpart of {name}: got a dovetail array, expected a NumPy array")


# ---- operands ----------------------------------------------------------------------------------------------------


def _is_foreign(value: Any) -> bool:
    """True for arrays of another library, whose own __array_ufunc__ may serve the call."""
    if isinstance(value, (Array, np.generic, np.memmap)) or type(value) is np.ndarray:
        return False
    return hasattr(type(value), "__array_ufunc__")


def device_of(values: Any) -> Any:
    for value in values:
        if isinstance(value, Array):
            return value.device
        if isinstance(value, (list, tuple)) and (found := device_of(value)) is not None:
            return found
    return None


def to_arrays(value: Any, device: Any) -> Any:
    """The value with NumPy arrays, also those in lists, as Arrays of the device."""
    if isinstance(value, np.ndarray):
        return dt.asarray(value, device=device)
    if type(value) in (list, tuple):
        return type(value)(to_arrays(v, device) for v in value)
    return value


def array_like(value: Any, x: Array) -> Array:
    """The value as an Array on x's device. Python's numbers get x's dtype if its kind has them: the default one may
    be narrower. Raises OverflowError for an integer that x's dtype has not."""
    if isinstance(value, Array):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return dt.asarray(value, device=x.device)
    own = {"b": 0, "u": 1, "i": 1, "f": 3, "c": 4}.get(np.asarray(value).dtype.kind, 5)
    of_kind = own <= _KINDS[x.dtype.kind]
    return dt.asarray(value, dtype=x.dtype if of_kind else None, device=x.device)


def operands(*values: Any) -> tuple[Any, ...]:
    """Operands of an operator: NumPy arrays become Arrays of the other operand's device."""
    return to_arrays(values, device_of(values))


# ---- universal functions -----------------------------------------------------------------------------------------


def _fabs(x: Any) -> Any:
    return dt.abs(x if "floating" in x.dtype.kind else x.astype(dt.float32))


def _ignoring_nan(choose: Any) -> Any:
    def function(x1: Any, x2: Any) -> Any:
        return dt.where(dt.isnan(x1), x2, dt.where(dt.isnan(x2), x1, choose(x1, x2)))

    return function


_UFUNCS = {
    "conjugate": lambda x: dt.conj(x),
    "deg2rad": lambda x: x * (dt.pi / 180),
    "degrees": lambda x: x * (180 / dt.pi),
    "divmod": lambda x1, x2: (dt.floor_divide(x1, x2), dt.remainder(x1, x2)),
    "fabs": _fabs,
    "fmax": _ignoring_nan(dt.maximum),
    "fmin": _ignoring_nan(dt.minimum),
    "rad2deg": lambda x: x * (180 / dt.pi),
    "radians": lambda x: x * (dt.pi / 180),
    "rint": dt.round,
}
_OF_SCIPY = {
    "erf": "erf",
    "erfc": "erfc",
    "exp2": "exp2",
    "expit": "nn.sigmoid",
    "expm1": "expm1",
    "log1p": "log1p",
}
_NAMES = RENAMED | {"rint": "round"}
_NO_OPS = {"spacing", "frexp", "modf", "ldexp"}  # must never be replaced by an op of another meaning
_REDUCTIONS = {
    "add": "sum", "bitwise_and": None, "logaddexp": "logsumexp", "logical_and": "all", "logical_or": "any",
    "maximum": "max", "minimum": "min", "multiply": "prod",
}  # fmt: skip
_PLAIN = {Array, bool, int, float, np.float32, np.float64}  # types of operands that ops accept unchanged
_SCANS = {"add": "cumulative_sum", "multiply": "cumulative_prod"}
_AS_USUAL = {"order": ("K", "C"), "subok": (True, False), "casting": ("same_kind", "unsafe"), "signature": (None,)}
_KINDS = {"bool": 0, "unsigned integer": 1, "signed integer": 2, "real floating": 3, "complex floating": 4}


def ufunc(of: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The result of Array.__array_ufunc__: that of dovetail's op, or NotImplemented for others to try."""
    if method == "__call__" and not options and all(type(v) in _PLAIN for v in inputs):  # most calls
        return _function_of(of, f"numpy.{of.__name__}")(*inputs)
    outputs = options.pop("out", ())
    if any(map(_is_foreign, (*inputs, *outputs))):
        return NotImplemented
    device = device_of((*inputs, *outputs))
    name = f"numpy.{of.__name__}"
    given = [dt.asarray(v, device=device) if isinstance(v, list) else to_arrays(v, device) for v in inputs]
    where, dtype = options.pop("where", True), options.pop("dtype", None)
    for key, usual in _AS_USUAL.items():
        if (value := options.pop(key, usual[0])) not in usual:
            raise refuse(name, f"{key}: got {value!r}, expected {usual[0]!r}")
    if method == "__call__":
        result = _called(of, name, given, dtype, options)
    elif method in ("reduce", "accumulate", "outer"):
        result = _METHODS[method](of, name, given, dtype, options)
    elif method == "at" and _write_at(of.__name__, inputs):
        return None
    else:
        raise unknown(f"{name}.{method}")
    return stored(name, result, outputs, where)


def _write_at(name: str, inputs: tuple[Any, ...]) -> bool:
    from dovetail._numpy_writes import write_at

    return write_at(name, *inputs)


@cache
def _function_of(of: Any, name: str) -> Any:
    """Dovetail's function for the ufunc. Raises TypeError where there is none."""
    short = of.__name__
    if getattr(np, short, None) is of:
        found = _UFUNCS.get(short) or getattr(dt, _NAMES.get(short, short), None)
        if found is not None and short not in _NO_OPS:
            return found
    special = sys.modules.get("scipy.special")
    if short in _OF_SCIPY and getattr(special, short, None) is of:
        space, _, last = _OF_SCIPY[short].rpartition(".")
        return getattr(getattr(dt, space) if space else dt, last)
    raise unknown(name if getattr(np, short, None) is of else short)


def _cast(name: str, x: Any, dtype: Any) -> Any:
    """The operand in the dtype that dtype= asks for, by NumPy's same_kind rule."""
    if not isinstance(x, Array) or x.dtype == dtype:
        return x
    if _KINDS[x.dtype.kind] > _KINDS[dtype.kind]:
        raise refuse(name, f"dtype: got {dtype} for an array of {x.dtype}, expected no narrower kind", "astype it")
    return x.astype(dtype)


def _called(of: Any, name: str, given: list[Any], dtype: Any, options: dict[str, Any]) -> Any:
    function = _function_of(of, name)
    if dtype is not None:
        dtype = _core.to_dtype(dtype)
        if dtype != "bool":
            given = [_cast(name, x, dtype) for x in given]
    if not any(isinstance(x, Array) for x in given):  # only out= is an Array
        raise refuse(name, "operands: got no dovetail array, expected one", "dovetail.asarray() makes one")
    result = function(*given, **{k: v for k, v in options.items() if v is not None})
    if dtype is None or isinstance(result, tuple) or result.dtype == dtype:
        return result
    return _cast(name, result, dtype)


def _reduced(of: Any, name: str, given: list[Any], dtype: Any, options: dict[str, Any]) -> Any:
    target = _REDUCTIONS.get(of.__name__) if getattr(np, of.__name__, None) is of else None
    if target is None:
        raise unknown(f"{name}.reduce")
    options = {"axis": 0} | options
    for key, neutral in (("initial", np._NoValue), ("keepdims", None)):
        if options.get(key, neutral) is neutral:
            options.pop(key, None)
    if "initial" in options:
        raise refuse(f"{name}.reduce", f"initial: got {options['initial']!r}, expected none")
    if target in ("sum", "prod"):
        options["dtype"] = dtype
    return getattr(dt, target)(*given, **options)


def _accumulated(of: Any, name: str, given: list[Any], dtype: Any, options: dict[str, Any]) -> Any:
    target = _SCANS.get(of.__name__) if getattr(np, of.__name__, None) is of else None
    if target is None:
        raise unknown(f"{name}.accumulate")
    return getattr(dt, target)(*given, axis=options.get("axis", 0), dtype=dtype)


def _outer(of: Any, name: str, given: list[Any], dtype: Any, options: dict[str, Any]) -> Any:
    device = device_of(given)
    x1, x2 = (x if isinstance(x, Array) else dt.asarray(x, device=device) for x in given)
    return _called(of, name, [dt.reshape(x1, (*x1.shape, *(1,) * x2.ndim)), x2], dtype, options)


_METHODS = {"reduce": _reduced, "accumulate": _accumulated, "outer": _outer}


def stored(name: str, result: Any, outputs: tuple[Any, ...], where: Any) -> Any:
    """The result, written to the arrays of out= where those are given."""
    masked = where is not True
    outputs = tuple(o for o in outputs if o is not None)
    if not outputs:
        if masked:
            raise refuse(name, "where: got a mask without out=", f"numpy.where(mask, {name}(x), other) chooses")
        return result
    results = result if isinstance(result, tuple) else (result,)
    for out, new in zip(outputs, results, strict=True):
        if not isinstance(out, Array):
            raise refuse(
                name,
                f"out: got {type(out).__name__}, expected a dovetail array",
                "write y = y + x, or numpy.asarray(x)",
            )
        if _KINDS[new.dtype.kind] > _KINDS[out.dtype.kind]:
            raise refuse(
                name, f"out: got an array of {out.dtype}, expected one of {new.dtype}", "astype the result"
            )
        if dt.broadcast_shapes(out.shape, new.shape) != out.shape:
            short = name.rpartition(".")[2]
            raise ValueError(
                f"[{short}] out: got shape {out.shape}, expected {new.shape}; dovetail.empty({new.shape}) makes one"
            )
        out[...] = dt.where(to_arrays(where, out.device), new, out) if masked else new
    return outputs[0] if len(outputs) == 1 else outputs
