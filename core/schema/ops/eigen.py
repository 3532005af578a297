"""Eigenvalues of symmetric matrices and singular values, by Jacobi's rotations.

A round rotates n / 2 pairs of columns at once, and a sweep of n - 1 rounds meets every pair: the columns change
places so that the pairs are always the columns of the left half and those of the right one.
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import dtypes as dt
from ..declare import Tensor, op
from ..lazy_numpy import np
from ..loops import loop
from ..number import largest
from ..samples import Sample, draw, given, sample
from .arithmetic import abs_, sign
from .complex_arithmetic import adjoint, conj, parts, real
from .creation import eye
from .factorization import _double, _flat, _put, _values, qr
from .movement import concat, take_along_axis, tril
from .primitives import full, iota, matmul, max_, sqrt, sum_, take, where
from .reduction import argmax
from .sorting import argsort
from .views import broadcast_to, diagonal, expand_dims, matrix_transpose, reshape


def _even(n: int) -> int:
    """The columns that take part: an even number, four at least."""
    return largest(4, (n + 1) // 2 * 2)


def _next_places(size: int) -> Tensor:
    """Where each column comes from for the next round, as players of a round-robin tournament change seats."""
    half, place = size // 2, iota(size, dt.int64)
    left = where(place == 0, 0, where(place == 1, half, place - 1))
    return where(place < half, left, where(place == size - 1, half - 1, place + 1))


def _angles(p: Tensor, q: Tensor, both: Tensor) -> tuple[Tensor, Tensor]:
    """(cosine, sine) of the rotations that make `both` zero, between p and q on the diagonal."""
    theta = (q - p) / where(both == 0.0, 1.0, 2.0 * both)
    tangent = where(theta < 0.0, -1.0, 1.0) / (abs_(theta) + sqrt(1.0 + theta * theta))
    tangent = where(both == 0.0, 0.0, tangent)
    cosine = 1.0 / sqrt(1.0 + tangent * tangent)
    return cosine, tangent * cosine


def _turn(both: Tensor) -> tuple[Tensor, Tensor | None]:
    """(|both|, the factor of the right columns that makes it so) of complex matrices; both itself of real ones."""
    if both.dtype.kind != "c":
        return both, None
    size = abs_(both)
    return size, where(size == 0.0, 1.0, conj(sign(both)))


def _least(a: Tensor) -> Tensor:
    """What a sweep rotates away in Hermitian matrices. Between equal eigenvalues, where little is left, a rotation
    of any angle would bring back what others have taken away: convergence would be linear."""
    size = abs_(where(eye(a.shape[-1], dtype=dt.bool_), 0.0, a))
    return 0.005 * max_(size, axis=(a.ndim - 2, a.ndim - 1), keepdims=True)


def _rotated(x: Tensor, cosine: Tensor, sine: Tensor, factor: Tensor | None) -> Tensor:
    """The columns of x rotated in pairs, the right ones times a factor first; all have a row of half as many."""
    half = cosine.shape[-1]
    left, right = x[..., :half], x[..., half:]
    if factor is not None:
        right = factor * right
    return concat([cosine * left - sine * right, sine * left + cosine * right], axis=x.ndim - 1)


def _sweeps(d: dt.DType) -> int:
    """After these, what is left is below rounding for any size that is practical: most matrices need ten or fewer,
    those whose values are powers of a number, and of singular values those in clusters, three times as many."""
    return 28 if d in (dt.float64, dt.complex128) else 15


def _polished(v: Tensor) -> Tensor:
    """v, whose columns are orthonormal but for the rounding of many rotations: one step of Newton's iteration."""
    return 1.5 * v - 0.5 * matmul(v, matmul(adjoint(v), v))


def _square_padded(x: Tensor, rows: int, columns: int) -> Tensor:
    return _put(full((*x.shape[:-2], rows, columns), 0.0, dtype=x.dtype), x, 0, 0)


def _chosen(x: Tensor, order: Tensor) -> Tensor:
    """The columns of x that order (..., k) names."""
    return take_along_axis(x, expand_dims(order, axis=order.ndim - 1), axis=x.ndim - 1)


def _signs(x: Tensor) -> Tensor:
    """What makes the largest element of each column positive, as a row: its sign, conjugated."""
    place = argmax(abs_(x), axis=x.ndim - 2, keepdims=True)
    found = sign(take_along_axis(x, place, axis=x.ndim - 2))
    found = where(found == 0.0, 1.0, found)
    return conj(found) if x.dtype.kind == "c" else found


def _dots(p: Tensor, q: Tensor, axis: int, keepdims: bool = False) -> Tensor:
    """The sums of conj(p) * q along axis, as far as they are real."""
    if p.dtype.kind == "c":
        (a, b), (c, d) = parts(p), parts(q)
        return sum_(a * c + b * d, axis=(axis,), keepdims=keepdims)
    return sum_(p * q, axis=(axis,), keepdims=keepdims)


