"""One checked call of an op on the device: shared by all families that call ops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from dovetail.schema import dtypes as dt
from dovetail.schema import registry

from ..judging import oracle
from ..judging.compare import Verdict, compare
from ..results import Status
from ..running.target import Target
from . import Case, Outcome

# The host has an operand packed for the second call that gets it; the one after that finds it packed.
PACKED_CALLS = 2


def must_raise(
    case: Case, expected: type[Exception], target: Target, args: tuple, kwargs: dict[str, Any]
) -> Outcome:
    """The call must raise the exception, with a message, and the device must still work."""
    assert case.dtype
    try:
        result = target.call(case.op, args, kwargs)
        target.numpy(result)
    except Exception as error:
        if isinstance(error, NotImplementedError) and not issubclass(expected, NotImplementedError):
            return case.refused(target, error)
        if not isinstance(error, expected):
            return Outcome(Status.FAIL, f"raised {type(error).__name__} ({error}), expected {expected.__name__}")
        if len(str(error).split()) < 3:
            return Outcome(Status.FAIL, f"raised {expected.__name__} without saying why: {str(error)!r}")
    else:
        return Outcome(Status.FAIL, f"was accepted, expected {expected.__name__}")
    three = target.numpy(target.function("add")(target.asarray(np.ones(3, target.float)), 0.0))
    if three.tolist() != [1, 1, 1]:
        message = f"after the {expected.__name__} the device adds wrong: ones + 0 gave {three.tolist()}"
        return Outcome(Status.FAIL, message)
    return Outcome(Status.PASS)


def must_answer(case: Case, target: Target, host: tuple, on_device: tuple) -> Outcome:
    """The call must return the oracle's result; `host` and `on_device` are its (args, kwargs) there."""
    assert case.dtype
    outcome = _answer(case, target, host, on_device)
    for _ in range(PACKED_CALLS if target.packs(case.op, case.dtype) else 0):
        if outcome.status is not Status.PASS:
            break
        outcome = _answer(case, target, host, on_device)
        if outcome.status is Status.FAIL:
            outcome = outcome._replace(message=f"called again, with packed operands: {outcome.message}")
    return outcome


def _answer(case: Case, target: Target, host: tuple, on_device: tuple) -> Outcome:
    assert case.dtype
    op = registry[case.op]
    answers = _promised(case, target, oracle.answers(op, *host))
    try:
        result = target.call(case.op, *on_device)
    except NotImplementedError as error:
        return case.refused(target, error)
    results = result if isinstance(result, tuple) else (result,)
    if len(results) != len(answers):
        return Outcome(Status.FAIL, f"gave {len(results)} arrays, expected {len(answers)}")
    got = [target.numpy(r) for r in results]
    flushes = target.flushes(case.op, case.dtype)
    outcome = _judged(got, answers, flushes)
    if flushes and outcome.status is not Status.PASS:  # its operands too, some or all of them?
        again = _judged(got, answers, flushes, oracle.answers(op, *_flushed(host)))
        return again if again.status is Status.PASS else outcome
    return outcome


def _promised(case: Case, target: Target, answers: list[oracle.Answer]) -> list[oracle.Answer]:
    """A kernel that declares a tighter error than the op is held to it."""
    assert case.dtype
    return [a._replace(tol=target.promised(case.op, case.dtype, a.tol)) for a in answers]


def _flushed(a: Any) -> Any:
    """With zeros for subnormal numbers."""
    if isinstance(a, (tuple, list)):
        return type(a)(map(_flushed, a))
    if isinstance(a, dict):
        return {name: _flushed(x) for name, x in a.items()}
    if isinstance(a, np.ndarray) and dt.of(a).kind == "f":
        return np.where(np.abs(a) < a.dtype.type(dt.of(a).tiny), np.copysign(a.dtype.type(0), a), a)
    return a


def _judged(
    got: list[np.ndarray],
    answers: list[oracle.Answer],
    flushes: bool,
    flushed: list[oracle.Answer] | None = None,
) -> Outcome:
    worst, worst_tol, errors = Verdict(True), 0.0, None
    for i, (r, a) in enumerate(zip(got, answers, strict=True)):
        also = (flushed[i].value, flushed[i].scale) if flushed else None
        verdict = compare(
            r, a.value, a.dtype, a.tol, a.scale, signed_zeros=a.signed_zeros, flushes=flushes, flushed=also
        )
        if verdict.errors is not None:
            errors = verdict.errors if errors is None else errors + verdict.errors
        if (not verdict.ok, verdict.ulp) >= (not worst.ok, worst.ulp):
            worst, worst_tol = verdict, a.tol
    measured = _measured(worst, worst_tol)
    if errors is not None:
        measured["errors"] = errors.tolist()
    return Outcome(Status.PASS if worst.ok else Status.FAIL, worst.message, measured)


def _measured(verdict: Verdict, tol: float) -> dict[str, Any]:
    found: dict[str, Any] = {"tol": tol, "ulp": None if math.isinf(verdict.ulp) else round(verdict.ulp, 4)}
    if not verdict.ok and verdict.index is not None:
        found |= {"wrong": verdict.wrong, "index": list(verdict.index)}
        found |= {"got": verdict.got, "expected": verdict.expected}
    return found


def unless_scribbled(outcome: Outcome, target: Target, placed: list[tuple[Any, np.ndarray]]) -> Outcome:
    """A call that is right has left the arrays that it was given as they were."""
    if outcome.status is Status.PASS:
        for i, (array, before) in enumerate(placed):
            if target.numpy(array).tobytes() != before.tobytes():
                return Outcome(Status.FAIL, f"wrote into its operand {i}, which must stay as it is")
    return outcome
