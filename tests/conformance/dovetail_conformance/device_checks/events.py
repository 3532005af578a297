"""The device's streams and events, without the runtime: work that is reported done must be done.

Work that takes a while stands in front of one whose effect can be read. Nothing here depends on how long it takes:
what is claimed to be done is looked for, and a right device has it there whenever it is asked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from itertools import pairwise
from typing import Any

import numpy as np

from . import Declined, Failed, check, expect
from .interchange import address
from .table import BLOCK, HOST_FN, Table, Work, most_streams, table

ROUNDS = 3  # a host that was held up for as long as the work takes saw nothing: it tries again
PATIENCE = 20.0  # seconds to wait for an event, however busy the machine is


def rounds(body: Callable[[Any, Table, Work], None]) -> Callable[[Any, np.random.Generator], None]:
    """A check: the function, run several times, with the device's functions and a block that long work changes."""

    @wraps(body)
    def run(t: Any, rng: np.random.Generator) -> None:
        with table(t, streams=True) as own:
            work = Work(t, own, rng)
            for _ in range(ROUNDS):
                work.again()
                body(t, own, work)
                own.release()

    return run


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        expect(time.monotonic() < end, f"{what} within {PATIENCE:g} s")
        time.sleep(1e-3)


@check
@rounds
def sync_of_a_stream(t, own, work):
    stream = own.stream()
    work.enqueue(stream)
    own.call("sync", stream)
    expect(work.is_done(), "sync of a stream came back before the stream's work was done")


@check
@rounds
def sync_of_an_event(t, own, work):
    stream, event = own.stream(), own.event()
    work.enqueue(stream)
    own.call("ev_record", event, stream)
    own.call("ev_sync", event)
    expect(work.is_done(), "ev_sync came back before the work in front of the event was done")
    expect(own.is_done(event), "ev_query reports that an event which ev_sync has waited for is not done")


@check
@rounds
def query_of_an_event(t, own, work):
    stream, event = own.stream(), own.event()
    work.enqueue(stream)
    own.call("ev_record", event, stream)
    until(lambda: own.is_done(event), "ev_query did not report that an event is done")
    expect(work.is_done(), "ev_query reported that an event is done before the work in front of it was")


@check
@rounds
def wait_for_an_event(t, own, work):
    """Work after ev_wait on one stream sees the work before the event on another."""
    one, two, event, out = own.stream(), own.stream(), own.event(), own.alloc(BLOCK)
    work.enqueue(one)
    own.call("ev_record", event, one)
    own.call("ev_wait", two, event)
    own.copy(out, work.target, BLOCK, two)
    got = own.read(out, stream=two)
    expect(np.array_equal(got, work.after), "a stream that waits for an event of another did not wait for it")


@check
def a_wait_holds_up_no_caller(t, rng):
    """ev_wait blocks the stream only: its caller continues while a host function blocks the other stream."""
    with table(t, streams=True) as own:
        if not own.has("host_fn"):
            raise Declined("the device has no host_fn")
        one, two, event = own.stream(), own.stream(), own.event()
        released, gave_up = threading.Event(), threading.Event()

        def block(context):
            if not released.wait(PATIENCE):
                gave_up.set()

        function = HOST_FN(block)
        own.call("host_fn", one, function, None)
        try:
            own.call("ev_record", event, one)
            own.call("ev_wait", two, event)
            waited = gave_up.is_set()
        finally:
            released.set()
        expect(not waited, "ev_wait held its caller up until the other stream went on")
        own.call("sync", two)
        expect(own.is_done(event), "sync of a stream came back before the event that the stream waits for was done")


@check
def never_recorded(t, rng):
    with table(t, streams=True) as own:
        stream, event = own.stream(), own.event()
        expect(own.is_done(event), "an event that was never recorded is not done")
        own.call("ev_sync", event)
        own.call("ev_wait", stream, event)
        own.call("sync", stream)


