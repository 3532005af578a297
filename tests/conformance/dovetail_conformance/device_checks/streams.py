"""Queues really are in order, and events are really waited on."""

from __future__ import annotations

import time

import numpy as np

from . import Declined, check, expect
from .table import most_streams

ROUNDS = 40
BUSY = 0.2  # seconds of work that a wait must show in


def streams(t, n):
    p = t.device.properties
    if p.get("synchronous"):
        raise Declined("the device declares that it has no streams")
    return [t.api.Stream(t.device) for _ in range(n)]


def heavy(t, x):
    """Work that takes a while and returns x."""
    nothing, op = neutral(t, x.shape[-1])
    for _ in range(6):
        x = op(x, nothing)
    return x


def neutral(t, n):
    """The identity of matmul, or of add on a device that has no matmul; made once, as copies from the host wait."""
    if n not in t.made:
        has_matmul = t.has_row("matmul")
        host = np.eye(n, dtype=t.float) if has_matmul else np.zeros((n, n), t.float)
        t.made[n] = (t.asarray(host), t.function("matmul" if has_matmul else "add"))
    return t.made[n]


def start(t, rng, n=192):
    host = rng.integers(-99, 99, (n, n)).astype(t.float)
    return host, t.asarray(host)


@check
def chain(t, rng):
    """Each call reads the previous one's result, without a wait between them."""
    host, x = start(t, rng)
    add = t.function("add")
    for i in range(ROUNDS):
        x = add(add(heavy(t, x), float(i)), -1.0)
    expected = host + sum(range(ROUNDS)) - ROUNDS
    expect(
        np.array_equal(t.numpy(x), expected), "a chain of calls on one stream gave a wrong result: they overtook"
    )
    for _ in range(ROUNDS):  # the next array gets the memory of x, which kernels still read
        host, x = start(t, rng, 128)
        y = add(heavy(t, x), 1.0)
        del x
        start(t, rng, 128)
        expect(np.array_equal(t.numpy(y), host + 1), "a copy from the host overtook the kernels before it")


@check
def one_waits_for_another(t, rng):
    """A result of one stream is read on another at once."""
    one, two = streams(t, 2)
    add = t.function("add")
    for i in range(ROUNDS):
        host, x = start(t, rng, 128)
        with one:
            y = heavy(t, x)
            y = add(y, 1.0)
        with two:
            z = add(y, y)
        expect(
            np.array_equal(t.numpy(z), 2 * host + 2),
            f"round {i}: the second stream read before the first had written",
        )


@check
def memory_used_elsewhere(t, rng):
    """A buffer freed while another stream still reads it is not handed out too early."""
    one, two = streams(t, 2)
    add = t.function("add")
    for i in range(ROUNDS):
        host, x = start(t, rng, 128)
        with one:
            y = add(x, 1.0)
        with two:
            z = add(heavy(t, y), 0.0)
        del y
        with one:
            for _ in range(4):
                add(x, -5.0)
        expect(
            np.array_equal(t.numpy(z), host + 1), f"round {i}: memory was reused while the second stream read it"
        )


@check
def events(t, rng):
    (one,) = streams(t, 1)
    event = t.api.Event(t.device)
    expect(event.query(), "an event that was never recorded has not passed")
    with one:
        _, x = start(t, rng)
        heavy(t, x)
    event.record(one)
    event.synchronize()
    expect(event.query(), "an event has not passed after it was waited for")
    one.synchronize()
    expect(one.query(), "a stream is not idle after it was waited for")


def long_work(t, x, rounds):
    for _ in range(rounds):
        x = heavy(t, x)
    return x


def rounds_of(t, x):
    """How many of them leave BUSY seconds of work when the calls return, or as much as the device has queued at
    once; 1 where calls themselves wait."""
    t.numpy(heavy(t, x))  # the first is slower
    rounds, best, most, took = 1, 1, 0.0, 0.0
    while most < BUSY and took < 4 * BUSY and rounds < 8 * best:
        rounds *= 2
        begin = time.perf_counter()
        y = long_work(t, x, rounds)
        called = time.perf_counter()
        t.numpy(y[:1, :1])
        left, took = time.perf_counter() - called, time.perf_counter() - begin
        if left > 1.5 * most:
            best, most = rounds, left
    return best if most > BUSY / 10 else 1


@check
def waiting(t, rng):
    """After a wait for a stream, an event or the device the result is there, also for other streams."""
    (one,) = streams(t, 1)
    event, add = t.api.Event(t.device), t.function("add")
    host, x = start(t, rng)

    def for_event():
        event.record(one)
        event.synchronize()

    def until_query():
        event.record(one)
        while not event.query():
            time.sleep(1e-4)

    with one:
        rounds = rounds_of(t, x)
    waits = {"a stream": one.synchronize, "an event": for_event, "the device": t.synchronize, "query": until_query}
    for i, (name, wait) in enumerate(waits.items(), 1):
        with one:
            y = add(long_work(t, x, rounds), float(i))
            wait()
        expect(np.array_equal(t.numpy(y), host + i), f"after {name} was waited for, the work was still going on")


@check
def many(t, rng):
    """More streams than most devices have queues, or all that it declares, each with work in flight."""
    all_of_them = streams(t, max(1, min(24, most_streams(t.device.properties) - 1)))
    add = t.function("add")
    host, x = start(t, rng, 64)
    results = []
    for i, stream in enumerate(all_of_them):
        with stream:
            results.append(add(heavy(t, x), float(i)))
    for i, result in enumerate(results):
        expect(np.array_equal(t.numpy(result), host + i), f"stream {i} of {len(all_of_them)} gave a wrong result")


@check
def host_waits(t, rng):
    """Reading on the host waits; so does synchronize."""
    host, x = start(t, rng)
    for _ in range(8):
        expect(np.array_equal(t.numpy(heavy(t, x)), host), "the host read a result before it was written")
    heavy(t, x)
    t.synchronize()
