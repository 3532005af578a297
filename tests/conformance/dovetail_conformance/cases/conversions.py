"""Numbers on their way into a dtype: astype between any two, full at the limits of what its dtype holds, iota up to
the last integer that it holds exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from dovetail.schema import Op
from dovetail.schema import dtypes as dt
from dovetail.schema.dtypes import DType
from dovetail.schema.samples import Sample, given

from . import Case
from .samples import sample_case
from .special import Listed, grid, special

LONGEST = 70_001  # for iota: sizes that need more than 16 bits


def _values(source: DType, target: DType) -> np.ndarray:
    """Interesting values of a source dtype for which the conversion to the target is defined."""
    if source.kind != "f":
        return grid(source)
    listed = special(source)
    if target.kind not in "iu":
        return listed
    least, beyond = math.trunc(target.min), 2.0 ** (target.bits - (target.kind == "i"))
    with np.errstate(invalid="ignore"):  # signalling NaNs are among them
        wide = listed.astype(np.float64)
        return listed[(np.trunc(wide) >= least) & (wide < beyond)]


def _of_astype(d: DType) -> Iterator[Sample]:
    """To every dtype; conversions to fp8 and to stored dtypes, which few devices have, are cases of that dtype."""
    if d in dt.STORED:
        for other in dict.fromkeys((dt.READ_AS[d], dt.float64, dt.float16, dt.int32, dt.bool_)):
            yield from _converted(d, other, f"to_{other.brief}")
            yield from _converted(other, d, f"from_{other.brief}")
        yield from _converted(d, d, f"to_{d.brief}")
        return
    for target in dt.NOT_COMPLEX + dt.FLOAT8 * (d in dt.FLOAT8):
        yield from _converted(d, target, f"to_{target.brief}")
    for source in dt.NOT_COMPLEX if d in dt.FLOAT8 else ():
        yield from _converted(source, d, f"from_{source.brief}")


def _converted(source: DType, target: DType, way: str) -> Iterator[Sample]:
    draw = Listed((-1,), None, None, source, values=(lambda d: _values(d, target),))
    yield Sample(f"special_{way}", (draw, target), {})
    if source.kind == target.kind == "f" and source.mant > target.mant:
        yield Sample(f"ties_{way}", (given(_near_ties(source, target), dtype=source), target), {})


def _near_ties(source: DType, target: DType) -> list[float]:
    """Halfway between adjacent numbers of the target, and off it by little: down to the source's last bit."""
    halfway = 1 + np.array([1, 3, 2 ** (target.mant + 1) - 1]) * 2.0 ** -(target.mant + 1)
    off = [step * 2.0**-bits for bits in (min(target.mant + 8, source.mant), source.mant) for step in (-1, 1)]
    near = (halfway[:, None] + [0, *off]).ravel()
    return [*near, *-near]


def _of_full(d: DType) -> Iterator[Sample]:
    limits: dict[str, Any] = {}
    if d in dt.STORED:
        limits = {"largest": d.max, "lowest": d.min} if d.kind == "f" else {"odd": int(d.max), "lowest": int(d.min)}
    elif d.kind == "f":
        limits = {"largest": d.max, "smallest": d.tiny, "lowest": -d.max, "minus_zero": -0.0, "nan": math.nan}
        if d in dt.NARROW:
            limits |= {f"tie{i}": x for i, x in enumerate(_near_ties(dt.float64, d))}
    elif d.kind in "iu":
        limits = {"largest": int(d.max), "lowest": int(d.min), "odd": int(d.max) // 2 + 2}
    for name, value in limits.items():
        yield Sample(name, ((19,), value), {"dtype": d})


def _of_iota(d: DType) -> Iterator[Sample]:
    exact = 2 << d.mant if d.kind == "f" else int(d.max)
    yield Sample("longest", (min(exact, LONGEST), d), {})


SAMPLES = {"astype": _of_astype, "full": _of_full, "iota": _of_iota}


def cases(op: Op) -> Iterator[Case]:
    for d in op.dtypes + (dt.FLOAT8 + dt.STORED) * (op.name in ("astype", "full")):
        for sample in SAMPLES[op.name](d) if op.name in SAMPLES and d.kind != "c" else ():
            yield sample_case(op, d, sample)
