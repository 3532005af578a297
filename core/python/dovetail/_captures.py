"""What a function reads by itself, through closures, globals and objects, and how a call comes to it again.

A search goes from the function, and from objects among its arguments, to everything that they hold. What it finds
is a Place: a hop from another place. A hop runs no code of the user's, and is the same one in the search and in
each call (bindings/captured.hpp). Arrays that the function used are found by path; of everything else that its code
names, calls expect what the trace has seen: the same plain values, types, lengths, keys, and functions.
"""

from __future__ import annotations

import sys
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import ref

from dovetail import _core
from dovetail._attributes import is_heap_type, own_attributes, slot_members
from dovetail._code_names import attributes_of, globals_of, written_by
from dovetail._core import Array, Device, DType
from dovetail._record import is_internal
from dovetail._trace import Tracer
from dovetail.schema.number import Number

__all__ = ["Found", "Place", "roots_of", "search"]

_MOST_OBJECTS = 50_000  # that a search looks at
_MOST_VALUES = 256  # plain values and keys of one container that calls look at
_VALUES = (type(None), bool, int, float, complex, str, bytes)
_ATOMS = (Enum, DType, Device, BuiltinFunctionType, CodeType, range, slice, type(Ellipsis))  # equal to itself only
_IMPLICIT = ("__call__", "__contains__", "__getattr__", "__getitem__", "__iter__", "__len__")  # of Python's library
_MAKERS = ("__init__", "__new__", "__post_init__")
_NOTHING = object()
_ANYTHING = ("nothing", None, -1, None)

_CLASS = object.__dict__["__class__"]
_CODE, _CLOSURE = FunctionType.__dict__["__code__"], FunctionType.__dict__["__closure__"]
_CONTENT = CellType.__dict__["cell_contents"]
_SLOTS = {  # of types that are written in C
    MethodType: ("__self__", "__func__"),
    FunctionType: ("__defaults__", "__kwdefaults__"),
    partial: ("func", "args", "keywords"),
    property: ("fget",),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    _core.CompiledFunction: ("__wrapped__",),
}
_DESCRIPTORS = (FunctionType, property, staticmethod, classmethod, _core.CompiledFunction)


@dataclass(slots=True, eq=False)
class Place:
    """An object and how the search came to it: by a hop of `kind` with `key` and `at` from `parent`."""

    kind: str  # as in bindings/captured.hpp
    parent: Place | None
    key: Any
    object: Any
    name: str  # "self.layers[0].w"
    at: int = 0
    word: str | None = None  # by which code reads it, if that is needed
    same: Place | None = None  # an earlier place of the same object
    # ("nothing" | "type" | "identity" | "value", what, length or -1, keys or None): of _core.CompiledProgram
    expected: tuple[str, Any, int, tuple[Any, ...] | None] = _ANYTHING

    @property
    def hop(self) -> tuple[int, str, int, int]:
        """What tells this hop from others while the objects live."""
        return id(self.parent.object) if self.parent else 0, self.kind, id(self.key), self.at


def roots_of(fn: Any, objects: dict[str, tuple[int, Any]], classes: list[type]) -> list[Place]:
    """Where a search begins: objects among the arguments, (number, object) by name, the function, and classes."""
    roots = [Place("argument", None, number, x, name) for name, (number, x) in objects.items()]
    roots.append(Place("constant", None, fn, fn, ""))
    return [*roots, *(Place("constant", None, c, c, c.__name__) for c in classes)]


def search(roots: list[Place]) -> Found:
    """Everything that is reached from the roots."""
    found = Found()
    found.run(roots)
    return found


