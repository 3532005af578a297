"""DLPack, the buffer protocol and NumPy's conversions."""

import gc
import pickle
import threading
import weakref

import dovetail as dt
import numpy as np
import pytest
from dovetail import _core

DLPACK = ["bool", "int8", "int64", "uint8", "uint32", "float16", "float32", "float64", "complex64", "complex128"]


class Old:
    """A producer from before DLPack 1.0."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.fixture(autouse=True)
def on_the_host():
    if not dt.default_device().properties["host_mapped"]:
        pytest.skip("the default device's memory is not the host's")


# ---- buffers and NumPy -------------------------------------------------------------------------------------------


def test_elements():
    x = dt.reshape(dt.arange(6, dtype="int32"), (2, 3))
    view = _core.elements(x)
    assert view.readonly and view.format == "i" and view.shape == (2, 3) and view.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert _core.elements(x[:, ::2]).strides == (12, 8)
    assert _core.elements(x.T).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert _core.elements(dt.asarray(7)).tolist() == 7 and _core.elements(dt.zeros((0, 2))).tolist() == []


def test_elements_refuse():
    with pytest.raises(BufferError, match="bfloat16"):
        _core.elements(dt.zeros(2, dtype="bfloat16"))
    with pytest.raises(TypeError):
        _core.elements(dt.zeros(2))[0] = 1
    with pytest.raises(TypeError, match="bytes-like"):
        memoryview(dt.zeros(2))  # NumPy would use it for numpy.asarray(x), and it could only be read-only


def test_elements_outlive_the_array():
    view = _core.elements(dt.asarray([1.0, 2.0]))
    gc.collect()
    _ = [dt.zeros(2) for _ in range(10)]
    assert view.tolist() == [1, 2]


def seen(x):
    return np.asarray(_core.elements(x))


def test_array_method():
    x = dt.asarray([1.0, 2.0])
    assert x.__array__().dtype == "float32" and x.__array__("int8").dtype == "int8"
    assert x.__array__(copy=True).flags.writeable and not x.__array__(copy=False).flags.writeable
    with pytest.raises(ValueError, match="copy"):
        x.__array__("int8", copy=False)


# ---- DLPack out --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DLPACK)
def test_numpy_from_dlpack(dtype):
    x = dt.asarray(np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype))
    for y in (x, x.T, x[:, 1:], x[:0]):
        n = np.from_dlpack(y)
        assert n.dtype.name == dtype and not n.flags.writeable and n.tolist() == y.tolist()
        assert not y.size or np.shares_memory(n, seen(y))


def test_exported_memory_is_shared_until_released():
    x = dt.asarray([1.0, 2.0])
    n = np.from_dlpack(x)
    x += 1
    assert n.tolist() == [1, 2] and x.tolist() == [2, 3]
    at = np.from_dlpack(x).ctypes.data  # released at once
    x += 1
    assert np.from_dlpack(x).ctypes.data == at


def test_exported_memory_outlives_the_array():
    n = np.from_dlpack(dt.asarray([1.0, 2.0]))
    gc.collect()
    _ = [dt.zeros(2) for _ in range(10)]
    assert n.tolist() == [1, 2]


def test_copies():
    x = dt.asarray([1.0, 2.0])
    n = np.from_dlpack(x, copy=True)
    n[:] = 0
    assert x.tolist() == [1, 2]
    old = np.from_dlpack(Old(x))  # cannot mark memory as read-only
    assert old.tolist() == [1, 2] and not np.shares_memory(old, seen(x))
    capsule = x.__dlpack__(copy=False)  # as an old consumer that insists gets it
    assert '"dltensor"' in repr(capsule)
    y = _core.import_dlpack(capsule, x.device, x.device, None)
    assert np.shares_memory(seen(y), seen(x))
    x += 1
    assert y.tolist() == [1, 2] and x.tolist() == [2, 3]


def test_arguments():
    x = dt.asarray([1.0, 2.0])
    kind, number = x.__dlpack_device__()
    assert (kind, number) == (1, 0)
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 0)))
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(2, 0), dl_device=(1, 0)))
    assert '"dltensor"' in repr(x.__dlpack__()) and '"dltensor"' in repr(x.__dlpack__(max_version=(0, 8)))
    with pytest.raises(BufferError, match=r"\(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(ValueError, match="stream"):
        x.__dlpack__(stream=7)
    with pytest.raises(ValueError, match="expected a stream's address, -1 or None, got -2"):
        x.__dlpack__(stream=-2)
    with pytest.raises(TypeError, match="stream"):
        x.__dlpack__(stream="s")


def test_unused_capsules_are_released():
    x = dt.asarray([1.0, 2.0])
    at = seen(x).ctypes.data
    for version in (None, (1, 0)):
        x.__dlpack__(max_version=version)
    x += 1
    assert seen(x).ctypes.data == at


# ---- DLPack in ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DLPACK)
def test_from_numpy(dtype):
    n = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    for m in (n, n.T, n[:, 1:], n[::-1, ::-1], n[:0], n[0, 0:1]):
        assert dt.from_dlpack(m).tolist() == m.tolist()
        assert dt.from_dlpack(m, copy=True).tolist() == m.tolist()


def test_imported_memory_is_shared_and_never_written():
    n = np.zeros(4, dtype="float32")
    x = dt.from_dlpack(n)
    n[0] = 1
    assert x.tolist() == [1, 0, 0, 0]
    x += 1
    x[1] = 5
    assert n.tolist() == [1, 0, 0, 0] and x.tolist() == [2, 5, 1, 1]
    y = dt.from_dlpack(n)
    y[[0, 1]] = 9
    y[y == 0] = 3
    assert n.tolist() == [1, 0, 0, 0] and y.tolist() == [9, 9, 3, 3]


def test_imported_memory_is_released():
    n = np.zeros(4, dtype="float32")
    alive = weakref.ref(n)
    x = dt.from_dlpack(n)
    view = x[1:]
    del n, x
    gc.collect()
    assert alive() is not None
    del view
    gc.collect()
    assert alive() is None


def test_imported_memory_is_released_on_another_thread():
    n = np.zeros(4, dtype="float32")
    alive, box = weakref.ref(n), [dt.from_dlpack(n)]
    del n
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert alive() is None


def test_round_trip_gives_the_same_memory():
    n = np.arange(4.0)
    assert np.shares_memory(np.from_dlpack(dt.from_dlpack(n)), n)
    assert dt.from_dlpack(Old(n)).tolist() == [0, 1, 2, 3]
    x = dt.arange(3)
    y = dt.from_dlpack(x)
    y += 1
    assert x.tolist() == [0, 1, 2]


def test_copy_argument():
    n = np.arange(4.0)
    x = dt.from_dlpack(n, copy=True)
    n[:] = 7
    assert x.tolist() == [0, 1, 2, 3]
    with pytest.raises(BufferError, match="copy"):
        dt.from_dlpack(n[::-1], copy=False)
    assert dt.from_dlpack(n, copy=False).tolist() == [7] * 4


ODD = np.frombuffer(bytes([0, 255, 0, 2, 1, 128]), np.bool_)  # NumPy reads every byte except 0 as True


class Unpickled:
    """An array's pickle with changed bytes."""

    def __reduce__(self):
        from dovetail._array import unpickled

        return unpickled, ("bool", (6,), ODD.tobytes(), dt.default_device().name)


