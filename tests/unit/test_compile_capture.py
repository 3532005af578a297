"""Compiled functions whose runs are captured: what changes between replays is seen, and what cannot be is told."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

import dovetail as dt
import numpy as np
import pytest

DEVICE = "sim:0"
STEPS = 6  # products of a function: enough launches to be worth a replay
RUNS = 3  # after which a binding is captured


def array(values, dtype=np.float32):
    return dt.asarray(np.asarray(values, dtype), device=DEVICE)


def numbers(seed, *shape):
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float32)


def chain(x, w):
    for _ in range(STEPS):
        x = x @ w
    return x


def expected(x, w):
    for _ in range(STEPS):
        x = x @ w
    return x


def is_captured(f, *args) -> bool:
    return "\n  captured: 6" in f.explain(*args) or "\n  captured: 7" in f.explain(*args)


def same(got, host):
    np.testing.assert_array_equal(np.asarray(got), host)


@pytest.fixture
def pair():
    x, w = numbers(1, 4, 4), numbers(2, 4, 4)
    return x, w, array(x), array(w)


def warm(f, *args):
    for _ in range(RUNS + 1):
        result = f(*args)
    assert is_captured(f, *args), f.explain(*args)
    return result


def test_the_third_run_is_captured(pair):
    x, w, a, b = pair
    f = dt.compile(chain)
    for _ in range(RUNS - 1):
        same(f(a, b), expected(x, w))
        assert "not captured yet: 3 runs" in f.explain(a, b)
    same(f(a, b), expected(x, w))
    assert "captured: 6 launches in one replay, which copies 0 of 2 inputs and 1 results" in f.explain(a, b)
    assert "captured: 6 launches" in dt.compile_report()
    same(f(a, b), expected(x, w))


def test_a_weight_that_is_written_in_place(pair):
    x, w, a, b = pair
    held = {"w": b}
    f = dt.compile(lambda x: chain(x, held["w"]))
    warm(f, a)
    for value in (3.0, -1.0, 2.0):
        held["w"][0, 1] = value
        w[0, 1] = value
        same(f(a), expected(x, w))


def test_a_weight_in_the_place_of_another(pair):
    x, w, a, b = pair
    held = {"w": b}
    f = dt.compile(lambda x: chain(x, held["w"]))
    warm(f, a)
    kept = []
    for seed in range(12):
        kept.append(held["w"])  # its memory is not given to the next one
        w = numbers(seed, 4, 4)
        held["w"] = array(w)
        for _ in range(seed % 5 + 1):
            same(f(a), expected(x, w))


def test_an_input_that_is_elsewhere_in_each_call_is_copied(pair):
    x, w, _, b = pair
    f = dt.compile(chain)
    kept = []
    for seed in range(8):
        x = numbers(seed, 4, 4)
        kept.append(array(x))
        same(f(kept[-1], b), expected(x, w))
    assert "copies 1 of 2 inputs" in f.explain(kept[-1], b)


def test_an_input_of_other_strides(pair):
    x, w, a, b = pair
    f = dt.compile(chain)
    warm(f, a, b)
    turned = dt.permute_dims(a, (1, 0))  # the same address
    for _ in range(RUNS + 2):
        same(f(turned, b), expected(x.T, w))
        same(f(a, b), expected(x, w))


def test_an_input_moves_again_and_again(pair):
    """After it has ended captures twice it is copied, and ends no more."""
    x, w, _, b = pair
    f = dt.compile(chain)
    arrays = [(host, array(host)) for host in (numbers(seed, 4, 4) for seed in range(4))]
    for x, a in arrays:
        for _ in range(RUNS + 1):
            same(f(a, b), expected(x, w))
    for x, a in arrays:
        same(f(a, b), expected(x, w))
        assert "copies 1 of 2 inputs" in f.explain(a, b)


def test_results_are_kept_by_their_holders(pair):
    x, w, a, b = pair
    f = dt.compile(chain)
    results = []
    for seed in range(8):
        w = numbers(seed, 4, 4)
        b[:] = array(w)
        results.append((f(a, b), expected(x, w)))
    assert is_captured(f, a, b)
    for got, host in results:
        same(got, host)


def test_results_that_are_inputs_views_and_numbers(pair):
    x, w, a, b = pair

    def function(x, w):
        y = chain(x, w)
        return y, y[1:], x, dt.permute_dims(w, (1, 0)), x[2:], dt.zeros((2,), device=DEVICE)

    f = dt.compile(function)
    for seed in range(8):
        x = numbers(seed, 4, 4)
        a = array(x)
        for got, host in zip(
            f(a, b), (expected(x, w), expected(x, w)[1:], x, w.T, x[2:], np.zeros(2)), strict=True
        ):
            same(got, host)


def test_a_float_that_changes(pair):
    x, w, a, b = pair
    f = dt.compile(lambda x, w, k: chain(x, w) * k)
    for k in (0.5, 0.5, 0.5, 0.5, 2.0, 0.5, 2.0, 2.0, 2.0, 2.0, -0.0, 0.0, 4.0):
        got = np.asarray(f(a, b, k))
        same(got, expected(x, w) * np.float32(k))
        np.testing.assert_array_equal(np.signbit(got), np.signbit(expected(x, w) * np.float32(k)))


def test_an_int_that_changes(pair):
    x, w, a, b = pair
    f = dt.compile(lambda x, w, k: chain(x, w) + k)
    for k in (1, 1, 1, 1, 2, 1, 2, 2, 2, 2, 3, 1):
        same(f(a, b, k), expected(x, w) + k)


def test_sizes():
    f = dt.compile(chain)
    w = numbers(5, 4, 4)
    b = array(w)
    inputs = {n: (numbers(n, n, 4), array(numbers(n, n, 4))) for n in range(12)}
    for round in range(6):
        for n in range(12) if round < 2 else (3, 5, 0):
            same(f(inputs[n][1], b), expected(inputs[n][0], w))
    assert len(dt._core.capture_states(f)) == 8
    assert is_captured(f, inputs[3][1], b) and is_captured(f, inputs[5][1], b)


def test_donation(pair):
    x, w, _, b = pair
    f = dt.compile(chain, donate=("x",))
    for seed in range(8):
        x = numbers(seed, 4, 4)
        a = array(x)
        shared = a[:]
        same(f(a, b), expected(x, w))
        same(shared, x)
        with pytest.raises(RuntimeError, match="donated"):
            a + 1
    shared = array(x)
    assert is_captured(f, shared, b)


def test_writes_go_to_the_callers_array(pair):
    x, w, a, b = pair

    def step(x, w):
        x += chain(x, w)
        x %= 7.0
        return x @ w

    f = dt.compile(step)
    for _ in range(10):
        before, kept = x, a[:]
        x = np.mod(x + expected(x, w), np.float32(7))
        same(f(a, b), x @ w)
        same(a, x)
        same(kept, before)
    assert "captured: " in f.explain(a, b) and "not captured" not in f.explain(a, b)


def test_random_numbers(pair):
    _, _, a, b = pair

    def function(x, w):
        return chain(x, w) + dt.random.uniform(x.shape, device=DEVICE)

    f = dt.compile(function)
    dt.random.seed(7)
    eager = [np.asarray(function(a, b)) for _ in range(8)]
    dt.random.seed(7)
    for host in eager:
        same(f(a, b), host)
    assert "\n  captured: " in f.explain(a, b)


def test_an_error_in_a_replay(pair):
    x, w, a, b = pair
    index = array([1, 2], np.int64)
    f = dt.compile(lambda x, w, i: dt.take(chain(x, w), i, axis=0))
    warm(f, a, b, index)
    index[0] = 9
    with pytest.raises(IndexError, match=r"\[take\]"):
        np.asarray(f(a, b, index))
        dt.device(DEVICE).synchronize()
    index[0] = 3
    same(f(a, b, index), expected(x, w)[[3, 2]])


def test_two_threads(pair):
    _, w, _, b = pair
    f = dt.compile(chain)
    wrong = []

    def work(seed):
        x = numbers(seed, 4, 4)
        a = array(x)
        for _ in range(60):
            if not np.array_equal(np.asarray(f(a, b)), expected(x, w)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert not wrong


def test_two_streams(pair):
    x, w, a, b = pair
    f = dt.compile(chain)
    warm(f, a, b)
    streams = [dt.Stream(DEVICE), dt.Stream(DEVICE)]
    results = []
    for seed in range(12):
        x = numbers(seed, 4, 4)
        with streams[seed % 2]:
            a[:] = array(x)
            results.append((f(a, b), expected(x, w)))
    for got, host in results:
        same(got, host)


def test_switched_off(pair):
    _, _, a, b = pair
    f = dt.compile(chain, capture=False)
    for _ in range(5):
        f(a, b)
    assert "not captured: it is switched off" in f.explain(a, b)
    with pytest.raises(TypeError, match="capture: got 1, expected a bool"):
        dt.compile(chain, capture=1)


def test_switched_off_for_the_process():
    code = f"""
