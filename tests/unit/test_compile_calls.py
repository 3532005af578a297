"""dovetail.compile: which program a call runs, what runs eagerly, and errors."""

import signal
import time
import warnings
from contextlib import suppress

import dovetail as dt
import numpy as np
import pytest


class Name(str):
    pass


def array(*values, dtype="float32"):
    return dt.asarray(list(values), dtype=dtype)


def traces(f) -> int:
    return len(f._state.traces)


def result(f, *args):
    try:
        out = f(*args)
    except Exception as e:
        return type(e), str(e)
    return out.dtype, out.device, np.asarray(out).tolist()


def agrees(f, *calls):
    """The compiled function gives and raises in each call what f does. Returns the number of traces."""
    g = dt.compile(f)
    for args in calls:
        assert result(g, *args) == result(f, *args), args
    return traces(g)


x = array(1, 2, 3, 4, 5, 6)

# ---- arguments ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.bool_(True), np.bool_(True)),
        (np.str_("ab"), np.str_("ab")),
        (Name("ab"), Name("ab")),
        (b"ab", b"a" + bytes([98])),
        (range(1, 7, 2), range(1, 7, 2)),
        (slice(1, -1), slice(1, -1)),
        (frozenset({"a", 2}), frozenset({"a", 2})),
        (complex(1, -0.0), complex(1, -0.0)),
        (np.complex64(2j), np.complex64(2j)),
        (2**80, 2**80),
        (np.uint64(2**63 + 1), np.uint64(2**63 + 1)),
        (dt.float16, dt.float16),
        (dt.device("cpu:0"), dt.device("cpu:0")),
    ],
)
def test_equal_values_take_one_trace(a, b):
    g = dt.compile(lambda x, v: x + len(repr(v)))
    for v in (a, b, a):
        assert result(g, x, v) == result(g.__wrapped__, x, v)
    assert traces(g) == 1


def test_values_of_other_types_or_bits_do_not_match():
    values = [
        1,
        True,
        1.0,
        np.int64(1),
        np.bool_(True),
        "1",
        b"1",
        1 + 0j,
        np.float32(1),
        None,
        Name("1"),
        np.str_("1"),
    ]
    values += [range(0), range(1, 1), slice(0, 1), slice(False, 1), frozenset({1}), frozenset({True}), -0.0, 0.0]
    for v in values:
        for other in values:
            f = dt.compile(lambda x, v: x + sum(repr(v).encode()))  # eight traces are the most
            for given in (v, other):
                assert result(f, x, given) == result(f.__wrapped__, x, given), (v, other)


def test_attributes_of_a_string_are_seen():
    f = dt.compile(lambda x, name: x * getattr(name, "scale", 1))
    a, b = Name("a"), Name("a")
    b.scale = 3
    for name in (a, b, a, Name("a")):
        assert result(f, x, name) == result(f.__wrapped__, x, name)


def test_numbers_of_numpy_are_symbolic_until_python_looks_at_them():
    values = [np.float32(0.1), np.float64(0.1), np.float16(0.1), np.float32(0.3)]
    assert agrees(lambda x, v: x * v, *[(x, v) for v in values]) == 1
    assert agrees(lambda x, n: x[:n], *[(x, n) for n in (np.int64(2), np.int8(3), np.int64(1))]) == 1
    y = array(1, 2, dtype="float64")
    agrees(lambda x, v: y * (v * 3) + (v == 0.1) + float(v), *[(x, v) for v in values])
    agrees(lambda x, n: x * int(n + n), (x, np.int8(100)), (x, np.int16(100)), (x, np.int8(3)), (x, np.int64(100)))


def test_lists_none_and_types_of_leaves_are_guards():
    def f(x, d):
        total = x
        for k in d["k"] if isinstance(d, dict) else d:
            total = total * 2 if k is None else total + (10 if isinstance(k, bool) else 0) + k
        return total

    one, n = [x], np.float32(2)
    calls = [one, [x, x], [None], one, [1], [True], [1.0], [n], {"k": [None]}, (None,), [2], [x + 1], [None, None]]
    for order in (calls, calls[::-1]):
        for k in range(len(order) - 6):
            assert agrees(f, *[(x, d) for d in order[k : k + 7] * 2]) <= 8


# ---- which program -----------------------------------------------------------------------------------------------


