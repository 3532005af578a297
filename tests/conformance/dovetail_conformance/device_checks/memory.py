"""Allocation: any size, aligned, disjoint, given back, and running out of it without harm."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import pairwise

import numpy as np

from . import check, expect, raises
from .interchange import address

MIB = 1 << 20
SIZES = (
    1,
    2,
    3,
    5,
    7,
    13,
    31,
    63,
    64,
    65,
    127,
    255,
    257,
    1000,
    4095,
    4097,
    65535,
    65537,
    99991,
    MIB - 1,
    MIB + 1,
    3 * MIB + 7,
)


@check
def odd_sizes(t, rng):
    """Alive together, each keeps its own bytes, while others come and go."""
    sizes = [*SIZES, *rng.integers(1, 70000, 40).tolist()]
    held = {}
    for i in rng.permutation(len(sizes)):
        host = rng.integers(0, 256, sizes[i], dtype=np.uint8)
        held[int(i)] = (host, t.asarray(host))
    for n, i in enumerate(rng.permutation(len(sizes)).tolist()):
        host, array = held.pop(i)
        expect(
            np.array_equal(t.numpy(array), host), f"{host.size} bytes changed while other arrays were made or freed"
        )
        if n % 2:
            held[len(sizes) + n] = (host, t.asarray(host))
    for host, array in held.values():
        expect(
            np.array_equal(t.numpy(array), host), f"{host.size} bytes changed while other arrays were made or freed"
        )


@check
def alignment(t, rng):
    align = t.device.properties["alloc_align"]
    arrays = [t.asarray(np.zeros(size, np.uint8)) for size in SIZES]
    for size, array in zip(SIZES, arrays):
        at = address(array)
        expect(at % align == 0, f"{size} bytes lie at {at:#x}, which is no multiple of alloc_align {align}")


@check
def disjoint(t, rng):
    arrays = [t.asarray(np.zeros(size, np.uint8)) for size in SIZES * 3]
    for (first, size), (second, _) in pairwise(sorted((address(a), a.nbytes) for a in arrays)):
        expect(first + size <= second, f"{size} bytes at {first:#x} and an array at {second:#x} overlap")


@check
def large(t, rng):
    host = np.arange(16 * MIB, dtype=np.uint32)
    array = t.asarray(host)
    expect(np.array_equal(t.numpy(array), host), "64 MiB did not come back as they were")


@check
def nothing(t, rng):
    for shape in ((0,), (3, 0), (0, 0, 5)):
        array = t.asarray(np.zeros(shape, np.float32))
        expect(array.shape == shape and array.size == 0, f"an empty array of shape {shape} has shape {array.shape}")
        expect(
            t.numpy(array).shape == shape, f"an empty array of shape {shape} comes back as {t.numpy(array).shape}"
        )


@check
def impossible_sizes(t, rng):
    empty = t.api.empty
    for shape in ((1 << 62,), (1 << 40, 1 << 40), (1 << 33, 1 << 33, 1 << 33)):
        raises((MemoryError, ValueError), lambda s=shape: empty(s, device=t.device), f"an array of shape {shape}")
    raises(ValueError, lambda: empty((-1,), device=t.device), "an array of a negative size")
    works(t)


@check
def statistics(t, rng):
    stats = t.api.memory.stats
    before = stats(t.device)["in_use"]
    array = t.asarray(np.zeros(MIB, np.uint8))
    during = stats(t.device)
    del array
    t.synchronize()
    after = stats(t.device)["in_use"]
    grown = during["in_use"] - before
    expect(MIB <= grown <= 2 * MIB, f"an array of {MIB} bytes raised in_use by {grown}")
    expect(after == before, f"in_use is {after} after an array was freed, expected {before} as before it was made")
    expect(
        during["in_use"] <= during["reserved"],
        f"in_use {during['in_use']} is more than reserved {during['reserved']}",
    )


@check
def given_back(t, rng):
    """empty_cache returns unused memory to the device."""
    memory = t.api.memory
    memory.empty_cache(t.device)
    before = memory.stats(t.device)["reserved"]
    array = t.asarray(np.zeros(8 * MIB, np.uint8))
    del array
    t.synchronize()
    memory.empty_cache(t.device)
    after = memory.stats(t.device)["reserved"]
    expect(
        after <= before, f"{after - before} bytes more are reserved after an array was freed and the cache emptied"
    )


@check
def no_leak(t, rng):
    """Arrays, views, failed calls: no memory leaks."""
    add, matmul, stats = t.function("add"), t.function("matmul"), t.api.memory.stats
    x = t.asarray(rng.standard_normal((33, 17)).astype(t.float))
    wrong = t.asarray(np.zeros((3, 5), t.float))

    def round_trip():
        for _ in range(20):
            y = add(x, x)
            z = matmul(y[::2], t.function("permute_dims")(x, (1, 0)))
            t.numpy(z[1:, ::3])
            raises(ValueError, lambda: add(x, wrong), "adding arrays of shapes (33, 17) and (3, 5)")
        t.synchronize()

    round_trip()
    before = stats(t.device)["in_use"]
    round_trip()
    after = stats(t.device)["in_use"]
    expect(after == before, f"{after - before} bytes are still in use after 20 rounds of work")


@contextmanager
def limited(t, bytes):
    t.api.memory.empty_cache(t.device)
    t.api.memory.set_limit(t.api.memory.stats(t.device)["reserved"] + bytes, t.device)
    try:
        yield
    finally:
        t.api.memory.set_limit(None, t.device)


def works(t) -> None:
    """The device still computes."""
    x = t.asarray(np.arange(5, dtype=t.float))
    got = t.numpy(t.function("add")(x, x)).tolist()
    expect(got == [0, 2, 4, 6, 8], f"afterwards [0, 1, 2, 3, 4] added to itself gives {got}")


@check
def out_of_memory(t, rng):
    """With a limit set: MemoryError, existing arrays stay right, and freeing helps."""
    host = rng.integers(0, 256, 4 * MIB, dtype=np.uint8)
    held = []

    def fill():
        for _ in range(100):
            held.append(t.asarray(host))

    with limited(t, 25 * MIB):
        raises(MemoryError, fill, "400 MiB within a limit of 25 MiB")
        expect(held, "not one array of 4 MiB fits into a limit of 25 MiB")
        works(t)
        expect(np.array_equal(t.numpy(held[0]), host), "an array changed when memory ran out")
        n = len(held)
        held.pop()
        held.append(t.asarray(host))
        expect(len(held) == n, "memory freed after running out is not used again")
        copy = t.function("copy")
        held.pop()
        works(t)
        raises(
            MemoryError,
            lambda: [held.append(copy(held[0])) for _ in range(100)],
            "results beyond the limit",
        )
        works(t)
    held.append(t.asarray(host))
    expect(np.array_equal(t.numpy(held[-1]), host), "after the limit was lifted an array is wrong")


@check
def cache_makes_room(t, rng):
    """Free memory in the cache is no reason to run out."""
    with limited(t, 24 * MIB):
        for size in (9 * MIB, 12 * MIB, 5 * MIB, 17 * MIB, 20 * MIB):
            array = t.asarray(np.full(size, 7, np.uint8))
            expect(t.numpy(array[-1:]).tolist() == [7], f"{size} bytes are wrong")
            del array
    works(t)
