"""Arguments and results as trees: tuples, lists, dicts, namedtuples and dataclasses of arrays and constants.

A tree's JSON is the signature of a program: an integer is the place of an array among the inputs (outputs),
{"tuple": [...]}, {"list": [...]}, {"dict": {...}} are containers, {"value": x} is None, a bool, number or string.
A namedtuple is a tuple there and a dataclass a dict, as a file does not know their classes.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from dovetail._attributes import attributes, remade

__all__ = ["Constant", "Leaf", "Node", "Tree", "flatten", "read", "rebuilt"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """An array: its place among the inputs or outputs."""

    place: int


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is a part of the program."""

    value: bool | int | float | str | None

    def same(self, other: Any) -> bool:
        """Whether it is this value; 1, 1.0 and True are different ones, and NaN is itself."""
        mine = self.value
        return type(other) is type(mine) and (other == mine or (mine != mine and other != other))


@dataclass(frozen=True, slots=True)
class Node:
    """A container: its kind ("tuple", "list", "dict"), its keys, its parts, and what makes one of the parts."""

    kind: str
    keys: tuple[Any, ...]
    parts: tuple[Tree, ...]
    make: Callable[[list[Any]], Any]


Tree = Leaf | Constant | Node


def children(
    x: Any, path: str, front: str = "export"
) -> tuple[str, list[tuple[Any, str, Any]], Callable[[list[Any]], Any]] | None:
    """The kind of a container, (key, path, value) of its parts, and what makes one; None for everything else.

    What is made is of the type of x, and runs no code of it. Raises TypeError for a dict with keys that are no
    strings, and for a tuple, list or dict with further attributes, which no program keeps. front: for messages.
    """
    kind = type(x)
    if isinstance(x, (tuple, list, dict)):
        if kind not in (tuple, list, dict) and (further := attributes(x)):
            raise TypeError(
                f"[{front}] {path}: got a {kind.__name__} with the attribute {next(iter(further))!r}, expected one "
                "without attributes of its own, or a dataclass"
            )
        if isinstance(x, dict):
            return "dict", [(k, f"{path}[{k!r}]", v) for k, v in _items(x, path, front)], _maker_of_dict(x)
        if isinstance(x, list):
            return "list", [(i, f"{path}[{i}]", v) for i, v in enumerate(list.__iter__(x))], _maker_of_list(kind)
        names = getattr(x, "_fields", None)
        paths = [f"[{i}]" for i in range(len(x))] if names is None else [f".{name}" for name in names]
        items = [(i, path + where, v) for i, (where, v) in enumerate(zip(paths, tuple.__iter__(x), strict=True))]
        return "tuple", items, _maker_of_tuple(kind)
    if is_dataclass(x) and not isinstance(x, type):
        held = attributes(x)
        ordered = {f.name: held[f.name] for f in fields(x) if f.name in held} | held
        return "dict", [(n, f"{path}.{n}", v) for n, v in ordered.items()], remade(kind, tuple(ordered))
    return None


def _items(x: dict[Any, Any], path: str, front: str) -> list[tuple[str, Any]]:
    items = [(key, dict.__getitem__(x, key)) for key in x]
    for key, _ in items:
        if not isinstance(key, str):
            raise TypeError(f"[{front}] {path}: got a dict with the key {key!r}, expected strings as keys")
        expect_text(key, f"a key of {path}", front)
    return items


def _maker_of_tuple(kind: type) -> Callable[[list[Any]], Any]:
    return tuple if kind is tuple else lambda parts: tuple.__new__(kind, parts)


def _maker_of_list(kind: type) -> Callable[[list[Any]], Any]:
    if kind is list:
        return list

    def make(parts: list[Any]) -> Any:
        new = list.__new__(kind)
        list.extend(new, parts)
        return new

    return make


def _maker_of_dict(x: dict[Any, Any]) -> Callable[[list[Any]], Any]:
    keys, kind = tuple(x), type(x)
    if kind is dict:
        return lambda parts: dict(zip(keys, parts, strict=True))
    base = next(c for c in (OrderedDict, defaultdict, dict) if isinstance(x, c))
    factory = x.default_factory if isinstance(x, defaultdict) else None

    def make(parts: list[Any]) -> Any:
        new = base.__new__(kind)
        if base is defaultdict:
            new.default_factory = factory
        for key, part in zip(keys, parts, strict=True):
            base.__setitem__(new, key, part)
        return new

    return make


