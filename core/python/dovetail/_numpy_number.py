"""A number of NumPy among the arguments of a compiled function."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from dovetail._core import Array
from dovetail.schema.number import Number, pinned

__all__ = ["NumpyNumber"]


class NumpyNumber(Number):
    """Symbolic as an operand of ops and as a size, which take NumPy's numbers as Python's.

    NumPy rounds and wraps its own arithmetic by dtype: computing with it, or looking at it, pins it.
    """

    __slots__ = ("original", "was_seen")
    shape = ()
    ndim = 0

    def __init__(self, table: Any, entry: int, original: Any):
        Number.__init__(self, table, entry, original.item())
        self.original, self.was_seen = original, False

    def seen_as(self) -> type:
        self.was_seen = True
        return type(self.original)

    def plain(self) -> Number:
        return Number(self.table, self.entry, self.value)

    def pin(self, note: str = "") -> Any:
        Number.pin(self, note)
        self.was_seen = True
        return self.original


def _add_operators() -> None:
    def binary(function: Callable[[Any, Any], Any], swapped: bool) -> Callable[[Any, Any], Any]:
        def method(self: NumpyNumber, other: Any) -> Any:
            if isinstance(other, Array):
                return NotImplemented  # the array computes with this number
            mine, other = self.pin(), pinned(other)
            return function(other, mine) if swapped else function(mine, other)

        return method

    def unary(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda self: function(self.pin())

    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift", "pow"):
        function = getattr(operator, f"__{name}__")
        setattr(NumpyNumber, f"__{name}__", binary(function, False))
        setattr(NumpyNumber, f"__r{name}__", binary(function, True))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(NumpyNumber, f"__{name}__", binary(getattr(operator, f"__{name}__"), False))
    for name in ("neg", "pos", "abs", "invert"):
        setattr(NumpyNumber, f"__{name}__", unary(getattr(operator, f"__{name}__")))
    NumpyNumber.__bool__ = unary(bool)  # type: ignore[method-assign]
    NumpyNumber.__hash__ = unary(hash)  # type: ignore[method-assign]
    NumpyNumber.__divmod__ = binary(divmod, False)  # type: ignore[method-assign]
    NumpyNumber.__rdivmod__ = binary(divmod, True)  # type: ignore[method-assign]
    NumpyNumber.__round__ = lambda self, *digits: round(self.pin(), *digits)  # type: ignore[method-assign]


_add_operators()
