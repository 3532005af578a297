"""Factorizations of matrices, and triangular systems: blocked, so that nearly all of the work is in matmul.

Matrices are padded to whole blocks of _BLOCK columns (of their own size where it is smaller). Within a block, one
round of a loop handles one column; rounds over blocks update the rest by products.
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import dtypes as dt
from ..declare import Tensor, op
from ..lazy_numpy import np
from ..loops import loop
from ..number import largest, smallest
from ..samples import Sample, draw, given, sample
from .arithmetic import abs_, copysign
from .complex_arithmetic import adjoint, conj, parts, real
from .creation import eye
from .linalg import vector_norm
from .movement import flip, take_along_axis, tril, triu
from .primitives import full, iota, matmul, sqrt, where
from .reduction import any_, argmax
from .views import broadcast_to, reshape, set_slice

_BLOCK = 32


def _blocks(n: int) -> tuple[int, int]:
    """(columns of a block, number of blocks) for n columns; one block at least."""
    width = largest(1, smallest(n, _BLOCK))
    return width, largest(1, (n + width - 1) // width)


def _put(x: Tensor, part: Tensor, row: int, column: int) -> Tensor:
    """x with part written over the last two axes, from (row, column) on."""
    lead = (0,) * (x.ndim - 2)
    stop = (*x.shape[:-2], row + part.shape[-2], column + part.shape[-1])
    return set_slice(x, part, start=(*lead, row, column), stop=stop, step=(1,) * x.ndim)


def _square(x: Tensor, size: int) -> Tensor:
    """x, a square, in the upper left corner of a unit matrix of `size` rows."""
    whole = (*x.shape[:-2], size, size)
    return _put(broadcast_to(eye(size, dtype=x.dtype), whole), x, 0, 0)


def _corner(x: Tensor, rows: int, columns: int) -> Tensor:
    return x[..., :rows, :columns]


def _places(x: Tensor) -> tuple[Tensor, Tensor]:
    """The row number and the column number of each element of a matrix, as a column and a row."""
    return reshape(iota(x.shape[-2], dt.int64), (x.shape[-2], 1)), iota(x.shape[-1], dt.int64)


# ---- samples: matrices that are far from singular, whose pivots have no ties -------------------------------------


def _values(rows: int, columns: int, seed: int) -> list[list[float]]:
    """Numbers between -1 and 1, the same on every machine, in sixteenths."""
    return [
        [((i * 37 + j * 101 + i * j * 13 + seed * 57) % 33 - 16) / 16 for j in range(columns)] for i in range(rows)
    ]


def _flat(*matrices: list[list[float]]) -> list[float]:
    return [v for matrix in matrices for row in matrix for v in row]


def _dominant(n: int, seed: int = 0) -> list[list[float]]:
    """A matrix with a large diagonal, its rows in another order."""
    a = _values(n, n, seed)
    for i in range(n):
        a[i][i] += n + 1 + i % 3
    return a[n // 2 :] + a[: n // 2]


def _positive(n: int, seed: int = 0) -> list[list[float]]:
    a = _values(n, n, seed)
    return [[(a[i][j] + a[j][i]) / 2 + (n + 1 if i == j else 0) for j in range(n)] for i in range(n)]


def _norm_scale(*results):
    """The error of a factor's element is relative to the largest of its matrix."""
    made = tuple(
        np.broadcast_to(np.max(np.abs(r), axis=(-2, -1), keepdims=True, initial=0.0), r.shape) for r in results
    )
    return made if len(made) > 1 else made[0]


# ---- Cholesky ----------------------------------------------------------------------------------------------------


def _double(x):
    """x as NumPy's linear algebra takes it: it has no long double, in which oracles of float64 compute else."""
    return np.asarray(x, np.complex128 if np.iscomplexobj(x) else np.float64)


def _cholesky(x, upper):
    x = np.tril(_double(x))
    x = x + np.swapaxes(np.tril(x, -1), -1, -2).conj()
    out = np.full(x.shape, np.nan, x.dtype)
    for index in np.ndindex(x.shape[:-2]):
        try:
            out[index] = np.linalg.cholesky(x[index])
        except np.linalg.LinAlgError:
            continue
    return np.swapaxes(out, -1, -2).conj() if upper else out


