"""NumPy's functions, operators and conversions on Arrays."""

import dovetail as dt
import numpy as np
import pytest

HOST = np.random.default_rng(17).uniform(0.5, 2.0, (3, 4)).astype(np.float32)
OTHER = np.random.default_rng(18).uniform(0.5, 2.0, (3, 4)).astype(np.float32)
MASK = HOST > OTHER
NUMBERS = np.array([[3, 1, 2, 1], [0, 5, 1, 2], [2, 2, 7, 1]], np.int64)

# Every case is computed on Arrays and on the NumPy arrays they were made of.
CASES = {
    "unary ufuncs": lambda x, y, m, n: [np.sin(x), np.abs(-x), np.isnan(x), np.arctan(x), np.rint(x)],
    "binary ufuncs": lambda x, y, m, n: [np.add(x, y), np.power(x, y), np.true_divide(x, 2), np.fmax(x, y)],
    "ufuncs of two results": lambda x, y, m, n: [*np.divmod(x, y)],
    "ufuncs of integers": lambda x, y, m, n: [np.invert(n), np.left_shift(n, 1), np.logical_not(n), np.sign(n)],
    "mixed operands": lambda x, y, m, n: [np.hypot(x, OTHER), np.minimum(HOST, y), np.add(x, [1, 2, 3, 4])],
    "dtype=": lambda x, y, m, n: [np.add(n, n, dtype=np.float32), np.sqrt(x, dtype=np.float32)],
    "ufunc.reduce": lambda x, y, m, n: [
        np.add.reduce(x), np.multiply.reduce(x, axis=1), np.maximum.reduce(n, axis=None), np.logical_and.reduce(m),
        np.add.reduce(n, axis=(0, 1), keepdims=True),
    ],
    "ufunc.accumulate": lambda x, y, m, n: [np.add.accumulate(n), np.multiply.accumulate(x, axis=1)],
    "ufunc.outer": lambda x, y, m, n: [np.subtract.outer(x[0], y[:, 1]), np.multiply.outer(n[0], n)],
    "reductions": lambda x, y, m, n: [
        np.sum(x, axis=0), np.sum(n), np.prod(x, 1), np.mean(x, axis=(0, 1)), np.min(x), np.max(n, 0), np.amax(x),
        np.any(m, axis=1), np.all(m), np.std(x, axis=0), np.var(x, ddof=1), np.argmax(x, 1), np.argmin(n),
        np.count_nonzero(n, axis=0), np.cumsum(n), np.cumprod(x, axis=0), np.ptp(x, axis=1),
        np.average(x, weights=y), np.average(n, axis=0),
    ],
    "joining": lambda x, y, m, n: [
        np.concatenate([x, y]), np.concatenate((x, OTHER), axis=1), np.stack([x, y], axis=1), np.vstack([x, y[0]]),
        np.hstack([x, y]), *np.split(n, 2, axis=1), *np.array_split(n, [1, 2]),
    ],
    "choosing": lambda x, y, m, n: [
        np.where(m, x, y), np.where(m, x, 0), *np.where(m), np.clip(x, 1, 1.5), np.take(n, [0, 5, 1]), np.triu(x),
        np.take_along_axis(n, np.argsort(n, axis=1, kind="stable"), axis=1), np.isin(n, [1, 2]), *np.nonzero(m),
        np.argwhere(m), np.flatnonzero(m), np.searchsorted(np.sort(n, axis=None), n[0], side="right"),
    ],
    "shapes": lambda x, y, m, n: [
        np.reshape(x, (2, -1)), np.transpose(x), np.expand_dims(x, 1), np.squeeze(x[:1]), np.ravel(n), np.copy(x),
        np.flip(x, 1), np.moveaxis(x[None], 0, -1), np.swapaxes(x, 0, 1), np.broadcast_to(x[0], (2, 4)),
        np.roll(x, 1), np.tile(n, 2), np.pad(x, ((1, 0), (0, 2))), np.repeat(n, 2, axis=0), np.atleast_2d(x[0]),
        np.diff(x, axis=0),
    ],
    "products": lambda x, y, m, n: [
        np.matmul(x, y.T), np.dot(x, y[0]), np.dot(x, 2), np.outer(x, y[0]), np.tensordot(x, y, axes=([0], [0])),
        np.kron(x, y),
        np.inner(x, y), np.trace(x, offset=1), np.diagonal(x), np.linalg.norm(x), np.linalg.norm(x, axis=1, ord=1),
    ],
    "statistics": lambda x, y, m, n: [
        np.median(x), np.quantile(x, [0.2, 0.7], axis=1), np.percentile(x, 30, method="lower"),
        np.nanmean(x, axis=0), np.nanstd(x, ddof=1), np.histogram(x, 4)[0], np.cov(x), np.cov(x, y, rowvar=False),
        np.cov(x[0], bias=True), np.corrcoef(x), np.corrcoef(x, y, False), np.nan_to_num(x),
        np.digitize(x, [-0.5, 0.5]),
        np.interp(x, [-1.0, 0.0, 2.0], [3.0, 1.0, 2.0]), np.bincount(np.argmax(x, axis=1)),
    ],
    "like": lambda x, y, m, n: [np.zeros_like(x), np.ones_like(n), np.full_like(x, 2), np.real(x), np.imag(x)],
    "sorting": lambda x, y, m, n: [
        np.sort(x, axis=0), np.argsort(n, kind="stable"), np.unique(n), *np.unique(n, return_index=True,
        return_inverse=True, return_counts=True), np.round(x, 1), np.around(n),
    ],
    "transforms": lambda x, y, m, n: [
        np.fft.fft(x), np.fft.ifft(x, 6, 0), np.fft.rfft(x, axis=0), np.fft.irfft(x, 5, norm="ortho"),
        np.fft.fftn(x), np.fft.rfftn(x, None, (0, 1)), np.fft.fftshift(x), np.fft.ifftshift(x, 1),
    ],
    "columns": lambda x, y, m, n: [
        np.column_stack((x, y, x[:, 0])), np.pad(x, 1, constant_values=(2, 2)), np.pad(x, 1, "edge"),
    ],
    "operators": lambda x, y, m, n: [
        HOST + y, x - OTHER, HOST @ y.T, x < OTHER, HOST == x, HOST[0] * x, x / HOST, NUMBERS - n,  # noqa: SIM300
        np.float32(2) * x, x == OTHER,
    ],
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_as_numpy(case):
    wanted = CASES[case](HOST, OTHER, MASK, NUMBERS)
    got = CASES[case](*map(dt.asarray, (HOST, OTHER, MASK, NUMBERS)))
    assert len(got) == len(wanted)
    for i, (ours, theirs) in enumerate(zip(got, wanted, strict=True)):
        assert isinstance(ours, dt.Array), f"{case} {i} is {type(ours).__name__}"
        assert ours.device == dt.default_device() and ours.shape == np.shape(theirs), f"{case} {i}"
        assert ours.dtype.kind.split()[-1] == dt.asarray(theirs).dtype.kind.split()[-1], f"{case} {i}"
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=2e-6, atol=1e-6, err_msg=f"{case} {i}")