def expect_text(x: str, path: str, front: str = "export") -> None:
    """Raises ValueError for a string that UTF-8, and so the program's JSON, cannot spell."""
    try:
        x.encode()
    except UnicodeEncodeError:
        raise ValueError(f"[{front}] {path}: got {x!r}, expected a string without lone surrogates") from None


def flatten(x: Any, path: str, leaf: Callable[[Any, str], Tree]) -> Tree:
    """The tree of x; `leaf` makes those of everything that is no container, in their order."""
    found = children(x, path)
    if found is None:
        return leaf(x, path)
    kind, items, make = found
    parts = tuple(flatten(value, where, leaf) for _, where, value in items)
    return Node(kind, tuple(key for key, _, _ in items), parts, make)


def rebuilt(tree: Tree, leaves: Any) -> Any:
    """The value with this tree and these leaves."""
    if isinstance(tree, Leaf):
        return leaves[tree.place]
    if isinstance(tree, Constant):
        return tree.value
    return tree.make([rebuilt(part, leaves) for part in tree.parts])


def leaves_like(tree: Tree, x: Any, path: str) -> Iterator[tuple[int, Any, str]]:
    """(place, value, path) of each leaf of x. Raises TypeError where x is not as the tree is."""
    if isinstance(tree, Leaf):
        yield tree.place, x, path
        return
    if isinstance(tree, Constant):
        if not tree.same(x):
            raise TypeError(
                f"[program] {path}: got {_kind(x)}, but the program was made for {tree.value!r}, which is a part "
                "of it; pass that, or export the function for another value"
            )
        return
    found = children(x, path)
    if found is None or found[0] != tree.kind:
        raise TypeError(f"[program] {path}: got {_kind(x)}, expected a {tree.kind} as in the trace")
    given = {key: (where, value) for key, where, value in found[1]}
    if given.keys() != set(tree.keys):
        wanted = f"{len(tree.keys)} parts" if tree.kind != "dict" else f"the keys {', '.join(map(repr, tree.keys))}"
        got = f"{len(given)}" if tree.kind != "dict" else ", ".join(map(repr, given)) or "none"
        raise TypeError(f"[program] {path}: got {got}, expected {wanted} as in the trace")
    for key, part in zip(tree.keys, tree.parts, strict=True):
        where, value = given[key]
        yield from leaves_like(part, value, where)


def _kind(x: Any) -> str:
    if x is None or isinstance(x, (bool, int, float, str)):
        return repr(x)
    shape = getattr(x, "shape", None)
    return f"an array of shape {shape}" if isinstance(shape, tuple) else f"a {type(x).__name__}"


# ---- JSON --------------------------------------------------------------------------------------------------------


def to_json(tree: Tree) -> Any:
    if isinstance(tree, Leaf):
        return tree.place
    if isinstance(tree, Constant):
        value = tree.value
        finite = not isinstance(value, float) or value - value == 0
        return {"value": value} if finite else {"value": {"float": repr(value)}}
    if tree.kind == "dict":
        return {"dict": dict(zip(tree.keys, map(to_json, tree.parts), strict=True))}
    return {tree.kind: [*map(to_json, tree.parts)]}


def read(json: Any) -> Tree:
    """The tree of a program's signature. Raises ValueError where it is none."""
    if isinstance(json, int) and not isinstance(json, bool) and json >= 0:
        return Leaf(json)
    if not isinstance(json, dict) or len(json) != 1:
        raise ValueError(f"[load] signature: got {json!r}, expected a place, or one of tuple, list, dict, value")
    ((kind, value),) = json.items()
    if kind == "value":
        if isinstance(value, dict):
            return Constant(float(value["float"]))
        return Constant(value)
    if kind == "dict" and isinstance(value, dict):
        keys = tuple(value)
        return Node(
            "dict", keys, tuple(map(read, value.values())), lambda parts: dict(zip(keys, parts, strict=True))
        )
    if kind in ("tuple", "list") and isinstance(value, list):
        return Node(kind, tuple(range(len(value))), tuple(map(read, value)), tuple if kind == "tuple" else list)
    raise ValueError(f"[load] signature: got {kind!r}, expected one of tuple, list, dict, value")
