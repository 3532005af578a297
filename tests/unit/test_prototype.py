"""Devices written in Python: what an author writes, what a kernel sees, and how its mistakes are told."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import dovetail as dt
import numpy as np
import pytest
from dovetail._kernel_rows import rows_of
from dovetail.entry_points import BackendError
from dovetail.prototype import HostMemory, PythonDevice, View, kernel

numbers = itertools.count()


class Copies(PythonDevice):
    @kernel("copy", "any")
    def copy(self, x, out):
        out.numpy()[...] = x.numpy()


def opened(**members) -> dt.Device:
    """A new device that has these members, and a copy kernel. A process has room for few."""
    cls = type("Acme", (Copies,), {"name": f"acme_{next(numbers)}"} | members)
    return dt.load_backend(cls)[0]


@kernel("add", "float32 int32")
def add(self, x1, x2, out):
    out.numpy()[...] = x1.numpy() + x2.numpy()


def floats(device: dt.Device, *shape: int) -> dt.Array:
    return dt.asarray(np.arange(np.prod(shape), dtype=np.float32).reshape(shape), device=device)


class Changing(Copies):
    """A device whose functions are those of the test at hand."""

    name = "changing"
    now = SimpleNamespace()
    add = add

    def alloc(self, size):
        return getattr(self.now, "alloc", HostMemory)(size)

    def free(self, buffer):
        getattr(self.now, "free", lambda buffer: None)(buffer)

    def copy_bytes(self, dst, src):
        getattr(self.now, "copy_bytes", super().copy_bytes)(dst, src)

    @kernel("multiply", "float32")
    def multiply(self, x1, x2, out):
        return self.now.multiply(x1, x2, out)

    @kernel("square", "float32")
    def square(self, x, out):
        out.numpy()[...] = -1

    @square.query
    def asks(self, x, out):
        return self.now.query(x, out)


@pytest.fixture(autouse=True)
def no_fallback():
    before = dt.fallback("error")
    yield
    dt.fallback(before)


@pytest.fixture
def now():
    """What the device changing does now; now.device is it."""
    (device,) = dt.load_backend(Changing)
    dt.memory.empty_cache(device)
    Changing.now = SimpleNamespace(device=device)
    yield Changing.now
    Changing.now = SimpleNamespace()


# ---- what an author writes ---------------------------------------------------------------------------------------


def test_ten_lines_make_a_device():
    class Acme(PythonDevice):
        name = "ten_lines"

        @kernel("add", "float32 int32")
        def add(self, x1, x2, out):
            out.numpy()[...] = x1.numpy() + x2.numpy()

    (device,) = dt.load_backend(Acme)
    assert device.name == "ten_lines:0" and dt.device("ten_lines") == device
    x = dt.asarray([1, 2, 3], dtype=dt.int32, device=device)
    assert (x + x).tolist() == [2, 4, 6] and (x + x).device == device
    assert dt.load_backend(Acme) == [device]  # once
    with pytest.raises(NotImplementedError, match=r"\[add\] float64, float64 is not supported on ten_lines:0"):
        dt.add(*[dt.asarray([1.0], dtype=dt.float64, device=device)] * 2)


def test_it_says_what_it_is():
    members = {
        "version": "1.5", "kind": "npu", "product": "Acme Ten", "arch": "a10", "memory": 1 << 20, "add": add,
        "count": classmethod(lambda cls: 2), "bytes_per_second": 1e9,
    }  # fmt: skip
    device = opened(**members)
    p = device.properties
    assert (device.kind, device.arch, p["name"], p["mem_total"]) == ("npu", "a10", "Acme Ten", 1 << 20)
    assert p["peak_bytes_per_s"] == 1e9 and p["synchronous"] and p["caps"] == ["host_mapped", "fork_safe"]
    backend = next(b for b in dt._core.backends() if b["name"] == device.backend)
    assert backend["version"] == "1.5" and backend["devices"] == [f"{device.backend}:0", f"{device.backend}:1"]
    rows = dt._core.kernel_table(device.name)
    assert [(r["op"], r["inputs"], r["outputs"], r["engine"]) for r in rows] == [
        ("copy", ["any"], ["any"], "python"),
        ("add", ["f32", "f32"], ["f32"], "python"),
        ("add", ["i32", "i32"], ["i32"], "python"),
    ]


@pytest.mark.parametrize(
    ("op", "words", "rows"),
    [
        ("equal", "float32 bool", ["f32,f32->bool", "bool,bool->bool"]),
        ("take", "float32 any32", ["f32,i64->f32", "any32,i64->any32"]),
        ("where", "any", ["bool,any,any->any"]),
        ("full", "int32 any", ["->i32", "->any"]),
        ("sum", "float32 int64 int32", ["f32->f32", "i64->i64", "i32->i32"]),
        ("astype", "float32->int32 any->any", ["f32->i32", "any->any"]),
        ("argmax", "any", ["any->i64"]),
        ("bitwise_and", "any32", ["any32,any32->any32"]),
        ("concat", "float32", ["f32->f32"]),
    ],
)
def test_words_become_rows(op, words, rows):
    def brief(element):
        return element.brief if isinstance(element, dt.DType) else f"any{element or ''}"

    found = rows_of(op, words, add.options, "kernel Acme.run").operands
    n = len(found[0]) - 1
    assert [f"{','.join(brief(e) for e, _ in r[:n])}->{brief(r[n][0])}" for r in found] == rows


@pytest.mark.parametrize(
    ("op", "words", "parameters", "error"),
    [
        ("ad", "float32", "self, x1, x2, out", "there is no op 'ad', did you mean 'add'"),
        ("add", "", "self, x1, x2, out", r"\[add\] kernel Acme.run has no dtypes"),
        ("add", "floot", "self, x1, x2, out", "'floot' is no dtype: expected one of bool, .* any, or any with"),
        ("sqrt", "int32", "self, x, out", r"\[sqrt\] kernel Acme.run for int32 would never be called: .* float32"),
        ("bitwise_and", "float32", "self, x1, x2, out", "float32 is not supported: expected an integer or bool"),
        ("astype", "float32", "self, x, out, dtype", "expected two, as 'float32->float32'"),
        ("add", "float32->float32", "self, x1, x2, out", "has 1 inputs and 1 outputs: expected 2 and 1"),
        ("add", "float32", "self, x1, x2", r"called with \(self, x1, x2, out\) and takes \(self, x1, x2\)"),
        ("sum", "float32", "self, x, out", r"called with \(self, x, out, \*, axis, dtype, keepdims\)"),
    ],
)
def test_a_kernel_that_cannot_be_is_refused(op, words, parameters, error):
    run = kernel(op, words)(eval(f"lambda {parameters}: None"))
    with pytest.raises(BackendError, match=error) as raised:
        opened(run=run)
    assert isinstance(raised.value.__cause__, (ValueError, TypeError))


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ({"name": ""}, "Acme has no name"),
        ({"name": "No Name"}, "expected lower-case letters, digits and _"),
        ({"kind": "toaster"}, "kind is 'toaster': expected one of cpu"),
        ({"mapped": False}, r"expected alloc\(\) and copy_bytes\(\) of its own"),
        ({"alloc": kernel("add", "float32")(lambda self, a, b, out: None)}, "hides the device's alloc"),
        ({"__init__": lambda self, index: 1 / 0}, "opening it raised ZeroDivisionError: division by zero"),
    ],
)
def test_a_device_that_cannot_be_is_refused(members, error):
    with pytest.raises(BackendError, match=error):
        opened(**members)


def test_what_is_no_device_is_refused():
    with pytest.raises(TypeError, match="dict is no device: expected a class derived from"):
        dt.load_backend(dict)


def test_a_name_is_taken_once(now):
    with pytest.raises(BackendError, match=r"another Python class is open as 'changing', .*choose another name"):
        opened(name="changing")
    with pytest.raises(BackendError, match="'cpu' is loaded already, from "):
        dt.device("cpu") and opened(name="cpu")


def test_one_device_of_two_comes_up():
    def start(self, index):
        if index == 0:
            raise OSError("no such card")

    device = opened(count=classmethod(lambda cls: 2), __init__=start)
    assert device.index == 1


def test_a_subclass_replaces_kernels():
    class Doubled(Copies):
        name = "doubled"
        add = add

    class Tripled(Doubled):
        name = "tripled"

        @kernel("add", "float32")
        def add(self, x1, x2, out):
            out.numpy()[...] = 3 * (x1.numpy() + x2.numpy())

    x = floats(dt.load_backend(Tripled)[0], 3)
    assert (x + x).tolist() == [0, 6, 12]
    assert Doubled.add.op == "add" and callable(Doubled(0).add)


# ---- what a kernel sees ------------------------------------------------------------------------------------------


class Seeing(Copies):
    """Keeps the arguments of its last call."""

    name = "seeing"

    def see(self, *operands, **attributes):
        Seeing.last = SimpleNamespace(device=self, operands=operands, attributes=attributes)
        Seeing.last.numpy = [x and x.numpy().copy() for x in operands if not isinstance(x, list)]
        operands[-1].numpy()[...] = 7

    sum = kernel("sum", "float32")(see)
    multiply = kernel("multiply", "float32 bfloat16")(see)
    add = kernel("add", "float32", strided=True, scalars=True)(see)
    layer_norm = kernel("layer_norm", "float32")(see)
    concat = kernel("concat", "float32")(see)


@pytest.fixture
def seeing():
    return dt.load_backend(Seeing)[0]


def test_operands_and_attributes(seeing):
    x = floats(seeing, 2, 3, 4)
    assert dt.sum(x, axis=(-1, 0)).tolist() == [7, 7, 7]
    x_view, out = Seeing.last.operands
    assert (x_view.shape, x_view.strides, x_view.dtype, x_view.ndim) == ((2, 3, 4), (12, 4, 1), dt.float32, 3)
    assert (x_view.size, x_view.nbytes, x_view.offset, x_view.on_host) == (24, 96, 0, False)
    assert isinstance(x_view.buffer, HostMemory) and x_view.address % 64 == 0 and out.shape == (3,)
    assert Seeing.last.attributes == {"axis": (0, 2), "dtype": None, "keepdims": False}
    assert isinstance(Seeing.last.device, Seeing) and Seeing.last.device.index == 0
    np.testing.assert_array_equal(Seeing.last.numpy[0], x.numpy())


def test_strides_only_where_they_are_asked_for(seeing):
    x = floats(seeing, 4, 6)
    dt.multiply(x[:, ::2], x[:, 1::2])
    assert [v.strides for v in Seeing.last.operands] == [(1,)] * 3
    dt.add(x[:, ::2], x[0, 1::2])
    assert [(v.strides, v.offset) for v in Seeing.last.operands] == [((6, 2), 0), ((0, 2), 4), ((3, 1), 0)]
    np.testing.assert_array_equal(Seeing.last.numpy[1], np.broadcast_to(x.numpy()[0, 1::2], (4, 3)))


def test_scalars_only_where_they_are_asked_for(seeing):
    dt.multiply(floats(seeing, 3), 2.5)
    assert Seeing.last.operands[1].shape == (3,) and not Seeing.last.operands[1].on_host
    dt.add(floats(seeing, 3), 2.5)
    assert Seeing.last.operands[1].shape == () and Seeing.last.operands[1].on_host and Seeing.last.numpy[1] == 2.5


def test_optional_and_variadic_operands(seeing):
    dt.nn.layer_norm(floats(seeing, 2, 3), (3,))
    assert Seeing.last.operands[1:3] == (None, None)
    dt.concat([floats(seeing, 2), floats(seeing, 3)])
    arrays, out = Seeing.last.operands
    assert [v.shape for v in arrays] == [(2,), (3,)] and out.shape == (5,)
    assert Seeing.last.attributes == {"axis": 0}


def test_inputs_are_not_to_be_written_to(now):
    def multiply(x1, x2, out):
        with pytest.raises(ValueError, match="read-only"):
            x1.numpy()[...] = 0
        with pytest.raises(TypeError, match="read-only"):
            x1.bytes()[0] = 0
        out.bytes()[:] = x1.bytes()

    now.multiply = multiply
    x = floats(now.device, 3)
    assert (x * x).tolist() == [0, 1, 2]


def test_an_empty_input_has_no_buffer(seeing):
    assert dt.sum(floats(seeing, 0, 3), axis=0).tolist() == [7, 7, 7]
    assert Seeing.last.operands[0].buffer is None and Seeing.last.numpy[0].shape == (0, 3)


def test_bfloat16(seeing):
    x = dt.asarray([1.5, 2.0], dtype=dt.bfloat16, device=seeing)
    dt.multiply(x, x)
    got = Seeing.last.numpy[0]
    assert got.dtype.name == "bfloat16" and got.astype(float).tolist() == [1.5, 2.0]


def test_a_query_leaves_a_call_to_the_body(now):
    now.query = lambda x, out: x.size < 4 or "more than 3 elements"
    now.multiply = lambda x1, x2, out: np.multiply(x1.numpy(), x2.numpy(), out=out.numpy()) and None
    assert dt.square(floats(now.device, 3)).tolist() == [-1, -1, -1]
    now.multiply = lambda x1, x2, out: out.bytes().__setitem__(slice(None), x2.bytes())
    assert dt.square(floats(now.device, 4)).tolist() == [0, 1, 2, 3]
    now.query = lambda x, out: None
    with pytest.raises(RuntimeError, match=r"query of kernel Changing.square returned None: expected True, or why"):
        dt.square(floats(now.device, 3))


# ---- memory ------------------------------------------------------------------------------------------------------


class Handles(Copies):
    """Memory that is known by objects: the host never reaches it."""

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
        memoryview(x)
    assert Handles.alive > 0
    del x
    dt.memory.empty_cache(device)
    assert Handles.alive == 0


def test_memory_may_be_addresses():
    """As a driver's alloc returns them: the host adds to them and never looks."""
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
def test_memory_that_cannot_be_is_refused(now, alloc, error):
    now.alloc = alloc
    with pytest.raises(RuntimeError, match=r"\[memory\] " + error) as raised:
        floats(now.device, 3)
    assert raised.value.__cause__ is not None


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


def test_what_a_kernel_keeps_is_not_freed_under_it(now):
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
def test_what_ends_a_program_is_not_made_an_error(now, error):
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


def test_an_error_within_a_body_has_its_cause(now):
    now.multiply, now.query = raising(ValueError("no product")), lambda x, out: "the body does it"
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
