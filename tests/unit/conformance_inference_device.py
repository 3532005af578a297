"""A device for the profile "inference": it has float16, int8, int32 and bool only. Its kernels use the schema's
references, in float64 and rounded once. Indices are int64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from dovetail.entry_points import import_ops
from dovetail.prototype import Kernel, PythonDevice, kernel
from dovetail.schema import Op, oracle, registry
from dovetail.schema.dtypes import by_name
from dovetail_conformance.levels.must_pass import profiles

import_ops()
MOVES = ("copy", "full", "take", "scatter", "where")  # of any dtype: they do not read the values


def _answers(op: Op) -> Callable[..., None]:
    def run(self: PythonDevice, *operands: Any, **attributes: Any) -> None:
        *inputs, out = operands
        given = [
            [x.numpy() for x in o] if isinstance(o, list) else None if o is None else o.numpy() for o in inputs
        ]
        if op.name == "copy":  # as bits: float64 would quieten a signalling NaN
            out.numpy()[...] = given[0]
            return
        for name, value in attributes.items():
            if type(value).__name__ == "DType":
                attributes[name] = by_name[value.name]
        if attributes.get("approximate") not in (None, "none", "tanh"):
            raise ValueError(f"[{op.name}] approximate is {attributes['approximate']!r}: expected none or tanh")
        named = list(zip(op.operands, given))
        args = tuple(a for p, a in named if p.positional_only or p.variadic)
        kwargs = {p.name: a for p, a in named if not (p.positional_only or p.variadic)}
        with np.errstate(all="ignore"):
            value = oracle.expected(op, args, kwargs | attributes)
            out.numpy()[...] = np.asarray(value).astype(out.numpy().dtype)

    return run


def _kernels() -> dict[str, Kernel]:
    found = {}
    for name, dtypes in profiles()["inference"].ops.items():
        op = registry[name]
        if op.core or op.spec.view:
            continue
        words = "any" if name in MOVES else " ".join(by_name[d].name for d in dtypes)
        if op.spec.dtype == "logical":
            words = "bool"
        if name == "scaled_dot_product_attention":
            words += " float16,float16,float16,bool,int64->float16"
        if name == "astype":
            words = " ".join(f"{by_name[a].name}->{by_name[b].name}" for a in dtypes for b in dtypes)
        found[name + "_"] = kernel(name, words)(_answers(op))
    return found


class Inference(PythonDevice):
    name = "inference"
    kind = "npu"
    product = "Float16 and int8"
    locals().update(_kernels())
