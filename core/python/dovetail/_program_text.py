"""Programs as people read them: a line per node, with sizes by name, dtypes, and the line of the user's code."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from dovetail._program import Program

__all__ = ["Listing", "Row", "listing"]

_SIGNS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//", "modulo": "%", "power": "**",
    "shift_left": "<<", "shift_right": ">>", "bit_and": "&", "bit_or": "|", "bit_xor": "^",
}  # fmt: skip
_COMPARED = {"equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "same": "is"}
# Sizes for which shapes are computed, to find out how they follow from the inputs'. Multiples of 24 first, as many
# reshapes want their divisors.
_PRIMES = (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)
_TRIALS = (24, 36, 1, 5, 120)


def listing(program: Program, integers: Sequence[int] = (), reals: Sequence[float] = ()) -> str:
    """The program as text; of one with numbers as arguments, what they are when it finds out the sizes."""
    return "\n".join(Listing(program, integers, reals).lines())


class Row(NamedTuple):
    """A node as it is shown."""

    op: str
    results: tuple[int, ...]  # numbers of its values
    operands: tuple[int, ...]  # of values that are neither numbers nor constants
    constants: tuple[str, ...]  # names of the arrays among its operands
    call: str  # "v2 = take(w0, ids, axis=0)"
    types: str  # "float32[b, t, 4]"
    where: str  # "model.py:12"


class Listing:
    """Names, types and lines of a program's parts."""

    def __init__(self, program: Program, integers: Sequence[int], reals: Sequence[float]):
        self.program, self.arguments = program, (integers, reals)
        self.json = json.loads(program.text())
        self.names = [port.name or f"input{i}" for i, port in enumerate(program.inputs)]
        self.names = [name if name.isidentifier() else f"{{{name}}}" for name in self.names]
        self.sizes = self._sizes_of_inputs()
        self.types = self._types()

    # ---- lines ------------------------------------------------------------------------------------------------

    def lines(self) -> Iterator[str]:
        inputs = ", ".join(f"{name}: {self.type_of(i)}" for i, name in enumerate(self.names))
        yield f"program {self.program.name}({inputs})"
        for name, tensor in self.json.get("tensors", {}).items():
            yield f"  {name}: {tensor['dtype']}[{', '.join(map(str, tensor['shape']))}] is constant"
        rows = [("  " + row.call, row.types, row.where) for row in self.rows()]
        width = min(max((len(row[0]) for row in rows), default=0), 64)
        typed = min(max((len(row[1]) for row in rows), default=0), 28)
        for call, types, where in rows:
            yield f"{call:<{width}}  {types:<{typed}}  {where}".rstrip()
        for guard in self.guards():
            yield f"  # made for {guard}"
        yield "  return " + ", ".join(map(self._operand, self.json["outputs"]))

    def rows(self) -> Iterator[Row]:
        """The nodes, in their order."""
        value = len(self.names)
        for node in self.json["nodes"]:
            results = tuple(range(value, value + self._n_out(node)))
            value += len(results)
            made = ", ".join(f"v{i}" for i in results)
            yield Row(
                node["op"],
                results,
                tuple(x for x in node["in"] if isinstance(x, int)),
                tuple(x["tensor"] for x in node["in"] if isinstance(x, dict) and "tensor" in x),
                f"{made} = {node['op']}({self._arguments(node)})",
                ", ".join(map(self.type_of, results)),
                _short(node.get("where", "")),
            )

    def guards(self) -> Iterator[str]:
        """What the program is made for: conditions on sizes, with the line that compared them."""
        for comparison, a, b, _, *where in self.json.get("guards", ()):
            held = f"a value of {self._number(a)}" if comparison == "same" and a == b else ""
            line = held or f"{self._number(a)} {_COMPARED[comparison]} {self._number(b)}"
            yield line + (f", {_short(where[0])}" if where else "")

    def _n_out(self, node: dict[str, Any]) -> int:
        if "out" in node:
            return node["out"]
        from dovetail.schema import registry

        op = registry.get(node["op"])
        return 1 if op is None else op.spec.n_out

    def _arguments(self, node: dict[str, Any]) -> str:
        operands = [*map(self._operand, node["in"])]
        while operands and operands[-1] == "None":
            operands.pop()
        attributes = [f"{name}={self._attribute(value)}" for name, value in node.get("at", {}).items()]
        return ", ".join(operands + attributes)

    def _operand(self, x: Any) -> str:
        if x is None:
            return "None"
        if isinstance(x, int):
            return self.names[x] if x < len(self.names) else f"v{x}"
        if "tensor" in x:
            return x["tensor"]
        return self._number(x["number"]) if "number" in x else repr(x.get("n"))

    def _attribute(self, x: Any) -> str:
        if isinstance(x, list):
            inner = ", ".join(map(self._attribute, x))
            return f"({inner},)" if len(x) == 1 else f"({inner})"
        if isinstance(x, dict):
            if "number" in x:
                return self._number(x["number"])
            ((kind, value),) = x.items()
            return str(value) if kind == "dtype" else f"{kind} {value}"
        return repr(x)

    def _number(self, k: int, inside: bool = False) -> str:
        entry = self.json["numbers"][k]
        if not isinstance(entry, list):
            return str(entry)  # also inf and nan, which JSON spells as strings
        op, *of = entry
        if op == "size":
            value, axis = of
            if value < len(self.names):
                return (
                    self.sizes[value][axis]
                    if axis < len(self.sizes[value])
                    else f"{self.names[value]}.shape[{axis}]"
                )
            return f"v{value}.shape[{axis}]"
        if op in _SIGNS:
            text = f"{self._number(of[0], True)} {_SIGNS[op]} {self._number(of[1], True)}"
            return f"({text})" if inside else text
        if op.endswith("attribute"):
            return self.program._core.arguments[of[1]]
        name = {"minimum": "min", "maximum": "max"}.get(op, op)
        return f"{name}({', '.join(self._number(n) for n in of if isinstance(n, int) and n >= 0)})"

    # ---- types ------------------------------------------------------------------------------------------------

    def type_of(self, value: int) -> str:
        """dtype[sizes] of a value; "" where they are not known."""
        if value < len(self.names):
            dtype = self.program.inputs[value].dtype
            return f"{dtype}[{', '.join(self.sizes[value])}]" if dtype else "any"
        return self.types[value] if value < len(self.types) else ""

    def _sizes_of_inputs(self) -> list[list[str]]:
        """The sizes as text: 16, a name, or ids.0 for axis 0 of the input ids."""
        return [
            [f"{name}.{axis}" if n is None else str(n) for axis, n in enumerate(port.shape or ())]
            for name, port in zip(self.names, self.program.inputs, strict=True)
        ]

    def _types(self) -> list[str]:
        """dtype[sizes] of each value; empty where the program takes none of the sizes that were tried."""
        found: list[tuple[dict[str, int], list[tuple[str, tuple[int, ...]]]]] = []
        for factor in _TRIALS:
            known: dict[str, int] = {}
            shapes = []
            for port, texts in zip(self.program.inputs, self.sizes, strict=True):
                for n, text in zip(port.shape or (), texts, strict=True):
                    if not isinstance(n, int):
                        known.setdefault(text, factor * _PRIMES[len(known) % len(_PRIMES)])
                shapes.append(
                    [n if isinstance(n, int) else known[text] for n, text in zip(port.shape or (), texts)]
                )
            try:
                types = self.program._core.types(shapes, *self.arguments)
            except (ValueError, IndexError, TypeError):  # sizes that a guard or a rule refuses
                continue
            found.append((known, types))
            if len(found) == 2 or not known:
                break
        if not found:
            return []
        return [f"{found[0][1][i][0]}[{', '.join(self._sizes(found, i))}]" for i in range(len(found[0][1]))]

    def _sizes(self, found: list[Any], value: int) -> Iterator[str]:
        rank = len(found[0][1][value][1])
        for axis in range(rank):
            yield _expression([(known, types[value][1][axis]) for known, types in found])


