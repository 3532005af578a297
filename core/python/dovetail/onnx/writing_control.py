"""Nodes that hold programs: If, Loop and Scan; and rounds whose number is fixed, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import helper

from dovetail.onnx.values import number_of_dtype
from dovetail.onnx.writer import Node, Type, Writer
from dovetail.onnx.writing import rule

_MOST_UNROLLED = 64  # rounds


def _program(n: Node, name: str) -> dict[str, Any]:
    """The program of an attribute, with the programs that it may hold itself."""
    return n.w.program["programs"][n.at[name]["program"]]


def _port(name: str, kind: Type) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, number_of_dtype(kind[0]), [None] * len(kind[1]))


def _graph(
    n: Node, inner: Writer, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[tuple[str, Type]]
) -> Any:
    """The subgraph of a writer's nodes. An output is the result of a node of its own."""
    ports = [_port(inner.add("Identity", [name]), kind) for name, kind in outputs]
    return helper.make_graph(inner.nodes, n.w.file.name(n.op), list(inputs), ports)


def _types(inner: Writer) -> list[Type]:
    return [inner.type_of(x) for x in inner.program["outputs"]]


@rule("cond")
def cond(n: Node) -> Any:
    graphs = {}
    for name, branch in (("then", "then_branch"), ("else", "else_branch")):
        kinds = [n.type(i) for i in range(1, len(n))]
        inner = n.w.within(_program(n, name), kinds, n.xs()[1:])
        made = inner.run()
        graphs[branch] = _graph(n, inner, [], list(zip(made, _types(inner))))
    return n.w.add("If", [n.x()], n.n_out, **graphs)


@rule("while_loop")
def while_loop(n: Node) -> Any:
    kinds = [n.type(i) for i in range(len(n))]
    first = n.w.within(_program(n, "cond"), kinds, n.xs())
    go = first.run()[0]
    n.w.nodes += first.nodes
    names = [n.w.file.name("carry") for _ in kinds]
    body = n.w.within(_program(n, "body"), kinds, names)
    made = body.run()
    again = body.within(_program(n, "cond"), kinds, made)
    goes = again.run()[0]
    body.nodes += again.nodes
    inputs = [_port(n.w.file.name("i"), ("int64", ())), _port(n.w.file.name("go"), ("bool", ())),
              *map(_port, names, kinds)]  # fmt: skip
    graph = _graph(n, body, inputs, [(goes, ("bool", ())), *zip(made, kinds)])
    return n.w.add("Loop", ["", go, *n.xs()], n.n_out, body=graph)


@rule("scan")
def scan(n: Node) -> Any:
    k = n.at["n_carry"]
    kinds = [n.type(i) for i in range(len(n))]
    kinds = kinds[:k] + [(dtype, shape[1:]) for dtype, shape in kinds[k:]]
    names = [n.w.file.name("carry" if i < k else "element") for i in range(len(kinds))]
    inner = n.w.within(_program(n, "body"), kinds, names)
    made = inner.run()
    if len(n) > k:
        graph = _graph(n, inner, list(map(_port, names, kinds)), list(zip(made, _types(inner))))
        return n.w.add("Scan", n.xs(), n.n_out, body=graph, num_scan_inputs=len(n) - k)
    go = n.w.file.name("go")
    inputs = [_port(n.w.file.name("i"), ("int64", ())), _port(go, ("bool", ())), *map(_port, names, kinds)]
    graph = _graph(n, inner, inputs, [(go, ("bool", ())), *zip(made, _types(inner))])
    return n.w.add("Loop", [n.w.scalar_of(n.at["length"]), n.w.constant(True), *n.xs()], n.n_out, body=graph)


@rule("loop")
def loop(n: Node) -> Any:
    """Rounds that may change shapes: one after the other where their number is fixed, else a Loop."""
    given = n.at["numbers"] or []
    if isinstance(n.at["count"], int) and n.at["count"] <= _MOST_UNROLLED:
        values, kinds = n.xs(), [n.type(i) for i in range(len(n))]
        for i in range(n.at["count"]):
            inner = _round(n, given, kinds, values, i, n.w.ints_scalar(i))
            values, kinds = inner.run(), _types(inner)
            n.w.nodes += inner.nodes
        return values
    kinds = [n.type(i) for i in range(len(n))]
    names = [n.w.file.name("carry") for _ in kinds]
    index, go = n.w.file.name("i"), n.w.file.name("go")
    inner = _round(n, given, kinds, names, 0, index)
    made = inner.run()
    inputs = [_port(index, ("int64", ())), _port(go, ("bool", ())), *map(_port, names, kinds)]
    graph = _graph(n, inner, inputs, [(go, ("bool", ())), *zip(made, _types(inner))])
    return n.w.add("Loop", [n.w.scalar_of(n.at["count"]), n.w.constant(True), *n.xs()], n.n_out, body=graph)


def _round(n: Node, given: Any, kinds: list[Type], values: list[str], i: int, index: str) -> Writer:
    """The writer of a round: i is its number where the file is written, `index` its name."""
    known = {(0,): i} | {(1, k): v for k, v in enumerate(n.static("numbers") or [])}
    names = [n.w.scalar_of(v) for v in given]
    inner = n.w.within(_program(n, "body"), kinds, values, known)
    inner.attributes = lambda of: index if of[0] == 0 else names[of[1]]
    return inner
