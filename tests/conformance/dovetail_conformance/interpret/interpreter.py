"""Runs a program node by node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from dovetail.schema import dtypes as dt
from dovetail.schema import registry
from dovetail.schema.declare import REQUIRED, Op
from dovetail.schema.dtypes import DType
from dovetail.schema.oracle import expected

from .control import CONTROL
from .document import BadProgram, expect, load_document
from .dtype_rules import cast, typed
from .numbers import COMPARE, GuardFailed, Numbers, real
from .value import Value

__all__ = ["GuardFailed", "Program", "interpret"]
ROUNDING = ("each", "last")
CORRECTLY_ROUNDED = 0.501  # the tolerance of such ops in the schema
ALWAYS_ROUND = ("bitcast", "astype")  # what they mean is a dtype's own


def dtype_named(name: Any) -> DType:
    expect(isinstance(name, str) and name in dt.by_name and dt.by_name[name].name == name, f"no dtype {name!r}")
    return dt.by_name[name]


class Program:
    """A document with what its sub-programs share: the arrays, and how floats are rounded."""

    def __init__(self, document: dict[str, Any], tensors: dict[str, np.ndarray], rounding: str = "each"):
        expect(rounding in ROUNDING, f"rounding: expected one of {ROUNDING}, got {rounding!r}")
        self.document, self.tensors, self.rounding = document, tensors, rounding
        for key in ("inputs", "nodes", "outputs"):
            expect(isinstance(document.get(key), list), f"a program: expected a list '{key}'")
        self.programs = [Program(p, {}, rounding) for p in document.get("programs", [])]

    def run(self, inputs: Sequence[Value | None], attributes: Sequence[Any] = ()) -> list[Value]:
        return _Run(self, inputs, attributes).outputs()


class _Run:
    def __init__(self, program: Program, inputs: Sequence[Value | None], attributes: Sequence[Any]):
        self.program, self.document = program, program.document
        expect(
            len(inputs) == len(self.document["inputs"]),
            f"{len(inputs)} inputs: expected {len(self.document['inputs'])}",
        )
        self.values: list[Value | None] = list(inputs)
        self.numbers = Numbers(self.document.get("numbers", []), self._size, attributes)
        self._check_inputs()

    def _size(self, value: int, axis: int) -> int:
        expect(0 <= value < len(self.values), f"the size of value {value}, which is not there yet")
        shape = np.shape(self.values[value].data)  # type: ignore[union-attr]
        if axis >= len(shape):
            raise GuardFailed(f"the size of axis {axis} of value {value}, which has {len(shape)} axes")
        return shape[axis]

    def _check_inputs(self) -> None:
        named: dict[str, int] = {}
        for i, (declared, given) in enumerate(zip(self.document["inputs"], self.values, strict=True)):
            if "dtype" not in declared:
                continue
            name = declared.get("name", f"input {i}")
            d, shape = dtype_named(declared["dtype"]), declared["shape"]
            if given is None or given.dtype is not d or len(given.data.shape) != len(shape):
                raise GuardFailed(f"{name}: expected {d} of {len(shape)} axes")
            for axis, (want, got) in enumerate(zip(shape, given.data.shape, strict=True)):
                want = named.setdefault(want, got) if isinstance(want, str) else want
                if want is not None and want != got:
                    raise GuardFailed(f"{name}: axis {axis} has size {got}: expected {want}")

    def outputs(self) -> list[Value]:
        guards = self.document.get("guards", [])
        at = 0
        for k, node in enumerate(self.document["nodes"]):
            while at < len(guards) and guards[at][3] <= k:
                self._check_guard(guards[at])
                at += 1
            try:
                self.values += self._node(node)
            except BadProgram as e:
                raise BadProgram(f"node {k}: {e}") from None
        for guard in guards[at:]:
            self._check_guard(guard)
        made = [self._operand(x) for x in self.document["outputs"]]
        return [v for v in made if v is not None]

    def _check_guard(self, guard: list[Any]) -> None:
        expect(
            4 <= len(guard) <= 5,
            f"a guard {guard}: expected [comparison, a, b, node], and perhaps where it is from",
        )
        compare, a, b = guard[:3]
        expect(compare in COMPARE, f"there is no comparison '{compare}'")
        if not COMPARE[compare](self.numbers[a], self.numbers[b]):
            raise GuardFailed(f"a guard: {self.numbers[a]} {compare} {self.numbers[b]} does not hold")

    def _operand(self, x: Any) -> Value | None:
        if x is None:
            return None
        if type(x) is int:
            expect(0 <= x < len(self.values), f"there is no value {x} yet")
            return self.values[x]
        if "tensor" in x:
            expect(x["tensor"] in self.program.tensors, f"there is no tensor {x['tensor']!r}")
            data = self.program.tensors[x["tensor"]]
            return Value(data, dt.of(data))
        d = dtype_named(x["dtype"])
        n = self.numbers[x["number"]] if "number" in x else x["n"]
        if isinstance(n, list):
            n = complex(real(n[0]), real(n[1]))
        elif isinstance(n, str):
            n = real(n)
        if type(n) is int and d.kind in "iu" and not d.min <= n <= d.max and "number" in x:
            raise ValueError(f"{n} does not fit in {d}: expected a smaller number, or arrays of a wider dtype")
        wide = np.asarray(n) if type(n) is not int or d.kind in "fc" else _wrapped(n, d)
        return Value(cast(wide, d), d)

    def _node(self, node: dict[str, Any]) -> list[Value]:
        operands = [self._operand(x) for x in node["in"]]
        if node["op"] in CONTROL:
            attributes = {k: self._control_attribute(v) for k, v in node.get("at", {}).items()}
            made = CONTROL[node["op"]](operands, attributes)
            expect(len(made) == node["out"], f"[{node['op']}] gives {len(made)} results: expected {node['out']}")
            return made
        op = registry.get(node["op"])
        expect(op is not None, f"needs the op '{node['op']}', which is not here")
        version = node.get("v", 1)
        expect(1 <= version <= op.spec.version, f"needs {op.name} version {version}, not {op.spec.version}")
        given = self._operands(op, operands) | self._attributes(op, node.get("at", {}))
        return call(op, given, self.program)

    def _operands(self, op: Op, operands: list[Value | None]) -> dict[str, Any]:
        given: dict[str, Any] = {}
        rest = list(operands)
        for p in op.operands:
            given[p.name] = rest if p.variadic else rest.pop(0) if rest else None
            expect(p.optional or given[p.name] is not None, f"[{op.name}] {p.name} is missing")
            rest = [] if p.variadic else rest
        expect(not rest, f"[{op.name}] {len(operands)} operands: expected {len(op.operands)}")
        return given

    def _attributes(self, op: Op, at: dict[str, Any]) -> dict[str, Any]:
        names = {p.name for p in op.attributes}
        expect(set(at) <= names, f"[{op.name}] has no attribute {sorted(set(at) - names)}")
        given = {}
        for p in op.attributes:
            value = at.get(p.name, REQUIRED)
            given[p.name] = p.default if value is REQUIRED else self._attribute(p.kind, value)
            expect(given[p.name] is not REQUIRED, f"[{op.name}] misses the attribute '{p.name}'")
        return given

    def _attribute(self, kind: str, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(self._attribute("i64", v) for v in value)
        if isinstance(value, dict):
            if "dtype" in value:
                return dtype_named(value["dtype"])
            if "complex" in value:
                return complex(*map(real, value["complex"]))
            value = self.numbers[value["number"]]
            return float(value) if kind == "f64" else value
        if kind == "f64" and value is not None:
            return real(value)
        return real(value) if kind == "scalar" and isinstance(value, str) else value

    def _control_attribute(self, value: Any) -> Any:
        if isinstance(value, dict) and "program" in value:
            i = value["program"]
            expect(type(i) is int and 0 <= i < len(self.program.programs), f"there is no program {i}")
            return self.program.programs[i]
        return self._attribute("i64", value)


def _wrapped(n: int, d: DType) -> np.ndarray:
    if d.kind == "b":
        return np.asarray(n != 0)
    return np.asarray(n % 2**d.bits, f"u{d.itemsize}").astype(d.numpy)


def call(op: Op, given: dict[str, Any], program: Program) -> list[Value]:
    """One node: the op's reference for operands in the dtypes that its rule computes in."""
    rounds = program.rounding == "each" or op.name in ALWAYS_ROUND

    def array(v: Any, to: DType | None = None) -> Any:
        if isinstance(v, list):
            return [array(x, to) for x in v]
        if not isinstance(v, Value):
            return v
        if not rounds and v.dtype.kind == "f" and (to is None or to.kind == "f"):
            return v.data.astype(np.float64)
        return v.rounded() if to is None else cast(v.rounded(), to)

    types = typed(op, {k: _typed_only(v) for k, v in given.items()})
    to = {"value": types.compute, "index": dt.int64, "mask": None, "raw": None}
    arguments = dict(given)
    for p in op.operands:
        arguments[p.name] = array(given[p.name], to[p.kind])
    # Attributes of the dtype that the op computes in: those of narrow floats are read as float32 values.
    like = types.compute if types.compute and types.compute.kind == "f" else None
    made = expected(op, (), arguments, like, _wide(op, types.compute))
    made = made if op.spec.n_out > 1 else (made,)
    return [
        Value(cast(np.asarray(x), d) if rounds or d.kind != "f" else np.asarray(x).astype(np.float64), d)
        for x, d in zip(made, types.results, strict=True)
    ]


def _wide(op: Op, compute: DType | None) -> Any:
    """What the reference computes in. Correctly rounded results of float64 must not be rounded twice."""
    return np.longdouble if compute is dt.float64 and op.spec.tol > CORRECTLY_ROUNDED else np.float64


def _typed_only(v: Any) -> Any:
    """Stands for a value where only its dtype is looked at."""
    if isinstance(v, list):
        return [_typed_only(x) for x in v]
    return np.empty(0, v.dtype.numpy) if isinstance(v, Value) else v


def interpret(
    program: Any,
    inputs: Sequence[np.ndarray | None],
    tensors: dict[str, np.ndarray] | None = None,
    *,
    attributes: Sequence[Any] = (),
    rounding: str = "each",
) -> list[np.ndarray]:
    """The outputs of a program: a document, its text, or the path of a .dvt or .json file.

    `attributes` are those of the op whose decomposition the program is. Raises GuardFailed where the program is
    not one for these inputs, BadProgram where it is not sound.
    """
    loaded = load_document(program, tensors)
    given = [None if x is None else Value(np.asarray(x), dt.of(np.asarray(x))) for x in inputs]
    return [v.rounded() for v in Program(loaded.document, loaded.tensors, rounding).run(given, attributes)]
