"""from_exported: a model of torch.export as a Program, by a trace of its graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import dovetail as dt
import torch
from dovetail import _core
from dovetail._program import Program
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind

from dovetail_torch.compile import decompositions
from dovetail_torch.compile.graph import Lowering, Problem, at_line, needed_nodes
from dovetail_torch.compile.sizes import symbol_sizes, traced
from dovetail_torch.compile.table import dtype_name

__all__ = ["from_exported"]

_TENSORS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
_SMALLEST = 2  # torch.export assumes sizes of at least 2 where nothing else is said, and runs with others


def from_exported(model: ExportedProgram, /) -> Program:
    """The Program of a model that torch.export.export() has made.

    Its arguments are the tensors among the model's arguments, by position, under the names that torch.export gives
    them; its results have the model's structure of tuples, lists and dicts, with a number as an array without axes.
    Dynamic sizes stay dynamic, within the ranges that the model was exported with. Parameters and buffers are
    constants under their names in the model, and share its memory while the Program lives.

    Raises TypeError for anything but an ExportedProgram, NotImplementedError with all ops that have no lowering,
    and for a model that writes to its buffers or arguments.
    """
    if not isinstance(model, ExportedProgram):
        raise TypeError(
            f"[from_exported] expected what torch.export.export(model, args) returns, got {type(model).__name__}"
        )
    plain = model.run_decompositions(decompositions.for_export())
    _refuse_writes(plain)
    return _Import(plain).program()


def _name(model: ExportedProgram) -> str:
    """The name of the model's class, where a node knows it."""
    for node in model.graph.nodes:
        for path, owner in node.meta.get("nn_module_stack", {}).values():
            if path == "":
                return str(owner).rpartition(".")[2]
    return "model"


def _refuse_writes(model: ExportedProgram) -> None:
    written = {
        OutputKind.BUFFER_MUTATION: "buffer",
        OutputKind.PARAMETER_MUTATION: "parameter",
        OutputKind.USER_INPUT_MUTATION: "argument",
    }
    found = [f"{written[s.kind]} {s.target!r}" for s in model.graph_signature.output_specs if s.kind in written]
    if found:
        raise NotImplementedError(
            f"[from_exported] the model writes to its {', '.join(found)}, and a program writes to nothing: return "
            "the new value, and pass it as an argument of the next call; of batch norms, export model.eval()"
        )


class _Import:
    """One import of a model."""

    def __init__(self, model: ExportedProgram):
        self.model = model
        self.nodes = needed_nodes(model.graph)
        placeholders = {n.name: n for n in model.graph.nodes if n.op == "placeholder"}
        specs = model.graph_signature.input_specs
        self.inputs = [
            placeholders[s.arg.name]
            for s in specs
            if s.kind is InputKind.USER_INPUT and isinstance(placeholders[s.arg.name].meta.get("val"), torch.Tensor)
        ]
        self.constants = {
            placeholders[s.arg.name]: str(s.target)
            for s in specs
            if s.kind in _TENSORS and placeholders[s.arg.name] in self.nodes
        }
        self.sizes = symbol_sizes(self.inputs)

    def program(self) -> Program:
        arrays = {node: self._array(node, name) for node, name in self.constants.items()}

        def forward(*given: Any) -> Any:
            names = _core.recorder().constant_names
            names.update({id(arrays[node]): name for node, name in self.constants.items()})
            return self._results(dict(zip(self.inputs, given)), arrays)

        forward.__qualname__ = _name(self.model)
        return traced(forward, self.inputs, self.sizes, self.model.range_constraints)

    def _array(self, node: torch.fx.Node, name: str) -> Any:
        model = self.model
        tensor = model.state_dict[name] if name in model.state_dict else model.constants[name]
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
            raise TypeError(
                f"[from_exported] {name} is a {type(tensor).__name__}, whose elements are not in memory as a plain "
                "tensor's; export the model with plain tensors"
            )
        dtype_name(tensor.dtype)
        return dt.from_dlpack(tensor.detach().contiguous())

    # ---- the trace

    def _results(self, inputs: dict[torch.fx.Node, Any], arrays: dict[torch.fx.Node, Any]) -> Any:
        lowering = Lowering(inputs | arrays)
        self._expect_sizes(lowering, inputs)
        problems = lowering.run([node for node in self.model.graph.nodes if node in self.nodes])
        if problems:
            raise NotImplementedError(_listing(problems))
        (output,) = next(node for node in self.model.graph.nodes if node.op == "output").args
        specs = self.model.graph_signature.output_specs
        flat = [
            s.arg.value if isinstance(s.arg, ConstantArgument) else _result(lowering, x)
            for s, x in zip(specs, output, strict=True)
            if s.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)
        ]
        return _structured(self.model.call_spec.out_spec, iter(flat))

    def _expect_sizes(self, lowering: Lowering, inputs: dict[torch.fx.Node, Any]) -> None:
        """Leaves guards: sizes are in their ranges, and those that follow from others do so in every call."""
        for symbol, limits in self.model.range_constraints.items():
            if symbol in self.sizes:
                at_line(
                    f"range of {symbol} in torch.export", 1, lambda s=symbol, r=limits: _compare(lowering, s, r)
                )
        for node, array in inputs.items():
            for axis, n in enumerate(node.meta["val"].shape):
                if not isinstance(n, int) and not n.node.expr.is_Symbol:
                    at_line(
                        f"size {n} of {node.name} in torch.export", 1,
                        lambda a=array.shape[axis], n=n: a == lowering.number(n),
                    )  # fmt: skip


def _compare(lowering: Lowering, symbol: Any, limits: Any) -> None:
    n = lowering.symbols.of_expression(symbol)
    if limits.lower.is_Integer and limits.lower > _SMALLEST:
        n >= int(limits.lower)  # noqa: B015 - the comparison is the guard
    if limits.upper.is_Integer:
        n <= int(limits.upper)  # noqa: B015


def _result(lowering: Lowering, x: Any) -> Any:
    value = lowering.argument(x)
    return value if value is None or isinstance(value, (dt.Array, str)) else dt.asarray(value)


def _structured(spec: Any, leaves: Iterator[Any]) -> Any:
    """The results in tuples, lists and dicts; other containers become the dict or tuple of what is in them."""
    if spec.is_leaf():
        return next(leaves)
    parts = [_structured(child, leaves) for child in spec.children()]
    if spec.type is list:
        return parts
    keys = spec.context[0] if isinstance(spec.context, (list, tuple)) and spec.context else spec.context
    for names in (spec.context, keys):
        if isinstance(names, (list, tuple)) and len(names) == len(parts) and all(type(k) is str for k in names):
            return dict(zip(names, parts)) if spec.type is not tuple else tuple(parts)
    return None if spec.type is type(None) else tuple(parts)


def _listing(problems: list[Problem]) -> str:
    """All nodes that have no lowering, one line for each op and reason."""
    counts = Counter((p.op, p.reason) for p in problems)
    first = {(p.op, p.reason): p.where for p in reversed(problems)}
    lines = [
        f"  {op}, {n} time{'s' * (n > 1)}, first at {first[op, why]}: {why}" for (op, why), n in counts.items()
    ]
    return (
        "[from_exported] no program can hold these ops of the model; write it without them, or let torch run them: "
        'torch.compile(model, backend="dovetail")\n' + "\n".join(lines)
    )