@check
@rounds
def recorded_again(t, own, work):
    """The newest record counts: for the host, and for a stream that waits."""
    one, two, event, out = own.stream(), own.stream(), own.event(), own.alloc(BLOCK)
    own.call("ev_record", event, one)
    own.call("ev_sync", event)
    work.enqueue(one)
    own.call("ev_record", event, one)
    own.call("ev_wait", two, event)
    own.copy(out, work.target, BLOCK, two)
    own.call("ev_sync", event)
    expect(work.is_done(), "ev_sync of an event that was recorded again waited for the first record only")
    got = own.read(out, stream=two)
    expect(np.array_equal(got, work.after), "ev_wait on an event recorded again waited for the first record only")


@check
def a_wait_keeps_its_record(t, rng):
    """A stream waits for the latest record at the time of the call: a later record may even depend on that
    stream."""
    with table(t, streams=True) as own:
        work = Work(t, own, rng)
        one, two, event, behind = own.stream(), own.stream(), own.event(), own.event()
        own.call("ev_record", event, one)
        work.busy(two)
        own.call("ev_wait", two, event)
        own.call("ev_record", behind, two)
        own.call("ev_wait", one, behind)
        own.call("ev_record", event, one)
        until(
            lambda: own.is_done(event), "two streams wait for one another: ev_wait took a record made after it, it"
        )


@check
@rounds
def one_stream_is_in_order(t, own, work):
    """Short work after long work reads its results, and later work overwrites them."""
    stream = own.stream()
    steps = [own.alloc(BLOCK) for _ in range(8)]
    work.enqueue(stream)
    for before, after in pairwise([work.target, *steps]):
        own.copy(after, before, BLOCK, stream)
        own.copy(before, steps[-1], BLOCK, stream)
    got = own.read(steps[-1], stream=stream)
    expect(np.array_equal(got, work.after), "copies on one stream overtook one another")


