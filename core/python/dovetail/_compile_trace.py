"""Traces a function for dovetail.compile: arrays become inputs, and writes to them effects of a call."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any

from dovetail import _captures, _core
from dovetail import _pytree as pytree
from dovetail._core import Array, Device, DType
from dovetail._function_trace import Spec, device_of, run_recorded, size_mark, trace_sizes
from dovetail._record import FunctionGraph, user_line
from dovetail._trace import Tracer
from dovetail._tracer import ArrayTracer, TraceError, refuse_value
from dovetail.schema.number import Number

__all__ = ["Bound", "Traced", "facts_of", "trace"]

_VALUES = (type(None), bool, int, str, bytes, complex, Enum, DType, Device, type)
_NO_KEYS: tuple[Any, ...] = ()
Part = tuple[str, int, Any, Sequence[Any]]  # kind, number, object, keys: of _core.CompiledProgram


@dataclass(slots=True)
class Bound:
    """Arguments of a call, by parameter: then further positional ones, then those of further keywords."""

    names: list[str]
    values: Sequence[Any]
    n_positional: int  # parameters that are passed by position
    n_named: int
    n_extra: int
    keywords: Sequence[str]
    weak_self: bool  # the first argument is the object of a method

    def call(self, values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments of fn."""
        end = self.n_named + self.n_extra
        positional = values[: self.n_positional] + values[self.n_named : end]
        named = zip(self.names[self.n_positional : self.n_named], values[self.n_positional : self.n_named])
        return positional, dict(named) | dict(zip(self.keywords, values[end:], strict=True))


@dataclass(slots=True)
class Traced:
    """A program of a compiled function, with what is needed to explain it."""

    program: Any  # _core.Program
    facts: dict[str, Any]  # of the arguments, by path: what the program was made for
    shapes: list[tuple[int, ...]]
    integers: list[int]
    reals: list[float]
    captured: list[str]
    written: list[str]
    notes: list[str] = field(default_factory=list)


