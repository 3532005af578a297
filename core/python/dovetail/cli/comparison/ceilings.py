"""The machine's limits, measured in the same run by the same contenders, and the share of them that a call reaches.

Memory has a bandwidth for each size of what is touched: the best rate, of any contender, at which a copy or a sum
of two arrays moves its operands and its result. What mostly reads, such as a reduction, has the best rate of a sum
of all elements. Caches end gradually, so sizes between two levels are measured, too.
Arithmetic has the best rate at which any contender computes a product of large square matrices of the dtype: it
stands for the peak of fused multiply-adds, of which a good product lacks a few percent.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dovetail.cli.comparison.points import Point

LEVELS = ("L2", "L3", "memory")
PRODUCTS = (512, 1024)
DTYPES = ("float32", "bfloat16", "int8")
PROVING = ("matmul", "linear")  # points of these ops, too, show what the arithmetic can reach
_KIB, _MIB = 1 << 10, 1 << 20
_CACHES = {2: 512 * _KIB, 3: 32 * _MIB}  # where the system does not report them
_MOST = 1024 * _MIB
_APART = 4  # times the working set before, at most
_MOSTLY = 8  # times as many bytes read as written


def caches(folder: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> dict[int, int]:
    """Bytes of the second and the third level, as Linux reports them."""
    found = dict(_CACHES)
    for index in folder.glob("index*"):
        try:
            level, size = int((index / "level").read_text()), (index / "size").read_text().strip()
            if level in found:
                found[level] = int(size.removesuffix("K")) * _KIB
        except (OSError, ValueError):
            continue
    return found


def levels(threads: int) -> dict[str, int]:
    """Bytes that a call at each level touches: half of every thread's L2, a quarter of L3, four times L3."""
    sizes = caches()
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    outside = min(4 * sizes[3], _MOST, memory // 16)
    inside = min(max(sizes[3] // 4, sizes[2] * threads), outside)
    return dict(zip(LEVELS, (min(sizes[2] // 2 * threads, inside), inside, outside), strict=True))


def working_sets(threads: int) -> dict[str, int]:
    """Bytes of each level, and of sizes between them, by name and in ascending order."""
    found = levels(threads)
    for size, larger in itertools.pairwise(list(found.values())):
        steps = math.ceil(math.log(larger / size, _APART))
        between = (round(size * (larger / size) ** (step / steps)) for step in range(1, steps))
        found |= {f"{round(n / _MIB, 1):g} MiB": n for n in between}
    return dict(sorted(found.items(), key=lambda level: level[1]))


class Probe(NamedTuple):
    level: str  # or the size between two levels, or "" of a product
    working_set: int
    point: Point


def probes(threads: int, points: Iterable[Point]) -> list[Probe]:
    found = [
        Probe(level, size, Point(op, "float32", (max(1, size // bytes),)))
        for level, size in working_sets(threads).items()
        for op, bytes in (("copy", 8), ("add", 12), ("sum", 4))
    ]
    more = {p.dtype for p in points if p.op in (*PROVING, "sdpa", "conv2d")} - {*DTYPES}
    products = [(dtype, n) for dtype in (*DTYPES, *sorted(more)) for n in PRODUCTS]
    return found + [Probe("", 0, Point("matmul", dtype, (n, n), (n, n))) for dtype, n in products]


class Memory(NamedTuple):
    bytes: int  # the working set
    copy: float  # bytes a second, read and written together
    read: float


class Ceilings:
    def __init__(self) -> None:
        self.memory: dict[str, Memory] = {}
        self.flops: dict[str, float] = {}  # a second, by dtype

    def add(self, probe: Probe, moved: float, flops: float, seconds: float) -> None:
        """What the fastest contender took for a probe."""
        if not probe.level:
            self.add_product(probe.point.dtype, flops, seconds)
            return
        known = self.memory.get(probe.level, Memory(probe.working_set, 0.0, 0.0))
        rate = moved / seconds
        copy = known.copy if probe.point.op == "sum" else max(known.copy, rate)
        self.memory[probe.level] = Memory(known.bytes, copy, max(known.read, rate))

    def add_product(self, dtype: str, flops: float, seconds: float) -> None:
        self.flops[dtype] = max(self.flops.get(dtype, 0.0), flops / seconds)

    def raise_to(self, other: Ceilings) -> None:
        """Takes what is higher in the other: more threads can do at least what fewer do."""
        for level, own in self.memory.items():
            theirs = other.memory.get(level, own)
            self.memory[level] = Memory(own.bytes, max(own.copy, theirs.copy), max(own.read, theirs.read))
        for dtype, rate in other.flops.items():
            self.flops[dtype] = max(self.flops.get(dtype, 0.0), rate)

    def floor(self, dtype: str, read: float, written: float, flops: float) -> float | None:
        """The seconds that memory and arithmetic need at least."""
        floors = []
        moved = read + written
        if self.memory and moved:
            near = min(self.memory.values(), key=lambda m: abs(math.log(m.bytes / moved)))
            floors.append(moved / (near.read if read > _MOSTLY * written else near.copy))
        if flops and dtype in self.flops:
            floors.append(flops / self.flops[dtype])
        return max(floors) if floors else None

    def as_dict(self) -> dict[str, Any]:
        return {
            "memory": {
                level: {"bytes": m.bytes, "copy_gb_per_s": m.copy * 1e-9, "read_gb_per_s": m.read * 1e-9}
                for level, m in self.memory.items()
            },
            "gflop_per_s": {dtype: flops * 1e-9 for dtype, flops in self.flops.items()},
        }


def percent(floor: float | None, seconds: float) -> float | None:
    return None if floor is None else round(100 * floor / seconds, 1)


def fastest(times: Mapping[str, Mapping[str, float]]) -> float | None:
    return min((t["min"] for t in times.values()), default=None)
