"""Runs the decomposition of an op once on tracers, so that the runtime can replay its calls without Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dovetail._core import Array
from dovetail.schema import Unsupported, registry
from dovetail.schema.dtypes import DType, by_name

__all__ = ["Tracer", "Unsupported", "run_decomposition"]


class Tracer:
    """A value of the program that is being traced: its shape and dtype are known, its elements are not."""

    __slots__ = ("_graph", "_id", "dtype", "shape")
    __hash__ = object.__hash__

    def __init__(self, graph: Graph, value: int):
        self._graph, self._id = graph, value
        shape, dtype = graph.builder.describe(value)
        self.shape: tuple[int, ...] = shape
        self.dtype: DType = by_name[dtype]

    ndim = property(lambda self: len(self.shape))

    def __dovetail_op__(self, op: Any, *args: Any, **kwargs: Any) -> Tracer | tuple[Tracer, ...]:
        return self._graph.record(registry[getattr(op, "name", None) or op.__name__], args, kwargs)

    def __bool__(self) -> bool:
        raise TypeError("a decomposition may look at shapes, dtypes and attributes, never at values")

    __int__ = __float__ = __index__ = __bool__

    def __getitem__(self, key: Any) -> Tracer:
        """Basic indexing: ints, forward slices, None and Ellipsis."""
        return self._graph.index(self, key if isinstance(key, tuple) else (key,))


def _operators() -> None:
    def binary(name: str):
        return lambda self, other: self._graph.record(registry[name], (self, other), {})

    def reflected(name: str):
        return lambda self, other: self._graph.record(registry[name], (other, self), {})

    names = {
        "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
        "mod": "remainder", "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
        "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
    }  # fmt: skip
    for method, op in names.items():
        setattr(Tracer, f"__{method}__", binary(op))
        setattr(Tracer, f"__r{method}__", reflected(op))
    comparisons = {
        "lt": "less", "le": "less_equal", "eq": "equal", "ne": "not_equal", "gt": "greater", "ge": "greater_equal"
    }  # fmt: skip
    for method, op in comparisons.items():
        setattr(Tracer, f"__{method}__", binary(op))
    for method, op in {"neg": "negative", "invert": "bitwise_invert", "abs": "abs"}.items():
        setattr(Tracer, f"__{method}__", lambda self, op=op: self._graph.record(registry[op], (self,), {}))


_operators()


class Graph:
    """Records calls in the runtime's builder."""

    def __init__(self, builder: Any, name: str = ""):
        self.builder, self.name = builder, name  # the op's
        self.calls: Counter[str] = Counter()

    def __dovetail_op__(self, op: Any, *args: Any, **kwargs: Any) -> Tracer | tuple[Tracer, ...]:
        """Ops without a tracer among their arguments: full, iota."""
        return self.record(op, args, kwargs)

    def record(self, op: Any, args: tuple, kwargs: dict[str, Any]) -> Tracer | tuple[Tracer, ...]:
        operands: list[Any] = []
        attributes: dict[str, Any] = {}
        for param, value in zip(op.params, op.bind(*args, **kwargs).values(), strict=True):
            if not param.is_operand:
                attributes[param.name] = value
            elif param.variadic:
                operands.extend(map(self._operand, value))
            else:
                operands.append(self._operand(value))
        self.calls[op.name] += 1
        first = self.builder.call(op.name, operands, attributes)
        if op.spec.n_out == 1:
            return Tracer(self, first)
        return tuple(Tracer(self, first + i) for i in range(op.spec.n_out))

    def _operand(self, value: Any) -> Any:
        if isinstance(value, Tracer):
            return value._id
        if isinstance(value, Array):
            raise TypeError(
                f"[{self.name}] its decomposition uses an array that it was not given: got an array of shape "
                f"{value.shape}, expected the op's operands and Python numbers; make the array an operand of the op"
            )
        return None if value is None else (value,)  # a Python number

    def index(self, x: Tracer, key: tuple) -> Tracer:
        if any(k is Ellipsis for k in key):
            at = next(i for i, k in enumerate(key) if k is Ellipsis)
            missing = x.ndim - sum(k is not None and k is not Ellipsis for k in key)
            key = key[:at] + (slice(None),) * missing + key[at + 1 :]
        start, stop, step, drop, new = [], [], [], [], []
        axis = 0
        for k in key:
            if k is None:
                new.append(len(start) - len(drop) + len(new))
                continue
            n = x.shape[axis]
            if isinstance(k, slice):
                a, b, c = k.indices(n)
                if c < 0:
                    raise IndexError("a decomposition's slices go forward: use flip")
                b = max(a, b)
            else:
                a, c = (k + n if k < 0 else k), 1
                b = a + 1
                if not 0 <= a < n:
                    raise IndexError(f"index {k} is out of range for axis {axis} of size {n}")
                drop.append(axis)
            start.append(a), stop.append(b), step.append(c)
            axis += 1
        for n in x.shape[axis:]:
            start.append(0), stop.append(n), step.append(1)
        out: Any = x
        if any(start) or tuple(stop) != x.shape or any(s != 1 for s in step):
            out = self.record(registry["slice"], (out, tuple(start), tuple(stop), tuple(step)), {})
        if drop:
            out = self.record(registry["squeeze"], (out, tuple(drop)), {})
        if new:
            out = self.record(registry["expand_dims"], (out,), {"axis": tuple(new)})
        return out


_observed: dict[str, Counter[str]] | None = None


@contextmanager
def observed() -> Iterator[dict[str, Counter[str]]]:
    """Records the calls of each decomposition that is traced inside; those traced before are skipped."""
    global _observed
    _observed = found = {}
    try:
        yield found
    finally:
        _observed = None


def run_decomposition(
    name: str, builder: Any, operands: list[int | None], variadic: bool, attributes: dict[str, Any]
) -> list[int]:
    """Records the decomposition of op `name`, with normalised attributes; returns its outputs' numbers."""
    graph, op = Graph(builder, name), registry[name]
    values: list[Any] = [None if i is None else Tracer(graph, i) for i in operands]
    if variadic:
        fixed = len(op.operands) - 1
        values = [*values[:fixed], tuple(values[fixed:])]
    given = iter(values)
    arguments = {}
    for param in op.params:
        value = next(given) if param.is_operand else attributes[param.name]
        arguments[param.name] = by_name[value] if param.kind == "dtype" and value is not None else value
    positional = [arguments[p.name] for p in op.params if not p.keyword_only]
    keywords = {p.name: arguments[p.name] for p in op.params if p.keyword_only}
    results = op.trace(graph, *positional, **keywords)
    if _observed is not None:
        _observed[name] = graph.calls
    return [_result(op, r) for r in (results if isinstance(results, tuple) else (results,))]


def _result(op: Any, result: Any) -> int:
    if isinstance(result, Tracer):
        return result._id
    raise TypeError(f"[{op.name}] its decomposition returned {type(result).__name__}: expected what an op returned")
