"""Arguments of compiled functions: tracers in their places, and what calls must pass for the program."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from dovetail import _pytree as pytree
from dovetail._attributes import is_heap_type, own_attributes, slot_members
from dovetail._core import Array, Device, DType
from dovetail._function_trace import Spec, size_mark, trace_sizes
from dovetail._tracer import ArrayTracer, TraceError
from dovetail.schema.number import Number

if TYPE_CHECKING:
    from dovetail._compile_trace import CompileGraph

__all__ = ["NO_KEYS", "Arguments", "Part", "children", "facts_of", "is_value", "leaves", "number_of"]

_VALUES = (type(None), bool, int, str, bytes, complex, Enum, DType, Device, weakref.ref)
NO_KEYS: tuple[Any, ...] = ()
Part = tuple[str, int, Any, Any]  # kind, number, object, keys: of _core.CompiledProgram


def is_value(x: Any) -> bool:
    """Whether x is a guard by its value; a class of the user's is an object, from which arrays may be read."""
    return isinstance(x, _VALUES) or (isinstance(x, type) and not is_heap_type(x))


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
    elif is_value(value):
        facts[path] = ("value", type(value).__name__, value)
    else:
        facts[path] = ("object", type(value).__name__, id(value))


class Arguments:
    """Replaces the arguments of a call by tracers, and notes what they must be for the program."""

    def __init__(self, graph: CompileGraph, symbols: set[str], marks: dict[str, Any]):
        self.graph, self.symbols, self.marks = graph, symbols, marks
        self.parts: list[Part] = []
        self.integers: list[int] = []
        self.reals: list[float] = []
        self.objects: dict[str, tuple[int, Any]] = {}  # that are no containers, by name
        self.classes: list[type] = []  # of dataclasses among the arguments
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
        if is_value(x):
            self.parts.append(("value", 0, x, NO_KEYS))
            return x
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
        shape = [size_mark(mark, axis, n, is_spec=False) for axis, n in enumerate(x.shape)]
        sizes = [self._size(name, n) for name, n in zip(shape, x.shape, strict=True)]
        tracer = self.graph.add_input(x, x.dtype.name, shape, sizes, path)
        number = len(self.graph.inputs) - 1
        self.by_array[id(x)] = tracer, number
        if isinstance(x, Array):
            self.graph._captured[id(x)] = x, tracer
        self.parts.append(("array", number, None, NO_KEYS))
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
        self.parts.append((kind, len(self.integers), None, NO_KEYS))
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


def leaves(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for x in values:
        parts = children(x, "")
        found += [x] if parts is None else leaves([part for _, _, part in parts[1]])
    return found
