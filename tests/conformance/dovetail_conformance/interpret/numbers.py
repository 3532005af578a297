"""The table of numbers of a program: integers as in Python but of 64 bits, reals as float64."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any

from .document import BadProgram, expect

INTEGERS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "floor_divide": lambda a, b: a // b,
    "modulo": lambda a, b: a % b,
    "minimum": min,
    "maximum": max,
    "shift_left": lambda a, b: a << b,
    "power": operator.pow,
    "bit_and": operator.and_,
    "bit_or": operator.or_,
    "bit_xor": operator.xor,
    "shift_right": operator.rshift,
}
REALS: dict[str, Callable[[float, float], float]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "floor_divide": lambda a, b: a // b,
    "modulo": lambda a, b: a % b,
    "minimum": min,
    "maximum": max,
    "power": operator.pow,
}
UNARY: dict[str, Callable[[Any], Any]] = {
    "bit_length": lambda a: a.bit_length(),
    "to_real": float,
    "floor": math.floor,
    "ceil": math.ceil,
    "negative": operator.neg,
}
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "same": lambda a, b: type(a) is type(b) and _bits(a) == _bits(b),
}
LEAVES = ("size", "attribute", "real_attribute")
WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def _bits(x: int | float) -> int | bytes:
    return struct.pack("<d", x) if isinstance(x, float) else x


class GuardFailed(ValueError):
    """The program is not one for these sizes and numbers."""


def real(value: Any) -> float:
    """A real of the text, which writes infinities and NaN as words."""
    value = WORDS.get(value, value) if isinstance(value, str) else value
    expect(type(value) in (int, float), f"expected a real number, got {value!r}")
    return float(value)


class Numbers:
    """The entries' values, computed when they are needed. `attributes` are those of the traced call."""

    def __init__(self, table: list[Any], size: Callable[[int, int], int], attributes: Sequence[Any]):
        self._table, self._size, self._attributes = table, size, attributes
        self._known: dict[int, int | float] = {}

    def __getitem__(self, i: int) -> int | float:
        expect(type(i) is int and 0 <= i < len(self._table), f"there is no number {i}")
        for k in sorted(self._unknown(i)):
            self._known[k] = self._compute(k)
        return self._known[i]

    def _unknown(self, i: int) -> set[int]:
        """Of the entries that entry i follows from, and itself, those without a value yet."""
        found, todo = set(), [i]
        while todo:
            k = todo.pop()
            if k in self._known or k in found:
                continue
            found.add(k)
            entry = self._table[k]
            if isinstance(entry, list) and entry[0] not in LEAVES:
                expect(all(type(a) is int and 0 <= a < k for a in entry[1:]), f"number {k}: expected earlier ones")
                todo += entry[1:]
        return found

    def _compute(self, i: int) -> int | float:
        entry = self._table[i]
        if not isinstance(entry, list):
            return entry if type(entry) is int else real(entry)
        op, *args = entry
        if op == "size":
            return self._size(*args)
        if op in ("attribute", "real_attribute"):
            value = self._attributes[args[0]]
            value = value[args[1]] if len(args) > 1 else value
            return float(value) if op == "real_attribute" else int(value)
        return self._apply(i, op, [self._known[k] for k in args])

    def _apply(self, i: int, op: str, values: list[int | float]) -> int | float:
        try:
            if op in UNARY:
                result = UNARY[op](*values)
            elif op == "divide":
                result = values[0] / values[1]
            elif any(type(v) is float for v in values):
                result = REALS[op](*map(float, values))
            else:
                result = INTEGERS[op](*values)
        except KeyError:
            raise BadProgram(f"number {i}: there is no number operation '{op}' of these operands") from None
        except ZeroDivisionError:
            raise GuardFailed(f"number {i}: {op} by 0") from None
        except (OverflowError, ValueError) as e:
            raise GuardFailed(f"number {i}: {op}: {e}") from None
        if isinstance(result, complex):
            raise GuardFailed(f"number {i}: {op} gives a complex number")
        if type(result) is int and not -(2**63) <= result < 2**63:
            raise GuardFailed(f"number {i}: {op} leaves 64 bits")
        return result
