"""One case per op and dtype: calls drawn by hypothesis; a wrong one is shrunk to the simplest that is wrong."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from dovetail.schema import Op, registry
from dovetail.schema import dtypes as dt
from dovetail.schema.dtypes import DType
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers

from ..results import Status
from ..running.target import Target
from . import Case, Outcome
from .call import must_answer, unless_scribbled
from .inputs import generator
from .legal import RULES, Drawing, partners_of
from .operand import Call

EXAMPLES = 40
SHARED = 8  # of them have operands in the same memory, where there are several
SHRINKING = 5.0  # seconds: the failure matters more than its simplest form

SETTINGS = settings(
    database=None,
    deadline=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
    print_blob=False,
)

# Newer versions draw constants from the source of whatever is loaded; here seed and id alone give the calls.
if hasattr(providers, "_get_local_constants"):
    providers._get_local_constants = lambda: providers._local_constants


class Wrong(Exception):
    """What hypothesis looks for."""


@dataclass(slots=True)
class PropertyCase(Case):
    def run(self, target: Target, seed: int) -> Outcome:
        assert self.dtype
        op = registry[self.op]
        available = [d for d in dt.NOT_COMPLEX if target.has_row("astype", d)]
        partners = [d for d in partners_of(op, self.dtype) if d in available]
        return _Search(self, target, op, partners, available).run(int(generator(seed, self.id).integers(1 << 62)))


class _Search:
    """The calls of one case, and what they came to."""

    def __init__(self, case: Case, target: Target, op: Op, partners: list[DType], available: list[DType]):
        assert case.dtype
        self.case, self.target, self.op, self.dtype = case, target, op, case.dtype
        self.partners, self.available = partners, available
        self.passed: dict[str, Any] = {}
        self.unsupported: Outcome | None = None
        self.wrong: tuple[str, Outcome] | None = None  # the last failing call: the simplest when it is over
        self.deadline = 0.0

    def run(self, number: int) -> Outcome:
        shared = SHARED if len(self.op.operands) > 1 else 0
        for sharing, examples in ((False, EXAMPLES - shared), (True, shared)):
            if examples and not self.wrong:
                self.search(number + sharing, sharing, examples)
        if self.wrong is not None:
            call, outcome = self.wrong
            return outcome._replace(message=f"{outcome.message}; in {call}")
        return self.unsupported or Outcome(Status.PASS, "", self.passed)

    def search(self, number: int, sharing: bool, examples: int) -> None:
        @seed(number)
        @settings(SETTINGS, max_examples=examples)
        @given(_calls(self, sharing))
        def run(call: Call) -> None:
            self.check(call)

        try:
            run()
        except Exception:
            if self.wrong is None:  # the suite's own
                raise

    def check(self, call: Call) -> None:
        told = str(call)
        if self.wrong and time.monotonic() > self.deadline and told != self.wrong[0]:
            return  # no more shrinking; the simplest so far is tried once more
        outcome = self.judged(call, told)
        if outcome.status is Status.PASS:
            self.count(outcome.measured)
        elif outcome.status is Status.UNSUPPORTED:
            self.unsupported = outcome
        else:
            self.deadline = self.deadline or time.monotonic() + SHRINKING
            self.wrong = told, outcome
            raise Wrong(told)

    def judged(self, call: Call, told: str) -> Outcome:
        self.target.tell(told)
        try:
            there, placed = call.place(self.target)
            values = {p.name for p in self.op.operands if p.kind == "value"}
            host = {n: self.promoted(a) if n in values else a for n, a in call.host.items()}
            outcome = must_answer(self.case, self.target, call.arguments(host), call.arguments(there))
            return unless_scribbled(outcome, self.target, placed)
        except Exception as error:
            return Outcome(Status.FAIL, f"{type(error).__name__}: {error}")

    def promoted(self, a: Any) -> Any:
        """What the op sees of operands of mixed dtypes."""
        if isinstance(a, list):
            return [self.promoted(x) for x in a]
        if isinstance(a, np.ndarray) and dt.of(a) in self.partners:
            return a.astype(self.dtype.numpy)
        return a

    def count(self, measured: dict[str, Any]) -> None:
        """The worst error of all calls, and the errors of all elements."""
        errors = measured.get("errors")
        before = self.passed.get("errors")
        worst = max(measured["ulp"] or 0.0, self.passed.get("ulp", 0.0))
        self.passed |= {"tol": max(measured["tol"], self.passed.get("tol", 0.0)), "ulp": worst}
        if errors is not None:
            self.passed["errors"] = [a + b for a, b in zip(errors, before, strict=True)] if before else errors


@st.composite
def _calls(draw: st.DrawFn, search: _Search, sharing: bool) -> Call:
    return Drawing(draw, search.op, search.dtype, search.partners, search.available, sharing).call()


def cases(op: Op) -> Iterator[Case]:
    if op.reference is None or op.spec.shape not in RULES:
        return
    for d in op.dtypes:
        yield PropertyCase(f"{op.name}[{d.brief},property]", "L2", op.name, d, quick=False)
