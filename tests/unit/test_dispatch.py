"""Calls from Python down to the kernel: scalars, in-place forms, decompositions, bad input, threads, fork,
memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import dovetail as dt
import numpy as np
import pytest

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def x() -> dt.Array:
    return dt.asarray(X)


# ---- scalars -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "scalar", "expected"),
    [
        ("float32", 2, "float32"), ("float32", 2.5, "float32"), ("float64", 2.5, "float64"),
        ("float16", 2.5, "float16"),
        ("int32", 2, "int32"), ("int32", 2.5, "float32"), ("uint8", True, "uint8"), ("bool", 2, "int64"),
        ("int64", np.float32(2.5), "float32"), ("int16", np.int64(3), "int16"),
    ],
)  # fmt: skip
def test_python_numbers_are_weak(dtype, scalar, expected):
    a = dt.ones((2,), dtype=dtype)
    assert (a + scalar).dtype == expected
    assert (scalar + a).dtype == expected
    np.testing.assert_allclose((a + scalar).numpy().astype(float), 1 + float(scalar))


def test_a_number_that_does_not_fit_is_refused():
    with pytest.raises(OverflowError, match="300 does not fit in int8"):
        dt.ones((2,), dtype="int8") + 300


# ---- in place ------------------------------------------------------------------------------------


def test_in_place_changes_one_value_only(x):
    alias, view, other = x, x[1], dt.copy(x)
    x += 1
    assert alias is x
    np.testing.assert_array_equal(x.numpy(), X + 1)
    np.testing.assert_array_equal(view.numpy(), X[1])
    np.testing.assert_array_equal(other.numpy(), X)


def test_in_place_reuses_unshared_memory():
    a = dt.asarray(X) * 1.0
    before = dt.memory.stats()["in_use"]
    for _ in range(5):
        a *= 2.0
    assert dt.memory.stats()["in_use"] == before
    np.testing.assert_array_equal(a.numpy(), X * 32)


@pytest.mark.parametrize(("change", "error"), [(1.5, TypeError), (np.ones((2, 3)), ValueError)])
def test_in_place_keeps_dtype_and_shape(change, error):
    a = dt.ones((3,), dtype="int32" if error is TypeError else "float64")
    b = change if error is TypeError else dt.asarray(change)
    with pytest.raises(error, match="in-place"):
        a += b
    np.testing.assert_array_equal(a.numpy(), np.ones(3))


# ---- decompositions ----------------------------------------------------------------------------------------------


def test_a_decomposition_is_traced_once_per_signature(x):
    calls = []
    from dovetail.schema import registry

    op = registry["logaddexp"]
    decomposition = op.decomposition
    op.decomposition = lambda *a: calls.append(1) or decomposition(*a)
    try:
        y = dt.asarray(np.ones((3, 1), np.float32))
        wide = dt.asarray(np.ones((5, 3, 4), np.float32))
        for _ in range(3):
            np.testing.assert_allclose(dt.logaddexp(x, y).numpy(), np.logaddexp(X, 1), rtol=1e-6)
        assert len(calls) <= 1  # another test of this process may have traced it
        dt.logaddexp(wide[:, :, ::2], y)
        assert len(calls) <= 2
    finally:
        op.decomposition = decomposition


def test_decompositions_run_float16_in_float32():
    a = np.linspace(-4, 4, 9, dtype=np.float16)
    got = dt.logaddexp(dt.asarray(a), 0.5).numpy()
    np.testing.assert_array_equal(got, np.logaddexp(a.astype(np.float32), np.float32(0.5)).astype(np.float16))


@pytest.mark.parametrize("dtype", [dt.float16, dt.bfloat16])
@pytest.mark.parametrize("op", [dt.add, dt.maximum, dt.hypot, dt.floor_divide])
def test_integers_beside_narrow_floats_are_as_narrow(op, dtype):
    x = dt.asarray(np.array([30273, 2049, 4099, 60001, 3], np.uint16))
    a = dt.astype(dt.asarray(np.array([-1.57, 1.0, 3.0, -9.0, 0.5], np.float32)), dtype)
    got, expected = op(a, x), op(a, dt.astype(x, dtype))
    assert got.dtype == expected.dtype == dtype
    np.testing.assert_array_equal(dt.astype(got, dt.float32).numpy(), dt.astype(expected, dt.float32).numpy())


# ---- bad input -----------------------------------------------------------------------------------


BAD = {
    "shapes": (lambda x: x @ x, ValueError, r"\[matmul\] shapes \(3, 4\) and \(3, 4\) do not match"),
    "broadcast": (lambda x: x + dt.ones((5,)), ValueError, r"\[add\]"),
    "axis": (lambda x: dt.sum(x, axis=2), ValueError, r"\[sum\].*axis"),
    "dtype": (lambda x: x & x, TypeError, r"\[bitwise_and\].*float32"),
    "mixed signs": (lambda x: dt.ones(2, dtype="uint64") + dt.ones(2, dtype="int8"), TypeError, r"\[add\].*astype"),
    "string": (
        lambda x: dt.add(x, "one"),
        TypeError,
        r"\[add\] expected dovetail arrays or Python numbers, got str",
    ),
    "no array": (lambda x: dt.add(1, 2), TypeError, r"\[add\] expected at least one array"),
    "keyword": (lambda x: dt.sum(x, axes=1), TypeError, r"'axes': expected sum\(x, \*, axis=None, dtype=None, kee"),
    "missing": (lambda x: dt.add(x), TypeError, r"\[add\] misses the argument 'x2': expected add\(x1, x2\)"),
    "positions": (
        lambda x: dt.zeros(2, 3),
        TypeError,
        r"1 positional argument, got 2: expected zeros\(shape, \*, ",
    ),
    "twice": (lambda x: dt.reshape(x, (4, 3), shape=(4, 3)), TypeError, "reshape"),
    "negative size": (lambda x: dt.zeros((2, -1)), ValueError, "negative"),
    "overflow": (lambda x: dt.zeros((1 << 40, 1 << 40)), ValueError, "too large"),
    "device": (lambda x: dt.zeros(2, device="cqu"), ValueError, "did you mean 'cpu"),
    "device type": (lambda x: dt.zeros(2, device=3), TypeError, "device"),
    "index": (lambda x: x[3], IndexError, r"index 3 is out of range for axis 0 of size 3"),
    "taken index": (lambda x: dt.take(x, dt.asarray([0, 7]), axis=0), IndexError, r"\[take\].*7"),
    "truth": (lambda x: bool(x), ValueError, "ambiguous"),
    "dtype name": (lambda x: dt.astype(x, "float31"), TypeError, "float31"),
    "mask dtype": (lambda x: dt.where(x, x, x), TypeError, r"\[where\]"),
    "complex": (
        lambda x: dt.maximum(dt.zeros(2, dtype="complex64"), 2),
        NotImplementedError,
        r"complex64.*; NumPy has complex",
    ),
    "from complex": (
        lambda x: dt.astype(dt.zeros(2, dtype="complex64"), "float32"),
        NotImplementedError,
        r"^\[astype\] float32 would lose the imaginary parts: expected x.real",
    ),
    "complex decomposition": (
        lambda x: dt.var(dt.zeros(2, dtype="complex64")),
        NotImplementedError,
        r"^\[var\] complex64 is not supported on cpu:0: .* no decomposition; NumPy has complex",
    ),
    "no string": (lambda x: dt.nn.gelu(x, approximate=None), TypeError, "approximate: expected a string, got None"),
    "no dtype": (lambda x: dt.astype(x, None), TypeError, "dtype: expected a dtype, got None"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_says_what_is_wrong_and_changes_nothing(x, name):
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call(x)
    np.testing.assert_array_equal((x + 1).numpy(), X + 1)


def test_out_of_memory_lists_memory_in_use_and_is_temporary():
    code = """
