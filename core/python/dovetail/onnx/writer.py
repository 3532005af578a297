"""Nodes of an ONNX graph or function, made from the nodes of a program."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from dovetail import _core
from dovetail._array import numpy_dtype
from dovetail.onnx.values import number_of_dtype
from dovetail.schema import registry

__all__ = ["DOMAIN", "File", "Node", "Type", "Writer", "place_of", "typed"]

DOMAIN = "dovetail"
Type = tuple[str, tuple[int, ...]]  # a dtype, and sizes that are right for one call


class File:
    """What all graphs and functions of a file share: its functions, and names that are used once."""

    def __init__(self, opset: int, constants: dict[str, Any]):
        self.opset, self.constants = opset, constants
        self.functions: dict[Any, onnx.FunctionProto] = {}
        self.names: dict[str, int] = {}
        self.opsets = [helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)]

    def name(self, stem: str) -> str:
        self.names[stem] = self.names.get(stem, 0) + 1
        return stem if self.names[stem] == 1 else f"{stem}_{self.names[stem]}"


class Node:
    """A node of a program: its operands as names and types, and all of its attributes."""

    def __init__(self, writer: Writer, described: dict[str, Any], types: Sequence[Type]):
        self.w, self.op = writer, described["op"]
        op = registry[self.op]
        given = described.get("at", {})
        self.at: dict[str, Any] = {p.name: given.get(p.name, p.default) for p in op.attributes}
        self.given, self.out = given, list(types)
        self.operands = list(described["in"])
        self.n_out = described.get("out", op.spec.n_out)

    def __len__(self) -> int:
        return len(self.operands)

    def has(self, i: int) -> bool:
        return i < len(self.operands) and self.operands[i] is not None

    def type(self, i: int) -> Type:
        return self.w.type_of(self.operands[i])

    def dtype(self, i: int = 0) -> str:
        return self.type(i)[0]

    def rank(self, i: int = 0) -> int:
        return len(self.type(i)[1])

    def x(self, i: int = 0) -> str:
        """The name of operand i; "" where it is not given."""
        if not self.has(i):
            return ""
        return self.w.operand(self.operands[i])

    def xs(self) -> list[str]:
        return [self.x(i) for i in range(len(self))]

    def static(self, name: str) -> Any:
        """An attribute as Python's numbers: ONNX has it as an attribute, too, which is the same in every call."""
        from dovetail.onnx.writing import evaluated

        def plain(v: Any) -> Any:
            if isinstance(v, (list, tuple)):
                return [plain(x) for x in v]
            return evaluated(self.w, v["number"]) if isinstance(v, dict) and "number" in v else v

        return plain(self.at[name])

    def dtype_of(self, name: str) -> str | None:
        """The dtype that an attribute names."""
        value = self.at[name]
        return value["dtype"] if isinstance(value, dict) else value


