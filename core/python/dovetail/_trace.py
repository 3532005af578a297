"""Records Python functions over arrays as programs: decompositions of the schema, and users' functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any

from dovetail import _core
from dovetail._core import Array
from dovetail.schema import Unsupported, registry
from dovetail.schema.declare import active_recorder, recorded
from dovetail.schema.dtypes import by_name
from dovetail.schema.number import Number, is_natural, is_number, is_zero, largest, smallest, value_of

__all__ = ["Graph", "NoSize", "Tracer", "Unsupported", "recording_graph", "run_decomposition"]


class Tracer:
    """A value of the program that is being traced: its shape and dtype are known, its elements are not."""

    __slots__ = ("_dtype", "_graph", "_id", "_joins", "_shape")
    __hash__ = object.__hash__

    def __init__(self, graph: Graph, value: int):
        self._graph, self._id = graph, value
        self._dtype: Any = None  # None: not asked for yet
        self._shape: tuple[Any, ...] | None = None
        self._joins: Sequence[Tracer] = ()  # operands from which the sizes follow

    @property
    def shape(self) -> tuple[Any, ...]:
        if self._shape is None:
            self._graph.find_shape(self)
        return self._shape  # type: ignore[return-value]

    @property
    def dtype(self) -> Any:
        if self._dtype is None:
            self._dtype = self._graph.dtypes[self._graph.builder.dtype(self._id)]
        return self._dtype

    ndim = property(lambda self: len(self.shape))

    def __dovetail_op__(self, op: Any, *args: Any, **kwargs: Any) -> Tracer | tuple[Tracer, ...]:
        return self._record(registry[getattr(op, "name", None) or op.__name__], args, kwargs)

    def __dovetail_loop__(self, count: Any, body: Any, carries: tuple) -> tuple[Tracer, ...]:
        return record_loop(innermost(self._graph), count, body, carries)

    def _record(self, op: Any, args: tuple, kwargs: dict[str, Any]) -> Tracer | tuple[Tracer, ...]:
        return innermost(self._graph).record(op, args, kwargs)

    def __bool__(self) -> bool:
        raise TypeError("a decomposition may look at shapes, dtypes and attributes, never at values")

    __int__ = __float__ = __index__ = __bool__

    def __getitem__(self, key: Any) -> Tracer:
        """Basic indexing: ints, forward slices, None and Ellipsis."""
        return innermost(self._graph).index(self, key if isinstance(key, tuple) else (key,))


def _operators() -> None:
    def binary(name: str):
        return lambda self, other: self._record(registry[name], (self, other), {})

    def reflected(name: str):
        return lambda self, other: self._record(registry[name], (other, self), {})

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
        setattr(Tracer, f"__{method}__", lambda self, op=op: self._record(registry[op], (self,), {}))


_operators()


_PLAIN = (bool, int, float, str, type(None))  # attributes that hold no numbers of the trace


class NoSize(TypeError):
    """A program within another one knows the sizes of its operands, and no other numbers."""


class Graph:
    """Records calls in the runtime's builder, and the numbers of the trace in its table.

    The program of a control op is traced by a nested graph, in which values and numbers of the graphs around it may
    be used: adopt_value and adopt make them operands and numbers of the program.
    """

    device: Any = None  # of the arguments of a function; a decomposition runs anywhere
    dtypes: Mapping[str, Any] = by_name
    outer: Graph | None = None
    depth = 0  # of graphs around it
    numbers_given: list[Any] | None = None  # of a loop's body: integers of the outer graph, the node's `numbers`

    def __init__(self, builder: Any, name: str = ""):
        self.builder, self.name = builder, name  # the op's
        self._expressions: dict[int, tuple] = {}  # of entries: the arguments of number()
        self._adopted_values: dict[int, tuple[Tracer, Tracer]] = {}  # by the outer value: it, and ours
        self._adopted: dict[int, Number] = {}  # by the outer entry

    # ---- graphs within graphs

    def nested(self) -> Graph:
        inner = copy(self)
        inner.builder, inner.outer, inner.depth = self.builder.nested(), self, self.depth + 1
        inner._expressions, inner._adopted_values, inner._adopted = {}, {}, {}
        inner.numbers_given = None
        return inner

    def like(self, x: Tracer) -> Tracer:
        """A new input with the type of an outer value."""
        return self.like_type(x.dtype.name, x.shape)

    def like_type(self, dtype: str, shape: tuple[Any, ...]) -> Tracer:
        return self.tracer(self.builder.operand(dtype, list(map(value_of, shape))))

    def run(self, function: Callable, *args: Any) -> Any:
        """function(*args), recorded by this graph."""
        return recorded(self, function, *args)

    def value(self, x: Tracer | Array) -> Tracer:
        """An array as a value of this graph."""
        return self.adopt_value(x if isinstance(x, Tracer) else self.array(x))

    def tracer(self, value: int) -> Tracer:
        return Tracer(self, value)

    def find_shape(self, x: Tracer) -> None:
        """Sets x._shape: the sizes are numbers of the trace."""
        sizes = self.builder.shape(x._id)
        x._shape = tuple(self.size(x._id, axis, n) for axis, n in enumerate(sizes))

    def about(self, x: Array, name: str) -> Any:
        """What the trace knows of an array that is no tracer; None: nothing."""
        return None if self.outer is None else self.outer.about(x, name)

    def adopt_value(self, x: Tracer) -> Tracer:
        """The same value in this graph."""
        if x._graph is self:
            return x
        if self.outer is None:
            raise TypeError(
                f"[{self.name}] got a traced value of another function, expected one of this trace: do not keep "
                "traced values after the function that got them has returned"
            )
        outer = self.outer.adopt_value(x)
        if outer._id not in self._adopted_values:
            self._adopted_values[outer._id] = (outer, self.like(outer))
        return self._adopted_values[outer._id][1]

    @property
    def adopted_values(self) -> list[tuple[Tracer, Tracer]]:
        """Pairs of an outer value and the input that stands for it, in the order of the inputs."""
        return list(self._adopted_values.values())

    def adopt(self, n: Number) -> Number:
        """A number of a graph around this one."""
        if n.table is self:
            return n
        if self.outer is None:
            raise TypeError(f"[{self.name}] got a size of another trace: do not keep sizes of traced values")
        outer = self.outer.adopt(n)
        if outer.entry not in self._adopted:
            entry = self._entry_of_outer(outer.entry, outer.value)
            self._adopted[outer.entry] = Number(self, entry, outer.value, natural=outer.natural)
        return self._adopted[outer.entry]

    def _entry_of_outer(self, entry: int, value: Any) -> int:
        assert self.outer is not None
        if self.numbers_given is not None and isinstance(value, int):
            self.numbers_given.append(Number(self.outer, entry, value))
            return self.number("attribute", False, 1, len(self.numbers_given) - 1)
        return self._expression_of_outer(entry)

    def _expression_of_outer(self, entry: int) -> int:
        """Made again from sizes of adopted values."""
        assert self.outer is not None
        op, is_real, a, b, literal = self.outer._expressions[entry]
        if op == "attribute" or self.numbers_given is not None:
            raise NoSize(
                f"[{self.name}] the function of a control op uses a number that follows from an attribute, or a "
                "loop a real number: expected sizes; make an array of it"
            )
        if op == "size":
            return self.number(op, is_real, self.adopt_value(self.outer.tracer(a))._id, b)
        operands = [k if k < 0 else self._expression_of_outer(k) for k in (a, b)]
        return self.number(op, is_real, *operands, literal)

    # ---- numbers

    def number(self, op: str, is_real: bool, a: int = -1, b: int = -1, literal: Any = None) -> int:
        entry = self.builder.number(op, is_real, a, b, literal)
        self._expressions.setdefault(entry, (op, is_real, a, b, literal))
        return entry

    def literal(self, value: int | float) -> int:
        is_real = isinstance(value, float)
        return self.number("real" if is_real else "integer", is_real, literal=value)

    def guard(self, comparison: str, a: int, b: int, note: str = "") -> None:
        """`note`: what the line does with the numbers, for messages."""
        self.builder.guard(comparison, a, b)

    def refused(self) -> None:
        """A call raises, which the function may handle: the program is right for just these sizes and numbers."""

    def recorded(self, record: Callable[..., Any], *args: Any) -> Any:
        """record(self, *args), which may raise for other sizes and numbers than these."""
        try:
            return record(self, *args)
        except Exception:
            self.refused()
            raise

    def expect_value(self, entry: int) -> None:
        """Python raises for some operands where it computes the entry."""

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
        return self.record_bound(op, op.bind(*args, **kwargs))

    def record_bound(self, op: Any, given: dict[str, Any]) -> Tracer | tuple[Tracer, ...]:
        """A call of `op` with these arguments by parameter."""
        operands: list[Any] = []
        attributes: dict[str, Any] = {}
        slots: list[tuple[str, int, int]] = []
        for param in op.params:
            value = given[param.name]
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

    def inline(self, program: Any, operands: list[Any]) -> list[Tracer]:
        """The results of a program, whose calls become a part of this one."""
        values = [self.value(x)._id for x in operands]
        arrays = [self.adopt_value(x)._id for x in self.arrays_of(program)]
        return [self.tracer(v) for v in self.builder.inline(program, values, arrays)]

    def record_control(self, name: str, operands: list[Tracer], **attributes: Any) -> list[Tracer]:
        """A node that holds programs."""
        slots: list[tuple[str, int, int]] = []
        given = {key: self._attribute(key, value, slots) for key, value in attributes.items()}
        first = self.builder.call(name, [self.adopt_value(x)._id for x in operands], given, slots)
        return [self.tracer(first + i) for i in range(self.builder.outputs_of_last_call())]

    def _attribute(self, name: str, value: Any, slots: list[tuple[str, int, int]]) -> Any:
        """The attribute of this trace; `slots` gets the entries of its numbers."""
        if type(value) in _PLAIN:
            return value
        if isinstance(value, Number):
            slots.append((name, -1, self.adopt(value).entry))
            return value.value
        if isinstance(value, (list, tuple)):
            slots.extend((name, k, self.adopt(n).entry) for k, n in enumerate(value) if isinstance(n, Number))
            return tuple(map(value_of, value))
        return value

    def _operand(self, value: Any) -> Any:
        if isinstance(value, Tracer):
            return self.adopt_value(value)._id
        if isinstance(value, Array):
            return self.adopt_value(self.array(value))._id
        if isinstance(value, Number):
            return value.value, self.adopt(value).entry
        return None if value is None else (value, -1)  # a Python number

    def array(self, value: Array) -> Tracer:
        """The value of an array that the traced function uses; the outermost graph decides."""
        if self.outer is not None:
            return self.outer.array(value)
        raise TypeError(
            f"[{self.name}] its decomposition uses an array that it was not given: got an array of shape "
            f"{value.shape}, expected the op's operands and Python numbers; make the array an operand of the op"
        )

    def arrays_of(self, program: Any) -> list[Tracer]:
        """The values of the arrays of a program that the traced function calls; the outermost graph decides."""
        if self.outer is not None:
            return self.outer.arrays_of(program)
        if program.has_arrays:
            raise TypeError(
                f"[{self.name}] its decomposition calls a program with constant arrays: expected one without; make "
                "them operands of the op"
            )
        return []

    def expect_device(self, op: str, device: Any) -> None:
        if device is not None:
            raise TypeError(f"[{op}] device {device} in a decomposition, which runs on the device of its operands")

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


def innermost(graph: Graph) -> Graph:
    """The graph that is recording: `graph`, or one nested in it."""
    found = active_recorder()
    if isinstance(found, Graph) and found.depth > graph.depth:
        return found
    return graph


def recording_graph(leaves: Iterable[Any]) -> Graph | None:
    """The graph that records what is done now with these operands; None outside of traces."""
    for found in (_core.recorder(), active_recorder()):
        if isinstance(found, Graph):
            return found
    for x in leaves:
        if isinstance(x, Tracer):
            return innermost(x._graph)
    return None


def record_loop(graph: Graph, count: Any, body: Any, carries: tuple) -> tuple[Tracer, ...]:
    """dovetail.schema.loop in a trace: what it captures goes round with the carries."""
    inner = graph.nested()
    inner.numbers_given = []
    outer = [graph.adopt_value(c) for c in carries]
    index = Number(inner, inner.number("attribute", False, 0), 0, natural=True)
    inputs = list(map(inner.like, outer))
    results = inner.run(body, index, *inputs)
    results = results if isinstance(results, tuple) else (results,)
    if len(results) != len(carries) or not all(isinstance(r, Tracer) for r in results):
        raise TypeError(
            f"[{graph.name}] the body of a loop gave {len(results)} values: expected {len(carries)} arrays"
        )
    results = [inner.adopt_value(r) for r in results]
    captured = inner.adopted_values
    inputs += (x for _, x in captured)
    outputs = [x._id for x in (*results, *(x for _, x in captured))]
    made = graph.record_control(
        "loop",
        [*outer, *(x for x, _ in captured)],
        count=count,
        numbers=tuple(inner.numbers_given),
        body=inner.builder.close(outputs, [x._id for x in inputs]),
    )
    return tuple(made[: len(carries)])


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
