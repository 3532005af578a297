"""Quantiles against NumPy, and the reductions that leave NaN out."""

import dovetail as dt
import numpy as np
import pytest
from dovetail._quantile import METHODS

rng = np.random.default_rng(0)
FLOATS = rng.normal(size=(4, 5, 6)).astype("float32")
HOLES = np.where(rng.random(FLOATS.shape) < 0.3, np.float32("nan"), FLOATS)
HOLES[0, 0] = np.nan
INTEGERS = rng.integers(-9, 9, (4, 5, 6))
ARRAYS = {"floats": FLOATS, "holes": HOLES, "integers": INTEGERS}
AXES = ({"axis": None}, {"axis": 1, "keepdims": True}, {"axis": (0, 2)})


def close(got, want, note=""):
    assert got.shape == np.shape(want), note
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5, err_msg=str(note))


@pytest.mark.filterwarnings("ignore:.*All-NaN|.*invalid value:RuntimeWarning")
@pytest.mark.parametrize("method", METHODS)
def test_every_method(method):
    for name, x in ARRAYS.items():
        for how in AXES:
            for q in (0.3, 0.5, [0, 0.1, 0.25, 0.5, 0.9, 1.0]):
                note = (name, how, q)
                got = dt.quantile(dt.asarray(x), q, method=method, **how)
                close(got, np.quantile(x, q, method=method, **how), note)
                close(
                    dt.nanquantile(dt.asarray(x), q, method=method, **how),
                    np.nanquantile(x, q, method=method, **how),
                    note,
                )


def test_dtypes_and_shapes_of_quantiles():
    x, q = dt.asarray(FLOATS), np.array([[0.1, 0.5], [0.7, 1.0]], "float32")
    close(dt.quantile(x, dt.asarray(q), axis=1), np.quantile(FLOATS, q.reshape(-1), axis=1).reshape(2, 2, 4, 6))
    assert dt.quantile(dt.asarray(INTEGERS), 0.3, method="lower").dtype == "int64"
    assert dt.quantile(dt.asarray(INTEGERS), 0.3).dtype == "float32"
    assert dt.quantile(x.astype("float16"), 0.3).dtype == "float16"
    close(dt.percentile(x, [3, 50], axis=0), np.percentile(FLOATS, [3, 50], axis=0))
    close(dt.nanpercentile(dt.asarray(HOLES), 40), np.nanpercentile(HOLES, 40))
    close(dt.median(dt.asarray(INTEGERS), axis=0), np.median(INTEGERS, axis=0))
    infinite = dt.asarray([-np.inf, 1.0, np.inf, np.inf])
    assert dt.quantile(infinite, [0.0, 1 / 6, 0.5, 1.0]).tolist() == [-np.inf, -np.inf, np.inf, np.inf]


