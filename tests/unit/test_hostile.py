"""Python code that interferes with a call while the call reads its arguments, and arguments that no call may
accept. Many of these crashed the process once: run this file under the address sanitizer to find the rest.
"""

import copy
import ctypes
import gc
import pickle
import re
import subprocess
import sys
import textwrap

import dovetail as dt
import numpy as np
import pytest
from dovetail import _core

FAR = [10**6 + i for i in range(8)]


class Meddler:
    """An index that runs code first."""

    def __init__(self, value, deed):
        self.value, self.deed = value, deed

    def __index__(self):
        self.deed()
        return self.value


# ---- arguments that change while they are read -------------------------------------------------------------------


@pytest.mark.parametrize("function", ["sum", "flip", "squeeze", "expand_dims", "zeros", "empty", "reshape"])
def test_a_list_that_an_index_empties(function):
    sizes = []
    sizes[:] = [Meddler(1, sizes.clear), *FAR]
    x = dt.ones((1, 3))
    with pytest.raises(ValueError):
        if function in ("zeros", "empty"):
            getattr(dt, function)(sizes)
        elif function == "reshape":
            dt.reshape(x, sizes)
        else:
            getattr(dt, function)(x, axis=sizes)


@pytest.mark.parametrize("n", [5, 40])
@pytest.mark.parametrize("function", [dt.concat, dt.stack])
def test_arrays_that_an_index_releases(function, n):
    arrays = [dt.ones(3) * i for i in range(n)]
    expected = function(list(arrays), axis=0).tolist()
    assert function(arrays, axis=Meddler(0, arrays.clear)).tolist() == expected


@pytest.mark.parametrize(
    "key", [lambda e: e, lambda e: slice(e, None), lambda e: (slice(None), e), lambda e: (None, e, e)]
)
def test_an_index_that_replaces_the_array(key):
    x = dt.reshape(dt.arange(2_000_000, dtype="float32"), (1000, 2000))
    held = dt.asarray(x)  # shares x's memory, so that x += 1 moves on to other memory

    times = 0

    def replace():
        nonlocal x, times
        x += 1.0
        times += 1

    y = x[key(Meddler(5, replace))]
    expected = (held.numpy() + times)[key(5)]
    del x
    gc.collect()
    others = [dt.zeros((1000, 2000)) for _ in range(3)]
    assert np.array_equal(y.numpy(), expected)
    assert not others[0].numpy().any()


def test_lists_of_numbers_that_change():
    class Number(int):
        def __float__(self):
            outer.clear()
            gc.collect()
            return 1.0

    outer = [[Number(1)] + [float(i) for i in range(1000)], [0.5] * 1001]
    with pytest.raises(RuntimeError, match=r"\[asarray\] the list changed while it was read"):
        dt.asarray(outer)

    class Named:
        @property
        def name(self):
            numbers.clear()
            return "float32"

    numbers = [1.0] * 5
    with pytest.raises(RuntimeError, match=r"\[asarray\] the list changed while it was read"):
        dt.asarray(numbers, dtype=Named())


def test_an_error_of_the_callers_own_comes_through():
    def arrays():
        yield dt.ones(2)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        dt.concat(arrays())

    class Sizes:
        def __len__(self):
            return 2

        def __getitem__(self, i):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        dt.zeros(Sizes())
    with pytest.raises(KeyError, match="mine"):
        dt.sum(dt.ones((2, 2)), axis=Sizes())


# ---- what looks like an array ------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [[1.0, 2.0], (1.0, 2.0)], ids=lambda o: type(o).__name__)
def test_operators_with_what_looks_like_an_array(other):
    x = dt.ones(2)
    kind = type(other).__name__
    named = rf"\[{{}}\] expected dovetail arrays or Python numbers, got {kind}: dovetail.asarray\(\) makes an array"
    for op, function in {
        "add": lambda a, b: a + b,
        "subtract": lambda a, b: a - b,
        "divide": lambda a, b: a / b,
        "matmul": lambda a, b: a @ b,
        "less": lambda a, b: a < b,
        "equal": lambda a, b: a == b,
        "not_equal": lambda a, b: a != b,
    }.items():
        with pytest.raises(TypeError, match=named.format(op)):
            function(x, other)
        with pytest.raises(TypeError, match=named.format("greater" if op == "less" else op)):
            function(other, x)
    with pytest.raises(TypeError, match=named.format("add")):
        x += other
    assert x.tolist() == [1, 1]


