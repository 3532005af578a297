"""Products and norms of vectors."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .. import dtypes as dt
from ..declare import Ints, Tensor, op
from ..lazy_numpy import np
from ..samples import Sample, draw, sample
from ._float import INF
from .arithmetic import abs_
from .primitives import (
    ROUNDED,
    as_axes,
    astype,
    bitwise_and,
    dot_scale,
    full,
    matmul,
    max_,
    multiply,
    sqrt,
    sum_,
    where,
)
from .reduction import count_nonzero, min_
from .views import expand_dims, moveaxis, reshape


def _vecdot_samples() -> Iterator[Sample]:
    yield sample("vectors", draw(9), draw(9))
    yield sample("rows", draw(4, 9), draw(4, 9))
    yield sample("broadcast", draw(3, 1, 9), draw(4, 9))
    yield sample("axis", draw(5, 3), draw(5, 3), axis=-2)
    yield sample("mismatch", draw(3), draw(4), error=ValueError)


def _vecdot(x1, x2, axis):
    return np.sum(
        np.multiply(np.conj(x1), x2, dtype=np.result_type(x1, x2)), axis=axis, dtype=np.result_type(x1, x2)
    )


@op(
    shape="vecdot",
    dtype="numeric",
    autocast="lower",
    tol=2,
    reference=_vecdot,
    samples=_vecdot_samples,
    scale=lambda x1, x2, axis, like: dot_scale(_vecdot(np.abs(x1), np.abs(x2), axis), x1.shape[axis], like),
)
def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sums of conj(x1) * x2 along axis, counted from the end of both; the other axes broadcast."""
    back = max(x1.ndim, x2.ndim) - axis
    a, b = (moveaxis(x, x.ndim - back, x.ndim - 1) for x in (x1, x2))
    out = matmul(expand_dims(a, axis=a.ndim - 1), expand_dims(b, axis=b.ndim))
    return reshape(out, out.shape[:-2])


def _outer_samples() -> Iterator[Sample]:
    yield sample("vectors", draw(5), draw(7))
    yield sample("empty", draw(0), draw(3))
    yield sample("matrix", draw(2, 2), draw(3), error=ValueError)


@op(
    shape="outer",
    dtype="promote",
    space="linalg",
    tol=ROUNDED,
    samples=_outer_samples,
    reference=lambda x1, x2: np.multiply.outer(x1, x2),
)
def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """x1[i] * x2[j] of two vectors; x1[i] & x2[j] of bool."""
    x1 = expand_dims(x1, axis=1)
    return bitwise_and(x1, x2) if x1.dtype.kind == "b" else multiply(x1, x2)


def _vector_norm(x, axis, keepdims, ord):
    a, axes = np.abs(x), as_axes(axis)
    if ord == np.inf:
        return np.max(a, axis=axes, keepdims=keepdims)
    if ord == -np.inf:
        return np.min(a, axis=axes, keepdims=keepdims)
    if ord == 0:
        return np.sum(a != 0, axis=axes, keepdims=keepdims) * 1.0
    return np.sum(a**ord, axis=axes, keepdims=keepdims) ** (1 / ord)


def _norm_scale(x, axis, keepdims, ord, like):
    """Powers other than squares underflow: what is less than that power's root counts for nothing."""
    tiny = dt.float64.tiny if like is dt.float64 else dt.float32.tiny  # fp16 and bf16 compute in float32
    return 0.0 if ord in (0, 1, 2, INF, -INF) else tiny ** (1 / ord)


def _norm_samples() -> Iterator[Sample]:
    for ord in (2.0, 1.0, 3.0, 0.0, INF, -INF):
        yield sample(f"ord{ord:g}", draw(5, 40), axis=1, ord=ord)
    yield sample("all", draw(3, 4, 5), keepdims=True)
    yield sample("large", draw(4, 50, low=1e37, high=3e37), axis=1, only=(dt.float32, dt.float64))
    yield sample("small", draw(4, 50, low=0, high=1e-37), axis=1, only=(dt.float32, dt.float64))
    yield sample("zero", draw(4, 5, low=0, high=0), axis=1)


def _power_of_two_near(m: Tensor) -> Tensor:
    """Scales m, the largest of several magnitudes, to about 1 without rounding."""
    d = m.dtype
    single = d is not dt.float64
    high, low = (2.0**40, 2.0**-50) if single else (2.0**300, 2.0**-450)
    k = 2.0**-100 if single else 2.0**-600
    one = full((), 1.0, dtype=d)
    return where(m < low, 1 / k, where(high < m, k, one))


@op(
    shape="reduce",
    dtype="float_part",
    autocast="float32",
    space="linalg",
    tol=12,
    reference=_vector_norm,
    samples=_norm_samples,
    scale=_norm_scale,
)
def vector_norm(x: Tensor, /, *, axis: Ints | None = None, keepdims: bool = False, ord: float = 2.0) -> Tensor:
    """The norm sum(abs(x)**ord)**(1/ord) over axis.

    The largest or smallest magnitude for an infinite ord, the number of nonzero elements for 0.
    """
    a = abs_(x)
    if ord in (INF, 2) and not math.prod(x.shape):
        return sum_(a, axis=axis, keepdims=keepdims)
    if ord in (INF, -INF):
        return (max_ if ord > 0 else min_)(a, axis=axis, keepdims=keepdims)
    if ord == 0:
        return astype(count_nonzero(x, axis=axis, keepdims=keepdims), x.dtype)
    if ord == 1:
        return sum_(a, axis=axis, keepdims=keepdims)
    if ord != 2:
        return sum_(a**ord, axis=axis, keepdims=keepdims) ** (1.0 / ord)
    k = _power_of_two_near(max_(a, axis=axis, keepdims=True))
    scaled = a * k
    total = sum_(scaled * scaled, axis=axis, keepdims=keepdims)
    return sqrt(total) / reshape(k, total.shape)
