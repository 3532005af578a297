"""The emulator runs correct kernels in every order of threads, and reports races and bad accesses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cuda_programs import EMULATED, python, run

ORDERS = ["forward", "backward", "shuffled:1", "shuffled:2"]
PRELUDE = """
import ctypes, sys
import numpy as np
from ctypes import byref, c_int32, c_int64, c_uint64, c_uint8, c_uint16
from libcuda import *

device = Device()
driver = device.driver
"""
HERE = str(Path(__file__).resolve().parent)


def program(code: str, **variables: str) -> str:
    return python(PRELUDE + code, **EMULATED, PYTHONPATH=HERE, **variables)


@pytest.mark.parametrize("order", ORDERS)
def test_block_sums(order):
    program(
        """
x = np.random.default_rng(0).integers(-99, 99, (100, 256)).astype(np.float32)
sums = device.put(np.zeros(100, np.float32))
device.launch("check_sum", device.put(x), sums, grid=(100,), block=(256,))
np.testing.assert_array_equal(device.get(sums, 100, np.float32), x.sum(1))
""",
        DOVETAIL_CUDA_EMULATED_ORDER=order,
    )


def wrong_in(name: str, order: str) -> bool:
    """Is the result of this kernel another one than that of the right kernel, check_<name>, must be?"""
    return "wrong" in program(
        f"""
n = 32 if {name!r}.startswith("check_swap") else 256
x = np.arange(n, dtype=np.int32)
y = device.put(np.zeros(n, np.int32))
expected = x ^ 1 if n == 32 else x[::-1]
if {name!r}.startswith("check_sum"):
    x, expected = np.ones(n, np.float32), np.float32([n])
device.launch({name!r}, device.put(x), y, block=(n,), shared=4 * n)
got = device.get(y, len(expected), x.dtype)
print("right" if np.array_equal(got, expected) else "wrong")
""",
        DOVETAIL_CUDA_EMULATED_ORDER=order,
    )


@pytest.mark.parametrize("name", ["check_sum", "check_reverse", "check_swap"])
def test_a_missing_barrier_shows_in_some_order(name):
    assert not any(wrong_in(name, order) for order in ORDERS)
    assert any(wrong_in(f"{name}_without_barrier", order) for order in ORDERS)


@pytest.mark.parametrize("order", ORDERS)
def test_operations_of_warps(order):
    program(
        """
