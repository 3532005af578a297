"""Compares one case of results.json with itself and with the declaration of its op."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from dovetail.schema import registry
from dovetail.schema.dtypes import DType

from ..cases import Case
from ..cases.determinism import NOT_DECLARED
from ..judging import oracle
from ..judging.histogram import EDGES
from ..levels.standing import PERFORMANCE
from ..results import BAD, Status

ROUNDING = 5e-5  # results.json has four digits of an error
OF_FAILURES = ("index", "got", "expected", "replay")


def _tolerance(op: str, d: DType) -> float:
    """The widest dtype of any result: not all results of a case need be of its own dtype."""
    return max(registry[op].spec.tol, oracle.tolerance(registry[op], d))


def contradiction(case: Case, entry: dict[str, Any], kernels: dict[str, list[str]]) -> str | None:
    """The first contradiction in a case of results.json; None where there is none."""
    status = Status(entry["status"])
    if status is Status.NOT_RUN:
        return "was not run"
    tol, ulp = entry.get("tol"), entry.get("ulp")
    if case.op and case.dtype and tol is not None and tol > (allowed := _tolerance(case.op, case.dtype)):
        return f"allows {tol:g} ulp where the op's tolerance is {allowed:g}"
    if status is Status.PASS:
        return _of_pass(entry, tol, ulp)
    if not entry.get("message"):
        return f"is {status} without saying why"
    needed = {d.brief for d in case.needed()} if case.level != PERFORMANCE else set()
    if status is Status.UNSUPPORTED and needed and needed <= {*kernels.get(case.op, ())}:
        return "is unsupported, but the device declares a kernel for it"
    if status in BAD and ulp is not None and tol is not None and ulp <= tol and entry.get("wrong") == 0:
        return f"is {status}, but nothing in it is wrong"
    return None


def _of_pass(entry: dict[str, Any], tol: float | None, ulp: float | None) -> str | None:
    if entry.get("message", NOT_DECLARED) != NOT_DECLARED:
        return f"passed, but its message is that of a failure: {entry['message'].splitlines()[0]!r}"
    if given := [key for key in OF_FAILURES if key in entry]:
        return f"passed, but has {given[0]!r} of a failure"
    if entry.get("wrong"):
        return f"passed with {entry['wrong']} wrong elements"
    if (tol is None) != (ulp is None):
        return "passed without saying how exactly"
    if tol is None or ulp is None:
        return None
    if ulp > tol + ROUNDING:
        return f"passed with an error of {ulp:g} ulp where {tol:g} are allowed"
    return _of_errors(entry["errors"], ulp) if "errors" in entry else None


def _of_errors(errors: list[int], ulp: float) -> str | None:
    """The worst error is in the last bin that holds any."""
    worst = max((i for i, n in enumerate(errors) if n), default=0)
    if not bisect_left(EDGES, ulp - ROUNDING) <= worst <= bisect_left(EDGES, ulp + ROUNDING):
        return f"has a worst error of {ulp:g} ulp, but its counts of errors say another"
    return None
