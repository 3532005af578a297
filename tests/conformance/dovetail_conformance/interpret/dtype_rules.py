"""The dtypes that an op computes in and returns, by the names of the schema's dtype rules."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from dovetail.schema import dtypes as dt
from dovetail.schema.declare import Op
from dovetail.schema.dtypes import DType
from dovetail.schema.rules import FLOATING, REAL_RESULTS

from ..judging.compare import rounded
from ..judging.oracle import FIXED, promote


class Typed(NamedTuple):
    compute: DType | None  # of the value operands
    results: list[DType]


def _of_number(value: Any) -> DType:
    kinds = {bool: dt.bool_, int: dt.int64, float: dt.float32, complex: dt.complex64}
    return kinds[type(value)]


def _joined(dtypes: list[DType]) -> DType | None:
    made = None
    for d in dtypes:
        made = d if made is None else promote(made, d)
    return made


def typed(op: Op, given: dict[str, Any]) -> Typed:
    """`given`: the arguments by name, arrays for operands."""
    values = [given[p.name] for p in op.operands if p.kind == "value"]
    flat = [x for v in values for x in (v if isinstance(v, list) else [v]) if x is not None]
    joined = _joined([dt.of(x) for x in flat])
    asked = next((given[p.name] for p in op.attributes if p.kind == "dtype"), None)
    compute, result = _by_rule(op, joined, asked, given)
    further = result
    if op.spec.dtype == "same_and_index":
        further = dt.int64
    elif op.spec.dtype == "float" and result in dt.NARROW:
        further = dt.float32
    results = [result] + [further] * (op.spec.n_out - 1)
    for i in REAL_RESULTS.get(op.spec.dtype, ()):
        results[i] = dt.PART.get(results[i], results[i])
    return Typed(compute, results)


def _by_rule(op: Op, p: DType | None, asked: DType | None, given: dict[str, Any]) -> tuple[DType | None, DType]:
    rule = op.spec.dtype
    if rule in (*FLOATING, "quantize") and p and p.kind not in "fc":
        p = dt.float32
    if rule in ("compare", "predicate"):
        return p, dt.bool_
    if rule == "logical":
        return dt.bool_, dt.bool_
    if rule in FIXED:
        return p, asked or FIXED[rule]
    if rule == "matmul":
        return p, asked or p
    if rule == "quantize":
        return p, asked
    if rule == "scaled":
        return (dt.float64 if asked is dt.float64 else dt.float32), asked or dt.float32
    if rule == "given":
        numbers = [given[a.name] for a in op.attributes if a.kind == "scalar" and given[a.name] is not None]
        own = _joined(list(map(_of_number, numbers))) if not op.operands else None
        return p, asked or own or dt.float32
    if rule == "accum":
        p = asked or {"b": dt.int64, "i": dt.int64, "u": dt.uint64}.get(p.kind, p)
    return p, p


def cast(x: np.ndarray, d: DType) -> np.ndarray:
    """x in another dtype: floats rounded once, integers wrapped."""
    if x.dtype == d.numpy:
        return x
    with np.errstate(all="ignore"):
        if d.kind == "b":
            return x != 0
        if d in dt.FOREIGN or d is dt.float16:
            wide = x.astype(np.float64)
            nearest = rounded(wide, d) if d.has_inf else wide
            return nearest.astype(d.numpy)
        return x.astype(d.numpy)
