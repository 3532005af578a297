"""Arithmetic, sums and moves of complex numbers: of pairs of floats, so that no device needs kernels for them.

`@multiply.of_complex` decorates what multiply does where an operand or its result is complex.
"""

from __future__ import annotations

from .. import dtypes as dt
from ..declare import DType, Index, Ints, Mask, Scalar, Tensor, Unsupported, op
from ..lazy_numpy import np
from . import creation, dynamic, linalg, logic, movement, nn, reduction, scans, scatter
from .arithmetic import abs_, hypot, negative, positive, reciprocal, round_, sign, square
from .movement import stack
from .primitives import (
    add,
    astype,
    copy,
    divide,
    equal,
    full,
    matmul,
    multiply,
    subtract,
    sum_,
    take,
    where,
)
from .views import bitcast, expand_dims, matrix_transpose

WHOLE = {part: d for d, part in dt.PART.items()}

# Ops whose decompositions are right for complex numbers as they are.
for _op in (
    *(positive, square, reciprocal, logic.not_equal, linalg.outer),
    *(movement.concat, movement.stack, movement.repeat, movement.tile, movement.flip, movement.roll, movement.pad),
    *(movement.tril, movement.triu, movement.take_along_axis, movement.diff),
    *(dynamic.dynamic_slice, dynamic.dynamic_slice_axis, dynamic.dynamic_update_slice),
    *(scatter.scatter, scatter.scatter_middle, scatter.put_along_axis),
    *(reduction.prod, reduction.prod_middle, reduction.any_, reduction.all_, reduction.count_nonzero),
    *(scans.cumulative_prod, creation.zeros, creation.ones, creation.eye, nn.embedding, nn.linear),
):
    _op.of_complex(_op.decomposition)


def pairs(x: Tensor) -> Tensor:
    """The parts of x as a last axis of two, over the same memory."""
    return bitcast(x, dt.PART[x.dtype])


def whole(p: Tensor) -> Tensor:
    """The complex numbers of which a last axis of two has the parts."""
    return bitcast(p, WHOLE[p.dtype])


def parts(x: Tensor) -> tuple[Tensor, Tensor]:
    p = pairs(x)
    return p[..., 0], p[..., 1]


def joined(real: Tensor, imag: Tensor) -> Tensor:
    """The complex numbers with these parts, of one shape."""
    return whole(stack([real, imag], axis=-1))


@op(shape="same", dtype="same", half="native", dtypes=dt.REAL, reference=np.conj)
def conj(x: Tensor, /) -> Tensor:
    """The complex conjugate, x with its imaginary part negated; a real x as it is."""
    return copy(x)


@conj.of_complex
def _(x: Tensor) -> Tensor:
    a, b = parts(x)
    return joined(a, negative(b))