class Writer:
    """The nodes of one graph or function. `values` are the names of the program's values."""

    def __init__(self, file: File, program: dict[str, Any], types: Sequence[Type], values: Sequence[str]):
        self.file, self.program, self.types = file, program, list(types)
        self.nodes: list[onnx.NodeProto] = []
        self.values = list(values)
        self.numbers: dict[Any, str] = {}
        self.attributes: Callable[[list[Any]], str] | None = None  # the name of an attribute's number
        self.known_attributes: dict[tuple[int, ...], Any] = {}  # what it is where the file is written
        self._constants: dict[Any, str] = {}

    # ---- nodes

    def add(self, op: str, inputs: Sequence[str], n_out: int = 1, domain: str = "", **attributes: Any) -> Any:
        """A node; the name of its output, or of all of several."""
        outputs = [self.file.name("t") for _ in range(n_out)]
        inputs = list(inputs)
        while inputs and not inputs[-1]:
            inputs.pop()
        kept = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(op, inputs, outputs, domain=domain, **kept))
        return outputs[0] if n_out == 1 else outputs

    def constant(self, value: Any, dtype: str | None = None) -> str:
        x = np.asarray(value)
        x = x.astype(numpy_dtype(dtype)) if dtype else x
        key = x.dtype.name, x.shape, x.tobytes()
        if key not in self._constants:
            self._constants[key] = self.add("Constant", [], value=numpy_helper.from_array(x))
        return self._constants[key]

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def cast(self, x: str, dtype: str) -> str:
        return self.add("Cast", [x], to=number_of_dtype(dtype))

    # ---- operands

    def type_of(self, x: Any) -> Type:
        if isinstance(x, int):
            return self.types[x]
        if "tensor" in x:
            t = self.program["tensors"][x["tensor"]]
            return t["dtype"], tuple(t["shape"])
        return x.get("dtype", "float32"), ()

    def operand(self, x: Any) -> str:
        if isinstance(x, int):
            return self.values[x]
        if "tensor" in x:
            return self.file.constants[x["tensor"]]
        if "number" in x:
            return self.cast(self.number(x["number"]), x["dtype"])
        value = x["n"]
        return self.constant(float(value) if isinstance(value, str) else value, x["dtype"])

    # ---- numbers

    def number(self, k: int) -> str:
        """Entry k of the program's table, as an int64 or float64 scalar."""
        if k not in self.numbers:
            self.numbers[k] = self._number(self.program["numbers"][k])
        return self.numbers[k]

    def is_real(self, k: int) -> bool:
        entry = self.program["numbers"][k]
        if not isinstance(entry, list):
            return isinstance(entry, (float, str))
        op, *of = entry
        if op in ("to_real", "divide", "real_attribute"):
            return True
        return op in ("add", "subtract", "multiply", "minimum", "maximum", "negative", "power", "modulo") and any(
            self.is_real(n) for n in of if n >= 0
        )

    def _number(self, entry: Any) -> str:
        if not isinstance(entry, list):
            return self.constant(float(entry) if isinstance(entry, str) else entry,
                                 "int64" if isinstance(entry, int) else "float64")  # fmt: skip
        op, *of = entry
        if op == "size":
            return self.size(self.values[of[0]], of[1])
        if op.endswith("attribute"):
            if self.attributes is None:
                raise NotImplementedError("a program with numbers as arguments")
            return self.attributes(of)
        operands = [self.number(n) for n in of if n >= 0]
        real = any(self.is_real(n) for n in of if n >= 0)
        if real:
            operands = [x if self.is_real(n) else self.cast(x, "float64") for x, n in zip(operands, of)]
        if op in _PLAIN:
            return self.add(_PLAIN[op], operands)
        if op == "floor_divide" and not real:  # ONNX divides integers towards zero
            rest = self.add("Mod", operands)
            return self.add("Div", [self.add("Sub", [operands[0], rest]), operands[1]])
        if op == "modulo" and not real:
            return self.add("Mod", operands)
        if op == "divide":
            return self.add("Div", [self.cast(x, "float64") for x in operands])
        if op == "to_real":
            return self.cast(operands[0], "float64")
        if op in ("floor", "ceil"):
            return self.cast(self.add(op.capitalize(), operands), "int64")
        if op == "bit_length":  # how many powers of 2 it reaches
            powers = self.constant(np.array([1 << k for k in range(63)], np.int64))
            reached = self.cast(self.add("GreaterOrEqual", [operands[0], powers]), "int64")
            return self.add("ReduceSum", [reached], keepdims=0)
        if op in ("shift_left", "shift_right"):
            power = self.add("Pow", [self.ints_scalar(2), operands[1]])
            return self.add("Mul" if op == "shift_left" else "Div", [operands[0], power])
        raise NotImplementedError(f"a size that is computed by {op}; fix the sizes of the program")

    def ints_scalar(self, n: int) -> str:
        return self.constant(np.int64(n))

    def size(self, x: str, axis: int) -> str:
        """The size of an axis as a scalar."""
        key = "size", x, axis
        if key not in self.numbers:
            shape = self.add("Shape", [x], start=axis, end=axis + 1)
            self.numbers[key] = self.add("Squeeze", [shape, self.ints(0)])
        return self.numbers[key]

    def sizes(self, values: Any) -> str:
        """A list of integers, of which some may be numbers of the table, as an int64 vector."""
        if isinstance(values, (int, dict)):
            values = [values]
        if all(isinstance(n, int) for n in values):
            return self.ints(*values)
        parts = [
            self.ints(n) if isinstance(n, int) else self.add("Unsqueeze", [self.number(n["number"]), self.ints(0)])
            for n in values
        ]
        return parts[0] if len(parts) == 1 else self.add("Concat", parts, axis=0)

    def scalar_of(self, value: Any) -> str:
        """An integer attribute, or number of the table, as a scalar."""
        return self.ints_scalar(value) if isinstance(value, int) else self.number(value["number"])

    # ---- programs

    def run(self) -> list[str]:
        """Writes all nodes; the names of the outputs."""
        from dovetail.onnx.writing import write

        at = len(self.program["inputs"])
        for described in self.program["nodes"]:
            n_out = described.get("out", registry[described["op"]].spec.n_out)
            node = Node(self, described, self.types[at : at + n_out])
            made = write(node)
            self.values += made if isinstance(made, list) else [made]
            at += n_out
        return [self.operand(x) for x in self.program["outputs"]]

    def within(
        self, program: dict[str, Any], types: Sequence[Type], values: Sequence[str], attributes: Any = None
    ) -> Writer:
        """A writer for a program that a node of this one holds: a subgraph, which sees the names around it."""
        made = Writer(self.file, program, typed(program, types, attributes), values)
        made.known_attributes = attributes or {}
        return made


def typed(program: dict[str, Any], inputs: Sequence[Type], attributes: Any = None) -> list[Type]:
    """The types of all values of a program for inputs of these types, and for numbers of attributes by place."""
    described = {k: v for k, v in program.items() if k not in ("dovetail", "inputs", "signature")}
    if attributes:
        described["numbers"] = [
            _spelled(attributes[place_of(attributes, n[1:])])
            if isinstance(n, list) and n[0].endswith("attribute") else n for n in described.get("numbers", [])
        ]  # fmt: skip
    described["inputs"] = [{"dtype": dtype, "shape": [None] * len(shape)} for dtype, shape in inputs]
    made = _core.program_from_text(json.dumps({"dovetail": 1, **described}))
    return [(dtype, tuple(shape)) for dtype, shape in made.types([list(shape) for _, shape in inputs])]


def place_of(attributes: dict[tuple[int, ...], Any], of: Sequence[int]) -> tuple[int, ...]:
    """The place of a number: one integer stands for each of a list."""
    places = (tuple(of), (of[0],), (of[0], 0))
    return next((place for place in places if place in attributes), places[0])


def _spelled(n: Any) -> Any:
    """A number as the programs' JSON has it."""
    return str(n) if isinstance(n, float) and not math.isfinite(n) else n


_PLAIN = {"add": "Add", "subtract": "Sub", "multiply": "Mul", "minimum": "Min", "maximum": "Max", "negative": "Neg",
          "power": "Pow", "bit_and": "BitwiseAnd", "bit_or": "BitwiseOr", "bit_xor": "BitwiseXor"}  # fmt: skip
