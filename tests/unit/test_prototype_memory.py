"""Devices written in Python: memory of every kind, errors, and forbidden actions of kernels."""

from __future__ import annotations

import itertools

import dovetail as dt
import numpy as np
import pytest
from dovetail import _core
from dovetail.prototype import HostMemory, View, kernel
from python_devices import Copies, floats, opened

# ---- memory ------------------------------------------------------------------------------------------------------


class Handles(Copies):
    """Memory identified by objects: the host cannot access it."""

    name = "handles"
    mapped = False
    alive = 0

    class Block:
        def __init__(self, size):
            self.data = bytearray(size)

    def alloc(self, size):
        Handles.alive += 1
        return self.Block(size)

    def free(self, buffer):
        assert isinstance(buffer, self.Block)
        Handles.alive -= 1

    def copy_bytes(self, dst: View, src: View):
        def data(v):
            return v.bytes() if v.on_host else memoryview(v.buffer.data)[v.offset : v.offset + v.nbytes]

        data(dst)[:] = data(src)

    def elements(self, v: View) -> np.ndarray:
        dtype = np.dtype(v.dtype.name)
        return np.ndarray(v.shape, dtype, v.buffer.data, v.offset, [s * dtype.itemsize for s in v.strides])

    @kernel("copy", "any")
    def copy(self, x, out):
        self.elements(out)[...] = self.elements(x)

    @kernel("add", "float32", strided=True)
    def add(self, x1, x2, out):
        self.elements(out)[...] = self.elements(x1) + self.elements(x2)

    @kernel("subtract", "float32")
    def subtract(self, x1, x2, out):
        out.numpy()[...] = 0


def test_memory_may_be_objects():
    (device,) = dt.load_backend(Handles)
    assert device.properties["caps"] == []
    x = floats(device, 4, 6)
    np.testing.assert_array_equal((x[1:, ::2] + 1.5).numpy(), x.numpy()[1:, ::2] + 1.5)
    x[2:, 1] = 5.0
    assert x.numpy()[:, 1].tolist() == [1, 7, 5, 5]
    with pytest.raises(RuntimeError, match=r"\[subtract\] .*TypeError: the operand is not in memory of the host"):
        dt.subtract(x, x)
    with pytest.raises(BufferError, match="not the host's"):
        _core.elements(x)
    assert Handles.alive > 0
    del x
    dt.memory.empty_cache(device)
    assert Handles.alive == 0


def test_memory_may_be_addresses():
    """Device memory may be plain addresses: the host adds offsets to them and never dereferences them."""
    at, store = itertools.count(0x1000_0000_0000, 1 << 20), {}

    def alloc(self, size):
        address = next(at)
        store[address] = bytearray(size)
        return address

    def copy_bytes(self, dst, src):
        def data(v):
            return v.bytes() if v.on_host else memoryview(store[v.buffer])[v.offset : v.offset + v.nbytes]

        assert all(v.on_host or v.address == v.buffer + v.offset for v in (dst, src))
        data(dst)[:] = data(src)

    device = opened(mapped=False, alloc=alloc, copy_bytes=copy_bytes)
    x = floats(device, 100)
    assert x[40:].numpy().tolist() == list(range(40, 100)) and store


@pytest.mark.parametrize(
    ("alloc", "error"),
    [
        (lambda size: None, "Changing.alloc raised TypeError: a bytes-like object is required, not 'NoneType'"),
        (lambda size: bytearray(8), r"Changing.alloc\(64\) returned 8 bytes at .* expected as many as asked for"),
        (lambda size: bytes(size), "Changing.alloc raised BufferError: Object is not writable"),
        (lambda size: 1 / 0, "Changing.alloc raised ZeroDivisionError: division by zero"),
    ],
)
def test_invalid_memory_is_refused(now, alloc, error):
    now.alloc = alloc
    with pytest.raises(RuntimeError, match=r"\[memory\] " + error) as raised:
        floats(now.device, 3)
    assert raised.value.__cause__ is not None


def test_memory_of_the_host_has_its_size_from_the_first():
    assert len(memoryview(HostMemory(8))) == 8
    for size in (2**62 + 1, 2**63, 2**64 - 1):
        with pytest.raises(MemoryError):
            HostMemory(size)
    for wrong in (-1, 2**64, "8"):
        with pytest.raises(TypeError):
            HostMemory(wrong)
    for kind in (HostMemory, _core.LentMemory):
        with pytest.raises(TypeError, match=r"is not safe|cannot create"):
            object.__new__(kind)
        with pytest.raises(TypeError):
            kind.__new__(kind)


def test_out_of_memory_gives_the_cache_back(now):
    freed = []

    def alloc(size):
        if size > 1 << 16 and not freed:
            raise MemoryError("full")
        return HostMemory(size)

    now.alloc, now.free = alloc, freed.append
    x = floats(now.device, 100)
    with pytest.raises(MemoryError, match=r"KiB"):
        floats(now.device, 1 << 15)
    del x
    assert floats(now.device, 1 << 15).shape == (1 << 15,) and freed


