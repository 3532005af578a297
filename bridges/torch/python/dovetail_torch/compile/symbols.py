"""Sizes of torch's graphs as numbers of a trace: expressions over symbols, each of which is an input's size."""

from __future__ import annotations

from typing import Any

import torch
from dovetail.schema.number import largest, smallest
from torch.utils._sympy.interp import sympy_interp
from torch.utils._sympy.reference import PythonReferenceAnalysis

from dovetail_torch.compile.table import Unsupported

__all__ = ["Symbols"]


class _Arithmetic(PythonReferenceAnalysis):
    """The functions of sympy's expressions, of numbers of a trace."""

    add = staticmethod(lambda a, b: a + b)
    sub = staticmethod(lambda a, b: a - b)
    mul = staticmethod(lambda a, b: a * b)
    pow_by_natural = staticmethod(lambda a, b: a**b)
    pow = staticmethod(lambda a, b: a**b)
    int_truediv = staticmethod(lambda a, b: a / b)
    truediv = staticmethod(lambda a, b: a / b)
    minimum = staticmethod(lambda a, b: smallest(a, b))
    maximum = staticmethod(lambda a, b: largest(a, b))
    modular_indexing = staticmethod(lambda a, b, c: (a // b) % c)
    not_ = staticmethod(lambda a: not a)
    where = staticmethod(lambda condition, a, b: a if condition else b)
    floor_to_int = staticmethod(lambda x, dtype: x.__floor__())
    ceil_to_int = staticmethod(lambda x, dtype: x.__ceil__())
    trunc_to_int = staticmethod(lambda x, dtype: x.__floor__() if x >= 0 else x.__ceil__())
    to_dtype = staticmethod(lambda x, dtype: x * 1.0)
    identity = staticmethod(lambda x: x)


class Symbols:
    """Which size of which input each symbol is."""

    def __init__(self) -> None:
        self._numbers: dict[Any, Any] = {}  # by sympy's symbol

    def bind(self, value: Any, array: Any) -> None:
        """Takes the symbols that are sizes of an input: a fake tensor and the array that stands for it."""
        for axis, n in enumerate(value.shape):
            if isinstance(n, torch.SymInt) and n.node.expr.is_Symbol:
                self._numbers.setdefault(n.node.expr, array.shape[axis])

    def number(self, n: Any) -> Any:
        """An int, float or bool of torch as one of Python or of the trace. Raises Unsupported for one that is no
        size of an input."""
        if not isinstance(n, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return n
        return self.of_expression(n.node.expr)

    def of_expression(self, expression: Any) -> Any:
        missing = sorted(str(s) for s in expression.free_symbols - self._numbers.keys())
        if missing:
            raise Unsupported(f"the number {missing[0]}, which is no size of an input")
        try:
            return sympy_interp(_Arithmetic, self._numbers, expression)
        except (KeyError, AttributeError, NotImplementedError) as error:
            raise Unsupported(f"the size {expression}: {error}") from error
