"""dovetail.compile: arguments, guards, sizes, results."""

import enum
import threading
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from compiled_calls import array, traces

State = namedtuple("State", "a b")


pytestmark = pytest.mark.usefixtures("home")


def same(a, b):
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    assert a.dtype == b.dtype


# ---- arguments and guards ----------------------------------------------------------------------------------------


def test_a_compiled_function_gives_what_the_function_gives():
    def f(x, y, scale=2.0):
        return dt.exp(x) * scale + y

    g = dt.compile(f)
    x, y = array(1, 2, 3), array(4, 5, 6)
    for _ in range(3):
        same(g(x, y), f(x, y))
    same(g(y=y, x=x, scale=0.5), f(x, y, 0.5))
    assert traces(g) == 1
    assert g.__name__ == "f"
    assert g.__wrapped__ is f


def test_decorator_with_options():
    @dt.compile(dynamic=False, numerics="eager")
    def f(x):
        return x + 1

    same(f(array(1)), array(2))
    with pytest.raises(ValueError, match="numerics"):
        dt.compile(f, numerics="fast")
    with pytest.raises(TypeError, match="async or a generator"):

        @dt.compile
        def g(x):
            yield x


def test_sizes_change_without_another_trace():
    @dt.compile
    def f(x, w):
        n = x.shape[0]
        return dt.reshape(dt.matmul(x, w), (n * w.shape[1],)), n

    rng = np.random.default_rng(0)
    for n, k, m in [(3, 4, 5), (1, 4, 5), (5, 1, 2), (0, 3, 3), (7, 2, 1)]:
        a, b = rng.normal(size=(n, k)).astype("f4"), rng.normal(size=(k, m)).astype("f4")
        out, size = f(dt.asarray(a), dt.asarray(b))
        same(out, dt.reshape(dt.matmul(dt.asarray(a), dt.asarray(b)), (n * m,)))
        assert size == n
        assert type(size) is int
    assert traces(f) == 1


def test_a_size_that_python_looks_at_is_a_guard():
    @dt.compile
    def f(x):
        return x * 2 if x.shape[0] > 3 else x * 3

    same(f(array(1, 2)), array(3, 6))
    same(f(array(1, 2, 3, 4)), array(2, 4, 6, 8))
    same(f(array(1)), array(3))
    same(f(array(1, 1, 1, 1, 1)), array(2, 2, 2, 2, 2))
    assert traces(f) == 2
    assert "x.shape[0]" in f._state.reasons[0]


def test_dynamic_false_traces_for_every_size():
    @dt.compile(dynamic=False)
    def f(x):
        assert isinstance(x.shape[0], int)
        return x + x.shape[0]

    same(f(array(1, 2)), array(3, 4))
    same(f(array(1, 2, 3)), array(4, 5, 6))
    assert traces(f) == 2


def test_dtype_rank_and_device_are_guards(home):
    @dt.compile
    def f(x):
        return x + 1

    for x in (array(1), array(1, dtype="int32"), dt.asarray([[1.0]]), dt.asarray(1.0)):
        same(f(x), x + 1)
    assert traces(f) == 4
    other = dt.asarray([1.0], device="sim:1")
    assert f(other).device == other.device
    assert traces(f) == 5


def test_an_int_is_a_value_first_and_then_a_number():
    @dt.compile
    def f(x, n):
        return x * n

    x = array(1, 2)
    for n in (3, 3, 4, 5, -6, 0):
        same(f(x, n), x * n)
    assert traces(f) == 2
    same(f(array(1, 2, dtype="int64"), 2**40), array(2**40, 2**41, dtype="int64"))


def test_an_int_as_size_and_index():
    @dt.compile
    def f(x, n):
        return x[:n], dt.zeros(n), x[n]

    x = dt.asarray(np.arange(9.0))
    for n in (2, 3, 5, 8):
        a, b, c = f(x, n)
        same(a, x[:n])
        assert b.shape == (n,)
        same(c, x[n])
    assert traces(f) == 2


