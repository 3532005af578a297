"""Dtypes that an op's own cases leave out because few devices have them. A device that declares one must pass its
cases; where only a decomposition serves it, that must work or raise NotImplementedError."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dovetail.schema import Op
from dovetail.schema import dtypes as dt
from dovetail.schema.dtypes import DType
from dovetail.schema.samples import Draw, Sample

from . import Case
from .inputs import layouts
from .samples import sample_case

MOVES = frozenset({
    "copy", "full", "take", "take_along_axis", "scatter", "where", "equal", "not_equal",
    "concat", "stack", "repeat", "tile", "flip", "roll", "pad",
})  # fmt: skip
CHOICES = frozenset({"argmax", "argmin"})


def _dtypes(op: Op) -> tuple[DType, ...]:
    if op.name in CHOICES:
        return dt.BOOL
    return dt.COMPLEX * op.spec.of_complex + dt.FLOAT8 * (op.name in MOVES)


def _fits(sample: Sample) -> bool:
    given = (*sample.args, *sample.kwargs.values())
    return not (sample.error or sample.dtypes or any(isinstance(a, DType) for a in given))


def _finite(sample: Sample) -> Sample:
    """Products of infinite complex numbers have no one answer: C and Fortran differ. What functions give there is a
    table's: tests/unit/test_complex.py."""

    def bounded(a: Any) -> Any:
        return a._replace(low=-4.0, high=4.0) if isinstance(a, Draw) and a.low is None else a

    return sample._replace(args=tuple(map(bounded, sample.args)))


def cases(op: Op) -> Iterator[Case]:
    samples = [s for s in op.cases() if _fits(s)]
    for d in _dtypes(op):
        for i, sample in enumerate(samples if op.name in MOVES else map(_finite, samples)):
            others = layouts(sample, op.spec.shape) if i == 0 else ()
            for layout in ("", *others):
                yield sample_case(op, d, sample, layout=layout)
