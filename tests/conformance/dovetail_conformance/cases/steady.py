"""Nothing stays behind: an op that is called again and again leaves the device and the process as they were.

A leak grows with every batch of calls; what a process keeps for later grows once. The least growth of several
batches is what counts, and a second look must find it too.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import psutil
from dovetail.schema import Op
from dovetail.schema.dtypes import DType
from dovetail.schema.samples import Sample

from ..levels.must_pass import level_of, must_pass
from ..results import Status
from ..running.target import Target
from . import Case, Outcome
from .inputs import draws, generator, lay_out, named_in

BATCHES = 4
BATCH_SECONDS = 0.015
MOST_CALLS, LEAST_CALLS = 1024, 32  # of a batch
FEW_CALLS, LONG = 4, 0.25  # so few where LEAST_CALLS take longer than that, in seconds
ELEMENTS = 1 << 14  # samples of about this size are preferred: their leaks are visible


class Use(NamedTuple):
    """Resources in use, in bytes or counts; None if the number is unknown."""

    arrays: int
    device: int | None
    heap: int | None
    process: int
    files: int
    threads: int


# By how much a batch may grow where nothing stays: pages, and memory that others use at the same time.
SLACK = {"arrays": 0, "device": 1 << 18, "heap": 1 << 14, "process": 1 << 18, "files": 0, "threads": 0}
NAMES = {
    "arrays": "bytes of the pool",
    "device": "bytes of the device's memory",
    "heap": "bytes of the process's heap",
    "process": "bytes of the process's memory",
    "files": "open files",
    "threads": "threads",
}


@dataclass(slots=True, kw_only=True)
class SteadyCase(Case):
    guarded = False
    sample: Sample

    def run(self, target: Target, seed: int) -> Outcome:
        assert self.dtype
        arguments = self.sample.make(generator(seed, self.id), self.dtype)
        args, kwargs = lay_out(*arguments, "", target.place)

        def call(times: int) -> None:
            for _ in range(times):
                target.call(self.op, args, kwargs)

        try:
            call(1)
        except NotImplementedError as error:
            return self.refused(target, error)
        with target.nothing_kept():
            calls = _calls_of_a_batch(target, call)
            measured = {"calls": (BATCHES + 1) * calls}
            for _ in range(3):
                leaks = _growth(target, call, calls)
                if not leaks:
                    return Outcome(Status.PASS, measured=measured)
        grown = ", ".join(f"{n} {NAMES[what]}" for what, n in leaks.items())
        return Outcome(Status.FAIL, f"at least {grown} are left behind by every {calls} calls", measured)

    def others(self) -> frozenset[DType]:
        return named_in(self.sample)


def cases(op: Op) -> Iterator[Case]:
    """One case of each op: of the first dtype in the must-pass list that it has, else of its own first."""
    order = {brief: i for i, brief in enumerate(must_pass().dtypes)}
    for d in sorted(op.dtypes, key=lambda d: order.get(d.brief, len(order))):
        fitting = [s for s in op.cases() if not s.error and (s.dtypes is None or d in s.dtypes)]
        if fitting:
            sample = min(fitting, key=_distance)
            id = f"{op.name}[{d.brief},steady]"
            yield SteadyCase(id, level_of(op.name, d), op.name, d, sample=sample, quick=False)
            return


def _distance(sample: Sample) -> float:
    """From the size that is preferred, in octaves."""
    size = max((int(np.prod(d.shape)) for d in draws(sample)), default=1)
    return abs(np.log2(max(size, 1) / ELEMENTS))


def _calls_of_a_batch(target: Target, call: Callable[[int], None]) -> int:
    if _seconds(target, call, FEW_CALLS) * LEAST_CALLS > LONG:
        return FEW_CALLS
    call(LEAST_CALLS)
    seconds = _seconds(target, call, LEAST_CALLS)
    return int(min(max(BATCH_SECONDS / seconds, LEAST_CALLS), MOST_CALLS))


def _seconds(target: Target, call: Callable[[int], None], calls: int) -> float:
    """Of one of so many calls."""
    target.synchronize()
    begin = time.perf_counter()
    call(calls)
    target.synchronize()
    return (time.perf_counter() - begin) / calls


def _use(target: Target, process: psutil.Process) -> Use:
    """With all caches emptied: memory that the pool allocates afterwards is new."""
    target.synchronize()
    target.api.memory.empty_cache(target.device)
    target.synchronize()
    properties = target.device.properties
    stats = target.api.memory.stats(target.device)
    own_memory = "mem_free" in properties and not properties["host_mapped"]
    return Use(
        arrays=stats["in_use"],
        device=properties["mem_total"] - properties["mem_free"] if own_memory else None,
        heap=sum(psutil.heap_info()[:2]) if hasattr(psutil, "heap_info") else None,  # not of every C library
        process=process.memory_info().rss,
        files=process.num_fds() if psutil.POSIX else process.num_handles(),
        threads=process.num_threads(),
    )


def _growth(target: Target, call: Callable[[int], None], calls: int) -> dict[str, int]:
    """The growth that every batch added; empty where one of them added none."""
    process = psutil.Process()
    call(calls)
    gc.collect()
    uses = []
    for _ in range(BATCHES):
        uses.append(_use(target, process))
        call(calls)
    uses.append(_use(target, process))
    found = {}
    for what in Use._fields:
        values = [getattr(use, what) for use in uses]
        if None in values:
            continue
        least = min(b - a for a, b in pairwise(values))
        if least > SLACK[what]:
            found[what] = least
    return found