@pytest.mark.parametrize(
    "make",
    [
        lambda: dt.asarray(ODD),
        lambda: dt.asarray(ODD.reshape(2, 3)[:, ::-1])[:, ::-1].reshape(6),
        lambda: dt.from_dlpack(ODD),
        lambda: dt.from_dlpack(ODD, copy=True),
        lambda: dt.from_dlpack(np.repeat(ODD, 2)[::2]),
        lambda: dt.from_dlpack(ODD[::-1])[::-1],
        lambda: dt.from_dlpack(Old(ODD.copy())),
        lambda: pickle.loads(pickle.dumps(Unpickled())),
        lambda: _core.from_buffer(ODD.tobytes(), "bool", (6,), None),
    ],
)
def test_bools_are_0_and_1_inside(make):
    mask = make()
    assert bytes(mask) == bytes([0, 1, 0, 1, 1, 1])
    assert int(dt.sum(mask)) == 4 and dt.logical_not(mask).tolist() == [True, False, True, False, False, False]
    assert dt.arange(6)[mask].tolist() == [1, 3, 4, 5] and mask.astype("float32").tolist() == [0, 1, 0, 1, 1, 1]


def test_odd_bools_are_not_copied_silently():
    for source in (ODD, np.repeat(ODD, 2)[::2]):
        with pytest.raises(BufferError, match=r"\[dlpack\] bools whose bytes are not 0 or 1 .* copy=None or True"):
            dt.from_dlpack(source, copy=False)
    plain = np.array([True, False])
    shared = dt.from_dlpack(plain, copy=False)
    plain[1] = True
    assert shared.tolist() == [True, True]


