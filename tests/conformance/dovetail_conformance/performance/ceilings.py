"""The device's ceilings, from cases of the same run, and the share of them that others reach. Pure logic.

Memory has a ceiling each way, for each size of working set: the best rates at which any call read and wrote. A
copy alone is none, as what only reads goes beyond it; but copies, sums of two arrays, sums and maxima of all
elements are always among the calls. Arithmetic has the best matrix product of the dtype, for calls that compute
more than they move.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from .working_sets import SIZES

PROBES = ("copy[f32,perf,{}]", "add[f32,perf,{}]", "sum[f32,perf=all,{}]", "max[f32,perf=all,{}]")
PRODUCT = "matmul[{},perf="

Measured = Mapping[str, Any]  # of a case: time_s, bytes, written, flops ...


def is_probe(id: str) -> bool:
    """Whether ceilings are taken from the case, whatever else is measured."""
    return id.startswith("matmul[f32,perf=square,") or id in {p.format(size) for p in PROBES for size in SIZES}


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
    copies = {size: m for size in SIZES if (m := measured.get(PROBES[0].format(size)))}
    memory = {size: Memory(m["bytes"], 0.0, 0.0, m["bytes"] / m["time_s"]) for size, m in copies.items()}
    for m in measured.values():
        if size := _nearest(memory, m["bytes"]):
            read = max(memory[size].read, (m["bytes"] - m["written"]) / m["time_s"])
            written = max(memory[size].written, m["written"] / m["time_s"])
            memory[size] = memory[size]._replace(read=read, written=written)
    products: dict[str, float] = {}
    for id, m in measured.items():
        dtype = id.partition("[")[2].partition(",")[0]
        if id.startswith(PRODUCT.format(dtype)):
            products[dtype] = max(products.get(dtype, 0.0), m["flops"] / m["time_s"])
    return Ceilings(memory, products)


def _nearest(memory: Mapping[str, Memory], size: int) -> str | None:
    """The working set that is nearest to this many bytes."""
    return min(memory, key=lambda name: abs(math.log(memory[name].bytes / max(size, 1))), default=None)


def share(id: str, m: Measured, of: Ceilings) -> dict[str, Any]:
    """percent and bound: how near the call came to the ceiling that binds it. {} where there is none."""
    floors: dict[str, float] = {}
    if size := _nearest(of.memory, m["bytes"]):
        near = of.memory[size]
        floors["memory"] = max((m["bytes"] - m["written"]) / near.read, m["written"] / near.written)
    flops = of.products.get(id.partition("[")[2].partition(",")[0])
    if flops and m["flops"] > m["bytes"]:
        floors["compute"] = m["flops"] / flops
    if not floors:
        return {}
    bound = max(floors, key=floors.__getitem__)
    return {"percent": round(100 * floors[bound] / m["time_s"], 2), "bound": bound}
