"""Time to get and give back device memory: the runtime's pool, the driver's, and no pool; cuda.py runs it.

Time of the host. The pool of the runtime is compared with cuMemAllocAsync, from which it gets its blocks, and that
with cuMemAlloc. Each block is freed before the next is allocated, like the output of an op that is not kept.
"""

from __future__ import annotations

import ctypes
import os
import time
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

import cuda_timing
import dovetail as dt
from cuda_timing import Aim, Bench, Work, medians

AIM = Aim(1.0, at_most=True)
CALLS = 50
SIZES = {"4 KB": 1 << 12, "1 MB": 1 << 20, "256 MB": 1 << 28}


class Driver:
    """libcuda, with the device's primary context current and a stream."""

    def __init__(self, device: int) -> None:
        self._library = ctypes.CDLL(os.environ.get("DOVETAIL_CUDA_DRIVER") or "libcuda.so.1")
        self._context, self._stream = c_void_p(), c_void_p()
        self._call("cuDevicePrimaryCtxRetain", byref(self._context), device)
        self._call("cuCtxPushCurrent_v2", self._context)
        self._call("cuStreamCreateWithPriority", byref(self._stream), 1, c_int(0))  # CU_STREAM_NON_BLOCKING

    def _call(self, name: str, *arguments: object) -> None:
        if result := self._library[name](*arguments):
            raise RuntimeError(f"{name}: error {result}")

    def allocate_in_order(self, size: int) -> None:
        address = c_uint64()
        self._call("cuMemAllocAsync", byref(address), c_size_t(size), self._stream)
        self._call("cuMemFreeAsync", address, self._stream)

    def allocate(self, size: int) -> None:
        address = c_uint64()
        self._call("cuMemAlloc_v2", byref(address), c_size_t(size))
        self._call("cuMemFree_v2", address)


def seconds_of(work: Work) -> float:
    work()  # a pool has to grow first
    start = time.perf_counter()
    for _ in range(CALLS):
        work()
    return (time.perf_counter() - start) / CALLS


def measure(bench: Bench, driver: Driver, name: str, size: int) -> None:
    samplers = [
        lambda: seconds_of(lambda: dt.empty((size,), dtype=dt.uint8)),
        lambda: seconds_of(lambda: driver.allocate_in_order(size)),
        lambda: seconds_of(lambda: driver.allocate(size)),
    ]
    ours, drivers, raw = (1e6 * seconds for seconds in medians(bench, *samplers))
    printed = f"{ours:.2f} us; cuMemAllocAsync {drivers:.2f} us"
    bench.line(f"allocate {name}", printed, ours / drivers, AIM)
    printed = f"{drivers:.2f} us; cuMemAlloc {raw:.2f} us"
    bench.line(f"cuMemAllocAsync of {name}", printed, drivers / raw, AIM)


def main() -> None:
    bench = cuda_timing.opened(cuda_timing.parser(__doc__).parse_args())
    driver = Driver(bench.device.properties["dl_device_id"])
    for name, size in SIZES.items():
        measure(bench, driver, name, bench.choose(size, 1 << 12))


if __name__ == "__main__":
    main()
