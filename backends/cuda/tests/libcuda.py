"""libcuda's C functions for programs that test the emulated one."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from ctypes import byref, c_float, c_int, c_size_t, c_uint64, c_void_p
from typing import Any

import numpy as np

# Functions that cuda.h renames.
VERSIONS = {
    name: f"{name}_v2"
    for name in (
        *("cuCtxPopCurrent", "cuCtxPushCurrent", "cuDeviceGetUuid", "cuDevicePrimaryCtxRelease"),
        *("cuDevicePrimaryCtxReset", "cuDeviceTotalMem", "cuEventDestroy", "cuEventElapsedTime", "cuMemAlloc"),
        *("cuMemFree", "cuMemGetInfo", "cuStreamBeginCapture", "cuStreamDestroy"),
    )
} | {"cuGraphInstantiate": "cuGraphInstantiateWithFlags", "cuStreamGetCaptureInfo": "cuStreamGetCaptureInfo_v3"}
HOST_FUNCTION = ctypes.CFUNCTYPE(None, c_void_p)
SHARED_BYTES = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class Failed(Exception):
    def __init__(self, name: str, result: int) -> None:
        super().__init__(f"{name}: {result}")
        self.result = result


class Driver:
    """d.cuMemAlloc(...) calls it and raises Failed; numbers are passed as C's int unless they have a ctypes
    type."""

    def __init__(self, path: str = os.environ.get("DOVETAIL_CUDA_DRIVER", "")) -> None:
        self.library = ctypes.CDLL(path)

    def result(self, name: str, *arguments: Any) -> int:
        return self.library[VERSIONS.get(name, name)](*arguments)

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> None:
            if result := self.result(name, *arguments):
                raise Failed(name, result)

        return call

    def fail(self, failures: str) -> None:
        assert self.library.dovetail_cuda_emulator(failures.encode()) == 0, failures


class Device:
    """A driver with a current context on one of its devices, and common operations of programs."""

    def __init__(self, driver: Driver | None = None, index: int = 0) -> None:
        self.driver = driver or Driver()
        self.driver.cuInit(0)
        self.index, self.context = index, c_void_p()
        self.driver.cuDevicePrimaryCtxRetain(byref(self.context), index)
        self.driver.cuCtxPushCurrent(self.context)
        self.library = c_void_p()
        self.driver.cuLibraryLoadData(byref(self.library), b"anything", None, None, 0, None, None, 0)
        self.stream = self.new_stream()

    def new_stream(self, flags: int = 1) -> c_void_p:  # 1: CU_STREAM_NON_BLOCKING
        stream = c_void_p()
        self.driver.cuStreamCreateWithPriority(byref(stream), flags, 0)
        return stream

    def new_event(self, flags: int = 0) -> c_void_p:
        event = c_void_p()
        self.driver.cuEventCreate(byref(event), flags)
        return event

    def allocate(self, size: int) -> c_uint64:
        address = c_uint64()
        self.driver.cuMemAllocAsync(byref(address), c_size_t(size), self.stream)
        return address

    def put(self, values: np.ndarray) -> c_uint64:
        """A copy of the values on the device."""
        values = np.ascontiguousarray(values)
        address = self.allocate(values.nbytes)
        self.copy(address, c_uint64(values.ctypes.data), values.nbytes)
        self.wait()
        return address

    def get(self, address: c_uint64, shape: int | Sequence[int], dtype: Any) -> np.ndarray:
        values = np.empty(shape, dtype)
        self.copy(c_uint64(values.ctypes.data), address, values.nbytes)
        self.wait()
        return values

    def copy(self, to: c_uint64, source: c_uint64, size: int, stream: c_void_p | None = None) -> None:
        self.driver.cuMemcpyAsync(to, source, c_size_t(size), stream or self.stream)

    def wait(self, stream: c_void_p | None = None) -> None:
        self.driver.cuStreamSynchronize(stream or self.stream)

    def kernel(self, name: str) -> c_void_p:
        kernel = c_void_p()
        self.driver.cuLibraryGetKernel(byref(kernel), self.library, name.encode())
        return kernel

    def launch(
        self,
        name: str,
        *arguments: Any,
        grid: Sequence[int] = (1,),
        block: Sequence[int] = (32,),
        shared: int = 0,
        stream: c_void_p | None = None,
    ) -> None:
        dimensions = [*grid, 1, 1][:3] + [*block, 1, 1][:3]
        pointers = (c_void_p * len(arguments))(*(ctypes.addressof(a) for a in arguments))
        kernel = self.kernel(name)
        self.driver.cuLaunchKernel(kernel, *dimensions, shared, stream or self.stream, pointers, None)

    def block(self, stream: c_void_p) -> Blocked:
        return Blocked(self, stream)

    def elapsed(self, start: c_void_p, end: c_void_p) -> float:
        milliseconds = c_float()
        self.driver.cuEventElapsedTime(byref(milliseconds), start, end)
        return milliseconds.value

    def attribute(self, which: int) -> int:
        value = c_int()
        self.driver.cuDeviceGetAttribute(byref(value), which, self.index)
        return value.value


class Blocked:
    """A stream that waits for release()."""

    def __init__(self, device: Device, stream: c_void_p) -> None:
        import threading

        self.held = threading.Event()
        self.function = HOST_FUNCTION(lambda _: self.held.wait(20) and None)
        device.driver.cuLaunchHostFunc(stream, self.function, None)

    def release(self) -> None:
        self.held.set()


def result_of(work: Any) -> int:
    """0, or the driver's error."""
    try:
        work()
    except Failed as failed:
        return failed.result
    return 0