def test_a_float_is_never_a_guard():
    @dt.compile
    def f(x, lr):
        return x - lr * x

    x = dt.asarray([1.0, 2.0], dtype="bfloat16")
    for lr in (0.1, 0.25, float("inf"), -0.0, 1e-40):
        same(f(x, lr), x - lr * x)
    assert f(x, 0.5).dtype == dt.bfloat16
    assert traces(f) == 1


def test_a_float_that_python_looks_at_is_a_guard():
    @dt.compile
    def f(x, p):
        return x * p if p > 0 else x

    same(f(array(2), 0.5), array(1))
    same(f(array(2), -1.0), array(2))
    same(f(array(2), 0.25), array(0.5))
    assert traces(f) == 2


def test_strings_bools_none_and_enums_are_values():
    class Mode(enum.Enum):
        fast = 1
        slow = 2

    @dt.compile
    def f(x, how, flag, maybe, mode):
        y = dt.exp(x) if how == "exp" else dt.sin(x)
        y = -y if flag else y
        return (y if maybe is None else y + maybe) * mode.value

    x = array(1)
    calls = [("exp", True, None, Mode.fast), ("sin", True, None, Mode.slow), ("exp", False, x, Mode.fast)]
    for call in calls * 2:
        same(f(x, *call), f.__wrapped__(x, *call))
    assert traces(f) == 3


def test_true_and_one_are_different():
    @dt.compile
    def f(x, k):
        return x + k if k is True else x * k

    same(f(array(3), True), array(4))
    same(f(array(3), 1), array(3))
    same(f(array(3), 1.0), array(3))


def test_numbers_of_numpy():
    @dt.compile
    def f(x, a, n):
        return x * a + n

    for a, n in [(np.float32(0.5), np.int64(3)), (np.float64(2.0), np.int64(4)), (np.float32(1.5), np.int64(5))]:
        same(f(array(2, 4), a, n), array(2, 4) * a + n)
    assert traces(f) == 1


def test_nests_of_arguments_and_results():
    @dataclass
    class Pair:
        x: Any
        y: Any
        name: str = "pair"

    @dt.compile
    def f(params, state, pair, *rest, **named):
        total = params["a"][0] + params["b"] + state.a * state.b + pair.x - pair.y
        for r in rest:
            total = total + r
        for name in named:
            total = total * named[name]
        return {"total": total, "pair": Pair(total, pair.x), "list": [total, (None, "x", 2)]}, State(total, 1.5)

    def args(k):
        a = array(1.0 * k, 2)
        return ({"a": [a], "b": a + 1}, State(a, a), Pair(a, a), a, a), {"u": a, "v": 2.0}

    for k in (1, 2, 3):
        given, named = args(k)
        got, state = f(*given, **named)
        wanted, state_wanted = f.__wrapped__(*given, **named)
        same(got["total"], wanted["total"])
        assert type(got["pair"]) is Pair
        same(got["pair"].x, wanted["pair"].x)
        assert got["list"][1] == (None, "x", 2)
        assert got["list"][0] is got["total"]
        assert type(state) is State
        same(state.a, state_wanted.a)
        assert state.b == 1.5
    assert traces(f) == 1
    with pytest.raises(TypeError, match="missing"):
        f()


def test_keys_and_types_of_containers_are_guards():
    @dt.compile
    def f(d):
        return sum(k * float(len(str(key))) for key, k in (d.items() if isinstance(d, dict) else enumerate(d)))

    x = array(1)
    for given, wanted in [({"a": x}, 1), ({"bcd": x}, 3), ([x], 1), ((x, x), 2), ({"a": x, "b": x}, 2)] * 2:
        same(f(given), array(wanted))
    assert traces(f) == 5


def test_an_argument_that_is_returned_is_the_callers_array():
    @dt.compile
    def f(x, y):
        return y, x

    x, y = array(1), array(2)
    assert f(x, y)[0] is y
    assert f(x, y)[1] is x


def test_one_array_twice_is_one():
    @dt.compile
    def f(x, y):
        x += y
        return x + y

    x = array(1)
    same(f(x, x), array(4))
    same(x, array(2))
    same(f(array(1), array(5)), array(11))


