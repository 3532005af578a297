"""What the device can do at best, from cases of the same run, and what share of it the others reach. Pure logic.

Memory has a ceiling each way, for each size of working set: the best rate at which a copy, a sum of two arrays, a sum
or a maximum of all elements read and wrote. A copy alone is none: what only reads goes beyond it. Arithmetic has the
best matrix product of the dtype, for calls that compute more than they move.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from .working_sets import SIZES

PROBES = ("copy[f32,perf,{}]", "add[f32,perf,{}]", "sum[f32,perf=all,{}]", "max[f32,perf=all,{}]")
PRODUCT = "matmul[{},perf="

Measured = Mapping[str, Any]  # of a case: time_s, bytes, written, flops ...


class Memory(NamedTuple):
    bytes: int  # the working set that it was measured with
    read: float  # bytes a second
    written: float
    copy: float  # read and written together, by a copy


class Ceilings(NamedTuple):
    memory: dict[str, Memory]  # by size
    products: dict[str, float]  # flops a second, by dtype

    def as_dict(self) -> dict[str, Any]:
        """For results.json; speeds of the largest working set come first, as memory bandwidth is commonly meant."""
        largest = next((self.memory[size] for size in reversed(SIZES) if size in self.memory), None)
        return {
            "copy_gb_per_s": largest.copy * 1e-9 if largest else 0.0,
            "gemm_gflop_per_s": {dtype: flops * 1e-9 for dtype, flops in self.products.items()},
            "memory": {
                size: {"bytes": m.bytes, "read_gb_per_s": m.read * 1e-9, "write_gb_per_s": m.written * 1e-9,
                       "copy_gb_per_s": m.copy * 1e-9}
                for size, m in self.memory.items()
            },
        }  # fmt: skip


def ceilings(measured: Mapping[str, Measured]) -> Ceilings:
    """`measured`: of every case that was timed, by id."""
    memory = {}
    for size in SIZES:
        found = [measured[id] for probe in PROBES if (id := probe.format(size)) in measured]
        if copy := measured.get(PROBES[0].format(size)):
            read = max((m["bytes"] - m["written"]) / m["time_s"] for m in found)
            written = max(m["written"] / m["time_s"] for m in found)
            memory[size] = Memory(copy["bytes"], read, written, copy["bytes"] / copy["time_s"])
    products: dict[str, float] = {}
    for id, m in measured.items():
        dtype = id.partition("[")[2].partition(",")[0]
        if id.startswith(PRODUCT.format(dtype)):
            products[dtype] = max(products.get(dtype, 0.0), m["flops"] / m["time_s"])
    return Ceilings(memory, products)


def share(id: str, m: Measured, of: Ceilings) -> dict[str, Any]:
    """percent and bound: how near the call came to the ceiling that binds it. {} where there is none."""
    floors: dict[str, float] = {}
    if of.memory:
        near = min(of.memory.values(), key=lambda x: abs(math.log(x.bytes / max(m["bytes"], 1))))
        floors["memory"] = max((m["bytes"] - m["written"]) / near.read, m["written"] / near.written)
    flops = of.products.get(id.partition("[")[2].partition(",")[0])
    if flops and m["flops"] > m["bytes"]:
        floors["compute"] = m["flops"] / flops
    if not floors:
        return {}
    bound = max(floors, key=floors.__getitem__)
    return {"percent": round(100 * floors[bound] / m["time_s"], 2), "bound": bound}
