"""Devices written in Python: the author's API, and the arguments of a kernel."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import dovetail as dt
import numpy as np
import pytest
from dovetail._kernel_rows import rows_of
from dovetail.entry_points import BackendError
from dovetail.prototype import HostMemory, PythonDevice, kernel
from python_devices import Copies, add, floats, opened


@pytest.fixture(autouse=True)
def no_fallback():
    before = dt.fallback("error")
    yield
    dt.fallback(before)


# ---- the author's API -----------------------------------------------------------------------------------------


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


def test_a_kernel_of_one_dtype_of_a_raw_operand_is_reported():
    class Acme(PythonDevice):
        name = "raw_operand"

        @kernel("dequantize", "int8,float32,int64->float32")
        def dequantize(self, x, scale, zero_point, out, *, axis):
            out.numpy()[...] = (x.numpy() - zero_point.numpy()) * scale.numpy()

    (device,) = dt.load_backend(Acme)
    support = dt._core.support(device.name, "dequantize")
    assert support["f32"] == ("native", False) and support["f64"] == ("decomposition", False)
    x = dt.asarray([-3, 100], dtype=dt.int8, device=device)
    assert dt.dequantize(x, 0.5, 4).tolist() == [-3.5, 48.0]


def test_a_fused_float32_kernel_serves_narrow_floats_too():
    """By astype, the kernel, astype; the decomposition needs many kernels that this device lacks."""
    calls = []

    class Acme(PythonDevice):
        name = "fused"

        @kernel("softmax", "float32")
        def softmax(self, x, out, *, axis):
            calls.append(x.dtype.name)
            e = np.exp(x.numpy() - x.numpy().max(axis, keepdims=True))
            out.numpy()[...] = e / e.sum(axis, keepdims=True)

        @kernel("astype", "float32->float16 float16->float32 float32->bfloat16 bfloat16->float32")
        def astype(self, x, out, *, dtype):
            out.numpy()[...] = x.numpy()

    (device,) = dt.load_backend(Acme)
    values = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)
    for dtype in ("float16", "bfloat16"):
        x = dt.asarray(dt.asarray(values, dtype=dtype, device="cpu").numpy(), device=device)
        wide = np.exp(x.numpy().astype(np.float32))
        expected = wide / wide.sum(-1, keepdims=True)
        got = dt.nn.softmax(x)
        assert got.dtype == dtype
        np.testing.assert_allclose(got.numpy().astype(np.float32), expected, rtol=2**-8)
        assert dt._core.support(device.name, "softmax")[x.dtype.brief] == ("f32", False)
    assert calls == ["float32", "float32"]
    with dt.nn.sdpa_engine("math"):  # concerns other ops
        dt.nn.softmax(x)
    assert len(calls) == 3


def test_ops_shows_no_decomposition_that_cannot_run():
    class Acme(PythonDevice):
        name = "few_kernels"

        @kernel("copy", "any32")
        def copy(self, x, out):
            out.numpy()[...] = x.numpy()

        @kernel("multiply", "float32")
        def multiply(self, x1, x2, out):
            out.numpy()[...] = x1.numpy() * x2.numpy()

    from dovetail.cli.ops import support

    (device,) = dt.load_backend(Acme)
    rows = {row["op"]: row["dtypes"] for row in support(device.name)}
    assert rows["multiply"]["f32"] == "native" and rows["multiply"]["f64"] == "none"
    assert (
        rows["square"]["f32"] == "decomposition"
        and rows["square"]["f64"] == "none"
        and rows["square"]["f16"] == "none"
    )
    assert rows["softmax"]["f32"] == "none" and rows["softmax"]["f64"] == "none"
    x = dt.ones(3, dtype="float32", device=device) if rows["ones"]["f32"] != "none" else None
    assert x is None or dt.square(x).tolist() == [1, 1, 1]


def test_properties_of_a_device():
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
def test_signatures_become_rows(op, words, rows):
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
        ("add", "float32 any5", "self, x1, x2, out", "'any5' is no dtype"),
        ("add", "float32->float32", "self, x1, x2, out", "has 1 inputs and 1 outputs: expected 2 and 1"),
        ("add", "float32", "self, x1, x2", r"called with \(self, x1, x2, out\) and takes \(self, x1, x2\)"),
        ("sum", "float32", "self, x, out", r"called with \(self, x, out, \*, axis, dtype, keepdims\)"),
    ],
)
def test_an_invalid_kernel_is_refused(op, words, parameters, error):
    run = kernel(op, words)(eval(f"lambda {parameters}: None"))
    with pytest.raises(BackendError, match=error) as raised:
        opened(run=run)
    assert isinstance(raised.value.__cause__, (ValueError, TypeError))


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ({"name": ""}, "Acme has no name"),
        ({"name": "No Name"}, "expected at most 63 lower-case letters, digits and _"),
        ({"kind": "toaster"}, "kind is 'toaster': expected one of cpu"),
        ({"version": 3}, "version is 3: expected a text"),
        ({"product": None}, "product is None: expected a text"),
        ({"arch": b"x"}, "arch is b'x': expected a text"),
        ({"memory": -1}, "memory is -1: expected a number of bytes, 0 where it is unknown"),
        ({"memory": 2**64}, "memory is 18446744073709551616: expected a number of bytes"),
        ({"bytes_per_second": "fast"}, "bytes_per_second is 'fast': expected a number, or 0"),
        ({"count": classmethod(lambda cls: -1)}, r"count\(\) returned -1: expected how many devices there are"),
        ({"count": classmethod(lambda cls: sys.exit(3))}, "opening it raised SystemExit: 3"),
        ({"mapped": False}, r"expected alloc\(\) and copy_bytes\(\) of its own"),
        ({"alloc": kernel("add", "float32")(lambda self, a, b, out: None)}, "hides the device's alloc"),
        ({"__init__": lambda self, index: 1 / 0}, "opening it raised ZeroDivisionError: division by zero"),
    ],
)
def test_an_invalid_device_is_refused(members, error):
    with pytest.raises(BackendError, match=error):
        opened(**members)


def test_objects_that_are_no_device_are_refused():
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


# ---- the arguments of a kernel --------------------------------------------------------------------------------


class Seeing(Copies):
    """Keep the arguments of its last call."""

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


def test_a_query_leaves_a_call_to_the_decomposition(now):
    now.query = lambda x, out: x.size < 4 or "more than 3 elements"
    now.multiply = lambda x1, x2, out: np.multiply(x1.numpy(), x2.numpy(), out=out.numpy()) and None
    assert dt.square(floats(now.device, 3)).tolist() == [-1, -1, -1]
    now.multiply = lambda x1, x2, out: out.bytes().__setitem__(slice(None), x2.bytes())
    assert dt.square(floats(now.device, 4)).tolist() == [0, 1, 2, 3]
    now.query = lambda x, out: None
    with pytest.raises(RuntimeError, match=r"query of kernel Changing.square returned None: expected True, or why"):
        dt.square(floats(now.device, 3))