import dovetail as dt, numpy as np
a = dt.asarray(np.eye(4, dtype=np.float32), device={DEVICE!r})
f = dt.compile(lambda x: x @ x @ x @ x @ x)
for _ in range(5): f(a)
assert "not captured: it is switched off" in f.explain(a), f.explain(a)
"""
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"DOVETAIL_COMPILE_CAPTURE": "0"})


def test_few_launches_are_not_captured():
    a = array(numbers(1, 4, 4))
    f = dt.compile(lambda x: x @ x)
    for _ in range(5):
        f(a)
    assert "not captured: it has 1 launches, and a replay would make 1 copies" in f.explain(a)


def test_what_the_host_looks_at_is_not_captured(pair):
    x, w, a, b = pair
    f = dt.compile(lambda x, w: dt.cond(dt.sum(x) > 0, lambda: chain(x, w), lambda: chain(w, x)))
    for sign in (1, 1, 1, 1, -1, 1):
        host = sign * (np.abs(x) + 1)
        a[:] = array(host)
        same(f(a, b), expected(host, w) if sign > 0 else expected(w, host))
    assert "not captured: " in f.explain(a, b)


def test_memory_beyond_the_limit_is_not_captured():
    a = array(np.zeros((1400, 1400)))
    f = dt.compile(lambda x: [x + x.T, dt.cumulative_sum(x, axis=0), dt.cumulative_sum(x, axis=1), x.T * 2.0])
    for _ in range(4):
        f(a)
    assert "not captured: a run takes more memory than captures may hold" in f.explain(a)


def test_memory_of_captures_goes_where_arrays_need_it(pair):
    x, w, a, b = pair
    f = dt.compile(chain)
    warm(f, a, b)
    dt.memory.empty_cache(DEVICE)
    dt.memory.set_limit(dt.memory.stats(DEVICE)["reserved"] + (1 << 20), DEVICE)
    try:
        with pytest.raises(MemoryError):
            array(np.zeros(1 << 24))
    finally:
        dt.memory.set_limit(None, DEVICE)
    assert "not captured: its memory was needed for arrays" in f.explain(a, b)
    same(f(a, b), expected(x, w))


def test_a_capture_goes_with_its_function(pair):
    _, _, a, b = pair
    gc.collect()  # what other tests hold in cycles
    dt.memory.empty_cache(DEVICE)
    before = dt.memory.stats(DEVICE)["in_use"]
    f = dt.compile(chain)
    warm(f, a, b)
    assert dt.memory.stats(DEVICE)["in_use"] > before
    f(a, b)
    del f
    assert dt.memory.stats(DEVICE)["in_use"] == before
