"""Kinds of objects that a search for captured arrays meets; what they hold, read without code of their classes."""

from __future__ import annotations

import os
import sys
from collections import OrderedDict, deque
from collections.abc import Iterator
from enum import Enum
from functools import partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import ref

from dovetail import _core
from dovetail._attributes import is_heap_type, slot_members
from dovetail._core import Array, Device, DType
from dovetail._record import is_own_file
from dovetail._trace import Tracer
from dovetail.schema.number import Number

__all__ = [
    "MOST_VALUES", "NOTHING", "VALUES", "Sort", "Sorts", "elements_of", "has_code", "is_", "is_foreign",
    "is_of_python", "is_ours", "is_users_module", "keys_of", "slots_of", "snapshot",
]  # fmt: skip

_LIBRARY = os.path.dirname(os.__file__) + os.sep
_INSTALLED = ("site-packages", "dist-packages")
MOST_VALUES = 256  # plain values and keys of one container that calls look at
VALUES = frozenset((type(None), bool, int, float, complex, str, bytes))
NOTHING = object()
_CONTAINERS = frozenset((list, tuple, dict, set, frozenset))
_ATOMS = (Enum, DType, Device, BuiltinFunctionType, CodeType, range, slice, type(Ellipsis))  # equal to itself only
_SLOTS = {  # of types that are written in C
    MethodType: ("__self__", "__func__"),
    FunctionType: ("__defaults__", "__kwdefaults__"),
    partial: ("func", "args", "keywords"),
    property: ("fget",),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    _core.CompiledFunction: ("__wrapped__",),
}


def is_(x: Any, kinds: Any) -> bool:
    """isinstance() without __class__, which may be the user's code."""
    return issubclass(type(x), kinds)


class Sort:
    """Of a type: what a search does with its objects. No Enum, whose members take long to reach in Python 3.11."""

    VALUE = "value"  # plain, as snapshot() takes them
    ATOM = "atom"
    ENUM = "enum"
    CONTAINER = "container"
    ARRAY = "array"
    TRACED = "traced"
    MODULE = "module"
    CLASS = "class"
    FUNCTION = "function"
    OURS = "ours"
    INSTANCE = "instance"  # it has attributes, and nothing else
    HOLDER = "holder"


class Sorts(dict[type, str]):
    """The sort of each type, found when it is first asked for."""

    def __missing__(self, kind: type) -> str:
        self[kind] = sort = _sort_of(kind)
        return sort


_SORTS = (
    ((Tracer, Number), Sort.TRACED),
    (Enum, Sort.ENUM),
    (_ATOMS, Sort.ATOM),
    (ModuleType, Sort.MODULE),
    (FunctionType, Sort.FUNCTION),
    (type, Sort.CLASS),
)


def _sort_of(kind: type) -> str:
    if kind in VALUES:
        return Sort.VALUE
    if kind in _CONTAINERS:
        return Sort.CONTAINER
    if kind is Array:
        return Sort.ARRAY
    for bases, sort in _SORTS:
        if issubclass(kind, bases):
            return sort
    if kind is not _core.CompiledFunction and _home(kind) in ("dovetail", "numpy"):
        return Sort.OURS
    return Sort.HOLDER if issubclass(kind, (*_CONTAINERS, deque, CellType)) else Sort.INSTANCE


def elements_of(x: Any) -> list[Any] | tuple[Any, ...] | None:
    """Those of a list, tuple, deque or set; None of others."""
    if is_(x, list):
        return list(list.__iter__(x))
    if is_(x, tuple):
        return tuple(tuple.__iter__(x))
    return tuple(x) if type(x) in (deque, set, frozenset) else None


def keys_of(x: dict[Any, Any]) -> tuple[Any, ...] | None:
    """Those of a dict in their order, for those that are not plain a weak reference; None where one has none."""
    kind = OrderedDict if is_(x, OrderedDict) else dict
    try:
        return tuple(key if _is_plain(key) else ref(key) for key in kind.__iter__(x))
    except TypeError:
        return None