def test_results_that_belong_to_the_host(tmp_path):
    x, y = dt.asarray(HOST), dt.asarray(OTHER)
    assert np.allclose(x, HOST) and not np.allclose(x, y) and np.array_equal(HOST, x) and not np.array_equal(x, y)
    nan = dt.asarray([np.nan, np.inf])
    assert (
        np.isclose(nan, nan).tolist() == [False, True]
        and np.isclose(nan, nan, equal_nan=True).tolist() == [True] * 2
    )
    assert np.unique(dt.asarray([np.nan, 1.0, np.nan])).shape == (2,)
    assert np.shape(x) == (3, 4) and np.ndim(x) == 2 and np.size(x, 1) == 4
    assert np.result_type(x, np.int8) == np.float32 and not np.iscomplexobj(x)
    np.save(tmp_path / "x.npy", x)
    assert np.array_equal(np.load(tmp_path / "x.npy"), HOST)
    target = np.zeros((3, 4), np.float32)
    np.copyto(target, x)
    assert np.array_equal(target, HOST)


def test_out_is_an_array():
    x, y = dt.asarray(HOST), dt.asarray(OTHER)
    before, out = x[...], dt.empty((3, 4))
    assert np.add(x, y, out=out) is out and np.allclose(out, HOST + OTHER)
    assert np.multiply(x, 2, out=x) is x and np.allclose(x, HOST * 2) and np.allclose(before, HOST)
    np.negative(y, out=y, where=MASK)
    assert np.allclose(y, np.where(MASK, -OTHER, OTHER))
    with pytest.raises(TypeError, match=r"\[add\] out: got an array of int64, expected one of float32"):
        np.add(x, y, out=dt.zeros((3, 4), dtype="int64"))
    with pytest.raises(ValueError, match=r"\[add\] out: got shape \(4,\), expected \(3, 4\)"):
        np.add(x, y, out=dt.zeros(4))
    with pytest.raises(TypeError, match=r"\[add\] out: got ndarray, expected a dovetail array; write y = y \+ x"):
        target = HOST.copy()
        target += x


