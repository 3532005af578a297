"""What a model needs and does not get: all of it at once, without running anything."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import onnx
from onnx import NodeProto, TensorProto

from dovetail import _core
from dovetail.onnx import wellformed
from dovetail.onnx.functions import has_function, missing
from dovetail.onnx.limits import Limits
from dovetail.onnx.reader import Source, read
from dovetail.onnx.registry import find_handler, op_name, same_domain
from dovetail.onnx.values import DTYPES, STRING
from dovetail.onnx.wellformed import all_graphs, graphs_of

__all__ = ["Kernel", "Report", "Row", "check", "missing_ops"]

_MOST_SHOWN = 30


class Row(NamedTuple):
    """An op of a model: how often it is there and how it is served: "handler", "function" (ONNX's or the model's
    own definition), or "missing"."""

    op: str
    opset: int
    count: int
    by: str


class Kernel(NamedTuple):
    """An op of the program and a device: "native", "decomposition" or "missing"."""

    op: str
    dtype: str
    count: int
    by: str


class Report(NamedTuple):
    """What dovetail.onnx.check finds. Its text lists the problems, and what serves each op."""

    model: str
    rows: tuple[Row, ...]
    problems: tuple[str, ...]
    device: str
    kernels: tuple[Kernel, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is missing."""
        return not self.problems

    def __str__(self) -> str:
        lines = [f"{self.model}: {'nothing is missing' if self.ok else f'{len(self.problems)} problems'}"]
        lines += [f"  {problem}" for problem in self.problems]
        lines += [f"  {row.count:5} {row.op}-{row.opset}: {row.by}" for row in self.rows]
        if self.kernels:
            lines.append(f"on {self.device}:")
            lines += [f"  {k.count:5} {k.op} {k.dtype}: {k.by}" for k in self.kernels]
        return "\n".join(lines)


def check(model: Any, device: Any = None, *, limits: Limits | None = None) -> Report:
    """A Report of everything that is missing to load a model and to run it on a device; nothing runs.

    model: as load takes it. device: the program is made, on the host's default device and without folding, and the
    report has a row for each of its ops with what the device has for it. Raises ValueError for what is no model.
    """
    source = read(model)
    names = tuple(wellformed.problems(source))
    if names:
        return Report(source.name, (), names, str(device or ""), ())
    rows, problems = _ops(source), [*_tensors(source), *_types(source.model)]
    problems += [missing(row.op, row.opset) for row in rows if row.by == "missing"]
    kernels: list[Kernel] = []
    if device is not None:
        from dovetail import _devices

        device = _devices.device(device)
        if not problems:
            kernels, why = _kernels(source, device, limits or Limits())
            problems += why
    return Report(source.name, tuple(rows), tuple(dict.fromkeys(problems)), str(device or ""), tuple(kernels))


def missing_ops(source: Source) -> str:
    """A message that names all ops without handler or definition; empty where there is none."""
    lacking = [row for row in _ops(source) if row.by == "missing"]
    if not lacking:
        return ""
    if len(lacking) == 1:
        where = _first(source, lacking[0])
        return f"[{source.name}] {where}: {missing(lacking[0].op, lacking[0].opset)}"
    listed = ", ".join(f"{row.op}-{row.opset} ({row.count} times)" for row in lacking[:_MOST_SHOWN])
    return (
        f"[{source.name}] {len(lacking)} ops have no handler: {listed}; register them with "
        "dovetail.onnx.register, or export the model without them"
    )


def _first(source: Source, row: Row) -> str:
    for i, node in enumerate(source.model.graph.node):
        if row.op == op_name(node.domain, node.op_type):
            return f"node {i} {node.name or next(iter(node.output), '')!r}"
    return "a node in a subgraph or function"


# ---- ops ---------------------------------------------------------------------------------------------------------


def _nodes(nodes: Iterable[NodeProto], depth: int = 0) -> Iterator[NodeProto]:
    if depth > 64:
        return
    for node in nodes:
        yield node
        for graph in graphs_of(node):
            yield from _nodes(graph.node, depth + 1)


