"""Array.__dlpack_c_exchange_api__, called as a library in C calls it."""

import ctypes
import gc
import os
import subprocess
import sys
from ctypes import (
    POINTER,
    PYFUNCTYPE,
    Structure,
    byref,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
    py_object,
)
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest


class Version(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32)]


class Device(Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class DataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class Tensor(Structure):
    _fields_ = [
        ("data", c_void_p), ("device", Device), ("ndim", c_int32), ("dtype", DataType), ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)), ("byte_offset", c_uint64),
    ]  # fmt: skip


class Managed(Structure):
    pass


Deleter = ctypes.CFUNCTYPE(None, POINTER(Managed))
Managed._fields_ = [
    ("version", Version), ("context", c_void_p), ("deleter", Deleter), ("flags", c_uint64), ("tensor", Tensor),
]  # fmt: skip
SetError = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)


class Api(Structure):
    _fields_ = [
        ("version", Version),
        ("previous", c_void_p),
        # CFUNCTYPE releases the GIL, as a caller of this function may do
        ("allocate", ctypes.CFUNCTYPE(c_int, POINTER(Tensor), POINTER(POINTER(Managed)), c_void_p, SetError)),
        ("from_object", PYFUNCTYPE(c_int, py_object, POINTER(POINTER(Managed)))),
        ("to_object", PYFUNCTYPE(c_int, POINTER(Managed), POINTER(c_void_p))),
        ("borrow", c_void_p),
        ("current_work_stream", PYFUNCTYPE(c_int, c_int32, c_int32, POINTER(c_void_p))),
    ]


READ_ONLY = 1


