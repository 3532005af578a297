"""The device's own functions, called past the runtime: what it hides or mends is seen here.

Mirrors the part of dovetail/abi.h that the checks call; the device's struct_size bounds the members that exist.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    byref,
    c_char_p,
    c_int32,
    c_int64,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any

import numpy as np

from . import Declined, Failed, expect
from .interchange import DLTensor

DEVICE_MEMORY, PINNED = 0, 1
UNSUPPORTED, OOM = 1, 3
_STATUS = dict(
    enumerate(
        ("DVT_OK", "DVT_UNSUPPORTED", "DVT_INVALID", "DVT_OOM", "DVT_DEVICE_LOST", "DVT_INTERNAL", "DVT_INDEX")
    )
)
HOST = (1, 0)  # as a DLPack device
BLOCK = 1 << 16  # bytes whose values show whether work was done
LONG = 0.2  # seconds of work that stand between a call and its effect

_status, _handle = c_int32, c_void_p
_out = POINTER(c_void_p)
_FUNCTIONS: dict[str, tuple[Any, ...]] = {  # name -> result, arguments
    "device_count": (_status, POINTER(c_uint32)),
    "device_open": (_status, c_uint32, _out),
    "device_close": (None, _handle),
    "device_props": (_status, _handle, c_void_p),
    "alloc": (_status, _handle, c_uint64, c_uint32, _handle, _out),
    "dealloc": (None, _handle, c_void_p, c_uint32, _handle),
    "copy": (_status, _handle, POINTER(DLTensor), POINTER(DLTensor), _handle),
    "mem_info": (_status, _handle, POINTER(c_uint64), POINTER(c_uint64)),
    "device_reset": (_status, _handle),
}
HOST_FN = CFUNCTYPE(None, c_void_p)
_STREAM_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "create": (_status, _handle, c_int32, _out),
    "destroy": (None, _handle),
    "sync": (_status, _handle),
    "ev_create": (_status, _handle, c_uint32, _out),
    "ev_destroy": (None, _handle),
    "ev_record": (_status, _handle, _handle),
    "ev_wait": (_status, _handle, _handle),
    "ev_sync": (_status, _handle),
    "ev_query": (_status, _handle, POINTER(c_uint32)),
    "ev_elapsed_ns": (_status, _handle, _handle, POINTER(c_uint64)),
    "wrap": (_status, _handle, c_void_p, _out),
    "native": (c_void_p, _handle),
    "host_fn": (_status, _handle, HOST_FN, c_void_p),
}
_CAPTURE_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "begin": (_status, _handle),
    "end": (_status, _handle, _out),
    "replay": (_status, _handle, _handle),
    "destroy": (None, _handle),
}
_EXTENSION, _CAPTURE = CFUNCTYPE(c_void_p, c_char_p, c_uint32), (b"dovetail.capture", 1)


def _table(functions: dict[str, tuple[Any, ...]], *before: tuple[str, Any], after: tuple[str, ...] = ()) -> type:
    fields = [*before, *((name, c_void_p) for name in functions), *((name, c_void_p) for name in after)]
    return type("Table", (Structure,), {"_fields_": fields})


_Backend = _table(
    _FUNCTIONS,
    *((name, c_uint32) for name in ("struct_size", "abi_major", "abi_minor", "abi_draft")),
    *((name, c_char_p) for name in ("name", "version", "build_info")),
    ("kernels", c_void_p),
    ("n_kernels", c_uint64),
    after=("streams", "extension"),
)
_Streams, _Capture = (
    _table(functions, ("struct_size", c_uint32), ("flags", c_uint32))
    for functions in (_STREAM_FUNCTIONS, _CAPTURE_FUNCTIONS)
)


def _bound(table: Structure, functions: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
    """The functions that the table has, by name."""
    found = {}
    for name, (result, *arguments) in functions.items():
        field = getattr(type(table), name)
        if table.struct_size >= field.offset + field.size and getattr(table, name):
            found[name] = CFUNCTYPE(result, *arguments)(getattr(table, name))
    return found


def _capture_functions(backend: Structure) -> dict[str, Any]:
    """The functions of the extension group, as capture_begin and so on; none where the device has no such group."""
    if backend.struct_size <= _Backend.extension.offset or not backend.extension:
        return {}
    group = _EXTENSION(backend.extension)(*_CAPTURE)
    bound = _bound(_Capture.from_address(group), _CAPTURE_FUNCTIONS) if group else {}
    return {f"capture_{name}": function for name, function in bound.items()}


RESERVING = 4  # of devices with this many streams or more, the suite leaves one that the host never uses


def most_streams(properties: dict[str, Any]) -> float:
    """How many streams of the device the host may have at once, its default one included."""
    limit = properties["max_streams"]
    return limit - (limit >= RESERVING) if limit else float("inf")


class Refused(Exception):
    """A function of the device did not answer DVT_OK."""

    def __init__(self, function: str, status: int, words: str):
        super().__init__(f"{function} answered {_STATUS.get(status, f'status {status}')}{words and f': {words}'}")
        self.status, self.words = status, words


class Table:
    """One device's functions, and the objects that a check has created with them: `close` frees them all."""

    def __init__(self, t: Any, device: Any = None):
        device = device or t.device
        self._api, self._device = t.api, device
        address, self.handle = t.api._core.device_table(device)
        self._take_failure = t.api._core.take_failure
        backend = _Backend.from_address(address)
        self._functions = _bound(backend, _FUNCTIONS)
        has_streams = backend.struct_size > _Backend.streams.offset and backend.streams
        self._functions |= _bound(_Streams.from_address(backend.streams), _STREAM_FUNCTIONS) if has_streams else {}
        self._functions |= _capture_functions(backend)
        self.has_streams = bool(has_streams)
        self.crosses_devices = bool(has_streams and _Streams.from_address(backend.streams).flags & 1)
        self.properties = device.properties
        self.device = (self.properties["dl_device_type"], device.index)
        self.align = self.properties["alloc_align"]
        self._blocks: dict[int, int] = {}  # address -> kind
        self._streams: dict[int, Any] = {}  # of the host, by handle
        self._created: list[int] = []  # streams that the host does not know
        self._events: list[int] = []
        self._graphs: list[int] = []

    def has(self, function: str) -> bool:
        return function in self._functions

    def call(self, function: str, *arguments: Any) -> None:
        """Raises Refused where the function answers with a status other than DVT_OK."""
        if status := self._functions[function](*arguments):
            raise Refused(function, status, self._take_failure(status)[1])

    def refused(self, function: str, *arguments: Any) -> Refused | None:
        """How it refuses; None where it does not."""
        try:
            self.call(function, *arguments)
        except Refused as error:
            return error
        return None

    def count(self) -> int:
        n = c_uint32()
        self.call("device_count", byref(n))
        return n.value

    def _made(self, function: str, *arguments: Any) -> int:
        out = c_void_p()
        self.call(function, *arguments, byref(out))
        expect(out.value, f"{function} answered DVT_OK, but gave nothing")
        return out.value or 0

    # ---- memory -------------------------------------------------------------------------------------------------

    def alloc(self, size: int, stream: int | None = None, kind: int = DEVICE_MEMORY) -> int:
        """The address of a block of at least this many bytes."""
        block = self._made("alloc", self.handle, -(-size // self.align) * self.align, kind, stream)
        self._blocks[block] = kind
        return block

    def dealloc(self, block: int, stream: int | None = None) -> None:
        self.call("dealloc", self.handle, block, self._blocks.pop(block), stream)

    def mem_info(self) -> tuple[int, int]:
        """Bytes free and in all."""
        if not self.has("mem_info"):
            raise Declined("the device has no mem_info: it does not say how much of its memory is free")
        free, total = c_uint64(), c_uint64()
        self.call("mem_info", self.handle, byref(free), byref(total))
        return free.value, total.value

    def _tensor(self, at: int | np.ndarray, size: int) -> DLTensor:
        on_host = isinstance(at, np.ndarray)
        shape, strides = (c_int64 * 1)(size), (c_int64 * 1)(1)
        data, device = (at.ctypes.data, HOST) if on_host else (at, self.device)
        return DLTensor(data, *device, 1, 1, 8, 1, shape, strides, 0)

    def copy(self, to: int | np.ndarray, source: int | np.ndarray, size: int, stream: int | None = None) -> None:
        """Bytes between blocks, and arrays of the host."""
        self.copy_from(self, to, source, size, stream)

    def copy_from(
        self, other: Table, to: int | np.ndarray, source: int | np.ndarray, size: int, stream: int | None = None
    ) -> None:
        """The same from another device's block."""
        there, here = other._tensor(source, size), self._tensor(to, size)
        self.call("copy", self.handle, byref(here), byref(there), stream)

    def block(self, values: np.ndarray) -> int:
        """A block with the values in it, there at once on every stream."""
        block = self.alloc(values.nbytes)
        self.copy(block, values, values.nbytes)
        return block

    def read(self, block: int, size: int = BLOCK, stream: int | None = None) -> np.ndarray:
        """The content of a block: on `stream` after its queued work, or without one at once."""
        values = np.zeros(size, np.uint8)
        self.copy(values, block, size, stream)
        return values

    @staticmethod
    def at_host(address: int, size: int) -> np.ndarray:
        """Memory of the host as an array."""
        return np.frombuffer((c_uint8 * size).from_address(address), np.uint8)

    # ---- streams and events -------------------------------------------------------------------------------------

    def stream(self) -> int:
        """A stream that the check uses nowhere else, until release(). Declined where the device has no more.

        The host creates it: together host and suite never have more than max_streams.
        """
        for make in (self._api.Stream, self._api._core.default_stream):
            if make is self._api.Stream and len(self._streams) + 1 >= most_streams(self.properties):
                continue
            stream = make(self._device)
            handle = self._api._core.stream_handle(stream)
            if handle not in self._streams:
                self._streams[handle] = stream
                return handle
        raise Declined(f"the device declares max_streams {self.properties['max_streams']}: the check needs more")

    def create(self) -> int:
        """A stream that is the check's to destroy. Declined where the host may have all that there can be."""
        limit = self.properties["max_streams"]
        if 0 < limit < RESERVING:
            raise Declined(f"the device declares max_streams {limit}, and the host keeps its streams: none is left")
        stream = self._made("create", self.handle, 0)
        self._created.append(stream)
        return stream

    def destroy(self, stream: int) -> None:
        self._created.remove(stream)
        self.call("destroy", stream)

    def release(self) -> None:
        """Waits for the streams that the check has used, and returns them to the host."""
        for stream in [*self._streams, *self._created]:
            with suppress(Refused):  # errors have been reported by now
                self.call("sync", stream)
        self._streams.clear()
        for stream in list(self._created):
            self.destroy(stream)

    def event(self, timing: bool = False) -> int:
        event = self._made("ev_create", self.handle, timing)
        self._events.append(event)
        return event

    def is_done(self, event: int) -> bool:
        done = c_uint32()
        self.call("ev_query", event, byref(done))
        return bool(done.value)

    def elapsed_ns(self, first: int, second: int) -> int:
        ns = c_uint64()
        self.call("ev_elapsed_ns", first, second, byref(ns))
        return ns.value

    # ---- capture ------------------------------------------------------------------------------------------------

    def captured(self, stream: int) -> int:
        """The graph of the work captured since capture_begin."""
        graph = self._made("capture_end", stream)
        self._graphs.append(graph)
        return graph

    def close(self) -> None:
        for graph in self._graphs:
            self.call("capture_destroy", graph)
        for stream in [*self._streams, *self._created]:
            with suppress(Refused):  # errors have been reported by now
                self.call("sync", stream)
        for event in self._events:
            self.call("ev_destroy", event)
        for block in list(self._blocks):
            self.dealloc(block)
        self.release()


@contextmanager
def table(t: Any, *, streams: bool = False) -> Iterator[Table]:
    """The device's functions; Declined where it has no streams although they are needed."""
    own = Table(t)
    if streams and not own.has_streams:
        raise Declined("the device declares that it has no streams")
    t.synchronize()
    try:
        yield own
    except Refused as error:
        raise Failed(str(error)) from error
    finally:
        own.close()


# ---- work that takes a while ------------------------------------------------------------------------------------


class Work:
    """Copies that keep a stream busy for about LONG seconds, and the work after them."""

    def __init__(self, t: Any, own: Table, rng: np.random.Generator):
        self.own = own
        self.before, self.after = (rng.integers(0, 256, BLOCK, dtype=np.uint8) for _ in range(2))
        self.source, self.target = own.block(self.after), own.block(self.before)
        self._size = min(1 << 28, max(1 << 24, own.properties["mem_total"] >> 10))
        self._from, self._to = (own.alloc(self._size) for _ in range(2))
        self._read: list[np.ndarray] = []
        if "copies" not in t.made:
            t.made["copies"] = self._calibrated()
        self._copies: int = t.made["copies"]

    def _calibrated(self) -> int:
        """How many copies leave LONG seconds of work; 1 where the calls wait, and none is left."""
        stream, n, left, took = self.own.stream(), 1, 0.0, 0.0
        while left < LONG and took < 4 * LONG:
            n *= 2
            begin = time.perf_counter()
            self._busy(stream, n)
            enqueued = time.perf_counter() - begin
            self.own.call("sync", stream)
            # If sync does not wait, this read bounds the work; it is kept, as this copy may be late as well.
            self._read.append(self.own.read(self._to, stream=stream))
            took = time.perf_counter() - begin
            left = took - enqueued
        return n if left > LONG / 10 else 1

    def _busy(self, stream: int, copies: int) -> None:
        for _ in range(copies):
            self.own.copy(self._to, self._from, self._size, stream)

    def busy(self, stream: int) -> None:
        """The stream has something to do for a while."""
        self._busy(stream, self._copies)

    def enqueue(self, stream: int) -> None:
        """After long work `target` becomes `after`."""
        self.busy(stream)
        self.own.copy(self.target, self.source, BLOCK, stream)

    def again(self) -> None:
        """`target` is `before`; nothing is queued that writes it."""
        self.own.copy(self.target, self.before, BLOCK)

    def is_done(self) -> bool:
        return np.array_equal(self.own.read(self.target), self.after)
