"""Traces a function for dovetail.compile: arrays become inputs, and writes to them effects of a call."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from dovetail import _captures, _core
from dovetail import _pytree as pytree
from dovetail._compile_arguments import NO_KEYS, Arguments, Part, facts_of, is_value, leaves
from dovetail._compile_graph import CompileGraph, RunsEagerly
from dovetail._core import Array, recording_on
from dovetail._function_trace import Spec, device_of, run_recorded
from dovetail._numpy_number import NumpyNumber
from dovetail._tracer import ArrayTracer, TraceError
from dovetail.schema.number import Number

__all__ = ["Bound", "Traced", "trace"]


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

    def facts(self, with_floats: bool = False) -> dict[str, Any]:
        """As facts_of."""
        facts: dict[str, Any] = {}
        arrays: dict[int, str] = {}
        for i, (value, path) in enumerate(zip(self.values, self.names, strict=True)):
            if not (self.weak_self and i == 0):
                facts_of(value, path, facts, arrays, with_floats)
        return facts


@dataclass(slots=True)
class Traced:
    """A program of a compiled function, with what is needed to explain it."""

    program: Any  # _core.Program
    facts: dict[str, Any]  # of the arguments, by path: what the program was made for
    symbols: Set[str] | None  # as Arguments had them
    shapes: list[tuple[int, ...]]
    captured: list[str]
    written: list[str]
    notes: list[str]
    left: str  # what the search for captured arrays has left out
    watched: list[str]  # names of the captured objects that calls look at
    device: Any
    autocast: str | None  # the dtype to which dovetail.autocast() lowered operands
    objects: list[Any] = field(default_factory=list)  # weak references to those among the arguments

    @property
    def is_dead(self) -> bool:
        """Whether an object among the arguments that the program was made for is gone."""
        return any(reference() is None for reference in self.objects)


# ---- results -----------------------------------------------------------------------------------------------------


class _Results:
    """What the function returns, as _core.CompiledProgram takes it."""

    def __init__(self, graph: CompileGraph, arguments: Arguments):
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
        if isinstance(x, NumpyNumber):
            kind, x.was_seen = type(x.original), True  # so that its type is a guard
            self.parts.append(("made", 1, lambda number: kind(*number), NO_KEYS))
            x = x.plain()
        if isinstance(x, Number):
            self.parts.append(("real" if x.is_real else "integer", self.graph.number_value(x), None, NO_KEYS))
        elif isinstance(x, Array):
            self._array(x)
        elif any(x is known for _, known in self.arguments.objects.values()):
            number = next(n for n, known in self.arguments.objects.values() if x is known)
            self.parts.append(("object", number, None, NO_KEYS))
        elif type(x) in (slice, frozenset):
            held = x if type(x) is frozenset else (x.start, x.stop, x.step)
            make = frozenset if type(x) is frozenset else lambda ends: slice(*ends)
            self.parts.append(("made", len(held), make, NO_KEYS))
            for part in held:
                self.add(part, path)
        elif isinstance(x, (float, type)) or is_value(x):
            if isinstance(x, str):
                self.graph.expect_no_text(x, path)
            self.parts.append(("value", 0, x, NO_KEYS))
        elif (found := pytree.children(x, path, "compile")) is not None:
            kind, items, make = found
            builtin = type(x) in (tuple, list, dict)
            keys = [key for key, _, _ in items] if kind == "dict" else NO_KEYS
            head = (kind, len(items), None, keys) if builtin else ("made", len(items), make, NO_KEYS)
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
            self.parts.append(("input", number, None, NO_KEYS))
            return
        if id(x) not in self._places:
            self._keep.append(x)
            self._places[id(x)] = self.output(self.graph.value(x)._id)
        self.parts.append(("output", self._places[id(x)], None, NO_KEYS))


# ---- the trace ---------------------------------------------------------------------------------------------------


def trace(
    fn: Any,
    bound: Bound,
    symbols: Set[str] | None,
    marks: dict[str, Any],
    options: dict[str, Any],
    specs: dict[int, Spec],
    pinned: bool,
    is_call: bool,
) -> tuple[Any, Traced]:
    """Runs fn on tracers: a _core.CompiledProgram, and what is known of it, which keeps no object of the caller's.

    symbols: as Arguments has them. options: of dovetail.compile. specs: by the id of an array without elements,
    what it stands for. pinned: sizes are Python's, as numbers are without symbols. is_call: the trace is a part of
    a call, whose draws of random numbers happen where fn raises. Raises what fn raises, TraceError for what a
    program cannot do, and RunsEagerly.
    """
    graph = CompileGraph(_core.ProgramBuilder(), getattr(fn, "__qualname__", None) or type(fn).__name__, None)
    graph.is_pinned = pinned
    try:
        held = leaves(bound.values[1:] if bound.weak_self else bound.values)
        graph.device = device_of(held, "compile")
        graph.device_is_open = not any(isinstance(x, Array) for x in held)
        return _traced(graph, fn, bound, Arguments(graph, symbols, marks, specs), options, is_call)
    finally:
        graph.end()


def _result(graph: CompileGraph, fn: Any, positional: list[Any], named: dict[str, Any], is_call: bool) -> Any:
    """What fn returns for tracers."""
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
    return result


def _traced(
    graph: CompileGraph, fn: Any, bound: Bound, arguments: Arguments, options: dict[str, Any], is_call: bool
) -> tuple[Any, Traced]:
    pairs = list(zip(bound.values, bound.names, strict=True))
    values = [arguments.add(x, path, bound.weak_self and i == 0) for i, (x, path) in enumerate(pairs)]
    positional, named = bound.call(values)
    before = _search(fn, arguments)
    result = _result(graph, fn, positional, named, is_call)
    arguments.expect_unchanged()
    results = _Results(graph, arguments)
    with recording_on(graph):
        results.add(result, "result")
    arguments.finish()
    written = [
        (i, results.output(tracer._id))
        for i, (x, value, _) in enumerate(graph.inputs)
        if x is not None and (tracer := _tracer_of(graph, arguments, x))._id != value
    ]
    draws = [
        (g, g._core, graph.number_value(total), [(i, graph.number_value(before)) for i, before in each])
        for g, total, each in graph.draws.values()
    ]
    captured = _search(fn, arguments)
    _expect_nothing_left(before, captured, graph)
    kept_alive = {i for i, _ in written} | {n for kind, n, *_ in results.parts if kind == "input"}
    donated = _donated(graph, arguments, options["donate"], kept_alive)
    program = graph.builder.finish(results.outputs, "")
    found = {
        i: places[0].name for i, (x, _, _) in enumerate(graph.inputs) if (places := captured.leaves.get(id(x)))
    }
    # Arguments, too: a place that leads to one is to lead there in later calls.
    wanted: dict[int, Any] = {id(x): x for x, _, _ in graph.inputs if type(x) is Array}
    wanted |= {ident: draws[0] for ident, draws in graph.draws.items()}
    numbers = {id(x): i for i, (x, _, _) in enumerate(graph.inputs) if i in found}
    steps, watched = captured.steps(before, wanted, numbers)
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
        steps,
        [False if x is None else x if i in kept else None for i, (x, _, _) in enumerate(graph.inputs)],
        written,
        donated,
        draws,
        results.parts,
        graph.name,
        options["numerics"] == "eager",
        (graph.sizes, *arguments.numbers_of_call()),
    )
    if folder := os.environ.get("DOVETAIL_COMPILE_DUMP"):
        from dovetail._compile_report import dump

        dump(folder, graph.name, program, compiled.program, arguments.numbers_of_call())
    facts = bound.facts(arguments.symbols is None)
    names = [found.get(i, name) for i, (_, _, name) in enumerate(graph.inputs)]
    notes = [f"{names[i]}: no path leads to it, so that another array in its place is not seen" for i in kept]
    left = captured.left()
    shapes = [(4,) if x is None else _concrete(x.shape) for x, _, _ in graph.inputs]
    writes = [names[i] for i, _ in written]
    return compiled, Traced(
        compiled.program,
        facts,
        arguments.symbols,
        shapes,
        [f"{name}, as {graph.inputs[i][2]}" for i, name in found.items()],
        writes,
        [*notes, left] if left else notes,
        left,
        watched,
        graph.device,
        _core.autocast_dtype(graph.device),
        [what for kind, _, what, _ in arguments.parts if kind == "object" and isinstance(what, weakref.ref)],
    )


def _concrete(shape: Sequence[Any]) -> tuple[int, ...]:
    return tuple(n if isinstance(n, int) else 0 for n in shape)


def _tracer_of(graph: CompileGraph, arguments: Arguments, x: Any) -> ArrayTracer:
    return arguments.by_array[id(x)][0] if id(x) in arguments.by_array else graph._captured[id(x)][1]


def _search(fn: Any, arguments: Arguments) -> _captures.Found:
    return _captures.search(_captures.roots_of(fn, arguments.objects, arguments.classes))


def _left_behind(found: _captures.Found, graph: CompileGraph) -> list[_captures.Place]:
    """Where the function has left traced values of this trace."""
    return [
        place
        for place in found.traced
        if graph.is_of_trace(place.object.table if isinstance(place.object, Number) else place.object._graph)
    ]


def _expect_nothing_left(before: _captures.Found, found: _captures.Found, graph: CompileGraph) -> None:
    """Raises TraceError where the function has left a traced value behind; what was there before is there again."""
    if left := _left_behind(found, graph):
        before.put_back(left)
        raise TraceError(
            f"[compile] the function leaves a traced value in {left[0].name}, which later calls would not do: "
            "return the value, and store it outside of the compiled function"
        )


def _expect_known(graph: CompileGraph, kept: list[int], written: list[tuple[int, int]]) -> None:
    for i, _ in written:
        if i in kept:
            raise TraceError(
                f"[compile] the function writes to an array of shape {graph.inputs[i][0].shape} to which no path "
                "leads from it: pass the array as an argument"
            )


def _donated(
    graph: CompileGraph, arguments: Arguments, donate: Sequence[str], kept_alive: set[int]
) -> list[tuple[int, str]]:
    """(input, name) of the arrays below the arguments in `donate` whose value ends with the call."""
    donated = []
    for _, number in arguments.by_array.values():
        path = graph.inputs[number][2]
        if number not in kept_alive and any(path == d or path.startswith((f"{d}[", f"{d}.")) for d in donate):
            donated.append((number, path))
    return donated