import dovetail as dt
a = dt.zeros((1 << 20,))
dt.memory.set_limit(64 << 20)
try:
    dt.zeros((1 << 26,))
except MemoryError as e:
    print(e)
dt.memory.set_limit(None)
print(dt.zeros((1 << 26,)).size)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "256 MiB" in out
    assert "limit" in out
    assert out.endswith("67108864\n")


# ---- threads, fork, interruption, memory ---------------------------------------------------------


def test_threads_share_arrays():
    big = dt.asarray(np.ones((256, 256), np.float32))
    errors = []

    def work(seed: int) -> None:
        try:
            for i in range(60):
                y = dt.logaddexp(big * seed, big) if i % 7 == 0 else big @ big + seed
                y += 1
                assert y[0, 0].item() > 0
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not errors
    assert not any(t.is_alive() for t in threads)


def test_fork_after_use():
    code = """
import os, warnings
import numpy as np, dovetail as dt
warnings.simplefilter("ignore")
x = dt.asarray(np.random.default_rng(0).random((512, 512), np.float32))
y = dt.nn.softmax(x @ x, axis=-1)
pid = os.fork()
z = dt.nn.softmax(x @ x, axis=-1)
same = bool(dt.all(z == y))
if pid == 0:
    os._exit(0 if same else 1)
assert same and os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_ctrl_c_stops_a_loop_and_the_next_call_works():
    code = """
import os, signal, threading, time
import numpy as np, dovetail as dt
x = dt.asarray(np.ones((300, 300), np.float32))
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        y = x @ x
except KeyboardInterrupt:
    assert (x @ x)[0, 0].item() == 300
    print("stopped")
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout == "stopped\n"
    assert signal.SIGINT


def test_memory_comes_back_after_many_operations():
    x = dt.asarray(X)

    def round_of_work() -> None:
        y = (x + 1) * x
        y += x
        y = dt.concat([y, x], axis=0)
        y[1] = 5
        dt.sum(dt.logaddexp(y, 1.0), axis=0)
        dt.take(y, dt.asarray([0, 2]), axis=0)
        y[:, ::2].numpy()

    round_of_work()
    dt.memory.empty_cache()
    before = dt.memory.stats()
    for _ in range(1250):  # eight operations each
        round_of_work()
    dt.memory.empty_cache()
    after = dt.memory.stats()
    assert after["in_use"] == before["in_use"]
    assert after["reserved"] == before["reserved"]


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads the resident set from /proc")
def test_no_python_object_leaks():
    code = """
import gc, sys, numpy as np, dovetail as dt
x = dt.asarray(np.ones((4, 4), np.float32))
def work(n):
    for _ in range(n):
        y = x + 1; y += x; y @ x; dt.sum(y, axis=1); y[0]; y.shape; dt.expm1(y); y.tolist()
def blocks():
    gc.collect(); return sys.getallocatedblocks()
work(200); before = blocks(); work(2000); print(blocks() - before)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert abs(int(out)) < 50
