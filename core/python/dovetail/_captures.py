"""How to come to the arrays that a function reads by itself: through closures, globals, and objects' attributes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from dovetail._core import Array
from dovetail._record import is_internal
from dovetail._trace import Tracer
from dovetail.schema.number import Number

__all__ = ["Captured", "Place", "find", "roots_of"]

_MOST_OBJECTS = 20_000  # that a search looks at
_DEPTH = 8  # of containers and objects on the way to an array
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type, CodeType)


@dataclass(slots=True)
class Place:
    """An object and how the search came to it: by `kind` and `key` from `parent`."""

    kind: str  # as in bindings/compiled_match.hpp
    parent: Place | None
    key: Any
    object: Any
    name: str  # "self.layers[0].w"
    depth: int = 0
    same: Place | None = None  # an earlier place of the same object

    def step(self, numbers: dict[int, int], input: int, exact: bool) -> tuple[str, int, Any, int, int, int, Any]:
        """As _core.CompiledProgram takes it. `numbers`: of the places on the way; `exact`: this object only."""
        if self.kind == "argument":
            parent = self.key
        else:
            parent = -1 if self.parent is None else numbers[id(self.parent)]
        at = self.key if self.kind == "element" else 0
        same = -1 if self.same is None else numbers[id(self.same)]
        return self.kind, parent, self.key, at, input, same, self.object if exact else None


@dataclass(slots=True)
class Captured:
    """The places of the objects that were searched for, by id, and of traced values that the function left."""

    places: dict[int, list[Place]]
    left: list[Place]
    aliases: list[Place]  # further ways to objects that were met before

    def steps(self, inputs: dict[int, int]) -> list[tuple[Any, ...]]:
        """The way to every place. `inputs`: of the program, by the id of an array; others are to stay the same."""
        numbers: dict[int, int] = {}
        steps: list[Any] = []

        def add(place: Place, input: int = -1, exact: bool = False) -> None:
            if id(place) in numbers:
                return
            for needed in (place.parent, place.same):
                if needed is not None:
                    add(needed)
            steps.append(place.step(numbers, input, exact))
            numbers[id(place)] = len(steps) - 1

        for ident, places in self.places.items():
            for place in places:
                add(place, inputs.get(ident, -1), ident not in inputs)
        for alias in self.aliases:
            if id(alias.same) in numbers:  # on the way to an array
                add(alias)
        return steps


def roots_of(fn: Any, objects: dict[str, tuple[int, Any]]) -> list[Place]:
    """Where a search begins: the function, and the objects among its arguments, (number, object) by name."""
    roots = [Place("argument", None, number, x, name) for name, (number, x) in objects.items()]
    return [*roots, Place("constant", None, fn, fn, "")]


def find(roots: list[Place], wanted: dict[int, Any]) -> Captured:
    """The places of the arrays and generators `wanted`, by id."""
    found = Captured({}, [], [])
    names = _names_of_code(roots)
    seen: dict[int, Place] = {}
    queue, count = list(roots), 0
    for place in queue:
        x = place.object
        if isinstance(x, (Tracer, Number)) and type(x) is not Array:
            found.left.append(place)
            continue
        if id(x) in wanted:
            found.places.setdefault(id(x), []).append(place)
        if type(x) is Array or isinstance(x, _PLAIN):
            continue
        if id(x) in seen:
            place.same = seen[id(x)]
            found.aliases.append(place)
            continue
        seen[id(x)] = place
        count += 1
        if place.depth < _DEPTH and count <= _MOST_OBJECTS and not _is_ours(x):
            queue += _parts(place, names)
    return found


def _is_ours(x: Any) -> bool:
    """Whether x is a part of dovetail or NumPy, and holds no arrays of the user's."""
    home = x.__name__ if isinstance(x, ModuleType) else getattr(type(x), "__module__", "")
    if isinstance(x, FunctionType):
        return is_internal(x.__code__.co_filename)
    return isinstance(home, str) and home.partition(".")[0] in ("dovetail", "numpy")


def _parts(place: Place, names: set[str]) -> Iterator[Place]:
    x, depth = place.object, place.depth + 1

    def part(kind: str, key: Any, value: Any, name: str, parent: Place | None = place) -> Place:
        return Place(kind, parent, key, value, name, depth)

    if isinstance(x, FunctionType):
        for name, cell in zip(x.__code__.co_freevars, x.__closure__ or (), strict=True):
            root = part("constant", cell, cell, name, None)
            value = _content(cell)
            if value is not None:
                yield part("cell", None, value, name, root)
        space = part("constant", x.__globals__, x.__globals__, "globals()", None)
        for name in _names(x.__code__):
            if name in x.__globals__:
                yield part("item", name, x.__globals__[name], name, space)
    elif isinstance(x, dict):
        for key, value in list(x.items()):
            if isinstance(key, (str, int)):
                yield part("item", key, value, f"{place.name}[{key!r}]")
    elif isinstance(x, (list, tuple)):
        for i, value in enumerate(x):
            if not isinstance(value, _PLAIN):
                yield part("element", i, value, f"{place.name}[{i}]")
    else:
        for name, value in _attributes(x, names):
            yield part("attribute", name, value, f"{place.name}.{name}" if place.name else name)


def _attributes(x: Any, names: set[str]) -> Iterator[tuple[str, Any]]:
    if isinstance(x, ModuleType):
        yield from ((name, vars(x)[name]) for name in names if name in vars(x))
        return
    if isinstance(x, MethodType):
        yield from (("__self__", x.__self__), ("__func__", x.__func__))
        return
    own = _own(x, "__dict__")
    if isinstance(own, dict):
        yield from list(own.items())
    slots = ["__wrapped__", "func", "args", "keywords"]  # of decorators and functools.partial
    for kind in type(x).__mro__:
        declared = vars(kind).get("__slots__", ())
        slots += (declared,) if isinstance(declared, str) else declared
    for name in slots:
        value = _own(x, name)
        if name not in ("__dict__", "__weakref__") and value is not None:
            yield name, value


def _own(x: Any, name: str) -> Any:
    """The attribute that the object itself has, without the user's __getattr__; None without one."""
    try:
        return object.__getattribute__(x, name)
    except AttributeError:
        return None


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty
        return None


def _names(code: CodeType) -> set[str]:
    """The names that code and the code in it look up."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names


def _names_of_code(roots: list[Place]) -> set[str]:
    names: set[str] = set()
    for root in roots:
        for fn in (root.object, _own(root.object, "__func__"), vars(type(root.object)).get("__call__")):
            if isinstance(fn, FunctionType):
                names |= _names(fn.__code__)
    return names