def _cholesky_samples() -> Iterator[Sample]:
    for n in (1, 2, 5, 33, 70):
        yield sample(f"{n}", given(_flat(_positive(n)), n, n))
    yield sample("upper", given(_flat(_positive(5)), 5, 5), upper=True)
    yield sample("batch", given(_flat(*(_positive(4, s) for s in range(6))), 2, 3, 4, 4))
    yield sample("not_positive", given([1, 2, 2, 1, 4, 1, 1, 4, 0, 0, 0, 1], 3, 2, 2))
    yield sample("empty", draw(3, 0, 0))
    yield sample("no_matrices", draw(0, 3, 3))
    yield sample("not_square", draw(2, 3), error=ValueError)
    yield sample("vector", draw(3), error=ValueError)


def _cholesky_panel(panel: Tensor) -> Tensor:
    """The first columns of the factor, from those of the matrix (m, b); what is above the diagonal is any value."""
    row, column = _places(panel)

    def eliminate(j: int, panel: Tensor) -> Tensor:
        pivot = real(panel[..., j : j + 1, j : j + 1])
        pivot = sqrt(where(pivot > 0.0, pivot, float("nan")))
        factor = where(row < j, 0.0, panel[..., j : j + 1] / pivot)
        across = adjoint(factor[..., : panel.shape[-1], :])
        return where(column < j, panel, where(column == j, factor, panel - factor * across))

    return loop(panel.shape[-1], eliminate, panel)[0]


