"""L3: every sample of every op within a compiled function, and the same function for other sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dovetail.schema import Op
from dovetail.schema.samples import Draw, Sample

from ..results import Status
from ..running.target import Target
from . import Outcome
from .inputs import draws
from .samples import SampleCase

LEVEL = "L3"
CALLS = 2  # the first one traces, the next ones find its program
OF_ELEMENTS = {("pow", "negative_power")}  # refused in eager calls for what the exponent's elements are


class Compiling:
    """A target whose calls go through one compiled function; everything else is the target's own."""

    def __init__(self, target: Target):
        self._target = target
        self._compiled: dict[Any, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def call(self, op: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Arrays and floats are arguments of the compiled function, the rest its own."""
        given: list[Any] = []
        form = [_without_arrays(x, given) for x in args], {k: _without_arrays(x, given) for k, x in kwargs.items()}
        key = op, repr(form)
        if key not in self._compiled:

            def function(*given: Any) -> Any:
                rest = iter(given)
                made = [_with_arrays(x, rest) for x in form[0]]
                return self._target.call(op, tuple(made), {k: _with_arrays(x, rest) for k, x in form[1].items()})

            self._compiled[key] = self.api.compile(function)
        return self._compiled[key](*given)


_ARRAY = type("Given", (), {"__repr__": lambda self: "GIVEN"})()


def _without_arrays(x: Any, given: list[Any]) -> Any:
    if isinstance(x, list):
        return [_without_arrays(v, given) for v in x]
    if hasattr(x, "to_device") or type(x) is float:
        given.append(x)
        return _ARRAY
    return x


def _with_arrays(x: Any, given: Iterator[Any]) -> Any:
    if isinstance(x, list):
        return [_with_arrays(v, given) for v in x]
    return next(given) if x is _ARRAY else x


@dataclass(slots=True, kw_only=True)
class CompiledCase(SampleCase):
    others_of_op: tuple[Sample, ...] = ()  # further samples, of other sizes, for the same compiled function

    def run(self, target: Target, seed: int) -> Outcome:
        compiling = Compiling(target)
        outcome = self._of(self.sample, compiling, seed)
        for sample in (*self.others_of_op, *(self.sample,) * (CALLS - 1)):
            if outcome.status is not Status.PASS:
                break
            outcome = self._of(sample, compiling, seed)
        return outcome

    def _of(self, sample: Sample, compiling: Any, seed: int) -> Outcome:
        case = SampleCase(self.id, self.level, self.op, self.dtype, sample=sample)
        outcome = case.run(compiling, seed)
        if outcome.status is Status.FAIL:
            return outcome._replace(message=f"in a compiled function, with sample {sample.id}: {outcome.message}")
        return outcome


def cases(op: Op) -> Iterator[CompiledCase]:
    """None where the op has no oracle."""
    if op.reference is None:
        return
    for d in op.dtypes:
        fitting = [s for s in op.cases() if s.dtypes is None or d in s.dtypes]
        for sample in fitting:
            if (op.name, sample.id) not in OF_ELEMENTS:
                yield _case(op, d, sample, f"{sample.id},compiled")
        for first, others in _of_other_sizes([s for s in fitting if not s.error]):
            yield _case(op, d, first, "compiled,sizes", others)
            break


def _case(op: Op, d: Any, sample: Sample, name: str, others: tuple[Sample, ...] = ()) -> CompiledCase:
    return CompiledCase(
        f"{op.name}[{d.brief},{name}]", LEVEL, op.name, d, sample=sample, quick=False, others_of_op=others
    )


def _of_other_sizes(samples: list[Sample]) -> Iterator[tuple[Sample, tuple[Sample, ...]]]:
    """Samples of the same call but for the sizes of its arrays, a call with most of them first."""
    by_form: dict[str, list[Sample]] = {}
    for sample in samples:
        by_form.setdefault(_form(sample), []).append(sample)
    for same in sorted(by_form.values(), key=len, reverse=True):
        if len({tuple(d.shape for d in draws(sample)) for sample in same}) > 1:
            yield same[0], tuple(same[1:])


def _form(sample: Sample) -> str:
    def form(x: Any) -> Any:
        if isinstance(x, list):
            return [form(v) for v in x]
        return ("array", len(x.shape), x.dtype and x.dtype.name) if isinstance(x, Draw) else x

    return repr(([form(x) for x in sample.args], {k: form(x) for k, x in sample.kwargs.items()}))
