"""dovetail.compile: bindings that are dropped, kernels that change, memory that is given back."""

import gc
import os
import subprocess
import sys
import threading
import weakref

import dovetail as dt
import numpy as np
import pytest
from dovetail import prototype


def array(*values, dtype="float32", device="sim:0"):
    return dt.asarray(list(values), dtype=dtype, device=device)


def same(a, b):
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_import_takes_nothing_of_compile():
    code = "import sys, dovetail; print([m for m in sys.modules if m.startswith('dovetail._compile')])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("value", ["0", "1", "may be"])
def test_the_environment_turns_it_off(value):
    code = """
import dovetail as dt
runs = []
f = dt.compile(lambda x: runs.append(1) or x + 1)
for _ in range(3):
    assert (f(dt.asarray([1.0], device="sim:0")).tolist()) == [2.0]
print(len(runs))
"""
    env = os.environ | {"DOVETAIL_COMPILE": value}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert out.stdout.strip() == ("3" if value == "0" else "1")
    assert ("DOVETAIL_COMPILE is ignored: expected 0 or 1, got 'may be'" in out.stderr) == (value == "may be")


def test_off_is_of_the_thread():
    runs = []
    f = dt.compile(lambda x: runs.append(1) or x + 1)
    x = array(1)
    f(x)
    with dt.compile.off():
        f(x)
        other = threading.Thread(target=f, args=(x,))
        other.start()
        other.join()
        with dt.compile.off():
            f(x)
        f(x)
    f(x)
    assert len(runs) == 4


def test_kernels_that_change_are_chosen_again():
    """The same binding must not go on with kernels of before."""

    class Counting(prototype.PythonDevice):
        name = "counting"
        calls: list = []  # noqa: RUF012

        @prototype.kernel("add", "float32")
        def add(self, x, y, out):
            self.calls.append("add")
            out.numpy()[...] = x.numpy() + y.numpy()

    device = dt.load_backend(Counting)[0]
    f = dt.compile(lambda x: x + x)
    x = array(1, 2, device=device)
    before = dt.fallback()
    try:
        dt.fallback("allow")
        g = dt.compile(lambda x: dt.exp(x + x))
        same(g(x), dt.exp(x + x))
        dt.fallback("error")  # plans are made anew: there is no kernel of exp
        with pytest.raises(NotImplementedError):
            g(x)
        dt.fallback("allow")
        same(g(x), dt.exp(x + x))
    finally:
        dt.fallback(before)
    same(f(x), array(2, 4))
    assert "add" in Counting.calls


def test_many_sizes_from_many_threads():
    """More bindings than are kept, and threads that use those that are being dropped."""
    f = dt.compile(lambda x, k: dt.sum(x * k))
    wrong = []

    def work(seed):
        for n in range(1, 1200):
            n = (n * 7 + seed * 131) % 1200 + 1
            if float(f(ones[:n], 2.0)) != 2.0 * n:
                wrong.append(n)

    ones = dt.ones((1200,), device="cpu:0")
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert len(f._state.traces) == 1


def test_compiled_functions_and_what_they_hold_are_freed():
    class Held:
        pass

    def make():
        held = Held()
        held.w = array(1)
        held.f = dt.compile(lambda x: x + held.w)  # a cycle
        held.f(array(1))
        held.f(array(1))
        return weakref.ref(held), weakref.ref(held.f)

    held, f = make()
    gc.collect()
    assert held() is None
    assert f() is None


def test_an_object_that_dies_takes_its_programs_with_it():
    class Model:
        def __init__(self):
            self.w = array(1)

        @dt.compile
        def f(self, x):
            return x + self.w

    for k in range(20):
        model = Model()
        model.w[...] = k
        same(model.f(array(1)), array(1 + k))
        del model
        gc.collect()
    assert not Model.f._state.methods


def test_a_recursive_compiled_function():
    @dt.compile
    def f(x, n):
        return x if n == 0 else f(x * 2, n - 1)

    same(f(array(1), 3), array(8))
    same(f(array(1), 2), array(4))


def test_static_and_class_methods():
    class Model:
        w = 3.0

        @staticmethod
        @dt.compile
        def double(x):
            return x * 2

        @classmethod
        @dt.compile
        def scaled(cls, x):
            return x * cls.w

    same(Model.double(array(2)), array(4))
    same(Model().double(array(3)), array(6))
    same(Model.scaled(array(2)), array(6))


def test_a_failed_trace_leaves_nothing_behind():
    @dt.compile
    def f(x, bad):
        if bad:
            raise RuntimeError("not now")
        return x + 1

    with pytest.raises(RuntimeError, match="not now"):
        f(array(1), True)
    same(dt.add(array(1), array(1)), array(2))  # no recorder is left on the thread
    same(f(array(1), False), array(2))
    assert len(f._state.traces) == 1


def test_floats_take_no_binding_of_their_own():
    """They are constants of one run: what follows from them and from sizes, too."""

    @dt.compile
    def f(x, a, b):
        return (x * a + x.shape[0] / b, a * 2), dt.full_like(x, 3)

    for n in (3, 5, 3):
        for a, b in [(0.5, 2.0), (-1.0, 4.0), (float("inf"), 0.5)]:
            x = array(*range(n))
            (y, double), _ = f(x, a, b)
            same(y, x * a + n / b)
            assert double == a * 2
    for x in (array(1), array(1, 2, 3)):  # of a size that has no binding yet, and of one that has
        with pytest.raises(ZeroDivisionError):
            f(x, 1.0, 0.0)
    g = dt.compile(lambda x, k: x + dt.full_like(x, k))  # an attribute follows from it
    for k in (1.0, 2.0, 1.0):
        same(g(array(1), k), array(1 + k))
    assert len(f._state.traces) == len(g._state.traces) == 1


def test_threads_that_donate_what_others_read():
    """A call gets the array's value, or the error that it is gone."""
    take = dt.compile(lambda x, k: x * k, donate="x")
    read = dt.compile(lambda x, k: dt.sum(x * k))
    failed = []

    def work(arrays):
        for n, x in arrays:
            try:
                if float(read(x, float(n))) != n * n:
                    failed.append(n)
                take(x, 1.0)
            except RuntimeError as why:
                if "donated" not in str(why):
                    failed.append(why)
            except Exception as why:
                failed.append(why)

    for _ in range(20):
        arrays = [(n, dt.ones((n,), device="sim:0")) for n in range(1, 40)]
        threads = [threading.Thread(target=work, args=(arrays,)) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not failed
