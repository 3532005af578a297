"""Copies between GPUs: direct where each reaches the other's memory, right in any case."""

from __future__ import annotations

import sys

import pytest
from cuda_programs import EMULATED, run

PRELUDE = """
import ctypes, os
import dovetail as dv, numpy as np

driver = ctypes.CDLL(os.environ["DOVETAIL_CUDA_DRIVER"])
first, second = dv.device("cuda:0"), dv.device("cuda:1")
values = np.arange(1 << 18, dtype=np.float32)

def moves(source, target):
    '''Does an array come over as it is?'''
    return np.array_equal(dv.asarray(values, device=source).to_device(target).numpy(), values)

def reaches(device, other):
    '''Has it access to the other's pool?'''
    pool, flags, location = ctypes.c_void_p(), ctypes.c_int(), (ctypes.c_int * 2)(1, device)
    assert driver.cuDeviceGetMemPool(ctypes.byref(pool), other) == 0
    assert driver.cuMemPoolGetAccess(ctypes.byref(flags), pool, location) == 0
    return flags.value == 3
"""
TWO = EMULATED | {"DOVETAIL_CUDA_EMULATED_DEVICES": "2"}


def program(code: str, **variables: str) -> str:
    """The log of a program with two emulated devices."""
    return run(sys.executable, "-c", PRELUDE + code, **TWO, **variables).stderr


def test_a_device_gets_access_when_it_first_copies():
    program("""
assert not reaches(0, 1) and not reaches(1, 0)
assert moves(first, second) and reaches(1, 0) and not reaches(0, 1)
assert moves(second, first) and reaches(0, 1)
driver.dovetail_cuda_emulator(b"cuMemPoolSetAccess=1@1-9,cuMemAllocFromPoolAsync=1@1-9")
assert moves(first, second) and moves(second, first)
""")


@pytest.mark.parametrize(
    "refusal",
    [
        {"DOVETAIL_CUDA_EMULATED_FAILURES": "cuDeviceGetMemPool=801@1-9"},
        {"DOVETAIL_CUDA_EMULATED_FAILURES": "cuMemPoolSetAccess=101@1-9"},
        {"DOVETAIL_CUDA_EMULATED_FAILURES": "cuMemAllocFromPoolAsync=2@1-9"},
        {"DOVETAIL_CUDA_EMULATED_FAILURES": "cuMemcpyPeerAsync=1@2"},
        {"DOVETAIL_CUDA_EMULATED_PEERS": "lossy"},
    ],
    ids=lambda refusal: next(iter(refusal.values())),
)
def test_without_access_copies_are_staged(refusal):
    printed = program(
        """
assert moves(first, second) and moves(first, second)
driver.dovetail_cuda_emulator(b"")
assert not reaches(1, 0)
""",
        **refusal,
        DOVETAIL_LOGS="plugin",
    )
    assert printed.count("copies by GPU 1 from and to GPU 0 pass through the host: ") == 1, printed


def test_devices_that_are_no_peers():
    program(
        """
assert "p2p" not in first.properties["caps"]
assert moves(first, second) and moves(second, first) and not reaches(1, 0) and not reaches(0, 1)
""",
        DOVETAIL_CUDA_EMULATED_PEERS="none",
    )


def test_several_threads_copy_first():
    program("""
import threading
wrong = []
def work(source, target):
    if not all(moves(source, target) for _ in range(10)):
        wrong.append((source, target))
threads = [threading.Thread(target=work, args=pair) for pair in ((first, second), (second, first)) * 3]
[t.start() for t in threads]
[t.join() for t in threads]
assert not wrong and reaches(1, 0) and reaches(0, 1)
""")