class CompileGraph(FunctionGraph):
    """The recorder of a compiled function: arrays that it captures are inputs, and may be written."""

    front = "compile"

    def __init__(self, builder: Any, name: str, device: Any):
        FunctionGraph.__init__(self, builder, name, device)
        self.inputs: list[tuple[Any, int, str]] = []  # (array or None, value, name), in the program's order
        self.sizes: list[list[int]] = []  # of these, while tracing
        self.draws: dict[int, list[Any]] = {}  # by generator: it, the blocks drawn, [(input, blocks before)]
        self._made: dict[int, int] = {}  # of arrays made while tracing, by id: the first value
        self.device_is_open = False  # the default one, unless the function captures an array

    def add_input(self, x: Any, dtype: str, shape: Sequence[Any], sizes: Sequence[int], name: str) -> ArrayTracer:
        value = self.builder.input(dtype, list(shape), name, list(sizes))
        self.fixed |= {(value, axis) for axis, n in enumerate(shape) if isinstance(n, int)}
        self.inputs.append((x, value, name))
        self.sizes.append(list(sizes))
        return self.tracer(value)

    def nested(self) -> FunctionGraph:
        inner = FunctionGraph.nested(self)
        inner.__class__ = _NestedGraph
        return inner

    # ---- arrays that are no arguments

    def capture(self, x: Array) -> ArrayTracer:
        if self.device_is_open:
            self.device, self.device_is_open = x.device, False
        if x.device != self.device:
            raise TraceError(
                f"[compile] the function uses an array on {x.device} at {user_line()}, but runs on {self.device}: "
                "expected arrays of one device; .to_device() brings them over"
            )
        name = f"captured[{sum(name.startswith('captured') for _, _, name in self.inputs)}]"
        return self.add_input(x, x.dtype.name, [None] * x.ndim, x.shape, name)

    def made(self, x: Array) -> None:
        tracer = self.constant(x)
        self._made[id(x)] = tracer._id
        self._captured[id(x)] = x, tracer

    def may_write(self, x: Array) -> bool:
        return isinstance(x, Array)

    def read(self, x: Array, what: str) -> None:
        if not self._is_constant(x):
            raise refuse_value(what, "pass what is read as a Python number, or compute with the array")

    def share(self, x: Array) -> Any:
        if not self._is_constant(x):
            return FunctionGraph.share(self, x)
        from dovetail._array import recording_on

        with recording_on(None):
            shared = _core.share(x)
        self.made(shared)
        return shared

    def _is_constant(self, x: Array) -> bool:
        """Whether x was made in this trace, and not written since."""
        return id(x) in self._made and self._captured[id(x)][1]._id == self._made[id(x)]

    def draw_key(self, generator: Any, words: Any) -> ArrayTracer:
        draws = self.draws.setdefault(id(generator), [generator, 0, []])
        key = self.add_input(None, "uint32", [4], [4], "a random key")
        draws[2].append((len(self.inputs) - 1, draws[1]))
        draws[1] = draws[1] - (-words // 4)
        return key

    # ---- what the caller sees

    def entry_of(self, n: Any) -> int:
        return self.adopt(n).entry if isinstance(n, Number) else self.literal(n)

    def number_value(self, n: Any) -> int:
        """A constant of the program from which a call reads a number of its trace."""
        return self.builder.number_constant(self.entry_of(n), isinstance(n, Number) and n.is_real)


class _NestedGraph(CompileGraph):
    """Of a function that a control op traces."""

    def may_write(self, x: Array) -> bool:
        return False

    def capture(self, x: Array) -> ArrayTracer:  # value() asks the outer graph first
        raise AssertionError

    def made(self, x: Array) -> None:
        assert self.outer is not None
        self.outer.made(x)  # type: ignore[attr-defined]

    def draw_key(self, generator: Any, words: Any) -> ArrayTracer:
        return FunctionGraph.draw_key(self, generator, words)


# ---- arguments ---------------------------------------------------------------------------------------------------


def children(x: Any, path: str) -> tuple[str, list[tuple[Any, str, Any]], Callable[[list[Any]], Any]] | None:
    """As pytree.children, of containers that are built again; others are objects whose arrays are captured."""
    kind = type(x)
    if is_dataclass(x) and not isinstance(x, type):
        names = [f.name for f in fields(x)]

        def made(values: list[Any]) -> Any:
            new = copy.copy(x)
            for name, value in zip(names, values, strict=True):
                object.__setattr__(new, name, value)
            return new

        return "fields", [(n, f"{path}.{n}", getattr(x, n)) for n in names if hasattr(x, n)], made
    if kind is dict and not all(type(key) is str for key in x):
        return None
    if kind in (tuple, list, dict) or (isinstance(x, tuple) and hasattr(kind, "_fields")):
        found = pytree.children(x, path)
        return found if found is None or kind is dict else ("sequence", *found[1:])
    return None


def number_of(x: Any) -> Any:
    """A number of NumPy as Python's; everything else as it is."""
    numpy = sys.modules.get("numpy")
    return x.item() if numpy is not None and isinstance(x, numpy.generic) else x


def facts_of(value: Any, path: str, facts: dict[str, Any]) -> None:
    """What a program depends on in an argument, by path: for messages, and to see which ints change."""
    found = children(value, path)
    value = number_of(value)
    if isinstance(value, (Array, Spec)):
        facts[path] = ("array", value.dtype.name, len(value.shape))
    elif found is not None:
        facts[path] = (type(value).__name__, *(key for key, _, _ in found[1]))
        for _, where, part in found[1]:
            facts_of(part, where, facts)
    elif type(value) is float:
        facts[path] = ("float",)
    elif isinstance(value, _VALUES):
        facts[path] = ("value", type(value).__name__, value)
    else:
        facts[path] = ("object", type(value).__name__, id(value))


class _Arguments:
    """Replaces the arguments of a call by tracers, and notes what they must be for the program."""

    def __init__(self, graph: CompileGraph, symbols: set[str], marks: dict[str, Any]):
        self.graph, self.symbols, self.marks = graph, symbols, marks
        self.parts: list[Part] = []
        self.integers: list[int] = []
        self.reals: list[float] = []
        self.objects: dict[str, tuple[int, Any]] = {}  # that are no containers, by name
        self.copies: list[tuple[str, Any, list[tuple[Any, Any]]]] = []  # of containers, with what was in them
        self.by_array: dict[int, tuple[ArrayTracer, int]] = {}  # by the id of the array: its tracer and input
        self._known: dict[str, int] = {}
        self._chosen = trace_sizes()

    def add(self, x: Any, path: str, weak: bool = False) -> Any:
        found = None if weak else children(x, path)
        if found is not None:
            return self._container(x, path, found)
        if isinstance(x, (Array, Spec)):
            return self._array(x, path)
        x = number_of(x)
        if type(x) is float:
            return self._number("real", x, path)
        if type(x) is int and path in self.symbols and -(2**63) <= x < 2**63:
            return self._number("integer", x, path)
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(x, numpy.ndarray):
            raise TypeError(f"[compile] {path}: got a NumPy array, expected one of dovetail; dovetail.asarray(x)")
        if isinstance(x, _VALUES):
            self.parts.append(("value", 0, x, _NO_KEYS))
            return x
        number = len(self.objects)
        self.objects[path] = number, x
        self.parts.append(("weak" if weak else "object", number, x, _NO_KEYS))
        return x

    def _container(self, x: Any, path: str, found: Any) -> Any:
        kind, items, make = found
        keys = [key for key, _, _ in items] if kind != "sequence" else _NO_KEYS
        self.parts.append((kind, len(items), type(x), keys))
        values = [self.add(value, where) for _, where, value in items]
        made = make(values)
        if kind != "sequence" or type(x) is list:
            self.copies.append((path, made, list(zip([key for key, _, _ in items], values))))
        return made

    def _array(self, x: Any, path: str) -> ArrayTracer:
        if id(x) in self.by_array:
            tracer, number = self.by_array[id(x)]
            self.parts.append(("array", number, None, _NO_KEYS))
            return tracer
        mark = self.marks.get(path)
        shape = [size_mark(mark, axis, n, is_spec=False) for axis, n in enumerate(x.shape)]
        sizes = [self._size(name, n) for name, n in zip(shape, x.shape, strict=True)]
        tracer = self.graph.add_input(x, x.dtype.name, shape, sizes, path)
        number = len(self.graph.inputs) - 1
        self.by_array[id(x)] = tracer, number
        if isinstance(x, Array):
            self.graph._captured[id(x)] = x, tracer
        self.parts.append(("array", number, None, _NO_KEYS))
        return tracer

    def _size(self, name: Any, n: Any) -> int:
        """The size of this trace: the given one, or one for the name."""
        if isinstance(n, int):
            return self._known.setdefault(name, n) if isinstance(name, str) else n
        if isinstance(name, str):
            if name not in self._known:
                self._known[name] = next(self._chosen)
            return self._known[name]
        return next(self._chosen)

    def _number(self, kind: str, x: Any, path: str) -> Number:
        is_real = kind == "real"
        entry = self.graph.builder.argument(is_real, path)
        self.graph._expressions[entry] = ("attribute", is_real, int(is_real), len(self.integers), None)
        self.parts.append((kind, len(self.integers), None, _NO_KEYS))
        self.integers.append(0 if is_real else x)
        self.reals.append(x if is_real else 0.0)
        return Number(self.graph, entry, x)

    def expect_unchanged(self) -> None:
        """Raises TraceError where the function has changed a container of the arguments."""
        for path, made, before in self.copies:
            found = children(made, path)
            now = [] if found is None else [(key, value) for key, _, value in found[1]]
            same = len(now) == len(before) and all(a[0] == b[0] and a[1] is b[1] for a, b in zip(now, before))
            if not same:
                raise TraceError(
                    f"[compile] the function changes which values are in the argument {path}, which a compiled "
                    "function does not do for its caller: return the new ones; x[...] = v changes an array"
                )


# ---- results -----------------------------------------------------------------------------------------------------


class _Results:
    """What the function returns, as _core.CompiledProgram takes it."""

    def __init__(self, graph: CompileGraph, arguments: _Arguments):
        self.graph, self.arguments = graph, arguments
        self.parts: list[Part] = []
        self.outputs: list[int] = []  # values
        self._places: dict[int, int] = {}  # of tracers among the outputs, by id
        self._keep: list[Any] = []  # tracers, so that their ids stay theirs
        self._inputs = {id(tracer): number for tracer, number in arguments.by_array.values()}

    def output(self, value: int) -> int:
        self.outputs.append(value)
        return len(self.outputs) - 1

    def add(self, x: Any, path: str) -> None:
        x = number_of(x)
        if isinstance(x, Number):
            self.parts.append(("real" if x.is_real else "integer", self.graph.number_value(x), None, _NO_KEYS))
        elif isinstance(x, Array):
            self._array(x)
        elif isinstance(x, (float, *_VALUES)) or any(x is known for _, known in self.arguments.objects.values()):
            self.parts.append(("value", 0, x, _NO_KEYS))
        elif (found := pytree.children(x, path)) is not None:
            kind, items, make = found
            builtin = type(x) in (tuple, list, dict)
            keys = [key for key, _, _ in items] if kind == "dict" else _NO_KEYS
            head = (kind, len(items), None, keys) if builtin else ("made", len(items), make, _NO_KEYS)
            self.parts.append(head)
            for _, where, part in items:
                self.add(part, where)
        else:
            raise TypeError(
                f"[compile] {path}: got {type(x).__name__}, expected arrays, numbers, strings, None, and tuples, "
                "lists, dicts or dataclasses of them"
            )

    def _array(self, x: Any) -> None:
        number = self._inputs.get(id(x))
        if number is None and type(x) is Array:
            self.graph.value(x)
            number = next((i for i, (array, _, _) in enumerate(self.graph.inputs) if array is x), None)
        if number is not None:
            self.parts.append(("input", number, None, _NO_KEYS))
            return
        if id(x) not in self._places:
            self._keep.append(x)
            self._places[id(x)] = self.output(self.graph.value(x)._id)
        self.parts.append(("output", self._places[id(x)], None, _NO_KEYS))


# ---- the trace ---------------------------------------------------------------------------------------------------


def trace(
    fn: Any, bound: Bound, symbols: set[str], marks: dict[str, Any], donate: Sequence[str], numerics: str
) -> tuple[Any, Traced]:
    """Runs fn on tracers: a _core.CompiledProgram, and what is known of it, which keeps no object of the caller's.

    Raises what fn raises, and TraceError for what a program cannot do.
    """
    name = getattr(fn, "__qualname__", None) or type(fn).__name__
    held = [x for x in bound.values[1:] if not isinstance(x, Spec)] if bound.weak_self else bound.values
    builder = _core.ProgramBuilder()
    graph = CompileGraph(builder, name, device_of(_leaves(held), "compile"))
    graph.device_is_open = not any(isinstance(x, Array) for x in _leaves(held))
    arguments = _Arguments(graph, symbols, marks)
    pairs = list(zip(bound.values, bound.names, strict=True))
    values = [arguments.add(x, path, bound.weak_self and i == 0) for i, (x, path) in enumerate(pairs)]
    positional, named = bound.call(values)
    result = run_recorded(graph, fn, positional, named)
    arguments.expect_unchanged()
    results = _Results(graph, arguments)
    with _core.recording_on(graph):
        results.add(result, "result")
    written = [
        (i, results.output(tracer._id))
        for i, (x, value, _) in enumerate(graph.inputs)
        if x is not None and (tracer := _tracer_of(graph, arguments, x))._id != value
    ]
    draws = [
        (g, g._core, graph.number_value(total), [(i, graph.number_value(before)) for i, before in each])
        for g, total, each in graph.draws.values()
    ]
    captured = _find_captured(fn, graph, arguments)
    kept_alive = {i for i, _ in written} | {n for kind, n, *_ in results.parts if kind == "input"}
    donated = _donated(graph, arguments, donate, kept_alive)
    program = builder.finish(results.outputs, "")
    found = {
        i: places[0].name for i, (x, _, _) in enumerate(graph.inputs) if (places := captured.places.get(id(x)))
    }
    argued = {number for _, number in arguments.by_array.values()}
    kept = [i for i, (x, _, _) in enumerate(graph.inputs) if x is not None and i not in argued and i not in found]
    _expect_known(graph, kept, written)
    compiled = _core.CompiledProgram(
        program,
        graph.device,
        graph.device_is_open,
        arguments.parts,
        bound.n_extra,
        list(bound.keywords),
        captured.steps({id(x): i for i, (x, _, _) in enumerate(graph.inputs) if i in found}),
        [False if x is None else x if i in kept else None for i, (x, _, _) in enumerate(graph.inputs)],
        written,
        donated,
        draws,
        results.parts,
        name,
        numerics == "eager",
        (graph.sizes, arguments.integers, arguments.reals),
    )
    facts: dict[str, Any] = {}
    for i, (x, path) in enumerate(pairs):
        if not (bound.weak_self and i == 0):
            facts_of(x, path, facts)
    names = [found.get(i, name) for i, (_, _, name) in enumerate(graph.inputs)]
    notes = [f"{names[i]}: no path leads to it, so that another array in its place is not seen" for i in kept]
    shapes = [(4,) if x is None else _concrete(x.shape) for x, _, _ in graph.inputs]
    writes = [names[i] for i, _ in written]
    return compiled, Traced(
        compiled.program,
        facts,
        shapes,
        arguments.integers,
        arguments.reals,
        [f"{name}, as {graph.inputs[i][2]}" for i, name in found.items()],
        writes,
        notes,
    )


def _concrete(shape: Sequence[Any]) -> tuple[int, ...]:
    return tuple(n if isinstance(n, int) else 0 for n in shape)


def _leaves(values: Sequence[Any]) -> list[Any]:
    leaves: list[Any] = []
    for x in values:
        found = children(x, "")
        leaves += [x] if found is None else _leaves([part for _, _, part in found[1]])
    return leaves


def _tracer_of(graph: CompileGraph, arguments: _Arguments, x: Any) -> ArrayTracer:
    return arguments.by_array[id(x)][0] if id(x) in arguments.by_array else graph._captured[id(x)][1]


def _find_captured(fn: Any, graph: CompileGraph, arguments: _Arguments) -> _captures.Captured:
    # Arguments, too: a place that leads to one is to lead there in later calls.
    wanted: dict[int, Any] = {id(x): x for x, _, _ in graph.inputs if type(x) is Array}
    wanted |= {ident: draws[0] for ident, draws in graph.draws.items()}
    found = _captures.find(_captures.roots_of(fn, arguments.objects), wanted)
    for place in found.left:
        x = place.object
        if isinstance(x, Number) or (isinstance(x, Tracer) and x._graph.name == graph.name):
            raise TraceError(
                f"[compile] the function leaves a traced value in {place.name}, which later calls would not do: "
                "return the value, and store it outside of the compiled function"
            )
    return found


def _expect_known(graph: CompileGraph, kept: list[int], written: list[tuple[int, int]]) -> None:
    for i, _ in written:
        if i in kept:
            raise TraceError(
                f"[compile] the function writes to an array of shape {graph.inputs[i][0].shape} to which no path "
                "leads from it: pass the array as an argument"
            )


def _donated(
    graph: CompileGraph, arguments: _Arguments, donate: Sequence[str], kept_alive: set[int]
) -> list[tuple[int, str]]:
    """(input, name) of the arrays below the arguments in `donate` whose value ends with the call."""
    donated = []
    for _, number in arguments.by_array.values():
        path = graph.inputs[number][2]
        if number not in kept_alive and any(path == d or path.startswith((f"{d}[", f"{d}.")) for d in donate):
            donated.append((number, path))
    return donated
