"""A device's compiler as the runtime uses it: what is shared, what happens where it fails, and what is reported."""

import ctypes
import gc
import threading
import warnings

import broken_compilers
import dovetail as dt
import numpy as np
import pytest
from dovetail import FallbackWarning
from trace_events import names

UNSUPPORTED, OOM, INTERNAL = 1, 3, 5


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return broken_compilers.build(tmp_path_factory)


@pytest.fixture(scope="module")
def plugin(library):
    """Its functions, with the device "meta" that they belong to."""
    return broken_compilers.load(*library)


@pytest.fixture
def fail_in(plugin):
    """fail_in(function, status) until the test ends."""
    yield lambda function, status: plugin.fail_in(function.encode(), status)
    for function in ("claim", "compile", "query", "run"):
        plugin.fail_in(function.encode(), 0)


def calls(plugin, function):
    return plugin.calls_of(function.encode())


def array(plugin, *shape, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return dt.asarray(values, device=plugin.device)


def chain(x, y):
    return dt.exp(x * y) + x


def same(a, b):
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def kernels(f, *args):
    """The names of what a call launches."""
    with dt.profile() as p:
        f(*args)
    return names(p.events, "kernel")


def test_a_group_is_one_launch(plugin):
    f, x, y = dt.compile(chain), array(plugin, 5, 70), array(plugin, 70, seed=1)
    same(f(x, y), chain(x, y))
    runs = calls(plugin, "run")
    assert kernels(chain, x, y) == ["multiply", "exp", "add"]
    assert kernels(f, x, y) == ["multiply+exp+add"]
    assert calls(plugin, "run") == runs + 1


def test_equal_groups_share_their_code(plugin):
    """Layers differ in their arrays, and calls in their sizes: it is compiled once."""
    layers, square = [array(plugin, 9, seed=i) for i in range(6)], array(plugin, 9, 9)

    @dt.compile
    def f(x):
        for w in layers:
            x = (x * w + 1.0) @ square
        return x

    before = calls(plugin, "compile")
    for rows in (3, 8, 3):
        x = array(plugin, rows, 9)
        same(f(x), f.__wrapped__(x))
    assert calls(plugin, "compile") == before + 1
    g = dt.compile(lambda x, w: x * w + 1.0)
    for x in (array(plugin, 4, 9), array(plugin, 2, 9)):
        g(x, layers[0])
    assert calls(plugin, "compile") == before + 1


def test_code_is_destroyed_with_its_last_user(plugin):
    f, x = dt.compile(lambda x: dt.sin(x * 3.0) - 7.0), array(plugin, 4)
    f(x)
    gc.collect()
    before = calls(plugin, "destroy")
    del f
    gc.collect()
    assert calls(plugin, "destroy") == before + 1


def test_what_a_claim_or_code_that_is_unsupported_leaves(plugin, fail_in):
    """The nodes run by themselves, and nobody is warned."""
    x, y = array(plugin, 5, 6), array(plugin, 5, 6, seed=1)
    for function, one_by_one in (("claim", ["multiply", "exp", "add"]), ("compile", ["multiply", "exp", "add"])):
        fail_in(function, UNSUPPORTED)
        f = dt.compile(lambda x, y: dt.exp(x * y) + (x - 1.0))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            same(f(x, y), f.__wrapped__(x, y))
        assert {*one_by_one, "subtract"} == {*kernels(f, x, y)}
        fail_in(function, 0)


def test_code_that_cannot_be_made_is_a_warning(plugin, fail_in):
    x = array(plugin, 5, 6)
    fail_in("compile", INTERNAL)
    f = dt.compile(lambda x: dt.exp(x * x) + 2.0)
    with pytest.warns(
        FallbackWarning, match="multiply.exp.add runs node by node: .*compile fails, as was asked for"
    ):
        y = f(x)
    same(y, f.__wrapped__(x))
    assert "compile fails, as was asked for" in f.explain(x)


def test_a_claim_that_fails_is_an_error(plugin, fail_in):
    x = array(plugin, 5, 6)
    fail_in("claim", INTERNAL)
    f = dt.compile(lambda x: dt.exp(x * x) + 3.0)
    with pytest.raises(RuntimeError, match=r"\[compile\] claim: .*claim fails, as was asked for"):
        f(x)
    fail_in("claim", 0)
    same(f(x), f.__wrapped__(x))


def test_sizes_that_code_does_not_take(plugin, fail_in):
    """They run node by node; others by the code."""
    f = dt.compile(lambda x: dt.exp(x * x) + 4.0)
    x = array(plugin, 5, 6)
    f(x)
    fail_in("query", UNSUPPORTED)
    other = array(plugin, 7, 6)
    same(f(other), f.__wrapped__(other))
    assert kernels(f, other) == ["multiply", "exp", "add"]
    assert kernels(f, x) == ["multiply+exp+add"]
    fail_in("query", INTERNAL)
    with pytest.raises(RuntimeError, match="query fails, as was asked for"):
        f(array(plugin, 8, 6))


def test_operands_that_code_wants_compact(plugin):
    f = dt.compile(lambda x, y: dt.exp(x * y) + 5.0)
    x, y = array(plugin, 6, 5), dt.permute_dims(array(plugin, 5, 6, seed=1), (1, 0))
    assert kernels(f, x, y) == ["multiply+exp+add"]
    plugin.want_compact(ctypes.c_uint64(2))
    try:
        same(f(x, y), f.__wrapped__(x, y))
        assert kernels(f, x, y) == ["copy", "multiply+exp+add"]
        plugin.want_compact(ctypes.c_uint64(1))
        assert kernels(f, x, y) == ["multiply+exp+add"]
    finally:
        plugin.want_compact(ctypes.c_uint64(0))


@pytest.mark.parametrize(("status", "error"), [(INTERNAL, RuntimeError), (OOM, MemoryError)])
def test_a_run_that_fails_raises(plugin, fail_in, status, error):
    f, x = dt.compile(lambda x: dt.exp(x * x) + 6.0), array(plugin, 5, 6)
    expected = f(x)
    fail_in("run", status)
    with pytest.raises(error, match=r"multiply\+exp\+add"):
        f(x)
    fail_in("run", 0)
    same(f(x), expected)


def test_threads_compile_what_they_share_and_run_it(plugin):
    f = dt.compile(lambda x, k: (dt.exp(x * k) + 8.0, dt.sum(x * k, axis=-1)))
    arrays = [array(plugin, n, 40, seed=n) for n in range(1, 9)]
    wrong = []

    def work(i):
        for round in range(20):
            x, k = arrays[(i + round) % 8], float(round % 3)
            for got, expected in zip(f(x, k), f.__wrapped__(x, k), strict=True):
                if not np.array_equal(np.asarray(got), np.asarray(expected)):
                    wrong.append((i, round))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_effects_of_groups(plugin):
    """Writes, donated memory, captured arrays, floats and random numbers, each with a group."""
    w = array(plugin, 6, seed=3)

    @dt.compile(donate=("cache",))
    def f(x, cache, k):
        x *= k
        x += w
        return cache * 2.0 + x, dt.random.uniform(x.shape, device=plugin.device) * 2.0 + 1.0

    for n, k in [(4, 0.5), (1, 2.0), (4, -1.0)]:
        host = np.asarray(array(plugin, n, 6, seed=n))
        x, cache = (dt.asarray(host, device=plugin.device) for _ in range(2))
        dt.random.seed(n)
        y, noise = f(x, cache, k)
        expected = host * np.float32(k) + np.asarray(w)
        same(x, expected)
        same(y, host * 2 + expected)
        dt.random.seed(n)
        same(noise, dt.random.uniform((n, 6), device=plugin.device) * 2.0 + 1.0)
        with pytest.raises(RuntimeError, match="donated"):
            cache + 1
        w[0] = float(k)


def test_explain_shows_groups_and_what_stays(plugin):
    x, w = array(plugin, 4, 4), array(plugin, 4, 4, seed=1)
    f = dt.compile(lambda x, w: dt.exp((x @ w) * 2.0 + 1.0))
    text = f.explain(x, w)
    assert "4 nodes in 2 launches, in place of 4" in text
    assert "compiled: multiply+add+exp, nodes 1, 2, 3" in text
    assert "one by one: matmul: " in text


def test_a_dump_has_the_program_and_its_loops(plugin, tmp_path, monkeypatch):
    monkeypatch.setenv("DOVETAIL_COMPILE_DUMP", str(tmp_path / "new"))
    dt.compile(lambda x: dt.exp(x * 2.0) - 9.0)(array(plugin, 3, 5))
    program, loops, lowered, traced = sorted((tmp_path / "new").iterdir(), key=lambda p: p.suffix)
    assert loops.name.startswith("multiply+exp+subtract-") and loops.suffix == ".loops"
    assert traced.stem == lowered.stem and traced.stem.startswith("test_a_dump_has_the_program_and_its_loops.")
    assert (traced.suffix, lowered.suffix) == (".traced", ".lowered")
    assert "= exp(v" in traced.read_text() and "= exp(v" in lowered.read_text()
    assert "pass 0\n  v2 = multiply v0 v1: float32\n" in loops.read_text()
    assert '"op":"exp"' in program.read_text()
    monkeypatch.setenv("DOVETAIL_COMPILE_DUMP", str(loops / "no folder"))
    f, x = dt.compile(lambda x: dt.exp(x * 2.0) - 10.0), array(plugin, 3, 5)
    with pytest.warns(FallbackWarning, match="DOVETAIL_COMPILE_DUMP: .*no folder: Not a directory") as warned:
        y = f(x)
    assert len(warned) == 2  # of the program and of its group
    same(y, f.__wrapped__(x))


def softmax(x, w, b):
    e = dt.exp(x - dt.max(x, axis=-1, keepdims=True))
    return e / dt.sum(e, axis=-1, keepdims=True)


def layer_norm(x, w, b):
    n = x.shape[-1]
    d = x - dt.sum(x, axis=-1, keepdims=True) / n
    return d / dt.sqrt(dt.sum(d * d, axis=-1, keepdims=True) / n + 1e-5) * w + b


def gelu_chain(x, w, b):
    y = x * w + b
    return y / (dt.exp(y * -1.702) + 1.0) + x


def exact(f, *args):
    """f in NumPy's float64 of the operands as they are."""

    class Names:
        exp, max, sum, sqrt = np.exp, np.max, np.sum, np.sqrt

    wide = [np.asarray(dt.astype(x, dt.float64)) for x in args]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "dt", Names)
        return f(*wide)