class Found:
    """What a search has come to; it keeps the objects."""

    def __init__(self) -> None:
        self.places: list[Place] = []  # each after its parent
        self.leaves: dict[int, list[Place]] = {}  # arrays, and objects of dovetail and NumPy, by id
        self.traced: list[Place] = []  # of traced values
        self._seen: dict[int, Place] = {}
        self._words: set[str] = set()  # by which code reads attributes, or writes them
        self._read: set[str] = set()
        self._known: set[str] = set()  # those with which all of _open were looked at
        self._open: list[Place] = []  # modules, classes and instances
        self._spaces: dict[int, tuple[Place, set[str]]] = {}  # globals by id: with the names that were looked up
        self._members: dict[type, frozenset[str]] = {}

    def run(self, roots: list[Place]) -> None:
        queue = deque(roots)
        while queue:
            place = queue.popleft()
            self.places.append(place)
            if self._is_new(place) and len(self._seen) <= _MOST_OBJECTS:
                queue += self._parts(place)
            if not queue and (new := self._words - self._known):
                for opened in self._open:
                    queue += self._named_parts(opened, new)
                self._known |= new

    def _is_new(self, place: Place) -> bool:
        """Whether the search goes on from here. Notes what is expected of the object."""
        x = place.object
        if type(x) is Array:
            self.leaves.setdefault(id(x), []).append(place)
            place.expected = ("type", Array, -1, None)
        elif _is(x, (Tracer, Number)):
            self.traced.append(place)
        elif (value := snapshot(x)) is not _NOTHING:
            place.expected = ("value", value, -1, None)
        elif _is(x, ModuleType):
            return _is_users_module(x) and self._seen.setdefault(id(x), place) is place
        elif _is_ours(x):
            self.leaves.setdefault(id(x), []).append(place)
            place.expected = ("identity", x, -1, None)
        else:
            earlier = self._seen.setdefault(id(x), place)
            is_method = place.kind == "lookup" and _is(x, _DESCRIPTORS)
            if earlier is not place and not is_method and not _is(x, type):
                place.same = earlier
            place.expected = _expectation(place)
            return earlier is place
        return False

    # ---- what an object holds

    def _hop(
        self, place: Place, kind: str, key: Any, name: str, *, at: int = 0, word: str | None = None
    ) -> Iterator[Place]:
        """The place to which a hop leads, if there is something."""
        x = _core.follow_hop(kind, key, at, place.object, _NOTHING)
        if x is not _NOTHING:
            yield Place(kind, place, key, x, name, at, word)

    def _parts(self, place: Place) -> Iterator[Place]:
        x = place.object
        if _is(x, CellType):
            yield from self._hop(place, "slot", _CONTENT, place.name)
        elif _is(x, (ModuleType, type)):
            if _is(x, type):
                yield from self._implicit(place)
            yield from self._opened(place)
        else:
            if _is(x, FunctionType):
                yield from self._of_function(place)
            elif _is(x, dict):
                yield from self._items(place)
            elif (elements := _elements(x)) is not None:
                for i, value in enumerate(elements):
                    if len(elements) <= _MOST_VALUES or type(value) not in _VALUES:
                        yield from self._hop(place, "element", None, f"{place.name}[{i}]", at=i)
            yield from self._attributes(place)

    def _items(self, place: Place) -> Iterator[Place]:
        items = list(dict.items(place.object))
        for i, (key, value) in enumerate(items):
            if type(value) in _VALUES and len(items) > _MOST_VALUES:
                continue
            if type(key) in _VALUES:
                yield from self._hop(place, "item", key, f"{place.name}[{key!r}]")
            elif len(items) <= _MOST_VALUES:
                yield from self._hop(place, "element", None, f"{place.name}.values()[{i}]", at=i)

    def _attributes(self, place: Place) -> Iterator[Place]:
        """What its slots and its __dict__ have; plain values only where code names them."""
        x, kind = place.object, type(place.object)
        if not (kind is FunctionType and place.kind == "constant"):  # its defaults are arguments
            for key, word in _slots_of(kind):
                for part in self._hop(place, "slot", key, _joined(place.name, key.__name__), word=word):
                    if word is not None or part.object is not None:  # a function without defaults
                        yield part
        if kind is _core.CompiledFunction:
            return
        for key, value in list(own_attributes(x).items()):
            if type(key) is str and not _is_plain(value):
                yield from self._hop(place, "attribute", key, _joined(place.name, key), word=key)
        if _has_code(kind):
            yield from self._hop(place, "slot", _CLASS, f"type({place.name})")
        yield from self._opened(place)

    # ---- what is looked at only where code names it

    def _opened(self, place: Place) -> Iterator[Place]:
        self._open.append(place)
        return self._named_parts(place, set(self._known))

    def _named_parts(self, place: Place, words: set[str]) -> Iterator[Place]:
        x = place.object
        if _is(x, type):
            for word in words & self._members_of(x):
                yield from self._hop(place, "lookup", word, f"{x.__name__}.{word}", word=word)
            return
        own = own_attributes(x)
        for word in words & own.keys():
            if _is(x, ModuleType) or _is_plain(own[word]):  # others were met before
                yield from self._hop(place, "attribute", word, _joined(place.name, word), word=word)
        if not _is(x, ModuleType):
            for word in (words & self._members_of(type(x))) - own.keys():
                for part in self._hop(place, "attribute", word, _joined(place.name, word), word=word):
                    if not hasattr(type(part.object), "__get__"):
                        yield part

    def _members_of(self, kind: type) -> frozenset[str]:
        """The names of what a class and its bases have."""
        if kind not in self._members:
            self._members[kind] = frozenset().union(*(vars(c).keys() for c in kind.__mro__ if _has_code(c)))
        return self._members[kind]

    def _implicit(self, place: Place) -> Iterator[Place]:
        """Functions of a class that run although no code names them; __init__ only where code names the class."""
        instances_only = place.key is _CLASS or place.parent is None
        for name in self._members_of(place.object):
            if instances_only and name in _MAKERS:
                continue
            if name.startswith("__") and (name in _IMPLICIT or not _is_of_python(place.object)):
                for part in self._hop(place, "lookup", name, f"{place.object.__name__}.{name}"):
                    if _is(part.object, _DESCRIPTORS):
                        yield part

    def _of_function(self, place: Place) -> Iterator[Place]:
        fn = place.object
        if not (place.kind == "lookup" and place.key in _MAKERS):  # they read what they have just made
            self._read |= attributes_of(fn.__code__)
        self._words |= self._read | written_by(fn.__code__)
        if place.kind not in ("constant", "lookup"):
            yield from self._hop(place, "slot", _CODE, _joined(place.name, "__code__"))
        closure = Place("slot", place, _CLOSURE, fn.__closure__, place.name)
        if place.kind != "constant":
            self.places.append(closure)
        for i, (name, cell) in enumerate(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)):
            if place.kind == "constant":
                yield Place("constant", None, cell, cell, name)
            else:
                yield Place("element", closure, None, cell, name, i)
        if not _is_of_python(fn) and not _is_foreign(fn.__globals__.get("__name__")):
            yield from self._globals(fn)

    def _globals(self, fn: FunctionType) -> Iterator[Place]:
        space = fn.__globals__
        if id(space) not in self._spaces:
            root = Place("constant", None, space, space, "globals()")
            self._spaces[id(space)] = root, set()
            self.places.append(root)
        root, read = self._spaces[id(space)]
        for name in globals_of(fn.__code__) - read:
            read.add(name)
            yield from self._hop(root, "item", name, name)

    # ---- what calls look at

    def steps(self, before: Found, wanted: dict[int, Any], inputs: dict[int, int]) -> tuple[list[Any], list[str]]:
        """Steps of _core.CompiledProgram, and their names: to what is wanted, and to all that code names.

        before: the search before the trace; what the trace itself has changed since is not looked at. wanted:
        arrays and generators, by id. inputs: those of the program, by the id of an array.
        """
        seen_before = {place.hop: place.expected for place in before.places}
        named = self._named()
        needed: set[Place] = set()
        for place in self.places:
            if not _same(seen_before.get(place.hop, place.expected), place.expected):
                place.expected = _ANYTHING
            if id(place.object) in wanted or (place in named and place.expected is not _ANYTHING):
                _add_way(place, needed)
        for place in self.places:
            if place.same in needed:
                _add_way(place, needed)
        numbers: dict[Place, int] = {}
        steps = []
        for place in self.places:
            if place in needed:
                numbers[place] = len(numbers)
                steps.append(_step(place, numbers, inputs.get(id(place.object), -1)))
        return steps, [place.name for place in numbers]

    def _named(self) -> set[Place]:
        """Places to which code comes by names that it reads; what an object holds hangs off its first place."""
        below: dict[int, list[Place]] = {}
        for place in self.places:
            if place.word is None or place.word in self._read:
                below.setdefault(id(place.parent.object) if place.parent else 0, []).append(place)
        named: set[Place] = set()
        queue = below.pop(0, [])
        while queue:
            place = queue.pop()
            named.add(place)
            queue += below.pop(id(place.object), ())
        return named


