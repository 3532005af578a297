"""dovetail.linalg against NumPy's."""

import dovetail as dt
import numpy as np
import pytest
from dovetail import linalg

rng = np.random.default_rng(0)


def close(got, want, tol=1e-4):
    want = np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want, rtol=tol, atol=tol)


def matrices(*shape):
    """Random ones that are far from singular, their rows in another order."""
    x = rng.normal(size=shape) + 4 * np.eye(shape[-1])
    return x[..., rng.permutation(shape[-1]), :].astype("float32")


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 3, 4, 4), (40, 40), (0, 0), (2, 0, 0), (0, 3, 3)])
def test_determinants_and_inverses(shape):
    host = matrices(*shape) / 2
    x = dt.asarray(host)
    close(linalg.det(x) / (abs(linalg.det(x)) + 1), np.linalg.det(host) / (abs(np.linalg.det(host)) + 1), 1e-3)
    close(linalg.inv(x), np.linalg.inv(host))
    got, want = linalg.slogdet(x), np.linalg.slogdet(host)
    close(got.sign, want.sign)
    close(got.logabsdet, want.logabsdet)
    if shape[-1]:
        factors, wanted = linalg.qr(x), np.linalg.qr(host)
        close(factors.Q, wanted.Q)
        close(factors.R, wanted.R)


def test_singular_matrices():
    x = dt.asarray([[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]])
    assert linalg.det(x).tolist() == [0, 0]
    assert linalg.slogdet(x).sign.tolist() == [0, 0] and linalg.slogdet(x).logabsdet.tolist() == [-np.inf] * 2
    assert not np.isfinite(linalg.inv(x).numpy()).any(axis=(1, 2)).all()
    assert np.isnan(linalg.cholesky(dt.asarray([[1.0, 2.0], [2.0, 1.0]])).numpy()).all()


@pytest.mark.parametrize(
    "a, b", [((3, 3), (3,)), ((2, 3, 3), (3,)), ((3, 3), (2, 3, 1)), ((2, 1, 4, 4), (3, 4, 5)), ((50, 50), (50, 2))]
)
def test_solve(a, b):
    x, y = matrices(*a), rng.normal(size=b).astype("float32")
    close(linalg.solve(dt.asarray(x), dt.asarray(y)), np.linalg.solve(x, y))


def test_matrix_power():
    x = matrices(2, 3, 3) / 4
    for n in (0, 1, 2, 3, 5, 10, -1, -3):
        close(linalg.matrix_power(dt.asarray(x), n), np.linalg.matrix_power(x.astype("float64"), n), 1e-3)
    assert linalg.matrix_power(dt.asarray([[1, 1], [0, 1]]), 5).tolist() == [[1, 5], [0, 1]]


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (2, 3, 8, 8), (40, 40), (0, 0)])
def test_eigenvalues(shape):
    host = rng.normal(size=shape).astype("float32")
    host = host + np.swapaxes(host, -1, -2)
    got = linalg.eigh(dt.asarray(np.tril(host)))
    close(got.eigenvalues, np.linalg.eigvalsh(host))
    close(linalg.eigvalsh(dt.asarray(host)), np.linalg.eigvalsh(host))
    v = got.eigenvectors.numpy()
    np.testing.assert_allclose(host @ v, v * got.eigenvalues.numpy()[..., None, :], atol=1e-4)
    np.testing.assert_allclose(np.swapaxes(v, -1, -2) @ v, np.broadcast_to(np.eye(shape[-1]), shape), atol=2e-6)


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (3, 5), (2, 8, 8), (40, 30), (7, 40), (0, 3), (3, 0)])
@pytest.mark.parametrize("full", [False, True])
def test_singular_values(shape, full):
    host = rng.normal(size=shape).astype("float32")
    if shape[-1] == 8:  # of rank 6
        host[..., 3], host[..., 5] = host[..., 2], 0
    u, s, vh = (a.numpy() for a in linalg.svd(dt.asarray(host), full_matrices=full))
    wanted = np.linalg.svd(host, full_matrices=full)
    assert (u.shape, s.shape, vh.shape) == tuple(a.shape for a in wanted)
    np.testing.assert_allclose(s, wanted.S, atol=1e-5)
    k = min(shape[-2:])
    np.testing.assert_allclose(u[..., :k] * s[..., None, :] @ vh[..., :k, :], host, atol=1e-5)
    for rows in (np.swapaxes(u, -1, -2), vh):
        unit = np.broadcast_to(np.eye(rows.shape[-2]), (*shape[:-2], rows.shape[-2], rows.shape[-2]))
        np.testing.assert_allclose(rows @ np.swapaxes(rows, -1, -2), unit, atol=3e-6)
    if k:
        assert linalg.matrix_rank(dt.asarray(host)).tolist() == np.linalg.matrix_rank(host).tolist()
        close(linalg.pinv(dt.asarray(host)), np.linalg.pinv(host, rcond=1e-5), 1e-3)


def test_large_and_small_singular_values():
    host = np.diag([1e25, 1e15, 1e10]).astype("float32")
    np.testing.assert_allclose(linalg.svdvals(dt.asarray(host)).numpy(), [1e25, 1e15, 1e10], rtol=1e-5)
    assert linalg.matrix_rank(dt.asarray(host), rtol=1e-12).item() == 2
    assert linalg.matrix_rank(dt.asarray(np.stack([host, host])), rtol=dt.asarray([1e-12, 1e-6])).tolist() == [2, 1]