def test_operators_leave_the_rest_to_others():
    class Other:
        __array_ufunc__ = None

        def __radd__(self, x):
            return "radd"

    x = dt.ones(2)
    assert x + Other() == "radd"
    assert [0, 1] * dt.asarray(2) == [0, 1, 0, 1]
    assert (x == None) is False and (x != "a") is True  # noqa: E711
    for other in (None, "a", object()):
        with pytest.raises(TypeError, match="unsupported operand"):
            x + other
        with pytest.raises(TypeError, match="not supported between"):
            assert x < other


def test_none_is_no_operand():
    x = dt.ones(2)
    for call in (lambda: dt.add(x, None), lambda: dt.add(None, x), lambda: dt.concat([x, None])):
        with pytest.raises(TypeError, match=r"\] expected an array, got None"):
            call()
    assert dt.clip(x, None, 0.5).tolist() == [0.5, 0.5]


# ---- text --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["\ud800", "cpu\0x", "\ud800cpu"])
def test_names_that_are_not_strings(name):
    for call in (lambda: dt.zeros(3, device=name), lambda: dt.device(name)):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError, match="is no dtype: expected one of"):
        dt.zeros(3, dtype=name)
    with pytest.raises(ValueError, match="there is no op"):
        _core.op_function(name)
    with pytest.raises(ValueError, match="there is no mode"):
        dt.fallback(name)
    assert dt.default_device() != name


def test_numbers_of_any_length():
    many = 10**5000  # repr() refuses it
    x = dt.ones((2, 3))
    for call in (
        lambda: dt.sum(x, axis=many),
        lambda: dt.zeros(many),
        lambda: dt.empty((2, many)),
        lambda: dt.full(2, -many),
        lambda: dt.full(2, 2**64),
    ):
        with pytest.raises(ValueError, match=r"\[.*\] .*does not fit in 64 bits"):
            call()


class Unfit:
    pass


@pytest.mark.parametrize(
    "case",
    [
        (lambda x: dt.device(3), TypeError, "[device] expected a device or its name, got 3: dovetail.devices()"),
        (lambda x: dt.zeros(2, device=3), TypeError, "[device] expected a device or its name, got 3"),
        (lambda x: dt.zeros(2, dtype="floot"), TypeError, "[zeros] 'floot' is no dtype: expected one of bool"),
        (lambda x: dt.empty(2, dtype="floot"), TypeError, "[empty] 'floot' is no dtype: expected one of bool"),
        (lambda x: dt.asarray(1, dtype="floot"), TypeError, "[asarray] 'floot' is no dtype: expected one of bool"),
        (lambda x: dt.result_type(x, "floot"), TypeError, "[dtype] 'floot' is no dtype"),
        (lambda x: dt.random.uniform(2, dtype="floot"), TypeError, "[dtype] 'floot' is no dtype"),
        (lambda x: x.astype("int8") + 300, OverflowError, "[add] 300 does not fit in int8: expected -128 to 127"),
        (lambda x: dt.asarray(300, dtype="int8"), OverflowError, "[asarray] 300 does not fit in int8"),
        (lambda x: x.__setitem__(0, 2**70), OverflowError, "[setitem] 1180591620717411303424 does not"),
        (lambda x: dt.zeros(1, dtype="float8_e4m3fn") < 500.0, OverflowError, "[less] 500.0 does not fit in"),
        (lambda x: x[3], IndexError, "[index] index 3 is out of range for axis 0 of size 3: expected -3 to 2"),
        (lambda x: x[..., ...], IndexError, "[index] an index can have only one Ellipsis"),
        (lambda x: x[0, 0], IndexError, "[index] too many indices: the array has 1 axes, but 2 were indexed"),
        (lambda x: x.__delitem__(0), TypeError, "[setitem] elements of an array cannot be deleted: select"),
        (lambda x: bool(x), ValueError, "[bool] the truth of an array of shape (3,) is ambiguous: use any()"),
        (lambda x: range(x), TypeError, "[item] only an array of one element can become a Python number"),
        (lambda x: range(dt.asarray(1.5)), TypeError, "[index] got an array of float32, expected an integer array"),
        (lambda x: len(dt.asarray(1)), TypeError, "[len] an array without axes has no length"),
        (lambda x: iter(dt.asarray(1)), TypeError, "[iter] an array without axes has no elements"),
        (lambda x: dt.random.uniform(2, low=x), TypeError, "[random.uniform] low: expected a number, got array("),
        (lambda x: dt.random.normal(2, std=x), TypeError, "[random.normal] std: expected a number, got array("),
        (lambda x: dt.random.normal(x), TypeError, "[random.normal] shape: expected an integer or a sequence"),
        (lambda x: dt.random.integers(x), TypeError, "[random.integers] high: expected an integer, got array("),
        (lambda x: dt.random.integers(Unfit()), TypeError, "[random.integers] high: expected an integer, got <"),
        (lambda x: dt.real([1.0]), TypeError, "[real] x: expected a dovetail array, got list: dovetail.asarray()"),
        (lambda x: dt.imag([1.0]), TypeError, "[imag] x: expected a dovetail array, got list: dovetail.asarray()"),
        (lambda x: dt.broadcast_shapes(5), TypeError, "[broadcast_shapes] expected tuples of integers, got 5"),
        (lambda x: dt.add(x, np.datetime64("2026-01-01")), TypeError, "[add] expected dovetail arrays or Python"),
        (lambda x: dt.empty(x), TypeError, "[empty] shape: expected an integer or a sequence of integers"),
        (lambda x: dt.zeros(x), TypeError, "[zeros] shape: expected an integer or a sequence of integers"),
    ],
)  # fmt: skip
def test_messages_name_the_function_and_the_cure(case):
    call, error, message = case
    with pytest.raises(error, match="^" + re.escape(message)):
        call(dt.arange(3))


