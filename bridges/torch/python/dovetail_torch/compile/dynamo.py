"""torch.compile(model, backend="dovetail"): graphs of torch run as programs of dovetail."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dovetail as dt
import torch

from dovetail_torch.compile import decompositions
from dovetail_torch.compile.arrays import place_of
from dovetail_torch.compile.graph import Lowering, Problem
from dovetail_torch.compile.partition import MOVES, cut, devices_of
from dovetail_torch.compile.runner import Runner, order_of
from dovetail_torch.compile.sizes import sizes_of, symbol_sizes, traced, traced_for

__all__ = ["Report", "backend", "report"]


@dataclass
class Report:
    """What torch.compile(backend="dovetail") has compiled in this process.

    graphs: of torch, forward and backward ones; programs: made of them; nodes: of torch's graphs that are in
    programs; eager: how many nodes torch runs, by (op, reason).
    """

    graphs: int = 0
    programs: int = 0
    nodes: int = 0
    eager: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __str__(self) -> str:
        lines = [f"{self.graphs} graphs of torch: {self.nodes} nodes in {self.programs} programs"]
        lines += [f"  torch runs {op} ({n}): {why}" for (op, why), n in self.eager.most_common()]
        return "\n".join(lines)


_report = Report()


def report(*, reset: bool = False) -> Report:
    """What has been compiled since the start, or since a call with reset=True."""
    global _report
    found = _report
    if reset:
        _report = Report()
    return found


def backend(
    gm: torch.fx.GraphModule, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """The backend that torch.compile finds under the name "dovetail".

    options: {"eager": "error"} raises NotImplementedError with all ops that torch would have to run; "allow", the
    default, lets torch run them, between programs. Raises ValueError for other options.
    """
    from torch._dynamo.backends.common import aot_autograd

    given = dict(options or {})
    eager = given.pop("eager", "allow")
    if given or eager not in ("allow", "error"):
        expected = '{"eager": "allow"} or {"eager": "error"}'
        raise ValueError(f"[dovetail] options: got {options!r}, expected {expected}")

    def compiled(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        from functorch.compile import make_boxed_func

        return make_boxed_func(_compiled(graph, eager))

    compiler = aot_autograd(
        fw_compiler=compiled,
        decompositions=decompositions.for_aot(),
        partition_fn=_partitioned,
    )
    return compiler(gm, example_inputs)


def _partitioned(joint: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """torch's forward and backward graph. Random numbers of a checkpoint are kept from one to the other: torch can
    draw them again, from a saved state, on devices of its own alone."""
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    for node in joint.graph.nodes:
        random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        if random and any(d.type == "dovetail" for d in devices_of(node)):
            for made in (node, *(user for user in node.users if user.target is operator.getitem)):
                made.meta.pop("recompute", None)
    return min_cut_rematerialization_partition(joint, *args, **kwargs)


def _compiled(gm: torch.fx.GraphModule, eager: str) -> Callable[..., Any]:
    static = _static_names(gm)
    parts, problems = cut(gm)
    if problems and eager == "error":
        raise NotImplementedError("[dovetail] torch would run:\n" + "\n".join(map(_line, problems)))
    _report.graphs += 1
    _report.eager.update((p.op, p.reason) for p in problems)
    for name, device in parts:
        part = gm.get_submodule(name)
        _report.programs += 1
        _report.nodes += sum(node.op == "call_function" for node in part.graph.nodes)
        setattr(gm, name, _runner(part, static, device))
    gm.recompile()
    return gm.forward


def _line(problem: Problem) -> str:
    return f"  {problem.op} at {problem.where}: {problem.reason}"


# ---- one program -------------------------------------------------------------------------------------------------


def _static_names(gm: torch.fx.GraphModule) -> set[str]:
    """The arguments that torch knows to be the same tensors in every call of a forward pass."""
    context = torch._guards.TracingContext.try_get()
    known = getattr(getattr(context, "fw_metadata", None), "static_input_indices", None) or ()
    placeholders = [node.name for node in gm.graph.nodes if node.op == "placeholder"]
    if any(name.startswith("tangents_") for name in placeholders):
        return set()
    return {placeholders[i] for i in known if i < len(placeholders)}


def _runner(part: torch.fx.GraphModule, static: set[str], device: torch.device) -> Runner:
    placeholders = [node for node in part.graph.nodes if node.op == "placeholder"]
    places = [i for i, node in enumerate(placeholders) if isinstance(node.meta["val"], torch.Tensor)]
    inputs = [placeholders[i] for i in places]
    (output,) = next(node for node in part.graph.nodes if node.op == "output").args
    outputs = list(output) if isinstance(output, (tuple, list)) else [output]

    def forward(*given: Any) -> Any:
        lowering = Lowering(dict(zip(inputs, given)))
        problems = lowering.run(part.graph.nodes)
        if problems:  # each node by itself was lowered
            raise NotImplementedError("[dovetail] " + "\n".join(map(_line, problems)))
        return [_own(lowering, node) for node in outputs]

    sizes = symbol_sizes(inputs)

    def trace(arrays: Any) -> Any:
        if arrays is None:
            return traced(forward, inputs, sizes, _ranges(inputs))
        return traced_for(forward, inputs, sizes | sizes_of(inputs, arrays))

    orders = [order_of(node.meta["val"]) for node in outputs]
    return Runner(trace, places, [node.name in static for node in inputs], orders, place_of(device))


def _own(lowering: Lowering, node: torch.fx.Node) -> Any:
    """A result with memory of its own: an array that is a part of another shares that one's."""
    at = node
    while at.op == "call_function" and at.target in MOVES:
        at = at.args[0]
    made = lowering.values[node]
    return dt.copy(made) if at.op == "placeholder" else made


def _ranges(inputs: list[torch.fx.Node]) -> dict[Any, Any]:
    for node in inputs:
        for n in node.meta["val"].shape:
            if not isinstance(n, int):
                return n.node.shape_env.var_to_range
    return {}
