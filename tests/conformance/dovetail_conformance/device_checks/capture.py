"""Work that is captured and replayed, on devices that have the extension group dovetail.capture."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import Declined, check, expect
from .interchange import address
from .table import BLOCK, Table, table


@contextmanager
def capturing(t: Any) -> Iterator[Table]:
    with table(t, streams=True) as own:
        if not own.has("capture_begin"):
            raise Declined("the device does not capture: it has no dovetail.capture")
        yield own


def replay(own: Table, graph: int, stream: int) -> None:
    own.call("capture_replay", graph, stream)
    own.call("sync", stream)


@check
def copies_replayed(t, rng):
    """Captured work does not run; each replay reads the current values, on any stream."""
    with capturing(t) as own:
        stream, *others = (own.stream() for _ in range(3))
        before, *contents = rng.integers(0, 256, (4, BLOCK), dtype=np.uint8)
        source, through, target = own.block(contents[0]), own.block(before), own.block(before)
        own.call("capture_begin", stream)
        own.copy(through, source, BLOCK, stream)
        own.copy(target, through, BLOCK, stream)
        graph = own.captured(stream)
        own.call("sync", stream)
        expect(np.array_equal(own.read(target), before), "a captured copy was done before the first replay")
        for values, on in zip(contents, (stream, *others), strict=True):
            own.copy(source, values, BLOCK)
            replay(own, graph, on)
            expect(np.array_equal(own.read(target), values), "a replay did not copy what was there by then")


@check
def kernels_replayed(t, rng):
    """Ops that the runtime enqueued, on inputs that change."""
    with capturing(t) as own:
        stream = t.api.Stream(t.device)
        handle, add = t.api._core.stream_handle(stream), t.function("add")
        first, second = rng.integers(-99, 99, (2, 1000)).astype(t.float)
        with stream:
            x, ready = t.asarray(first), t.asarray(second)
            t.numpy(add(add(x, ready), 1.0))  # all that must be prepared for these calls is
            t.synchronize()
            own.call("capture_begin", handle)
            y = add(add(x, ready), 1.0)
            graph = own.captured(handle)
        for values in (first, -first):
            own.copy(address(x), values.view(np.uint8), values.nbytes)
            replay(own, graph, handle)
            got = own.read(address(y), values.nbytes).view(t.float)
            expect(np.array_equal(got, values + second + 1), "a replay of kernels gave a wrong result")


@check
def streams_captured_together(t, rng):
    """A stream that waits for an event of the capture joins it, and so does a stream that waits for that one."""
    with capturing(t) as own:
        one, two, forked, joined = own.stream(), own.stream(), own.event(), own.event()
        before, *contents = rng.integers(0, 256, (3, BLOCK), dtype=np.uint8)
        source, through, target = own.block(before), own.block(before), own.block(before)
        own.call("capture_begin", one)
        own.call("ev_record", forked, one)
        own.call("ev_wait", two, forked)
        own.copy(through, source, BLOCK, two)
        own.call("ev_record", joined, two)
        own.call("ev_wait", one, joined)
        own.copy(target, through, BLOCK, one)
        graph = own.captured(one)
        for values in contents:
            own.copy(source, values, BLOCK)
            replay(own, graph, one)
            expect(np.array_equal(own.read(target), values), "a replay of two streams did not keep their order")
        own.copy(target, own.block(before), BLOCK, two)
        own.call("sync", two)
        expect(np.array_equal(own.read(target), before), "a stream that took part in a capture still records")


@check
def abandoned(t, rng):
    """end(NULL): none of it ever runs, and the stream still works."""
    with capturing(t) as own:
        stream = own.stream()
        before, values = rng.integers(0, 256, (2, BLOCK), dtype=np.uint8)
        source, target = own.block(values), own.block(before)
        own.call("capture_begin", stream)
        own.copy(target, source, BLOCK, stream)
        own.call("capture_end", stream, None)
        own.call("sync", stream)
        expect(np.array_equal(own.read(target), before), "a copy of a capture that was abandoned was done")
        own.copy(target, source, BLOCK, stream)
        own.call("sync", stream)
        expect(np.array_equal(own.read(target), values), "a stream does not work after an abandoned capture")


@check
def destroyed_while_queued(t, rng):
    """A graph that is destroyed after its replay was enqueued: the replay still completes."""
    with capturing(t) as own:
        stream = own.stream()
        source, target = (own.block(v) for v in rng.integers(0, 256, (2, BLOCK), dtype=np.uint8))
        values = own.read(source)
        own.call("capture_begin", stream)
        own.copy(target, source, BLOCK, stream)
        graph = own._made("capture_end", stream)
        own.call("capture_replay", graph, stream)
        own.call("capture_destroy", graph)
        own.call("sync", stream)
        expect(np.array_equal(own.read(target), values), "a replay was lost with its graph")