def _add_way(place: Place | None, needed: set[Place]) -> None:
    while place is not None and place not in needed:
        needed.add(place)
        place = place.parent


def _step(place: Place, numbers: dict[Place, int], input: int) -> tuple[Any, ...]:
    parent = place.key if place.kind == "argument" else numbers.get(place.parent, -1)  # type: ignore[arg-type]
    same = numbers.get(place.same, -1)  # type: ignore[arg-type]
    expected = place.expected if input < 0 else _ANYTHING
    return place.kind, place.key, place.at, parent, input, same, *expected


def _same(a: Any, b: Any) -> bool:
    """Whether two expectations are equal."""
    if a[0] != b[0] or a[2] != b[2] or not _core.same_value(a[3], b[3]):
        return False
    return _core.same_value(a[1], b[1]) if a[0] == "value" else a[1] is b[1]


def _expectation(place: Place) -> Any:
    """Of what is no plain value."""
    x = place.object
    if place.parent is None or _is(x, (FunctionType, CellType)):  # a function's code is expected
        return _ANYTHING
    if place.key is _CLASS or (place.kind == "lookup" and _is(x, _DESCRIPTORS)):
        return _ANYTHING
    if _is(x, type):
        return "identity", x, -1, None
    if _is(x, dict):
        n = dict.__len__(x)
        return "type", type(x), n, _keys(x) if 0 < n <= _MOST_VALUES else None
    elements = _elements(x)
    return "type", type(x), -1 if elements is None else len(elements), None