@check
@rounds
def kernels_wait_their_turn(t, own, work):
    """A kernel reads what earlier copies on its stream have written, long after the call."""
    stream, add = t.api.Stream(t.device), t.function("add")
    x = t.asarray(np.zeros(BLOCK // np.dtype(t.float).itemsize, t.float))
    queue, values = t.api._core.stream_handle(stream), np.ones(x.shape, t.float)
    ones, target = own.block(values.view(np.uint8)), address(x)
    work.busy(queue)
    own.copy(target, ones, BLOCK, queue)
    with stream:
        y = add(x, x)
    expect(np.all(t.numpy(y) == 2), "a kernel ran before the copies in front of it on its stream were done")


@check
@rounds
def host_memory_is_free_again(t, own, work):
    """When a copy from the host returns, the host may overwrite the source; one to the host has been written."""
    stream, block = own.stream(), own.alloc(BLOCK)
    host = work.before.copy()
    work.enqueue(stream)
    own.copy(block, host, BLOCK, stream)
    host[:] = 0
    got = own.read(work.target, stream=stream)
    expect(np.array_equal(got, work.after), "a copy to the host came back before the values were there")
    got = own.read(block, stream=stream)
    expect(np.array_equal(got, work.before), "a copy from the host read its memory after it had come back")


@check
@rounds
def memory_in_flight(t, own, work):
    """Memory that is freed on a stream is not reused by another stream before the first stream's work is done."""
    one, two = own.stream(), own.stream()
    block = own.block(work.after)
    work.busy(one)
    own.copy(work.target, block, BLOCK, one)
    own.dealloc(block, one)
    for _ in range(8):
        own.copy(own.alloc(BLOCK, two), work.before, BLOCK, two)
    own.call("sync", two)
    own.call("sync", one)
    expect(work.is_done(), "memory was handed out again before the stream that it was given back on was through")


@check
@rounds
def destroyed_with_work(t, own, work):
    """destroy: queued work still completes."""
    stream = own.create()
    work.enqueue(stream)
    own.destroy(stream)
    until(work.is_done, "the work of a stream that was destroyed did not come to its end")


@check
def without_a_stream(t, rng):
    """stream NULL: complete on return, whatever other work is in progress."""
    with table(t) as own:
        values = rng.integers(0, 256, 1 << 24, dtype=np.uint8)
        first, second = own.block(values), own.alloc(values.nbytes)
        own.copy(second, first, values.nbytes)
        got = own.read(second, values.nbytes, own.stream() if own.has_streams else None)
        expect(np.array_equal(got, values), "a copy without a stream was not complete on return")


@check
@rounds
def time_between_events(t, own, work):
    """At most the host's time around both, at least the time for which the host saw work going on."""
    if not own.has("ev_elapsed_ns"):
        raise Declined("the device does not measure time between events")
    stream, first, second = own.stream(), own.event(timing=True), own.event(timing=True)
    begin = time.perf_counter()
    own.call("ev_record", first, stream)
    own.call("ev_sync", first)
    started = seen = time.perf_counter()
    work.busy(stream)
    own.call("ev_record", second, stream)
    asked = time.perf_counter()
    while not own.is_done(second):
        seen = asked
        asked = time.perf_counter()
        time.sleep(1e-4)
    end = time.perf_counter()
    elapsed = own.elapsed_ns(first, second) / 1e9
    slack = 1e-3 + 0.02 * (end - begin)  # of clocks that drift apart
    expect(
        elapsed <= end - begin + slack,
        f"{elapsed:.4f} s between events that the host saw {end - begin:.4f} s apart",
    )
    expect(
        elapsed >= seen - started - slack,
        f"{elapsed:.4f} s between events, but the second was not done {seen - started:.4f} s after the first",
    )


@check
@rounds
def host_functions(t, own, work):
    """host_fn: called once, in order, after earlier work and before later work."""
    if not own.has("host_fn"):
        raise Declined("the device has no host_fn")
    stream, called = own.stream(), threading.Event()
    order: list[int] = []

    def mark(context):
        order.append(context)
        if context == 3:
            called.set()

    function = HOST_FN(mark)
    work.enqueue(stream)
    for context in (1, 2, 3):
        own.call("host_fn", stream, function, context)
    expect(called.wait(PATIENCE), f"a function of the host was not called within {PATIENCE:g} s")
    expect(work.is_done(), "a function of the host was called before the work in front of it was done")
    own.call("sync", stream)
    expect(order == [1, 2, 3], f"functions of the host numbered 1, 2, 3 were called as {order}")


@check
@rounds
def across_devices(t, own, work):
    """A stream of another device of the backend waits for this one's event, and reads its memory."""
    others = [d for d in t.api.devices() if d.backend == t.device.backend and d.name != t.name]
    if not others:
        raise Declined("the backend has one device only")
    if not own.crosses_devices:
        raise Declined("the device declares that its events are not for other devices")
    with ExitStack() as stack:
        other = Table(t, others[0])
        stack.callback(other.close)
        if "p2p" not in own.properties["caps"] or "p2p" not in other.properties["caps"]:
            raise Declined("the devices do not declare that they read each other's memory")
        one, two, event, out = own.stream(), other.stream(), own.event(), other.alloc(BLOCK)
        work.enqueue(one)
        own.call("ev_record", event, one)
        other.call("ev_wait", two, event)
        other.copy_from(own, out, work.target, BLOCK, two)
        got = other.read(out, stream=two)
        expect(
            np.array_equal(got, work.after),
            f"a stream of {others[0].name} did not wait for an event of {t.name}",
        )


@check
def streams_of_threads(t, rng):
    """Threads with streams of their own do not meet."""
    with table(t, streams=True) as own:
        values = rng.integers(0, 256, (4, BLOCK), dtype=np.uint8)
        streams = [own.stream() for _ in values[: min(len(values), most_streams(own.properties))]]
        blocks = [[own.alloc(BLOCK) for _ in range(3)] for _ in values]
        failures: list[str] = []

        def work(i: int) -> None:
            try:
                for _ in range(100):
                    event = own.event()
                    own.copy(blocks[i][0], values[i], BLOCK, streams[i])
                    for before, after in pairwise(blocks[i]):
                        own.copy(after, before, BLOCK, streams[i])
                    own.call("ev_record", event, streams[i])
                    own.call("ev_sync", event)
                    if not np.array_equal(own.read(blocks[i][-1], stream=streams[i]), values[i]):
                        failures.append(f"thread {i} read what is not its own")
            except Exception as error:
                failures.append(f"in thread {i}: {error}")

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(streams))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise Failed(failures[0])