def test_bad_input():
    with pytest.raises(TypeError, match="__dlpack__"):
        dt.from_dlpack([1, 2])
    with pytest.raises(ValueError, match="nowhere"):
        dt.from_dlpack(np.zeros(2), device="nowhere:0")

    class Elsewhere(Old):
        def __dlpack_device__(self):
            return (12, 0)

    with pytest.raises(BufferError, match="common name"):
        dt.from_dlpack(Elsewhere(np.zeros(2)))

    class Unreadable(Old):
        def __dlpack_device__(self):
            return (2, 0)

    with pytest.raises(BufferError, match="no installed backend can read"):
        dt.from_dlpack(Unreadable(np.zeros(2)))


def test_a_capsule_is_taken_once():
    capsule = np.zeros(2).__dlpack__()
    home = dt.default_device()
    assert _core.import_dlpack(capsule, home, home, None).tolist() == [0, 0]
    with pytest.raises(ValueError, match="consumed"):
        _core.import_dlpack(capsule, home, home, None)
    with pytest.raises(TypeError, match="capsule"):
        _core.import_dlpack(3, home, home, None)


def test_unaligned_elements_are_copied():
    raw = np.zeros(17, dtype="uint8")
    n = raw[1:].view("float64")
    n[:] = [1, 2]
    assert dt.from_dlpack(n).tolist() == [1, 2] and (dt.from_dlpack(n) + 1).tolist() == [2, 3]


# ---- torch -------------------------------------------------------------------------------------------------------


def test_torch():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    t = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    x = dt.from_dlpack(t)
    t[0, 0] = 9
    assert x.tolist() == [[9, 1, 2], [3, 4, 5]]
    x += 1
    assert t[0, 1] == 1
    assert dt.asarray(t).tolist() == t.tolist()
    b = torch.ones(3, dtype=torch.bfloat16) * 1.5
    assert dt.from_dlpack(b).dtype == "bfloat16" and dt.from_dlpack(b).tolist() == [1.5] * 3
    back = torch.from_dlpack(dt.asarray([[1.0, 2.0]]).T)
    assert back.shape == (2, 1) and back.tolist() == [[1], [2]]


@pytest.mark.parametrize("name", ["int64", "uint64"])
def test_numpy_gets_its_own_64_bits(name):
    """NumPy has two 64-bit types; only one of them prints without its dtype."""
    x = dt.asarray([1], dtype=name)
    assert np.asarray(x).dtype.char == np.dtype(name).char
    assert x.numpy().dtype.char == np.dtype(name).char


@pytest.mark.skipif(
    tuple(map(int, np.__version__.split(".")[:2])) < (2, 4), reason="NumPy asks __numpy_dtype__ from 2.4 on"
)
def test_numpy_makes_dtypes_of_ours():
    for name in DLPACK:
        assert np.dtype(getattr(dt, name)) == np.dtype(name)
    assert np.zeros(2, dtype=dt.bfloat16).dtype.name == "bfloat16"
