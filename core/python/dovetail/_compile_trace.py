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
from dovetail._compile_graph import CompileGraph, RunsEagerly
from dovetail._core import Array, Device, DType
from dovetail._function_trace import Spec, device_of, run_recorded, size_mark, trace_sizes
from dovetail._numpy_number import NumpyNumber
from dovetail._trace import Tracer
from dovetail._tracer import ArrayTracer, TraceError
from dovetail.schema.number import Number, in_table

__all__ = ["Bound", "Traced", "leaves", "trace", "with_arrays"]

_VALUES = (
    type(None), bool, int, str, bytes, complex, Enum, DType, Device, type, range, slice, frozenset,
)  # fmt: skip
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

    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        arrays: dict[int, str] = {}
        for i, (value, path) in enumerate(zip(self.values, self.names, strict=True)):
            if not (self.weak_self and i == 0):
                facts_of(value, path, facts, arrays)
        return facts


@dataclass(slots=True)
class Traced:
    """A program of a compiled function, with what is needed to explain it."""

    program: Any  # _core.Program
    facts: dict[str, Any]  # of the arguments, by path: what the program was made for
    shapes: list[tuple[int, ...]]
    captured: list[str]
    written: list[str]
    notes: list[str] = field(default_factory=list)


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
    return x.item() if _is_numpy_number(x) else x


