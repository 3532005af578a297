"""How long a call takes on a device."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

from dovetail._core import Device, Event

_BATCHES = 10
_TICK = 1e-9  # no clock tells less, and no time is 0


class Timing(NamedTuple):
    seconds: float  # a call, of the best batch
    spread: float  # by what share of it the median batch was slower
    timer: str  # "event": the device's own clock; "host": its clock, around a wait for the device


def measure(call: Callable[[], Any], device: Device, seconds: float) -> Timing:
    """The best of about ten batches of calls that take so many seconds together; what they return is dropped."""
    timer = "event" if _keeps_time(device) else "host"
    batch = _on_device if timer == "event" else _on_host
    first = batch(call, device, 1)  # also warms up
    once = first if first > 10 * seconds else min(first, batch(call, device, 1))
    count = max(1, int(seconds / _BATCHES / max(once, 1e-7)))
    found, until = [once], time.perf_counter() + seconds
    while time.perf_counter() < until:
        found.append(batch(call, device, count))
    several = found[1:] or found  # of more than one call, if there was time
    return Timing(min(found), max(median(several) / min(found) - 1, 0.0), timer)


def _keeps_time(device: Device) -> bool:
    """Has it streams, and events that say when they passed?"""
    if device.properties["synchronous"]:
        return False
    begin, end = Event(device, timing=True), Event(device, timing=True)
    begin.record()
    end.record()
    end.synchronize()
    try:
        begin.elapsed_ns(end)
    except NotImplementedError:
        return False
    return True


def _on_host(call: Callable[[], Any], device: Device, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    device.synchronize()
    return max(time.perf_counter() - start, _TICK) / count


def _on_device(call: Callable[[], Any], device: Device, count: int) -> float:
    begin, end = Event(device, timing=True), Event(device, timing=True)
    begin.record()
    for _ in range(count):
        call()
    end.record()
    end.synchronize()
    return max(begin.elapsed_ns(end) * 1e-9, _TICK) / count