def table():
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c_void_p, [py_object, c_char_p]
    return Api.from_address(get(dt.Array.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


@pytest.fixture(scope="module")
def api():
    return table()


def exported(api, x):
    managed = POINTER(Managed)()
    assert api.from_object(x, byref(managed)) == 0
    return managed


def imported(api, managed):
    made = c_void_p()
    assert api.to_object(managed, byref(made)) == 0
    x = ctypes.cast(made, py_object).value
    ctypes.pythonapi.Py_DecRef(py_object(x))  # the reference that the caller owns
    return x


def bytes_at(managed):
    t = managed.contents.tensor
    return ctypes.string_at(t.data, t.shape[0] * t.dtype.bits // 8)


def test_the_table(api):
    assert api.version.major == 1 and api.version.minor >= 2
    assert not api.previous and not api.borrow
    assert api.allocate and api.from_object and api.to_object and api.current_work_stream


def test_an_array_goes_out_read_only_and_shared(api):
    x = dt.asarray([[1, 2, 3], [4, 5, 6]], dtype="int32", device="cpu:0").T
    managed = exported(api, x)
    m = managed.contents
    t = m.tensor
    assert m.version.major == 1 and m.flags & READ_ONLY and (t.device.type, t.device.id) == (1, 0)
    assert (t.dtype.code, t.dtype.bits, t.dtype.lanes, t.ndim) == (0, 32, 1, 2)
    assert t.shape[:2] == [3, 2] and t.strides[:2] == [1, 3]
    assert t.data + t.byte_offset == np.asarray(dt._core.elements(x)).ctypes.data
    x += 1  # the consumer's memory keeps its value
    assert ctypes.string_at(t.data, 24) == np.arange(1, 7, dtype=np.int32).tobytes()
    m.deleter(managed)


def test_an_array_comes_in_and_is_released(api):
    n = np.arange(4, dtype="float32")
    capsule = n.__dlpack__(max_version=(1, 0))
    get = ctypes.pythonapi.PyCapsule_GetPointer
    managed = ctypes.cast(get(capsule, b"dltensor_versioned"), POINTER(Managed))
    x = imported(api, managed)
    ctypes.pythonapi.PyCapsule_SetName.argtypes = [py_object, c_char_p]
    ctypes.pythonapi.PyCapsule_SetName(capsule, b"used_dltensor_versioned")
    n[0] = 9
    assert type(x) is dt.Array and x.tolist() == [9, 1, 2, 3]


@pytest.mark.parametrize("taken", [True, False])
def test_the_deleter_runs_once(api, taken):
    freed = []
    values = (ctypes.c_double * 3)(1, 2, 3)
    shape, strides = (c_int64 * 1)(3), (c_int64 * 1)(1 if taken else -1)
    data = ctypes.addressof(values) + (0 if taken else 16)
    tensor = Tensor(data, Device(1, 0), 1, DataType(2, 64, 1), shape, strides, 0)
    managed = Managed(Version(1, 0), None, Deleter(lambda m: freed.append(m)), 0, tensor)
    x = imported(api, ctypes.pointer(managed))
    assert x.tolist() == ([1, 2, 3] if taken else [3, 2, 1]) and len(freed) == (0 if taken else 1)
    del x
    gc.collect()
    assert len(freed) == 1


def test_errors_leave_the_tensor_to_the_caller(api):
    freed = []
    shape, strides = (c_int64 * 1)(3), (c_int64 * 1)(1)
    for version, device, dtype, why in [
        ((2, 0), (1, 0), (2, 64, 1), "expected 1.x"),
        ((1, 0), (1, 0), (2, 64, 4), "expected one of dovetail's dtypes"),
        ((1, 0), (16, 0), (2, 64, 1), r"device \(16, 0\): no installed backend"),
        ((1, 0), (1, 0), (2, 64, 1), "without memory"),
    ]:
        tensor = Tensor(None, Device(*device), 1, DataType(*dtype), shape, strides, 0)
        managed = Managed(Version(*version), None, Deleter(lambda m: freed.append(m)), 0, tensor)
        with pytest.raises(BufferError, match=why):
            api.to_object(ctypes.pointer(managed), byref(c_void_p()))
    assert not freed
    with pytest.raises(TypeError, match=r"\[dlpack\] expected an array"):
        api.from_object([1, 2], byref(POINTER(Managed)()))


def test_allocate(api):
    shape = (c_int64 * 1)(5)
    like = Tensor(None, Device(1, 0), 1, DataType(0, 32, 1), shape, None, 0)
    managed, errors = POINTER(Managed)(), []
    set_error = SetError(lambda context, kind, message: errors.append((context, kind, message)))
    assert api.allocate(byref(like), byref(managed), 7, set_error) == 0 and not errors
    m = managed.contents
    assert not m.flags & READ_ONLY and m.tensor.shape[0] == 5 and m.tensor.strides[0] == 1
    ctypes.memmove(m.tensor.data, np.arange(5, dtype=np.int32).tobytes(), 20)
    assert imported(api, managed).tolist() == [0, 1, 2, 3, 4]
    for device, dtype, why in [((1, 0), (2, 7, 1), b"dtype"), ((16, 0), (0, 32, 1), b"no installed backend")]:
        like = Tensor(None, Device(*device), 1, DataType(*dtype), shape, None, 0)
        assert api.allocate(byref(like), byref(managed), 7, set_error) != 0
        context, kind, message = errors.pop()
        assert context == 7 and kind == b"BufferError" and why in message and not errors


def test_streams(api):
    stream = c_void_p(5)
    assert api.current_work_stream(1, 0, byref(stream)) == 0 and stream.value is None
    with pytest.raises(BufferError, match="no installed backend"):
        api.current_work_stream(16, 0, byref(stream))


SLOW = """
import dovetail as dt
from test_dlpack_exchange import Managed, POINTER, byref, table

x = dt.arange(1000, device="sim:0")
one, two = dt.Stream("sim:0"), dt.Stream("sim:0")
with one:
    y = x + 1
    y = y + 1
assert not one.query()
with two:
    managed = POINTER(Managed)()
    assert table().from_object(y, byref(managed)) == 0
assert one.query() or not two.query()
t = managed.contents.tensor
assert (t.device.type, t.device.id) == y.__dlpack_device__()
managed.contents.deleter(managed)
"""


def test_elements_are_written_before_the_consumer_sees_them():
    """In a process of its own, whose simulated device takes 100 ms to begin an op."""
    run = subprocess.run(
        [sys.executable, "-c", SLOW],
        env=os.environ | {"DOVETAIL_SIM_LATENCY_US": "100000"},
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr


# ---- libraries that use it ---------------------------------------------------------------------------------------


def test_tvm_ffi_takes_and_returns_arrays():
    tvm_ffi = pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed")
    x = dt.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu:0")
    seen = []

    def function(tensor):
        seen.append(type(tensor))
        return tensor

    result = tvm_ffi.convert(function)(x)
    assert seen and seen[0] is not dt.Array and type(result) is dt.Array and result.tolist() == x.tolist()
    x += 1
    assert result.tolist() == [[1, 2], [3, 4]]
