"""Devices written in Python: to try an idea out before its kernels are C++, or hardware that has a Python driver.

    from dovetail.prototype import PythonDevice, kernel

    class Acme(PythonDevice):
        name = "acme"

        @kernel("add", "float32 int32")
        def add(self, x1, x2, out):
            out.numpy()[...] = x1.numpy() + x2.numpy()

    dovetail.load_backend(Acme)

The class goes through the same protocol as a compiled plugin, so that all else of Dovetail takes it for one. It may
also be the object of an entry point of the group dovetail.backends, or stand in a file that DOVETAIL_BACKEND_PATH
names. A kernel that moves to C++ works on the same memory: its row is put in front of the Python one.

Python devices have no streams: a kernel has done its work when it returns. Kernels of several threads take turns,
as all Python code does, and may interrupt each other.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from dovetail import _core
from dovetail._core import DType, HostMemory
from dovetail._kernel_rows import rows_of

if TYPE_CHECKING:
    from typing import Self

    import numpy as np

__all__ = ["HostMemory", "Kernel", "PythonDevice", "View", "kernel"]

KINDS = ("cpu", "gpu", "npu", "other")


class View:
    """An operand: where its elements lie in the device's memory. Good for one call only.

    buffer: what alloc() returned for the memory; None where the operand is empty
    offset: bytes from the buffer's beginning to the first element
    address: of the first element in the device's address space, as a kernel in C++ sees it
    strides: in elements; 0 where an axis repeats
    """

    __slots__ = (
        "_readable", "address", "buffer", "dtype", "offset", "on_host", "shape", "strides", "writable",
    )  # fmt: skip

    def __init__(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: DType,
        buffer: Any,
        offset: int,
        address: int,
        writable: bool,
        readable: bool,
        on_host: bool,
    ) -> None:
        self.shape, self.strides, self.dtype = shape, strides, dtype
        self.buffer, self.offset, self.address = buffer, offset, address
        self.writable, self._readable, self.on_host = writable, readable, on_host

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        n = 1
        for length in self.shape:
            n *= length
        return n

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, without gaps between them."""
        return self.size * self.dtype.itemsize

    def numpy(self) -> np.ndarray:
        """The elements in place; of an input not to be written to. TypeError where the host cannot reach them."""
        import numpy as np

        dtype = _numpy_dtype(self.dtype)
        if self.buffer is None:
            return np.empty(self.shape, dtype)
        self._expect_readable()
        strides = [step * dtype.itemsize for step in self.strides]
        elements = np.ndarray(self.shape, dtype, self.buffer, self.offset, strides)
        if not self.writable:
            elements.flags.writeable = False
        return elements

    def bytes(self) -> memoryview:
        """The elements' bytes in place, where there are no gaps between them. TypeError as numpy()."""
        if self.buffer is None:
            return memoryview(b"")
        self._expect_readable()
        found = memoryview(self.buffer).cast("B")[self.offset : self.offset + self.nbytes]
        return found if self.writable else found.toreadonly()

    def _expect_readable(self) -> None:
        if not self._readable:
            raise TypeError(
                "the operand is not in memory of the host: expected work on its buffer, offset and strides; "
                "mapped = True declares memory that the host can reach"
            )

    def __repr__(self) -> str:
        return f"<View of {self.dtype} {self.shape} at {self.address:#x}>"


def _numpy_dtype(dtype: DType) -> np.dtype:
    found = _numpy_dtypes.get(dtype.name)
    if found is None:
        from dovetail.schema.dtypes import by_name

        found = _numpy_dtypes[dtype.name] = by_name[dtype.brief].numpy
    return found


_numpy_dtypes: dict[str, np.dtype] = {}


class Kernel:
    """A kernel of a device's class, as the decorator kernel() leaves it there."""

    def __init__(self, function: Callable[..., None], op: str, dtypes: str, options: dict[str, Any]) -> None:
        self.function, self.op, self.dtypes, self.options = function, op, dtypes, options
        self.asks: Callable[..., bool | str] | None = None
        self.__doc__ = function.__doc__

    def query(self, asks: Callable[..., bool | str]) -> Self:
        """Decorates a function that is asked before a call, with the kernel's arguments, whether it would serve it.

        It returns True, or a string with the reason, one of a few: then the op's decomposition runs. The views may
        have no buffer yet, and the answer must depend on shapes, strides and attributes alone.
        """
        self.asks = asks
        return self

    def __get__(self, device: object, owner: type | None = None) -> Any:
        return self if device is None else self.function.__get__(device, owner)


