"""Runs one case on a device and judges it. What can kill the process does it here, in a worker."""

from __future__ import annotations

import gc
import math
import time
import traceback
from typing import Any

import numpy as np
from dovetail.schema import registry

from . import oracle
from .cases import Case
from .compare import Verdict, compare
from .device_checks import Declined, Failed
from .inputs import generator, lay_out
from .results import Result, Status
from .target import Target


def execute(case: Case, target: Target, seed: int) -> Result:
    """Never raises: whatever happens is the case's result."""
    begin = time.perf_counter()
    target.fallbacks()
    try:
        status, message, measured = _check(case, target, seed) if case.check else _op(case, target, seed)
        target.synchronize()
    except Exception as error:
        status, message, measured = Status.FAIL, _told(error), {}
    if moved := target.fallbacks():
        status, message = Status.FALLBACK, f"{moved[0]['op']} ran on another device"
    return Result(case.id, status, time.perf_counter() - begin, message, measured)


Outcome = tuple[Status, str, dict[str, Any]]


def _told(error: Exception) -> str:
    """The exception, and where in the suite it came up."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"


def _check(case: Case, target: Target, seed: int) -> Outcome:
    assert case.check
    gc.collect()  # what earlier cases left in cycles is not to be freed in the middle of this one
    try:
        case.check(target, generator(seed, case.id))
    except Declined as why:
        return Status.UNSUPPORTED, str(why), {}
    except Failed as why:
        return Status.FAIL, str(why), {}
    return Status.PASS, "", {}


def _op(case: Case, target: Target, seed: int) -> Outcome:
    assert case.sample and case.dtype
    args, kwargs = case.sample.make(generator(seed, case.id), case.dtype)
    placed: list[tuple[Any, np.ndarray]] = []

    def place(a: np.ndarray, how: str) -> Any:
        placed.append((target.place(a, how), a))
        return placed[-1][0]

    on_device, keywords = lay_out(args, kwargs, case.layout, place)
    if case.sample.error:
        outcome = _must_raise(case, target, on_device, keywords)
    else:
        outcome = _must_answer(case, target, (args, kwargs), (on_device, keywords))
    if outcome[0] is Status.PASS:
        for i, (array, before) in enumerate(placed):
            if target.numpy(array).tobytes() != before.tobytes():
                return Status.FAIL, f"wrote into its operand {i}, which must stay as it is", {}
    return outcome


def _must_raise(case: Case, target: Target, args: tuple, kwargs: dict[str, Any]) -> Outcome:
    assert case.sample and case.sample.error and case.dtype
    expected = case.sample.error
    try:
        result = target.call(case.op, args, kwargs)
        target.numpy(result)
    except Exception as error:
        if isinstance(error, NotImplementedError) and not issubclass(expected, NotImplementedError):
            return _not_implemented(case, target, error)
        if not isinstance(error, expected):
            return Status.FAIL, f"raised {type(error).__name__} ({error}), expected {expected.__name__}", {}
        if len(str(error).split()) < 3:
            return Status.FAIL, f"raised {expected.__name__} without saying why: {str(error)!r}", {}
    else:
        return Status.FAIL, f"was accepted, expected {expected.__name__}", {}
    three = target.numpy(
        target.function("add")(target.asarray(np.ones(3, case.dtype.numpy)), 0 if case.dtype.kind != "f" else 0.0)
    )
    if three.tolist() != [1, 1, 1]:
        return (
            Status.FAIL,
            f"after the {expected.__name__} the device adds wrong: ones + 0 gave {three.tolist()}",
            {},
        )
    return Status.PASS, "", {}


def _not_implemented(case: Case, target: Target, error: Exception) -> Outcome:
    assert case.dtype
    if case.level != "L1" and not target.has_row(case.op, case.dtype):
        return Status.UNSUPPORTED, str(error), {}
    return Status.FAIL, f"not supported: {error}", {}


def _must_answer(case: Case, target: Target, arguments: tuple, on_device: tuple) -> Outcome:
    op = registry[case.op]
    answers = oracle.answers(op, *arguments)
    try:
        _leave_traces(target, sum(a.value.size * a.dtype.itemsize for a in answers))
        result = target.call(case.op, *on_device)
    except NotImplementedError as error:
        return _not_implemented(case, target, error)
    results = result if isinstance(result, tuple) else (result,)
    if len(results) != len(answers):
        return Status.FAIL, f"gave {len(results)} arrays, expected {len(answers)}", {}
    worst = Verdict(True)
    tol = 0.0
    for r, a in zip(results, answers):
        verdict = compare(target.numpy(r), a.value, a.dtype, a.tol, a.scale, signed_zeros=a.signed_zeros)
        if (not verdict.ok, verdict.ulp) >= (not worst.ok, worst.ulp):
            worst, tol = verdict, a.tol
    return (Status.PASS if worst.ok else Status.FAIL), worst.message, _measured(worst, tol)


def _leave_traces(target: Target, size: int) -> None:
    """Fills memory that the output is likely to get: one that is never written must not look right by chance."""
    if 0 < size < 1 << 22:
        target.synchronize()
        target.asarray(np.full(size, 0xA7, np.uint8))


def _measured(verdict: Verdict, tol: float) -> dict[str, Any]:
    found: dict[str, Any] = {"tol": tol, "ulp": None if math.isinf(verdict.ulp) else round(verdict.ulp, 4)}
    if not verdict.ok and verdict.index is not None:
        found |= {"wrong": verdict.wrong, "index": list(verdict.index)}
        found |= {"got": verdict.got, "expected": verdict.expected}
    return found
