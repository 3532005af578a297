"""Records Python functions over arrays as programs: decompositions of the schema, and users' functions."""

from __future__ import annotations

from typing import Any

from dovetail._core import Array
from dovetail.schema import Unsupported, registry
from dovetail.schema.dtypes import DType, by_name
from dovetail.schema.number import Number, is_natural, is_number, is_zero, largest, smallest, value_of

__all__ = ["Graph", "Tracer", "Unsupported", "run_decomposition"]


class Tracer:
    """A value of the program that is being traced: its shape and dtype are known, its elements are not."""

    __slots__ = ("_graph", "_id", "dtype", "shape")
    __hash__ = object.__hash__

    def __init__(self, graph: Graph, value: int):
        self._graph, self._id = graph, value
        shape, dtype = graph.builder.describe(value)
        self.shape: tuple[Any, ...] = tuple(graph.size(value, axis, n) for axis, n in enumerate(shape))
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
    """Records calls in the runtime's builder, and the numbers of the trace in its table."""

    def __init__(self, builder: Any, name: str = ""):
        self.builder, self.name = builder, name  # the op's

    def tracer(self, value: int) -> Tracer:
        return Tracer(self, value)

    # ---- numbers

    def number(self, op: str, is_real: bool, a: int = -1, b: int = -1, literal: Any = None) -> int:
        return self.builder.number(op, is_real, a, b, literal)

    def literal(self, value: int | float) -> int:
        is_real = isinstance(value, float)
        return self.number("real" if is_real else "integer", is_real, literal=value)

    def guard(self, comparison: str, a: int, b: int) -> None:
        self.builder.guard(comparison, a, b)

    def size(self, value: int, axis: int, n: int) -> Number:
        return Number(self, self.number("size", False, value, axis), n, natural=True)

    def attribute(self, position: int, value: Any) -> Any:
        """The numbers of an attribute; whatever is no number as it is."""
        if isinstance(value, tuple):
            return tuple(
                Number(self, self.number("attribute", False, position, k), n, leaf=True)
                for k, n in enumerate(value)
            )
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return value
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return value
        return Number(self, self.number("attribute", isinstance(value, float), position), value, leaf=True)

    # ---- calls

    def __dovetail_op__(self, op: Any, *args: Any, **kwargs: Any) -> Tracer | tuple[Tracer, ...]:
        """Ops without a tracer among their arguments: full, iota."""
        return self.record(op, args, kwargs)

    def record(self, op: Any, args: tuple, kwargs: dict[str, Any]) -> Tracer | tuple[Tracer, ...]:
        operands: list[Any] = []
        attributes: dict[str, Any] = {}
        slots: list[tuple[str, int, int]] = []
        for param, value in zip(op.params, op.bind(*args, **kwargs).values(), strict=True):
            if not param.is_operand:
                attributes[param.name] = self._attribute(param.name, value, slots)
            elif param.variadic:
                operands.extend(map(self._operand, value))
            else:
                operands.append(self._operand(value))
        first = self.builder.call(op.name, operands, attributes, slots)
        if op.spec.n_out == 1:
            return self.tracer(first)
        return tuple(self.tracer(first + i) for i in range(op.spec.n_out))

    def _attribute(self, name: str, value: Any, slots: list[tuple[str, int, int]]) -> Any:
        """The attribute of this trace; `slots` gets the entries of its numbers."""
        if isinstance(value, Number):
            slots.append((name, -1, value.entry))
            return value.value
        if isinstance(value, (list, tuple)):
            slots.extend((name, k, n.entry) for k, n in enumerate(value) if isinstance(n, Number))
            return tuple(map(value_of, value))
        return value

    def _operand(self, value: Any) -> Any:
        if isinstance(value, Tracer):
            return value._id
        if isinstance(value, Array):
            raise TypeError(
                f"[{self.name}] its decomposition uses an array that it was not given: got an array of shape "
                f"{value.shape}, expected the op's operands and Python numbers; make the array an operand of the op"
            )
        if isinstance(value, Number):
            return value.value, value.entry
        return None if value is None else (value, -1)  # a Python number

    def index(self, x: Tracer, key: tuple) -> Tracer:
        if any(k is Ellipsis for k in key):
            at = next(i for i, k in enumerate(key) if k is Ellipsis)
            missing = x.ndim - sum(k is not None and k is not Ellipsis for k in key)
            key = key[:at] + (slice(None),) * missing + key[at + 1 :]
        region, drop, new = [], [], []
        axis = 0
        for k in key:
            if k is None:
                new.append(len(region) - len(drop) + len(new))
                continue
            n = x.shape[axis]
            if isinstance(k, slice):
                region.append(_range(k, n))
            else:
                drop.append(axis)
                region.append(_place(k, n, axis))
            axis += 1
        region += [(0, n, 1) for n in x.shape[axis:]]
        out: Any = x
        if not all(_whole(r, n) for r, n in zip(region, x.shape, strict=True)):
            out = self.record(registry["slice"], (out, *map(tuple, zip(*region, strict=True))), {})
        if drop:
            out = self.record(registry["squeeze"], (out, tuple(drop)), {})
        if new:
            out = self.record(registry["expand_dims"], (out,), {"axis": tuple(new)})
        return out