def kernel(
    op: str,
    dtypes: str,
    *,
    strided: bool = False,
    scalars: bool = False,
    alias: bool = False,
    engine: str = "python",
    version: int | None = None,
    deterministic: bool = False,
    max_ulp: float = 0.0,
) -> Callable[[Callable[..., None]], Kernel]:
    """Makes a method the device's kernel of an op: method(self, *inputs, *outputs, **attributes).

    Inputs and outputs are views, in the op's order; an optional input that is not given is None, those of a
    variadic op come as one list. Attributes come by name, as the op's rules leave them: axes are not negative. The
    result is written to the outputs; nothing is returned. An exception is the cause of the op's error, which keeps
    its kind if that is ValueError, IndexError or MemoryError and is a RuntimeError else.

    dtypes: the rows of the kernel table, in words. "float32 int64": what the op makes of values of these dtypes.
        "any", "any32": of all dtypes, or of those of 32 bits. "float32,int64->float32": the operands one by one.
    strided: inputs may have any strides; else they are made compact before the call. The op copy has no choice.
    scalars: a Python number may come as a view of shape () in memory of the host, where views have no common shape.
    alias: the output may be an input's memory.
    engine, version, deterministic, max_ulp: as in the kernel table of abi.h. Without version it is the newest one
        of the op whose operands and attributes the method takes.
    """
    options = {
        "strided": strided,
        "scalars": scalars,
        "alias": alias,
        "engine": engine,
        "version": version,
        "deterministic": deterministic,
        "max_ulp": max_ulp,
    }
    return lambda function: Kernel(function, op, dtypes, options)


class PythonDevice:
    """A device to derive from: give it a name and kernels. What is below has a default for each but the name.

    name: the backend's, in lower case; its devices are name:0, name:1, ...
    kind: "cpu", "gpu", "npu" or "other"
    product, arch: what the hardware is called, and its architecture
    memory: bytes of it, beyond which alloc() is not called; 0: unknown
    mapped: the host reaches the memory at the addresses that the device uses. Then alloc() returns objects with a
        writable buffer at a multiple of 64, such as HostMemory(size). Else it returns the device's address as an
        int, or any object that stands for the memory, and copy_bytes() is needed.
    fork_safe: it goes on working in a forked process; None: while alloc() is the default
    bytes_per_second: the memory's speed, for reports; 0: unknown
    """

    name: ClassVar[str] = ""
    version: ClassVar[str] = "0"
    kind: str = "other"
    product: str = ""
    arch: str = ""
    memory: int = 0
    mapped: bool = True
    fork_safe: bool | None = None
    bytes_per_second: float = 0.0

    def __init__(self, index: int) -> None:
        """Opens the device of that number. Its exception is the reason why the device cannot be used."""
        self.index = index

    @classmethod
    def count(cls) -> int:
        """How many devices there are on this machine."""
        return 1

    def alloc(self, size: int) -> Any:
        """Allocates this many bytes, at least 1. MemoryError if there is none left: the cache is then emptied."""
        return HostMemory(size)

    def free(self, buffer: Any) -> None:
        """Frees what alloc() returned. The default leaves that to Python."""

    def copy_bytes(self, dst: View, src: View) -> None:
        """Copies between the device and the host, or within the device: of one shape and dtype, without gaps.

        A view's on_host is True on the host's side; the host's memory is lent for this call and must not be kept.
        The default is for mapped memory.
        """
        dst.bytes()[:] = src.bytes()

    def close(self) -> None:
        """Called before the process ends, if it is overridden; the device is not used afterwards."""

    @classmethod
    def __dovetail_backend__(cls, registered: str = "") -> str:
        """Opens the class's devices; returns the backend's name. Called by discovery and load_backend()."""
        if cls not in _opened:
            if not cls.name:
                raise ValueError(f"{cls.__qualname__} has no name: expected name = '...', in lower case")
            for name in ("name", "version"):
                _expect(isinstance(getattr(cls, name), str), cls, name, getattr(cls, name), "a text")
            if cls.name in _opened.values():
                raise RuntimeError(
                    f"another Python class is open as {cls.name!r}, and stays so as long as the process; "
                    "choose another name, or start the process again"
                )
            kernels = [_describe(cls, name, k) for name, k in _kernels(cls).items()]
            _opened[cls] = _core.attach_python_backend(
                registered, cls.name, cls.version, source_of(cls), kernels, _devices(cls)
            )
        return _opened[cls]


