"""The emulator's tensor cores against NumPy in float64, because the tests of attention rely on them. The layouts of
fragments and of matrices in shared memory follow the PTX ISA ("Matrix Fragments for mma.m16n8k16", "Register
Fragments and Shared Memory Matrix Layouts" of wgmma, "ldmatrix"). This is a third, independent version, which
shares no code with the kernels or the emulator.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cuda_programs import EMULATED, python

HERE = str(Path(__file__).resolve().parent)
DTYPES = ["f16", "bf16"]
PRELUDE = """
import ml_dtypes
import numpy as np
from ctypes import c_uint32
from libcuda import *

device = Device()
rng = np.random.default_rng(11)
lane = np.arange(32)
group, place = lane // 4, lane % 4  # groupID and threadID_in_group
DTYPE = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}

def draw(dtype, *shape):
    return rng.normal(size=shape).astype(DTYPE.get(dtype, dtype))

def fragments_a(a):
    "Of 16 x 16: a0 and a1 in row groupID, a2 and a3 eight rows below, a4 to a7 eight columns further."
    i = np.arange(8)
    row = group[:, None] + np.where(i // 2 % 2, 8, 0)
    column = 2 * place[:, None] + i % 2 + np.where(i >= 4, 8, 0)
    return np.ascontiguousarray(a[row, column])

def fragments_b(b):
    "Of 16 x 8: b0 and b1 in column groupID, b2 and b3 eight rows below."
    i = np.arange(4)
    return np.ascontiguousarray(b[2 * place[:, None] + i % 2 + np.where(i >= 2, 8, 0), group[:, None]])

def places_c():
    "Rows and columns, in 16 x 8, of c0 to c3."
    i = np.arange(4)
    return group[:, None] + np.where(i >= 2, 8, 0), 2 * place[:, None] + i % 2

def results(fragments, columns):
    "The matrix of 64 rows that four warps hold: each 16 rows, in blocks of 8 columns."
    matrix = np.full((64, columns), np.nan)
    row, column = places_c()
    for warp in range(4):
        for block in range(columns // 8):
            matrix[16 * warp + row, 8 * block + column] = fragments[32 * warp : 32 * warp + 32, block]
    return matrix

def swizzled(rows):
    "Rows of 128 bytes, whose chunks of 16 bytes are exchanged by the row's number modulo 8."
    chunks = rows.reshape(len(rows), 8, 8)
    n = np.arange(len(rows))[:, None]
    mixed = np.empty_like(chunks)
    mixed[n, np.arange(8) ^ n % 8] = chunks
    return mixed.reshape(rows.shape)

def compare(got, a, b, c=0):
    a, b = a.astype(np.float64), b.astype(np.float64)
    bound = 2.0**-20 * (np.abs(a) @ np.abs(b) + np.abs(c))  # 64 roundings of float32, which are seldom all wrong
    assert np.all(np.abs(got - (a @ b + c)) <= bound), np.max(np.abs(got - (a @ b + c)) / bound)
"""


def program(code: str, **variables: str) -> None:
    python(PRELUDE + code, **EMULATED, PYTHONPATH=HERE, **variables)


@pytest.mark.parametrize("dtype", DTYPES)
def test_mma(dtype):
    program(f"""
a, b, c = draw({dtype!r}, 16, 16), draw({dtype!r}, 16, 8), draw(np.float32, 16, 8)
row, column = places_c()
to = device.put(c[row, column])
device.launch("check_mma_{dtype}", device.put(fragments_a(a)), device.put(fragments_b(b)), to)
got = np.full((16, 8), np.nan)
got[row, column] = device.get(to, (32, 4), np.float32)
compare(got, a, b, c)
""")


def test_ldmatrix():
    """Rows lie anywhere; with .trans a thread has a column of two rows."""
    program("""
matrices = rng.integers(0, 1 << 16, (4, 8, 8), np.uint16)
order = rng.permutation(32)
memory = np.empty((32, 8), np.uint16)
memory[order] = matrices.reshape(32, 8)
for transposed in (0, 1):
    to = device.put(np.zeros((32, 4), np.uint32))
    offsets = (16 * order).astype(np.uint32)
    device.launch("check_ldmatrix", device.put(memory), device.put(offsets), to, c_uint32(transposed), shared=512)
    got = device.get(to, (32, 4, 2), np.uint16)
    for i in range(4):
        m = matrices[i].T if transposed else matrices[i]
        np.testing.assert_array_equal(got[:, i], m[group[:, None], 2 * place[:, None] + [0, 1]])
""")


@pytest.mark.parametrize("dtype", DTYPES)
def test_wgmma_of_shared_memory(dtype):
    """m64n128k16 four times along K, from nothing and on what is there."""
    program(f"""
a, b, c = draw({dtype!r}, 64, 64), draw({dtype!r}, 64, 128), draw(np.float32, 64, 128)
row, column = places_c()
before = np.stack([np.stack([c[16 * w + row, 8 * n + column] for n in range(16)], 1) for w in range(4)])
memory = np.concatenate([swizzled(a), swizzled(np.ascontiguousarray(b.T))])
for add in (0, 1):
    to = device.put(before)
    device.launch("check_wgmma_{dtype}", device.put(memory), to, c_uint32(add), block=(128,), shared=memory.nbytes)
    compare(results(device.get(to, (128, 16, 4), np.float32), 128), a, b, c * add)
""")


@pytest.mark.parametrize("columns", [64, 128])
@pytest.mark.parametrize("dtype", DTYPES)
def test_wgmma_of_registers(dtype, columns):
    """A as fragments; rows of B lie across K, in parts of 64 columns."""
    program(f"""
a, b = draw({dtype!r}, 64, 16), draw({dtype!r}, 16, {columns})
fragments = np.concatenate([fragments_a(a[16 * warp : 16 * warp + 16]) for warp in range(4)])
memory = np.concatenate([swizzled(np.ascontiguousarray(b[:, n : n + 64])) for n in range(0, {columns}, 64)])
to = device.put(np.zeros((128, {columns} // 8, 4), np.float32))
device.launch("check_wgmma_{dtype}_{columns}", device.put(memory), device.put(fragments), to, block=(128,),
              shared=memory.nbytes)
compare(results(device.get(to, (128, {columns} // 8, 4), np.float32), {columns}), a, b)
""")
