"""Comparisons, logic, bits and predicates."""

from __future__ import annotations

from ..declare import Tensor, op
from ..lazy_numpy import np
from ._float import INF, bits, magnitude
from .primitives import astype, bitwise_and, bitwise_or, bitwise_xor, equal, full, less


@op(shape="broadcast", dtype="compare", reference=np.not_equal)
def not_equal(x1: Tensor, x2: Tensor, /) -> Tensor:
    """x1 != x2; NaN differs from everything."""
    return equal(x1, x2) ^ True


@op(shape="broadcast", dtype="compare", reference=np.less_equal)
def less_equal(x1: Tensor, x2: Tensor, /) -> Tensor:
    """x1 <= x2; False where either is NaN."""
    return less(x1, x2) | equal(x1, x2)


@op(shape="broadcast", dtype="compare", reference=np.greater)
def greater(x1: Tensor, x2: Tensor, /) -> Tensor:
    """x1 > x2; False where either is NaN."""
    return less(x2, x1)


@op(shape="broadcast", dtype="compare", reference=np.greater_equal)
def greater_equal(x1: Tensor, x2: Tensor, /) -> Tensor:
    """x1 >= x2; False where either is NaN."""
    return less(x2, x1) | equal(x1, x2)


@op(shape="broadcast", dtype="logical", reference=np.logical_and)
def logical_and(x1: Tensor, x2: Tensor, /) -> Tensor:
    """x1 and x2 are both true (not 0)."""
    return bitwise_and(x1, x2)


@op(shape="broadcast", dtype="logical", reference=np.logical_or)
def logical_or(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Either is true (not 0)."""
    return bitwise_or(x1, x2)


@op(shape="broadcast", dtype="logical", reference=np.logical_xor)
def logical_xor(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Exactly one is true (not 0)."""
    return bitwise_xor(x1, x2)


@op(shape="same", dtype="logical", reference=np.logical_not)
def logical_not(x: Tensor, /) -> Tensor:
    """x is 0 or False."""
    return bitwise_xor(x, True)


@op(shape="same", dtype="bit", reference=np.bitwise_not)
def bitwise_invert(x: Tensor, /) -> Tensor:
    """Every bit of x flipped; on bool logical not."""
    if x.dtype.kind == "b":
        return bitwise_xor(x, True)
    return bitwise_xor(x, -1 if x.dtype.kind == "i" else int(x.dtype.max))


@op(shape="same", dtype="predicate", reference=np.isnan)
def isnan(x: Tensor, /) -> Tensor:
    """x is NaN."""
    return never(x) if x.dtype.kind in "iub" else not_equal(x, x)


@op(shape="same", dtype="predicate", reference=np.isinf)
def isinf(x: Tensor, /) -> Tensor:
    """x is an infinity."""
    return never(x) if x.dtype.kind in "iub" else equal(magnitude(x), INF)


@op(shape="same", dtype="predicate", reference=np.isfinite)
def isfinite(x: Tensor, /) -> Tensor:
    """x is neither NaN nor an infinity."""
    return full(x.shape, True) if x.dtype.kind in "iub" else less(magnitude(x), INF)


@op(shape="same", dtype="predicate", reference=np.signbit)
def signbit(x: Tensor, /) -> Tensor:
    """The sign bit is set: of negative numbers, of -0, of NaN that has it."""
    if x.dtype.kind in "ub":
        return never(x)
    return less(x if x.dtype.kind == "i" else bits(x), 0)


def never(x: Tensor) -> Tensor:
    """False, in the shape of x."""
    return full(x.shape, False)


def truth(x: Tensor) -> Tensor:
    """x as bool, at no cost where it is."""
    return x if x.dtype.kind == "b" else not_equal(x, 0)


def as_number(mask: Tensor, like: Tensor) -> Tensor:
    """1 where mask holds, in the dtype of like."""
    return astype(mask, like.dtype)