def _is_plain(x: Any) -> bool:
    return type(x) in VALUES or snapshot(x) is not NOTHING


def snapshot(x: Any) -> Any:
    """A copy of a plain value, or of a container of not too many; NOTHING of others."""
    kind = type(x)
    if kind not in _CONTAINERS:
        return x if kind in VALUES or issubclass(kind, _ATOMS) else NOTHING
    if len(x) >= MOST_VALUES:
        return NOTHING
    left = MOST_VALUES

    def copied(x: Any, depth: int) -> Any:
        nonlocal left
        left -= 1
        kind = type(x)
        if kind in VALUES or (kind not in _CONTAINERS and issubclass(kind, _ATOMS)):
            return x
        if depth == 8 or kind not in _CONTAINERS or len(x) > left:
            raise _NotPlain
        if kind is dict:
            return {copied(key, depth + 1): copied(value, depth + 1) for key, value in x.items()}
        return kind([copied(v, depth + 1) for v in x])

    try:
        return copied(x, 0)
    except _NotPlain:
        return NOTHING


class _NotPlain(Exception):
    pass


def slots_of(kind: type) -> Iterator[tuple[Any, str | None]]:
    """(descriptor, word) of what an instance holds outside of its __dict__."""
    for c in kind.__mro__:
        for name in _SLOTS.get(c, ()):
            yield vars(c)[name], None
    for d in slot_members(kind):
        yield d, d.__name__


def has_code(kind: type) -> bool:
    """Whether a class is written in Python, and not by us or NumPy."""
    return is_heap_type(kind) and _home(kind) not in ("dovetail", "numpy")


def _home(x: Any) -> str:
    name = getattr(x, "__name__" if is_(x, ModuleType) else "__module__", None)
    return name.partition(".")[0] if isinstance(name, str) else ""


def is_of_python(x: Any) -> bool:
    """Whether a class, function or module is of Python's library; modules of the user's may have their names."""
    if is_(x, FunctionType):
        return _is_in_library(x.__code__.co_filename)
    if _home(x) not in sys.stdlib_module_names:
        return False
    module = x if is_(x, ModuleType) else sys.modules.get(x.__module__)
    file = getattr(module, "__file__", None)
    return getattr(module, "__spec__", None) is not None if file is None else _is_in_library(file)


def _is_in_library(file: str) -> bool:
    return file.startswith((_LIBRARY, "<frozen")) and not any(folder in file for folder in _INSTALLED)


def is_users_module(x: ModuleType) -> bool:
    return not (_home(x) in ("dovetail", "numpy") or is_of_python(x) or is_foreign(x.__name__))


_foreign: dict[str, tuple[int, int, bool]] = {}  # by package: of how many modules in all and of its own; the answer


def is_foreign(name: Any) -> bool:
    """Whether a module is of an installed package that does not import dovetail: its own objects hold no arrays."""
    if not isinstance(name, str):
        return False
    package = name.partition(".")[0]
    n_all, n_own, answer = _foreign.get(package, (0, 0, False))
    if n_all != len(sys.modules):
        parts = [m for key, m in list(sys.modules.items()) if key.partition(".")[0] == package]
        if n_own != len(parts):
            places = [str(getattr(m, "__file__", None) or "") for m in parts]
            installed = any(folder in place for place in places for folder in _INSTALLED)
            answer = installed and not any(map(_imports_dovetail, parts))
        _foreign[package] = len(sys.modules), len(parts), answer
    return answer


def _imports_dovetail(x: Any) -> bool:
    objects = list(vars(x).values()) if is_(x, ModuleType) else ()
    return any(is_(v, (ModuleType, FunctionType, type)) and _home(v) == "dovetail" for v in objects)


def is_ours(x: Any) -> bool:
    """Whether x is a part of dovetail or NumPy, and holds no arrays of the user's."""
    if is_(x, FunctionType):
        return is_own_file(x.__code__.co_filename)
    if is_(x, type):
        return not has_code(x)
    return type(x) is not _core.CompiledFunction and _home(type(x)) in ("dovetail", "numpy")
