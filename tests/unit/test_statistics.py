"""Covariances, histograms, interpolation, masks and products of several arrays, against NumPy."""

import dovetail as dt
import numpy as np
import pytest

rng = np.random.default_rng(0)
X = rng.normal(size=(4, 5, 6)).astype("float32")
INTEGERS = rng.integers(-9, 9, (4, 5, 6))


def close(got, want, tol=1e-5):
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got.numpy(), want, rtol=tol, atol=tol)


def test_cov():
    often, weight = rng.integers(1, 4, 6), rng.random(6).astype("float32")
    x, f, a = dt.asarray(X[0]), dt.asarray(often), dt.asarray(weight)
    close(dt.cov(x), np.cov(X[0]))
    close(dt.cov(x[0], correction=0), np.cov(X[0, 0], ddof=0))
    close(dt.cov(x, fweights=f), np.cov(X[0], fweights=often))
    close(dt.cov(x, aweights=a), np.cov(X[0], aweights=weight))
    close(dt.cov(x, aweights=a, correction=0), np.cov(X[0], aweights=weight, ddof=0))
    close(dt.cov(x, fweights=f, aweights=a), np.cov(X[0], fweights=often, aweights=weight))
    close(dt.corrcoef(x), np.corrcoef(X[0]))
    z = (X[0] + 1j * X[1]).astype("complex64")
    close(dt.cov(dt.asarray(z), fweights=f, aweights=a), np.cov(z, fweights=often, aweights=weight))
    close(dt.corrcoef(dt.asarray(z)), np.corrcoef(z))
    assert dt.corrcoef(x[0]).item() == 1 and np.isnan(dt.cov(x[:, :1]).numpy()).all()
    with pytest.raises(ValueError, match=r"\[cov\] fweights: got 6, expected one for each of 5"):
        dt.cov(dt.zeros((2, 5)), fweights=f)
    with pytest.raises(ValueError, match=r"got shape \(4, 5, 6\)"):
        dt.cov(dt.asarray(X))


def test_histogram():
    edges = np.array([-1, 0, 0.5, 2], "float32")
    weights = rng.random(X.shape).astype("float32")
    for x, bins, how in (
        (X, 10, {}),
        (X, 7, {"range": (-1, 1)}),
        (X, edges, {}),
        (X, edges, {"density": True}),
        (X, 5, {"density": True}),
        (X, 6, {"weights": weights}),
        (INTEGERS, 4, {}),
        (np.ones(3, "float32"), 4, {}),
        (np.zeros(0, "float32"), 4, {}),
        (edges, edges, {}),
    ):
        ours = {k: dt.asarray(v) if isinstance(v, np.ndarray) else v for k, v in how.items()}
        got = dt.histogram(dt.asarray(x), dt.asarray(bins) if isinstance(bins, np.ndarray) else bins, **ours)
        for a, b in zip(got, np.histogram(x, bins, **how), strict=True):
            close(a, b)
    assert dt.histogram(dt.asarray([np.nan, 1.0]), 2, range=(0, 1))[0].tolist() == [0, 1]
    with pytest.raises(ValueError, match="bins: got 0"):
        dt.histogram(dt.asarray(X), 0)
    with pytest.raises(ValueError, match="range: got"):
        dt.histogram(dt.asarray(X), 3, range=(1, 0))
    with pytest.raises(ValueError, match="weights: got shape"):
        dt.histogram(dt.asarray(X), 3, weights=dt.zeros(3))


def test_bincount():
    n, weights = rng.integers(0, 9, 30), rng.random(30).astype("float32")
    close(dt.bincount(dt.asarray(n)), np.bincount(n))
    close(dt.bincount(dt.asarray(n), weights=dt.asarray(weights), minlength=20), np.bincount(n, weights, 20))
    assert dt.bincount(dt.asarray([], dtype="int64"), minlength=2).tolist() == [0, 0]
    for bad, error, match in (
        ([-1, 2], ValueError, "got -1, expected no negative"),
        ([1.0], TypeError, "expected integers"),
        ([[1]], ValueError, "expected one axis"),
    ):
        with pytest.raises(error, match=match):
            dt.bincount(dt.asarray(bad))
    with pytest.raises(TypeError, match="segment_sum"):
        dt.compile(dt.bincount)(dt.asarray(n))