# ---- objects without a value -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [dt.Array, dt.Op, dt.Device, dt.DType, _core.Program])
def test_only_the_runtime_makes_these(kind):
    for make in (kind, lambda: kind.__new__(kind), lambda: object.__new__(kind)):
        with pytest.raises(TypeError, match=r"cannot create|is not safe|is not called"):
            make()


def test_streams_and_events_have_a_value_from_the_first():
    for kind in (dt.Event, dt.Stream):
        with pytest.raises(TypeError, match="is not safe"):
            kind.__new__(kind)
    assert dt.Event(timing=True).query() and dt.Stream(priority=0).query()
    with pytest.raises(TypeError):
        dt.Stream(unknown=1)
    s, e = dt.Stream(), dt.Event()
    for call in (
        lambda: s.wait_stream(3),
        lambda: s.wait_event(None),
        lambda: s.record_event(3),
        lambda: e.record("a"),
        lambda: e.wait(e),
        lambda: e.elapsed_ns(None),
    ):
        with pytest.raises(TypeError, match=r"\[\w+\] expected a dovetail.(Stream|Event), got"):
            call()


def test_a_tracer_that_outlives_its_decomposition():
    from dovetail.schema import op, registry
    from dovetail.schema.declare import Tensor

    kept = []

    def keeps(x: Tensor) -> Tensor:
        """-x"""
        kept.append(x)
        return -x

    function = dt.register_op(op(name="hostile.keeps", shape="same", dtype="same", reference=np.negative)(keeps))
    assert function(dt.ones(2)).tolist() == [-1, -1]
    with pytest.raises(RuntimeError, match="after the trace has ended"):
        kept[0] + kept[0]
    del registry["hostile.keeps"]


# ---- copies and pickles ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_of_singletons(protocol):
    for one in (dt.default_device(), dt.float32, dt.bool, dt.bfloat16, dt.add, dt.nn.softmax, dt.linalg.outer):
        assert pickle.loads(pickle.dumps(one, protocol)) is one
        assert copy.copy(one) is one and copy.deepcopy([one])[0] is one
    for none in (dt.Stream(), dt.Event()):
        with pytest.raises(TypeError, match="cannot pickle"):
            pickle.dumps(none, protocol)


# ---- DLPack ------------------------------------------------------------------------------------------------------


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int * 2), ("ndim", ctypes.c_int), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]  # fmt: skip


class Producer:
    """Arguments of a capsule made by hand."""

    def __init__(self, name=b"dltensor", **wrong):
        self.numbers = (ctypes.c_float * 16)(*range(16))
        self.shape = (ctypes.c_int64 * 17)(*wrong.pop("shape", (4,)))
        fields = {
            "data": ctypes.addressof(self.numbers),
            "device": (1, 0),
            "ndim": 1,
            "code": 2,
            "bits": 32,
            "lanes": 1,
        }
        self.tensor = DLTensor(**{**fields, "shape": ctypes.addressof(self.shape), **wrong})
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.name = name  # the capsule has no copy of it
        self.capsule = new(ctypes.addressof(self.tensor), self.name, None)

    def __dlpack__(self, **wanted):
        return self.capsule

    def __dlpack_device__(self):
        return self.tensor.device[0], self.tensor.device[1]


