"""Elementwise ops of one operand on every number that float16 and bfloat16 have."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from dovetail.schema import Op
from dovetail.schema import dtypes as dt
from dovetail.schema.dtypes import DType
from dovetail.schema.samples import Draw, Sample

from ..levels.must_pass import level_of
from . import Case
from .inputs import has_one_operand
from .samples import sample_case


class EveryNumber(Draw):
    """All bit patterns of a half, NaNs too."""

    def make(self, rng: np.random.Generator, dtype: DType) -> np.ndarray:
        return np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)


EVERY = Sample("all", (EveryNumber((1 << 16,)),), {})


def cases(op: Op) -> Iterator[Case]:
    if op.reference is None or not has_one_operand(op):
        return
    for d in op.dtypes:
        if d in dt.HALVES:
            level = level_of(op.name, d)
            yield sample_case(op, d, EVERY, level=level)
