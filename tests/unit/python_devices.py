"""Devices written in Python that several tests share, because a process has few device numbers."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import dovetail as dt
import numpy as np
from dovetail.prototype import HostMemory, PythonDevice, kernel

numbers = itertools.count()


class Copies(PythonDevice):
    @kernel("copy", "any")
    def copy(self, x, out):
        out.numpy()[...] = x.numpy()


def opened(**members) -> dt.Device:
    """A new device with these members and a copy kernel. Few fit into a process."""
    cls = type("Acme", (Copies,), {"name": f"acme_{next(numbers)}"} | members)
    return dt.load_backend(cls)[0]


@kernel("add", "float32 int32")
def add(self, x1, x2, out):
    out.numpy()[...] = x1.numpy() + x2.numpy()


def floats(device: dt.Device, *shape: int) -> dt.Array:
    return dt.asarray(np.arange(np.prod(shape), dtype=np.float32).reshape(shape), device=device)


class Changing(Copies):
    """A device whose functions the test replaces."""

    name = "changing"
    now = SimpleNamespace()
    add = add

    def alloc(self, size):
        return getattr(self.now, "alloc", HostMemory)(size)

    def free(self, buffer):
        getattr(self.now, "free", lambda buffer: None)(buffer)

    def copy_bytes(self, dst, src):
        getattr(self.now, "copy_bytes", super().copy_bytes)(dst, src)

    @kernel("multiply", "float32")
    def multiply(self, x1, x2, out):
        return self.now.multiply(x1, x2, out)

    @kernel("square", "float32")
    def square(self, x, out):
        out.numpy()[...] = -1

    @square.query
    def asks(self, x, out):
        return self.now.query(x, out)