def _is_numpy_number(x: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(x, numpy.generic)


def facts_of(value: Any, path: str, facts: dict[str, Any], arrays: dict[int, str]) -> None:
    """What a program depends on in an argument, by path: for messages, and to see which ints change.

    `arrays`: by id, where one was met.
    """
    found = children(value, path)
    value = number_of(value)
    if isinstance(value, Array):
        first = arrays.setdefault(id(value), path)
        facts[path] = (
            ("same", first) if first != path else ("array", value.dtype.name, value.ndim, value.device.name)
        )
    elif found is not None:
        facts[path] = (type(value).__name__, *(key for key, _, _ in found[1]))
        for _, where, part in found[1]:
            facts_of(part, where, facts, arrays)
    elif type(value) is float:
        facts[path] = ("float",)
    elif isinstance(value, _VALUES):
        facts[path] = ("value", type(value).__name__, value)
    else:
        facts[path] = ("object", type(value).__name__, id(value))


def with_arrays(values: Sequence[Any]) -> tuple[list[Any], dict[int, Spec]]:
    """The values with an array without elements for each Spec, and the specs by the arrays' ids."""
    known: dict[str, int] = {}
    specs: dict[int, Spec] = {}
    chosen = trace_sizes()
    device = device_of([x for x in leaves(values) if isinstance(x, Array)], "compile")

    def size(n: Any) -> int:
        if isinstance(n, str):
            if n not in known:
                known[n] = next(chosen)
            return known[n]
        return next(chosen) if n is None else n

    def replaced(x: Any) -> Any:
        if isinstance(x, Spec):
            array = _core.abstract_array(x.dtype, [size(n) for n in x.shape], device)
            specs[id(array)] = x
            return array
        if not any(isinstance(leaf, Spec) for leaf in leaves([x])):
            return x
        _, items, make = children(x, "")  # type: ignore[misc]
        return make([replaced(part) for _, _, part in items])

    return [replaced(x) for x in values], specs


class _Arguments:
    """Replaces the arguments of a call by tracers, and notes what they must be for the program."""

    def __init__(self, graph: CompileGraph, symbols: set[str], marks: dict[str, Any], specs: dict[int, Spec]):
        self.graph, self.symbols, self.marks, self.specs = graph, symbols, marks, specs
        self.parts: list[Part] = []
        self.numbers: list[Any] = []  # that a call gives
        self.objects: dict[str, tuple[int, Any]] = {}  # that are no containers, by name
        self.copies: list[tuple[str, Any, list[tuple[Any, Any]]]] = []  # of containers, with what was in them
        self.by_array: dict[int, tuple[ArrayTracer, int]] = {}  # by the id of the array: its tracer and input
        self._foreign: list[tuple[int, NumpyNumber]] = []  # and their places in parts

    def add(self, x: Any, path: str, weak: bool = False) -> Any:
        found = None if weak else children(x, path)
        if found is not None:
            return self._container(x, path, found)
        if isinstance(x, Array):
            return self._array(x, path)
        kind = type(number_of(x))
        if kind is float and not self.graph.is_pinned:
            return self._number("real", x, path)
        if kind is int and path in self.symbols and in_table(number_of(x)):
            return self._number("integer", x, path)
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(x, numpy.ndarray):
            raise TypeError(f"[compile] {path}: got a NumPy array, expected one of dovetail; dovetail.asarray(x)")
        if isinstance(x, (float, *_VALUES)) or _is_numpy_number(x):
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
        given = self.specs[id(x)].shape if id(x) in self.specs else x.shape
        shape = [size_mark(mark, axis, n, is_spec=False) for axis, n in enumerate(given)]
        tracer = self.graph.add_input(x, x.dtype.name, shape, x.shape, path)
        number = len(self.graph.inputs) - 1
        self.by_array[id(x)] = tracer, number
        self.graph._captured[id(x)] = x, tracer
        self.parts.append(("array", number, None, _NO_KEYS))
        return tracer

    def numbers_of_call(self) -> tuple[list[int], list[float]]:
        """As integers and as reals, each 0 where it is of the other kind."""
        numbers = [number_of(x) for x in self.numbers]
        reals = [x if isinstance(x, float) else 0.0 for x in numbers]
        return [0 if isinstance(x, float) else x for x in numbers], reals

    def _number(self, kind: str, x: Any, path: str) -> Number:
        is_real, number = kind == "real", len(self.numbers)
        entry = self.graph.builder.argument(is_real, path)
        self.graph._expressions[entry] = ("attribute", is_real, int(is_real), number, None)
        self.parts.append((kind, number, type(x), _NO_KEYS))
        self.numbers.append(x)
        if not _is_numpy_number(x):
            return Number(self.graph, entry, x)
        made = NumpyNumber(self.graph, entry, x)
        self._foreign.append((len(self.parts) - 1, made))
        return made

    def finish(self) -> None:
        """Any type of NumPy will do for a number that only ops have seen."""
        for place, number in self._foreign:
            if not number.was_seen:
                kind, n, _, keys = self.parts[place]
                self.parts[place] = kind, n, None, keys

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
    fn: Any,
    bound: Bound,
    symbols: set[str],
    marks: dict[str, Any],
    options: dict[str, Any],
    specs: dict[int, Spec],
    pinned: bool,
    is_call: bool,
) -> tuple[Any, Traced]:
    """Runs fn on tracers: a _core.CompiledProgram, and what is known of it, which keeps no object of the caller's.

    options: of dovetail.compile. specs: by the id of an array without elements, what it stands for. pinned: all
    numbers and sizes are Python's. is_call: the trace is a part of a call, whose draws of random numbers happen
    where fn raises. Raises what fn raises, TraceError for what a program cannot do, and RunsEagerly.
    """
    name = getattr(fn, "__qualname__", None) or type(fn).__name__
    held = bound.values[1:] if bound.weak_self else bound.values
    builder = _core.ProgramBuilder()
    graph = CompileGraph(builder, name, device_of(leaves(held), "compile"))
    graph.device_is_open = not any(isinstance(x, Array) for x in leaves(held))
    graph.is_pinned = pinned
    arguments = _Arguments(graph, symbols, marks, specs)
    pairs = list(zip(bound.values, bound.names, strict=True))
    values = [arguments.add(x, path, bound.weak_self and i == 0) for i, (x, path) in enumerate(pairs)]
    positional, named = bound.call(values)
    try:
        result = run_recorded(graph, fn, positional, named)
    except Exception:
        if graph.eager_because:
            raise RunsEagerly(graph.eager_because) from None
        if is_call:
            graph.draw_as_eager()
        raise
    if graph.eager_because:
        raise RunsEagerly(graph.eager_because)
    arguments.finish()
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
    donated = _donated(graph, arguments, options["donate"], kept_alive)
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
        graph.device_is_open or graph.uses_default_device,
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
        options["numerics"] == "eager",
        (graph.sizes, *arguments.numbers_of_call()),
    )
    facts = bound.facts()
    names = [found.get(i, name) for i, (_, _, name) in enumerate(graph.inputs)]
    notes = [f"{names[i]}: no path leads to it, so that another array in its place is not seen" for i in kept]
    shapes = [(4,) if x is None else _concrete(x.shape) for x, _, _ in graph.inputs]
    writes = [names[i] for i, _ in written]
    return compiled, Traced(
        compiled.program,
        facts,
        shapes,
        [f"{name}, as {graph.inputs[i][2]}" for i, name in found.items()],
        writes,
        notes,
    )


def _concrete(shape: Sequence[Any]) -> tuple[int, ...]:
    return tuple(n if isinstance(n, int) else 0 for n in shape)


def leaves(values: Sequence[Any]) -> list[Any]:
    """The parts of values that are no containers."""
    found: list[Any] = []
    for x in values:
        parts = children(x, "")
        found += [x] if parts is None else leaves([part for _, _, part in parts[1]])
    return found


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