# ---- symmetric matrices ------------------------------------------------------------------------------------------


def _spread(n: int, seed: int = 0) -> list[list[float]]:
    """A symmetric matrix whose eigenvalues are far from each other, of both signs."""
    a = _values(n, n, seed)
    return [[(a[i][j] + a[j][i]) / (2 * n) + (3 * i - n if i == j else 0) for j in range(n)] for i in range(n)]


def _positive_columns(v):
    top = np.take_along_axis(v, np.argmax(np.abs(v), axis=-2, keepdims=True), -2) if v.shape[-2] else v[..., :0, :]
    top = np.sum(top, axis=-2, keepdims=True)
    return np.where(top == 0, 1.0, np.conj(top) / np.where(top == 0, 1.0, np.abs(top)))


def _eigh(x):
    values, vectors = np.linalg.eigh(_double(x), UPLO="L")
    return values, vectors * _positive_columns(vectors)


def _eigh_scale(x):
    values, vectors = _eigh(x)
    most = np.max(np.abs(values), axis=-1, keepdims=True, initial=0.0)
    return np.broadcast_to(most, values.shape), np.ones(vectors.shape)


def _eigh_samples() -> Iterator[Sample]:
    for n in (1, 2, 3, 4, 7, 20):
        yield sample(f"{n}", given(_flat(_spread(n)), n, n))
    yield sample("batch", given(_flat(*(_spread(4, s) for s in range(6))), 2, 3, 4, 4))
    yield sample("diagonal", given([3, 0, 0, 0, -1, 0, 0, 0, 2], 3, 3))
    yield sample("lower_triangle", given([2, 99, 1, 5], 2, 2))
    yield sample("empty", draw(2, 0, 0))
    yield sample("no_matrices", draw(0, 3, 3))
    yield sample("not_square", draw(2, 3), error=ValueError)


