"""Handlers of ops, found by domain, name and opset."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

__all__ = [
    "Handler", "Node", "find_handler", "handled", "onnx_op", "op_name", "register", "same_domain", "shown",
]  # fmt: skip

MICROSOFT = "com.microsoft"
ML = "ai.onnx.ml"


class Handler(NamedTuple):
    """A function (node, *values) -> value or tuple of values, for an op of this opset and later."""

    fn: Callable[..., Any]
    since: int
    numbers: frozenset[int]  # operands that it takes as they come, Sizes among them; others become arrays
    quantized: frozenset[int]  # operands that it takes as Dequantized, too
    may_grow: bool  # its result may be much larger than its operands
    own: bool = False  # registered by the user


_HANDLERS: dict[tuple[str, str], list[Handler]] = {}


class Node:
    """A call of an op: what a handler needs besides the values."""

    __slots__ = ("attributes", "domain", "importer", "name", "op", "opset", "outputs", "proto", "scope")

    def __init__(
        self, op: str, domain: str, opset: int, attributes: dict[str, Any], outputs: list[str], name: str = "",
        scope: Any = None, importer: Any = None, proto: Any = None,
    ):  # fmt: skip
        self.op, self.domain, self.opset, self.name = op, domain, opset, name
        self.attributes, self.outputs = attributes, outputs
        self.scope, self.importer, self.proto = scope, importer, proto

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute, or the default where it is not given."""
        value = self.attributes.get(name)
        return default if value is None else value

    def wants(self, i: int) -> bool:
        """Whether output i has a name."""
        return i < len(self.outputs) and bool(self.outputs[i])

    def like(self, op: str, attributes: dict[str, Any] | None = None, opset: int | None = None) -> Node:
        """A node of another op, for a handler that another one uses."""
        given = self.attributes if attributes is None else attributes
        return Node(
            op, "", self.opset if opset is None else opset, given, ["y"], self.name, self.scope, self.importer
        )


def same_domain(domain: str) -> str:
    """The one spelling of a domain: ai.onnx is also called ''."""
    return "" if domain == "ai.onnx" else domain


def shown(name: str) -> str:
    """A name of a file for a message: what moves the cursor or turns the direction of text is spelled out."""
    return repr(name)[1:-1]


def op_name(domain: str, op: str) -> str:
    """An op for a message, with its domain unless that is ai.onnx."""
    return shown(f"{domain}.{op}" if same_domain(domain) else op)


def onnx_op(
    *names: str,
    since: int = 1,
    domain: str = "",
    numbers: Iterable[int] = (),
    quantized: Iterable[int] = (),
    may_grow: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function the handler of ops, from the opset `since` on until a later handler's."""

    def put(fn: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            _add(domain, name, Handler(fn, since, frozenset(numbers), frozenset(quantized), may_grow))
        return fn

    return put


def _add(domain: str, name: str, handler: Handler) -> None:
    found = _HANDLERS.setdefault((same_domain(domain), name), [])
    found[:] = sorted((*(h for h in found if h.since != handler.since), handler), key=lambda h: h.since)


def register(domain: str, op: str, since: int = 1, *, numbers: Iterable[int] = ()) -> Callable[..., Any]:
    """Makes a function the handler of op `domain.op`: dovetail.onnx.register("com.acme", "Foo", since=1)(fn).

    fn(node, *values) returns the op's result, or a tuple of them. node.get("alpha", 1.0) is an attribute,
    node.opset the model's version of the domain, node.wants(1) whether the model uses the second result. Values are
    dovetail's arrays, traced ones while a program is made, or None for operands that are not there. `numbers`:
    operands whose elements fn reads, as shapes and axes: dovetail.onnx.values.integers(x) gives them. fn serves
    models from the opset `since` on, before ONNX's own functions and instead of a handler of this package.
    """
    if (
        not isinstance(domain, str)
        or not isinstance(op, str)
        or isinstance(since, bool)
        or not isinstance(since, int)
    ):
        raise TypeError(
            f"[register] got ({domain!r}, {op!r}, since={since!r}), expected two strings and an integer"
        )

    def put(fn: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(fn):
            raise TypeError(
                f"[register] {domain}.{op}: got {type(fn).__name__}, expected a function (node, *values)"
            )
        _add(domain, op, Handler(fn, since, frozenset(numbers), frozenset(), True, own=True))
        return fn

    return put


def find_handler(domain: str, op: str, opset: int) -> Handler | None:
    found = _HANDLERS.get((domain, op), ())
    at = bisect_right(found, opset, key=lambda h: h.since)
    return found[at - 1] if at else None


def handled() -> dict[tuple[str, str], list[int]]:
    """The ops with handlers, and from which opsets on each serves."""
    return {key: [h.since for h in found] for key, found in _HANDLERS.items()}