@pytest.mark.parametrize("right", [False, True])
def test_digitize(right):
    bins = np.array([-1, 0, 0.5, 2], "float32")
    x = np.concatenate([X.reshape(-1), bins])
    for edges in (bins, bins[::-1].copy(), bins[:1]):
        close(dt.digitize(dt.asarray(x), dt.asarray(edges), right=right), np.digitize(x, edges, right=right))
    assert dt.digitize(0.25, dt.asarray(bins)).item() == 2


def test_interp():
    xp, fp = np.sort(rng.normal(size=8)).astype("float32"), rng.normal(size=8).astype("float32")
    x = np.concatenate([X.reshape(-1), xp, [np.nan]]).astype("float32")
    a, b, c = map(dt.asarray, (x, xp, fp))
    close(dt.interp(a, b, c), np.interp(x, xp, fp))
    close(dt.interp(a, b, c, left=-7, right=9.5), np.interp(x, xp, fp, left=-7, right=9.5))
    close(dt.interp(a[:-1], b[:1], c[:1]), np.interp(x[:-1], xp[:1], fp[:1]))
    close(dt.interp(0.3, b, c), np.interp(0.3, xp, fp))
    close(dt.interp(dt.asarray([1, 2]), dt.asarray([0, 4]), dt.asarray([0, 2])), [0.5, 1])
    z = (fp - 2j * fp[::-1]).astype("complex64")
    close(dt.interp(a[:-1], b, dt.asarray(z), left=3j), np.interp(x[:-1], xp, z, left=3j))
    with pytest.raises(ValueError, match=r"\[interp\] fp: got 7 points, expected xp's 8"):
        dt.interp(a, b, c[1:])


def test_masks():
    mask = rng.random((5, 6)) < 0.5
    x, m = dt.asarray(X), dt.asarray(mask)
    spread = np.broadcast_to(mask, X.shape)
    close(dt.masked_select(x, m), X[spread])
    source, want = rng.normal(size=200).astype("float32"), X.copy()
    want[spread] = source[: spread.sum()]
    close(dt.masked_scatter(x, m, dt.asarray(source)), want)
    close(dt.masked_scatter(x, dt.zeros((5, 6), dtype="bool"), dt.zeros(0)), X)
    with pytest.raises(IndexError):
        dt.masked_scatter(x, m, dt.asarray(source[:3])).numpy()
    with pytest.raises(TypeError, match="expected bool"):
        dt.masked_select(x, x)
    with pytest.raises(TypeError, match="expected x's float32"):
        dt.masked_scatter(x, m, dt.asarray([1, 2]))
    with pytest.raises(TypeError, match=r"dovetail\.where"):
        dt.compile(dt.masked_select)(x, m)


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_in_rows(side):
    rows, values = np.sort(X, axis=-1), np.where(X < -1, np.float32("nan"), X)[..., :2]
    pairs = zip(rows.reshape(-1, 6), values.reshape(-1, 2), strict=True)
    want = np.stack([np.searchsorted(row, v, side) for row, v in pairs]).reshape(values.shape)
    close(dt.searchsorted(dt.asarray(rows), dt.asarray(values), side=side), want)
    sorter = dt.argsort(dt.asarray(X))
    close(dt.searchsorted(dt.asarray(X), dt.asarray(values), side=side, sorter=sorter), want)


def test_products():
    for a, b in (((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((4, 2, 3), (5, 3, 4)), ((), (3,))):
        p, q = (rng.normal(size=shape).astype("float32") for shape in (a, b))
        close(dt.dot(dt.asarray(p), dt.asarray(q)), np.dot(p, q))
        close(dt.kron(dt.asarray(p), dt.asarray(q)), np.kron(p, q))
    for a, b in (((3,), (3,)), ((2, 3), (3,)), ((2, 3), (4, 5, 3)), ((), (3,))):
        p, q = (rng.normal(size=shape).astype("float32") for shape in (a, b))
        close(dt.inner(dt.asarray(p), dt.asarray(q)), np.inner(p, q))