def test_changes_of_containers_are_refused():
    @dt.compile
    def f(cache, x):
        cache["k"] = x

    @dt.compile
    def g(items, x):
        items.append(x)

    with pytest.raises(TypeError, match="argument cache"):
        f({}, array(1))
    with pytest.raises(TypeError, match="argument items"):
        g([], array(1))


def test_what_is_no_argument():
    f = dt.compile(lambda x: x + 1)
    with pytest.raises(TypeError, match="NumPy array"):
        f(np.zeros(3))


def test_eight_traces_then_eager():
    @dt.compile
    def f(x, how):
        return x + len(how)

    x = array(1)
    for i in range(8):
        f(x, "a" * i)
    with pytest.warns(UserWarning, match="traced 8 times.*argument how is 'aaaaaaaa', and was 'aaaaaaa'"):
        same(f(x, "a" * 8), x + 8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(f(x, "a" * 9), x + 9)
        same(f(x, "aaa"), x + 3)
    assert traces(f) == 8
    assert "2 eager calls" in dt.compile_report()


# ---- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "what", [bool, int, float, lambda x: x.item(), np.asarray, lambda x: x[x > 0], lambda x: [1, 2][x]]
)
def test_reading_elements_is_an_error_with_the_line(what):
    f = dt.compile(lambda x: what(x) and x)
    with pytest.raises(TypeError, match=r"\[compile\].*test_compile.py:\d+"):
        f(array(1, dtype="int32"))


def test_a_rule_that_fails_raises_as_eager_does():
    @dt.compile
    def f(x, y):
        return x + y

    f(array(1, 2), array(1, 2))
    with pytest.raises(ValueError, match="add") as eager:
        f.__wrapped__(array(1, 2), array(1, 2, 3))
    with pytest.raises(ValueError, match="add") as compiled:
        f(array(1, 2), array(1, 2, 3))
    assert str(compiled.value) == str(eager.value)
    same(f(array(1, 2), array(3, 4)), array(4, 6))


# ---- ordinary Python ---------------------------------------------------------------------------------------------


def test_exceptions_context_managers_and_generators():
    entered = []

    @contextmanager
    def scope(name):
        entered.append(name)
        try:
            yield
        finally:
            entered.append(f"end {name}")

    @dt.compile
    def f(x, limit=None):
        try:
            if limit is not None:
                raise LookupError("limit")
            y = x + 1
        except LookupError as why:
            y = x - len(str(why))
        finally:
            y = y * 2
        with scope("a"):
            parts = (y * k for k in range(3))
            return sum(parts, start=dt.zeros_like(x))

    same(f(array(1, 2)), array(12, 18))
    same(f(array(1, 2), "x"), array(-24, -18))
    assert entered == ["a", "end a"] * 2

    @dt.compile
    def g(x):
        raise KeyError("no such key")

    for _ in range(2):
        with pytest.raises(KeyError, match="no such key"):
            g(array(1))


def test_a_users_mapping():
    class Mapping(MutableMapping):
        def __init__(self, **items):
            self._items = dict(items)

        def __getitem__(self, key):
            return self._items[key]

        def __setitem__(self, key, value):
            self._items[key] = value

        def __delitem__(self, key):
            del self._items[key]

        def __iter__(self):
            return iter(self._items)

        def __len__(self):
            return len(self._items)

    @dt.compile
    def f(m, x):
        return x * m["w"] + m.get("b", 0)

    m = Mapping(w=array(2), b=array(1))
    same(f(m, array(3)), array(7))
    m["w"] = array(5)
    same(f(m, array(3)), array(16))
    m["b"][...] = 0
    same(f(m, array(3)), array(15))
    assert traces(f) == 1
    ordered = OrderedDict(w=array(2))
    same(f(ordered, array(3)), array(6))