def _ops(source: Source) -> list[Row]:
    """A row for each op that is reached from the main graph."""
    found: Counter[tuple[str, str, int]] = Counter()
    by: dict[tuple[str, str, int], str] = {}
    called: list[Any] = []
    todo: list[tuple[Iterable[NodeProto], dict[str, int]]] = [(source.model.graph.node, source.opsets)]
    while todo:
        nodes, opsets = todo.pop()
        for node in _nodes(nodes):
            domain = same_domain(node.domain)
            key = domain, node.op_type, opsets.get(domain, 1)
            found[key] += 1
            function = source.functions.get((domain, node.op_type, node.overload))
            if function is not None and function not in called:
                called.append(function)
                todo.append(
                    (function.node, {same_domain(o.domain): o.version for o in function.opset_import} or opsets)
                )
            by[key] = _served(key, function is not None)
    rows = [Row(op_name(d, op), v, n, by[d, op, v]) for (d, op, v), n in found.items()]
    return sorted(rows, key=lambda row: (row.by != "missing", row.op))


def _served(key: tuple[str, str, int], by_model: bool) -> str:
    domain, op, opset = key
    if by_model:
        return "function"
    if find_handler(domain, op, opset) is not None:
        return "handler"
    return "function" if has_function(op, opset, domain) else "missing"


# ---- tensors and types -------------------------------------------------------------------------------------------


def _tensors(source: Source) -> Iterator[str]:
    """Problems of constants: their dtypes, their shapes, and files that are not there."""
    for graph in all_graphs(source.model):
        given = [
            t for node in graph.node for a in node.attribute for t in ([a.t] if a.HasField("t") else a.tensors)
        ]
        for t in (*graph.initializer, *given):
            try:
                if t.data_location == TensorProto.EXTERNAL:
                    source.array(t)
                elif t.data_type not in DTYPES and t.data_type != STRING:
                    yield f"tensor {t.name!r}: ONNX's dtype {t.data_type} is not one of dovetail's; cast it"
            except (ValueError, OSError, NotImplementedError) as error:
                yield str(error)


def _types(model: onnx.ModelProto) -> Iterator[str]:
    for port in (*model.graph.input, *model.graph.output):
        if port.type.WhichOneof("value") == "tensor_type":
            dtype = port.type.tensor_type.elem_type
            if dtype and dtype not in DTYPES and dtype != STRING:
                yield f"value {port.name!r}: ONNX's dtype {dtype} is not one of dovetail's; cast it when exporting"


# ---- kernels -----------------------------------------------------------------------------------------------------


def _kernels(source: Source, device: Any, limits: Limits) -> tuple[list[Kernel], list[str]]:
    from dovetail import _devices
    from dovetail.onnx.model import Model

    model = Model(source, _devices.device(None), limits, {}, folds=False)
    try:
        program = model.program
    except ValueError as error:
        return [], [f"{error} (so what {device} lacks is known only when it runs)"]
    described = json.loads(program.text())
    shapes = [[n if isinstance(n, int) else 24 for n in port.shape] for port in program.inputs]
    try:
        types = program._core.types(shapes)
    except ValueError:
        types = []
    found: Counter[tuple[str, str, str]] = Counter()
    for node in described["nodes"]:
        first = next((x for x in node["in"] if x is not None), None)
        dtype = _dtype_of(first, types, described)
        found[node["op"], dtype, _support(device, node["op"], dtype)] += 1
    kernels = [Kernel(op, dtype, n, by) for (op, dtype, by), n in sorted(found.items())]
    lacking = [
        f"{k.op}({k.dtype}) has no kernel on {device} and no decomposition" for k in kernels if k.by == "missing"
    ]
    within = program._core.missing(device)  # of the functions of control ops, too
    return kernels, lacking or ([within] if within else [])


def _dtype_of(x: Any, types: list[Any], described: dict[str, Any]) -> str:
    if isinstance(x, int):
        return types[x][0] if x < len(types) else "?"
    if isinstance(x, dict) and "tensor" in x:
        return described["tensors"][x["tensor"]]["dtype"]
    return x.get("dtype", "?") if isinstance(x, dict) else "?"


def _support(device: Any, op: str, dtype: str) -> str:
    """What a device has for an op in a dtype; of ops without operands, or that only make views, "native"."""
    table = _core.support(device.name, op)
    brief = _core.dtypes[dtype].brief if dtype in _core.dtypes else None
    if brief is None or not table:
        return "native"
    by = table.get(brief, ("none", False))[0]
    return {"none": "missing"}.get(by, by)
