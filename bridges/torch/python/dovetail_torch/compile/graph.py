"""Runs the nodes of an FX graph on traced arrays: what they record is the program."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import dovetail as dt
import torch
from dovetail._record import count_as_own
from dovetail.schema.number import value_of

from dovetail_torch.compile.symbols import Symbols
from dovetail_torch.compile.table import Call, Unsupported, dtype_name, find, is_array

__all__ = ["Lowering", "Problem", "at_line", "is_of_tensors", "needed_nodes", "source_of"]

count_as_own(os.path.dirname(os.path.abspath(__file__)))
_TORCH = os.path.dirname(torch.__file__)


class Problem(NamedTuple):
    """A node that no program can hold."""

    op: str
    where: str
    reason: str


class Lowering:
    """The values of a graph's nodes. `known` gives those of the placeholders."""

    def __init__(self, known: dict[torch.fx.Node, Any]):
        self.values = known
        self.symbols = Symbols()
        for node, value in known.items():
            if is_array(value):
                self.symbols.bind(node.meta["val"], value)

    def number(self, n: Any) -> Any:
        return self.symbols.number(n)

    def run(self, nodes: Iterable[torch.fx.Node]) -> list[Problem]:
        """Computes nodes in their order. Returns those that cannot be, without the ones that follow from these."""
        problems: list[Problem] = []
        lost: set[torch.fx.Node] = set()
        for node in nodes:
            if node.op != "call_function" or not is_of_tensors(node):
                continue
            if any(x in lost for x in node.all_input_nodes):
                lost.add(node)
                continue
            file, line = source_of(node.meta.get("stack_trace"))
            try:
                at_line(file, line, lambda n=node: self.node(n))
            except (NotImplementedError, TypeError) as error:  # a rule refuses dtypes that torch takes
                lost.add(node)
                problems.append(Problem(str(node.target), f"{file}:{line}", str(error)))
            except Exception as error:
                error.add_note(f"in the lowering of {node.format_node()} at {file}:{line}")
                raise
        return problems

    def argument(self, x: Any) -> Any:
        """What a lowering gets for an argument of a node."""
        if isinstance(x, torch.fx.Node):
            if x in self.values:
                return self.values[x]
            value = x.meta.get("val")
            if isinstance(value, torch.Tensor):
                raise Unsupported(f"{x.name} has no value")
            return self.number(value)
        if isinstance(x, (list, tuple)):
            return [self.argument(part) for part in x]
        return self.number(x)

    def node(self, node: torch.fx.Node) -> None:
        """Computes one node."""
        if node.target is operator.getitem:
            self.values[node] = self.argument(node.args[0])[node.args[1]]
            return
        lowered = find(node.target)
        if lowered is None:
            raise Unsupported("there is no lowering of it")
        args = [self.argument(x) for x in node.args]
        kwargs = {key: self.argument(x) for key, x in node.kwargs.items()}
        call = Call(node, self)
        made = lowered(call, *args, **kwargs)
        if isinstance(made, tuple) and any(x is None and call.uses(i) for i, x in enumerate(made)):
            raise Unsupported("its lowering makes no result of those that the graph uses")
        self.values[node] = self._checked(node.meta["val"], made)

    def _checked(self, value: Any, made: Any) -> Any:
        """The result in the dtype that torch's graph goes on with."""
        if isinstance(value, (list, tuple)):
            if len(value) != len(made):
                raise AssertionError(f"a lowering made {len(made)} results, expected {len(value)}")
            return tuple(self._checked(v, m) for v, m in zip(value, made))
        if not isinstance(value, torch.Tensor) or not is_array(made):
            return made
        expected = [n if isinstance(n, int) else None for n in value.shape]
        got = [value_of(n) for n in made.shape]
        if len(got) != len(expected) or any(e is not None and e != g for e, g in zip(expected, got)):
            raise AssertionError(f"a lowering made the shape {got}, expected {list(value.shape)}")
        name = dtype_name(value.dtype)
        return made if made.dtype == name else dt.astype(made, name)


def is_of_tensors(node: torch.fx.Node) -> bool:
    """Whether a node makes tensors, and no number."""
    value = node.meta.get("val")
    values = value if isinstance(value, (list, tuple)) else [value]
    return any(isinstance(v, torch.Tensor) for v in values)


def needed_nodes(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """The nodes from which the graph's outputs follow."""
    needed: set[torch.fx.Node] = set()
    for node in reversed(graph.nodes):
        if node.op == "output" or node in needed:
            needed.update(node.all_input_nodes)
    return needed


# ---- lines -------------------------------------------------------------------------------------------------------

_call = compile("run()", "", "eval")
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


def at_line(file: str, line: int, run: Callable[[], Any]) -> None:
    """run(), called from this line of the model: programs note it with their nodes."""
    exec(_call.replace(co_filename=file, co_firstlineno=line), {"run": run})


@lru_cache(maxsize=1024)
def source_of(trace: str | None) -> tuple[str, int]:
    """File and line of a node: of its innermost frame outside of torch, else of its innermost one."""
    frames = [(file, int(line)) for file, line in _FRAME.findall(trace or "")]
    own = [frame for frame in frames if not frame[0].startswith((_TORCH, "torch/"))]
    return (own or frames or [("model", 1)])[-1]
