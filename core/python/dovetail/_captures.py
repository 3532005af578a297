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
from importlib.util import resolve_name
from types import CellType, FunctionType, ModuleType
from typing import Any

from dovetail import _core
from dovetail._attributes import own_attributes
from dovetail._captured_places import (
    ANYTHING,
    CLASS,
    CONTENT,
    DESCRIPTORS,
    Place,
    add_way,
    expectation,
    same,
    step,
    write,
)  # fmt: skip
from dovetail._code_names import SUPER, names_of
from dovetail._object_kinds import (
    MOST_VALUES,
    NOTHING,
    VALUES,
    Sort,
    Sorts,
    elements_of,
    has_code,
    is_,
    is_foreign,
    is_of_python,
    is_ours,
    is_users_module,
    slots_of,
    snapshot,
)  # fmt: skip

__all__ = ["Found", "Place", "roots_of", "search"]

_MOST_OBJECTS = 50_000  # that a search looks at
_IMPLICIT = ("__call__", "__contains__", "__getattr__", "__getitem__", "__iter__", "__len__")  # of Python's library
_MAKERS = frozenset(("__init__", "__new__", "__post_init__"))

_CODE, _CLOSURE = FunctionType.__dict__["__code__"], FunctionType.__dict__["__closure__"]


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
        self._known_in: dict[type, frozenset[str]] = {}  # those of _known that a class has
        self._open: list[Place] = []  # modules, classes and instances
        self._sorts = Sorts()
        self._spaces: dict[int, tuple[Place, set[str]]] = {}  # globals by id: with the names that were looked up
        self._members: dict[type, tuple[frozenset[str], dict[str, list[type]]]] = {}
        self._slots: dict[type, list[tuple[Any, str | None]]] = {}
        self._bases: dict[type, Place] = {}
        self._classes: set[type] = set()  # to which the search has gone from an instance
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
            if self._sorts[type(place.object)] is Sort.CLASS and place.makes and id(place.object) not in self._made:
                self._made.add(id(place.object))
                queue += self._makers(place)
            if not queue and (new := self._words - self._known):
                new_in: dict[type, frozenset[str]] = {}
                for opened in self._open:
                    rest += self._named_parts(opened, new, new_in)
                self._known |= new
                self._known_in.clear()
                queue += filter(self._is_soon, rest)
                rest = deque(part for part in rest if not self._is_soon(part))

    def _is_soon(self, place: Place) -> bool:
        return (place.word is None or place.word in self._read) and not place.is_of_many

    def _is_new(self, place: Place) -> bool:
        """Whether the search goes on from here. Notes what is expected of the object."""
        x = place.object
        sort = self._sorts[type(x)]
        if sort is Sort.VALUE:
            place.expected = ("value", x, -1, None)
        elif sort is Sort.ARRAY:
            self.leaves.setdefault(id(x), []).append(place)
            place.expected = ("type", type(x), -1, None)
        elif sort is Sort.TRACED:
            self.traced.append(place)
        elif (value := self._snapshot(x, sort)) is not NOTHING:
            self._snapshots += 1
            place.expected = ("value", value, -1, None)
            return sort is Sort.ENUM and self._seen.setdefault(id(x), place) is place
        elif sort is Sort.MODULE:
            return is_users_module(x) and self._seen.setdefault(id(x), place) is place
        elif sort is Sort.OURS or (sort in (Sort.CLASS, Sort.FUNCTION) and is_ours(x)):
            self.leaves.setdefault(id(x), []).append(place)
            place.expected = ("identity", x, -1, None)
        else:
            earlier = self._seen.setdefault(id(x), place)
            is_method = place.kind == "lookup" and is_(x, DESCRIPTORS)
            if earlier is not place and not is_method and sort is not Sort.CLASS:
                place.same = earlier
            is_instance = sort is Sort.INSTANCE and place.kind != "lookup"
            place.expected = ("type", type(x), -1, None) if is_instance else expectation(place)
            return earlier is place
        return False

    @staticmethod
    def _snapshot(x: Any, sort: str) -> Any:
        return snapshot(x) if sort is Sort.CONTAINER else x if sort in (Sort.ENUM, Sort.ATOM) else NOTHING

    def _is_plain(self, x: Any) -> bool:
        sort = self._sorts[type(x)]
        return sort is Sort.VALUE or self._snapshot(x, sort) is not NOTHING

    # ---- what an object holds

    def _hop(self, place: Place, kind: str, key: Any, text: str, *, word: str | None = None) -> tuple[Place, ...]:
        """The place to which a hop leads, if there is something."""
        x = _core.follow_hop(kind, key, 0, place.object, NOTHING)
        return () if x is NOTHING else (Place(kind, place, key, x, text, word=word),)

    def _parts(self, place: Place) -> Iterator[Place]:
        x = place.object
        sort = self._sorts[type(x)]
        if sort is Sort.CLASS:
            yield from self._implicit(place)
            yield from self._class_of(place)
        elif sort is Sort.FUNCTION:
            yield from self._of_function(place)
        elif is_(x, CellType):
            yield from self._hop(place, "slot", CONTENT, "")
            return
        elif is_(x, dict):
            yield from self._items(place)
        elif sort is not Sort.INSTANCE and (elements := elements_of(x)) is not None:
            is_large = len(elements) > MOST_VALUES
            for i, value in enumerate(elements):
                if not (is_large and type(value) in VALUES):
                    yield Place("element", place, None, value, f"[{i}]", i, is_of_many=is_large)
        if sort not in (Sort.CLASS, Sort.MODULE):
            yield from self._attributes(place)
        if type(x) is not _core.CompiledFunction:
            yield from self._opened(place)

    def _items(self, place: Place) -> Iterator[Place]:
        items = list(dict.items(place.object))
        is_large = len(items) > MOST_VALUES
        for i, (key, value) in enumerate(items):
            if is_large and type(value) in VALUES:
                continue
            if type(key) in VALUES:
                yield Place("item", place, key, value, f"[{key!r}]", is_of_many=is_large)
            elif not is_large:
                if not self._is_plain(key):
                    yield Place("key_at", place, None, key, f".keys()[{i}]", i)
                yield Place("element", place, None, value, f".values()[{i}]", i)

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
            if type(key) is str and not self._is_plain(value):
                yield Place("attribute", place, key, value, f".{key}", word=key)
        yield from self._class_of(place)

    def _class_of(self, place: Place) -> tuple[Place, ...]:
        kind = type(place.object)
        if kind in self._classes:
            return ()
        self._classes.add(kind)
        return self._hop(place, "slot", CLASS, ".__class__") if has_code(kind) else ()

    # ---- what is looked at only where code names it

    def _opened(self, place: Place) -> Iterator[Place]:
        self._open.append(place)
        return self._named_parts(place, self._known, self._known_in)

    def _named_parts(self, place: Place, words: set[str], words_in: dict[type, frozenset[str]]) -> Iterator[Place]:
        """words_in: those that a class has, found when it is first asked for."""
        x = place.object
        if self._sorts[type(x)] is Sort.CLASS:
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
            if is_(x, ModuleType) or self._is_plain(own[word]):  # others were met before
                yield Place("attribute", place, word, own[word], f".{word}", word=word)
        if is_(x, ModuleType):
            return
        if type(x) not in words_in:
            words_in[type(x)] = self._members_of(type(x))[0] & words
        for word in words_in[type(x)] - own.keys():
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
                    if is_(part.object, DESCRIPTORS):
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
        closure = Place("slot", place, _CLOSURE, fn.__closure__, "")
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
            kind, content, *_ = known.get(id(place.parent.object), ANYTHING)
            if kind == "value" and type(content) in (
                list,
                dict,
                set,
            ):  # of plain values
                place.parent.object.clear()
                (place.parent.object.extend if type(content) is list else place.parent.object.update)(content)
            else:
                write(place, was.get(place.hop, NOTHING))

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
            if not same(seen_before.get(place.hop, place.expected), place.expected):
                place.expected = ANYTHING
            if id(place.object) in wanted or (place in named and place.expected is not ANYTHING):
                add_way(place, needed)
        for place in self.places:
            if place.same in needed:
                add_way(place, needed)
        numbers: dict[Place, int] = {}
        steps = []
        for place in self.places:
            if place in needed:
                numbers[place] = len(numbers)
                steps.append(step(place, numbers, inputs.get(id(place.object), -1)))
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


def _modules_of(fn: FunctionType, imported: Iterable[str]) -> Iterator[str]:
    """The full names of the modules that a function imports, and of the packages in which they are."""
    package = fn.__globals__.get("__package__") or ""
    for name in imported:
        try:
            parts = resolve_name(name, package).split(".")
        except ImportError:
            continue
        yield from (".".join(parts[: i + 1]) for i in range(len(parts)))