def test_missing_functions_name_the_cure():
    x = dt.asarray(HOST)
    for call, cure in {
        "fft.fft2": lambda: np.fft.fft2(x),
        "histogram2d": lambda: np.histogram2d(x, x),
        "nan_to_num": lambda: np.nan_to_num(x, copy=False),
        "frexp": lambda: np.frexp(x),
        "divide.at": lambda: np.divide.at(x, 0, 1),
        "subtract.reduce": lambda: np.subtract.reduce(x),
        "sum": lambda: np.sum(x, where=MASK),
        "mean": lambda: np.mean(x, out=dt.zeros(())),
        "sin": lambda: np.sin(x, casting="no"),
        "exp": lambda: np.exp(x, where=MASK),
        "reshape": lambda: np.reshape(x, (4, 3), order="F"),
    }.items():
        with pytest.raises(TypeError, match=r"numpy.asarray\(x\)|numpy.where"):
            print(call, cure())
    why = r"\[sum\] out: got an array of float32, expected none; numpy.sum\(numpy.asarray\(x\)\) computes"
    with pytest.raises(TypeError, match=why):
        np.sum(x, axis=0, out=np.zeros(4, np.float32))


def test_other_libraries_ufuncs():
    special = pytest.importorskip("scipy.special", reason="SciPy is not installed")
    x = dt.asarray(HOST)
    got = special.expit(x)
    assert isinstance(got, dt.Array) and np.allclose(got, special.expit(HOST), rtol=1e-6)
    with pytest.raises(TypeError, match=r"\[gamma\] .*expected a NumPy array; gamma\(numpy.asarray\(x\)\)"):
        special.gamma(x)


def test_arrays_of_other_libraries_take_the_call():
    class Theirs:
        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            return ufunc.__name__

    assert np.add(dt.ones(2), Theirs()) == "add"
    with pytest.raises(TypeError):
        np.add(dt.ones(2), np.ma.masked_array([1.0, 2.0], [True, False]))  # its mask would be lost


def test_importing_dovetail_leaves_numpy_alone():
    import subprocess
    import sys

    code = "import sys, dovetail; assert 'numpy' not in sys.modules and 'dovetail._numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- from Array to NumPy -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "bool", "bfloat16", "complex64"])
def test_asarray_is_a_copy_to_write_to(dtype):
    x = dt.asarray([1, 0, 1], dtype=dtype)
    for made in (np.asarray(x), np.array(x), np.asarray(x[::2])):
        assert made.flags.writeable and made.dtype.name == dtype
        made[...] = 0
    assert x.tolist() == [1, 0, 1] and np.asarray(x, dtype="float64").dtype == "float64"


def test_a_view_is_read_only_and_keeps_its_value():
    x = dt.asarray([1.0, 2.0])
    if not dt.default_device().properties["host_mapped"]:
        with pytest.raises(ValueError, match=r"\[__array__\] .* takes a copy here: got copy=False"):
            x.__array__(copy=False)
        return
    seen = x.__array__(copy=False)
    assert not seen.flags.writeable and np.shares_memory(seen, x.__array__(copy=False))
    x += 1
    assert seen.tolist() == [1, 2] and x.tolist() == [2, 3]


def test_methods_take_the_axis_by_position():
    x, n = dt.asarray(HOST), dt.asarray(NUMBERS)
    for name in ("sum", "prod", "mean", "min", "max", "any", "all", "std", "var", "argmax", "argmin"):
        ours, theirs = getattr(x, name)(0), getattr(HOST, name)(0)
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=2e-6, err_msg=name)
        assert getattr(x, name)().shape == () and getattr(x, name)(1, keepdims=True).shape == (3, 1)
    assert n.sum(0, "int32").dtype == dt.int32 and x.var(correction=1).shape == ()


def test_python_numbers_functions():
    host = np.array([2.25, -3.5], np.float32)
    x = dt.asarray(host)
    assert round(x, 1).tolist() == np.round(host, 1).tolist() and round(x).tolist() == [2, -4]
    assert round(dt.asarray(2.5)) == 2 and isinstance(round(dt.asarray(2.5)), int)
    assert [v.tolist() for v in divmod(x, 2)] == [[1.0, -2.0], [0.25, 0.5]]
    assert [v.tolist() for v in divmod(7, dt.asarray([2, 4]))] == [[3, 1], [1, 3]]


def test_tobytes():
    x = dt.asarray([[1, 2], [3, 4]], dtype="int16")
    assert x.T.tobytes() == bytes(x.T) == b"\1\0\3\0\2\0\4\0"
    assert x.dtype.byteorder == "=" and dt.bool.byteorder == "|"


def test_safetensors():
    numpy = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    x = dt.asarray(HOST)
    assert np.array_equal(numpy.load(numpy.save({"a": np.asarray(x)}))["a"], HOST)
