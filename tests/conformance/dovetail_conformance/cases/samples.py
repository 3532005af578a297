"""One case per sample of an op's declaration, dtype and layout of the operands."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from dovetail.schema import Op, registry
from dovetail.schema.samples import Sample

from ..judging import oracle
from ..judging.compare import Verdict, compare
from ..levels.must_pass import level_of
from ..results import Status
from ..running.target import Target
from . import Case, Outcome
from .inputs import generator, lay_out, layouts

LAID_OUT = 3  # samples of an op and dtype that come in other layouts too; --quick takes the first


@dataclass(slots=True, kw_only=True)
class SampleCase(Case):
    sample: Sample
    layout: str = ""

    def run(self, target: Target, seed: int) -> Outcome:
        assert self.dtype
        args, kwargs = self.sample.make(generator(seed, self.id), self.dtype)
        placed: list[tuple[Any, np.ndarray]] = []

        def place(a: np.ndarray, how: str) -> Any:
            placed.append((target.place(a, how), a))
            return placed[-1][0]

        on_device = lay_out(args, kwargs, self.layout, place)
        if self.sample.error:
            outcome = _must_raise(self, target, *on_device)
        else:
            outcome = _must_answer(self, target, (args, kwargs), on_device)
        if outcome.status is Status.PASS:
            for i, (array, before) in enumerate(placed):
                if target.numpy(array).tobytes() != before.tobytes():
                    return Outcome(Status.FAIL, f"wrote into its operand {i}, which must stay as it is")
        return outcome


def cases(op: Op) -> Iterator[Case]:
    """None where the op has no oracle."""
    if op.reference is None:
        return
    samples = [(sample, layouts(sample, op.spec.shape)) for sample in op.cases()]
    for d in op.dtypes:
        left = LAID_OUT
        level = level_of(op.name, d)
        for sample, laid_out in samples:
            if sample.dtypes is not None and d not in sample.dtypes:
                continue
            yield SampleCase(f"{op.name}[{d.brief},{sample.id}]", level, op.name, d, sample=sample)
            others = laid_out if left else ()
            for layout in others:
                id, quick = f"{op.name}[{d.brief},{sample.id},layout={layout}]", left == LAID_OUT
                yield SampleCase(id, level, op.name, d, sample=sample, layout=layout, quick=quick)
            left -= bool(others)


def _must_raise(case: SampleCase, target: Target, args: tuple, kwargs: dict[str, Any]) -> Outcome:
    assert case.sample.error and case.dtype
    expected = case.sample.error
    try:
        result = target.call(case.op, args, kwargs)
        target.numpy(result)
    except Exception as error:
        if isinstance(error, NotImplementedError) and not issubclass(expected, NotImplementedError):
            return _not_implemented(case, target, error)
        if not isinstance(error, expected):
            return Outcome(Status.FAIL, f"raised {type(error).__name__} ({error}), expected {expected.__name__}")
        if len(str(error).split()) < 3:
            return Outcome(Status.FAIL, f"raised {expected.__name__} without saying why: {str(error)!r}")
    else:
        return Outcome(Status.FAIL, f"was accepted, expected {expected.__name__}")
    three = target.numpy(
        target.function("add")(target.asarray(np.ones(3, case.dtype.numpy)), 0 if case.dtype.kind != "f" else 0.0)
    )
    if three.tolist() != [1, 1, 1]:
        told = f"after the {expected.__name__} the device adds wrong: ones + 0 gave {three.tolist()}"
        return Outcome(Status.FAIL, told)
    return Outcome(Status.PASS)


def _not_implemented(case: SampleCase, target: Target, error: Exception) -> Outcome:
    assert case.dtype
    if case.level != "L1" and not target.has_row(case.op, case.dtype):
        return Outcome(Status.UNSUPPORTED, str(error))
    return Outcome(Status.FAIL, f"not supported: {error}")


def _must_answer(case: SampleCase, target: Target, arguments: tuple, on_device: tuple) -> Outcome:
    op = registry[case.op]
    answers = oracle.answers(op, *arguments)
    try:
        result = target.call(case.op, *on_device)
    except NotImplementedError as error:
        return _not_implemented(case, target, error)
    results = result if isinstance(result, tuple) else (result,)
    if len(results) != len(answers):
        return Outcome(Status.FAIL, f"gave {len(results)} arrays, expected {len(answers)}")
    worst = Verdict(True)
    tol = 0.0
    for r, a in zip(results, answers):
        verdict = compare(target.numpy(r), a.value, a.dtype, a.tol, a.scale, signed_zeros=a.signed_zeros)
        if (not verdict.ok, verdict.ulp) >= (not worst.ok, worst.ulp):
            worst, tol = verdict, a.tol
    return Outcome(Status.PASS if worst.ok else Status.FAIL, worst.message, _measured(worst, tol))


def _measured(verdict: Verdict, tol: float) -> dict[str, Any]:
    found: dict[str, Any] = {"tol": tol, "ulp": None if math.isinf(verdict.ulp) else round(verdict.ulp, 4)}
    if not verdict.ok and verdict.index is not None:
        found |= {"wrong": verdict.wrong, "index": list(verdict.index)}
        found |= {"got": verdict.got, "expected": verdict.expected}
    return found
