"""Workloads of `dovetail bench` and the suite: calls that run, and costs that match their arrays."""

from itertools import chain, repeat
from types import SimpleNamespace

import dovetail
import numpy as np
import pytest
from dovetail import _timing
from dovetail.schema import dtypes as dt
from dovetail.schema import registry
from dovetail.schema.workloads import Maker, workloads

ALL = [(op.name, name) for op in registry.values() for name in workloads(op)]


@pytest.mark.parametrize(("op", "name"), ALL, ids=lambda x: x or "usual")
def test_costs_are_those_of_the_arrays(op, name):
    dtype = dt.float32 if dt.float32 in registry[op].dtypes else registry[op].dtypes[-1]
    work = workloads(registry[op])[name](Maker(5000, dtype))
    given = [a for a in work.args if isinstance(a, np.ndarray)]
    args = [dovetail.asarray(a, device="cpu") if isinstance(a, np.ndarray) else a for a in work.args]
    result = dovetail._core.op_function(op)(*args, **work.kwargs)
    results = result if isinstance(result, tuple) else (result,)
    assert work.written == sum(r.nbytes for r in results)
    unread = given[0].nbytes if op == "scatter" else 0  # all of it is overwritten
    assert work.read == sum(a.nbytes for a in given) - unread
    assert work.flops >= 0 and work.label


def test_flops_of_products():
    make = workloads(registry["matmul"])
    m = Maker(4096, dt.float32)
    assert make["square"](m).flops == 2 * 64**3
    assert make["skinny"](m).flops == 2 * 8 * 64 * 64 and make["skinny"](m).label == "8x64x64"
    assert make["batched"](Maker(8 * 4096, dt.float32)).flops == 8 * 2 * 64**3
    assert workloads(registry["conv2d"])[""](m).flops == 2 * 64 * 64 * 9 * 8 * 8


def test_large_operands_are_small_ones_over_again():
    m = Maker(0, dt.bfloat16)
    x = m.array(3, 1 << 20)
    assert x.shape == (3, 1 << 20) and (x[0] == x[2]).all() and len(np.unique(x)) > 100
    assert (x > 0).all() and (x < 1).all() and m.array(0, 3).shape == (0, 3)


def clock(monkeypatch, costs):
    """A clock that only advances in calls, by `costs`."""
    now = [0.0]

    def call():
        now[0] += next(costs)

    monkeypatch.setattr(_timing.time, "perf_counter", lambda: now[0])
    return call


def test_timing_reports_the_best_the_median_and_the_slow_batches(monkeypatch):
    call = clock(monkeypatch, chain([0.5, 0.02, 0.03, 0.01, 0.01, 0.05], repeat(0.03)))  # the first warms up
    found = _timing.measure(call, SimpleNamespace(synchronize=lambda: None), 0.2)
    assert found == pytest.approx((0.01, 0.03, 0.05)) and found.spread == pytest.approx(2)


def test_one_short_call_is_no_measurement(monkeypatch):
    """A call that only enqueues looks short: the time is that of a batch of calls and the wait for it."""
    call = clock(monkeypatch, chain([1.0, 1e-7], repeat(1e-3)))
    assert _timing.measure(call, SimpleNamespace(synchronize=lambda: None), 0.2).best == pytest.approx(1e-3)
