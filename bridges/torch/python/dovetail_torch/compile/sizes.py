"""The inputs of a graph of torch as those of a program: dtypes, and sizes with the names of torch's symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import dovetail as dt
import torch
from dovetail._export import exported
from dovetail._function_trace import trace_sizes
from dovetail._program import Program

from dovetail_torch.compile.table import dtype_name

__all__ = ["Sizes", "fitting_sizes", "sizes_of", "symbol_sizes", "traced", "traced_for"]

Sizes = dict[Any, int]  # by sympy's symbol


def symbol_sizes(inputs: Iterable[torch.fx.Node]) -> Sizes:
    """The size that each symbol has had when torch made the graph."""
    dims = [n for node in inputs for n in node.meta["val"].shape if not isinstance(n, int)]
    return {s: int(n.node.shape_env.backed_var_to_val[s]) for n in dims for s in n.node.expr.free_symbols}


def sizes_of(inputs: Iterable[torch.fx.Node], arrays: Iterable[Any]) -> Sizes:
    """The size that each symbol has in arrays for these inputs."""
    sizes = {}
    for node, array in zip(inputs, arrays):
        for n, size in zip(node.meta["val"].shape, array.shape):
            if not isinstance(n, int) and n.node.expr.is_Symbol:
                sizes[n.node.expr] = size
    return sizes


def fitting_sizes(sizes: Sizes, ranges: dict[Any, Any]) -> Sizes:
    """A size of dovetail's own choice for each symbol whose range allows it, else the one that it has.

    Sizes like no other in the model keep a trace from taking two for one.
    """
    chosen = {}
    for (symbol, size), own in zip(sizes.items(), trace_sizes()):
        limits = ranges.get(symbol)
        fits = limits is None or (limits.lower <= own and own <= limits.upper)
        chosen[symbol] = own if fits else size
    return chosen


def traced(fn: Callable[..., Any], inputs: list[torch.fx.Node], sizes: Sizes, ranges: dict[Any, Any]) -> Program:
    """The program of fn of arrays that stand for these placeholders.

    Where torch does not know that two of its sizes must be equal, an op refuses sizes of dovetail's choice; the
    trace is then made for those that torch has had.
    """
    chosen = fitting_sizes(sizes, ranges)
    try:
        return traced_for(fn, inputs, chosen)
    except ValueError:
        if chosen == sizes:
            raise
        return traced_for(fn, inputs, sizes)


def traced_for(fn: Callable[..., Any], inputs: list[torch.fx.Node], sizes: Sizes) -> Program:
    """The program that a trace for these sizes makes."""
    specs, dynamic = [], {}
    for node in inputs:
        value = node.meta["val"]
        shape = [n if isinstance(n, int) else int(n.node.expr.xreplace(sizes)) for n in value.shape]
        specs.append(dt.spec(shape, dtype_name(value.dtype)))
        dynamic[node.name] = {axis: _mark(n) for axis, n in enumerate(value.shape) if not isinstance(n, int)}
    return exported(fn, [node.name for node in inputs], specs, dynamic)


def _mark(n: Any) -> str | bool:
    """The name of a size; True for one that follows from others."""
    return str(n.node.expr) if n.node.expr.is_Symbol else True
