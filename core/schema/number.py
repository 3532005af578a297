"""Numbers of a trace: sizes and numeric attributes whose value Python has not looked at.

A Number has the value of this trace, and an entry in the table of the program that is being recorded. Arithmetic
makes further entries. Where Python needs the value itself, to compare, index, count or branch, a guard is recorded:
the program is right for all sizes and attributes for which its guards hold.
"""

from __future__ import annotations

import math
import numbers
import operator
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["Number", "is_integer", "largest", "smallest"]


_OWN = __file__.rpartition("schema")[0]  # the folder of the package


def _asked_by_us() -> bool:
    """Whether code of this package looks at an object's __class__."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__") == "abc":
        frame = frame.f_back
    return frame.f_code.co_filename.startswith(_OWN)


class Number:
    """An int or float of a trace. `table` records: table.number(...) -> entry, table.guard(comparison, a, b, note).

    It computes as the int or float does. Where it cannot go on symbolically it pins the value and gives a number of
    Python. Its text, and its hash, pin it.

    Programs within programs have tables of their own: table.depth counts those around it, and table.adopt(number)
    makes a number of a table around it one of its own.
    """

    __slots__ = ("entry", "leaf", "natural", "table", "value")
    __dovetail_number__ = True  # code that cannot import this module finds numbers of a trace by it

    def __init__(self, table: Any, entry: int, value: int | float, *, natural: bool = False, leaf: bool = False):
        self.table, self.entry, self.value = table, entry, value
        self.natural = natural  # it cannot be negative
        self.leaf = leaf  # an attribute: what it equals, as an axis in a list, Python wants to know exactly

    is_real = property(lambda self: isinstance(self.value, float))

    @property
    def __class__(self) -> type:
        """What isinstance() and match see where type(x) is not enough: in code of others int or float."""
        return Number if _asked_by_us() else self.seen_as()

    def seen_as(self) -> type:
        return type(self.value)

    # ---- arithmetic

    def _entry_of(self, other: Any) -> int:
        if isinstance(other, Number):
            return other.entry
        return self.table.literal(other)

    def _make(self, op: str, value: int | float, a: int, b: int = -1, natural: bool = False) -> Number:
        return Number(self.table, self.table.number(op, isinstance(value, float), a, b), value, natural=natural)

    def _binary(self, op: str, other: Any, swapped: bool = False) -> Any:
        if _is_foreign(other):
            return _applied(op, self.pin(), other, swapped)
        if not is_number(other):
            return NotImplemented
        try:
            value = _applied(op, self.value, value_of(other), swapped)
        except (ArithmeticError, TypeError, ValueError):  # the user's code may handle it
            self.pin(), pinned(other)
            raise
        if not in_table(value) or not in_table(other):
            return _applied(op, self.pin(), pinned(other), swapped)
        me, other = together(self, other)
        a, b = me.entry, me._entry_of(other)
        natural = op not in ("subtract", "divide") and self.natural and is_natural(other)
        made = me._make(op, value, *((b, a) if swapped else (a, b)), natural=natural)
        if _may_raise(op, *((other, self) if swapped else (self, other))):
            me.table.expect_value(made.entry)
        return made

    def __add__(self, other: Any) -> Any:
        return self if is_zero(other) and not self.is_real else self._binary("add", other)

    def __radd__(self, other: Any) -> Any:
        return self if is_zero(other) and not self.is_real else self._binary("add", other, swapped=True)

    def __sub__(self, other: Any) -> Any:
        return self if is_zero(other) else self._binary("subtract", other)

    def __mul__(self, other: Any) -> Any:
        return self if is_one(other) else self._binary("multiply", other)

    def __rmul__(self, other: Any) -> Any:
        return self if is_one(other) else self._binary("multiply", other, swapped=True)

    def __floordiv__(self, other: Any) -> Any:
        return self if is_one(other) and not self.is_real else self._binary("floor_divide", other)

    def __divmod__(self, other: Any) -> Any:
        quotient = self // other
        return quotient if quotient is NotImplemented else (quotient, self % other)

    def __rdivmod__(self, other: Any) -> Any:
        quotient = self.__rfloordiv__(other)  # type: ignore[attr-defined]
        return quotient if quotient is NotImplemented else (quotient, other % self)

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            return pow(self.pin(), pinned(other), pinned(modulus))
        if is_integer(other) and not self.is_real and other < 0:  # a float then
            return self.pin() ** pinned(other)
        return self._binary("power", other)

    def __rpow__(self, other: Any, modulus: Any = None) -> Any:
        if is_integer(other) and not self.is_real and self < 0:
            return other ** self.pin()
        return self._binary("power", other, swapped=True)

    def __abs__(self) -> Any:
        if self.natural:
            return self
        negative = -self
        return abs(self.pin()) if self.is_real or not isinstance(negative, Number) else largest(self, negative)

    def __round__(self, digits: int | None = None) -> Any:
        if digits is None and not self.is_real:
            return self
        return round(self.pin(), digits)

    def __neg__(self) -> Any:
        if self.is_real:
            return self._make("negative", -self.value, self.entry)
        return self._binary("subtract", 0, swapped=True)

    def __pos__(self) -> Number:
        return self

    def __invert__(self) -> Any:
        return ~self.pin() if self.is_real else -1 - self

    def bit_length(self) -> Number:
        if self.is_real:
            raise AttributeError("'float' object has no attribute 'bit_length'")
        return self._make("bit_length", self.value.bit_length(), self.entry, natural=True)

    def __ceil__(self) -> Any:
        return self._rounded("ceil", math.ceil) if self.is_real else self

    def __floor__(self) -> Any:
        return self._rounded("floor", math.floor) if self.is_real else self

    def __trunc__(self) -> Any:
        return math.trunc(self.pin()) if self.is_real else self

    def _rounded(self, op: str, function: Callable[[float], int]) -> Any:
        if not abs(self.value) < 2**63 - 1:  # also of NaN
            return function(self.pin())
        made = self._make(op, function(self.value), self.entry)
        self.table.expect_value(made.entry)
        return made

    # ---- looks at the value

    def _compare(self, comparison: str, other: Any) -> bool:
        """The comparison's result, and a guard that it is the same in every call."""
        if _is_foreign(other):
            return _COMPARED[comparison](self.pin(), other)
        if not is_number(other):
            return NotImplemented
        if not in_table(other):  # an integer: no integer of 64 bits is on its other side
            self.table.expect_value(self.entry)
            return _COMPARED[comparison](self.pin() if self.is_real else self.value, other)
        result = _COMPARED[comparison](self.value, value_of(other))
        for x in (self, other):
            if value_of(x) != value_of(x):  # NaN compares with nothing: the guard says that it is NaN
                if isinstance(x, Number):
                    x.table.guard("not_equal", x.entry, x.entry)
                return result
        me, other = together(self, other)
        a, b = me.entry, me._entry_of(other)
        if a == b and not self.is_real:
            return result
        holds, swapped = _GUARDS[comparison, result]
        me.table.guard(holds, *((b, a) if swapped else (a, b)))
        return result

    def __eq__(self, other: object) -> bool:
        if self.leaf and not self.is_real and isinstance(other, int) and other != 0:
            return self.pin() == other
        return self._compare("equal", other)

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __lt__(self, other: Any) -> bool:
        return False if self.natural and is_zero(other) else self._compare("less", other)

    def __le__(self, other: Any) -> bool:
        return self._compare("less_equal", other)

    def __gt__(self, other: Any) -> bool:
        return self != 0 if self.natural and is_zero(other) else self._compare("greater", other)

    def __ge__(self, other: Any) -> bool:
        return True if self.natural and is_zero(other) else self._compare("greater_equal", other)

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        return hash(self.pin())

    def pin(self, note: str = "") -> int | float:
        """The value, for which alone the program is then right. `note`: of the guard, why."""
        holds = "same" if self.is_real else "equal"
        self.table.guard(holds, self.entry, self.table.literal(self.value), note)
        return self.value

    def plain(self) -> Number:
        """The number as one of Python, where a function takes those of a library as such."""
        return self

    def __repr__(self) -> str:
        return repr(self.pin("which makes text of it"))

    def __str__(self) -> str:
        return str(self.pin("which makes text of it"))

    def __format__(self, spec: str) -> str:
        return format(self.pin("which makes text of it"), spec)

    def __index__(self) -> int:
        if self.is_real:
            raise TypeError("'float' object cannot be interpreted as an integer")
        return self.pin()

    def __int__(self) -> int:
        return int(self.pin())

    def __float__(self) -> float:
        return float(self.pin())

    def __complex__(self) -> complex:
        return complex(self.pin())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np

        return np.asarray(self.pin(), dtype)

    def __getattr__(self, name: str) -> Any:
        """Other attributes and methods of an int or float, as is_integer()."""
        if name.startswith("__") or not hasattr(type(self.value), name):
            raise AttributeError(f"{type(self.value).__name__!r} object has no attribute {name!r}")
        return getattr(self.pin(), name)

    def __copy__(self) -> Number:
        return self

    def __deepcopy__(self, memo: Any) -> Number:
        return self


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "floor_divide": operator.floordiv, "modulo": operator.mod, "power": operator.pow, "bit_and": operator.and_,
    "bit_or": operator.or_, "bit_xor": operator.xor, "shift_left": operator.lshift, "shift_right": operator.rshift,
}  # fmt: skip
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "equal": operator.eq, "less": operator.lt, "less_equal": operator.le, "greater": operator.gt,
    "greater_equal": operator.ge,
}  # fmt: skip
# By a comparison and its result: what holds, and whether of swapped operands.
_GUARDS = {
    ("equal", True): ("equal", False), ("equal", False): ("not_equal", False),
    ("less", True): ("less", False), ("less", False): ("less_equal", True),
    ("less_equal", True): ("less_equal", False), ("less_equal", False): ("less", True),
    ("greater", True): ("less", True), ("greater", False): ("less_equal", False),
    ("greater_equal", True): ("less_equal", True), ("greater_equal", False): ("less", False),
}  # fmt: skip


