"""dovetail.compile: arrays that a function captures, writes, donated memory, random numbers."""

import gc
import re
import weakref
from types import MappingProxyType, SimpleNamespace

import dovetail as dt
import numpy as np
import pytest
from compiled_calls import array, same, traces

W = None  # set by a test


pytestmark = pytest.mark.usefixtures("home")


# ---- captured ----------------------------------------------------------------------------------------------------


class Linear:
    def __init__(self, *weights):
        self.w = array(*weights)
        self.parts = [SimpleNamespace(b=array(0.5))]

    @dt.compile
    def __call__(self, x):
        return x * self.w + self.parts[0].b

    @dt.compile
    def scaled(self, x, k=1.0):
        return x * self.w * k


def test_a_method_has_programs_for_each_object():
    a, b = Linear(1, 2), Linear(3, 4)
    x = array(1, 1)
    for _ in range(2):
        same(a.scaled(x), array(1, 2))
        same(b.scaled(x, 2.0), array(6, 8))
        same(a(x), array(1.5, 2.5))
    state = type(a).scaled._state
    assert len(state.methods) == 2
    assert all(traces(compiled) == 1 for _, compiled in state.methods.values())
    gone = weakref.ref(a)
    del a
    gc.collect()
    assert gone() is None
    assert len(state.methods) == 1


def test_what_a_method_says_is_of_its_object():
    a = Linear(1, 2)
    a.scaled.warmup(dt.spec((2,)), 2.0)
    ((_, compiled),) = [m for m in type(a).scaled._state.methods.values() if m[0]() is a]
    assert traces(compiled) == 1
    same(a.scaled(array(1, 1), 3.0), array(3, 6))
    assert traces(compiled) == 1
    text = a.scaled.explain(array(1, 1))
    assert "captured: self.w, as" in text
    assert re.search(r"multiply\(v\d, k\)", text)
    same(a.scaled.graph(array(1, 1))(array(2, 2)), array(2, 4))
    assert traces(compiled) == 1


def test_writes_and_new_arrays_of_an_object_are_seen():
    a = Linear(1, 2)
    x = array(1, 1)
    same(a(x), array(1.5, 2.5))
    a.w[0] = 5
    same(a(x), array(5.5, 2.5))
    a.w = array(7, 7)
    same(a(x), array(7.5, 7.5))
    a.parts[0].b = array(0)
    same(a(x), array(7, 7))
    a.parts[0] = SimpleNamespace(b=array(1))
    same(a(x), array(8, 8))
    a.w = array(1)  # of another size
    same(a(x), array(2, 2))
    ((_, compiled),) = type(a).__call__._state.methods.values()
    assert traces(compiled) == 1
    a.w = array(1, 1, dtype="int32")
    same(a(x), array(2, 2))
    assert traces(compiled) == 2


def test_closures_and_globals():
    global W
    W, c, table = array(2), array(10), {"k": [array(100)]}

    @dt.compile
    def f(x):
        return x + W + c + table["k"][0]

    same(f(array(1)), array(113))
    W = array(3)
    same(f(array(1)), array(114))
    c = array(20)
    same(f(array(1)), array(124))
    table["k"] = [array(0)]
    same(f(array(1)), array(24))
    assert traces(f) == 1
    del table["k"]
    with pytest.raises(KeyError):
        f(array(1))


def test_helpers_capture_too():
    w = array(2)

    def helper(x):
        return x * w

    @dt.compile
    def f(x):
        return helper(x) + 1

    same(f(array(3)), array(7))
    w = array(4)
    same(f(array(3)), array(13))
    assert traces(f) == 1


def test_two_ways_to_one_array():
    one = SimpleNamespace(w=array(1))
    model = SimpleNamespace(a=one, b=one)

    @dt.compile
    def f(x):
        return x + model.b.w

    same(f(array(1)), array(2))
    model.b = SimpleNamespace(w=array(5))
    same(f(array(1)), array(6))
    shared = array(2)
    model.a, model.b = SimpleNamespace(w=shared), SimpleNamespace(w=shared)
    same(f(array(1)), array(3))
    model.b.w = array(7)
    same(f(array(1)), array(8))