@pytest.mark.parametrize("device", ["cpu", "sim"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_equal_eigenvalues_and_those_of_every_size(device, dtype):
    """By LAPACK and by the decomposition, which all other devices run."""
    n, eps = 40, np.finfo(dtype).eps
    q = np.linalg.qr(rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n)))[0]
    q = q if dtype == "complex64" else np.linalg.qr(rng.standard_normal((n, n)))[0]
    for values in (np.where(np.arange(n) % 2, 1.0, -1.0), np.logspace(0, -6, n), np.repeat([3.0, 1.0], n // 2)):
        x = ((q * values) @ q.conj().T).astype(dtype)
        w, v = map(np.asarray, linalg.eigh(dt.asarray(x, device=device)))
        assert np.abs((v * w) @ v.conj().T - x).max() < 64 * eps * np.abs(values).max()
        u, s, vh = map(np.asarray, linalg.svd(dt.asarray(x, device=device)))
        assert np.abs((u * s) @ vh - x).max() < 128 * eps * np.abs(values).max()


@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_only_the_real_diagonal_of_a_hermitian_matrix_counts(device):
    x = np.array([[4 + 1j, 9], [1 - 2j, 5 - 3j]], "complex64")
    factor = np.asarray(linalg.cholesky(dt.asarray(x, device=device)))
    np.testing.assert_allclose(factor, np.linalg.cholesky([[4, 1 + 2j], [1 - 2j, 5]]), atol=1e-6)


def test_cross_and_trace():
    for a, b, axis in (((3,), (3,), -1), ((4, 3), (3,), -1), ((3, 5), (3, 1), -2), ((2, 1, 3), (4, 3), -1)):
        x, y = rng.normal(size=a).astype("float32"), rng.normal(size=b).astype("float32")
        want = np.cross(*np.broadcast_arrays(x, y), axis=axis)
        close(linalg.cross(dt.asarray(x), dt.asarray(y), axis=axis), want)
    n = rng.integers(-9, 9, (2, 3, 4))
    for offset in (0, 1, -1):
        close(linalg.trace(dt.asarray(n), offset=offset), np.trace(n, offset, -2, -1))
    assert linalg.trace(dt.asarray(n), dtype="float32").dtype == "float32"
    with pytest.raises(ValueError, match=r"\[cross\] x2: got 2 elements along axis -1, expected 3"):
        linalg.cross(dt.zeros(3), dt.zeros(2))
    with pytest.raises(IndexError, match="x2 has no axis -2"):
        linalg.cross(dt.zeros((3, 3)), dt.zeros(3), axis=-2)


def test_norms():
    x = rng.normal(size=(2, 3, 4)).astype("float32")
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        for keepdims in (False, True):
            want = np.linalg.norm(x, order, axis=(-2, -1), keepdims=keepdims)
            close(linalg.matrix_norm(dt.asarray(x), ord=order, keepdims=keepdims), want)
    close(np.linalg.norm(dt.asarray(x[0]), 1), np.linalg.norm(x[0], 1))
    for shape in ((0, 3), (3, 0), (2, 0, 3)):
        for order in ("fro", "nuc", 1, 2, np.inf):
            close(linalg.matrix_norm(dt.zeros(shape), ord=order), np.zeros(shape[:-2]))
    close(linalg.vector_norm(dt.zeros((2, 0)), axis=1, ord=np.inf), np.zeros(2))
    with pytest.raises(ValueError, match="ord: got 3"):
        linalg.matrix_norm(dt.asarray(x), ord=3)


def test_multi_dot():
    host = [rng.normal(size=shape).astype("float32") for shape in ((9, 2), (2, 30), (30, 1), (1, 7))]
    close(linalg.multi_dot([*map(dt.asarray, host)]), np.linalg.multi_dot(host))
    ends = [host[0][:, 0], host[0], host[1], host[1][0]]
    close(linalg.multi_dot([*map(dt.asarray, ends)]), np.linalg.multi_dot(ends), 1e-3)
    from dovetail._linalg import _cheapest_cuts

    assert _cheapest_cuts([*map(dt.asarray, host)])[0, 3] == 2  # (9, 2) @ ((2, 30) @ (30, 1)), then (1, 7)
    with pytest.raises(ValueError, match="got 1, expected two or more"):
        linalg.multi_dot([dt.zeros((2, 2))])
    with pytest.raises(ValueError, match=r"arrays\[1\]: got shape \(2,\)"):
        linalg.multi_dot([dt.zeros((2, 2)), dt.zeros(2), dt.zeros((2, 2))])


def test_mistakes():
    for name in ("det", "inv", "slogdet", "cholesky"):
        with pytest.raises(ValueError, match=rf"\[{name}\].*\(2, 3\).*square"):
            getattr(linalg, name)(dt.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"\[solve\] shapes \(3, 3\) and \(2,\) do not match"):
        linalg.solve(dt.zeros((3, 3)), dt.zeros(2))


def test_traced_for_any_size():
    functions = (
        linalg.det,
        linalg.inv,
        lambda x: linalg.qr(x)[1],
        linalg.cholesky,
        lambda x: linalg.solve(x, x[0]),
    )
    for f in functions:
        compiled = dt.compile(f)
        for n in (3, 5, 40, 1):
            host = matrices(n, n)
            x = dt.asarray(host @ host.T / n)
            want = f(x).numpy()
            close(compiled(x) / (1 + abs(want).max()), want / (1 + abs(want).max()), 1e-5)
