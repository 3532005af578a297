"""The Array: value semantics, conversions, methods, and its errors for bad input."""

import copy
import pickle
import threading

import dovetail as dt
import numpy as np
import pytest

REAL = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64",
]  # fmt: skip
ALL = [*REAL, "complex64", "complex128"]


def host(values, dtype):
    import ml_dtypes

    return np.asarray(values).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def same(x, expected):
    assert x.shape == expected.shape
    assert x.dtype == expected.dtype.name
    np.testing.assert_array_equal(x.numpy(), expected)


# ---- value semantics ---------------------------------------------------------------------------------------------


def test_a_view_keeps_its_value_when_the_base_changes():
    x = dt.arange(6)
    view, row = x[2:5], dt.reshape(x, (2, 3))[1]
    x[:] = 0
    assert view.tolist() == [2, 3, 4] and row.tolist() == [3, 4, 5] and x.tolist() == [0] * 6


def test_a_base_keeps_its_value_when_a_view_changes():
    x = dt.zeros((2, 3))
    view = x[0]
    view += 1
    view[1] = 7
    assert x.tolist() == [[0, 0, 0], [0, 0, 0]] and view.tolist() == [1, 7, 1]


@pytest.mark.parametrize("alias", [lambda x: x[...], lambda x: x.mT.mT, copy.copy, copy.deepcopy, dt.asarray])
def test_aliases_are_values(alias):
    x = dt.asarray([[1.0, 2.0], [3.0, 4.0]])
    y = alias(x)
    y *= 10
    y[0, 0] = -1
    assert x.tolist() == [[1, 2], [3, 4]] and y.tolist() == [[-1, 20], [30, 40]]


def test_assignment_from_itself():
    x = dt.arange(5)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3]
    x[[0, 1, 2, 3, 4]] = x[::-1]
    assert x.tolist() == [3, 2, 1, 0, 0]
    x[x > 1] = x[0]
    assert x.tolist() == [3, 3, 1, 0, 0]


def test_in_place_reuses_memory_only_when_unshared():
    x = dt.zeros(64)
    if not x.device.properties["host_mapped"]:
        pytest.skip("the device's memory is not the host's")
    at = x.__array__(copy=False).ctypes.data  # the view is freed at the end of the statement
    x += 1
    x[3] = 5
    x[[1, 2]] = 6
    x[x == 5] = 7
    assert x.__array__(copy=False).ctypes.data == at
    keep = x[:1]
    x += 1
    assert x.__array__(copy=False).ctypes.data != at and keep.tolist() == [1]


def test_an_exported_buffer_stays_as_it_was():
    x = dt.arange(4)
    seen = np.asarray(x)
    x += 1
    x[0] = 100
    assert seen.tolist() == [0, 1, 2, 3] and x.tolist() == [100, 2, 3, 4]


def test_in_place_keeps_dtype_and_shape_or_raises():
    x = dt.arange(3)
    with pytest.raises(TypeError, match="dtype"):
        x += 0.5
    with pytest.raises(ValueError, match="shape"):
        x += dt.zeros((2, 3), dtype="int64")
    assert x.tolist() == [0, 1, 2]


