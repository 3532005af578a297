"""Writes outside outputs, outputs that are never written, and memory that calls leak."""

import ctypes
import os
from types import SimpleNamespace

import dovetail as dt
import numpy as np
import pytest
from dovetail import _core
from dovetail_conformance.cases import Case, Outcome, all_cases, steady
from dovetail_conformance.cases.steady import SteadyCase
from dovetail_conformance.device_checks.interchange import address
from dovetail_conformance.results import Status
from dovetail_conformance.running.execute import execute
from dovetail_conformance.running.target import Target

CPU = dt.device("cpu")


@pytest.fixture
def guarded():
    before = _core.guard_memory(True)
    yield
    _core.guard_memory(before)
    assert not _core.memory_overruns(CPU)


def poke(array, offset):
    """Change one byte of memory, counted from the array's beginning."""
    at = ctypes.c_uint8.from_address(address(array) + offset)
    at.value ^= 0xFF


def test_the_op_that_wrote_last_is_named(guarded):
    x = dt.asarray(np.arange(5, dtype=np.float32), device=CPU)
    y = dt.add(x, x)
    poke(y, 20)
    poke(y, 22)
    assert _core.memory_overruns(CPU) == [("add", "[add] wrote 3 bytes past the end of its output 0 (20 B)")]
    assert _core.memory_overruns(CPU) == []
    poke(x, -1)
    del x, y
    ((op, message),) = _core.memory_overruns(CPU)
    assert (op, message) == ("", "a copy wrote 1 byte before the beginning of an array (20 B)")


def test_older_arrays_keep_their_values():
    x = dt.asarray(np.arange(5, dtype=np.float32), device=CPU)
    before = _core.guard_memory(True)
    y = x + 1
    _core.guard_memory(before)
    x += 1
    y += 1
    assert x.numpy().tolist() == [1, 2, 3, 4, 5] and y.numpy().tolist() == [2, 3, 4, 5, 6]
    del x, y
    assert _core.memory_overruns(CPU) == []


def test_a_new_array_is_junk(guarded):
    made = dt.empty((1000,), dtype="uint8", device=CPU).numpy()
    assert np.all(made == 0xDB)


# ---- a case -----------------------------------------------------------------------------------------------------


class Question(Case):
    def run(self, target, seed):
        return target.outcome


def judged(overruns, outcome):
    target = SimpleNamespace(
        outcome=outcome,
        fallbacks=list,
        guard=lambda on: None,
        synchronize=lambda: None,
        overruns=lambda: overruns,
    )
    result = execute(Question("add[f32,x]", "L1", "add"), target, 0)
    return result.status, result.message


def test_a_case_fails_if_its_op_writes_outside_its_output():
    passed = Outcome(Status.PASS)
    assert judged([], passed) == (Status.PASS, "")
    overrun = "wrote 4 bytes past the end of its output 0 (20 B)"
    assert judged([("add", f"[add] {overrun}")], passed) == (Status.FAIL, overrun)
    assert judged([("mul", f"[mul] {overrun}")], passed) == (Status.FAIL, f"[mul] {overrun}")
    wrong = Outcome(Status.FAIL, "1 of 5 elements wrong")
    assert judged([("add", f"[add] {overrun}")], wrong) == (Status.FAIL, f"{overrun}; 1 of 5 elements wrong")


def test_memory_is_guarded_except_in_memory_checks():
    cases = all_cases()
    assert cases["add[f32,vectors]"].guarded
    assert not cases["device.memory[odd_sizes]"].guarded and not cases["add[f32,steady]"].guarded


# ---- steady -----------------------------------------------------------------------------------------------------


@pytest.fixture
def target():
    fallback = dt.fallback()
    yield Target("cpu")
    dt.fallback(fallback)
    dt.set_default_device(None)


def test_every_op_has_a_steady_case():
    of_ops = {c.op for c in all_cases().values() if c.op}
    found = [c for c in all_cases().values() if isinstance(c, SteadyCase)]
    assert {c.op for c in found} >= of_ops - {c.op for c in found if c.quick}
    assert len(found) == len({c.op for c in found}) and not any(c.quick for c in found)
    assert "multiply[f32,steady]" in all_cases()


kept: list = []


def keeps_arrays(result):
    kept.append(result)


def keeps_bytes(result):
    kept.append(os.urandom(1 << 14))


def keeps_files(result):
    kept.append(os.dup(0))


@pytest.mark.parametrize(
    ("leak", "names"),
    [(keeps_arrays, "bytes of the pool"), (keeps_bytes, "of the process's heap"), (keeps_files, "open files")],
)
def test_leaks_are_reported(target, monkeypatch, leak, names):
    case = all_cases()["negative[f32,steady]"]
    call = target.call
    monkeypatch.setattr(steady, "MOST_CALLS", 64)
    monkeypatch.setattr(target, "call", lambda *a: leak(call(*a)), raising=False)
    try:
        outcome = case.run(target, 0)
    finally:
        for item in kept:
            if leak is keeps_files:
                os.close(item)
        kept.clear()
    assert outcome.status is Status.FAIL and names in outcome.message


def test_a_full_cache_is_no_leak(target, monkeypatch):
    """A cache that fills up once."""
    case = all_cases()["negative[f32,steady]"]
    call, rounds = target.call, []

    def caches(*a):
        rounds.append(0)
        if len(rounds) % 500 == 0 and len(rounds) < 1600:
            kept.append(os.urandom(1 << 21))
        return call(*a)

    monkeypatch.setattr(target, "call", caches, raising=False)
    try:
        assert case.run(target, 0).status is Status.PASS
    finally:
        kept.clear()


def test_calls_that_the_host_keeps_are_no_leak(target, monkeypatch):
    """DOVETAIL_POISON_CALLS=1 keeps the last thousand calls."""
    case = all_cases()["scaled_dot_product_attention[f32,steady]"]
    monkeypatch.setattr(steady, "MOST_CALLS", 48)
    before = _core.poison_calls(True)
    try:
        assert case.run(target, 0).status is Status.PASS
        assert _core.poison_calls()
    finally:
        _core.poison_calls(before)
