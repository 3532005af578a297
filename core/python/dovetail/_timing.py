"""The time of a call on a device, as its caller measures it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

from dovetail._core import Device

_BATCHES = 10
_TICK = 1e-9  # no clock is finer, so that no time is 0
_GROWTH = 10  # at most, for a batch that was too short


class Timing(NamedTuple):
    """Seconds of one call: of the best batch, of the median batch, and of the 90th percentile."""

    best: float
    median: float
    p90: float

    @property
    def spread(self) -> float:
        """How much slower the median batch was than the best, as a share."""
        return self.median / self.best - 1


def measure(call: Callable[[], Any], device: Device, seconds: float) -> Timing:
    """Times about ten batches of calls that take so many seconds together. What the calls return is dropped.

    A batch is as many calls as take a tenth of the time, all queued, and one wait for the device: a single call
    would be timed with the wait for it, or on a device with queues as the time that it takes to enqueue it.
    """
    _batch(call, device, 1)  # warms up
    start, shortest = time.perf_counter(), seconds / _BATCHES
    count, took = 1, _batch(call, device, 1)
    while took < shortest:
        count = math.ceil(count * min(_GROWTH, max(2.0, 1.2 * shortest / took)))
        took = _batch(call, device, count)
    found = [took / count]
    while time.perf_counter() - start < seconds:
        found.append(_batch(call, device, count) / count)
    found.sort()
    return Timing(found[0], median(found), found[math.ceil(0.9 * len(found)) - 1])


def _batch(call: Callable[[], Any], device: Device, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    device.synchronize()
    return max(time.perf_counter() - start, _TICK)
