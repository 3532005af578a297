"""DLPack: an exported tensor shares the array's memory, and lives as long as its consumer."""

from __future__ import annotations

import ctypes
import gc

import numpy as np

from . import check, expect, raises

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


def exported(array) -> tuple[object, DLTensor]:
    """The capsule of an array, which must be kept, and the tensor in it: the array's own memory."""
    capsule = array.__dlpack__(max_version=(1, 0))
    return capsule, DLManagedTensorVersioned.from_address(_pointer(capsule, b"dltensor_versioned")).tensor


def address(array) -> int:
    """The address of an array's first element, in the device's own space."""
    _, tensor = exported(array)
    return (tensor.data or 0) + tensor.byte_offset


@check
def describes_the_array(t, rng):
    x = t.asarray(np.zeros((5, 6, 7), np.float32))
    for view in (x, x[1:, ::2], t.function("permute_dims")(x, (2, 0, 1)), x[3, 2]):
        _, tensor = exported(view)
        shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
        expect(shape == view.shape, f"the exported shape is {shape}, expected {view.shape}")
        if tensor.strides:
            strides = tuple(tensor.strides[i] for i in range(tensor.ndim))
            expect(strides == view.strides, f"the exported strides are {strides}, expected {view.strides}")
        kind = (tensor.code, tensor.bits, tensor.lanes)
        expect(kind == (2, 32, 1), f"float32 is exported as code, bits, lanes {kind}, expected (2, 32, 1)")
        where = (tensor.device_type, tensor.device_id)
        expect(
            where == tuple(view.__dlpack_device__()),
            f"the capsule has device {where}, the array {view.__dlpack_device__()}",
        )


@check
def declared_device(t, rng):
    kind = int(t.asarray(np.zeros(3)).__dlpack_device__()[0])
    declared = t.device.properties["dl_device_type"]
    expect(kind == declared, f"arrays have DLPack device type {kind}, the device declares {declared}")


@check
def round_trip(t, rng):
    host = rng.standard_normal((5, 6)).astype(np.float32)
    for name, of in {"dense": np.s_[:], "strided": np.s_[1:, ::2], "one row": np.s_[2]}.items():
        x = t.asarray(host)[of]
        y = t.api.from_dlpack(x)
        expect(y.device == t.device, f"an array of {t.name} came back from DLPack on {y.device.name}")
        expect(np.array_equal(t.numpy(y), host[of]), f"{name}: values changed on the way through DLPack")


@check
def outlives_its_array(t, rng):
    """Views of an exported buffer stay right when the array and everything else of it is gone."""
    host = rng.integers(0, 256, 100_000, dtype=np.uint8)
    x = t.asarray(host)
    y = t.api.from_dlpack(x)
    del x
    gc.collect()
    others = [t.asarray(np.zeros(100_000, np.uint8)) for _ in range(4)]
    expect(np.array_equal(t.numpy(y), host), "memory was reused while a DLPack consumer held it")
    del others


@check
def nothing_stays(t, rng):
    """Capsules and imported arrays that are dropped free their memory, used or not."""
    t.synchronize()
    before = t.api.memory.stats(t.device)["in_use"]
    for _ in range(10):
        x = t.asarray(np.zeros(1 << 16, np.uint8))
        x.__dlpack__()
        y = t.api.from_dlpack(x)
        del x
        del y
    gc.collect()
    t.synchronize()
    after = t.api.memory.stats(t.device)["in_use"]
    expect(after == before, f"{after - before} bytes are still in use after all capsules were dropped")


@check
def values_stay(t, rng):
    """Writing an array after it was exported does not reach the consumer, nor the other way round."""
    host = np.arange(12, dtype=np.float32)
    x = t.asarray(host)
    y = t.api.from_dlpack(x)
    x[:] = -1.0
    expect(np.array_equal(t.numpy(y), host), "an array made from DLPack changed with its source")
    y[:3] = 9.0
    expect(np.all(t.numpy(x) == -1), "an array changed with one made from its DLPack export")


@check
def numpy_reads_it(t, rng):
    """NumPy reads the device's memory if the host can."""
    x = t.asarray(np.arange(30, dtype=np.int64).reshape(5, 6))[1:, ::2]
    if t.device.properties["dl_device_type"] == 1:
        seen = np.from_dlpack(x)
        expect(
            np.array_equal(seen, np.arange(30).reshape(5, 6)[1:, ::2]),
            f"NumPy reads {seen.tolist()} through DLPack",
        )
    expect(
        np.array_equal(np.asarray(t.numpy(x)), np.arange(30).reshape(5, 6)[1:, ::2]), "numpy() gives other values"
    )


@check
def from_the_host(t, rng):
    host = np.arange(30, dtype=np.int32).reshape(5, 6)[::2]
    x = t.api.from_dlpack(host, device=t.device)
    expect(x.device == t.device, f"from_dlpack(device={t.name}) gave an array on {x.device.name}")
    expect(np.array_equal(t.numpy(x), host), "values of a NumPy array changed on the way in")
    raises((TypeError, AttributeError, ValueError), lambda: t.api.from_dlpack(3), "from_dlpack(3)")
