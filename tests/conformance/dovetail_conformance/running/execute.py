"""Runs one case on a device. What can kill the process does it here, in a worker."""

from __future__ import annotations

import time
import traceback

from ..cases import Case, Outcome
from ..results import Result, Status
from .target import Target


def execute(case: Case, target: Target, seed: int) -> Result:
    """Never raises: whatever happens is the case's result."""
    begin = time.perf_counter()
    target.fallbacks()
    try:
        outcome = case.run(target, seed)
        target.synchronize()
    except Exception as error:
        outcome = Outcome(Status.FAIL, _told(error))
    if moved := target.fallbacks():
        outcome = outcome._replace(status=Status.FALLBACK, message=f"{moved[0]['op']} ran on another device")
    return Result(case.id, outcome.status, time.perf_counter() - begin, outcome.message, outcome.measured)


def _told(error: Exception) -> str:
    """The exception, and where in the suite it came up."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