def test_an_array_without_a_path_is_kept():
    box = MappingProxyType({"w": array(3)})  # whose dict cannot be seen

    @dt.compile
    def f(x):
        return x + box["w"]

    same(f(array(1)), array(4))
    box["w"][...] = 5
    same(f(array(1)), array(6))
    assert "no path leads to it" in f.explain(array(1))

    @dt.compile
    def g(x):
        y = box["w"]
        y += x
        return y

    with pytest.raises(TypeError, match="no path"):
        g(array(1))


def test_elements_of_captured_arrays_are_not_read():
    flag = array(1)

    @dt.compile
    def f(x):
        return x * 2 if flag else x

    with pytest.raises(TypeError, match="needs the elements"):
        f(array(1))
    g = dt.compile(lambda x: x + flag.numpy())
    with pytest.raises(TypeError, match="needs the elements"):
        g(array(1))


def test_arrays_made_of_numbers_are_constants():
    @dt.compile
    def f(x):
        table = dt.asarray([1.0, 2.0], dtype=x.dtype)
        n = int(dt.asarray(3))
        table[0] = 5
        table += x
        return table * n

    for _ in range(3):
        same(f(array(1, 1)), array(18, 9))


def test_values_left_behind_are_refused():
    box = SimpleNamespace()

    @dt.compile
    def f(x):
        box.last = x + 1
        return x

    with pytest.raises(TypeError, match=r"traced value in box\.last"):
        f(array(1))


def test_a_captured_array_on_another_device_is_refused(home):
    w = dt.asarray([1.0], device="sim:1")
    with pytest.raises(TypeError, match="sim:1"):
        dt.compile(lambda x: x + w)(array(1))
    f = dt.compile(lambda: w + 1)
    assert f().device == w.device


# ---- writes ------------------------------------------------------------------------------------------------------


def test_writes_reach_the_callers_arrays():
    @dt.compile
    def f(x, state):
        x += 1
        state["m"][1:] = x[0]
        state["m"] *= 2
        return dt.sum(x)

    for _ in range(3):
        x, m = array(1, 2), array(1, 2, 3)
        view = x[:1]
        y, n = array(1, 2), array(1, 2, 3)
        same(f(x, {"m": m}), f.__wrapped__(y, {"m": n}))
        same(x, y)
        same(m, n)
        same(view, array(1))
    assert traces(f) == 1


def test_writes_reach_captured_arrays():
    state = SimpleNamespace(count=array(0), history=[array(0, 0)])

    @dt.compile
    def step(x):
        state.count += 1
        state.history[0][...] = state.history[0] + x * state.count
        return state.count

    count = state.count
    for k in (1, 2, 3):
        assert step(array(1, 2)) is count
        same(state.count, array(k))
    same(state.history[0], array(6, 12))
    assert traces(step) == 1


def test_writes_where_arguments_are_one_array():
    @dt.compile
    def f(x, y):
        x += 1
        return x + y

    a = array(1)
    same(f(a, array(5)), array(7))
    same(f(a, a), array(6))
    same(a, array(3))
    same(f(a, array(0)), array(4))


def test_an_error_leaves_arguments_as_they_were():
    @dt.compile
    def f(x, y):
        x += 1
        return x + y

    x = array(1, 2)
    f(x, array(1, 1))
    with pytest.raises(ValueError, match="add"):
        f(x, array(1, 2, 3))
    same(x, array(2, 3))


# ---- donated memory ----------------------------------------------------------------------------------------------


USES = (
    lambda x: x + 1,
    lambda x: x.numpy(),
    lambda x: x[0],
    lambda x: x.dtype,
    lambda x: x.device,
    lambda x: x.item(),
    bool,
    dt.sum,
    dt.asarray,
    lambda x: x.__setitem__(0, 1),
    lambda x: x.__iadd__(1),
    lambda x: x @ x,
    lambda x: x.__dlpack__(),
)


def test_donated_arrays_are_gone():
    @dt.compile(donate=("cache",))
    def f(cache, x):
        return {"k": cache["k"] + x}

    cache = {"k": array(1, 2)}
    first = cache["k"]
    gone = r"donated to .*f at .*test_compile_effects.py:\d+ and is gone"
    for k in (1, 2, 3):
        old, cache = cache, f(cache, array(1, 1))
        same(cache["k"], array(1 + k, 2 + k))
        for use in USES:
            with pytest.raises(RuntimeError, match=gone):
                use(old["k"])
        with pytest.raises(RuntimeError, match=gone):
            f(old, array(1, 1))
        assert re.search(gone, repr(old))
    assert first.shape == (2,)
    with pytest.raises(ValueError, match="no argument 'z'"):
        dt.compile(lambda x: x, donate="z")


