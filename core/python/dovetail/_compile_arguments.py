"""Arguments of compiled functions: tracers in their places, and what calls must pass for the program."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence, Set
from dataclasses import is_dataclass
from enum import Enum
from io import IOBase
from types import WrapperDescriptorType
from typing import TYPE_CHECKING, Any

from dovetail import _core
from dovetail import _pytree as pytree
from dovetail._attributes import is_heap_type, own_attributes, slot_members
from dovetail._core import Array, Device, DType
from dovetail._function_trace import Spec, device_of, size_mark, trace_sizes
from dovetail._numpy_number import NumpyNumber
from dovetail._tracer import ArrayTracer, TraceError
from dovetail.schema.number import Number, in_table

if TYPE_CHECKING:
    from dovetail._compile_graph import CompileGraph

__all__ = ["NO_KEYS", "Arguments", "Part", "children", "facts_of", "is_value", "leaves", "number_of", "with_arrays"]

_VALUES = (
    type(None), bool, int, str, bytes, complex, Enum, DType, Device, range, slice, frozenset, weakref.ref,
)  # fmt: skip
NO_KEYS: tuple[Any, ...] = ()
Part = tuple[str, int, Any, Any]  # kind, number, object, keys: of _core.CompiledProgram


def is_value(x: Any) -> bool:
    """Whether x is a guard by its value; a class of the user's is an object, from which arrays may be read."""
    return isinstance(x, _VALUES) or _is_numpy_number(x) or (isinstance(x, type) and not is_heap_type(x))


def children(x: Any, path: str) -> tuple[str, list[tuple[Any, str, Any]], Callable[[list[Any]], Any]] | None:
    """As pytree.children, of containers that are built again; others are objects whose arrays are captured."""
    kind = type(x)
    if kind is dict:
        return pytree.children(x, path) if all(type(key) is str for key in x) else None
    if kind in (tuple, list) or (isinstance(x, tuple) and hasattr(kind, "_fields") and not own_attributes(x)):
        found = pytree.children(x, path)
        return None if found is None else ("sequence", *found[1:])
    if is_dataclass(x) and not isinstance(x, (type, list, tuple, dict)):
        found = pytree.children(x, path)
        return None if found is None else ("fields", *found[1:])
    return None


def weak_or_itself(x: Any) -> Any:
    """A weak reference to x, or x where there can be none."""
    try:
        return weakref.ref(x)
    except TypeError:
        return x


def number_of(x: Any) -> Any:
    """A number of NumPy as Python's; everything else as it is."""
    return x.item() if _is_numpy_number(x) else x


def _is_iterator(x: Any) -> bool:
    """Whether x is a generator or an iterator of Python's own: one that is written in C, and no file."""
    return type(getattr(type(x), "__next__", None)) is WrapperDescriptorType and not isinstance(x, IOBase)


def _is_numpy_number(x: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(x, numpy.generic)


def facts_of(value: Any, path: str, facts: dict[str, Any], arrays: dict[int, str], with_floats: bool) -> None:
    """What a program depends on in an argument, by path: for messages, and to see which ints change.

    `arrays`: by id, where one was met. with_floats: it depends on the values of floats, too.
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
            facts_of(part, where, facts, arrays, with_floats)
    elif type(value) is float and not with_floats:
        facts[path] = ("float",)
    elif type(value) is float or is_value(value):
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


class Arguments:
    """Replaces the arguments of a call by tracers, and notes what they must be for the program."""

    def __init__(
        self, graph: CompileGraph, symbols: Set[str] | None, marks: dict[str, Any], specs: dict[int, Spec]
    ):
        """symbols: the ints that are numbers of the program, by path, as all floats are; None: no numbers are."""
        self.graph, self.symbols, self.marks, self.specs = graph, symbols, marks, specs
        self.parts: list[Part] = []
        self.numbers: list[Any] = []  # that a call gives
        self.objects: dict[str, tuple[int, Any]] = {}  # that are no containers, by name
        self.classes: list[type] = []  # of dataclasses among the arguments
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
        if kind is float and self.symbols is not None:
            return self._number("real", x, path)
        if kind is int and self.symbols and path in self.symbols and in_table(number_of(x)):
            return self._number("integer", x, path)
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(x, numpy.ndarray):
            raise TypeError(f"[compile] {path}: got a NumPy array, expected one of dovetail; dovetail.asarray(x)")
        if isinstance(x, float) or is_value(x):
            self.parts.append(("value", 0, x, NO_KEYS))
            return x
        if _is_iterator(x):
            raise TypeError(
                f"[compile] {path}: got a {type(x).__name__}, whose values later calls would not take: expected a "
                "list or tuple of them; list(x) makes one"
            )
        number = len(self.objects)
        self.objects[path] = number, x
        self.parts.append(("owner" if weak else "object", number, x if weak else weak_or_itself(x), NO_KEYS))
        return x

    def _container(self, x: Any, path: str, found: Any) -> Any:
        kind, items, make = found
        keys = [key for key, _, _ in items] if kind != "sequence" else NO_KEYS
        count = len(items)
        if kind == "fields":
            members = {d.__name__: d for d in slot_members(type(x))}
            keys, count = [members.get(key, key) for key in keys], len(own_attributes(x))
            self.classes.append(type(x))
        self.parts.append((kind, count, type(x), keys))
        values = [self.add(value, where) for _, where, value in items]
        made = make(values)
        if kind != "sequence" or type(x) is list:
            self.copies.append((path, made, list(zip([key for key, _, _ in items], values))))
        return made

    def _array(self, x: Any, path: str) -> ArrayTracer:
        if id(x) in self.by_array:
            tracer, number = self.by_array[id(x)]
            self.parts.append(("array", number, None, NO_KEYS))
            return tracer
        mark = self.marks.get(path)
        given = self.specs[id(x)].shape if id(x) in self.specs else x.shape
        shape = [size_mark(mark, axis, n, is_spec=False) for axis, n in enumerate(given)]
        tracer = self.graph.add_input(x, x.dtype.name, shape, x.shape, path)
        number = len(self.graph.inputs) - 1
        self.by_array[id(x)] = tracer, number
        self.graph._captured[id(x)] = x, tracer
        self.parts.append(("array", number, None, NO_KEYS))
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
        self.parts.append((kind, number, type(x), NO_KEYS))
        self.numbers.append(x)
        made = NumpyNumber(self.graph, entry, x) if _is_numpy_number(x) else Number(self.graph, entry, x)
        if isinstance(made, NumpyNumber):
            self._foreign.append((len(self.parts) - 1, made))
        self.graph.numbers_of_call.append(made)
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


def leaves(values: Sequence[Any]) -> list[Any]:
    """What the containers among the values hold. Raises ValueError where one holds itself."""
    try:
        return _leaves(values)
    except RecursionError:
        raise ValueError(
            "[compile] arguments: got a container that holds itself, or is nested deeper than Python's recursion "
            "limit, expected one of a depth that can be searched"
        ) from None


def _leaves(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for x in values:
        parts = children(x, "")
        found += [x] if parts is None else _leaves([part for _, _, part in parts[1]])
    return found
