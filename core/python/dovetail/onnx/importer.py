"""Runs the nodes of a model: on arrays at once, or on traced arrays, whose program is then the model's.

A node is run by its handler; by the model's own function; or by the function that ONNX defines the op with. A node
of which everything is known is computed at once, also in a trace: so constants are folded without a further pass.
What would be larger than its operands is not folded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, NodeProto, helper

from dovetail import _core
from dovetail._array import recording_on
from dovetail._core import Array
from dovetail._record import TypesGraph
from dovetail._tracer import TraceError
from dovetail.onnx import functions, symbolic
from dovetail.onnx.limits import Budget, Limits
from dovetail.onnx.reader import Source
from dovetail.onnx.registry import Handler, Node, find_handler, op_name, same_domain, shown
from dovetail.onnx.values import Dynamic, NeedsValue, Sizes, arrays_of, is_constant, is_traced

__all__ = ["Importer", "Scope", "names_used"]

_SMALL = 1024  # bytes that are folded in any case


class Opaque:
    """A value that no program can hold: strings and maps, in a trace."""


class Scope:
    """Values by name, within those of a graph around it, and what the attributes of a function's call are."""

    def __init__(
        self, parent: Scope | None, opsets: dict[str, int], attributes: dict[str, AttributeProto] | None = None
    ):
        self.values: dict[str, Any] = {}
        self.parent, self.opsets, self.attributes = parent, opsets, attributes or {}

    def get(self, name: str) -> Any:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.parent
        raise ValueError(f"value {name!r} is used before a node makes it; export the model again")

    def inner(self) -> Scope:
        return Scope(self, self.opsets, self.attributes)


_call = compile("run()", "", "eval")


def _placed(file: str, number: int, run: Callable[[], Any]) -> None:
    """run(), called from this place in the model, as "m.onnx:17" for node 17: programs note it with their nodes."""
    exec(_call.replace(co_filename=file, co_firstlineno=number), {"run": run})


