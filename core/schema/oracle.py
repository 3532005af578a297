"""Calls an op's oracle: arguments are bound, floats widened, attributes passed as keywords."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import dtypes as dt
from .dtypes import DType
from .rules import FLOATING

if TYPE_CHECKING:
    from .declare import Op


def _is_float(a: Any) -> bool:
    return isinstance(a, np.ndarray) and (a.dtype.kind == "f" or dt.of(a).kind == "f")


def computing(op: Op, given: dict[str, Any]) -> DType | None:
    """The dtype that the op computes in, for oracles: the widest floating operand's, else the first's."""
    if op.spec.dtype == "scaled":
        return dt.float64 if given["dtype"] is dt.float64 else dt.float32
    arrays = []
    for p in op.operands:
        a = given[p.name]
        arrays += [x for x in (a if isinstance(a, (list, tuple)) else [a]) if isinstance(x, np.ndarray)]
    floats = [dt.of(a) for a in arrays if _is_float(a)]
    if floats:
        size = max(d.itemsize for d in floats)
        widest = {d for d in floats if d.itemsize == size}
        return widest.pop() if len(widest) == 1 else dt.float32
    if op.spec.dtype in FLOATING:
        return dt.float32
    return dt.of(arrays[0]) if arrays else None


def call(
    fn: Callable, op: Op, args: tuple, kwargs: dict[str, Any], like: DType | None, wide: Any = np.float64
) -> Any:
    given = op.bind(*args, **kwargs)
    like = like or computing(op, given)

    def widened(a: Any, kind: str) -> Any:
        if op.spec.shape in ("bitcast", "reinterpret"):
            return a  # its very bits: widened, a signalling NaN is quiet
        if isinstance(a, (list, tuple)):
            return [widened(x, kind) for x in a]
        from_integers = op.spec.dtype in FLOATING and kind == "value"
        if isinstance(a, np.ndarray) and (_is_float(a) or (from_integers and a.dtype.kind in "biu")):
            return a.astype(wide) * wide(1)  # a product, so that no signalling NaN is left
        if isinstance(a, np.ndarray) and a.dtype.kind == "c":
            return a.astype(np.result_type(wide, np.complex64))
        if isinstance(a, float) and like is not None and like.kind == "f":
            return wide(np.asarray(a).astype(like.numpy))  # weak: the op sees it rounded
        return a

    attributes = {p.name: given[p.name] for p in op.attributes}
    code = getattr(fn, "__code__", None)
    if code and "like" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        attributes["like"] = like
    with np.errstate(all="ignore"):
        return fn(*(widened(given[p.name], p.kind) for p in op.operands), **attributes)


def expected(op: Op, args: tuple, kwargs: dict[str, Any], like: DType | None = None, wide: Any = np.float64) -> Any:
    if op.reference is None:
        raise LookupError(f"[{op.name}] has no oracle")
    return call(op.reference, op, args, kwargs, like, wide)


def scale(op: Op, args: tuple, kwargs: dict[str, Any], like: DType | None = None, wide: Any = np.float64) -> Any:
    """The magnitude whose ulp count, where it is more than the result's; 0 where the op has none.

    A tuple as that of expected(), where the op has several results.
    """
    if op.scale is None:
        return 0.0 if op.spec.n_out == 1 else (0.0,) * op.spec.n_out
    return call(op.scale, op, args, kwargs, like, wide)