@pytest.mark.parametrize("f", [softmax, layer_norm, gelu_chain])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_compositions_are_one_launch_and_as_exact_as_eager_calls(plugin, f, dtype):
    rounds, compiled = dt.compile(f, numerics="eager"), dt.compile(f)
    for rows, columns in [(5, 33), (3, 1000), (1, 33), (4, 1), (1, 1), (0, 7), (64, 257)]:
        seed = np.random.SeedSequence().entropy % 2**32
        print("seed", seed, rows, columns)
        args = [
            dt.astype(array(plugin, *shape, seed=seed + i), dtype)
            for i, shape in enumerate([(columns, rows), (columns,), (columns,)])
        ]
        args[0] = dt.permute_dims(args[0], (1, 0))
        eager = f(*args)
        same(dt.astype(rounds(*args), dt.float64), dt.astype(eager, dt.float64))
        if rows:
            assert len(kernels(compiled, *args)) == 1 < len(kernels(f, *args))
        if rows * columns < 1000:  # chance decides about few elements
            continue
        expected = exact(f, *args)
        errors = [np.abs(np.asarray(dt.astype(y, dt.float64)) - expected).mean() for y in (compiled(*args), eager)]
        assert errors[0] <= 1.1 * errors[1]


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64"])
def test_every_op_of_integers(plugin, dtype):
    """Those with kernels of the simulated device, in two groups: with and without floats."""
    rng = np.random.default_rng(5)
    x, y = (dt.asarray(rng.integers(0, 100, (7, 300)).astype(dtype), device=plugin.device) for _ in range(2))

    @dt.compile
    def f(x, y):
        bits = dt.bitwise_xor(dt.bitwise_and(x, y), dt.bitwise_or(x, 5))
        shifted = dt.bitwise_left_shift(bits, dt.minimum(y, 3)) + dt.bitwise_right_shift(x, 2)
        chosen = dt.where(dt.equal(x, y), shifted, dt.maximum(x, y) * x - y)
        return shifted, dt.max(chosen, axis=-1), dt.less(x, chosen), dt.astype(chosen, dt.float32) / 3.0

    for got, expected in zip(f(x, y), f.__wrapped__(x, y), strict=True):
        assert got.dtype == expected.dtype
        same(got, expected)
