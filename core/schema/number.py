"""Numbers of a trace: sizes and numeric attributes whose value Python has not looked at.

A Number has the value of this trace, and an entry in the table of the program that is being recorded. Arithmetic
makes further entries. Where Python needs the value itself, to compare, index, count or branch, a guard is recorded:
the program is right for all sizes and attributes for which its guards hold.
"""

from __future__ import annotations

import math
from typing import Any

__all__ = ["Number", "is_integer", "largest", "smallest"]


class Number:
    """An int or float of a trace. `table` records: table.number(...) -> entry, table.guard(comparison, a, b).

    Programs within programs have tables of their own: table.depth counts those around it, and table.adopt(number)
    makes a number of a table around it one of its own.
    """

    __slots__ = ("entry", "leaf", "natural", "table", "value")

    def __init__(self, table: Any, entry: int, value: int | float, *, natural: bool = False, leaf: bool = False):
        self.table, self.entry, self.value = table, entry, value
        self.natural = natural  # it cannot be negative
        self.leaf = leaf  # an attribute: what it equals, as an axis in a list, Python wants to know exactly

    is_real = property(lambda self: isinstance(self.value, float))

    def __repr__(self) -> str:
        return repr(self.value)

    # ---- arithmetic

    def _entry_of(self, other: Any) -> int:
        if isinstance(other, Number):
            return other.entry
        return self.table.literal(other)

    def _make(self, op: str, value: int | float, a: int, b: int = -1, natural: bool = False) -> Number:
        return Number(self.table, self.table.number(op, isinstance(value, float), a, b), value, natural=natural)

    def _binary(self, op: str, other: Any, value: int | float, swapped: bool = False) -> Any:
        self, other = together(self, other)
        a, b = self.entry, self._entry_of(other)
        natural = op not in ("subtract", "divide") and self.natural and is_natural(other)
        return self._make(op, value, *((b, a) if swapped else (a, b)), natural=natural)

    def __add__(self, other: Any) -> Any:
        if not is_number(other):
            return NotImplemented
        return self if is_zero(other) else self._binary("add", other, self.value + value_of(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if not is_number(other):
            return NotImplemented
        return self if is_zero(other) else self._binary("subtract", other, self.value - value_of(other))

    def __rsub__(self, other: Any) -> Any:
        if not is_number(other):
            return NotImplemented
        return self._binary("subtract", other, value_of(other) - self.value, swapped=True)

    def __mul__(self, other: Any) -> Any:
        if not is_number(other):
            return NotImplemented
        if is_one(other):
            return self
        return self._binary("multiply", other, self.value * value_of(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if not is_number(other):
            return NotImplemented
        return self._binary("divide", other, self.value / value_of(other))

    def __rtruediv__(self, other: Any) -> Any:
        if not is_number(other):
            return NotImplemented
        return self._binary("divide", other, value_of(other) / self.value, swapped=True)

    def __floordiv__(self, other: Any) -> Any:
        if not is_number(other):
            return NotImplemented
        return self if is_one(other) else self._binary("floor_divide", other, self.value // value_of(other))

    def __rfloordiv__(self, other: Any) -> Any:
        if not is_number(other):
            return NotImplemented
        return self._binary("floor_divide", other, value_of(other) // self.value, swapped=True)

    def __mod__(self, other: Any) -> Any:
        return self._binary("modulo", other, self.value % value_of(other)) if is_number(other) else NotImplemented

    def __rmod__(self, other: Any) -> Any:
        if not is_number(other):
            return NotImplemented
        return self._binary("modulo", other, value_of(other) % self.value, swapped=True)

    def __rlshift__(self, other: Any) -> Any:
        return self._binary("shift_left", other, value_of(other) << self.value, swapped=True)

    def __lshift__(self, other: Any) -> Any:
        return self._binary("shift_left", other, self.value << value_of(other))

    def __rshift__(self, other: Any) -> Any:
        return self.pin() >> value_of(other)

    def __pow__(self, other: Any) -> Any:
        return self.pin() ** value_of(other) if is_number(other) else NotImplemented

    def __rpow__(self, other: Any) -> Any:
        return value_of(other) ** self.pin() if is_number(other) else NotImplemented

    def __abs__(self) -> Any:
        return self if self.natural else abs(self.pin())

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.pin(), digits)

    def __neg__(self) -> Number:
        return self._binary("subtract", 0, -self.value, swapped=True)

    def __pos__(self) -> Number:
        return self

    def bit_length(self) -> Number:
        return self._make("bit_length", self.value.bit_length(), self.entry, natural=True)

    def __ceil__(self) -> Number:
        return self._make("ceil", math.ceil(self.value), self.entry) if self.is_real else self

    def __floor__(self) -> Number:
        return self._make("floor", math.floor(self.value), self.entry) if self.is_real else self

    # ---- looks at the value

    def _compare(self, holds: str, otherwise: tuple[str, bool], other: Any, result: bool) -> bool:
        """Guards `self holds other`, or where that is false its opposite, `otherwise` with swapped operands."""
        self, other = together(self, other)
        if isinstance(other, Number) and other.entry == self.entry:
            return result
        a, b = self.entry, self._entry_of(other)
        name, swap = (holds, False) if result else otherwise
        self.table.guard(name, *((b, a) if swap else (a, b)))
        return result

    def __eq__(self, other: object) -> bool:
        if not is_number(other):
            return NotImplemented
        if self.leaf and not self.is_real and isinstance(other, int) and other != 0:
            return self.pin() == other
        return self._compare("equal", ("not_equal", False), other, self.value == value_of(other))

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __lt__(self, other: Any) -> bool:
        if not is_number(other):
            return NotImplemented
        if self.natural and is_zero(other):
            return False
        return self._compare("less", ("less_equal", True), other, self.value < value_of(other))

    def __le__(self, other: Any) -> bool:
        if not is_number(other):
            return NotImplemented
        return self._compare("less_equal", ("less", True), other, self.value <= value_of(other))

    def __gt__(self, other: Any) -> bool:
        if not is_number(other):
            return NotImplemented
        if self.natural and is_zero(other):
            return self != 0
        result = self.value > value_of(other)
        return not self._compare("less_equal", ("less", True), other, not result)

    def __ge__(self, other: Any) -> bool:
        if not is_number(other):
            return NotImplemented
        if self.natural and is_zero(other):
            return True
        result = self.value >= value_of(other)
        return not self._compare("less", ("less_equal", True), other, not result)

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        return hash(self.pin())

    def pin(self) -> int | float:
        """The value, for which alone the program is then right."""
        self.table.guard("equal", self.entry, self.table.literal(self.value))
        return self.value

    def __index__(self) -> int:
        if self.is_real:
            raise TypeError(f"{self.value!r} is no integer")
        return self.pin()

    def __int__(self) -> int:
        return int(self.pin())

    def __float__(self) -> float:
        return float(self.pin())


def together(n: Number, other: Any) -> tuple[Number, Any]:
    """Both in the inner one of their tables."""
    if not isinstance(other, Number) or other.table is n.table:
        return n, other
    if other.table.depth > n.table.depth:
        return other.table.adopt(n), other
    return n, n.table.adopt(other)


def is_number(x: Any) -> bool:
    return isinstance(x, (Number, int, float))


def is_zero(x: Any) -> bool:
    return isinstance(x, int) and x == 0


def is_one(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and x == 1


def is_natural(x: Any) -> bool:
    return x.natural if isinstance(x, Number) else isinstance(x, int) and x >= 0


def is_integer(x: Any) -> bool:
    """Whether x is an int, of a trace or of Python."""
    return not x.is_real if isinstance(x, Number) else isinstance(x, int)


def value_of(x: Any) -> Any:
    return x.value if isinstance(x, Number) else x


def _chosen(op: str, choose: Any, values: tuple) -> Any:
    out = values[0]
    for x in values[1:]:
        if not isinstance(out, Number) and not isinstance(x, Number):
            out = choose(out, x)
            continue
        n, other = together(*((out, x) if isinstance(out, Number) else (x, out)))
        if isinstance(other, Number) and other.entry == n.entry:
            out = n
        elif is_zero(other) and n.natural:  # min(0, n) is 0, max(0, n) is n
            out = 0 if choose is min else n
        else:
            natural = is_natural(n) or is_natural(other) if choose is max else is_natural(n) and is_natural(other)
            out = n._make(op, choose(n.value, value_of(other)), n.entry, n._entry_of(other), natural)
    return out


def smallest(*values: Any) -> Any:
    """min() that does not look at the values."""
    return _chosen("minimum", min, values)


def largest(*values: Any) -> Any:
    """max() that does not look at the values."""
    return _chosen("maximum", max, values)
