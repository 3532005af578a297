"""Runs one case on a device, in a worker: a crash ends that process alone."""

from __future__ import annotations

import time
import traceback

from ..cases import Case, Outcome
from ..results import BAD, Result, Status
from . import float_mode
from .target import Target


def execute(case: Case, target: Target, seed: int) -> Result:
    """Never raises: every exception becomes the case's result."""
    begin = time.perf_counter()
    usual = float_mode.unusual()
    target.fallbacks()
    target.guard(case.guarded)
    try:
        outcome = case.run(target, seed)
        target.synchronize()
        outcome = _unless_overrun(outcome, case, target.overruns())
    except Exception as error:
        outcome = Outcome(Status.FAIL, _described(error))
    if (left := float_mode.unusual()) != usual:
        text = f"left the host's thread in another floating-point mode: {left or 'the default one'}"
        outcome = outcome._replace(status=Status.FAIL, message="; ".join(filter(None, [text, outcome.message])))
    if moved := target.fallbacks():
        outcome = outcome._replace(status=Status.FALLBACK, message=f"{moved[0]['op']} ran on another device")
    seconds = time.perf_counter() - begin
    if outcome.status in BAD and (call := case.call(seed, outcome.measured.get("index", ()))):
        outcome = outcome._replace(message=f"{outcome.message}\nin {call}")
    return Result(case.id, outcome.status, seconds, outcome.message, outcome.measured)


def _unless_overrun(outcome: Outcome, case: Case, overruns: list[tuple[str, str]]) -> Outcome:
    """A write next to an output is reported first: it may be why the rest is wrong."""
    if not overruns:
        return outcome
    op, text = overruns[0]
    text = text.removeprefix(f"[{case.op}] ") if op == case.op else text
    return outcome._replace(status=Status.FAIL, message="; ".join(filter(None, [text, outcome.message])))


def _described(error: Exception) -> str:
    """The exception, and where in the suite it came up."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