def test_a_small_memory_runs_out():
    device = opened(memory=1 << 20)
    held = [floats(device, 1 << 16) for _ in range(3)]
    with pytest.raises(MemoryError):
        held.append([floats(device, 1 << 16) for _ in range(3)])
    held.clear()
    assert floats(device, 1 << 17).size == 1 << 17


def test_memory_lent_for_a_copy_is_taken_back(now):
    kept = []

    def copy_bytes(dst, src):
        kept.append(src.numpy() if src.on_host else None)
        dst.bytes()[:] = src.bytes()

    now.copy_bytes = copy_bytes
    with pytest.raises(RuntimeError, match=r"\[copy\] memory of the host is still held after the call"):
        floats(now.device, 3)


def test_arrays_that_a_kernel_keeps_are_not_freed(now):
    kept = []

    def multiply(x1, x2, out):
        out.numpy()[...] = 5
        kept.append(out.numpy())

    now.multiply = multiply
    floats(now.device, 1 << 20) * 1.0
    dt.memory.empty_cache(now.device)
    assert kept[0].min() == kept[0].max() == 5


# ---- errors ------------------------------------------------------------------------------------------------------


def raising(error: BaseException):
    def run(x1, x2, out):
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (ValueError("no such value"), ValueError, "[multiply] no such value"),
        (IndexError("too far"), IndexError, "[multiply] too far"),
        (MemoryError("all gone"), MemoryError, "[multiply] all gone"),
        (RuntimeError("broken"), RuntimeError, "[multiply] broken"),
        (ValueError(), ValueError, "[multiply] kernel Changing.multiply raised ValueError"),
        (KeyError("k"), RuntimeError, "[multiply] kernel Changing.multiply raised KeyError: 'k'"),
        (TypeError("not that"), RuntimeError, "[multiply] kernel Changing.multiply raised TypeError: not that"),
        (ValueError("[take] mine"), ValueError, "[take] mine"),
        (ValueError("a \0 byte"), ValueError, "[multiply] a   byte"),
    ],
)
def test_an_exception_is_the_cause_of_the_ops_error(now, error, kind, text):
    now.multiply, x = raising(error), floats(now.device, 3)
    with pytest.raises(kind) as raised:
        x * x
    assert str(raised.value) == text and type(raised.value) is kind
    assert raised.value.__cause__ is error and error.__traceback__ is not None
    with pytest.raises(ValueError) as other:
        x * floats(now.device, 2, 2)
    assert other.value.__cause__ is None


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_base_exceptions_pass_through(now, error):
    now.multiply, x = raising(error), floats(now.device, 3)
    with pytest.raises(type(error)) as raised:
        x * x
    assert raised.value is error


def test_a_lost_device_stays_lost():
    def run(self, x1, x2, out):
        raise dt.DeviceLostError("the cable")

    x = floats(opened(add=kernel("add", "float32")(run)), 3)
    with pytest.raises(dt.DeviceLostError, match="the cable"):
        x + x
    with pytest.raises(dt.DeviceLostError, match="was lost"):
        x + x


def test_a_kernel_returns_nothing(now):
    now.multiply, x = lambda x1, x2, out: x1.numpy() * x2.numpy(), floats(now.device, 3)
    with pytest.raises(RuntimeError, match=r"Changing.multiply returned numpy.ndarray: expected it to write"):
        x * x


def test_an_error_within_a_decomposition_has_its_cause(now):
    now.multiply, now.query = raising(ValueError("no product")), lambda x, out: "the decomposition does it"
    with pytest.raises(ValueError, match=r"\[multiply\] no product") as raised:
        dt.square(floats(now.device, 3))
    assert isinstance(raised.value.__cause__, ValueError)


calls = {
    "an op": lambda x: x + x,
    "an op of another device": lambda x: dt.asarray([1.0]) + 1.0,
    "asarray": lambda x: dt.asarray([1.0], device=x.device),
    "numpy": lambda x: x.numpy(),
    "item": lambda x: x[0].item(),
    "device": lambda x: dt.device("cpu"),
    "devices": lambda x: dt.devices(),
    "load_backend": lambda x: dt.load_backend(Copies),
    "load_kernels": lambda x: dt.load_kernels("nobody_has_it"),
    "a view": lambda x: x.reshape((3, 1)),
}


@pytest.mark.parametrize("call", calls.values(), ids=calls)
def test_calling_dovetail_inside_a_kernel_is_refused(now, call):
    x = floats(now.device, 3)
    now.multiply = lambda x1, x2, out: call(x) and None
    with pytest.raises(
        RuntimeError, match=r"dovetail was called inside kernel Changing.multiply, for which it waits"
    ):
        x * x
    assert (x + x).tolist() == [0, 2, 4]


def test_calling_dovetail_inside_alloc_is_refused(now):
    now.alloc = lambda size: dt.asarray([1.0])
    with pytest.raises(RuntimeError, match=r"\[memory\] dovetail was called inside Changing.alloc"):
        floats(now.device, 3)


def test_arrays_may_die_inside_a_kernel(now):
    held = [floats(now.device, 1 << 20) for _ in range(3)]

    def multiply(x1, x2, out):
        held.clear()
        out.numpy()[...] = 1

    now.multiply, x = multiply, floats(now.device, 3)
    assert (x * x).tolist() == [1, 1, 1]
