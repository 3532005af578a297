"""How each op of a program is written: as an op of ONNX, or as a function of its decomposition."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from onnx import helper

from dovetail import _core
from dovetail._dtypes import finfo
from dovetail.onnx.writer import DOMAIN, Node, Writer, place_of, typed
from dovetail.schema import registry

__all__ = ["RULES", "evaluated", "rule", "write"]

Rule = Callable[[Node], Any]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Makes a function the rule of ops: it returns the names of the results, or None where ONNX's op is another."""

    def put(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return put


def write(node: Node) -> Any:
    """The names of the results of a node."""
    from dovetail.onnx import writing_control, writing_layers, writing_ops  # noqa: F401 - they register rules

    if node.op in RULES:
        made = RULES[node.op](node)
        if made is not None:
            return made
    return call_of_function(node)


def call_of_function(node: Node) -> Any:
    """A call of the local function that the op's decomposition is."""
    w = node.w
    operands = [None if x is None else node.type(i) for i, x in enumerate(node.operands)]
    program, symbolic = _decomposition(node, operands)
    key = (
        node.op, json.dumps(program, sort_keys=True), json.dumps(_plain(node.at), sort_keys=True),
        tuple(None if t is None else (t[0], len(t[1])) for t in operands),
    )  # fmt: skip
    function = w.file.functions.get(key)
    if function is None:
        function = w.file.functions[key] = _function(
            node, program, [t for t in operands if t is not None], symbolic
        )
    inputs = [x for x in node.xs() if x] + [
        w.number(entry) if isinstance(entry, int) else entry for entry in symbolic.values()
    ]
    return w.add(function.name, inputs, node.n_out, domain=DOMAIN)


def _plain(at: dict[str, Any]) -> dict[str, Any]:
    """Attributes as JSON, with all numbers of the table alike."""

    def plain(v: Any) -> Any:
        if isinstance(v, (list, tuple)):
            return [plain(x) for x in v]
        if isinstance(v, dict):
            return "number" if "number" in v else v
        return v if isinstance(v, (int, float, str, bool, type(None))) else str(v)

    return {k: plain(v) for k, v in at.items()}


def _decomposition(node: Node, operands: list[Any]) -> tuple[dict[str, Any], dict[tuple[int, ...], Any]]:
    """The program of a decomposition, and its attributes that are numbers of the table: of each place the entry, or
    the name of a number that follows from operands."""
    symbolic: dict[tuple[int, ...], Any] = {}
    attributes: dict[str, Any] = {}
    for position, p in enumerate(registry[node.op].attributes):
        value = node.at[p.name]
        if isinstance(value, (list, tuple)):
            value = [_value(node, v, (position, k), symbolic) for k, v in enumerate(value)]
        elif value is None and p.kind == "f64" and p.name in _FROM_OPERANDS:
            symbolic[position,] = _FROM_OPERANDS[p.name](node)
        else:
            value = _value(node, value, (position,), symbolic)
        if p.name in node.given:
            attributes[p.name] = value
    if not registry[node.op].spec.has_decomposition:
        dtypes = ", ".join(t[0] for t in operands if t)
        raise NotImplementedError(
            f"[onnx.save] {node.op} of {dtypes}: ONNX has no such op; leave it out of the program"
        )
    given = [None if t is None else (t[0], list(t[1])) for t in operands]
    _, text = _core.decomposition_text(node.op, given, attributes)
    return json.loads(text), symbolic


def _value(node: Node, value: Any, place: tuple[int, ...], symbolic: dict[tuple[int, ...], int]) -> Any:
    if isinstance(value, dict) and "number" in value:
        symbolic[place] = value["number"]
        return evaluated(node.w, value["number"])
    if isinstance(value, dict):
        return value.get("dtype", value)
    return float(value) if value in ("inf", "-inf", "nan") else value


def evaluated(w: Writer, k: int) -> Any:
    """A number of the table for the sizes that the file is written with."""
    entry = w.program["numbers"][k]
    if not isinstance(entry, list):
        return float(entry) if isinstance(entry, str) else entry
    op, *of = entry
    if op == "size":
        return w.types[of[0]][1][of[1]]
    if op.endswith("attribute"):
        return w.known_attributes[place_of(w.known_attributes, of)]
    a, b = (evaluated(w, n) if n >= 0 else None for n in (*of, -1)[:2])
    return _ARITHMETIC[op](a, b)


def _function(node: Node, program: dict[str, Any], inputs: list[Any], symbolic: dict[tuple[int, ...], int]) -> Any:
    """The FunctionProto of a decomposition."""
    file = node.w.file
    name = file.name(f"{node.op}_{inputs[0][0]}" if inputs else node.op)
    names = [f"x{i}" for i in range(len(inputs))] + [f"n{i}" for i in range(len(symbolic))]
    known = _normalised(node)
    inner = Writer(file, program, typed(program, inputs, known), names[: len(inputs)])
    inner.known_attributes = known
    places = dict(zip(symbolic, names[len(inputs) :]))

    def attribute(of: list[int]) -> str:
        place = place_of(inner.known_attributes, of)
        if place in places:
            return places[place]
        value = inner.known_attributes[place]
        return inner.constant(value, "float64" if isinstance(value, float) else "int64")

    inner.attributes = attribute
    outputs = inner.run()
    made = [inner.add("Identity", [x]) for x in outputs]  # an output may be an input
    return helper.make_function(DOMAIN, name, names, made, inner.nodes, file.opsets)


def _normalised(node: Node) -> dict[tuple[int, ...], Any]:
    """The numbers of a node's attributes by place, as decompositions have them."""
    found: dict[tuple[int, ...], Any] = {}
    for position, p in enumerate(registry[node.op].attributes):
        value = node.at[p.name]
        if p.name == "axis" and node.has(0) and node.op != "expand_dims":
            value = _counted_from_the_front(value, node.rank(), p.kind)
        if p.name == "stride" and value is None:
            value = node.at["kernel_size"]
        if p.kind == "f64":
            value = math.nan if value is None else float(value) if isinstance(value, str) else value
        if isinstance(value, (list, tuple)):
            for k, v in enumerate(value):
                found[position, k] = evaluated(node.w, v["number"]) if isinstance(v, dict) else v
        elif isinstance(value, dict) and "number" in value:
            found[position,] = evaluated(node.w, value["number"])
        elif isinstance(value, (int, float)):
            found[position,] = value
    return found


def _scale_of_scores(node: Node) -> str:
    """1 / sqrt(size of a key)."""
    size = node.w.cast(node.w.size(node.x(), node.rank() - 1), "float64")
    return node.w.add("Reciprocal", [node.w.add("Sqrt", [size])])


def _epsilon(node: Node) -> str:
    return node.w.constant(finfo(node.dtype()).eps, "float64")


# Numbers that an attribute has where it is not given, if the op's declaration has none.
_FROM_OPERANDS: dict[str, Callable[[Node], str]] = {"eps": _epsilon, "scale": _scale_of_scores}


def _counted_from_the_front(axis: Any, rank: int, kind: str) -> Any:
    if axis is None:
        return list(range(rank)) if kind == "i64s" else 0 if rank == 1 else None
    if isinstance(axis, (list, tuple)):
        return [a % rank if isinstance(a, int) else a for a in axis]
    return axis % rank if isinstance(axis, int) and rank else axis


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b, "floor_divide": lambda a, b: a // b, "modulo": lambda a, b: a % b, "minimum": min,
    "maximum": max, "negative": lambda a, b: -a, "power": lambda a, b: a**b, "to_real": lambda a, b: float(a),
    "floor": lambda a, b: int(a // 1), "ceil": lambda a, b: int(-(-a // 1)), "shift_left": lambda a, b: a << b,
    "shift_right": lambda a, b: a >> b, "bit_length": lambda a, b: a.bit_length(), "bit_and": lambda a, b: a & b,
    "bit_or": lambda a, b: a | b, "bit_xor": lambda a, b: a ^ b,
}  # fmt: skip
