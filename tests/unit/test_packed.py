"""The lifetime of packed operands, as seen from Python."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import dovetail as dt
import numpy as np
import pytest
from dispatch_kernel import float32_kernel
from dovetail.schema import op as declare
from dovetail.schema.declare import Tensor

pytestmark = pytest.mark.usefixtures("leave_the_schema_as_it_was")
names = (f"acme.packing_{i}" for i in itertools.count())


class Add:
    """x1 + x2, by a kernel that packs x2."""

    def __init__(self):
        name = next(names)
        array()  # the device exists

        @declare(name=name, shape="broadcast", dtype="float", reference=np.add, tol=1)
        def decomposition(x1: Tensor, x2: Tensor) -> Tensor:
            """x1 + x2."""
            return x1 + x2

        def compute(x1, x2):
            return x1 + x2

        self.call, self.compute = dt.register_op(decomposition), compute
        dt._core.add_kernel("cpu:0", float32_kernel(name, 2, compute, packs=1))

    def thrice(self, x, w) -> int:
        """How often three calls pack w."""
        before = self.compute.packed
        for _ in range(3):
            np.testing.assert_array_equal(self.call(x, w).numpy(), x.numpy() + w.numpy())
        return self.compute.packed - before


def array() -> dt.Array:
    return dt.asarray(np.arange(6, dtype=np.float32), device="cpu:0")


def packed_bytes() -> int:
    return dt.memory.stats("cpu:0")["packed"]


def changes(w):
    yield
    w[0] = 7.0
    yield
    w += 1
    yield
    w[dt.asarray([1], device="cpu:0")] = 3.0
    yield


def test_packed_bytes_are_freed_with_the_value():
    add, x, w = Add(), array(), array()
    for _ in changes(w):
        assert packed_bytes() == 0
        assert add.thrice(x, w) == 1 and packed_bytes() == 1024
    other = w[:3]
    w += 1  # gets other memory, without the packed bytes
    assert packed_bytes() == 1024 and add.thrice(x, w) == 1
    assert packed_bytes() == 2048
    del other
    assert packed_bytes() == 1024
    del w
    assert packed_bytes() == 0


def test_shared_memory_is_not_packed():
    add, x, w = Add(), array(), array()
    assert add.thrice(x, w) == 1
    capsule = w.__dlpack__(max_version=(1, 0))
    assert packed_bytes() == 0 and add.thrice(x, w) == 0
    del capsule
    theirs = np.arange(6, dtype=np.float32)
    imported = dt.from_dlpack(theirs)
    assert add.thrice(x, imported) == 0


def test_packing_can_be_switched_off():
    code = "import test_packed as t; print(t.Add().thrice(t.array(), t.array()))"
    path = [os.path.dirname(__file__), *sys.path]
    for value, packed in (("0", 0), ("1", 1)):
        environment = os.environ | {"DOVETAIL_PACKING": value, "PYTHONPATH": os.pathsep.join(path)}
        out = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        assert int(out.stdout) == packed