def _expression(cases: list[tuple[dict[str, int], int]]) -> str:
    """How a size follows from named ones: the first simple expression that is right in all cases."""
    for text, value in _candidates(cases[0]):
        if all(value(known) == n for known, n in cases):
            return text
    return "?"


def _candidates(case: tuple[dict[str, int], int]) -> Iterator[tuple[str, Callable[[dict[str, int]], int]]]:
    known, n = case
    if len(known) == 0 or n < min(known.values()):
        yield str(n), lambda known: n
    for name in known:
        yield name, lambda known, a=name: known[a]
    yield str(n), lambda known: n
    names = list(known)
    for i, a in enumerate(names):
        for b in names[i:]:
            yield f"{a}*{b}", lambda known, a=a, b=b: known[a] * known[b]
            yield f"{a} + {b}", lambda known, a=a, b=b: known[a] + known[b]
            if known[a] * known[b] and n % (known[a] * known[b]) == 0:
                k = n // (known[a] * known[b])
                yield f"{k}*{a}*{b}", lambda known, a=a, b=b, k=k: k * known[a] * known[b]
    for a in names:
        if known[a] and n and n % known[a] == 0:
            yield f"{n // known[a]}*{a}", lambda known, a=a, k=n // known[a]: k * known[a]
        if n and known[a] > n:
            yield f"{a} // {known[a] // n}", lambda known, a=a, k=known[a] // n: known[a] // k
        d = n - known[a]
        yield f"{a} {'+' if d >= 0 else '-'} {abs(d)}", lambda known, a=a, d=d: known[a] + d


def _short(where: str) -> str:
    """The file without its folders."""
    return os.path.basename(where)