def _end(k: Any, n: Any, default: Any) -> Any:
    """An end of a slice of an axis of size n, within it; a negative one counts from the end."""
    if k is None:
        return default
    if is_natural(k) or k >= 0:
        return smallest(k, n)
    return largest(k + n, 0)


def _range(k: slice, n: Any) -> tuple[Any, Any, Any]:
    step = 1 if k.step is None else k.step
    if not is_number(step) or step < 1:
        raise IndexError("a decomposition's slices go forward: use flip")
    start = _end(k.start, n, 0)
    stop = _end(k.stop, n, n)
    return start, stop if is_zero(start) else largest(start, stop), step


def _place(k: Any, n: Any, axis: int) -> tuple[Any, Any, int]:
    a = k if is_natural(k) or k >= 0 else k + n
    if not 0 <= value_of(a) < value_of(n):
        raise IndexError(f"index {k} is out of range for axis {axis} of size {n}")
    return a, a + 1, 1


def _whole(region: tuple[Any, Any, Any], n: Any) -> bool:
    start, stop, step = region
    same = stop is n or (isinstance(stop, Number) and isinstance(n, Number) and stop.entry == n.entry)
    return same and not isinstance(start, Number) and start == 0 and not isinstance(step, Number) and step == 1


def run_decomposition(
    name: str, builder: Any, operands: list[int | None], variadic: bool, attributes: dict[str, Any]
) -> list[int]:
    """Records the decomposition of op `name`, with normalised attributes; returns its outputs' numbers."""
    graph, op = Graph(builder, name), registry[name]
    values: list[Any] = [None if i is None else Tracer(graph, i) for i in operands]
    if variadic:
        fixed = len(op.operands) - 1
        values = [*values[:fixed], tuple(values[fixed:])]
    own = op.__module__.startswith("dovetail.schema.")
    given = iter(values)
    arguments, position = {}, 0
    for param in op.params:
        if param.is_operand:
            arguments[param.name] = next(given)
            continue
        value = attributes[param.name]
        if param.kind == "dtype" and value is not None:
            arguments[param.name] = by_name[value]
        else:
            number = graph.attribute(position, value)
            arguments[param.name] = number if own else _pinned(number)
        position += 1
    positional = [arguments[p.name] for p in op.params if not p.keyword_only]
    keywords = {p.name: arguments[p.name] for p in op.params if p.keyword_only}
    results = op.trace(graph, *positional, **keywords)
    return [_result(op, r) for r in (results if isinstance(results, tuple) else (results,))]


def _pinned(value: Any) -> Any:
    """The attribute as Python's numbers, for which alone the program is then right: what an author expects."""
    if isinstance(value, tuple):
        return tuple(map(_pinned, value))
    return value.pin() if isinstance(value, Number) else value


def _result(op: Any, result: Any) -> int:
    if isinstance(result, Tracer):
        return result._id
    raise TypeError(f"[{op.name}] its decomposition returned {type(result).__name__}: expected what an op returned")