lane = np.arange(64) % 32
x = np.arange(64, dtype=np.int32) + 1
def lanes(source, width=32):
    "What each thread gets from the lane `source` of its warp, or keeps where that is in another group."
    same = lane // width == source // width
    return np.where(same & (source >= 0), x[np.arange(64) // 32 * 32 + source % 32], x)
def votes(which):
    of_warps = (which.reshape(2, 32) << np.arange(32, dtype=np.int64)).sum(1)
    return of_warps.astype(np.uint32).view(np.int32).repeat(32)
group = lane // 8 * 8
xor8 = lane ^ 9
expected = np.stack([
    lanes(0 * lane + 5), lanes(group + 5), lanes(lane - 3), lanes(lane - 3, 8),
    np.where(lane + 3 < 32, lanes((lane + 3) % 32), x), lanes(np.where(lane % 8 + 3 < 8, lane + 3, lane), 8),
    lanes(lane ^ 9), np.where(xor8 <= group + 7, lanes(xor8), x),
    votes(x % 3 == 0), np.repeat([1, 0], 32), np.repeat([0, 1], 32), lanes(lane ^ 1),
], 1)
y = device.put(np.zeros((64, 12), np.int32))
device.launch("check_shuffles", device.put(x), y, block=(64,))
np.testing.assert_array_equal(device.get(y, (64, 12), np.int32), expected)

y = device.put(np.zeros(64, np.int32))
device.launch("check_halves", device.put(x), y, block=(64,))
expected = np.where(lane < 16, lanes(lane ^ 1), lanes(0 * lane + 31))
np.testing.assert_array_equal(device.get(y, 64, np.int32), expected)

device.launch("check_returned_lanes", y, block=(32,))
np.testing.assert_array_equal(device.get(y, 20, np.int32), (1 << 20) - 1)

a, b = np.random.default_rng(0).integers(-9, 9, (2, 32)).astype(np.int32)
device.launch("check_collective", device.put(a), device.put(b), y, block=(32,))
np.testing.assert_array_equal(device.get(y, 32, np.int32), a * b.sum())

y = device.put(np.zeros(256, np.int32))
device.launch("check_returned_warps", y, block=(256,))
np.testing.assert_array_equal(device.get(y, 64, np.int32), np.arange(64))
""",
        DOVETAIL_CUDA_EMULATED_ORDER=order,
    )


@pytest.mark.parametrize(
    ("kernel", "threads", "words"),
    [
        ("check_barrier_in_half_a_warp", 256, "divergent barrier: it has returned while other lanes"),
        ("check_barriers_in_both_branches", 256, "divergent barrier: __syncthreads at check_barriers.cu:"),
        (
            "check_barrier_and_shuffle",
            64,
            "its threads wait for each other: 1 in __syncthreads at check_barriers.cu:",
        ),
        ("check_shuffle_from_outside", 32, "reads a lane that does not take part"),
        ("check_mask_without_itself", 32, "thread (31, 0, 0): __syncwarp of lanes 0x7fffffff"),
        ("check_different_operations", 32, "while a lane of its warp is in"),
    ],
)
@pytest.mark.parametrize("order", ORDERS[:2])
def test_kernels_that_would_hang_are_reported(kernel, threads, words, order):
    """With the kernel, the block and the thread; the context has then failed like after a fault of a GPU's."""
    ended = run_program(
        f"""
arguments = [device.put(np.zeros({threads}, np.int32))] if {kernel!r} in (
    "check_shuffle_from_outside", "check_different_operations") else []
device.launch({kernel!r}, *arguments, block=({threads},))
assert result_of(device.wait) == 719
assert result_of(device.wait) == 719
""",
        DOVETAIL_CUDA_EMULATED_ORDER=order,
    )
    assert f"error 719: kernel {kernel}, block (0, 0, 0)" in ended.stderr and words in ended.stderr, ended.stderr


def test_masks_that_differ_are_reported_where_they_meet():
    """In the other order each mask is complete by itself."""
    ended = run_program("""
device.launch("check_masks_that_differ")
assert result_of(device.wait) == 719
""")
    words = "of lanes 0xffff0000 at check_warps.cu:"
    assert words in ended.stderr and "while a lane of its warp is in __syncwarp of lanes 0xffffffff" in ended.stderr


def run_program(code: str, **variables: str):
    return run(sys.executable, "-c", PRELUDE + code, **EMULATED, PYTHONPATH=HERE, **variables)


def test_the_active_mask_promises_no_more_than_the_lane_itself():
    program("""
y = device.put(np.zeros(1, np.int32))
device.launch("check_active_mask", y)
assert device.get(y, 1, np.int32) == 32
""")


def test_indices_parameters_numbers_and_atomics():
    program("""
y = device.put(np.zeros((2 * 3 * 4, 64), np.uint32))
device.launch("check_indices", y, grid=(2, 3, 4), block=(4, 8, 2))
x3, y3, z3 = np.meshgrid(range(2), range(3), range(4), indexing="ij")
blocks = (z3 * 100 + y3 * 10 + x3).transpose(2, 1, 0).reshape(-1, 1)
x3, y3, z3 = np.meshgrid(range(4), range(8), range(2), indexing="ij")
threads = (z3 * 100 + y3 * 10 + x3).transpose(2, 1, 0).reshape(1, -1)
np.testing.assert_array_equal(device.get(y, (24, 64), np.uint32), threads * 1000 + blocks)

class CheckStruct(ctypes.Structure):
    _fields_ = [("a", c_int64), ("b", c_uint8), ("c", ctypes.c_float * 3)]
y = device.put(np.zeros(5))
device.launch("check_parameters", c_uint8(3), CheckStruct(-(1 << 40), 5, (1, 2, 2.5)), y, c_uint16(65535))
np.testing.assert_array_equal(device.get(y, 5, float)[[0, 1, 2, 3, 4]], [3, -(1 << 40), 5, 2.5, 65535])
offset, size = c_size_t(), c_size_t()
kernel, layout = device.kernel("check_parameters"), []
while not driver.result("cuKernelGetParamInfo", kernel, c_size_t(len(layout)), byref(offset), byref(size)):
    layout.append((offset.value, size.value))
assert layout == [(0, 1), (8, 24), (32, 8), (40, 2)], layout

a, b = np.random.default_rng(0).integers(0, 1 << 64, (2, 256), np.uint64)
a[:4], b[:4] = [0, 1, 0x80000000, 1 << 63], [0, 0xffff, 0x7654, 1]
out = device.put(np.zeros((256, 9), np.uint64))
device.launch("check_integers", device.put(a), device.put(b), out, block=(256,))
def bits(x, n): return format(x, f"0{n}b")
def permuted(a, selector):
    bytes_ = a.to_bytes(8, "little")
    chosen = [(bytes_[s & 7], s & 8) for s in (selector >> 4 * i & 15 for i in range(4))]
    return int.from_bytes(bytes((0xff if b & 0x80 else 0) if sign else b for b, sign in chosen), "little")
low = 0xffffffff
for x, y, got in zip(a.tolist(), b.tolist(), device.get(out, (256, 9), np.uint64).tolist()):
    x32, y32 = x & low, y & low
    expected = [bits(x32, 32).find("1") if x32 else 32, bits(x, 64).find("1") if x else 64, x32.bit_count(),
                bits(x32, 32)[::-1].find("1") + 1, x32 * y32 >> 32, x * y >> 64,
                int(bits(x32, 32)[::-1], 2), permuted(x, y32), int(bits(x, 64)[::-1], 2)]
    assert got == expected, (x, y, got, expected)

x = np.random.default_rng(1).integers(-1000, 1000, 512).astype(np.int32)
start = np.int32([5, 0, 0, 0, 0, -5000])
y, total = device.put(start), device.put(np.float32([0]))
device.launch("check_atomics", device.put(x), y, total, grid=(2,), block=(256,))
expected = [5 + x.sum(), x.min(), x.max(), np.bitwise_or.reduce(1 << (x & 15)), 7, x.max()]
assert device.get(y, 6, np.int32).tolist() == expected
assert device.get(total, 1, np.float32) == 256
""")


def test_dynamic_shared_memory_begins_as_nan_and_ends_where_it_ends():
    ended = run_program("""
y = device.put(np.zeros(512, np.float32))
device.launch("check_poison", y, grid=(2,), block=(256,), shared=1024)
assert np.isnan(device.get(y, 512, np.float32)).all()
device.launch("check_shared_overrun", block=(64,), shared=4 * 65)
device.wait()
device.launch("check_shared_overrun", block=(64,), shared=4 * 64)
assert result_of(device.wait) == 700
""")
    assert "kernel check_shared_overrun, block (0, 0, 0): a write behind its 256 bytes of dynamic" in ended.stderr


@pytest.mark.parametrize("order", ORDERS)
def test_what_a_processor_refuses_fails_the_kernel_and_not_the_process(order):
    """An address of the device that was freed or never given out; a quotient without a value."""
    ended = run_program(
        """
x = device.put(np.ones(256, np.int32))
device.launch("check_write_at", x, c_int64(255), block=(256,))
device.launch("check_write_at", x, c_int64(1 << 20), block=(256,))
assert result_of(device.wait) == 700
driver.cuDevicePrimaryCtxReset(0)
device = Device(driver)
x = device.put(np.ones(64, np.int32))
device.launch("check_divide", x)
device.wait()
driver.cuMemsetD8Async(x, ctypes.c_ubyte(0), c_size_t(256), device.stream)
device.launch("check_divide", x)
assert result_of(device.wait) == 719
driver.cuDevicePrimaryCtxReset(0)
device = Device(driver)
x = device.put(np.arange(256, dtype=np.int32))
device.launch("check_add", x, c_int32(5), block=(256,))
np.testing.assert_array_equal(device.get(x, 256, np.int32), np.arange(256) + 5)
""",
        DOVETAIL_CUDA_EMULATED_ORDER=order,
    )
    assert "kernel check_write_at, block (0, 0, 0), thread (3, 0, 0): uses the address 0x" in ended.stderr
    assert "kernel check_divide, block (0, 0, 0), thread (" in ended.stderr


def test_limits_of_launches():
    program("""
nothing = device.put(np.zeros(4096, np.float32))
def launch(name="check_poison", grid=(1,), block=(256,), shared=1024):
    argument = nothing if name == "check_poison" else ctypes.c_uint32(1)
    return result_of(lambda: device.launch(name, argument, grid=grid, block=block, shared=shared))
assert launch() == 0
assert launch(block=(257,)) == 701  # compiled for 256
assert launch("check_barriers", block=(1024,)) == 0
for wrong in ({"block": (1025,)}, {"block": (1, 1, 65)}, {"block": (32, 33)}, {"block": (0,)}, {"grid": (0,)},
              {"grid": (1, 65536)}, {"grid": (1, 1, 65536)}):
    assert launch("check_barriers", **wrong) == 1, wrong

kernel = device.kernel("check_poison")
def raise_to(size):
    return driver.result("cuKernelSetAttribute", SHARED_BYTES, size, kernel, 0)
assert launch(shared=48 << 10) == 0 and launch(shared=(48 << 10) + 1) == 1
assert raise_to(227 << 10) == 0 and launch(shared=227 << 10) == 0 and launch(shared=(227 << 10) + 1) == 1
assert raise_to((227 << 10) + 1) == 1
device.wait()
""")
    program(
        """
kernel = device.kernel("check_sum")
driver.cuKernelSetAttribute(SHARED_BYTES, 163 << 10, kernel, 0)
assert driver.result("cuKernelSetAttribute", SHARED_BYTES, 164 << 10, kernel, 0) == 1
""",
        DOVETAIL_CUDA_EMULATED_CAPABILITY="8.0",
    )


def test_an_order_that_is_none_is_refused():
    code = PRELUDE + "device.launch('check_barriers', ctypes.c_uint32(1)); device.wait()"
    ended = run(
        *(sys.executable, "-c", code),
        check=False,
        **EMULATED,
        PYTHONPATH=HERE,
        DOVETAIL_CUDA_EMULATED_ORDER="sideways",
    )
    assert ended.returncode and "expected forward, backward or shuffled:SEED" in ended.stderr