def test_threads_sharing_an_array_see_whole_values():
    x = dt.zeros(2000, dtype="int64")
    failures = []

    def reader():
        for _ in range(200):
            y = x[:]
            values = np.unique((y + 0).numpy())
            if len(values) != 1:
                failures.append(values)

    def owner():
        y = x[:]
        for i in range(200):
            y += 1
            if int(y[0]) != i + 1:
                failures.append(i)

    threads = [threading.Thread(target=f) for f in (reader, reader, owner, owner)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failures and int(x.sum()) == 0


# ---- attributes and methods --------------------------------------------------------------------------------------


def test_attributes():
    x = dt.zeros((2, 3, 4), dtype="int16")
    assert (x.shape, x.strides, x.ndim, x.size, x.itemsize, x.nbytes) == ((2, 3, 4), (12, 4, 1), 3, 24, 2, 48)
    assert x.dtype == dt.int16 and x.device == dt.default_device() and len(x) == 2


@pytest.mark.parametrize("dtype", ALL)
def test_numpy_and_back(dtype):
    expected = host([[0, 1, 1], [1, 0, 1]], dtype)
    x = dt.asarray(expected)
    same(x, expected)
    same(x.T.copy(), expected.T)
    same(dt.asarray(expected.T), expected.T)
    assert dt.asarray(x.numpy()).tolist() == expected.tolist() == x.tolist()


@pytest.mark.parametrize("dtype", ALL)
def test_pickle(dtype):
    x = dt.asarray(host([[1, 0], [1, 1]], dtype))
    for protocol in (2, 5):
        y = pickle.loads(pickle.dumps(x[:, ::-1] if dtype not in ("complex64", "complex128") else x, protocol))
        same(y, (x.numpy()[:, ::-1] if dtype not in ("complex64", "complex128") else x.numpy()))
        assert y.device == x.device


def test_pickle_from_a_missing_device():
    from dovetail._array import unpickled

    with pytest.warns(UserWarning, match="nowhere:3"):
        x = unpickled("int32", (2,), b"\1\0\0\0\2\0\0\0", "nowhere:3")
    assert x.tolist() == [1, 2] and x.device == dt.default_device()


def test_dtypes_pickle():
    assert pickle.loads(pickle.dumps(dt.bfloat16)) == dt.bfloat16


def test_astype():
    x = dt.asarray([-1.5, 0.0, 2.7])
    assert x.astype("int32").tolist() == [-1, 0, 2]
    assert x.astype(dt.bool).tolist() == [True, False, True]
    y = x.astype("float32", copy=False)
    y[0] = 9
    assert x[0] == -1.5
    with pytest.raises(TypeError, match="no dtype"):
        x.astype("float31")


def test_reshape_and_transposes():
    x = dt.reshape(dt.arange(24), (2, 3, 4))
    n = np.arange(24).reshape(2, 3, 4)
    same(x.reshape(4, 6), n.reshape(4, 6))
    same(x.reshape((-1, 8)), n.reshape(-1, 8))
    same(x.mT, n.swapaxes(1, 2))
    same(x[0].T, n[0].T)
    same(x.mT.reshape(-1), n.swapaxes(1, 2).reshape(-1))
    with pytest.raises(ValueError, match="2 axes"):
        _ = x.T
    with pytest.raises(ValueError):
        x.reshape(5, 5)
    with pytest.raises(ValueError, match="copy"):
        dt.reshape(x.mT, (24,), copy=False)
    assert dt.reshape(x, (24,), copy=False).tolist() == list(range(24))


def test_reductions():
    x = dt.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert float(x.sum()) == 10 and x.sum(axis=0).tolist() == [4, 6]
    assert float(x.max()) == 4 and float(x.min()) == 1 and float(x.mean()) == 2.5
    assert bool((x > 3).any()) and not bool((x > 3).all())
    assert x.mean(axis=1, keepdims=True).shape == (2, 1)


def test_python_protocols():
    x = dt.asarray([[1, 2], [3, 4]])
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    assert 3 in x and 5 not in x
    assert int(x[0, 1]) == 2 and float(x[1, 1]) == 4.0 and complex(x[0, 0]) == 1 + 0j
    assert [10, 20, 30][x[0, 0]] == 20
    assert bool(x[0, 0]) is True
    assert f"{x[1, 1]:03d}" == "004" and f"{x[0]}" == "[1 2]"
    assert dt.asarray(2.5).item() == 2.5 and dt.asarray(1 + 2j).item() == 1 + 2j


def test_python_protocols_refuse():
    x = dt.asarray([[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x)
    with pytest.raises(TypeError, match="one element"):
        int(x)
    with pytest.raises(TypeError, match="integer"):
        [1, 2][dt.asarray(1.0)]
    with pytest.raises(TypeError, match="without axes"):
        iter(dt.asarray(1))
    with pytest.raises(TypeError, match="without axes"):
        len(dt.asarray(1))
    with pytest.raises(TypeError, match="hash"):
        hash(x)
    with pytest.raises(TypeError, match="format"):
        f"{x:.3f}"
    with pytest.raises(TypeError):
        del x[0]


def test_numpy_operators_leave_the_work_to_the_array():
    n = np.arange(3.0, dtype="float32")
    x = dt.asarray(n)
    for result in (x + np.float32(1), x * 2, 2 * x, np.float32(2) * x, n + x):
        assert isinstance(result, dt.Array)


def test_namespace():
    x = dt.zeros(1)
    assert x.__array_namespace__() is dt and x.__array_namespace__(api_version="2023.12") is dt
    with pytest.raises(ValueError, match="2031"):
        x.__array_namespace__(api_version="2031.12")


def test_real_and_imaginary_parts():
    x = dt.asarray([1.0, 2.0])
    assert x.real.tolist() == [1, 2] and x.imag.tolist() == [0, 0]
    for dtype in ("complex64", "complex128"):
        host = np.array([[1 + 2j, 3 - 4j], [5j, -6]], dtype)
        z = dt.asarray(host)
        for ours, theirs in ((z.real, host.real), (z.imag, host.imag), (z[:, 1].imag, host[:, 1].imag)):
            assert ours.tolist() == theirs.tolist() and ours.dtype == theirs.dtype.name
            assert (ours * 2 + ours).tolist() == (theirs * 3).tolist()


def test_to_device():
    x = dt.asarray([1, 2])
    y = x.to_device(x.device)
    y += 1
    assert x.tolist() == [1, 2]
    assert x.to_device(x.device.name).device == x.device
    with pytest.raises(ValueError, match="nowhere"):
        x.to_device("nowhere:0")
    with pytest.raises(TypeError, match="Stream"):
        x.to_device(x.device, stream=3)


def test_weak_scalars():
    assert (dt.zeros(2, dtype="int8") + 1).dtype == dt.int8
    assert (dt.zeros(2, dtype="float16") + 1.5).dtype == dt.float16
    assert (dt.zeros(2, dtype="int32") + 1.5).dtype == dt.float32
    with pytest.raises(OverflowError, match="int8"):
        dt.zeros(2, dtype="int8") + 300


@pytest.mark.parametrize(
    ("dtype", "range_"), [("int8", "-128 to 127"), ("uint8", "0 to 255"), ("int64", f"{-(2**63)} to {2**63 - 1}")]
)
def test_a_number_that_does_not_fit(dtype, range_):
    with pytest.raises(OverflowError, match=f"does not fit in {dtype}: expected {range_}, or a wider dtype"):
        dt.ones(2, dtype=dtype) + 2**64


def test_the_type_is_not_called():
    with pytest.raises(TypeError, match=r"dovetail.asarray\(\) makes an array"):
        dt.Array([1])
    assert "asarray" in dt.Array.__doc__
