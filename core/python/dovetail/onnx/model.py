"""A loaded model: one program where all is static, else programs with nodes between them that run by themselves.

The nodes are cut into steps. A *segment* is a run of nodes whose import is a trace, and so a Program; where a node
cannot be traced, as the size of its result depends on elements, it is a step of its own, which runs eagerly. The
plan begins as one segment and is cut when a trace comes to such a node.

A segment has *variants*: a program each. One is made for the dtypes and numbers of axes of what comes in, for the
sizes that its guards allow, and, where elements of an input decide about shapes (axes, k, pads), for the values of
that input: its value guard. A call for which no variant is made imports the segment again, up to Limits.variants
times; calls of further values run node by node, eagerly.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

import dovetail as dt
from dovetail import _core
from dovetail._core import Array
from dovetail._export import exported
from dovetail._program import Program
from dovetail._trace import Tracer
from dovetail.onnx.importer import Importer, Opaque, Scope, deaths, names_used
from dovetail.onnx.limits import LimitError, Limits
from dovetail.onnx.maps import map_of, map_type_of
from dovetail.onnx.plan import (
    BROKEN_GUARD,
    Cut,
    Input,
    Step,
    Variant,
    has_pinned_sizes,
    input_of,
    is_host,
    is_small,
    key_of,
    kind_of,
    kind_of_spec,
    names_chosen_sizes,
    needed_nodes,
    result_of,
    unknown_type,
)  # fmt: skip
from dovetail.onnx.reader import Source
from dovetail.onnx.registry import shown
from dovetail.onnx.values import Dynamic, NeedsValue, constant

__all__ = ["Input", "Model"]


class Model:
    """An ONNX model, called like the function that it is. dovetail.onnx.load makes it.

    By name it returns a dict, model(ids=ids, mask=mask)["logits"]; by position a tuple. Arrays may be NumPy's. It
    runs on the device that load was given.
    """

    def __init__(self, source: Source, device: Any, limits: Limits, values: dict[str, Any], folds: bool = True):
        self._source, self._limits, self._folds = source, limits, folds
        self._lock = threading.RLock()  # of the plan and its programs
        self.device = device
        graph = source.model.graph
        self.name = source.name
        needed = needed_nodes(list(graph.node), [o.name for o in graph.output])
        self._numbers = [i for i, _ in needed]  # in the file
        self._nodes = [node for _, node in needed]
        self._initial: dict[str, Any] = {}
        self._given = {name: constant(np.asarray(v)) for name, v in values.items()}
        initializers = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
        self._ports = {port.name: port for port in graph.input}
        for name in values:
            if name not in self._ports:
                raise ValueError(f"[{self.name}] values: there is no input {name!r}: expected some of "
                                 f"{', '.join(self._ports)}")  # fmt: skip
        self.inputs: tuple[Input, ...] = tuple(
            input_of(port, port.name in initializers)
            for port in graph.input
            if port.name not in self._given and (source.model.ir_version < 4) * (port.name in initializers) == 0
        )
        self.outputs: tuple[str, ...] = tuple(o.name for o in graph.output)
        self._steps = [Step(0, len(self._nodes))] if self._nodes else []
        self._program: Program | None = None
        self._why = ""
        with device:
            self._load()

    # ---- the program

    @property
    def program(self) -> Program:
        """The model as one Program: for dovetail.compile, and to save. Raises ValueError with what prevents it."""
        if self._program is None:
            raise ValueError(f"[{self.name}] is no single program: {self._why}")
        return self._program

    def save(self, path: Any) -> None:
        """Writes the program as a .dvt file. Raises ValueError where the model is no single program."""
        self.program.save(path)

    def __repr__(self) -> str:
        lines = [f"model {self.name} on {self.device}: {len(self._nodes)} nodes"]
        for step in self._steps:
            first, last = (
                self._numbers[step.first : step.last][:1] or [0],
                self._numbers[step.first : step.last][-1:] or [0],
            )
            where = f"nodes {first[0]} to {last[0]}" if first != last else f"node {first[0]}"
            if step.why is None:
                lines.append(f"  {where}: {len(step.variants)} program{'s' * (len(step.variants) != 1)}")
            else:
                lines.append(f"  {where} {shown(self._nodes[step.first].op_type)}: eager, as {step.why}")
        return "\n".join(lines)

    def _load(self) -> None:
        """Constants, and the program if sizes and values of the inputs are not needed for it."""
        graph = self._source.model.graph
        importer = self._importer()
        for t in graph.initializer:
            self._initial[t.name] = self._source.constant(t)
        for t in graph.sparse_initializer:
            self._initial[t.values.name] = importer.sparse(t)
        self._initial |= self._given
        free = [port for port in self.inputs if not port.optional]
        if not self._nodes:
            self._steps = [Step(0, 0)]
        odd = [p.name for p in free if p.shape is None or p.dtype not in _core.dtypes]
        if odd:
            self._why = unknown_type(odd[0], self._ports[odd[0]].type)
            return
        specs = {port.name: dt.spec(port.shape or (), port.dtype) for port in free}
        step = self._steps[0]
        try:
            variant = self._traced(step, specs, [*specs], None)
        except Cut as cut:
            if cut.needs:
                name = repr(cut.needs[0])
                self._why = (
                    f"{self._named(cut.index)} computes shapes from elements of the input {name}; "
                    f"dovetail.onnx.load(path, values={{{name}: ...}}) makes it for these"
                )
            else:
                self._cut(step, cut.index, cut.why)
                self._why = f"{self._named(cut.index)} runs by itself, as {cut.why}"
            return
        except (ValueError, IndexError) as error:
            if isinstance(error, LimitError) or not names_chosen_sizes(str(error)):
                raise
            self._why = f"its sizes are known when it is called; export it with fixed sizes ({error})"
            return
        if variant is None:
            self._why = (
                "it looks at sizes of its inputs that are known when it is called; export it with fixed sizes"
            )
        elif variant.host:
            self._why = f"output {next(iter(variant.host))!r} is no tensor of numbers"
        else:
            step.variants.append(variant)
            self._program = variant.program

    def _named(self, index: int) -> str:
        return f"node {self._numbers[index]} {shown(self._nodes[index].op_type)}"

    def _importer(self) -> Importer:
        return Importer(self._source, self._limits, self._numbers, self._folds)

    # ---- calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs: a dict for arguments by name, a tuple for arguments by position.

        Raises TypeError for arguments that are missing or unknown, ValueError for shapes that the model does not
        take. Results are dovetail's arrays; strings are NumPy's, sequences lists, maps dicts, absent optionals
        None.
        """
        given = self._arguments(args, kwargs)
        leaves = [x for v in given.values() for x in (v if isinstance(v, list) else [v])]
        if any(isinstance(x, Tracer) for x in leaves):
            return self._result(
                self.program(*(given[port.name] for port in self.inputs if not port.optional)), kwargs
            )
        with self.device:
            values = self._run({name: self._value(name, v) for name, v in given.items()})
        return self._result(tuple(values[name] for name in self.outputs), kwargs)

    def _result(self, results: Any, kwargs: dict[str, Any]) -> Any:
        return dict(zip(self.outputs, results)) if kwargs else tuple(results)

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        names = [port.name for port in self.inputs]
        if len(args) > len(names) or (args and kwargs):
            raise TypeError(
                f"[{self.name}] got {len(args)} arguments and {len(kwargs)} by name, expected {len(names)} by "
                f"position or by name: {', '.join(names)}"
            )
        given = dict(zip(names, args)) | kwargs
        unknown = [name for name in given if name not in names]
        missing = [p.name for p in self.inputs if p.name not in given and not p.optional]
        if unknown or missing:
            what = f"there is no input {unknown[0]!r}" if unknown else f"input {missing[0]!r} is missing"
            raise TypeError(f"[{self.name}] {what}: expected {', '.join(names)}")
        return given

    def _value(self, name: str, x: Any) -> Any:
        """An argument on the device, checked against what the model says of it."""
        port = next(p for p in self.inputs if p.name == name)
        is_tensor = port.dtype in _core.dtypes or port.dtype == "string"
        if is_tensor and (x is None or isinstance(x, (list, tuple, dict))):
            raise TypeError(
                f"[{self.name}] input {name!r} is {type(x).__name__}, expected an array of {port.dtype}; "
                "numpy.asarray makes one"
            )
        if port.dtype == "sequence" and not isinstance(x, (list, tuple)):
            of = "arrays" if map_type_of(self._ports[name].type) is None else "dicts"
            raise TypeError(f"[{self.name}] input {name!r} is {type(x).__name__}, expected a list of {of}")
        x = self._on_device(name, x)
        if not is_tensor:
            return x
        found = "string" if isinstance(x, np.ndarray) else x.dtype.name
        if found != port.dtype:
            raise TypeError(f"[{self.name}] input {name!r} is {found}, expected {port.dtype}; astype it")
        fits = port.shape is None or (
            x.ndim == len(port.shape) and all(not isinstance(m, int) or m == n for m, n in zip(port.shape, x.shape))
        )
        if not fits:
            raise ValueError(f"[{self.name}] input {name!r} has shape {x.shape}, expected {port.shape}")
        return x

    def _on_device(self, name: str, x: Any) -> Any:
        if isinstance(x, (list, tuple)):
            return [self._on_device(name, part) for part in x]
        if isinstance(x, Array):
            return x if x.device == self.device else x.to_device(self.device)
        kind = map_type_of(self._ports[name].type)
        try:
            if kind is not None:
                return map_of(x, kind)
            return None if x is None else constant(x)
        except (TypeError, ValueError) as error:
            raise type(error)(f"[{self.name}] input {name!r}: {error}") from None

    def _run(self, given: dict[str, Any]) -> dict[str, Any]:
        """All values that are alive at the end."""
        values = {**self._initial, **given}
        at = 0
        while at < len(self._nodes) or (not self._nodes and at == 0):
            step = next(step for step in self._steps if step.first == at)  # others may have been cut meanwhile
            try:
                made = self._eager(step, values) if step.why is not None else self._by_program(step, values)
            except Cut as cut:
                self._cut(step, cut.index, cut.why)
                continue
            values.update(made)
            at = max(step.last, 1)
            if at < len(self._nodes):
                alive = self._read_after(step.last)
                values = {name: v for name, v in values.items() if name in alive or name in self._initial}
        return values

    def _cut(self, step: Step, index: int, why: str) -> None:
        """The node `index` becomes a step of its own."""
        with self._lock:
            if step not in self._steps:  # another thread has cut it
                return
            at = self._steps.index(step)
            parts = [Step(step.first, index), Step(index, index + 1, why), Step(index + 1, step.last)]
            steps = [*self._steps]
            steps[at : at + 1] = [part for part in parts if part.first < part.last]
            self._steps = steps

    def _eager(self, step: Step, values: dict[str, Any]) -> dict[str, Any]:
        scope = Scope(None, self._source.opsets)
        scope.values.update(values)
        nodes = self._nodes[step.first : step.last]
        keep = self._read_after(step.last)
        importer = self._importer()
        with self._source.named():
            importer.run(nodes, scope, step.first, deaths(nodes, keep))
        return {name: result_of(scope.get(name)) for name in self._written(step)}

    # ---- programs

    def _by_program(self, step: Step, values: dict[str, Any]) -> dict[str, Any]:
        if not self._limits.variants:
            return self._eager(step, values)
        names = self._read_by(step, values)
        kinds = tuple((name, kind_of(values[name])) for name in names)
        for variant in step.variants:
            if variant.kinds == kinds and all(key_of(values[n]) == key for n, key in variant.values.items()):
                try:
                    results = variant.program(*(values[n] for n in variant.names), device=self.device)
                except ValueError as error:
                    if BROKEN_GUARD in str(error):
                        continue
                    raise
                return dict(zip(variant.outputs, results)) | variant.host
        if len(step.variants) >= self._limits.variants:
            return self._eager(step, values)
        with self._lock:
            with self._source.named():
                made = self._traced(step, values, names, kinds)
            step.variants.append(made)
        results = made.program(*(values[n] for n in made.names), device=self.device)
        return dict(zip(made.outputs, results)) | made.host

    def _traced(self, step: Step, values: dict[str, Any], names: list[str], kinds: Any) -> Variant | None:
        """A variant for these values, or specs. Raises Cut at a node that it cannot hold."""
        while True:
            try:
                return self._trace_once(step, values, names, kinds)
            except Cut as cut:
                needs = set(cut.needs)
                small = needs and kinds is not None and all(is_small(values[n]) for n in needs)
                if not small or needs <= step.guarded:
                    raise
                step.guarded |= needs

    def _trace_once(self, step: Step, values: dict[str, Any], names: list[str], kinds: Any) -> Variant | None:
        guarded = {n: key_of(values[n]) for n in names if n in step.guarded and kinds is not None}
        host = [n for n in names if is_host(values[n])]
        arguments = [n for n in names if n not in guarded and n not in host]
        importer = self._importer()
        scope = Scope(None, self._source.opsets)
        scope.values.update(self._initial)
        scope.values.update({n: values[n] for n in guarded})
        scope.values.update({n: None if values[n] is None else Opaque() for n in host})
        outputs = self._written(step) if kinds is not None else list(self.outputs)
        left: dict[str, Any] = {}

        def import_(*given: Any) -> tuple[Any, ...]:
            scope.values.update(zip(arguments, given))
            nodes = self._nodes[step.first : step.last]
            importer.run(nodes, scope, step.first)
            results = {n: scope.get(n) for n in outputs}
            left.update({n: v for n, v in results.items() if is_host(v)})
            if any(isinstance(v, Opaque) for v in results.values()):
                raise Dynamic("it takes strings or maps, which are on the host")
            return tuple(result_of(v) for n, v in results.items() if n not in left)

        name = self._source.model.graph.name  # bytes, where it is no UTF-8
        import_.__qualname__ = name if isinstance(name, str) and name else self.name
        marks = {n: self._marks(n, values[n]) for n in arguments}
        try:
            program = exported(
                import_, arguments, [values[n] for n in arguments], marks if kinds is not None else None
            )
        except NeedsValue as need:
            needs = self._sources(need.names, step, importer.at, names)
            raise Cut(importer.at, "elements that are known only when it runs decide about shapes", needs) from None
        except Dynamic as why:
            raise Cut(max(importer.at, 0), str(why)) from None
        if kinds is None and has_pinned_sizes(program):
            return None
        return Variant(
            kinds or tuple((n, kind_of_spec(values[n])) for n in names), guarded, program, tuple(arguments),
            tuple(n for n in outputs if n not in left), left,
        )  # fmt: skip

    def _marks(self, name: str, value: Any) -> Any:
        """Which sizes of an argument may differ from call to call, as dovetail.export's `dynamic` has it."""
        if isinstance(value, list):
            return True
        port = next((p for p in self.inputs if p.name == name), None)
        if port is None or port.shape is None:
            return True
        return {
            axis: n if isinstance(n, str) else True for axis, n in enumerate(port.shape) if not isinstance(n, int)
        }

    def _sources(self, names: Sequence[str], step: Step, index: int, inputs: Sequence[str]) -> tuple[str, ...]:
        """Of a step's inputs those from which the values `names`, which node `index` reads, follow."""
        wanted, found = set(names), set()
        for i in range(index, step.first - 1, -1):
            node = self._nodes[i]
            if i < index and wanted & set(node.output):
                wanted |= names_used(node)
        found = wanted & set(inputs)
        return tuple(n for n in inputs if n in found)

    # ---- which values

    def _read_by(self, step: Step, values: dict[str, Any]) -> list[str]:
        """The names that a step reads, but for constants."""
        if step.first == 0 and step.last == len(self._nodes):
            return [
                p.name for p in self.inputs if p.name in values and (not p.optional or self._is_given(p, values))
            ]
        used: set[str] = set()
        for node in self._nodes[step.first : step.last]:
            used |= names_used(node)
        written = {n for node in self._nodes[step.first : step.last] for n in node.output}
        return [n for n in values if n in used - written and values[n] is not self._initial.get(n, self)]

    def _is_given(self, port: Input, values: dict[str, Any]) -> bool:
        return values[port.name] is not self._initial.get(port.name, self)

    def _read_after(self, index: int) -> set[str]:
        used = set(self.outputs)
        for node in self._nodes[index:]:
            used |= names_used(node)
        return used

    def _written(self, step: Step) -> list[str]:
        """The names that a step makes and that are read behind it; all outputs if it is the only step."""
        after = self._read_after(step.last)
        made = dict.fromkeys(n for node in self._nodes[step.first : step.last] for n in node.output if n in after)
        if step.last == len(self._nodes) and step.first == 0:
            return list(dict.fromkeys(self.outputs))
        return list(made)
