"""Whether other processes needed the processors while a time was measured, from Linux's /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeVar

MOST = 0.1  # of a processor that the measurement needed
_PROC = Path("/proc")
_TICKS = 3  # that the counters may be wrong by
_PAUSES = (0.0, 0.5, 1.0)  # seconds before each try: a load does not end at once
_BUSY = slice(1, 4), slice(6, 9)  # user, nice, system; interrupts, and what the hypervisor took

T = TypeVar("T")


class Reading(NamedTuple):
    """Seconds since some start."""

    wall: float
    busy: float  # of the processors that this process may run on, by anyone
    own: float  # by our processes

    def since(self, before: Reading) -> Reading:
        return Reading(*(a - b for a, b in zip(self, before)))


def read(pids: Iterable[int]) -> Reading | None:
    """None where the system does not report the times of processors as Linux does."""
    try:
        tick = 1 / os.sysconf("SC_CLK_TCK")
        lines = [line.split() for line in (_PROC / "stat").read_text("ascii").splitlines()]
        ours = {f"cpu{n}" for n in processors()}
        busy = sum(int(t) for line in lines if line and line[0] in ours for part in _BUSY for t in line[part])
        own = sum(_ticks((_PROC / f"{pid}/stat").read_text()) for pid in pids)
    except (OSError, ValueError, IndexError, AttributeError):
        return None
    return Reading(time.monotonic(), busy * tick, own * tick)


def _ticks(stat: str) -> int:
    """User and system time. The name, in parentheses, may have spaces."""
    after = stat.rpartition(")")[2].split()
    return int(after[11]) + int(after[12])


def processors() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def others(spent: Reading, threads: int, cores: int) -> float:
    """The share of a processor that others took from a measurement with so many threads.

    What they took of processors that the measurement left idle does not count, nor what the counters cannot tell.
    """
    foreign = spent.busy - spent.own - max(0, cores - threads) * spent.wall
    return foreign / spent.wall if foreign > _TICKS / os.sysconf("SC_CLK_TCK") else 0.0


def watch(pids: Iterable[int], threads: int) -> Callable[[], float | None]:
    """A function that returns the share that others took since now, or None where the system does not report it."""
    ours = [os.getpid(), *pids]
    before = read(ours)

    def since() -> float | None:
        after = read(ours)
        return None if before is None or after is None else others(after.since(before), threads, len(processors()))

    return since


def least_loaded(
    measure: Callable[[], T],
    watch: Callable[[], Callable[[], float | None]],
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[T, float | None]:
    """What measure() returned in the first try without a load of others, or with the least load, and the load."""
    tries: list[tuple[T, float]] = []
    for pause in _PAUSES:
        sleep(pause)
        since = watch()
        found, share = measure(), since()
        if share is None or share <= MOST:
            return found, share
        tries.append((found, share))
    return min(tries, key=lambda tried: tried[1])