def real(x: Tensor) -> Tensor:
    """The real part, which a real x is itself."""
    return parts(x)[0] if x.dtype.kind == "c" else x


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose of matrices."""
    return conj(matrix_transpose(x)) if x.dtype.kind == "c" else matrix_transpose(x)


# ---- copies ------------------------------------------------------------------------------------------------------


@copy.of_complex
def _(x: Tensor) -> Tensor:
    return whole(copy(pairs(x)))


@astype.of_complex
def _(x: Tensor, dtype: DType) -> Tensor:
    if dtype.kind == "b":
        a, b = parts(x)
        return (a != 0) | (b != 0)
    if dtype.kind != "c":
        raise Unsupported(f"{dtype.name} would lose the imaginary parts: expected x.real or x.imag first")
    part = dt.PART[dtype]
    if x.dtype.kind == "c":
        return whole(astype(pairs(x), part))
    return joined(astype(x, part), full(x.shape, 0, dtype=part))


@full.of_complex
def _(shape: Ints, fill_value: Scalar, *, dtype: DType | None = None) -> Tensor:
    part = dt.PART[dtype or dt.complex64]
    value = complex(fill_value)
    return joined(full(shape, value.real, dtype=part), full(shape, value.imag, dtype=part))


@creation.arange.of_complex
def _(start: Scalar, stop: Scalar | None = None, step: Scalar = 1, *, dtype: DType | None = None) -> Tensor:
    if any(isinstance(n, complex) for n in (start, stop, step)) or dtype is None:
        raise Unsupported("complex numbers have no order: expected real start, stop and step; astype the result")
    return astype(creation.arange(start, stop, step, dtype=dt.PART[dtype]), dtype)


@creation.linspace.of_complex
def _(start: float, stop: float, num: int, *, dtype: DType, endpoint: bool = True) -> Tensor:
    return astype(creation.linspace(start, stop, num, dtype=dt.PART[dtype], endpoint=endpoint), dtype)


@take.of_complex
def _(x: Tensor, indices: Index, *, axis: int | None = None) -> Tensor:
    return whole(take(pairs(x), indices, axis=0 if axis is None else axis))


@where.of_complex
def _(condition: Mask, x1: Tensor, x2: Tensor) -> Tensor:
    return whole(where(expand_dims(condition, axis=condition.ndim), pairs(x1), pairs(x2)))


# ---- arithmetic --------------------------------------------------------------------------------------------------


@negative.of_complex
def _(x: Tensor) -> Tensor:
    return whole(negative(pairs(x)))


@round_.of_complex
def _(x: Tensor) -> Tensor:
    return whole(round_(pairs(x)))


@add.of_complex
def _(x1: Tensor, x2: Tensor) -> Tensor:
    return whole(pairs(x1) + pairs(x2))


@subtract.of_complex
def _(x1: Tensor, x2: Tensor) -> Tensor:
    return whole(pairs(x1) - pairs(x2))


@multiply.of_complex
def _(x1: Tensor, x2: Tensor) -> Tensor:
    (a, b), (c, d) = parts(x1), parts(x2)
    return joined(a * c - b * d, a * d + b * c)


@divide.of_complex
def _(x1: Tensor, x2: Tensor) -> Tensor:
    """R. L. Smith, Algorithm 116: Complex division, Communications of the ACM 5 (1962)."""
    (a, b), (c, d) = parts(x1), parts(x2)
    steep = abs_(c) < abs_(d)
    big, small = where(steep, d, c), where(steep, c, d)
    r = where(small == 0, 0.0, small / big)  # of 0 / 0, too: the quotient of parts is what there is
    size = big + small * r
    re = where(steep, a * r + b, a + b * r) / size
    im = where(steep, b * r - a, b - a * r) / size
    return joined(re, im)


@equal.of_complex
def _(x1: Tensor, x2: Tensor) -> Tensor:
    (a, b), (c, d) = parts(x1), parts(x2)
    return (a == c) & (b == d)


@abs_.of_complex
def _(x: Tensor) -> Tensor:
    return hypot(*parts(x))


@sign.of_complex
def _(x: Tensor) -> Tensor:
    a, b = parts(x)
    size = hypot(a, b)
    large = size > dt.PART[x.dtype].max  # though neither part is
    a, b = where(large, a * 0.5, a), where(large, b * 0.5, b)
    size = where(large, hypot(a, b), size)
    zero = size == 0
    return joined(where(zero, 0.0, a / size), where(zero, 0.0, b / size))


@logic.isnan.of_complex
def _(x: Tensor) -> Tensor:
    a, b = parts(x)
    return logic.isnan(a) | logic.isnan(b)


@logic.isinf.of_complex
def _(x: Tensor) -> Tensor:
    a, b = parts(x)
    return logic.isinf(a) | logic.isinf(b)


@logic.isfinite.of_complex
def _(x: Tensor) -> Tensor:
    a, b = parts(x)
    return logic.isfinite(a) & logic.isfinite(b)


# ---- sums and products -------------------------------------------------------------------------------------------


@sum_.of_complex
def _(x: Tensor, *, axis: Ints | None = None, dtype: DType | None = None, keepdims: bool = False) -> Tensor:
    return whole(sum_(pairs(x), axis=axis, keepdims=keepdims))


@reduction.mean.of_complex
def _(x: Tensor, *, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    return whole(reduction.mean(pairs(x), axis=axis, keepdims=keepdims))


@scans.cumulative_sum.of_complex
def _(x: Tensor, *, axis: int | None = None, dtype: DType | None = None, include_initial: bool = False) -> Tensor:
    along = 0 if axis is None else axis
    return whole(scans.cumulative_sum(pairs(x), axis=along, include_initial=include_initial))


@matmul.of_complex
def _(x1: Tensor, x2: Tensor, *, dtype: DType | None = None) -> Tensor:  # dtype is theirs, if it is given
    (a, b), (c, d) = parts(x1), parts(x2)
    return joined(matmul(a, c) - matmul(b, d), matmul(a, d) + matmul(b, c))


@linalg.vecdot.of_complex
def _(x1: Tensor, x2: Tensor, *, axis: int = -1) -> Tensor:
    (a, b), (c, d) = parts(x1), parts(x2)

    def dot(u: Tensor, v: Tensor) -> Tensor:
        return linalg.vecdot(u, v, axis=int(axis) - max(u.ndim, v.ndim))

    return joined(dot(a, c) + dot(b, d), dot(a, d) - dot(b, c))


@linalg.vector_norm.of_complex
def _(x: Tensor, *, axis: Ints | None = None, keepdims: bool = False, ord: float = 2.0) -> Tensor:
    return linalg.vector_norm(abs_(x), axis=axis, keepdims=keepdims, ord=ord)