def test_functions_of_numpy():
    def f(x, y):
        return np.exp(x) @ np.concatenate([y, y]).T + np.sqrt(x.shape[1])

    x, y = dt.asarray([[1.0, 2.0]], dtype="float32"), dt.asarray([[3.0, 4.0]], dtype="float32")
    g = dt.compile(f)
    same(g(x, y), f(x, y))
    same(g(x, y), f(x, y))


def test_within_another_trace_it_runs_inline():
    inner = dt.compile(lambda x: x * 2)
    outer = dt.compile(lambda x: inner(x) + 1)
    same(outer(array(1)), array(3))
    assert traces(inner) == 0
    program = dt.export(lambda x: inner(x) + 1, array(1))
    same(program(array(2)), array(5))


def test_programs():
    def f(x, n):
        return {"y": x * 2 + n}

    program = dt.export(f, array(1, 2), array(3))
    g = dt.compile(program)
    same(g(array(1, 2, 3), array(1))["y"], array(3, 5, 7))
    h = dt.compile(lambda x: program(x, x)["y"] + 1)
    same(h(array(1, 2)), array(4, 7))
    assert traces(g) == traces(h) == 1


def test_off():
    runs = []

    @dt.compile
    def f(x):
        runs.append(1)
        return x + 1

    f(array(1)), f(array(1))
    assert len(runs) == 1
    with dt.compile.off():
        same(f(array(1)), array(2))
    assert len(runs) == 2
    f(array(1))
    assert len(runs) == 2


def test_control_flow_in_a_compiled_function():
    @dt.compile
    def f(x):
        return dt.cond(dt.sum(x) > 0, lambda: x * 2, lambda: x - 1)

    same(f(array(1, 2)), array(2, 4))
    same(f(array(-1, -2)), array(-2, -3))


# ---- threads -----------------------------------------------------------------------------------------------------


def test_threads_trace_once_and_get_their_own_results():
    @dt.compile
    def f(x, k):
        return dt.sum(dt.exp(x) * k)

    x = dt.asarray(np.linspace(0, 1, 1000, dtype="f4"))
    wanted = {(n, k): float(dt.sum(dt.exp(x[:n]) * k)) for n in range(1, 40) for k in (0.5, 2.0)}
    wrong, begin = [], threading.Barrier(8)

    def work(seed):
        begin.wait()
        rng = np.random.default_rng(seed)
        for _ in range(200):
            n, k = int(rng.integers(1, 40)), float(rng.choice([0.5, 2.0]))
            if float(f(x[:n], k)) != wanted[n, k]:
                wrong.append((n, k))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert traces(f) == 1  # while one thread traces, others run it eagerly


# ---- what it says ------------------------------------------------------------------------------------------------


def test_warmup_traces_and_runs_nothing():
    ran = []

    @dt.compile
    def f(x, y):
        ran.append(1)
        return dt.matmul(x, y)

    f.warmup(dt.spec((2, 3)), dt.spec((3, 4)))
    assert traces(f) == 1
    f.warmup(dt.spec((None, 3)), dt.spec((3, 4)))
    for n in (2, 5):
        same(f(dt.ones((n, 3)), dt.ones((3, 4))), dt.full((n, 4), 3.0))
    assert len(ran) == 1


def test_explain_graph_and_report():
    w = array(1, 2)

    @dt.compile
    def f(x):
        return dt.exp(x) * w

    text = f.explain(array(3, 4))
    assert "captured: w, as" in text
    assert "exp(x)" in text
    assert "2 nodes" in text
    program = f.graph(array(3, 4))
    assert isinstance(program, dt.Program)
    same(program(array(0, 0)), array(1, 2))
    assert "f: 1 trace" in dt.compile_report().replace(f._state.name, "f")


def test_a_trace_may_wait_for_a_thread_that_calls_the_function():
    results = []

    def double(x):
        if threading.current_thread() is main:
            other = threading.Thread(target=lambda: results.append(f(dt.ones(3))))
            other.start()
            other.join()
        return x * 2

    main, f = threading.current_thread(), dt.compile(double)
    results.append(f(dt.ones(2)))
    assert [r.tolist() for r in results] == [[2, 2, 2], [2, 2]]