def test_a_donated_array_that_is_written_lives_on():
    @dt.compile(donate="x")
    def f(x):
        x += 1

    x = array(1)
    f(x), f(x)
    same(x, array(3))


def test_donated_memory_is_used():
    @dt.compile(donate="x")
    def f(x):
        return dt.exp(x) * 2 + 1

    x = dt.zeros((1 << 20,))
    f(x)
    x = dt.zeros((1 << 20,))
    before = dt.memory.stats()
    dt.memory.reset_peak()
    x = f(x)
    dt.synchronize()
    after = dt.memory.stats()
    assert after["in_use"] == before["in_use"]
    assert after["peak"] < before["in_use"] + (8 << 20)


# ---- random numbers ----------------------------------------------------------------------------------------------


def test_draws_are_those_of_eager_calls():
    rng = dt.random.Generator(7)

    def f(x, rng):
        a = dt.random.normal(x.shape)
        b = dt.random.uniform((3, 1)) + rng.uniform(x.shape)
        return a, b[0] + rng.uniform()

    g = dt.compile(f)
    for n in (1, 5, 4, 9):
        x = dt.zeros((n,))
        dt.random.seed(n)
        rng.seed(n)
        wanted = f(x, rng), f(x, rng)
        state = dt.random.default_generator().state, rng.state
        dt.random.seed(n)
        rng.seed(n)
        got = g(x, rng), g(x, rng)
        for a, b in zip(wanted, got):
            same(a[0], b[0])
            same(a[1], b[1])
        assert state == (dt.random.default_generator().state, rng.state)
    assert traces(g) == 1


def test_a_generator_of_an_object_is_found_again():
    model = SimpleNamespace(rng=dt.random.Generator(1))
    f = dt.compile(lambda x: x + model.rng.uniform(x.shape))
    first = f(dt.zeros(3))
    model.rng = dt.random.Generator(1)
    same(f(dt.zeros(3)), first)
    assert model.rng.state == (1, 1)
    assert traces(f) == 2


def test_generators_of_the_function_itself():
    f = dt.compile(lambda x: x + dt.random.Generator(3).uniform(x.shape))
    same(f(dt.zeros(3)), f(dt.zeros(3)))
    with pytest.raises(TypeError, match="state of a generator"):
        dt.compile(lambda x: dt.random.seed(1))(array(1))


def test_generators_that_draw_in_turns():
    def draw(g, q):
        return g.uniform((3,)), q.uniform((3,)), g.uniform((3,))

    compiled = dt.compile(draw)
    for run in range(3):
        eager, ours = ([dt.random.Generator(seed + run) for seed in (1, 7)] for _ in range(2))
        for a, b in zip(compiled(*ours), draw(*eager), strict=True):
            same(a, b)
        same(ours[0].uniform((3,)), eager[0].uniform((3,)))


def test_a_donated_array_that_is_returned_stays():
    f = dt.compile(lambda c, use: c + 1 if use else c, donate="c")
    c = f(array(1, 2), True)
    assert f(c, False) is c
    same(c + 1, array(3, 4))


def test_an_argument_that_is_also_captured():
    w = array(100, 200)
    f = dt.compile(lambda a: a + w)
    for x in (w, array(1, 2), w, array(3, 4)):
        same(f(x), np.asarray(x) + np.asarray([100, 200]))
    assert traces(f) == 2


def test_an_array_that_is_written_as_a_whole_is_not_read():
    @dt.compile
    def f(x, y):
        z = x * 2
        x[...] = z
        y[:] = y + 1
        return z

    assert "set_slice" not in f.explain(array(1, 2), array(3, 4))
    for n in (2, 5, 0):
        x, y = dt.arange(n, dtype="float32"), dt.ones((3,))
        z = f(x, y)
        same(x, 2 * np.arange(n))
        same(y, array(2, 2, 2))
        x[:1] = 7  # they share no elements that a write to one would change in the other
        same(z, 2 * np.arange(n))

    @dt.compile
    def g(x, y):
        x[...] = y

    x, y = array(1, 2), array(3, 4)
    g(x, y)
    y[0] = 9
    same(x, array(3, 4))
    g(x, array(5))  # is spread
    same(x, array(5, 5))
    with pytest.raises(ValueError):
        g(x, array(1, 2, 3))