_opened: dict[type[PythonDevice], str] = {}


def source_of(cls: type) -> str:
    """The file that the class was written in, or its name where there is none."""
    try:
        return os.path.abspath(inspect.getsourcefile(cls) or "") or cls.__qualname__
    except (TypeError, OSError):
        return f"{cls.__module__}.{cls.__qualname__}"


def _kernels(cls: type[PythonDevice]) -> dict[str, Kernel]:
    """By attribute, those of base classes first."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, Kernel) and hasattr(PythonDevice, name):
                raise ValueError(f"kernel {cls.__qualname__}.{name} hides the device's {name}: name it otherwise")
            if isinstance(value, Kernel) or name in found:
                found[name] = value
    return {name: value for name, value in found.items() if isinstance(value, Kernel)}


def _describe(cls: type[PythonDevice], name: str, k: Kernel) -> dict[str, Any]:
    what = f"kernel {cls.__qualname__}.{name}"
    rows = rows_of(k.op, k.dtypes, k.options, what, [f for f in (k.function, k.asks) if f])
    return {
        "op": k.op,
        "what": what,
        "function": k.function,
        "query": k.asks,
        "rows": rows.operands,
        "version": rows.version,
        **{key: k.options[key] for key in ("engine", "deterministic", "max_ulp")},
    }


def _devices(cls: type[PythonDevice]) -> list[dict[str, Any] | str]:
    """Descriptions of the devices that open, and the errors of the others. Raises if none opens."""
    found: list[dict[str, Any] | str] = []
    first: Exception | None = None
    count = cls.count()
    if not isinstance(count, int) or count < 0:
        raise ValueError(f"{cls.__qualname__}.count() returned {count!r}: expected how many devices there are")
    for index in range(count):
        try:
            found.append(_describe_device(cls(index)))
        except Exception as error:
            first = first or error
            found.append(f"{type(error).__name__}: {error}; correct {cls.__qualname__}")
    if first and not any(isinstance(d, dict) for d in found):
        raise first
    return found


def _describe_device(device: PythonDevice) -> dict[str, Any]:
    cls = type(device)

    def overridden(name: str) -> Any:
        return getattr(device, name) if getattr(cls, name) is not getattr(PythonDevice, name) else None

    _expect(device.kind in KINDS, cls, "kind", device.kind, "one of " + ", ".join(KINDS))
    for name in ("product", "arch"):
        _expect(isinstance(getattr(device, name), str), cls, name, getattr(device, name), "a text")
    whole = isinstance(device.memory, int) and 0 <= device.memory < 2**64
    _expect(whole, cls, "memory", device.memory, "a number of bytes, 0 where it is unknown")
    speed = device.bytes_per_second
    _expect(isinstance(speed, (int, float)) and speed >= 0, cls, "bytes_per_second", speed, "a number, or 0")
    if not device.mapped and not (overridden("alloc") and overridden("copy_bytes")):
        raise ValueError(f"{cls.__qualname__}.mapped is False: expected alloc() and copy_bytes() of its own")
    own_memory = overridden("alloc") is not None
    return {
        "self": device,
        "what": cls.__qualname__,
        "kind": KINDS.index(device.kind),
        "product": device.product or cls.__qualname__,
        "arch": device.arch,
        "memory": device.memory or (0 if own_memory else _host_memory()),
        "bytes_per_second": device.bytes_per_second,
        "mapped": device.mapped,
        "fork_safe": not own_memory if device.fork_safe is None else device.fork_safe,
        "alloc": device.alloc,
        **{name: overridden(name) for name in ("free", "copy_bytes", "close")},
    }


def _expect(ok: bool, cls: type, name: str, value: object, expected: str) -> None:
    if not ok:
        raise ValueError(f"{cls.__qualname__}.{name} is {value!r}: expected {expected}")


def _host_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0
