"""Queues really are in order, and events are really waited on."""

from __future__ import annotations

import numpy as np

from . import Declined, check, expect

ROUNDS = 40


def streams(t, n):
    p = t.device.properties
    if p.get("synchronous"):
        raise Declined("the device declares that it has no streams")
    return [t.api.Stream(t.device) for _ in range(n)]


def heavy(t, x):
    """Work that takes a while; gives x again."""
    matmul = t.function("matmul")
    eye = t.asarray(np.eye(x.shape[-1], dtype=np.float32))
    for _ in range(6):
        x = matmul(x, eye)
    return x


def start(t, rng, n=192):
    host = rng.integers(-99, 99, (n, n)).astype(np.float32)
    return host, t.asarray(host)


@check
def chain(t, rng):
    """Each call reads what the one before wrote, without a wait between them."""
    host, x = start(t, rng)
    add, subtract = t.function("add"), t.function("subtract")
    for i in range(ROUNDS):
        x = subtract(add(heavy(t, x), float(i)), 1.0)
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