def test_explain_and_warmup_see_which_arrays_are_one():
    f = dt.compile(lambda a, b: a + b)
    f(x, x)
    text = f.explain(x, x + 1)
    assert "was the array of a" in text
    assert "b: (6,)" in text
    assert traces(f) == 2
    f.explain(x, x)
    f(x, x + 1)
    assert traces(f) == 2
    g = dt.compile(lambda a, b: a + b)
    s = dt.spec((6,))
    g.warmup(s, s)  # two arrays
    g(x, x + 1)
    assert traces(g) == 1


def test_explain_and_warmup_see_guards_on_sizes():
    f = dt.compile(lambda a: a * 2 if a.shape[0] > 3 else a * 3)
    f.warmup(dt.spec((2,)))
    f.warmup(dt.spec((5,)))
    assert traces(f) == 2
    f.warmup(dt.spec((6,)))
    f(x), f(x[:2])
    assert traces(f) == 2
    assert "a.0 <= 3" in f.explain(x[:2])
    assert "3 < a.0" in f.explain(x)


def test_explain_shows_the_numbers_of_the_call():
    f = dt.compile(lambda a, n: a[:n] * n)
    f(x, 2), f(x, 3)
    assert "float32[4]" in f.explain(x, 4)
    assert traces(f) == 2


# ---- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "values"),
    [
        (lambda x, k: x[k], (1, 2, 9, -7, 3)),
        (lambda x, k: x[::k], (1, 2, 0, -1, -2)),
        (lambda x, k: x.reshape((k, -1)), (3, 2, 4, -1, 0)),
        (lambda x, k: dt.sum(x, axis=k), (0, -1, 3, -5)),
        (lambda x, k: dt.zeros(k), (3, 4, -1, 2**63)),
        (lambda x, k: x.astype("int8") * k, (3, 4, 1000, 5)),
        (lambda x, k: x.astype("int32") ** k, (1, -1.0, 2, -1, -3, 3, 0.5)),
        (lambda x, k: dt.broadcast_to(x, (k, 6)), (2, 3, -1)),
    ],
)
def test_errors_are_those_of_eager_calls(f, values):
    agrees(f, *[(x, k) for k in values], *[(x, k) for k in values])


def test_the_function_handles_errors_of_later_calls():
    def index(x, k):
        try:
            return x[k] * 2
        except IndexError:
            return -x

    def add(x, y):
        try:
            return x + y
        except ValueError as e:
            return x * len(str(e))

    assert agrees(index, *[(x, k) for k in (1, 2, 9, 3, 9, 9, -8, 4)]) == 4
    assert agrees(add, *[(x[:a], x[:b]) for a, b in ((2, 2), (3, 3), (2, 3), (4, 4), (2, 3))]) == 2


def or_negative(compute):
    """The function of arrays that returns compute(*them), or -x where that raises."""

    def f(x, *others):
        try:
            return compute(x, *others)
        except (ArithmeticError, IndexError, TypeError, ValueError):
            return -x

    return f


def scan_over(x, y):
    return dt.scan(lambda c, both: (c + both[0] * both[1], both[0]), array(0)[0], (x, y))[1]


@pytest.mark.parametrize(
    "compute",
    [
        lambda x, y: x + y,
        lambda x, y: dt.stack([x, y])[1],
        lambda x, y: dt.add(x, dt.sin(y)),
        lambda x, y: x[y.shape[0] - 2] + x,
        lambda x, y: dt.reshape(x, (y.shape[0] - 1, -1)),
        lambda x, y: dt.squeeze(x, axis=0) + y * 2,
        lambda x, y: dt.ones((y.shape[0] - 2,)) + x,
        lambda x, y: dt.cond(dt.all(x == x), lambda: x + y, lambda: x),
        lambda x, y: dt.cond(dt.all(x == x), lambda: x, lambda: y + 1),
        lambda x, y: dt.while_loop(lambda v: v[0] < 1, lambda v: (v[0] + 1, v[1] * y), (array(0)[0], x))[1],
        scan_over,
        dt.export(lambda a, b: a + b, dt.spec(("n",)), dt.spec(("n",))),
    ],
)
def test_the_function_handles_errors_of_the_first_call(compute):
    f = or_negative(compute)
    calls = [(x[:a], x[:b]) for a, b in ((3, 2), (3, 3), (1, 5), (3, 2), (4, 4), (4, 2), (6, 4))]
    agrees(f, *calls)


