"""What a search for captured arrays comes to, and what calls expect there."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from types import CellType, FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any

from dovetail import _core
from dovetail._attributes import own_attributes
from dovetail._object_kinds import MOST_VALUES, NOTHING, elements_of, is_, keys_of

__all__ = [
    "ANYTHING",
    "CLASS",
    "CONTENT",
    "DESCRIPTORS",
    "Place",
    "add_way",
    "expectation",
    "same",
    "step",
    "write",
]

_LONGEST_NAME = 200
ANYTHING = ("nothing", None, -1, None)
CLASS = object.__dict__["__class__"]
CONTENT = CellType.__dict__["cell_contents"]
DESCRIPTORS = (FunctionType, property, staticmethod, classmethod, _core.CompiledFunction)


@dataclass(slots=True, eq=False)
class Place:
    """An object and how the search came to it: by a hop of `kind` with `key` and `at` from `parent`."""

    kind: str  # as in bindings/captured.hpp
    parent: Place | None
    key: Any
    object: Any
    text: str  # behind the parent's name: ".layers", "[0]"; or a name of its own
    at: int = 0
    word: str | None = None  # by which code reads it, if that is needed
    is_of_many: bool = False  # an element of a large container
    same: Place | None = None  # an earlier place of the same object
    # ("nothing" | "type" | "identity" | "value", what, length or -1, keys or None): of _core.CompiledProgram
    expected: tuple[str, Any, int, tuple[Any, ...] | None] = ANYTHING

    @property
    def name(self) -> str:
        """ "self.layers[0].w"; of a very long way its end."""
        place: Place | None = self
        name = ""
        while place is not None and len(name) <= _LONGEST_NAME:
            name = place.text + name
            place = None if place.text and place.text[0] not in ".[" else place.parent
        return f"...{name[-_LONGEST_NAME // 2 :]}" if len(name) > _LONGEST_NAME else name.removeprefix(".")

    @property
    def makes(self) -> bool:
        """Of a class whether code may call it; of super() and instances, __init__ has run before."""
        if self.parent is None or self.key is CLASS:
            return False
        return self.key is not CONTENT or self.parent.name != "__class__"

    @property
    def hop(self) -> tuple[int, str, int, int]:
        """What sets this hop apart from others while the objects live."""
        return id(self.parent.object) if self.parent else 0, self.kind, id(self.key), self.at


def write(place: Place, value: Any) -> None:
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


def add_way(place: Place | None, needed: set[Place]) -> None:
    while place is not None and place not in needed:
        needed.add(place)
        place = place.parent


def step(place: Place, numbers: dict[Place, int], input: int) -> tuple[Any, ...]:
    parent = place.key if place.kind == "argument" else numbers.get(place.parent, -1)  # type: ignore[arg-type]
    same = numbers.get(place.same, -1)  # type: ignore[arg-type]
    expected = place.expected if input < 0 else ANYTHING
    return place.kind, place.key, place.at, parent, input, same, *expected


def same(a: Any, b: Any) -> bool:
    """Whether two expectations are equal."""
    if a[0] != b[0] or a[2] != b[2] or not _core.same_value(a[3], b[3]):
        return False
    return _core.same_value(a[1], b[1]) if a[0] == "value" else a[1] is b[1]


def expectation(place: Place) -> Any:
    """Of what is no plain value."""
    x = place.object
    if is_(x, (FunctionType, CellType)):  # a function's code is expected
        return ANYTHING
    if place.parent is None and is_(x, type):  # a constant of the search
        return ANYTHING
    if place.key is CLASS or (place.kind == "lookup" and is_(x, DESCRIPTORS)):
        return ANYTHING
    if is_(x, type):
        return "identity", x, -1, None
    if is_(x, dict):
        n = dict.__len__(x)
        return "type", type(x), n, keys_of(x) if 0 < n <= MOST_VALUES else None
    elements = elements_of(x)
    return "type", type(x), -1 if elements is None else len(elements), None
