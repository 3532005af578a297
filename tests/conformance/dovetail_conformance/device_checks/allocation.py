"""The device's own memory, past the runtime's pool: aligned, disjoint, and there again when it was given back."""

from __future__ import annotations

from contextlib import suppress
from ctypes import memmove
from itertools import pairwise

import numpy as np

from . import Declined, Failed, check, expect
from .table import OOM, PINNED, UNSUPPORTED, Refused, Table, table

MIB = 1 << 20
MOST = 4 << 30  # bytes that are filled at most, where nothing runs out before
IMPOSSIBLE = 1 << 62


def sizes(own: Table) -> list[int]:
    """In units of the alignment, which the runtime always uses."""
    return [n * own.align for n in (1, 2, 3, 5, 17, 127, 1000)] + [MIB, 3 * MIB + own.align, 40 * MIB]


@check
def aligned_and_disjoint(t, rng):
    with table(t) as own:
        blocks = [(own.alloc(size), size) for size in sizes(own) * 2]
        for block, size in blocks:
            expect(
                block % own.align == 0,
                f"{size} bytes lie at {block:#x}: expected a multiple of alloc_align {own.align}",
            )
        for (first, size), (second, _) in pairwise(sorted(blocks)):
            expect(first + size <= second, f"{size} bytes at {first:#x} and a block at {second:#x} overlap")


@check
def every_byte_is_kept(t, rng):
    """To the last one, while others come and go."""
    with table(t) as own:
        held = []
        for size in rng.permutation(sizes(own)).tolist():
            values = rng.integers(0, 256, size, dtype=np.uint8)
            held.append((own.block(values), values))
            if len(held) % 3 == 0:
                block, values = held.pop(0)
                expect(
                    np.array_equal(own.read(block, values.size), values), f"a block of {values.size} bytes changed"
                )
                own.dealloc(block)
        for block, values in held:
            expect(np.array_equal(own.read(block, values.size), values), f"a block of {values.size} bytes changed")


@check
def inside_a_block(t, rng):
    """The runtime adds to addresses: views and parts of a block are copied from and to."""
    with table(t) as own:
        values = rng.integers(0, 256, 1 << 16, dtype=np.uint8)
        block = own.block(values)
        for begin, size in ((1, 1), (3, 77), (4095, 4098), (65535, 1)):
            got = own.read(block + begin, size)
            expect(
                np.array_equal(got, values[begin : begin + size]),
                f"bytes {begin} to {begin + size} of a block are wrong",
            )
        own.copy(block + 7, values[:100].copy(), 100)
        values[7:107] = values[:100].copy()
        expect(
            np.array_equal(own.read(block, values.size), values),
            "a copy into the middle of a block wrote outside it",
        )


def refusal(own: Table, size: int) -> Refused | None:
    """The error of an allocation of `size` bytes; None if it succeeds, and then the memory is freed."""
    try:
        own.dealloc(own.alloc(size))
    except Refused as error:
        return error
    return None


@check
def impossible_size(t, rng):
    """Refused as out of memory, repeatedly, and possible sizes still work."""
    with table(t) as own:
        for _ in range(3):
            error = refusal(own, IMPOSSIBLE)
            expect(error, f"a block of {IMPOSSIBLE} bytes was granted")
            expect(error and error.status == OOM, f"a block of {IMPOSSIBLE} bytes: expected DVT_OOM, but {error}")
            for size in sizes(own):
                error = refusal(own, size)
                expect(
                    not error, f"after an allocation that was too large, one of {size} bytes is refused: {error}"
                )


def filled(own: Table, size: int, stream: int | None) -> list[int]:
    """Blocks, until there are no more or MOST bytes of them."""
    blocks: list[int] = []
    with suppress(Refused):
        while len(blocks) * size < MOST:
            blocks.append(own.alloc(size, stream))
    return blocks


@check
def recovers(t, rng):
    """Run out of memory, free it all: the same amount must be available, in large blocks too, with and without a
    stream."""
    with table(t) as own:
        size = max(16 * MIB, own.properties["mem_total"] >> 8 & -MIB)
        stream = own.stream() if own.has_streams else None
        counts = []
        for round in range(4):
            blocks = filled(own, size, stream)
            counts.append(len(blocks))
            expect(blocks, f"round {round}: not one block of {size} bytes is left")
            for block in blocks[::2] + blocks[1::2]:
                own.dealloc(block, stream)
            if stream:
                own.call("sync", stream)
            large = max(1, len(blocks) // 2) * size
            error = refusal(own, large)
            expect(
                not error,
                f"{len(blocks)} blocks of {size} bytes were given back, but one of {large} is refused: {error}",
            )
        most, least = max(counts), min(counts[1:])
        expect(least >= 0.9 * most, f"{most} blocks of {size} bytes at first, {least} after they were given back")


@check
def comes_back(t, rng):
    """Several times the device's memory in all, one block at a time."""
    with table(t) as own:
        stream = own.stream() if own.has_streams else None
        total = own.properties["mem_total"] or MOST
        size = max(MIB, total >> 5 & -MIB)
        for n in range(100):
            try:
                own.dealloc(own.alloc(size, stream), stream)
            except Refused as error:
                raise Failed(f"{n} blocks of {size} bytes, each given back before the next: {error}") from error
            if stream:
                own.call("sync", stream)


@check
def says_what_is_free(t, rng):
    with table(t) as own:
        free, total = own.mem_info()
        expect(0 < free <= total, f"mem_info reports {free} bytes free of {total}")
        declared = own.properties["mem_total"]
        expect(
            not declared or total == declared, f"mem_info reports {total} bytes in all, the properties {declared}"
        )


@check
def pinned_memory(t, rng):
    """The host reads and writes it, and so does the device."""
    with table(t) as own:
        values = rng.integers(0, 256, 100_000, dtype=np.uint8)
        try:
            pinned = own.alloc(values.size, kind=PINNED)
        except Refused as error:
            if error.status == UNSUPPORTED:
                raise Declined("the device has no pinned memory of the host") from error
            raise
        memmove(pinned, values.ctypes.data, values.size)
        block = own.alloc(values.size)
        own.copy(block, own.at_host(pinned, values.size), values.size)
        memmove(pinned, bytes(values.size), values.size)
        expect(np.array_equal(own.read(block, values.size), values), "values of pinned memory changed on the way")
        own.copy(own.at_host(pinned, values.size), block, values.size)
        expect(
            np.array_equal(own.at_host(pinned, values.size), values), "values changed on the way to pinned memory"
        )


@check
def other_kinds(t, rng):
    """A kind of memory that it does not know is unsupported, not a crash, and not ordinary memory."""
    with table(t) as own:
        try:
            own.alloc(own.align, kind=77)
        except Refused as error:
            expect(error.status == UNSUPPORTED or error.words, f"memory of an unknown kind: {error}")