class Importer:
    """One pass over nodes of a model, within a budget."""

    def __init__(self, source: Source, limits: Limits, numbers: Sequence[int], folds: bool = True):
        self.source = source
        self.budget = Budget(limits, source.name)
        self.numbers, self.folds = numbers, folds  # of the main graph's nodes in the file
        self.at = -1  # the node of the main graph

    # ---- graphs

    def run(self, nodes: Sequence[NodeProto], scope: Scope, first: int | None = None, dies: Any = None) -> None:
        """Runs nodes one after the other. first: the number of the first one in the main graph; dies: the names
        that nothing after each node uses."""
        for i, proto in enumerate(nodes):
            if first is None:
                self.node(proto, scope)
            else:
                self.at = first + i
                _placed(self.source.name, self.numbers[self.at], lambda p=proto: self.node(p, scope))
            for name in dies[i] if dies else ():
                scope.values.pop(name, None)

    def graph(self, graph: onnx.GraphProto, scope: Scope, operands: Sequence[Any] = ()) -> list[Any]:
        """The outputs of a subgraph."""
        self.budget.enter()
        try:
            inner = scope.inner()
            for t in graph.initializer:
                inner.values[t.name] = self.source.constant(t)
            for t in graph.sparse_initializer:
                inner.values[t.values.name] = self.sparse(t)
            for port, value in zip(graph.input, operands):
                inner.values[port.name] = value
            self.run(graph.node, inner)
            return arrays_of([inner.get(o.name) for o in graph.output])
        finally:
            self.budget.leave()

    def sparse(self, t: onnx.SparseTensorProto) -> Any:
        """A sparse tensor as a dense one."""
        from dovetail.onnx.values import constant

        values, indices = self.source.array(t.values), self.source.array(t.indices)
        dense = np.zeros(tuple(t.dims), values.dtype)
        if indices.ndim == 2:
            dense[tuple(indices.T)] = values
        else:
            dense.reshape(-1)[indices] = values
        return constant(dense)

    # ---- one node

    def node(self, proto: NodeProto, scope: Scope) -> None:
        self.budget.visit()
        domain = same_domain(proto.domain)
        try:
            values = [scope.get(name) if name else None for name in proto.input]
            if any(isinstance(v, Opaque) for v in values):
                raise Dynamic("it takes strings or maps, which are on the host")
            results = self._results(proto, domain, values, scope)
        except NeedsValue as need:
            held = [name for name, v in zip(proto.input, values) if v is need.value]
            need.names = held or sorted(names_used(proto))
            raise
        except TraceError as error:
            raise Dynamic(str(error)) from error
        except Dynamic:
            raise
        except Exception as error:
            raise self._named(error, proto, domain) from error.__cause__
        results = results if isinstance(results, tuple) else (results,)
        if sum(map(bool, proto.output)) > len(results):
            raise ValueError(
                f"[{self.source.name}] {self._place(proto)}: {shown(proto.op_type)} has {len(results)} outputs "
                f"here, the node names {len(proto.output)}; export it again"
            )
        for name, value in zip(proto.output, results):
            if name:
                scope.values[name] = value

    def _results(self, proto: NodeProto, domain: str, values: list[Any], scope: Scope) -> Any:
        key = (domain, proto.op_type, proto.overload)
        opset = scope.opsets.get(domain, 1)
        if key in self.source.functions:
            return functions.call(self, self.source.functions[key], proto, arrays_of(values), scope)
        handler = find_handler(domain, proto.op_type, opset)
        if handler is None:
            return functions.expand(self, proto, domain, opset, arrays_of(values), scope)
        return self.call(handler, self.described(proto, domain, opset, scope), values)

    def described(self, proto: NodeProto, domain: str, opset: int, scope: Scope) -> Node:
        attributes = {}
        for a in proto.attribute:
            found = scope.attributes.get(a.ref_attr_name) if a.ref_attr_name else a
            if found is not None:
                attributes[a.name] = _attribute(found)
        return Node(proto.op_type, domain, opset, attributes, list(proto.output), proto.name, scope, self, proto)

    def by_definition(self, node: Node, values: Sequence[Any]) -> Any:
        """The results of a node by ONNX's own definition, for a handler that does not have all of the op."""
        values = list(values)[: len(node.proto.input)]
        return functions.expand(self, node.proto, node.domain, node.opset, values, node.scope)

    def call(self, handler: Handler, node: Node, values: list[Any]) -> Any:
        """The handler's results: computed at once where all is known, recorded in a trace otherwise."""
        values = arrays_of(values, handler.quantized)
        if any(isinstance(v, Sizes) for v in values):
            made = symbolic.folded(node, values)
            if made is not None:
                return made
            values = [
                v.array() if isinstance(v, Sizes) and i not in handler.numbers else v for i, v in enumerate(values)
            ]
        if _core.recorder() is not None and all(map(is_constant, values)) and not _has_graphs(node):
            made = self._folded(handler, node, values)
            if made is not None:
                return made
        return handler.fn(node, *values)

    def _folded(self, handler: Handler, node: Node, values: list[Any]) -> Any:
        """The results of a node without unknown operands, if they are not larger than these."""
        if node.op.startswith(("Random", "Bernoulli", "Multinomial")) or (values and not self.folds):
            return None
        given = sum(map(_bytes, values))
        if (handler.may_grow or given > _SMALL) and not any(isinstance(v, np.ndarray) for v in values):
            made = self._size_of_results(handler, node, values)
            if made is not None and made > max(given, _SMALL):
                return None
            if not self.budget.fold(made if made is not None else given):
                return None
        with recording_on(None):
            return handler.fn(node, *values)

    def folded(self, function: Callable[[Any], Any], value: Any) -> Any:
        """function(value), whose result is no larger than the value: computed at once where that is a constant."""
        known = isinstance(value, Array) and is_constant(value)
        if _core.recorder() is None or not known or not self.folds or not self.budget.fold(_bytes(value)):
            return function(value)
        with recording_on(None):
            return function(value)

    @staticmethod
    def _size_of_results(handler: Handler, node: Node, values: list[Any]) -> int | None:
        graph = TypesGraph(_core.ProgramBuilder(), node.op, _default_device())
        try:
            with recording_on(graph):
                made = handler.fn(node, *[graph.value(v) if isinstance(v, Array) and i not in handler.numbers else v
                                          for i, v in enumerate(values)])  # fmt: skip
            return sum(map(_bytes, made if isinstance(made, tuple) else (made,)))
        except (NeedsValue, Dynamic, TraceError):
            return None
        finally:
            graph.end()

    # ---- errors

    def _place(self, proto: NodeProto) -> str:
        name = proto.name or next(filter(None, proto.output), "")
        return f"node {self.numbers[self.at]} {name!r}" if self.at >= 0 else f"node {name!r}"

    def _named(self, error: Exception, proto: NodeProto, domain: str) -> Exception:
        """The error with the node's name, once."""
        if getattr(error, "_dovetail_onnx", False) or str(error).startswith(f"[{self.source.name}]"):
            return error
        text = f"[{self.source.name}] {self._place(proto)} ({op_name(domain, proto.op_type)}): {error}"
        kind = type(error)
        if not isinstance(
            error, (ValueError, TypeError, IndexError, MemoryError, NotImplementedError, RuntimeError)
        ):
            kind = ValueError  # what Python raises for attributes that are missing or of another kind
            text += f" ({type(error).__name__}); the node's attributes or operands are not those of the op"
        try:
            named = kind(text)
        except TypeError:
            named = ValueError(text)
        named._dovetail_onnx = True  # type: ignore[attr-defined]
        named.__cause__ = error
        return named


def _default_device() -> Any:
    from dovetail import _devices

    return _devices.device(None)


def _bytes(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(_bytes, value))
    if isinstance(value, (Array, Sizes)) or is_traced(value):
        n = 1
        for size in value.shape:
            n *= int(getattr(size, "value", size))
        bits = value.dtype.bits if hasattr(value.dtype, "bits") else 64
        return -(-n * bits // 8)
    return 0


def _has_graphs(node: Node) -> bool:
    return any(isinstance(a, onnx.GraphProto) for a in node.attributes.values())


def _attribute(a: AttributeProto) -> Any:
    value = helper.get_attribute_value(a)
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if a.type == AttributeProto.STRINGS:
        return [s.decode("utf-8", "surrogateescape") for s in value]
    if a.type in (AttributeProto.FLOATS, AttributeProto.INTS):
        return list(value)
    return value


def names_used(proto: NodeProto) -> set[str]:
    """The names that a node reads, those in its subgraphs among them."""
    found = {name for name in proto.input if name}
    for a in proto.attribute:
        for graph in [a.g] if a.type == AttributeProto.GRAPH else a.graphs:
            found |= _used_by_graph(graph)
    return found


def _used_by_graph(graph: onnx.GraphProto) -> set[str]:
    used: set[str] = set()
    for node in graph.node:
        used |= names_used(node)
    used |= {o.name for o in graph.output}
    own = {name for node in graph.node for name in node.output}
    own |= {i.name for i in graph.input} | {t.name for t in graph.initializer}
    return used - own


def deaths(nodes: Sequence[NodeProto], keep: Iterable[str]) -> list[set[str]]:
    """For each node the names that no later one reads."""
    alive, found = set(keep), []
    for node in reversed(nodes):
        used = names_used(node) | {name for name in node.output if name}
        found.append(used - alive)
        alive |= used
    return found[::-1]