def test_quantiles_refuse():
    x = dt.asarray(FLOATS)
    with pytest.raises(ValueError, match=r"\[quantile\] q: got 1.5, expected q from 0 to 1"):
        dt.quantile(x, 1.5)
    with pytest.raises(ValueError, match=r"\[percentile\] q / 100: got \[-0.01\]"):
        dt.percentile(x, [-1])
    with pytest.raises(ValueError, match="method: got 'mean', expected one of linear"):
        dt.quantile(x, 0.5, method="mean")
    with pytest.raises(ValueError, match="no elements along axis 0"):
        dt.median(dt.zeros((0, 3)), axis=0)
    with pytest.raises(ValueError, match="each axis once"):
        dt.median(x, axis=(0, -3))
    with pytest.raises(TypeError, match="expected real numbers"):
        dt.median(x > 0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", "nansum nanprod nanmean nanvar nanstd nanmax nanmin nanmedian".split())
def test_reductions_without_nan(name):
    ours, theirs = getattr(dt, name), getattr(np, name)
    for x in ARRAYS.values():
        for axis in (None, 0, -1, (0, 2)):
            for keepdims in (False, True):
                close(ours(dt.asarray(x), axis=axis, keepdims=keepdims), theirs(x, axis=axis, keepdims=keepdims))
    half = HOLES.astype("float16") * 100
    got = ours(dt.asarray(half), axis=0)
    assert got.dtype == "float16"
    with np.errstate(all="ignore"):
        want = theirs(half.astype("float64"), axis=0).astype("float16")
    np.testing.assert_allclose(got.numpy().astype(float), want.astype(float), rtol=2e-3)
    assert name not in ("nanvar", "nanstd") or np.isnan(float(ours(dt.asarray([1.0, np.nan]), correction=3)))


@pytest.mark.parametrize("name", ["nanargmax", "nanargmin"])
def test_places_without_nan(name):
    x = np.where(np.isnan(HOLES).all(1, keepdims=True), 0, HOLES)
    x[1, :2, 0] = np.nan, -np.inf
    x[2, :2, 0] = np.nan, np.inf
    for axis in (None, 1):
        close(getattr(dt, name)(dt.asarray(x), axis=axis), getattr(np, name)(x, axis=axis))
    lowest = dt.asarray([float("nan"), float("-inf"), float("inf")])  # NumPy names the NaN of the first two
    assert dt.nanargmax(lowest[:2]).item() == 1 and dt.nanargmin(lowest[::2]).item() == 1
    assert getattr(dt, name)(dt.asarray(INTEGERS), axis=1).shape == (4, 6)


def test_nan_to_num():
    x = np.array([np.nan, np.inf, -np.inf, 1], "float32")
    assert np.array_equal(dt.nan_to_num(dt.asarray(x)).numpy(), np.nan_to_num(x))
    assert dt.nan_to_num(dt.asarray(x), nan=3.0, posinf=4.0, neginf=5.0).tolist() == [3, 4, 5, 1]
    assert dt.nan_to_num(dt.asarray([1, 2])).tolist() == [1, 2]


def test_isclose():
    x = FLOATS * np.float32(1 + 1e-6)
    x[0, 0, :3] = np.inf, -np.inf, np.nan
    y = x.copy()
    y[1] += 1
    for equal_nan in (False, True):
        got = dt.isclose(dt.asarray(x), dt.asarray(y), equal_nan=equal_nan)
        assert np.array_equal(got.numpy(), np.isclose(x, y, equal_nan=equal_nan))
    a, b = np.array([1e9, np.inf, 1, -np.inf]), np.array([np.inf, 1e9, 1 + 1e-7, np.inf])
    assert dt.isclose(dt.asarray(a), dt.asarray(b)).tolist() == [False, False, True, False]
    assert dt.isclose(dt.asarray([1, 2, 100000]), 100001, rtol=1e-4).tolist() == [False, False, True]
    assert dt.isclose(2.0, dt.asarray([1.5, 2.4]), rtol=0, atol=0.45).tolist() == [False, True]
    assert dt.isclose(dt.asarray([True, False]), dt.asarray([True, True])).tolist() == [True, False]
    assert dt.allclose(dt.asarray(INTEGERS), dt.asarray(INTEGERS)) and not dt.allclose(dt.asarray(x), dt.asarray(y))
    with pytest.raises(TypeError, match="at least one array"):
        dt.isclose(1.0, 1.0)


def test_traced_for_any_size():
    functions = (
        lambda x: dt.quantile(x, 0.3, axis=-1),
        lambda x: dt.nanquantile(x, [0.3, 0.4], method="hazen"),
        dt.median,
        dt.corrcoef,
        lambda x: dt.nanstd(x, axis=1),
        lambda x: dt.nanargmax(x, axis=0),
        dt.nan_to_num,
        lambda x: dt.isclose(x, 0.5, atol=0.2),
        lambda x: dt.histogram(x, 5)[0],
        lambda x: dt.digitize(x, x[0, :2]),
        lambda x: dt.interp(x, dt.sort(x[0]), x[1]),
        lambda x: dt.einsum("ij,kj,kl->il", x, x, x),
        lambda x: dt.masked_scatter(x, x > 0, x),
    )
    for f in functions:
        compiled = dt.compile(f)
        for shape in ((4, 5), (6, 9), (3, 3)):
            x = dt.asarray(rng.normal(size=shape).astype("float32"))
            close(compiled(x), f(x).numpy(), shape)
