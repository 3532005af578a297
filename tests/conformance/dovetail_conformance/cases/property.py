"""One case per op and dtype: calls drawn from a seed.

Where one is wrong, hypothesis looks for another and shrinks it to the simplest. It draws no call before that, as it
takes many times as long as the calls themselves.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dovetail.schema import Op, registry
from dovetail.schema import dtypes as dt
from dovetail.schema.dtypes import DType
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from hypothesis.internal.conjecture import providers

from ..levels.must_pass import must_pass
from ..results import Status
from ..running.target import Target
from . import Case, Outcome
from .call import must_answer, unless_scribbled
from .choices import Choices, Seeded, Shrinkable, Simplest
from .inputs import EVERYWHERE, generator
from .legal import RULES, Drawing, partners_of
from .operand import Call, Operand

EXAMPLES = 40
SHARED = 8  # that many have operands in the same memory, if there are several
ITERATED = {"square", "lu", "solve", "qr", "eigh", "svd"}  # shape rules of ops that are thousands of kernels a call
OF_ITERATED = 12  # in place of EXAMPLES
SHRINKING = 5.0  # seconds: the failure matters more than its simplest form

SETTINGS = settings(
    max_examples=5 * EXAMPLES,  # until hypothesis, too, has one that is wrong
    database=None,
    deadline=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
    print_blob=False,
)

# Newer versions draw constants from the source of loaded modules; here seed and id alone determine the calls.
if hasattr(providers, "_get_local_constants"):
    providers._get_local_constants = lambda: providers._local_constants


class Wrong(Exception):
    """Ends hypothesis' search: a call is wrong."""


@dataclass(slots=True)
class PropertyCase(Case):
    call_names: frozenset[DType] | None = None  # of the one checked call

    def others(self) -> frozenset[DType]:
        """The dtypes of the checked call; for the whole case those that every call has."""
        assert self.dtype
        if self.call_names is not None:
            return self.call_names
        listed = [dt.by_name[brief] for brief in must_pass().dtypes]
        return _named_in(Drawing(Simplest(), registry[self.op], self.dtype, (), listed).call())

    def run(self, target: Target, seed: int) -> Outcome:
        assert self.dtype
        op = registry[self.op]
        available = [d for d in dt.NOT_COMPLEX + dt.FLOAT8 if target.has_row("astype", d)]
        converts = self.dtype in available  # operands of mixed dtypes become its own
        partners = [d for d in partners_of(op, self.dtype) if d in available] if converts else []
        return _Search(self, target, op, partners, available).run(generator(seed, self.id))


def _named_in(call: Call) -> frozenset[DType]:
    """The dtypes of its operands and attributes."""
    given = [x for a in call.given.values() for x in (a if isinstance(a, list) else [a])]
    operands = {x.dtype for x in given if isinstance(x, Operand)} - EVERYWHERE
    return frozenset(operands | {x for x in given if isinstance(x, DType)})


class _Search:
    """The calls of one case, and their outcomes."""

    def __init__(self, case: PropertyCase, target: Target, op: Op, partners: list[DType], available: list[DType]):
        assert case.dtype
        self.case, self.target, self.op, self.dtype = case, target, op, case.dtype
        self.partners, self.available = partners, available
        self.passed: dict[str, Any] = {}
        self.unsupported: Outcome | None = None
        self.declined: Outcome | None = None  # a call that names a dtype which the device need not have

    def run(self, rng: np.random.Generator) -> Outcome:
        examples = OF_ITERATED if self.op.spec.shape in ITERATED else EXAMPLES
        shared = examples * SHARED // EXAMPLES if len(self.op.operands) > 1 else 0
        for sharing, count in ((False, examples - shared), (True, shared)):
            for k in range(count):
                call = self.draw(Seeded(rng) if k else Simplest(), sharing)
                outcome = self.judged(call)
                if outcome.status is Status.PASS:
                    self.count(outcome.measured)
                elif outcome.status is Status.UNSUPPORTED and self.one(call).further() - {self.dtype}:
                    self.declined = outcome
                elif outcome.status is Status.UNSUPPORTED:
                    self.unsupported = outcome
                else:
                    shown, outcome = self.shrunk(str(call), outcome, int(rng.integers(1 << 62)), sharing)
                    return outcome._replace(message=f"{outcome.message}; in {shown}")
        if self.unsupported:
            return self.unsupported
        return Outcome(Status.PASS, "", self.passed) if self.passed or not self.declined else self.declined

    def one(self, call: Call) -> Case:
        """The case of this call alone."""
        return replace(self.case, call_names=_named_in(call))

    def draw(self, choices: Choices, sharing: bool) -> Call:
        return Drawing(choices, self.op, self.dtype, self.partners, self.available, sharing).call()

    def shrunk(self, shown: str, outcome: Outcome, number: int, sharing: bool) -> tuple[str, Outcome]:
        """The simplest wrong call found in a few seconds, with which hypothesis ends; else the given one."""
        wrong = shown, outcome
        deadline = time.monotonic() + SHRINKING

        @seed(number)
        @SETTINGS
        @given(_calls(self, sharing))
        def search(call: Call) -> None:
            nonlocal wrong
            shown = str(call)
            if time.monotonic() > deadline and shown != wrong[0]:
                return  # no more shrinking; the simplest so far is tried once more
            outcome = self.judged(call)
            if outcome.status not in (Status.PASS, Status.UNSUPPORTED):
                wrong = shown, outcome
                raise Wrong(shown)

        with suppress(Wrong, HypothesisException):  # the latter where a call is wrong at some times only
            search()
        return wrong

    def judged(self, call: Call) -> Outcome:
        self.target.announce(str(call))
        try:
            there, placed = call.place(self.target)
            values = {p.name for p in self.op.operands if p.kind == "value"}
            host = {n: self.promoted(a) if n in values else a for n, a in call.host.items()}
            outcome = must_answer(self.one(call), self.target, call.arguments(host), call.arguments(there))
            return unless_scribbled(outcome, self.target, placed)
        except Exception as error:
            return Outcome(Status.FAIL, f"{type(error).__name__}: {error}")

    def promoted(self, a: Any) -> Any:
        """Operands of mixed dtypes, converted as the op converts them."""
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
    return search.draw(Shrinkable(draw), sharing)


def cases(op: Op) -> Iterator[Case]:
    if op.reference is None or op.spec.shape not in RULES:
        return
    for d in op.dtypes:
        yield PropertyCase(f"{op.name}[{d.brief},property]", "L2", op.name, d, quick=False)
