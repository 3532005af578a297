"""Factorizations by LAPACK: what they are for holds, of batches, of every dtype, of large and of empty matrices."""

import numpy as np
import pytest
from harness import KernelError

DTYPES = [np.dtype(t) for t in ("f4", "f8", "c8", "c16")]
rng = np.random.default_rng(20261127)


@pytest.fixture
def lapack(cpu):
    try:
        cpu.run("cholesky", np.eye(2, dtype="f4"), out=np.dtype("f4"), shape=(2, 2), attrs=[False])
    except KernelError as refused:
        pytest.skip(str(refused))
    return cpu


def draw(dtype: np.dtype, *shape: int) -> np.ndarray:
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.kind == "c" else x).astype(dtype)


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -1, -2).conj()


def near(got: np.ndarray, want: np.ndarray) -> None:
    """Within 30 eps for each row of a matrix, of the largest element."""
    eps = np.finfo(got.dtype).eps
    bound = 30 * eps * max(got.shape[-2:], default=1) * np.max(np.abs(want), initial=1.0)
    assert got.shape == want.shape and np.max(np.abs(got - want), initial=0.0) <= bound


def is_orthonormal(q: np.ndarray) -> None:
    near(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1], dtype=q.dtype), (*q.shape[:-2], *q.shape[-1:] * 2)))


SIDES = [1, 3, 8, 9, 40, 150]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("n", SIDES)
def test_square_matrices(lapack, dtype, n):
    """The triangle that an op does not read is NaN."""
    for batch in ((), (2, 3), (0,)):
        shape = (*batch, n, n)
        x, real = draw(dtype, *shape), dtype.type(0).real.dtype
        positive = (x @ adjoint(x) + n * np.eye(n)).astype(dtype)
        unread = np.triu(np.full((n, n), np.nan, dtype), 1)
        below = lapack.run("cholesky", positive + unread, out=dtype, shape=shape, attrs=[False])
        near(below @ adjoint(below), positive)
        assert (below == np.tril(below)).all()
        above = lapack.run("cholesky", positive + unread, out=dtype, shape=shape, attrs=[True])
        assert above.tobytes() == adjoint(below).tobytes()

        i64 = np.dtype("i8")
        lu, order, sign = lapack.run("lu_factor", x, out=[dtype, i64, i64], shape=[shape, shape[:-1], batch])
        lower, upper = np.tril(lu, -1) + np.eye(n, dtype=dtype), np.triu(lu)
        near(lower @ upper, np.take_along_axis(x, order[..., None], -2))
        assert (sign == np.rint(np.linalg.det(np.eye(n)[order]))).all()

        hermitian = positive - 2 * n * np.eye(n, dtype=dtype)
        values, vectors = lapack.run("eigh", hermitian + unread, out=[real, dtype], shape=[shape[:-1], shape])
        is_orthonormal(vectors)
        near(vectors * values[..., None, :] @ adjoint(vectors), hermitian)
        assert (np.diff(values) >= 0).all()
        largest = np.take_along_axis(vectors, np.abs(vectors).argmax(-2, keepdims=True), -2)
        assert (largest.real > 0).all() and (np.abs(largest.imag) <= 4 * np.finfo(dtype).eps).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_systems(lapack, dtype, upper, unit):
    for n, columns, left, right in ((5, 3, (), (4,)), (20, 300, (3, 1), (2,)), (64, 1, (2,), ()), (3, 0, (), ())):
        a = draw(dtype, *left, n, n) / n + 3 * np.eye(n, dtype=dtype)
        b = draw(dtype, *right, n, columns)
        shape = (*np.broadcast_shapes(left, right), n, columns)
        x = lapack.run("solve_triangular", a, b, out=dtype, shape=shape, attrs=[upper, unit])
        triangle = np.triu(a, 1) if upper else np.tril(a, -1)
        diagonal = np.eye(n, dtype=dtype) * (1 if unit else a)
        near((triangle + diagonal) @ x, np.broadcast_to(b, shape))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize(("m", "n"), [(7, 3), (3, 7), (4, 4), (90, 40), (0, 3), (3, 0)])
@pytest.mark.parametrize("whole", [False, True])
def test_rectangles(lapack, dtype, m, n, whole):
    x, k, real = draw(dtype, 2, m, n), min(m, n), dtype.type(0).real.dtype
    inner = m if whole else k
    mode = "complete" if whole else "reduced"
    q, r = lapack.run("qr", x, out=[dtype] * 2, shape=[(2, m, inner), (2, inner, n)], attrs=[mode])
    is_orthonormal(q)
    near(q @ r, x)
    assert (r == np.triu(r)).all()

    shape = [(2, m, m if whole else k), (2, k), (2, n if whole else k, n)]
    u, s, vh = lapack.run("svd", x, out=[dtype, real, dtype], shape=shape, attrs=[whole])
    is_orthonormal(u)
    is_orthonormal(adjoint(vh))
    near(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x)
    assert (s >= 0).all() and (np.diff(s) <= 0).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_gives_nan_and_spoils_no_other_matrix(lapack, dtype, bad):
    real = dtype.type(0).real.dtype
    x = draw(dtype, 3, 6, 6)
    x = (x @ adjoint(x) + np.eye(6)).astype(dtype)
    x[1, 4, 2] = bad
    factor = lapack.run("cholesky", x, out=dtype, shape=x.shape, attrs=[False])
    _, vectors = lapack.run("eigh", x, out=[real, dtype], shape=[(3, 6), x.shape])
    u, _, _ = lapack.run("svd", x, out=[dtype, real, dtype], shape=[x.shape, (3, 6), x.shape], attrs=[True])
    for made in (factor, vectors, u):
        assert np.isnan(made[1]).all() and np.isfinite(made[[0, 2]]).all()


def test_a_side_that_lapack_cannot_count_is_refused(lapack):
    x = np.broadcast_to(np.float32(1), (1, 20_000, 1))
    with pytest.raises(KernelError, match="16384"):
        lapack.run("qr", x, out=[np.dtype("f4")] * 2, shape=[(1, 20_000, 1), (1, 1, 1)], attrs=["reduced"])