def _add_operators() -> None:
    def binary(op: str, swapped: bool) -> Callable[[Number, Any], Any]:
        return lambda self, other: self._binary(op, other, swapped)

    names = {
        "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
        "mod": "modulo", "and": "bit_and", "or": "bit_or", "xor": "bit_xor", "lshift": "shift_left",
        "rshift": "shift_right",
    }  # fmt: skip
    for name, op in names.items():
        for method, swapped in ((f"__{name}__", False), (f"__r{name}__", True)):
            if method not in vars(Number):
                setattr(Number, method, binary(op, swapped))


_add_operators()


def _may_raise(op: str, a: Any, b: Any) -> bool:
    """Whether Python may raise for other values of the numbers, where it does not for these."""
    if op in ("divide", "floor_divide", "modulo", "shift_left", "shift_right"):
        return isinstance(b, Number) and not (op.startswith("shift") and b.natural)
    return op == "power" and not (is_natural(b) and is_integer(a))


def _applied(op: str, a: Any, b: Any, swapped: bool) -> Any:
    return _OPERATORS[op](b, a) if swapped else _OPERATORS[op](a, b)


def _is_foreign(x: Any) -> bool:
    """A number with an arithmetic of its own: complex, a Fraction, one of NumPy."""
    return isinstance(x, numbers.Number) and type(x) is not float and not isinstance(x, (int, Number))


def in_table(x: Any) -> bool:
    """Whether a table can hold x: integers have 64 bits there."""
    return isinstance(x, (Number, float)) or (isinstance(x, int) and -(2**63) <= x < 2**63)


def pinned(x: Any) -> Any:
    """The Python number, for which alone the program is then right."""
    return x.pin() if isinstance(x, Number) else x


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
        elif not in_table(other):  # an integer beyond all of 64 bits
            n.table.expect_value(n.entry)
            out = choose(n.pin(), other) if n.is_real or choose(n.value, other) is other else n
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