def test_the_function_handles_errors_about_what_it_captures_and_numbers():
    class Layer:
        pass

    layer = Layer()
    f = or_negative(lambda x: x + layer.w)
    g = dt.compile(f)
    for n in (2, 3, 2, 4, 3):
        layer.w = x[:n]
        assert result(g, x[:3]) == result(f, x[:3])
    assert agrees(or_negative(lambda x, n: x + dt.ones((n,))), *[(x, n) for n in (3, 6, 3, 5, 6)]) == 3
    bytes_ = array(1, 2, dtype="uint8")
    agrees(or_negative(lambda x, n: x + n), *[(bytes_, n) for n in (300, 1, 2, 300, 400, 3, -1)])

    def draws(x, y):
        try:
            return x + y
        except ValueError:
            return x * dt.random.uniform()

    states = []
    for h in (draws, dt.compile(draws)):
        dt.random.seed(3)
        states.append([(result(h, x[:a], x[:b]), dt.random.default_generator().state) for a, b in ((3, 2), (3, 3))])
    assert states[0] == states[1]


def test_errors_about_dtypes_leave_no_guard():
    def f(x, n):
        try:
            return x & 3
        except TypeError:
            return x * 2

    assert agrees(f, *[(x[:n], n) for n in (2, 3, 4)]) == 2


def test_an_error_advances_random_numbers_as_eagerly():
    def f(x, bad):
        y = dt.random.uniform((x.shape[0],)) + dt.random.normal((3, 5))[0, 0]
        if bad:
            raise KeyError("bad")
        return x * y

    states = []
    for g in (f, dt.compile(f)):
        dt.random.seed(7)
        for bad in (False, True, False, True):
            with suppress(KeyError):
                g(x, bad)
            states.append(dt.random.default_generator().state)
    assert states[:4] == states[4:]
    g = dt.compile(f)
    with pytest.raises(KeyError):
        g.warmup(x, True)
    assert dt.random.default_generator().state == states[-1]


def test_what_is_no_function_or_option():
    for wrong in (None, 3, "f"):
        with pytest.raises(TypeError, match=r"\[compile\] expected a function, got"):
            dt.compile(wrong)
    with pytest.raises(TypeError, match=r"\[compile\] there is no option 'dynamc': expected donate"):
        dt.compile(dynamc=True)
    for options in ({"donate": 3}, {"donate": [1]}, {"dynamic": 3}, {"dynamic": "n"}):
        with pytest.raises(TypeError, match=rf"\[compile\] {next(iter(options))}: got"):
            dt.compile(lambda n: n, **options)


def test_messages_speak_of_compile():
    f = dt.compile(lambda a: a * 2 if a.shape[0] > 3 else a * 3)
    f(x), f(x[:2])
    assert "export" not in "".join(f._state.reasons)
    program = dt.export(f.__wrapped__, x)
    with pytest.raises(ValueError, match="export the function for such sizes too"):
        program(x[:2])


def test_the_reason_compares_with_the_nearest_trace():
    def f(x, n, scale, flag=False):
        return x * (n if n < 4 else 2 * n) * (3 if scale > 1 else 1) * (2 if flag else 1)

    g = dt.compile(f)
    g(x, 1, 0.5), g(x, 5, 0.5), g(x, 2, 0.5), g(x, 7, 0.5), g(x, 7, 2.0), g(x, 3, 2.0)
    assert [reason.split(",")[0] for reason in g._state.reasons] == [
        "argument n is 5", "it was made for 4 <= n (here 2)", "it was made for scale (here 2) <= 1",
        "it was made for 4 <= n (here 3)",
    ]  # fmt: skip
    g(x, 8, 2.0, True)
    assert g._state.reasons[-1] == "argument flag is True, and was False"
    h = dt.compile(lambda x, way, n: x * len(way) * len(n))
    h(x, "a", "one"), h(x, "bc", "three"), h(x, "bc", "one")
    assert h._state.reasons[-1] == "argument n is 'one', and was 'three'"
    h(x, "a", "four")
    assert h._state.reasons[-1] == "argument n is 'four', and was 'one'"