@pytest.mark.parametrize("copy", [None, True, False])
@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"data": None}, BufferError, "4 elements without memory"),
        ({"shape": (0,), "ndim": -1}, BufferError, "-1 axes"),
        ({"ndim": 17}, BufferError, "17 axes"),
        ({"shape": (-1,)}, ValueError, "negative size"),
        ({"shape": (2**62,)}, ValueError, "too large"),
        ({"code": 99}, BufferError, "code 99"),
        ({"lanes": 2}, BufferError, "2 lanes"),
        ({"name": b"else"}, TypeError, "one named 'else'"),
    ],
)
def test_invalid_capsules(wrong, error, message, copy):
    if not dt.default_device().properties["host_mapped"]:
        pytest.skip("the default device's memory is not the host's")
    with pytest.raises(error, match=message):
        dt.from_dlpack(Producer(**wrong), copy=copy)


def test_a_capsule_without_a_shape():
    producer = Producer()
    producer.tensor.shape = None
    with pytest.raises(BufferError, match="1 axes without a shape"):
        dt.from_dlpack(producer)
    producer.tensor.ndim = 0
    assert dt.from_dlpack(producer).item() == 0


# ---- keys --------------------------------------------------------------------------------------------------------


def test_numpy_arrays_without_axes_are_integers():
    x = dt.reshape(dt.arange(6), (2, 3))
    assert x[np.array(1)].tolist() == [3, 4, 5]
    assert x[:, np.array(-1)].tolist() == [2, 5]
    assert x[[0, 1], np.array(2)].tolist() == [2, 5]
    x[np.array(0)] = 7
    assert x.tolist() == [[7, 7, 7], [3, 4, 5]]


def test_steps_beyond_any_size():
    x = dt.arange(5)
    for step in (2**62, 2**63 - 1, 2**63, 2**70):
        assert x[::step].tolist() == [0] and x[4::step].tolist() == [4]
        assert x[::-step].tolist() == [4]


# ---- memory ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bytes", [0, -1, True, 1.5, "a", 2**64])
def test_invalid_limits(bytes):
    with pytest.raises(ValueError, match=r"\[memory.set_limit\] expected 1 to 2\^64 - 1 bytes or None"):
        dt.memory.set_limit(bytes)


# ---- the process -------------------------------------------------------------------------------------------------


def run(program):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120, check=False
    )


def test_the_interpreter_ends_while_threads_compute():
    ended = run("""
        import threading, time
        import dovetail as dt

        x = dt.ones(1000)

        class AtTheEnd:
            def __del__(self):
                print(float(dt.sum(self.x)), flush=True)

        last = AtTheEnd()
        last.x, last.itself = x, last  # a cycle: freed at the interpreter's end

        def work():
            while True:
                dt.ones((300, 300)) @ dt.ones((300, 300))

        for _ in range(4):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.5)
    """)
    assert ended.returncode == 0, ended.stderr


def test_subinterpreters_are_refused():
    ended = run("""
        import sys

        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            import _interpreters as interpreters
        import dovetail as dt

        dt.ones(1)
        other = interpreters.create()
        program = "try:\\n import dovetail\\nexcept ImportError as e:\\n print(e, flush=True)"
        getattr(interpreters, "run_string", getattr(interpreters, "exec", None))(other, program)
        interpreters.destroy(other)
        print(dt.ones(2).tolist())
    """)
    assert ended.returncode == 0, ended.stderr
    assert "subinterpreter" in ended.stdout and "[1.0, 1.0]" in ended.stdout


def test_the_package_is_imported_again():
    ended = run("""
        import importlib, sys
        import dovetail as dt

        x = dt.ones(2)
        importlib.reload(dt)
        print((x + dt.ones(2)).tolist())
        for left in ("dovetail._core", ""):
            for name in [m for m in sys.modules if m.startswith("dovetail") and m != left]:
                del sys.modules[name]
            import dovetail as again

            print((x + again.ones(2)).tolist(), x + x)
    """)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("[2.0, 2.0]") == 3