@op(
    shape="eigh",
    dtype="eigh",
    space="linalg",
    autocast="float32",
    n_out=2,
    tol=64,
    reference=_eigh,
    scale=_eigh_scale,
    samples=_eigh_samples,
)
def eigh(x: Tensor, /) -> tuple[Tensor, Tensor]:
    """The eigenvalues (..., n) of Hermitian matrices, ascending, and the eigenvectors (..., n, n) as columns.

    Only the lower triangle is read. Vectors have length 1, and their element of largest magnitude is positive.
    """
    n = x.shape[-1]
    size = _even(n)
    half = size // 2
    whole = _square_padded(_hermitian(x), size, size)
    v = broadcast_to(eye(size, dtype=x.dtype), whole.shape)
    source = _next_places(size)

    def rotate(_: int, a: Tensor, v: Tensor, least: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        values = real(diagonal(a))
        both, factor = _turn(diagonal(a[..., :half, half:]))
        both = where(abs_(both) < least, 0.0, both)
        angles = _angles(values[..., :half], values[..., half:], both)
        rotation = [x if x is None else expand_dims(x, axis=x.ndim - 1) for x in (*angles, factor)]
        a = adjoint(_rotated(a, *rotation))
        a = take(take(_rotated(a, *rotation), source, axis=a.ndim - 1), source, axis=a.ndim - 2)
        return a, take(_rotated(v, *rotation), source, axis=v.ndim - 1), least

    def sweep(_: int, a: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        return loop(size - 1, rotate, a, v, _least(a)[..., 0])[:2]

    v = _polished(loop(_sweeps(x.dtype), sweep, whole, v)[1])
    values = _dots(v, matmul(whole, v), axis=v.ndim - 2)  # no error of the rotations is left in them
    values, vectors = values[..., :n], v[..., :n, :n]
    order = argsort(values, axis=values.ndim - 1)
    vectors = _chosen(vectors, order)
    return take_along_axis(values, order, axis=values.ndim - 1), vectors * _signs_or_ones(vectors, n)


def _hermitian(x: Tensor) -> Tensor:
    """The matrix of which x has the lower triangle."""
    lower = tril(x)
    if x.dtype.kind != "c":
        return lower + matrix_transpose(tril(x, k=-1))
    doubled = lower + adjoint(lower)  # on the diagonal twice the real parts
    return where(eye(x.shape[-1], dtype=dt.bool_), 0.5 * doubled, doubled)


def _signs_or_ones(vectors: Tensor, n: int) -> Tensor:
    """_signs, of matrices that may be empty."""
    padded = _square_padded(vectors, vectors.shape[-2] + 1, n)
    return _signs(padded)


# ---- any matrices ------------------------------------------------------------------------------------------------


def _svd(x, full_matrices):
    u, s, vh = np.linalg.svd(_double(x), full_matrices=full_matrices)
    k = s.shape[-1]
    signs = _positive_columns(u[..., :k])
    u = np.concatenate([u[..., :k] * signs, u[..., k:]], -1)
    return u, s, np.concatenate([vh[..., :k, :] * np.swapaxes(signs, -1, -2).conj(), vh[..., k:, :]], -2)


def _svd_scale(x, full_matrices):
    u, s, vh = _svd(x, full_matrices)
    most = np.max(np.abs(s), axis=-1, keepdims=True, initial=0.0)
    return np.ones(u.shape), np.broadcast_to(most, s.shape), np.ones(vh.shape)


def _far_apart(rows: int, columns: int, seed: int = 0) -> list[list[float]]:
    a = _values(rows, columns, seed)
    most = max(rows, columns)
    return [[a[i][j] / most + (3 * i + 2 if i == j else 0) for j in range(columns)] for i in range(rows)]


def _svd_samples() -> Iterator[Sample]:
    for rows, columns in ((1, 1), (2, 2), (5, 3), (3, 5), (6, 6), (9, 20), (20, 4)):
        matrix = given(_flat(_far_apart(rows, columns)), rows, columns)
        yield sample(f"{rows}x{columns}", matrix, full_matrices=False)
    yield sample("square", given(_flat(_far_apart(4, 4)), 4, 4))
    yield sample("batch", given(_flat(*(_far_apart(4, 3, s) for s in range(6))), 2, 3, 4, 3), full_matrices=False)
    yield sample("empty", draw(3, 0), full_matrices=False)
    yield sample("vector", draw(3), error=ValueError)


@op(
    shape="svd",
    dtype="svd",
    space="linalg",
    autocast="float32",
    n_out=3,
    tol=128,
    reference=_svd,
    scale=_svd_scale,
    samples=_svd_samples,
)
def svd(x: Tensor, /, *, full_matrices: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """x (..., m, n) as U @ diag(S) @ Vh with orthonormal columns of U and rows of Vh, and S (..., k) descending.

    k = min(m, n). U is (..., m, m) and Vh (..., n, n), with full_matrices=False (..., m, k) and (..., k, n). The
    element of largest magnitude in each of the first k columns of U is positive.
    """
    wide = x.shape[-2] < x.shape[-1]
    left, values, right = _svd_of_tall(adjoint(x) if wide else x, full_matrices)
    u, v = (right, left) if wide else (left, right)
    k = values.shape[-1]
    signs = _signs_or_ones(u[..., :k], k)
    u, v = (concat([z[..., :k] * signs, z[..., k:]], axis=z.ndim - 1) for z in (u, v))
    return u, values, adjoint(v)


def _svd_of_tall(x: Tensor, complete: bool) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V), for x with as many rows as columns or more."""
    m, n = x.shape[-2:]
    size = _even(n)
    half = size // 2
    a = _square_padded(x, m + 1, size)
    axes = (a.ndim - 2, a.ndim - 1)
    most = max_(abs_(a), axis=axes, keepdims=True)
    most = where(most == 0.0, 1.0, most)  # squares neither overflow nor vanish
    scaled, v = a / most, broadcast_to(eye(size, dtype=x.dtype), (*x.shape[:-2], size, size))
    source = _next_places(size)

    def rotate(_: int, a: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        left, right = a[..., :half], a[..., half:]
        both = sum_(conj(left) * right if a.dtype.kind == "c" else left * right, axis=axes[:1], keepdims=True)
        both, factor = _turn(both)
        squares = (_dots(x, x, axis=axes[0], keepdims=True) for x in (left, right))
        rotation = (*_angles(*squares, both), factor)
        a, v = _rotated(a, *rotation), _rotated(v, *rotation)
        return take(a, source, axis=axes[1]), take(v, source, axis=axes[1])

    def sweep(_: int, a: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        return loop(size - 1, rotate, a, v)

    v = _polished(loop(_sweeps(x.dtype), sweep, scaled, v)[1])
    a, v = matmul(scaled, v)[..., :m, :n], v[..., :n, :n]
    values = sqrt(_dots(a, a, axis=axes[0]))
    order = argsort(values, axis=axes[0], descending=True)
    values = take_along_axis(values, order, axis=axes[0])
    u, r = qr(_chosen(a, order), mode="complete" if complete else "reduced")
    signs = expand_dims(where(real(diagonal(r)) < 0.0, -1.0, 1.0), axis=axes[0])
    u = concat([u[..., :n] * signs, u[..., n:]], axis=axes[1])
    return u, values * reshape(most, (*x.shape[:-2], 1)), _chosen(v, order)


for _op in (eigh, svd):
    _op.of_complex(_op.decomposition)