def test_explain_has_the_reasons_after_the_last_trace():
    f = dt.compile(lambda x, n: x * len(n))
    with pytest.warns(UserWarning, match="traced 8 times"):
        for k in range(10):
            f(x, "n" * k)
    assert f.explain(x, "m").count("traced again: argument n is") == 7


@pytest.mark.parametrize("options", [{}, {"dynamic": False}])
def test_arguments_that_hold_themselves_or_are_too_deep(options):
    own, deep = [x], [x]
    own.append(own)
    for _ in range(5000):
        deep = [deep]
    f = dt.compile(lambda y: x, **options)
    for wrong in (own, deep):
        for call in (f, f.explain, f.warmup):
            with pytest.raises(ValueError, match=r"^\[compile\] arguments: got a container that holds itself"):
                call(wrong)
    f(x)


# ---- the default device ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "f",
    [
        lambda x: dt.zeros(3),
        lambda x: x + dt.zeros(3),
        lambda x: dt.asarray([1.0, 2.0]),
        lambda x: dt.arange(x.shape[0]) * 2,
        lambda x: dt.cond(dt.sum(x) > 0, lambda: x, lambda: x + dt.ones(3)),
        lambda x: dt.random.uniform((2,)) * 0,
    ],
)
def test_arrays_that_a_function_makes_are_on_the_default_device(f):
    away, home = dt.ones(3, device="sim:1"), dt.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert agrees(f, (away,), (home,), (away,)) == 1
    g = dt.compile(f)
    with pytest.warns(
        UserWarning, match=r"runs eagerly.*test_compile_calls.py:\d+ makes an array on .*device=x.device"
    ):
        result(g, away)
    assert "runs eagerly" in g.explain(away)
    with pytest.raises(RuntimeError, match="runs eagerly"):
        g.warmup(away)


def test_what_runs_eagerly_is_traced_once_for_all_numbers_and_not_for_ever():
    seen = []
    f = dt.compile(lambda x, n, name: (seen.append(dt.compile), dt.zeros((3,)) + n)[1])
    away = dt.ones(3, device="sim:1")
    with pytest.warns(UserWarning, match="runs eagerly"):
        for n in range(6):
            assert f(away, n, "a").tolist() == [n] * 3
    assert len(seen) == 7
    for n in range(20):
        assert f(away, n, "a" * n).tolist() == [n] * 3
    assert len(f._state.eager) == 8 and len(seen) == 7 + 20 + 7


def test_the_default_device_is_a_guard_where_arrays_are_made():
    f = dt.compile(lambda x: (x + dt.zeros(3, device=x.device), dt.zeros(2).device))
    before = dt.default_device()
    try:
        for name in ("sim:0", "sim:1", "sim:0"):
            dt.set_default_device(name)
            assert f(dt.ones(3, device=name))[1].name == name
        assert traces(f) == 2
        dt.set_default_device("sim:1")
        with pytest.warns(UserWarning, match="runs eagerly"):
            assert f(dt.ones(3, device="sim:0"))[1].name == "sim:1"
    finally:
        dt.set_default_device(before)


def test_signals_are_handled_between_two_nodes():
    """Ctrl-C, for which a timer stands here, ends a program without a loop before its end."""

    class Interrupted(Exception):
        pass

    def interrupt(*_):
        raise Interrupted

    def step(x):
        return dt.tanh(x @ x * 1e-3)

    def cpu_time(run, x) -> float:
        begin = time.process_time()
        with suppress(Interrupted):
            run(x)
        return time.process_time() - begin

    def steps(x):
        for _ in range(100):
            x = step(x)
        return x

    n, begin = 128, time.process_time()
    while time.process_time() - begin < 0.01:  # until a hundred of them take a second, whatever else runs
        n, begin = 2 * n, time.process_time()
        step(dt.ones((n, n), device="cpu:0"))
    x = dt.ones((n, n), device="cpu:0")
    compiled = dt.compile(steps)
    compiled(dt.ones((2, 2), device="cpu:0"))
    whole = cpu_time(compiled, x)
    before = signal.signal(signal.SIGPROF, interrupt)
    try:
        for run in (compiled, dt.export(steps, x)):
            signal.setitimer(signal.ITIMER_PROF, whole / 10)
            assert cpu_time(run, x) < whole / 2
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
