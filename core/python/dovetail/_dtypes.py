"""Promotion, limits and kinds of dtypes, and the array API's inspection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from dovetail import _core
from dovetail._array import FOREIGN, PART
from dovetail._core import Array, Device, DType

__all__ = [
    "__array_namespace_info__",
    "can_cast",
    "finfo",
    "iinfo",
    "isdtype",
    "result_type",
]

_FLOAT, _COMPLEX = "real floating", "complex floating"
_KINDS = {
    "bool": ("bool",),
    "signed integer": ("signed integer",),
    "unsigned integer": ("unsigned integer",),
    "integral": ("signed integer", "unsigned integer"),
    _FLOAT: (_FLOAT,),
    _COMPLEX: (_COMPLEX,),
    "numeric": ("signed integer", "unsigned integer", _FLOAT, _COMPLEX),
}
_NOT_LISTED = FOREIGN | {"float16"}  # beyond the standard


class FInfo(NamedTuple):
    """The limits of a floating-point dtype; for a complex one, of its parts."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class IInfo(NamedTuple):
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


def _dtype_of(x: Any) -> DType:
    return x.dtype if isinstance(x, Array) else _core.to_dtype(x)


def finfo(type: DType | Array | str, /) -> FInfo:
    """bits, eps, max, min, smallest_normal and dtype of a floating-point dtype, or of the parts of a complex one.

    Raises ValueError for any other.
    """
    dtype = _dtype_of(type)
    if dtype.kind == _COMPLEX:
        dtype = _core.dtypes[PART[dtype.name]]
    if dtype.kind != _FLOAT:
        raise ValueError(f"[finfo] expected a floating-point dtype, got {dtype}: see iinfo()")
    from dovetail.schema.dtypes import by_name

    d = by_name[dtype.name]
    return FInfo(d.bits, d.eps, d.max, d.min, d.tiny, dtype)


def iinfo(type: DType | Array | str, /) -> IInfo:
    """bits, max, min and dtype of an integer dtype. Raises ValueError for any other."""
    dtype = _dtype_of(type)
    if "integer" not in dtype.kind:
        raise ValueError(f"[iinfo] expected an integer dtype, got {dtype}: see finfo()")
    bits = dtype.bits
    signed = dtype.kind == "signed integer"
    values = bits - signed
    return IInfo(bits, 2**values - 1, -(2**values) if signed else 0, dtype)


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> bool:
    """True if a dtype is another one, or of a kind: "bool", "signed integer", "unsigned integer", "integral",
    "real floating", "complex floating", "numeric"; or any of a tuple. Raises ValueError for an unknown kind."""
    dtype = _core.to_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if not isinstance(kind, str):
        return dtype == _core.to_dtype(kind)
    if kind not in _KINDS:
        raise ValueError(f"[isdtype] unknown kind {kind!r}: expected one of {', '.join(_KINDS)}")
    return dtype.kind in _KINDS[kind]


def can_cast(from_: DType | Array, to: DType, /) -> bool:
    """True if promotion with `to` gives `to`: then values of the first fit into it."""
    target = _core.to_dtype(to)
    return _core.promote(_dtype_of(from_), target) == target


def result_type(*arrays_and_dtypes: Array | DType | complex) -> DType:
    """The dtype that all arguments promote to. Python numbers are weak: they only raise the kind.

    int with float gives the float, two different floats of one size float32. Raises TypeError where there is none,
    as for uint64 with a signed integer.
    """
    if not arrays_and_dtypes:
        raise ValueError("[result_type] expected at least one argument")
    weak = [x for x in arrays_and_dtypes if isinstance(x, (bool, int, float, complex))]
    strong = [_dtype_of(x) for x in arrays_and_dtypes if not isinstance(x, (bool, int, float, complex))]
    result = strong[0] if strong else None
    for dtype in strong[1:]:
        promoted = _core.promote(result, dtype)
        if promoted is None:
            raise TypeError(f"[result_type] {result} and {dtype} have no common dtype: cast one of them")
        result = promoted
    for number in weak:
        result = _with_number(result, number)
    return result


def _with_number(dtype: DType | None, number: complex) -> DType:
    own = _core.to_dtype(type(number) if type(number) in (bool, int, float, complex) else float)
    if dtype is None:
        return own
    rank = {"bool": 0, "signed integer": 1, "unsigned integer": 1, _FLOAT: 2, _COMPLEX: 3}
    if rank[own.kind] <= rank[dtype.kind]:
        return dtype
    if _core.promote(dtype, own) is None and dtype != own:
        raise TypeError(
            f"[result_type] {dtype} and a {type(number).__name__} have no common dtype: cast to another one"
        )
    return _core.promote(dtype, own) if own.kind == _COMPLEX and dtype.kind == _FLOAT else own


def _computes_on(device: Device | str | None) -> Callable[[DType], bool]:
    """Whether a device itself adds numbers of a dtype up, or joins bools."""
    from dovetail import _devices

    name = _devices.device(device).name
    add, join = _core.support(name, "add"), _core.support(name, "bitwise_and")

    def computes(dtype: DType) -> bool:
        brief = _core.dtypes[PART.get(dtype.name, dtype.name)].brief
        return (join if dtype.kind == "bool" else add).get(brief, ("none", False))[0] != "none"

    return computes


class _Info:
    """The result of __array_namespace_info__()."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean masks and results of data-dependent shape are there; arrays have at most 16 axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 16}

    def default_device(self) -> Device:
        """The device of new arrays."""
        from dovetail import _devices

        return _devices.device(None)

    def default_dtypes(self, *, device: Device | str | None = None) -> dict[str, DType]:
        """The dtypes of Python's numbers and of indices, the same on every device."""
        names = {_FLOAT: "float32", _COMPLEX: "complex64", "integral": "int64", "indexing": "int64"}
        return {kind: _core.dtypes[name] for kind, name in names.items()}

    def dtypes(
        self, *, device: Device | str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """The standard's dtypes of a kind by name that work on a device, on the default one for None.

        Without fallback ("error") those for which it has kernels: a device may lack float64. With it calls of the
        others run on another device of the host.
        """
        every = {name: t for name, t in _core.dtypes.items() if name not in _NOT_LISTED}
        if _core.fallback() == "error":
            computes = _computes_on(device)
            every = {name: t for name, t in every.items() if computes(t)}
        return {name: t for name, t in every.items() if kind is None or isdtype(t, kind)}

    def devices(self) -> tuple[Device, ...]:
        """Every device that works."""
        from dovetail import _devices

        return tuple(_devices.devices())


def __array_namespace_info__() -> _Info:
    """Inspection of the namespace, as the array API has it."""
    return _Info()
