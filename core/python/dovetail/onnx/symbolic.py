"""Arithmetic of sizes: what graphs compute from Shape stays numbers of the trace, so programs serve all sizes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dovetail.onnx.registry import Node
from dovetail.onnx.values import DTYPES, Sizes, is_traced
from dovetail.schema.number import Number, largest, smallest

__all__ = ["folded"]

_MOST = 64  # elements


def folded(node: Node, values: list[Any]) -> Any:
    """The result of a node whose operands are Sizes and constants; None where arrays must compute it."""
    rule = _RULES.get(node.op) if not node.domain else None
    if rule is None or any(is_traced(v) or isinstance(v, (list, np.ndarray)) for v in values):
        return None
    given = [v if v is None or isinstance(v, Sizes) else _sizes(v) for v in values]
    if any(g is False for g in given):
        return None
    return rule(node, *given)


def _sizes(x: Any) -> Sizes | bool:
    """A constant as Sizes; False for a large one."""
    if x.size > _MOST or x.dtype.name not in ("int64", "int32", "bool", "float32", "float64"):
        return False
    return Sizes(np.asarray(x).reshape(-1).tolist(), x.shape, x.dtype.name)


def _picked(x: Sizes, index: Any, dtype: str | None = None) -> Any:
    """The elements at an array of flat positions."""
    return Sizes.of([x.flat[i] for i in index.reshape(-1)], index.shape, dtype or x.dtype)


def _flat_index(x: Sizes) -> Any:
    return np.arange(x.size).reshape(x.shape)


def _elementwise(function: Callable[..., Any], dtype: str | None = None) -> Callable[..., Any]:
    def rule(node: Node, *operands: Sizes) -> Any:
        shape = np.broadcast_shapes(*(x.shape for x in operands))
        rows = [[x.flat[i] for i in np.broadcast_to(_flat_index(x), shape).reshape(-1)] for x in operands]
        return Sizes.of([function(*row) for row in zip(*rows)], shape, dtype or operands[-1].dtype)

    return rule


def _quotient(a: Any, b: Any) -> Any:
    """Integers are divided towards zero."""
    if isinstance(a, float) or isinstance(b, float) or getattr(a, "is_real", False) or getattr(b, "is_real", False):
        return a / b
    if _is_natural(a) and _is_natural(b):
        return a // b
    return a // b if (a >= 0) == (b > 0) else -(-a // b)


def _is_natural(n: Any) -> bool:
    return n.natural if isinstance(n, Number) else n >= 0


def _chosen(condition: Any, a: Any, b: Any) -> Any:
    return a if condition else b


def _cast(node: Node, x: Sizes) -> Any:
    name = DTYPES.get(node.get("to", 0))
    if name in ("int64", "int32"):
        return Sizes.of([_truncated(n) for n in x.flat], x.shape, name)
    if name in ("float32", "float64"):
        return Sizes.of([n * 1.0 for n in x.flat], x.shape, name)
    return None


def _truncated(n: Any) -> Any:
    if isinstance(n, Number):
        return (math.floor(n) if n.value >= 0 else math.ceil(n)) if n.is_real else n
    return int(n)


def _gather(node: Node, x: Sizes, index: Sizes) -> Any:
    places = np.array([int(i) for i in index.flat]).reshape(index.shape)
    return _picked(x, np.take(_flat_index(x), places, axis=node.get("axis", 0)))


def _slice(node: Node, x: Sizes, *bounds: Sizes | None) -> Any:
    given = [[int(n) for n in b.flat] if b is not None else None for b in bounds]
    if node.opset < 10:
        given = [node.get("starts"), node.get("ends"), node.get("axes")]
    starts, ends, axes, steps = (*given, None, None)[:4]
    key = [slice(None)] * x.ndim
    for i, axis in enumerate(axes if axes is not None else range(len(starts))):
        step = steps[i] if steps else 1
        end = ends[i]
        key[axis] = slice(starts[i], None if step < 0 and end < -x.shape[axis] else end, step)
    return _picked(x, _flat_index(x)[tuple(key)])


def _concat(node: Node, *parts: Sizes) -> Any:
    flat = [n for part in parts for n in part.flat]
    starts = np.cumsum([0, *(part.size for part in parts)])
    index = np.concatenate([_flat_index(p) + s for p, s in zip(parts, starts)], axis=node.get("axis", 0))
    return _picked(Sizes(flat, (len(flat),), parts[0].dtype), index)


def _reshaped(node: Node, x: Sizes, shape: Sizes | None = None) -> Any:
    sizes = [int(n) for n in shape.flat] if shape is not None else list(node.get("shape"))
    sizes = [x.shape[i] if n == 0 and not node.get("allowzero", 0) else n for i, n in enumerate(sizes)]
    return _picked(x, _flat_index(x).reshape(sizes))


def _axes(node: Node, axes: Sizes | None) -> list[int] | None:
    return [int(a) for a in axes.flat] if axes is not None else node.get("axes")


def _unsqueezed(node: Node, x: Sizes, axes: Sizes | None = None) -> Any:
    return _picked(x, np.expand_dims(_flat_index(x), tuple(_axes(node, axes) or ())))


def _squeezed(node: Node, x: Sizes, axes: Sizes | None = None) -> Any:
    given = _axes(node, axes)
    return _picked(x, np.squeeze(_flat_index(x), tuple(given) if given is not None else None))


def _reduced(function: Callable[[Any, Any], Any], empty: int) -> Callable[..., Any]:
    def rule(node: Node, x: Sizes, axes: Sizes | None = None) -> Any:
        given = _axes(node, axes)
        if (
            x.ndim != 1
            or (given and [a % 1 for a in given] != [0])
            or (not given and node.get("noop_with_empty_axes"))
        ):
            return None
        total: Any = empty
        for i, n in enumerate(x.flat):
            total = n if i == 0 else function(total, n)
        return Sizes.of([total], (1,) if node.get("keepdims", 1) else (), x.dtype)

    return rule


def _same(node: Node, x: Sizes) -> Any:
    return x


_RULES: dict[str, Callable[..., Any]] = {
    "Add": _elementwise(lambda a, b: a + b), "Sub": _elementwise(lambda a, b: a - b),
    "Mul": _elementwise(lambda a, b: a * b), "Div": _elementwise(_quotient),
    "Mod": _elementwise(lambda a, b: a % b), "Neg": _elementwise(lambda a: -a),
    "Max": _elementwise(lambda *n: largest(*n)), "Min": _elementwise(lambda *n: smallest(*n)),
    "Floor": _elementwise(lambda a: math.floor(a) * 1.0), "Ceil": _elementwise(lambda a: math.ceil(a) * 1.0),
    "Equal": _elementwise(lambda a, b: bool(a == b), "bool"),
    "Less": _elementwise(lambda a, b: bool(a < b), "bool"),
    "Greater": _elementwise(lambda a, b: bool(a > b), "bool"),
    "GreaterOrEqual": _elementwise(lambda a, b: bool(a >= b), "bool"),
    "LessOrEqual": _elementwise(lambda a, b: bool(a <= b), "bool"), "Where": _elementwise(_chosen),
    "Cast": _cast, "Gather": _gather, "Slice": _slice, "Concat": _concat, "Reshape": _reshaped,
    "Unsqueeze": _unsqueezed, "Squeeze": _squeezed, "ReduceProd": _reduced(lambda a, b: a * b, 1),
    "ReduceSum": _reduced(lambda a, b: a + b, 0), "ReduceMax": _reduced(largest, 0),
    "ReduceMin": _reduced(smallest, 0), "Identity": _same,
}  # fmt: skip
