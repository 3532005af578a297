"""Captures of compiled functions as the device sees them: what it is asked, and what happens where it fails."""

import gc
import warnings

import broken_compilers
import dovetail as dt
import numpy as np
import pytest
from dispatch_kernel import float32_kernel

UNSUPPORTED, INTERNAL = 1, 5
RUNS = 3  # after which a binding is captured


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    """Its functions, with the device "meta" that they belong to."""
    return broken_compilers.load(*broken_compilers.build(tmp_path_factory))


@pytest.fixture
def fail_in(plugin):
    """fail_in(function, status) until the test ends."""
    yield lambda function, status: plugin.fail_in(function.encode(), status)
    for function in ("capture_begin", "capture_end", "replay"):
        plugin.fail_in(function.encode(), 0)


@pytest.fixture
def calls(plugin):
    """calls(function): how many there were since it was called last, or since the test began."""
    gc.collect()  # functions of other tests
    before = {}

    def since(function):
        now = plugin.calls_of(function.encode())
        last, before[function] = before.get(function, now), now
        return now - last

    for function in ("run", "replay", "capture_begin", "destroy_graph"):
        since(function)
    return since


def function(x):
    """Four products, each with a group behind it."""
    for _ in range(4):
        x = dt.abs(x @ x) * 0.25 + 0.5
    return x


@pytest.fixture
def x(plugin):
    return dt.asarray(np.random.default_rng(0).standard_normal((6, 6)).astype(np.float32), device=plugin.device)


def same(a, b):
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_a_replay_is_one_call_of_the_device(calls, x):
    f, eager = dt.compile(function, numerics="eager"), function(x)
    for _ in range(RUNS):
        same(f(x), eager)
    assert (calls("run"), calls("capture_begin"), calls("replay")) == (4 * RUNS + 4, 1, 0)
    for _ in range(5):
        same(f(x), eager)
    assert (calls("run"), calls("capture_begin"), calls("replay")) == (0, 0, 5)
    with dt.profile():
        same(f(x), eager)
    assert (calls("run"), calls("replay")) == (4, 0)


def test_the_graph_goes_with_the_function(calls, x):
    f = dt.compile(function)
    for _ in range(RUNS + 1):
        f(x)
    assert calls("destroy_graph") == 0
    del f
    gc.collect()
    assert calls("destroy_graph") == 1


def test_kernels_loaded_meanwhile(plugin, calls, x):
    """The graph of the kernels of before is not replayed again."""
    f, eager = dt.compile(function, numerics="eager"), function(x)
    for _ in range(RUNS + 1):
        f(x)
    assert calls("replay") == 1
    dt._core.add_kernel(str(plugin.device), float32_kernel("dvt.cosh", 1, np.cosh))
    for _ in range(RUNS):
        same(f(x), eager)
    assert (calls("replay"), calls("destroy_graph"), calls("capture_begin")) == (0, 1, 2)
    same(f(x), eager)
    assert calls("replay") == 1


def test_groups_that_are_not_safe(plugin, calls, x):
    plugin.set_capture_safe(0)
    try:
        f = dt.compile(function)
        for _ in range(RUNS + 2):
            f(x)
        assert (calls("capture_begin"), calls("replay")) == (0, 0)
        assert "not captured: multiply+add is not marked as safe to capture" in f.explain(x)
    finally:
        plugin.set_capture_safe(1)


@pytest.mark.parametrize("where", ["capture_begin", "capture_end"])
def test_an_error_while_it_records(fail_in, calls, x, where):
    """The function runs uncaptured, and says why once."""
    f, eager = dt.compile(function, numerics="eager"), function(x)
    fail_in(where, INTERNAL)
    with pytest.warns(Warning, match=f"is not captured: .*{where} fails, as was asked for") as told:
        for _ in range(RUNS + 3):
            same(f(x), eager)
    assert len(told) == 1
    assert f"{where} fails, as was asked for" in f.explain(x)
    assert calls("replay") == 0


def test_an_error_of_a_group_while_it_records(plugin, calls, x):
    f, eager = dt.compile(function, numerics="eager"), function(x)
    for _ in range(RUNS - 1):
        f(x)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        plugin.fail_after(b"run", 4, INTERNAL)  # those of the third run itself
        try:
            same(f(x), eager)
        finally:
            plugin.fail_in(b"run", 0)
    assert len(told) == 1 and "run fails, as was asked for" in str(told[0].message)
    same(f(x), eager)
    assert (calls("capture_begin"), calls("replay")) == (1, 0)


def test_a_replay_that_the_device_refuses(fail_in, x):
    f, eager = dt.compile(function, numerics="eager"), function(x)
    for _ in range(RUNS + 1):
        f(x)
    fail_in("replay", INTERNAL)
    with pytest.raises(RuntimeError, match="a replay: replay fails, as was asked for"):
        f(x)
    fail_in("replay", 0)
    same(f(x), eager)