# ---- kinds of objects --------------------------------------------------------------------------------------------


def _is(x: Any, kinds: Any) -> bool:
    """isinstance() without __class__, which may be the user's code."""
    return issubclass(type(x), kinds)


def _elements(x: Any) -> list[Any] | tuple[Any, ...] | None:
    """Those of a list, tuple, deque or set; None of others."""
    if _is(x, list):
        return list(list.__iter__(x))
    if _is(x, tuple):
        return tuple(tuple.__iter__(x))
    return tuple(x) if type(x) in (deque, set, frozenset) else None


def _keys(x: dict[Any, Any]) -> tuple[Any, ...] | None:
    """Those of a dict in their order, for those that are not plain a weak reference; None where one has none."""
    kind = OrderedDict if _is(x, OrderedDict) else dict
    try:
        return tuple(key if _is_plain(key) else ref(key) for key in kind.__iter__(x))
    except TypeError:
        return None


def _is_plain(x: Any) -> bool:
    return type(x) in _VALUES or snapshot(x) is not _NOTHING


def snapshot(x: Any) -> Any:
    """A copy of a plain value, or of a container of not too many; _NOTHING of others."""
    left = _MOST_VALUES

    def copied(x: Any, depth: int) -> Any:
        nonlocal left
        left -= 1
        kind = type(x)
        if kind in _VALUES or _is(x, _ATOMS):
            return x
        if depth == 8 or kind not in (list, tuple, dict, set, frozenset) or len(x) > left:
            raise _NotPlain
        if kind is dict:
            return {copied(key, depth + 1): copied(value, depth + 1) for key, value in x.items()}
        return kind([copied(v, depth + 1) for v in x])

    try:
        return copied(x, 0)
    except _NotPlain:
        return _NOTHING


class _NotPlain(Exception):
    pass


def _slots_of(kind: type) -> Iterator[tuple[Any, str | None]]:
    """(descriptor, word) of what an instance holds outside of its __dict__."""
    for c in kind.__mro__:
        for name in _SLOTS.get(c, ()):
            yield vars(c)[name], None
    for d in slot_members(kind):
        yield d, d.__name__


def _has_code(kind: type) -> bool:
    """Whether a class is written in Python, and not by us or NumPy."""
    return is_heap_type(kind) and _home(kind) not in ("dovetail", "numpy")


def _home(x: Any) -> str:
    name = getattr(x, "__name__" if _is(x, ModuleType) else "__module__", None)
    return name.partition(".")[0] if isinstance(name, str) else ""


def _is_of_python(x: Any) -> bool:
    """Whether a class or function is of Python's library."""
    return _home(x) in sys.stdlib_module_names and _home(x) != "__main__"


def _is_users_module(x: ModuleType) -> bool:
    if _home(x) in ("dovetail", "numpy") or _home(x) in sys.stdlib_module_names - {"__main__"}:
        return False
    return not _is_foreign(x.__name__)


_foreign: dict[str, tuple[int, int, bool]] = {}  # by package: of how many modules in all and of its own; the answer


def _is_foreign(name: Any) -> bool:
    """Whether a module is of an installed package that does not import dovetail: its own objects hold no arrays."""
    if not isinstance(name, str):
        return False
    package = name.partition(".")[0]
    n_all, n_own, answer = _foreign.get(package, (0, 0, False))
    if n_all != len(sys.modules):
        parts = [m for key, m in list(sys.modules.items()) if key.partition(".")[0] == package]
        if n_own != len(parts):
            places = [str(getattr(m, "__file__", None) or "") for m in parts]
            installed = any(folder in place for place in places for folder in ("site-packages", "dist-packages"))
            answer = installed and not any(map(_imports_dovetail, parts))
        _foreign[package] = len(sys.modules), len(parts), answer
    return answer


def _imports_dovetail(x: Any) -> bool:
    objects = list(vars(x).values()) if _is(x, ModuleType) else ()
    return any(_is(v, (ModuleType, FunctionType, type)) and _home(v) == "dovetail" for v in objects)


def _is_ours(x: Any) -> bool:
    """Whether x is a part of dovetail or NumPy, and holds no arrays of the user's."""
    if _is(x, FunctionType):
        return is_internal(x.__code__.co_filename)
    if _is(x, type):
        return not _has_code(x)
    return type(x) is not _core.CompiledFunction and _home(type(x)) in ("dovetail", "numpy")


def _joined(name: str, attribute: str) -> str:
    return f"{name}.{attribute}" if name else attribute
