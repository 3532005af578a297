"""dovetail.export: a Python function over arrays becomes a Program, which is the same for every device and size."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from dovetail import _core
from dovetail import _pytree as pytree
from dovetail._array import recording_on
from dovetail._core import Array
from dovetail._function_trace import (
    Dynamic,
    Size,
    Spec,
    device_of,
    expect_that_a_call_runs,
    leaves_of,
    marks_of_arguments,
    run_recorded,
    size_mark,
    spec,
    trace_sizes,
)
from dovetail._program import Program
from dovetail._record import FunctionGraph
from dovetail._trace import Tracer
from dovetail.schema.number import Number

__all__ = ["Spec", "export", "exported", "spec"]

_PLAIN = (type(None), bool, int, float, str)


def export(fn: Callable[..., Any], /, *args: Any, dynamic: Dynamic = None) -> Program:
    """Traces fn(*args) and returns it as a Program: printable, saved with .save(), called like fn on any device.

    args: what fn takes. Arrays (NumPy's become dovetail's), or dovetail.spec() in their place, are the program's
    inputs, also inside of tuples, lists, dicts, namedtuples and dataclasses. Numbers, strings, bools and None are
    parts of the program. Arrays that fn reaches otherwise, through a closure, a global or an object, are its
    constants, with the value that they have now.

    dynamic: which sizes of the inputs may differ from call to call. None: all; of a spec, those that are no
    integers. False: none. Else a dict by the name of the argument: {"ids": {0: "batch", 1: True}} makes axis 0 any
    size with a name, and axis 1 any size. Sizes of one name are equal. {"x": True} makes all sizes of x dynamic;
    for an argument that is a container the value is a container of the same keys.

    fn runs once, on arrays without elements: what it prints or appends happens then. Reading elements, as in `if x`
    or int(x), raises TypeError with the line. A size that Python looks at, as in range(x.shape[0]), leaves a guard:
    a call with another value raises ValueError with that line.
    """
    return exported(fn, _parameter_names(fn, len(args)), args, dynamic)


def exported(fn: Callable[..., Any], names: Sequence[str], args: Sequence[Any], dynamic: Dynamic) -> Program:
    """export() of a function whose positional arguments have these names."""
    expect_that_a_call_runs(fn, "export")
    name = getattr(fn, "__qualname__", None) or type(fn).__name__
    builder = _core.ProgramBuilder()
    graph = FunctionGraph(builder, name, device_of(leaves_of(args), "export"))
    inputs = _Inputs(graph, builder)
    try:
        return _finished(fn, graph, inputs, names, args, dynamic)
    finally:
        graph.end()


def _finished(
    fn: Callable[..., Any],
    graph: FunctionGraph,
    inputs: _Inputs,
    names: Sequence[str],
    args: Sequence[Any],
    dynamic: Dynamic,
) -> Program:
    with recording_on(None):
        marks = marks_of_arguments(dynamic, names, args, "export")
        trees = [pytree.flatten(x, path, inputs.leaf_with(marks)) for x, path in zip(args, names, strict=True)]
        inputs.declare()
    arguments = [pytree.rebuilt(tree, inputs.tracers) for tree in trees]
    outputs: list[int] = []
    result = run_recorded(graph, fn, arguments, {})
    with recording_on(graph):
        results = pytree.flatten(result, "result", lambda x, path: _output(graph, outputs, x, path))
    signature = {
        "arguments": {"tuple": [pytree.to_json(tree) for tree in trees]},
        "results": pytree.to_json(results),
        "names": list(names),
        "function": graph.name,
    }
    made = inputs.builder.finish(outputs, json.dumps(signature, ensure_ascii=False))
    return Program(made, graph.name, tuple(names), tuple(trees), results)


def _parameter_names(fn: Callable[..., Any], n: int) -> list[str]:
    """Names of n positional arguments, for messages and inputs."""
    if not callable(fn):
        raise TypeError(f"[export] expected a function, got {type(fn).__name__}")
    from inspect import Parameter, signature

    try:
        parameters = list(signature(fn, follow_wrapped=False).parameters.values())
    except (TypeError, ValueError):  # functions written in C may have none
        return [f"args[{i}]" for i in range(n)]
    names = []
    for p in parameters:
        if p.kind is Parameter.VAR_POSITIONAL:
            names += [f"{p.name}[{i}]" for i in range(n - len(names))]
            break
        if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
            names.append(p.name)
    if n > len(names):
        raise TypeError(f"[export] {getattr(fn, '__name__', 'the function')} takes {len(names)} arguments, got {n}")
    return names[:n]


# ---- inputs ------------------------------------------------------------------------------------------------------


class _Inputs:
    """The inputs of a trace, in the order of the leaves."""

    def __init__(self, graph: FunctionGraph, builder: Any):
        self.graph, self.builder = graph, builder
        self.tracers: list[Any] = []
        self._declared: list[tuple[str, list[Size], list[Size], str]] = []  # dtype, shape, sizes now, path

    def leaf_with(self, marks: dict[str, Any]) -> Callable[[Any, str], pytree.Tree]:
        return lambda x, path: self._leaf(x, path, marks)

    def _leaf(self, x: Any, path: str, marks: dict[str, Any]) -> pytree.Tree:
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(x, numpy.generic):
            x = x.item()
        if type(x) in _PLAIN:
            return _constant(x, path)
        if isinstance(x, Tracer):
            raise TypeError(f"[export] {path}: got a traced array: export cannot be called inside of a trace")
        if not isinstance(x, (Array, Spec)):
            if numpy is None or not isinstance(x, numpy.ndarray):
                raise TypeError(
                    f"[export] {path}: got {type(x).__name__}, expected arrays, numbers, strings, None, and "
                    "tuples, lists, dicts or dataclasses of them; a closure gives the function everything else"
                )
            from dovetail._creation import asarray

            x = asarray(x, device=self.graph.device)
        mark = marks.get(path)
        shape = [size_mark(mark, axis, n, isinstance(x, Spec)) for axis, n in enumerate(x.shape)]
        self._declared.append((x.dtype.name, shape, list(x.shape), path))
        return pytree.Leaf(len(self._declared) - 1)

    def declare(self) -> None:
        """Makes the inputs. Sizes that a spec leaves open are different ones, but those of one name are equal."""
        known: dict[str, int] = {}
        for _, shape, sizes, _ in self._declared:
            known |= {name: n for name, n in zip(shape, sizes) if isinstance(name, str) and isinstance(n, int)}
        chosen = trace_sizes()
        for dtype, shape, sizes, path in self._declared:
            now = []
            for name, n in zip(shape, sizes, strict=True):
                if not isinstance(n, int):
                    n = known[name] if name in known else next(chosen)
                    if name is not None:
                        known[str(name)] = n
                now.append(n)
            value = self.builder.input(dtype, shape, path, now)
            self.graph.fixed |= {(value, axis) for axis, n in enumerate(shape) if isinstance(n, int)}
            self.tracers.append(self.graph.tracer(value))


# ---- results and errors ------------------------------------------------------------------------------------------


def _output(graph: FunctionGraph, outputs: list[int], x: Any, path: str) -> pytree.Tree:
    numpy = sys.modules.get("numpy")
    if isinstance(x, Number):
        raise TypeError(f"[export] {path}: got a size, expected arrays; dovetail.asarray(n) makes an array of it")
    if numpy is not None and isinstance(x, numpy.generic):
        x = x.item()
    if type(x) in _PLAIN:
        if isinstance(x, str):
            graph.expect_no_text(x, path)
        return _constant(x, path)
    if numpy is not None and isinstance(x, numpy.ndarray):
        from dovetail._creation import asarray

        x = asarray(x, device=graph.device)
    if not isinstance(x, Array):
        raise TypeError(
            f"[export] {path}: got {type(x).__name__}, expected arrays, numbers, strings, None, and tuples, "
            "lists, dicts or dataclasses of them"
        )
    outputs.append(graph.value(x)._id)
    return pytree.Leaf(len(outputs) - 1)


def _constant(x: Any, path: str) -> pytree.Tree:
    """A value that is a part of the program; its file can hold it."""
    if isinstance(x, int) and not -(2**63) <= x < 2**63:
        raise ValueError(
            f"[export] {path}: got an integer of {x.bit_length()} bits, expected one that fits in 64 bits; a "
            "closure gives the function larger ones"
        )
    if isinstance(x, str):
        pytree.expect_text(x, path)
    return pytree.Constant(x)
