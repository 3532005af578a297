"""Compilers that are broken on purpose: L3 must find them, and no error in the good one."""

from __future__ import annotations

import contextvars
from functools import partial

import broken_compilers
import broken_devices
import dovetail as dt
import pytest
from dovetail import _captures, _compile_trace, _core
from dovetail import _record as record
from dovetail._compile_arguments import Arguments
from dovetail_conformance.cases import find
from dovetail_conformance.programs.run import check
from dovetail_conformance.results import Status
from dovetail_conformance.running.target import Target

CHECKS = (
    "sizes", "guards", "floats", "captured", "watched", "written", "donated", "autocast", "groups", "capture",
    "threads",
)  # fmt: skip


@pytest.fixture(scope="module")
def target():
    before, mode = dt.default_device(), dt.fallback()
    yield Target("sim:0")
    dt.set_default_device(before)
    dt.fallback(mode)


def failing(target) -> set[str]:
    """The checks that do not pass."""
    return {name for name in CHECKS if outcome_of(target, name) is not Status.PASS}


def outcome_of(target, name: str) -> Status:
    try:
        return find(f"device.compile[{name}]").run(target, 0).status
    except Exception:  # execute() makes a failure of it
        return Status.FAIL


def test_the_good_one_passes(target):
    assert failing(target) == set()


def test_a_dropped_guard(target, monkeypatch):
    """A size that Python looked at is not looked at again."""
    monkeypatch.setattr(record.FunctionGraph, "guard", lambda self, *guard: None)
    assert failing(target) == {"guards"}


def test_a_stale_number(target, monkeypatch):
    """A float stays what it was in the first call."""
    number = Arguments._number
    monkeypatch.setattr(Arguments, "_number", lambda *args: number(*args).value)
    assert "floats" in failing(target)


def test_a_stale_binding(target, monkeypatch):
    """Sizes of the trace are those of all calls: what depends on them is wrong, or does not run."""
    monkeypatch.setattr(record.FunctionGraph, "size", lambda self, value, axis, n: n)
    assert "guards" in failing(target)


def test_captured_arrays_as_constants(target, monkeypatch):
    monkeypatch.setattr(_compile_trace.CompileGraph, "capture", _compile_trace.CompileGraph.constant)
    assert failing(target) == {"captured", "capture"}


def test_lost_writes(target, monkeypatch):
    """The caller's array keeps its value."""
    made = _core.CompiledProgram
    monkeypatch.setattr(_core, "CompiledProgram", lambda *args: made(*args[:8], [], *args[9:]))
    assert failing(target) == {"written"}


def test_values_of_the_trace(target, monkeypatch):
    """What the function reads by itself is not looked at again."""
    step = _captures.step
    monkeypatch.setattr(_captures, "step", lambda *args: (*step(*args)[:6], *_captures.ANYTHING))
    assert failing(target) == {"watched"}


def test_ways_that_are_not_gone_again(target, monkeypatch):
    """Arrays that the function captures are those of the trace."""
    monkeypatch.setattr(_captures.Found, "_parts", lambda self, place: iter(()))
    assert failing(target) >= {"captured", "watched"}


def test_the_autocast_of_the_trace(target, monkeypatch):
    """Calls run the program of the scope in which the function was first called."""
    compile_ = dt.compile

    def broken(fn):
        compiled, contexts = compile_(fn), []

        def call(*args):
            contexts.append(contextvars.copy_context())
            return contexts[0].run(compiled, *args)

        return call

    monkeypatch.setattr(dt, "compile", broken)
    assert "autocast" in failing(target)


# ---- random programs ---------------------------------------------------------------------------------------------

MUTANTS = {
    "a dropped guard": lambda patch: patch(record.FunctionGraph, "guard", lambda self, *guard: None),
    "a stale size": lambda patch: patch(record.FunctionGraph, "size", lambda self, value, axis, n: n),
    "a stale size of a captured array": lambda patch: patch(
        _compile_trace.CompileGraph, "about", lambda self, x, name: None
    ),
    "a lost write": lambda patch: patch(
        _core,
        "CompiledProgram",
        lambda *args, made=_core.CompiledProgram: made(*args[:8], [], *args[9:]),
    ),
}


@pytest.mark.parametrize("break_it", MUTANTS.values(), ids=MUTANTS)
def test_random_programs_find(target, monkeypatch, break_it):
    assert not any(check(target, seed) for seed in range(20))
    break_it(monkeypatch.setattr)
    reports = (check(target, seed) for seed in range(200))
    found = next(filter(None, reports))
    assert "dovetail fuzz-compile --device sim:0 --seed" in found
    assert found.count("\n    ") <= 6  # lines of the function, made smaller


def test_a_donor_that_is_still_there(target, monkeypatch):
    """What was donated may be used, and the call does not take it."""
    monkeypatch.setattr(_compile_trace, "_donated", lambda *args: [])
    assert failing(target) == {"donated"}


def test_the_wrong_donor(target, monkeypatch):
    """Every array of the arguments is taken."""
    monkeypatch.setattr(
        _compile_trace,
        "_donated",
        lambda graph, arguments, donate, written: [(number, "x") for _, number in arguments.by_array.values()],
    )
    assert "donated" in failing(target)


# ---- compilers of devices ----------------------------------------------------------------------------------------


@pytest.fixture
def conform(tmp_path_factory, tmp_path, monkeypatch):
    library, wrapped = broken_compilers.build(tmp_path_factory)
    monkeypatch.setenv("DOVETAIL_WRAPPED", str(wrapped))
    return partial(broken_devices.conform, library, tmp_path / "results.json")


CASES = (
    "device.compile[groups* or device.compile[capture? or nn.layer_norm[f32*compiled? or logaddexp[f32*compiled?"
)


def test_the_compiler_of_the_simulated_device_passes(conform):
    code, results, printed = conform(None, "--level", "L3", "-k", CASES)
    assert (code, broken_devices.bad_ones(results)) == (0, {}), printed
    assert results["counts"]["pass"] > 5


@pytest.mark.parametrize("fault", broken_compilers.FAULTS)
def test_the_faults_of_a_compiler_are_found(conform, fault):
    """The device's own kernels are right: what is wrong are compiled functions."""
    code, results, printed = conform(fault, "--level", "L3", "-k", CASES)
    bad = broken_devices.bad_ones(results)
    found_by = "device.compile[groups_in_place]" if fault == "in_place" else "device.compile[groups]"
    assert code == 1 and found_by in bad, printed
    assert all("compile" in case for case in bad)
    wrote = [case for case, result in bad.items() if "past the end of its output" in result["message"]]
    assert bool(wrote) == (fault == "past_the_end"), bad


@pytest.mark.parametrize("fault", broken_compilers.CAPTURE_FAULTS)
def test_the_faults_of_replays_are_found(conform, fault):
    """Each call by itself is right: what is wrong are calls that replay a captured one."""
    code, results, printed = conform(fault, "--level", "L3", "-k", CASES)
    assert (code, set(broken_devices.bad_ones(results))) == (1, {"device.compile[capture]"}), printed
