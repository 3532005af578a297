"""Cuts a graph of torch into parts that are programs and nodes that torch runs."""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import Any

import dovetail as dt
import torch
from dovetail import _core
from dovetail._array import recording_on
from dovetail._record import FunctionGraph
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from dovetail_torch.compile.graph import Lowering, Problem, is_of_tensors, source_of
from dovetail_torch.compile.sizes import Sizes, symbol_sizes
from dovetail_torch.compile.table import Unsupported, dtype_name

__all__ = ["MOVES", "cut", "devices_of"]

_aten = torch.ops.aten
MOVES = {
    _aten._to_copy.default, _aten._unsafe_view.default, _aten.alias.default, _aten.clone.default,
    _aten.detach.default, _aten.diagonal.default, _aten.expand.default, _aten.permute.default,
    _aten.reshape.default, _aten.select.int, _aten.slice.Tensor, _aten.split.Tensor,
    _aten.split_with_sizes.default, _aten.squeeze.default, _aten.squeeze.dim, _aten.squeeze.dims, _aten.t.default,
    _aten.transpose.int, _aten.unbind.int, _aten.unsqueeze.default, _aten.view.default, operator.getitem,
}  # fmt: skip
"""Ops whose results may share memory with their first operand."""


class _Support(OperatorSupportBase):
    def __init__(self, names: set[str]):
        self.names = names  # fusing makes new nodes of the same names

    def is_node_supported(self, submodules: Any, node: torch.fx.Node) -> bool:
        return node.name in self.names


def cut(gm: torch.fx.GraphModule) -> tuple[list[tuple[str, torch.device]], list[Problem]]:
    """Makes submodules of what can be a program. Returns their names and devices, and the nodes that torch runs.

    A part of nothing but views is no program.
    """
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder" and isinstance(_value(n), torch.Tensor)]
    sizes = symbol_sizes(placeholders)
    problems = _refused(gm.graph.nodes, placeholders, sizes)
    lowered: dict[torch.device, set[str]] = {}
    for node in gm.graph.nodes:
        if (
            node.op == "call_function" and is_of_tensors(node) and node not in problems
            and not (node.target is operator.getitem and node.args[0] in problems)
        ):  # fmt: skip
            lowered.setdefault(*devices_of(node), set()).add(node.name)
    for i, names in enumerate(lowered.values()):
        while True:
            partitioner = CapabilityBasedPartitioner(gm, _Support(names), allows_single_node_partition=True)
            parts = [
                part
                for part in partitioner.propose_partitions()
                if any(node.target not in MOVES for node in part.nodes)
            ]
            lost = [found for part in parts for found in _without_sizes(part.nodes, sizes).items()]
            if not lost:
                break
            problems.update(lost)
            for node, _ in lost:
                names -= {node.name, *(user.name for user in node.users if user.target is operator.getitem)}
        partitioner.fuse_partitions(parts, prefix=f"fused_{i}_")
    made = [str(n.target) for n in gm.graph.nodes if n.op == "call_module" and str(n.target).startswith("fused_")]
    devices = list(lowered)
    return [(name, devices[int(name.split("_")[1])]) for name in made], list(problems.values())


def devices_of(node: torch.fx.Node) -> set[torch.device]:
    """Those of a node's tensors."""
    values = [_value(n) for n in (node, *node.all_input_nodes)]
    flat = [v for value in values for v in (value if isinstance(value, (tuple, list)) else [value])]
    return {v.device for v in flat if isinstance(v, torch.Tensor)}


# ---- which nodes can be lowered ----------------------------------------------------------------------------------


def _without_sizes(part: Collection[torch.fx.Node], sizes: Sizes) -> dict[torch.fx.Node, Problem]:
    """The nodes of a part that use a size which is one of the graph's inputs, and of none of the part's."""
    given = dict.fromkeys(n for node in part for n in node.all_input_nodes if n not in part)
    inputs = [n for n in given if isinstance(_value(n), torch.Tensor)]
    if sizes.keys() <= {n.node.expr for x in inputs for n in _value(x).shape if isinstance(n, torch.SymInt)}:
        return {}
    return _refused(part, inputs, sizes)


def _refused(
    nodes: Collection[torch.fx.Node], inputs: list[torch.fx.Node], sizes: Sizes
) -> dict[torch.fx.Node, Problem]:
    """The nodes of which no program of these inputs can be made, found by lowering each by itself."""
    graph = FunctionGraph(_core.ProgramBuilder(), "probe", dt.device(None))
    found: dict[torch.fx.Node, Problem] = {}
    values: dict[torch.fx.Node, Any] = {}
    for node in (*inputs, *nodes):
        if not is_of_tensors(node):
            continue
        try:
            values[node] = _stand_in(graph, _value(node), sizes)
        except NotImplementedError as error:
            found[node] = _problem(node, error)
    lowering = Lowering({n: values[n] for n in inputs if n in values})
    lowering.values = _Values(values)
    try:
        with recording_on(graph):
            for node in nodes:
                if node.op != "call_function" or not is_of_tensors(node) or node.target is operator.getitem:
                    continue
                devices = sorted(map(str, devices_of(node)))
                if len(devices) > 1:
                    found[node] = _problem(node, Unsupported(f"tensors on {' and '.join(devices)}"))
                else:
                    _try(lowering, node, found)
    finally:
        graph.end()
    for node in inputs:
        found.pop(node, None)
    return {n: p for n, p in found.items() if n.op == "call_function"}


class _Values(dict[torch.fx.Node, Any]):
    """Of each node what stands for its result: a lowering writes none."""

    def __setitem__(self, node: torch.fx.Node, value: Any) -> None:
        pass


def _try(lowering: Lowering, node: torch.fx.Node, found: dict[torch.fx.Node, Problem]) -> None:
    try:
        lowering.node(node)
    except (NotImplementedError, TypeError, ValueError, IndexError) as error:  # rules refuse what torch takes
        found[node] = _problem(node, error)


def _problem(node: torch.fx.Node, error: Exception) -> Problem:
    file, line = source_of(node.meta.get("stack_trace"))
    return Problem(str(node.target), f"{file}:{line}", str(error) or type(error).__name__)


def _value(node: torch.fx.Node) -> Any:
    return node.meta.get("val")


def _stand_in(graph: FunctionGraph, value: Any, sizes: Sizes) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(_stand_in(graph, v, sizes) for v in value)
    if not isinstance(value, torch.Tensor):
        return value
    if value.device.type not in ("cpu", "dovetail") or value.layout != torch.strided:
        raise Unsupported(f"a tensor on {value.device} with the layout {value.layout}")
    try:
        now = [n if isinstance(n, int) else int(n.node.expr.xreplace(sizes)) for n in value.shape]
    except TypeError as error:
        raise Unsupported(f"the shape {list(value.shape)}, which depends on elements") from error
    shape = [n if isinstance(n, int) else None for n in value.shape]
    made = graph.builder.input(dtype_name(value.dtype), shape, "", now)
    graph.fixed |= {(made, axis) for axis, n in enumerate(shape) if n is not None}
    return graph.tracer(made)
