"""A call in words: its operands' shapes, and of elementwise ops the very numbers that gave a wrong element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from dovetail.schema import Op
from dovetail.schema import dtypes as dt

from .operand import TYPED


def described(op: Op, args: tuple, kwargs: dict[str, Any], layout: str = "", index: Sequence[int] = ()) -> str:
    """`sum(x=f32(5, 129), axis=-1), layout strided`, and `, there of -0.0 and nan` where that is known."""
    named = dict(zip((p.name for p in op.params), args)) | kwargs
    call = f"{op.name}({', '.join(f'{name}={_argument(a)}' for name, a in named.items())})"
    call += f", layout {layout}" if layout else ""
    there = _elements(op, [a for a in named.values() if isinstance(a, np.ndarray)], index)
    return f"{call}, there of {' and '.join(there)}" if there else call


def _argument(a: Any) -> str:
    if isinstance(a, list):
        return f"[{', '.join(map(_argument, a))}]"
    if not isinstance(a, np.ndarray):
        return repr(a)
    shape = str(a.shape).replace(",)", ")")
    return f"{dt.of(a).brief}{shape}{f' {a.tolist()}' if a.size <= TYPED else ''}"


def _elements(op: Op, arrays: list[np.ndarray], index: Sequence[int]) -> list[str]:
    """The operands of the element at the index, for an elementwise op; none where the call shows all numbers."""
    if not index or op.spec.shape not in ("same", "broadcast") or all(a.size <= TYPED for a in arrays):
        return []
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    return [str(np.broadcast_to(a, shape)[tuple(index)]) for a in arrays]
