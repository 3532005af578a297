"""What a function reads by itself, through closures, globals and objects, and how a call comes to it again.

A search goes from the function, and from objects among its arguments, to everything that they hold. What it finds
is a Place: a hop from another place. A hop runs no code of the user's, and is the same one in the search and in
each call (bindings/captured.hpp). Arrays that the function used are found by path; of everything else that its code
names, calls expect what the trace has seen: the same plain values, types, lengths, keys, and functions.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from importlib.util import resolve_name
from types import CellType, FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

from dovetail import _core
from dovetail._attributes import own_attributes
from dovetail._code_names import SUPER, names_of
from dovetail._core import Array
from dovetail._object_kinds import (
    MOST_VALUES,
    NOTHING,
    VALUES,
    elements_of,
    has_code,
    is_,
    is_foreign,
    is_of_python,
    is_ours,
    is_plain,
    is_users_module,
    keys_of,
    slots_of,
    snapshot,
)  # fmt: skip
from dovetail._trace import Tracer
from dovetail.schema.number import Number

__all__ = ["Found", "Place", "roots_of", "search"]

_MOST_OBJECTS = 50_000  # that a search looks at
_LONGEST_NAME = 200
_IMPLICIT = ("__call__", "__contains__", "__getattr__", "__getitem__", "__iter__", "__len__")  # of Python's library
_MAKERS = frozenset(("__init__", "__new__", "__post_init__"))
_ANYTHING = ("nothing", None, -1, None)

_CLASS = object.__dict__["__class__"]
_CODE, _CLOSURE = FunctionType.__dict__["__code__"], FunctionType.__dict__["__closure__"]
_CONTENT = CellType.__dict__["cell_contents"]
_DESCRIPTORS = (FunctionType, property, staticmethod, classmethod, _core.CompiledFunction)


@dataclass(slots=True, eq=False)
class Place:
    """An object and how the search came to it: by a hop of `kind` with `key` and `at` from `parent`."""

    kind: str  # as in bindings/captured.hpp
    parent: Place | None
    key: Any
    object: Any
    name: str  # "self.layers[0].w"; of a very long way its end
    at: int = 0
    word: str | None = None  # by which code reads it, if that is needed
    is_of_many: bool = False  # an element of a large container
    same: Place | None = None  # an earlier place of the same object
    # ("nothing" | "type" | "identity" | "value", what, length or -1, keys or None): of _core.CompiledProgram
    expected: tuple[str, Any, int, tuple[Any, ...] | None] = _ANYTHING

    @property
    def makes(self) -> bool:
        """Of a class whether code may call it; of super() and instances, __init__ has run before."""
        if self.parent is None or self.key is _CLASS:
            return False
        return self.key is not _CONTENT or self.parent.name != "__class__"

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
        self._snapshots = 0  # of plain containers
        self._left: list[Place] = []  # whose objects were not searched, as there are too many
        self._words: set[str] = set()  # by which code reads attributes, or writes them
        self._read: set[str] = set()
        self._known: set[str] = set()  # those with which all of _open were looked at
        self._open: list[Place] = []  # modules, classes and instances
        self._spaces: dict[int, tuple[Place, set[str]]] = {}  # globals by id: with the names that were looked up
        self._members: dict[type, tuple[frozenset[str], dict[str, list[type]]]] = {}
        self._slots: dict[type, list[tuple[Any, str | None]]] = {}
        self._bases: dict[type, Place] = {}
        self._made: set[int] = set()  # classes whose __init__ was looked at, by id

    def run(self, roots: list[Place]) -> None:
        """First where code goes by names that it reads, then to the rest, as tables of data."""
        queue, rest = deque(roots), deque[Place]()
        while queue or rest:
            place = (queue or rest).popleft()
            self.places.append(place)
            if self._is_new(place):
                if len(self._seen) + self._snapshots <= _MOST_OBJECTS:
                    for part in self._parts(place):
                        (queue if self._is_soon(part) else rest).append(part)
                else:
                    self._left.append(place)
            if is_(place.object, type) and place.makes and id(place.object) not in self._made:
                self._made.add(id(place.object))
                queue += self._makers(place)
            if not queue and (new := self._words - self._known):
                for opened in self._open:
                    rest += self._named_parts(opened, new)
                self._known |= new
                queue += filter(self._is_soon, rest)
                rest = deque(part for part in rest if not self._is_soon(part))

    def _is_soon(self, place: Place) -> bool:
        return (place.word is None or place.word in self._read) and not place.is_of_many

    def _is_new(self, place: Place) -> bool:
        """Whether the search goes on from here. Notes what is expected of the object."""
        x, kind = place.object, type(place.object)
        if kind in VALUES:
            place.expected = ("value", x, -1, None)
        elif kind is Array:
            self.leaves.setdefault(id(x), []).append(place)
            place.expected = ("type", Array, -1, None)
        elif is_(x, (Tracer, Number)):
            self.traced.append(place)
        elif (value := snapshot(x)) is not NOTHING:
            self._snapshots += 1
            place.expected = ("value", value, -1, None)
            return is_(x, Enum) and self._seen.setdefault(id(x), place) is place
        elif is_(x, ModuleType):
            return is_users_module(x) and self._seen.setdefault(id(x), place) is place
        elif is_ours(x):
            self.leaves.setdefault(id(x), []).append(place)
            place.expected = ("identity", x, -1, None)
        else:
            earlier = self._seen.setdefault(id(x), place)
            is_method = place.kind == "lookup" and is_(x, _DESCRIPTORS)
            if earlier is not place and not is_method and not is_(x, type):
                place.same = earlier
            place.expected = _expectation(place)
            return earlier is place
        return False

    # ---- what an object holds

    def _hop(
        self,
        place: Place,
        kind: str,
        key: Any,
        text: str,
        *,
        at: int = 0,
        word: str | None = None,
        is_of_many: bool = False,
    ) -> tuple[Place, ...]:
        """The place to which a hop leads, if there is something. text: ".layers", "[0]" or a name of its own."""
        x = _core.follow_hop(kind, key, at, place.object, NOTHING)
        return (
            () if x is NOTHING else (Place(kind, place, key, x, _joined(place.name, text), at, word, is_of_many),)
        )

    def _parts(self, place: Place) -> Iterator[Place]:
        x = place.object
        if is_(x, CellType):
            yield from self._hop(place, "slot", _CONTENT, "")
        elif is_(x, (ModuleType, type)):
            if is_(x, type):
                yield from self._implicit(place)
                yield from self._class_of(place)
            yield from self._opened(place)
        else:
            if is_(x, FunctionType):
                yield from self._of_function(place)
            elif is_(x, dict):
                yield from self._items(place)
            elif (elements := elements_of(x)) is not None:
                is_large = len(elements) > MOST_VALUES
                for i, value in enumerate(elements):
                    if not (is_large and type(value) in VALUES):
                        yield from self._hop(place, "element", None, f"[{i}]", at=i, is_of_many=is_large)
            yield from self._attributes(place)

    def _items(self, place: Place) -> Iterator[Place]:
        items = list(dict.items(place.object))
        is_large = len(items) > MOST_VALUES
        for i, (key, value) in enumerate(items):
            if is_large and type(value) in VALUES:
                continue
            if type(key) in VALUES:
                yield from self._hop(place, "item", key, f"[{key!r}]", is_of_many=is_large)
            elif not is_large:
                if not is_plain(key):
                    yield from self._hop(place, "key_at", None, f".keys()[{i}]", at=i)
                yield from self._hop(place, "element", None, f".values()[{i}]", at=i)

    def _attributes(self, place: Place) -> Iterator[Place]:
        """What its slots and its __dict__ have; plain values only where code names them."""
        x, kind = place.object, type(place.object)
        if not (kind is FunctionType and place.kind == "constant"):  # its defaults are arguments
            if kind not in self._slots:
                self._slots[kind] = list(slots_of(kind))
            for key, word in self._slots[kind]:
                for part in self._hop(place, "slot", key, f".{key.__name__}", word=word):
                    if word is not None or part.object is not None:  # a function without defaults
                        yield part
        if kind is _core.CompiledFunction:
            return
        for key, value in list(own_attributes(x).items()):
            if type(key) is str and not is_plain(value):
                yield from self._hop(place, "attribute", key, f".{key}", word=key)
        yield from self._class_of(place)
        yield from self._opened(place)

    def _class_of(self, place: Place) -> tuple[Place, ...]:
        kind = type(place.object)
        is_known = id(kind) in self._seen or not has_code(kind)
        return () if is_known else self._hop(place, "slot", _CLASS, ".__class__")

    # ---- what is looked at only where code names it

    def _opened(self, place: Place) -> Iterator[Place]:
        self._open.append(place)
        return self._named_parts(place, self._known)

    def _named_parts(self, place: Place, words: set[str]) -> Iterator[Place]:
        x = place.object
        if is_(x, type):
            members, hidden = self._members_of(x)
            for word in words & members:
                if word not in _MAKERS:
                    yield from self._hop(place, "lookup", word, f"{x.__name__}.{word}", word=word)
            for word in words & hidden.keys():
                for c in hidden[word]:
                    yield from self._of_base(c, word.removeprefix(SUPER), word)
            return
        own = own_attributes(x)
        for word in [word for word in own if word in words]:
            if is_(x, ModuleType) or is_plain(own[word]):  # others were met before
                yield from self._hop(place, "attribute", word, f".{word}", word=word)
        if not is_(x, ModuleType):
            for word in (words & self._members_of(type(x))[0]) - own.keys():
                for part in self._hop(place, "attribute", word, f".{word}", word=word):
                    if not hasattr(type(part.object), "__get__"):
                        yield part

    def _members_of(self, kind: type) -> tuple[frozenset[str], dict[str, list[type]]]:
        """The names of what a class and its bases have; by a word of SUPER the bases that have what others hide."""
        if kind not in self._members:
            homes: dict[str, list[type]] = {}
            for c in kind.__mro__:
                for name in vars(c) if has_code(c) else ():
                    homes.setdefault(name, []).append(c)
            hidden = {SUPER + name: found[1:] for name, found in homes.items() if found[1:] and name not in _MAKERS}
            self._members[kind] = frozenset(homes), hidden
        return self._members[kind]

    def _of_base(self, base: type, name: str, word: str | None) -> tuple[Place, ...]:
        """What a base has, whatever the classes have that are made from it."""
        if base not in self._bases:
            self._bases[base] = Place("constant", None, base, base, base.__name__)
            self.places.append(self._bases[base])
        return self._hop(self._bases[base], "lookup", name, f"{base.__name__}.{name}", word=word)

    def _implicit(self, place: Place) -> Iterator[Place]:
        """Functions of a class that run although no code names them."""
        for name in self._members_of(place.object)[0] - _MAKERS:
            if name.startswith("__") and (name in _IMPLICIT or not is_of_python(place.object)):
                for part in self._hop(place, "lookup", name, f"{place.object.__name__}.{name}"):
                    if is_(part.object, _DESCRIPTORS):
                        yield part

    def _makers(self, place: Place) -> Iterator[Place]:
        """Functions of a class and its bases that make an instance."""
        for c in () if is_of_python(place.object) else place.object.__mro__:
            for name in _MAKERS & vars(c).keys() if has_code(c) else ():
                yield from self._of_base(c, name, None)

    def _of_function(self, place: Place) -> Iterator[Place]:
        fn = place.object
        names = names_of(fn.__code__)
        self._read |= names.read
        self._words |= names.read | names.written
        if place.kind not in ("constant", "lookup"):
            yield from self._hop(place, "slot", _CODE, ".__code__")
        closure = Place("slot", place, _CLOSURE, fn.__closure__, place.name)
        if place.kind != "constant":
            self.places.append(closure)
        for i, (name, cell) in enumerate(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)):
            if place.kind == "constant":
                yield Place("constant", None, cell, cell, name)
            else:
                yield Place("element", closure, None, cell, name, i)
        if not is_of_python(fn) and not is_foreign(fn.__globals__.get("__name__")):
            yield from self._items_of(fn.__globals__, names.globals)
            if names.imported:
                yield from self._items_of(sys.modules, _modules_of(fn, names.imported))

    def _items_of(self, space: dict[str, Any], names: Iterable[str]) -> Iterator[Place]:
        """What is in globals, or in sys.modules, under these names."""
        if id(space) not in self._spaces:
            root = Place("constant", None, space, space, "")
            self._spaces[id(space)] = root, set()
            self.places.append(root)
        root, read = self._spaces[id(space)]
        for name in set(names) - read:
            read.add(name)
            yield from self._hop(root, "item", name, name)

    def put_back(self, places: list[Place]) -> None:
        """Makes what code has put at places of a later search be again what it was in this one."""
        was = {place.hop: place.object for place in self.places}
        known = {id(place.object): place.expected for place in self.places}
        for place in reversed(places):  # elements from the last one on
            while id(place.parent.object) not in known and place.parent.parent:  # within what is new, too
                place = place.parent
            kind, content, *_ = known.get(id(place.parent.object), _ANYTHING)
            if kind == "value" and type(content) in (
                list,
                dict,
                set,
            ):  # of plain values
                place.parent.object.clear()
                (place.parent.object.extend if type(content) is list else place.parent.object.update)(content)
            else:
                _write(place, was.get(place.hop, NOTHING))

    # ---- what calls look at

    def left(self) -> str:
        """Where code goes and the search did not, as it had met too many objects; "" where it went everywhere."""
        named = self._named() if self._left else set()
        left = [place for place in self._left if place in named]
        if not left:
            return ""
        others = f" and {len(left) - 1:,} others hold" if left[1:] else " holds"
        return (
            f"it reads more than {_MOST_OBJECTS:,} objects: what {left[0].name}{others} is not looked at, and "
            "stays as it was in the trace"
        )

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
        queue, read = [], self._read
        for place in self.places:
            if place.word is None or place.word in read:
                if place.parent is None:
                    queue.append(place)
                else:
                    below.setdefault(id(place.parent.object), []).append(place)
        named: set[Place] = set()
        while queue:
            place = queue.pop()
            named.add(place)
            for x in (place.object, type(place.object)):
                if id(x) in below:
                    queue += below.pop(id(x))
        return named


def _write(place: Place, value: Any) -> None:
    """Puts a value at a place, or NOTHING: then nothing is there. Of what only C code writes to it does nothing."""
    x = place.parent.object if place.parent else None
    space = x if is_(x, dict) else own_attributes(x) if place.kind == "attribute" else None
    if space is not None:
        if value is NOTHING:
            dict.pop(space, place.key, None)
        else:
            dict.__setitem__(space, place.key, value)
    elif is_(x, type):
        if value is not NOTHING:
            type.__setattr__(x, place.key, value)
        elif place.key in vars(x):
            type.__delattr__(x, place.key)
    elif is_(x, (list, deque)) and place.at < len(x):
        if value is NOTHING:
            del x[place.at]
        else:
            x[place.at] = value
    elif is_(place.key, (MemberDescriptorType, GetSetDescriptorType)) and not is_(x, FunctionType):
        if value is not NOTHING:
            place.key.__set__(x, value)
        elif is_(place.key, MemberDescriptorType):
            place.key.__delete__(x)


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
    if is_(x, (FunctionType, CellType)):  # a function's code is expected
        return _ANYTHING
    if place.parent is None and is_(x, type):  # a constant of the search
        return _ANYTHING
    if place.key is _CLASS or (place.kind == "lookup" and is_(x, _DESCRIPTORS)):
        return _ANYTHING
    if is_(x, type):
        return "identity", x, -1, None
    if is_(x, dict):
        n = dict.__len__(x)
        return "type", type(x), n, keys_of(x) if 0 < n <= MOST_VALUES else None
    elements = elements_of(x)
    return "type", type(x), -1 if elements is None else len(elements), None


def _joined(name: str, text: str) -> str:
    if text and text[0] not in ".[":
        return text
    if len(name) > _LONGEST_NAME:
        name = f"...{name[-_LONGEST_NAME // 2 :]}"
    return f"{name}{text}" if name else text[1:]


def _modules_of(fn: FunctionType, imported: Iterable[str]) -> Iterator[str]:
    """The full names of the modules that a function imports, and of the packages in which they are."""
    package = fn.__globals__.get("__package__") or ""
    for name in imported:
        try:
            parts = resolve_name(name, package).split(".")
        except ImportError:
            continue
        yield from (".".join(parts[: i + 1]) for i in range(len(parts)))
