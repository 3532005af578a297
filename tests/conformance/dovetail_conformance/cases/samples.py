"""One case per sample of an op's declaration, dtype and layout of the operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from dovetail.schema import Op, registry
from dovetail.schema.dtypes import DType
from dovetail.schema.samples import Sample

from ..levels.must_pass import level_of
from ..running.target import Target
from . import Case, Outcome
from .call import must_answer, must_raise, unless_scribbled
from .described import described
from .inputs import generator, lay_out, layouts, named_in

LAID_OUT = 3  # samples of an op and dtype that come in other layouts too; --quick takes the first


@dataclass(slots=True, kw_only=True)
class SampleCase(Case):
    sample: Sample
    layout: str = ""

    def run(self, target: Target, seed: int) -> Outcome:
        args, kwargs = self._arguments(seed)
        target.announce(described(registry[self.op], args, kwargs, self.layout))
        placed: list[tuple[Any, np.ndarray]] = []

        def place(a: np.ndarray, how: str) -> Any:
            placed.append((target.place(a, how), a))
            return placed[-1][0]

        on_device = lay_out(args, kwargs, self.layout, place)
        if self.sample.error:
            outcome = must_raise(self, self.sample.error, target, *on_device)
        else:
            outcome = must_answer(self, target, (args, kwargs), on_device)
        return unless_scribbled(outcome, target, placed)

    def others(self) -> frozenset[DType]:
        return named_in(self.sample)

    def call(self, seed: int, index: Sequence[int] = ()) -> str:
        args, kwargs = self._arguments(seed)
        return described(registry[self.op], args, kwargs, self.layout, index)

    def _arguments(self, seed: int) -> tuple[tuple, dict[str, Any]]:
        assert self.dtype
        return self.sample.make(generator(seed, self.id), self.dtype)


def sample_case(
    op: Op, d: DType, sample: Sample, *, level: str = "L2", layout: str = "", quick: bool = False
) -> SampleCase:
    """The case of that name; other families only run it in whole runs of L2, unless they override that."""
    where = f",layout={layout}" if layout else ""
    id = f"{op.name}[{d.brief},{sample.id}{where}]"
    return SampleCase(id, level, op.name, d, sample=sample, layout=layout, quick=quick)


def cases(op: Op) -> Iterator[Case]:
    """None where the op has no oracle."""
    if op.reference is None:
        return
    samples = [(sample, layouts(sample, op.spec.shape)) for sample in op.cases()]
    for d in op.dtypes:
        left = LAID_OUT
        for sample, laid_out in samples:
            if sample.dtypes is not None and d not in sample.dtypes:
                continue
            named = [a for a in (*sample.args, *sample.kwargs.values()) if isinstance(a, DType)]
            level = level_of(op.name, d, named)
            yield sample_case(op, d, sample, level=level, quick=True)
            others = laid_out if left else ()
            for layout in others:
                yield sample_case(op, d, sample, level=level, layout=layout, quick=left == LAID_OUT)
            left -= bool(others)
