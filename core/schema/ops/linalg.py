"""Products of vectors."""

from __future__ import annotations

from collections.abc import Iterator

from ..declare import Tensor, op
from ..lazy_numpy import np
from ..samples import Sample, draw, sample
from .movement import moveaxis
from .primitives import ROUNDED, dot_slack, expand_dims, matmul, multiply, reshape


def _vecdot_samples() -> Iterator[Sample]:
    yield sample("vectors", draw(9), draw(9))
    yield sample("rows", draw(4, 9), draw(4, 9))
    yield sample("broadcast", draw(3, 1, 9), draw(4, 9))
    yield sample("axis", draw(5, 3), draw(5, 3), axis=-2)
    yield sample("mismatch", draw(3), draw(4), error=ValueError)


def _vecdot(x1, x2, axis):
    return np.sum(np.multiply(x1, x2, dtype=np.result_type(x1, x2)), axis=axis, dtype=np.result_type(x1, x2))


@op(shape="vecdot", dtype="promote", tol=2, reference=_vecdot, samples=_vecdot_samples,
    scale=lambda x1, x2, axis: _vecdot(np.abs(x1), np.abs(x2), axis) * dot_slack(x1.shape[axis]))  # fmt: skip
def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sums of x1 * x2 along axis, counted from the end of both; the other axes broadcast."""
    back = max(x1.ndim, x2.ndim) - axis
    a, b = (moveaxis(x, x.ndim - back, x.ndim - 1) for x in (x1, x2))
    out = matmul(expand_dims(a, axis=a.ndim - 1), expand_dims(b, axis=b.ndim))
    return reshape(out, out.shape[:-2])


def _outer_samples() -> Iterator[Sample]:
    yield sample("vectors", draw(5), draw(7))
    yield sample("empty", draw(0), draw(3))
    yield sample("matrix", draw(2, 2), draw(3), error=ValueError)


@op(shape="outer", dtype="promote", space="linalg", tol=ROUNDED, samples=_outer_samples,
    reference=lambda x1, x2: np.multiply.outer(x1, x2))  # fmt: skip
def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """x1[i] * x2[j] of two vectors."""
    return multiply(expand_dims(x1, axis=1), x2)
