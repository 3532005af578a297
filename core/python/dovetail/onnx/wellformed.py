"""What a model must be like whatever its ops are: names are text, each value is made once, each output is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import onnx
from onnx import AttributeProto, NodeProto

from dovetail.onnx.registry import shown

__all__ = ["all_graphs", "expect_well_formed", "graphs_of", "problems"]


def expect_well_formed(source: Any) -> None:
    """Raises ValueError with the first problem of a model."""
    for problem in problems(source):
        raise ValueError(f"[{source.name}] {problem}; export the model again")


def problems(source: Any) -> Iterator[str]:
    """What is wrong with names in a model's graphs and functions, in words."""
    graph = source.model.graph
    for inner in all_graphs(source.model):
        where = "" if inner is graph else f"in the subgraph '{shown(inner.name)}': "
        yield from (where + problem for problem in _of_graph(inner))
    for function in source.model.functions:
        where = f"in the function '{shown(function.name)}': "
        texts = _no_text("a domain, name, input or output",
                         [function.domain, function.name, *function.input, *function.output])  # fmt: skip
        made = _twice("input", function.input)
        yield from (where + problem for problem in (*texts, *made, *_of_nodes(function.node, function.input)))
    yield from _twice("output", [o.name for o in graph.output])
    made = {name for node in graph.node for name in node.output} | set(_given(graph))
    for port in graph.output:
        if port.name not in made:
            yield f"output {port.name!r}: no node makes it"


def _given(graph: onnx.GraphProto) -> list[str]:
    tensors = [t.name for t in graph.initializer] + [t.values.name for t in graph.sparse_initializer]
    return list(dict.fromkeys([*(port.name for port in graph.input), *tensors]))


def _of_graph(graph: onnx.GraphProto) -> Iterator[str]:
    tensors = [t.name for t in graph.initializer] + [t.values.name for t in graph.sparse_initializer]
    ports = (*graph.input, *graph.output)
    sizes = [dim.dim_param for port in ports for dim in port.type.tensor_type.shape.dim]
    yield from _no_text("an input, output, initializer or size", [*(p.name for p in ports), *tensors, *sizes])
    yield from _twice("input", [port.name for port in graph.input])
    yield from _twice("initializer", tensors)
    yield from _of_nodes(graph.node, _given(graph))


def _of_nodes(nodes: Iterable[NodeProto], given: Iterable[str]) -> Iterator[str]:
    by = dict.fromkeys(given, "an input or initializer")
    for i, node in enumerate(nodes):
        names = [node.name, node.op_type, node.domain, node.overload, *node.input, *node.output]
        yield from _no_text(f"node {i}: a name", [*names, *(a.name for a in node.attribute)])
        for name in filter(None, node.output):
            if name in by:
                yield f"value {name!r} is made twice: by {by[name]} and by node {i} {shown(node.op_type)}"
            by.setdefault(name, f"node {i} {shown(node.op_type)}")


def _twice(what: str, names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield f"{what} {name!r} is there twice"
        seen.add(name)


def _no_text(what: str, names: Iterable[Any]) -> Iterator[str]:
    """protobuf returns bytes for what is no UTF-8."""
    for name in names:
        if isinstance(name, bytes):
            yield f"{what}: {name[:100]!r} is no text in UTF-8"
            return


# ---- graphs within graphs ----------------------------------------------------------------------------------------


def graphs_of(node: NodeProto) -> Iterator[onnx.GraphProto]:
    """The subgraphs among a node's attributes."""
    for a in node.attribute:
        if a.type == AttributeProto.GRAPH:
            yield a.g
        yield from a.graphs


def all_graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """The main graph, its subgraphs and those of functions."""
    todo = [model.graph, *(g for f in model.functions for node in f.node for g in graphs_of(node))]
    while todo:
        graph = todo.pop()
        yield graph
        todo += [g for node in graph.node for g in graphs_of(node)]
