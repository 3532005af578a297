"""Results of groups in the memory of what ends with them: how much it saves, and what is never taken."""

import random

import dovetail as dt
import numpy as np
import pytest
import random_groups

DEVICE = "cpu:0"  # of the test
SHAPES = [(1, 1), (2, 1), (5, 33), (4, 300), (3, 1500), (2, 2, 1025), (70_000,)]


@pytest.fixture(autouse=True, params=["cpu:0", "sim:0"])
def home(request, monkeypatch):
    monkeypatch.setitem(globals(), "DEVICE", request.param)


def array(*shape, dtype="float32", seed=0):
    values = np.random.default_rng(seed).standard_normal(shape) * 3
    return dt.astype(dt.asarray(values.astype(np.float32), device=DEVICE), dtype)


def same(got, expected):
    got, expected = (x if isinstance(x, tuple) else (x,) for x in (got, expected))
    for a, b in zip(got, expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(*(np.asarray(dt.astype(x, dt.float64)) for x in (a, b)))


def peak(call):
    """The bytes that a call takes at most beside what is there before."""
    call()
    device = dt.device(DEVICE)
    device.synchronize()
    before = dt.memory.stats(device)["in_use"]
    dt.memory.reset_peak(device)
    result = call()
    device.synchronize()
    del result
    return dt.memory.stats(device)["peak"] - before


def centred(x):
    for _ in range(5):  # a mean of columns ends each group
        x = (x - dt.mean(x, axis=0, keepdims=True)) * 0.5 + 0.25
    return x


def gated(x, gate, up):
    for _ in range(3):
        x = (x @ gate) * 0.5 * (x @ up) + x
    return x


def operands(f, rows, columns):
    args = [array(rows, columns), *(array(columns, columns, seed=s) * 0.1 for s in (1, 2))]
    return args[: f.__code__.co_argcount]


@pytest.mark.parametrize("f", [centred, gated])
def test_a_chain_of_groups_takes_less_memory(f):
    args = operands(f, 512, 256)
    compiled = dt.compile(f, numerics="eager", capture=False)
    same(compiled(*args), f(*args))
    arrays = {centred: 1, gated: 3}[f]  # of x's size; one more without
    assert arrays <= peak(lambda: compiled(*args)) / (512 * 256 * 4) < arrays + 0.3


def test_a_donated_argument_becomes_the_result():
    f = dt.compile(lambda x: dt.exp(x) * 2.0 + 1.0, donate=("x",), capture=False)
    expected = dt.exp(array(512, 256)) * 2.0 + 1.0
    same(f(array(512, 256)), expected)
    x = array(512, 256)
    dt.device(DEVICE).synchronize()
    before = dt.memory.stats(DEVICE)["in_use"]
    dt.memory.reset_peak(DEVICE)
    y = f(x)
    dt.device(DEVICE).synchronize()
    assert dt.memory.stats(DEVICE)["peak"] - before < 512 * 256
    same(y, expected)


def test_what_is_still_needed_is_not_taken():
    """By another node, as a result, by a view, by the caller, by the function."""
    w = array(6, 6, seed=1)

    def f(x, given):
        a = dt.cumulative_sum(x, axis=0)
        b = dt.exp(a) * 2.0 + a  # a is used again
        c = dt.flip(b, axis=0)
        d = dt.exp(b - 1.0) * 0.5  # b is a result
        e = dt.exp(w - 1.0) * 0.5
        g = dt.cumulative_sum(x, axis=1)
        view = dt.reshape(g, (-1,))
        h = dt.exp(g - 1.0) * 0.5  # view is used again
        return a[0], b, c, d, e, h + 0.0, dt.flip(view), dt.exp(given - 1.0) * 0.5

    compiled = dt.compile(f, numerics="eager", donate=("given",))
    x, kept = array(6, 6), array(6, 6, seed=2)
    hosts = [np.asarray(v).copy() for v in (x, w, kept)]
    for _ in range(5):
        got = compiled(x, kept[:])
        same(got, f(x, kept))
        for v, host in zip((x, w, kept), hosts, strict=True):
            np.testing.assert_array_equal(np.asarray(v), host)


def test_a_part_of_a_larger_array_is_not_held():
    """A result that lay there would hold all of it."""

    def f(x):
        return dt.exp(dt.cumulative_sum(x, axis=0)[:1] - 1.0) * 0.5

    compiled = dt.compile(f, capture=False)
    x = array(4096, 64)
    same(compiled(x), f(x))
    dt.device(DEVICE).synchronize()
    before = dt.memory.stats(DEVICE)["in_use"]
    result = compiled(x)
    dt.device(DEVICE).synchronize()
    assert dt.memory.stats(DEVICE)["in_use"] - before < 4096
    del result


def early_result(x):
    return x * 2.0, x + 1.0 + x * 2.0


def result_of_an_earlier_pass(x):
    s = x + 0.5
    return s, (s - dt.max(s, axis=-1, keepdims=True)) * x


def rows(x):
    top = dt.max(x, axis=-1, keepdims=True)
    return top * 2.0 + 1.0, x - top, dt.exp(x) * 3.0


def other_types(x):
    return dt.astype(x * 2.0, "int32") + 1, x > 1.0, x + 1.0


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("f", [early_result, result_of_an_earlier_pass, rows, other_types])
def test_results_do_not_overwrite_what_the_group_still_reads(f, dtype):
    compiled = dt.compile(f, numerics="eager", donate=("x",))
    for shape in SHAPES:
        x = array(*shape, dtype=dtype)
        same(compiled(x + 0), f(x))


def test_a_row_of_operands_as_long_as_the_results():
    """A square: weights of a row have the shape of sums without the axis, and are read in every row."""

    def f(x, w):
        return dt.max(x * w + 1.0, axis=-1), dt.max(x - w, axis=-1)

    compiled = dt.compile(f, numerics="eager", donate=("x", "w"))
    for n in (3, 7, 300):
        x, w = array(n, n), array(n, seed=1)
        same(compiled(x + 0, w + 0), f(x, w))


@pytest.mark.parametrize("seed", range(40))
def test_random_groups_of_donated_operands(seed):
    rng = random.Random(seed)
    source = random_groups.function(rng, random_groups.EXACT, ["max", "min"])
    dtype = rng.choice(["float32", "float64", "float16", "bfloat16"])
    print(source, dtype)
    for rows, columns in [*random_groups.SIZES, (2, 1500), (33, 33)]:
        args = random_groups.operands(rng, DEVICE, dtype, rows, columns)
        same(
            random_groups.run(source, *args, compile="eager", donate=True), random_groups.run(source, *args, xp=dt)
        )


def test_captured_runs_and_check():
    f = dt.compile(gated)
    args = operands(gated, 64, 16)
    expected = f(*args)
    for _ in range(8):
        same(f(*args), expected)
    assert ("captured: " in str(f.explain(*args))) == DEVICE.startswith("sim")
    checked = f.check(*args)
    assert len(checked.results) == 3 and checked.first is None
    same(f(*args), expected)
