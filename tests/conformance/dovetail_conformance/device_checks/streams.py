"""Queues really are in order, and events are really waited on."""

from __future__ import annotations

import time

import numpy as np

from . import Declined, check, expect

ROUNDS = 40
BUSY = 0.3  # seconds of work that a wait must show in


def streams(t, n):
    p = t.device.properties
    if p.get("synchronous"):
        raise Declined("the device declares that it has no streams")
    return [t.api.Stream(t.device) for _ in range(n)]


def heavy(t, x):
    """Work that takes a while; gives x again."""
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
    """Each call reads what the one before wrote, without a wait between them."""
    host, x = start(t, rng)
    add = t.function("add")
    for i in range(ROUNDS):
        x = add(add(heavy(t, x), float(i)), -1.0)
    expected = host + sum(range(ROUNDS)) - ROUNDS
    expect(
        np.array_equal(t.numpy(x), expected), "a chain of calls on one stream gave a wrong result: they overtook"
    )


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


def left_after(t, x, rounds, wait):
    """Seconds for which the host still waits for a result, after `wait`."""
    y = x
    for _ in range(rounds):
        y = heavy(t, y)
    wait()
    begin = time.perf_counter()
    t.numpy(y[:1, :1])
    return time.perf_counter() - begin


@check
def waiting(t, rng):
    """Whoever waits for a stream, an event or the device has waited for the work: nothing is left to wait for."""
    (one,) = streams(t, 1)
    event = t.api.Event(t.device)
    _, x = start(t, rng)

    def for_event():
        event.record(one)
        event.synchronize()

    with one:
        rounds, busy = 1, 0.0
        while busy < BUSY and rounds < 1 << 14:
            rounds *= 2
            busy = left_after(t, x, rounds, lambda: None)
        if busy < BUSY:
            return  # calls themselves wait: there is nothing to see
        for name, wait in {"a stream": one.synchronize, "an event": for_event, "the device": t.synchronize}.items():
            tries = (left_after(t, x, rounds, wait) for _ in range(3))  # a host with other work is late at times
            late = next((seconds for seconds in tries if seconds < busy / 3), busy)
            expect(late < busy / 3, f"after {name} was waited for, most of {busy:.2f} s of work was still going on")


@check
def many(t, rng):
    """More streams than most devices have queues, each with work in flight."""
    all_of_them = streams(t, 24)
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
