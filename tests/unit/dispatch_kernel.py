"""A kernel row written in Python through ctypes: enough of abi.h to add a kernel to a device while a test runs."""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable

import numpy as np


class DLDataType(c.Structure):
    _fields_ = [("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16)]


class DLTensor(c.Structure):
    _fields_ = [
        ("data", c.c_void_p), ("device_type", c.c_int32), ("device_id", c.c_int32), ("ndim", c.c_int32),
        ("dtype", DLDataType), ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)),
        ("byte_offset", c.c_uint64),
    ]  # fmt: skip

    def numpy(self) -> np.ndarray:
        """The float32 elements, in place."""
        shape, strides = self.shape[: self.ndim], [4 * s for s in self.strides[: self.ndim]]
        size = 1 + sum((n - 1) * s // 4 for n, s in zip(shape, strides, strict=True))
        flat = np.ctypeslib.as_array(c.cast(self.data, c.POINTER(c.c_float)), (size,))
        return np.lib.stride_tricks.as_strided(flat, shape, strides)


class Call(c.Structure):
    _fields_ = [
        ("struct_size", c.c_uint32), ("n_in", c.c_uint32), ("n_out", c.c_uint32), ("n_attr", c.c_uint32),
        ("inputs", c.POINTER(c.POINTER(DLTensor))), ("outputs", c.POINTER(c.POINTER(DLTensor))),
    ]  # fmt: skip


class Operand(c.Structure):
    _fields_ = [("dtype", DLDataType), ("flags", c.c_uint8), ("align_log2", c.c_uint8), ("reserved", c.c_uint16)]


Run = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.POINTER(Call))


class Kernel(c.Structure):
    _fields_ = [
        ("struct_size", c.c_uint32), ("op_version", c.c_uint32), ("op", c.c_char_p), ("engine", c.c_char_p),
        ("operands", c.POINTER(Operand)), ("n_in", c.c_uint32), ("n_out", c.c_uint32), ("flags", c.c_uint32),
        ("max_ulp", c.c_float), ("run", Run),
        ("query", c.c_void_p), ("pack_size", c.c_void_p), ("pack", c.c_void_p),
    ]  # fmt: skip


PackSize = c.CFUNCTYPE(
    c.c_int32, c.c_void_p, c.POINTER(Call), c.c_uint32, c.POINTER(c.c_uint64), c.POINTER(c.c_uint64)
)
Pack = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.POINTER(Call), c.c_uint32, c.c_void_p)

STRIDED, PACKABLE = 1, 32
_alive: list[object] = []  # rows live as long as the process


def float32_kernel(
    op: str, n_in: int, compute: Callable[..., np.ndarray], engine: str = "test", packs: int | None = None
) -> int:
    """The address of a row that computes output 0 from NumPy views of its inputs; compute.calls counts.

    It packs the operand `packs`, which compute.packed counts, and does not use the packed bytes."""
    compute.calls = compute.packed = 0  # type: ignore[attr-defined]

    def run(_device: object, call: object) -> int:
        compute.calls += 1  # type: ignore[attr-defined]
        this = call[0]  # type: ignore[index]
        this.outputs[0][0].numpy()[...] = compute(*(this.inputs[i][0].numpy() for i in range(n_in)))
        return 0

    def pack_size(_device: object, _call: object, _operand: int, size: object, layout: object) -> int:
        size[0], layout[0] = 1000, 1  # type: ignore[index]
        return 0

    def pack(_device: object, _call: object, operand: int, _to: object) -> int:
        compute.packed += operand == packs  # type: ignore[attr-defined]
        return 0

    operands = (Operand * (n_in + 1))(*[Operand(DLDataType(2, 32, 1), STRIDED, 0, 0)] * (n_in + 1))
    row = Kernel(
        c.sizeof(Kernel), 1, op.encode(), engine.encode(), operands, n_in, 1, 0, 0.0, Run(run), None, None, None
    )
    _alive.extend([row, operands])
    if packs is not None:
        operands[packs].flags |= PACKABLE
        functions = PackSize(pack_size), Pack(pack)
        row.pack_size, row.pack = (c.cast(f, c.c_void_p) for f in functions)
        _alive.extend(functions)
    return c.addressof(row)