@op(
    shape="square",
    dtype="float",
    space="linalg",
    autocast="float32",
    tol=8,
    reference=_cholesky,
    scale=lambda x, upper: np.nan_to_num(_norm_scale(_cholesky(x, upper))),
    samples=_cholesky_samples,
)
def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The lower triangular L with L @ conj(L.mT) = x, of positive definite matrices; with upper, conj(L.mT).

    Only the lower triangle of x is read. A matrix that is not positive definite gives NaN everywhere: its elements
    are on the device, where nothing can raise.
    """
    n = x.shape[-1]
    width, count = _blocks(n)
    size = width * count
    if x.dtype.kind == "c":  # the imaginary parts of a diagonal do not count
        x = where(eye(n, dtype=dt.bool_), 0.5 * (x + conj(x)), x)
    padded = _square(x, size)

    def advance(i: int, rest: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
        """rest: what the columns so far have left of the matrix, without them and their rows."""
        panel = _cholesky_panel(rest[..., :width])
        below = panel[..., width:, :]
        rest = rest[..., width:, width:] - matmul(below, adjoint(below))
        return rest, _put(out, panel, i * width, i * width)

    out = loop(count, advance, padded, padded)[1]
    out = tril(_corner(out, n, n))
    sound = out == out
    last = broadcast_to(any_(~sound, axis=(-2, -1), keepdims=True), out.shape)
    out = where(last, float("nan"), out)
    return adjoint(out) if upper else out


# ---- LU ----------------------------------------------------------------------------------------------------------


def _lu(x):
    lu, order = np.array(x), np.empty(x.shape[:-1], np.int64)
    sign = np.ones(x.shape[:-2], np.int64)
    for index in np.ndindex(x.shape[:-2]):
        a, rows = lu[index], np.arange(x.shape[-1])
        for j in range(len(rows)):
            p = j + int(np.argmax(np.abs(a[j:, j].real) + np.abs(a[j:, j].imag)))
            if p != j:
                a[[j, p]], rows[[j, p]] = a[[p, j]], rows[[p, j]]
                sign[index] *= -1
            if a[j, j] != 0:
                a[j + 1 :, j] /= a[j, j]
            a[j + 1 :, j + 1 :] -= np.outer(a[j + 1 :, j], a[j, j + 1 :])
        order[index] = rows
    return lu, order, sign


def _lu_samples() -> Iterator[Sample]:
    for n in (1, 2, 5, 33, 70):
        yield sample(f"{n}", given(_flat(_dominant(n)), n, n))
    yield sample("batch", given(_flat(*(_dominant(4, s) for s in range(6))), 2, 3, 4, 4))
    yield sample("singular", given([1, 2, 2, 4, 0, 0, 0, 0, 0, 3, 0, 5], 3, 2, 2))
    yield sample("empty", draw(3, 0, 0))
    yield sample("no_matrices", draw(0, 3, 3))
    yield sample("not_square", draw(2, 3), error=ValueError)


def _size(x: Tensor) -> Tensor:
    """What pivots are compared by: of complex numbers it takes no root."""
    if x.dtype.kind != "c":
        return abs_(x)
    re, im = parts(x)
    return abs_(re) + abs_(im)


def _lu_panel(panel: Tensor, order: Tensor, sign: Tensor) -> tuple[Tensor, ...]:
    """Eliminates the columns of a panel (m, b) with partial pivoting; order (m, 1) and sign (1, 1) go with it."""
    row, column = _places(panel)

    def eliminate(j: int, panel: Tensor, order: Tensor, sign: Tensor) -> tuple[Tensor, ...]:
        candidates = where(row < j, -1.0, _size(panel[..., j : j + 1]))
        best = argmax(candidates, axis=candidates.ndim - 2, keepdims=True)
        source = where(row == j, best, where(row == best, j, row))
        panel = take_along_axis(panel, source, axis=panel.ndim - 2)
        order = take_along_axis(order, source, axis=order.ndim - 2)
        sign = where(best == j, sign, -sign)
        pivots = panel[..., j : j + 1, :]
        pivot = panel[..., j : j + 1, j : j + 1]
        factor = where(row > j, panel[..., j : j + 1] / where(pivot == 0.0, 1.0, pivot), 0.0)
        rest = panel - factor * where(column > j, pivots, 0.0)
        return where((column == j) & (row > j), factor, rest), order, sign

    return loop(panel.shape[-1], eliminate, panel, order, sign)


def _substituted(a: Tensor, b: Tensor, unit: bool) -> Tensor:
    """The solution of a x = b for one block, a lower triangle (k, k) whose upper part is not read."""
    row, _ = _places(a)

    def step(j: int, b: Tensor) -> Tensor:
        found = b[..., j : j + 1, :]
        if not unit:
            found = found / a[..., j : j + 1, j : j + 1]
        rest = b - where(row > j, a[..., j : j + 1], 0.0) * found
        return where(row == j, found, rest)

    return loop(a.shape[-1], step, b)[0]


@op(
    shape="lu",
    dtype="same_and_index",
    private=True,
    space="linalg",
    autocast="float32",
    n_out=3,
    tol=8,
    dtypes=dt.FLOATS,
    reference=_lu,
    scale=lambda x: (_norm_scale(_lu(x)[0]), 0.0, 0.0),
    samples=_lu_samples,
)
def lu_factor(x: Tensor, /) -> tuple[Tensor, Tensor, Tensor]:
    """The factors of x[order] = L @ U, with partial pivoting: (L below U, order, sign of the permutation).

    L has ones on its diagonal, which are not stored. Pivots are the largest by magnitude, of complex numbers, as in
    LAPACK, by |re| + |im|. A singular matrix gives a U with zeros on its diagonal.
    """
    n = x.shape[-1]
    width, count = _blocks(n)
    size = width * count
    batch = x.shape[:-2]
    order = broadcast_to(reshape(iota(size, dt.int64), (size, 1)), (*batch, size, 1))
    sign = full((*batch, 1, 1), 1, dtype=dt.int64)

    def advance(i: int, a: Tensor, order: Tensor, sign: Tensor) -> tuple[Tensor, ...]:
        k = i * width
        rows = a[..., k:, :]
        m = rows.shape[-2]
        local = broadcast_to(reshape(iota(m, dt.int64), (m, 1)), (*batch, m, 1))
        panel, local, sign = _lu_panel(rows[..., k : k + width], local, sign)
        rows = take_along_axis(rows, local, axis=rows.ndim - 2)
        right = rows[..., k + width :]
        above = _substituted(panel[..., :width, :], right[..., :width, :], unit=True)
        rest = right[..., width:, :] - matmul(panel[..., width:, :], above)
        rows = _put(rows, panel, 0, k)
        rows = _put(_put(rows, above, 0, k + width), rest, width, k + width)
        moved = take_along_axis(order[..., k:, :], local, axis=order.ndim - 2)
        return _put(a, rows, k, 0), _put(order, moved, k, 0), sign

    a, order, sign = loop(count, advance, _square(x, size), order, sign)
    return _corner(a, n, n), reshape(order[..., :n, :], (*batch, n)), reshape(sign, batch)


# ---- triangular systems ------------------------------------------------------------------------------------------


def _solve_triangular(a, b, upper, unitriangular):
    a, b = np.triu(_double(a)) if upper else np.tril(_double(a)), _double(b)
    if unitriangular:
        n = a.shape[-1]
        a = a * (1 - np.eye(n)) + np.eye(n)
    return np.linalg.solve(a, b)


def _triangular_samples() -> Iterator[Sample]:
    for n in (1, 2, 5, 33, 70):
        yield sample(f"lower_{n}", given(_flat(_positive(n)), n, n), draw(n, 3), upper=False)
    yield sample("upper", given(_flat(_positive(40)), 40, 40), draw(40, 2), upper=True)
    small = [[v / 4 for v in row] for row in _values(6, 6, 1)]
    for upper in (False, True):
        yield sample(f"unit_{upper}", given(_flat(small), 6, 6), draw(6, 4), upper=upper, unitriangular=True)
    matrices = given(_flat(*(_positive(4, s) for s in range(3))), 3, 1, 4, 4)
    yield sample("broadcast", matrices, draw(2, 4, 5), upper=False)
    yield sample("shared", given(_flat(_positive(4)), 4, 4), draw(2, 4, 1), upper=True)
    yield sample("empty", draw(0, 0), draw(0, 2), upper=True)
    yield sample("no_columns", given(_flat(_positive(4)), 4, 4), draw(4, 0), upper=True)
    yield sample("mismatch", draw(3, 3), draw(2, 3), upper=True, error=ValueError)
    yield sample("vector", draw(3, 3), draw(3), upper=True, error=ValueError)


@op(
    shape="solve",
    dtype="float",
    space="linalg",
    autocast="float32",
    tol=16,
    reference=_solve_triangular,
    scale=lambda x1, x2, upper, unitriangular: _norm_scale(_solve_triangular(x1, x2, upper, unitriangular)),
    samples=_triangular_samples,
)
def solve_triangular(x1: Tensor, x2: Tensor, /, *, upper: bool, unitriangular: bool = False) -> Tensor:
    """The X of x1 @ X = x2 for triangles x1 (..., n, n) and x2 (..., n, k); the leading axes broadcast.

    Only the triangle that `upper` names is read, with unitriangular not its diagonal, which counts as ones. A zero
    on the diagonal gives inf or NaN.
    """
    if upper:
        lower = flip(x1, axis=(x1.ndim - 2, x1.ndim - 1))
        return flip(_solved(lower, flip(x2, axis=(x2.ndim - 2,)), unitriangular), axis=(-2,))
    return _solved(x1, x2, unitriangular)


def _solved(a: Tensor, b: Tensor, unit: bool) -> Tensor:
    n, columns = b.shape[-2:]
    width, count = _blocks(n)
    size = width * count
    a = _square(a, size)
    batch = matmul(a[..., :0], b[..., :0, :]).shape[:-2]
    zeros = full((*batch, size, columns), 0.0, dtype=b.dtype)
    b = _put(zeros, broadcast_to(b, (*batch, n, columns)), 0, 0)

    def advance(i: int, x: Tensor) -> Tensor:
        k = i * width
        rows = a[..., k : k + width, :]
        left = b[..., k : k + width, :] - matmul(tril(rows, k=k - 1), x)
        return _put(x, _substituted(rows[..., k : k + width], left, unit), k, 0)

    return _corner(loop(count, advance, zeros)[0], n, columns)


# ---- QR ----------------------------------------------------------------------------------------------------------


def _qr_samples() -> Iterator[Sample]:
    for rows, columns in ((1, 1), (5, 3), (3, 5), (6, 6), (40, 35), (70, 4), (33, 50)):
        yield sample(f"{rows}x{columns}", given(_flat(_tall(rows, columns)), rows, columns))
    yield sample("complete", given(_flat(_tall(6, 3)), 6, 3), mode="complete")
    yield sample("complete_wide", given(_flat(_tall(3, 6)), 3, 6), mode="complete")
    yield sample("batch", given(_flat(*(_tall(5, 4, s) for s in range(6))), 2, 3, 5, 4))
    yield sample("zero_column", given([1, 0, 2, 0, 3, 0], 3, 2))
    yield sample("triangle", given([2, 3, 0, -4, 0, 0], 3, 2))
    yield sample("empty", draw(3, 0))
    yield sample("bad_mode", draw(3, 3), mode="raw", error=ValueError)
    yield sample("vector", draw(3), error=ValueError)


def _tall(rows: int, columns: int, seed: int = 0) -> list[list[float]]:
    a = _values(rows, columns, seed)
    for i in range(min(rows, columns)):
        a[i][i] += columns
    return a


def _householder(panel: Tensor) -> tuple[Tensor, Tensor]:
    """The reflections that make the columns of a panel (m, b) zero below the diagonal: (R above the vectors, tau).

    Reflection j is I - tau[j] v v*, where v is 0 above row j, 1 in it, and what the result has below it.
    """
    row, column = _places(panel)
    ahead = panel.ndim - 2

    def reflect(j: int, panel: Tensor, taus: Tensor) -> tuple[Tensor, Tensor]:
        vector = panel[..., j : j + 1]
        alpha = panel[..., j : j + 1, j : j + 1]
        below = where(row > j, vector, 0.0)
        work = any_(below != 0.0, axis=(ahead,), keepdims=True)
        if panel.dtype.kind == "c":  # R has a real diagonal
            work = work | (parts(alpha)[1] != 0.0)
        norm = vector_norm(where(row < j, 0.0, vector), axis=(ahead,), keepdims=True)
        beta = where(work, -copysign(norm, real(alpha)), alpha)
        tau = where(work, (beta - alpha) / where(work, beta, 1.0), 0.0)
        below = below / where(work, alpha - beta, 1.0)
        v = where(row == j, 1.0, below)
        back = conj(tau) if tau.dtype.kind == "c" else tau
        reflected = panel - back * v * matmul(adjoint(v), panel)
        made = where(row > j, below, where(row == j, beta, vector))
        panel = where(column < j, panel, where(column == j, made, reflected))
        return panel, where(column == j, tau, taus)

    taus = full((*panel.shape[:-2], 1, panel.shape[-1]), 0.0, dtype=panel.dtype)
    return loop(panel.shape[-1], reflect, panel, taus)


def _joined(vectors: Tensor, taus: Tensor) -> Tensor:
    """The upper triangle T for which the product of the reflections is I - V T V*."""
    products = matmul(adjoint(vectors), vectors)
    row, column = _places(products)

    def join(j: int, t: Tensor) -> Tensor:
        tau = taus[..., j : j + 1]
        above = -tau * matmul(t, products[..., j : j + 1])
        made = where(row < j, above, where(row == j, tau, 0.0))
        return where(column == j, made, t)

    return loop(products.shape[-1], join, full(products.shape, 0.0, dtype=products.dtype))[0]


def _vectors(panel: Tensor) -> Tensor:
    row, column = _places(panel)
    return where(row == column, 1.0, tril(panel, k=-1))


@op(
    shape="qr",
    dtype="floats",
    space="linalg",
    autocast="float32",
    n_out=2,
    tol=16,
    reference=lambda x, mode: tuple(np.linalg.qr(_double(x), mode)),
    scale=lambda x, mode: _norm_scale(*np.linalg.qr(_double(x), mode)),
    samples=_qr_samples,
)
def qr(x: Tensor, /, *, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """x (..., m, n) as Q @ R with orthonormal columns in Q and an upper triangular R, by Householder reflections.

    mode="reduced": Q (..., m, k) and R (..., k, n) with k = min(m, n); "complete": Q (..., m, m) and R (..., m, n).
    """
    m, n = x.shape[-2:]
    k = smallest(m, n)
    width, count = _blocks(k)
    more = width * count - k  # rows and columns of zeros
    batch = x.shape[:-2]
    a = _put(full((*batch, m + more, n + more), 0.0, dtype=x.dtype), x, 0, 0)
    joins = full((*batch, width * count, width), 0.0, dtype=x.dtype)

    def advance(i: int, a: Tensor, joins: Tensor) -> tuple[Tensor, Tensor]:
        at = i * width
        panel, taus = _householder(a[..., at:, at : at + width])
        vectors = _vectors(panel)
        t = _joined(vectors, taus)
        right = a[..., at:, at + width :]
        seen = matmul(adjoint(t), matmul(adjoint(vectors), right))
        a = _put(a, right - matmul(vectors, seen), at, at + width)
        return _put(a, panel, at, at), _put(joins, t, at, 0)

    a, joins = loop(count, advance, a, joins)
    columns = m if mode == "complete" else k
    q = broadcast_to(eye(m + more, columns, dtype=x.dtype), (*batch, m + more, columns))

    def apply(i: int, q: Tensor) -> Tensor:
        at = (count - 1 - i) * width
        vectors, part = _vectors(a[..., at:, at : at + width]), q[..., at:, :]
        seen = matmul(joins[..., at : at + width, :], matmul(adjoint(vectors), part))
        return _put(q, part - matmul(vectors, seen), at, 0)

    (q,) = loop(count, apply, q)
    return _corner(q, m, columns), triu(_corner(a, columns, n))


for _op in (cholesky, lu_factor, solve_triangular, qr):
    _op.of_complex(_op.decomposition)
