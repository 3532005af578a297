"""Kernels that declare it (DVT_K_BITWISE_DETERMINISTIC) give the same bits every time: again, on other numbers of
the host's threads, and while other calls are under way. Operands stay where they are: that may make a difference.

What is not declared is not asked, and holds by that; equal bits without the flag are no claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from dovetail.schema import Op, registry
from dovetail.schema import dtypes as dt
from dovetail.schema.dtypes import DType
from dovetail.schema.samples import Sample
from dovetail.schema.workloads import Maker, workloads

from ..levels.must_pass import level_of
from ..results import Status
from ..running.target import Target
from . import Case, Outcome
from .inputs import EVERYWHERE, draws, generator, lay_out, named_in

AGAIN, AT_ONCE, CALLERS = 2, 4, 2  # consecutive calls; concurrent calls, and the number of threads
THREADS = (1, 2, 3, 8)
# Elements, enough for kernels to share them out: where each is a result of its own, where many become one, and
# where each is used many times.
ELEMENTWISE, REDUCING, PRODUCT = 1 << 16, 1 << 18, 1 << 14

NOT_DECLARED = "not declared deterministic"  # the only message of a case that passes

Call = tuple[str, tuple, dict[str, Any]]  # name, args, kwargs


@dataclass(slots=True, kw_only=True)
class DeterminismCase(Case):
    def run(self, target: Target, seed: int) -> Outcome:
        assert self.dtype
        if not target.is_deterministic(self.op, self.dtype):
            return Outcome(Status.PASS, NOT_DECLARED)
        for name, args, kwargs in self.calls(generator(seed, self.id)):
            args, kwargs = lay_out(args, kwargs, "", target.place)
            try:
                differs = _differs(target, lambda: _bits(target, self.op, args, kwargs))  # noqa: B023
            except NotImplementedError as error:
                return self.refused(target, error)
            if differs:
                return Outcome(Status.FAIL, f"declared deterministic, but {name} {differs}")
        return Outcome(Status.PASS)

    def others(self) -> frozenset[DType]:
        assert self.dtype
        op = registry[self.op]
        if not workloads(op):
            sample = self.largest()
            return named_in(sample) if sample else frozenset()
        calls = [make(Maker(1, self.dtype, np.random.default_rng(0))) for make in workloads(op).values()]
        return frozenset(dt.of(a) for work in calls for a in work.args if isinstance(a, np.ndarray)) - EVERYWHERE

    def calls(self, rng: np.random.Generator) -> Iterator[Call]:
        """Large ones, where the op has any; else the largest of its samples."""
        assert self.dtype
        op = registry[self.op]
        elementwise = op.spec.shape in ("same", "broadcast")
        for make in [*workloads(op).values()][: 1 if elementwise else None]:
            work = make(Maker(PRODUCT, self.dtype, rng))
            if work.flops < 64 * PRODUCT:
                work = make(Maker(ELEMENTWISE if elementwise else REDUCING, self.dtype, rng))
            yield work.label, work.args, work.kwargs
        if not workloads(op):
            sample = self.largest()
            if sample:
                yield sample.id, *sample.make(rng, self.dtype)

    def largest(self) -> Sample | None:
        """The sample with most elements."""
        samples = registry[self.op].cases()
        fitting = [s for s in samples if not s.error and (s.dtypes is None or self.dtype in s.dtypes)]
        return max(fitting, key=_elements, default=None)


def cases(op: Op) -> Iterator[Case]:
    if op.core or op.spec.view:
        return  # no kernel is called
    for d in op.dtypes:
        id = f"{op.name}[{d.brief},determinism]"
        yield DeterminismCase(id, level_of(op.name, d), op.name, d, quick=d.brief == "f32")


def _elements(sample: Sample) -> int:
    return sum(int(np.prod(draw.shape)) for draw in draws(sample))


def _bits(target: Target, op: str, args: tuple, kwargs: dict[str, Any]) -> list[np.ndarray]:
    result = target.call(op, args, kwargs)
    return [target.numpy(r) for r in (result if isinstance(result, tuple) else (result,))]


def _differs(target: Target, call: Callable[[], list[np.ndarray]]) -> str:
    """How the bits of a later call differ from the first one's; "" if they do not."""
    first = call()
    for _ in range(AGAIN):
        if where := _first_difference(first, call()):
            return f"gave other bits when it was called again: {where}"
    for n in THREADS:
        with target.threads(n):
            if where := _first_difference(first, call()):
                return f"gave other bits on {n} of the host's threads: {where}"
    with ThreadPoolExecutor(CALLERS) as callers:
        for found in callers.map(lambda _: call(), range(AT_ONCE)):
            if where := _first_difference(first, found):
                return f"gave other bits while other calls were under way: {where}"
    return ""


def _first_difference(first: list[np.ndarray], other: list[np.ndarray]) -> str:
    for a, b in zip(first, other, strict=True):
        if a.tobytes() == b.tobytes():
            continue
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{b.dtype.name} of shape {b.shape}, before {a.dtype.name} of {a.shape}"
        bytes_of = [np.ascontiguousarray(x).reshape(-1).view(np.uint8).reshape(a.size, -1) for x in (a, b)]
        wrong = np.nonzero((bytes_of[0] != bytes_of[1]).any(axis=1))[0]
        at = np.unravel_index(int(wrong[0]), a.shape)
        place = f"at {tuple(int(i) for i in at)}: " if at else ""
        return f"{wrong.size} of {a.size} elements; {place}{a[at]!s}, then {b[at]!s}"
    return ""
