"""What objects hold, read and written without running code of their classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import MemberDescriptorType
from typing import Any

__all__ = ["attributes", "is_heap_type", "own_attributes", "remade", "slot_members"]


def is_heap_type(kind: type) -> bool:
    """Whether a class was made by a class statement."""
    return bool(kind.__flags__ & (1 << 9))  # Py_TPFLAGS_HEAPTYPE


def own_attributes(x: Any) -> dict[str, Any]:
    """The __dict__ of an instance; an empty one where there is none."""
    try:
        own = object.__getattribute__(x, "__dict__")
    except AttributeError:
        return {}
    return own if isinstance(own, dict) else {}


def slot_members(kind: type) -> Iterator[Any]:
    """The descriptors of the __slots__ of a class and its bases."""
    for c in kind.__mro__:
        if is_heap_type(c):
            yield from (d for d in vars(c).values() if type(d) is MemberDescriptorType)


def attributes(x: Any) -> dict[str, Any]:
    """What an instance has in its slots and its __dict__, by name."""
    held = {}
    for member in slot_members(type(x)):
        try:
            held.setdefault(member.__name__, member.__get__(x))
        except AttributeError:  # not set
            continue
    return held | own_attributes(x)


def remade(kind: type, names: Sequence[str]) -> Callable[[Sequence[Any]], Any]:
    """Makes an instance of a class with values for these attributes: neither __init__ nor __setattr__ runs."""
    members = {d.__name__: d for d in reversed([*slot_members(kind)])}
    base = next(c for c in kind.__mro__ if not is_heap_type(c))

    def make(values: Sequence[Any]) -> Any:
        new = base.__new__(kind)
        for name, value in zip(names, values, strict=True):
            if name in members:
                members[name].__set__(new, value)
            else:
                own_attributes(new)[name] = value
        return new

    return make
