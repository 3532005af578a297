"""dovetail.export: a Python function over arrays becomes a Program, which is the same for every device and size."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from types import TracebackType
from typing import Any

from dovetail import _core
from dovetail import _pytree as pytree
from dovetail._array import recording_on
from dovetail._core import Array, DType
from dovetail._program import Program
from dovetail._record import FunctionGraph, is_internal
from dovetail._trace import Tracer
from dovetail.schema.number import Number

__all__ = ["Spec", "export", "spec"]

Size = int | str | None
Dynamic = Any  # None, bool, a dict by argument's name, or a tuple by position; see export()
_PLAIN = (type(None), bool, int, float, str)


class Spec:
    """The shape and dtype of an array that need not exist: dovetail.spec() makes one."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[Size, ...], dtype: DType):
        self.shape, self.dtype = shape, dtype

    def __repr__(self) -> str:
        return f"spec({self.shape}, {self.dtype})"


def spec(shape: int | Sequence[Size], dtype: DType | str = "float32") -> Spec:
    """Stands for an array of this shape and dtype among the arguments of dovetail.export; nothing is allocated.

    A size is an integer, None for any size, or a name: sizes of one name are equal. Integers are fixed, unless
    `dynamic` of export names them.
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for n in sizes:
        if isinstance(n, bool) or not (n is None or (isinstance(n, str) and n) or (isinstance(n, int) and n >= 0)):
            raise ValueError(f"[spec] shape: expected integers of at least 0, None or names, got {shape!r}")
        if isinstance(n, int) and n >= 2**63:
            raise ValueError(f"[spec] shape: got the size {n}, expected one that fits in 64 bits")
    return Spec(sizes, _core.to_dtype(dtype))


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
    names = _parameter_names(fn, len(args))
    _expect_that_a_call_runs(fn)
    name = getattr(fn, "__qualname__", None) or type(fn).__name__
    builder = _core.ProgramBuilder()
    graph = FunctionGraph(builder, name, _device_of(args))
    inputs = _Inputs(graph, builder)
    with recording_on(None):
        marks = _marks_of_arguments(dynamic, names, args)
        trees = [pytree.flatten(x, path, inputs.leaf_with(marks)) for x, path in zip(args, names, strict=True)]
        inputs.declare()
    arguments = [pytree.rebuilt(tree, inputs.tracers) for tree in trees]
    outputs: list[int] = []
    with recording_on(graph):
        try:
            result = fn(*arguments)
        except Exception as error:
            error.__traceback__ = _users(error.__traceback__)
            raise
        results = pytree.flatten(result, "result", lambda x, path: _output(graph, outputs, x, path))
    signature = {
        "arguments": {"tuple": [pytree.to_json(tree) for tree in trees]},
        "results": pytree.to_json(results),
        "names": list(names),
        "function": name,
    }
    made = builder.finish(outputs, json.dumps(signature, ensure_ascii=False))
    return Program(made, name, tuple(names), tuple(trees), results)


def _parameter_names(fn: Callable[..., Any], n: int) -> list[str]:
    """Names of n positional arguments, for messages and inputs."""
    if not callable(fn):
        raise TypeError(f"[export] expected a function, got {type(fn).__name__}")
    from inspect import Parameter, signature

    try:
        parameters = list(signature(fn).parameters.values())
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


def _expect_that_a_call_runs(fn: Callable[..., Any]) -> None:
    """Refuses functions whose code runs when their result is iterated over or awaited."""
    from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction

    if isgeneratorfunction(fn) or iscoroutinefunction(fn) or isasyncgenfunction(fn):
        raise TypeError(
            f"[export] {getattr(fn, '__name__', 'the function')} is async or a generator, so a call does not run "
            "it: expected a function that returns its arrays; collect what it yields in a list and return that"
        )


def _leaves(x: Any) -> Iterator[Any]:
    found = pytree.children(x, "")
    if found is None:
        yield x
    else:
        for _, _, part in found[1]:
            yield from _leaves(part)


def _device_of(args: tuple[Any, ...]) -> Any:
    from dovetail import _devices

    homes = {x.device.name: x.device for x in _leaves(args) if type(x) is Array}
    if len(homes) > 1:
        raise ValueError(
            f"[export] arguments on {' and '.join(homes)}: expected arrays of one device; .to_device() brings them "
            "over"
        )
    return next(iter(homes.values()), None) or _devices.device(None)


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
        shape = [self._size(mark, axis, n, isinstance(x, Spec)) for axis, n in enumerate(x.shape)]
        self._declared.append((x.dtype.name, shape, list(x.shape), path))
        return pytree.Leaf(len(self._declared) - 1)

    @staticmethod
    def _size(mark: Any, axis: int, n: Size, is_spec: bool) -> Size:
        """The size as the input declares it: an integer, a name, or None."""
        if not isinstance(n, int):
            own: Size = n
        elif mark is True or (mark is None and not is_spec):
            return None
        else:
            own = n
        chosen = mark.get(axis, False) if isinstance(mark, dict) else False
        if isinstance(chosen, str):
            return chosen
        return None if chosen and isinstance(own, int) else own

    def declare(self) -> None:
        """Makes the inputs. Sizes that a spec leaves open are different ones, but those of one name are equal."""
        known: dict[str, int] = {}
        for _, shape, sizes, _ in self._declared:
            known |= {name: n for name, n in zip(shape, sizes) if isinstance(name, str) and isinstance(n, int)}
        chosen = _sizes()
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


def _sizes() -> Iterator[int]:
    """Sizes for the trace: 24 times the primes from 5."""
    return (24 * n for n in count(5, 2) if all(n % k for k in range(3, n, 2)))


def _marks_of_arguments(dynamic: Dynamic, names: list[str], args: tuple[Any, ...]) -> dict[str, Any]:
    """By the path of each leaf: None for the default, True, False, or {axis: name or True}."""
    marks: dict[str, Any] = {}
    if dynamic is None or dynamic is True:
        return marks
    if dynamic is False:
        dynamic = {}
    if not isinstance(dynamic, dict):
        raise TypeError(
            f"[export] dynamic: got {dynamic!r}, expected None, False, or a dict by the arguments' names, as "
            f"{{{names[0] if names else 'x'!r}: {{0: 'batch'}}}}"
        )
    for key in dynamic:
        if key not in names:
            expected = f"some of {', '.join(names)}" if names else "none, as there are no arguments"
            raise ValueError(f"[export] dynamic: there is no argument {key!r}: expected {expected}")
    for x, path in zip(args, names, strict=True):
        _mark(dynamic.get(path, False), x, path, marks)
    return marks


def _mark(given: Any, x: Any, path: str, marks: dict[str, Any]) -> None:
    found = pytree.children(x, path)
    if found is None:
        rank = len(getattr(x, "shape", ()))
        if isinstance(given, dict):
            for axis, name in given.items():
                if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
                    raise ValueError(f"[export] dynamic: {path} has {rank} axes, got the axis {axis!r}")
                if name is not True and not (isinstance(name, str) and name):
                    raise ValueError(
                        f"[export] dynamic: {path}, axis {axis}: expected True or a name, got {name!r}"
                    )
            if len({axis % rank for axis in given}) < len(given):
                raise ValueError(f"[export] dynamic: {path}: an axis is there twice: got {given}")
            given = {axis % rank: name for axis, name in given.items()}
        elif given is not None and not isinstance(given, bool):
            raise TypeError(
                f"[export] dynamic: {path}: expected {{axis: name or True}}, True or False, got {given!r}"
            )
        marks[path] = bool(given) if given is None or isinstance(given, bool) else given
        return
    keys = [key for key, _, _ in found[1]]
    if isinstance(given, (list, tuple)) and len(given) == len(keys):
        given = dict(zip(keys, given))
    if isinstance(given, dict):
        if unknown := [key for key in given if key not in keys]:
            raise ValueError(f"[export] dynamic: {path} has no {unknown[0]!r}: expected some of {keys}")
    elif given is not None and not isinstance(given, bool):
        raise TypeError(f"[export] dynamic: {path} is a {found[0]}: expected a {found[0]} or dict, got {given!r}")
    for key, where, part in found[1]:
        _mark(given.get(key, False) if isinstance(given, dict) else given, part, where, marks)


# ---- results and errors ------------------------------------------------------------------------------------------


def _output(graph: FunctionGraph, outputs: list[int], x: Any, path: str) -> pytree.Tree:
    numpy = sys.modules.get("numpy")
    if isinstance(x, Number):
        raise TypeError(f"[export] {path}: got a size, expected arrays; dovetail.asarray(n) makes an array of it")
    if numpy is not None and isinstance(x, numpy.generic):
        x = x.item()
    if type(x) in _PLAIN:
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


def _users(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback with the frames of the user's code, which the tracer's would hide."""
    frames = []
    while traceback is not None:
        if not is_internal(traceback.tb_frame.f_code.co_filename):
            frames.append(traceback)
        traceback = traceback.tb_next
    rest: TracebackType | None = None
    for t in reversed(frames):
        rest = TracebackType(rest, t.tb_frame, t.tb_lasti, t.tb_lineno)
    return rest
