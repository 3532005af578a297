"""The emulated driver has pools of memory, which other devices reach where they were given access."""

from __future__ import annotations

import pytest
from test_emulated_driver import program

POOLS = """
here, there = (Device(Driver(), i) for i in range(2))
driver, values = here.driver, np.arange(256, dtype=np.int32)
x = there.put(values)
driver.cuCtxPushCurrent(here.context)
y, pool = here.allocate(1024), c_void_p()
driver.cuDeviceGetMemPool(byref(pool), 1)

def access(flags, location_type=1, device=0):
    return driver.result("cuMemPoolSetAccess", pool, (c_int * 3)(location_type, device, flags), c_size_t(1))
def granted():
    flags = c_int(-1)
    driver.cuMemPoolGetAccess(byref(flags), pool, (c_int * 2)(1, 0))
    return flags.value
def allocated(): return driver.result("cuMemAllocFromPoolAsync", byref(c_uint64()), c_size_t(4), pool, here.stream)
def copied(): return result_of(lambda: here.copy(y, x, 1024))
def copied_as_peers():
    driver.cuMemcpyPeerAsync(y, here.context, x, there.context, c_size_t(1024), here.stream)
    return (here.get(y, 256, np.int32) == values).all()
NONE, READ, WRITE = 0, 1, 3
"""


def test_pools_are_for_devices_that_have_access():
    program(
        POOLS
        + """
assert granted() == NONE and copied() == 1 and allocated() == 1 and copied_as_peers()
assert access(READ) == access(WRITE, location_type=2) == access(NONE, device=1) == 1 and granted() == NONE
assert access(WRITE, device=2) == 101
assert access(WRITE) == 0 and granted() == WRITE and copied() == 0 and allocated() == 0
assert (here.get(y, 256, np.int32) == values).all()
assert access(NONE) == 0 and granted() == NONE and copied() == 1 and copied_as_peers()
""",
        DOVETAIL_CUDA_EMULATED_DEVICES="2",
    )


@pytest.mark.parametrize("peers", ["none", "lossy"])
def test_devices_without_peer_access(peers):
    program(
        POOLS
        + """
import os
lossy = os.environ["DOVETAIL_CUDA_EMULATED_PEERS"] == "lossy"
can = c_int()
driver.cuDeviceCanAccessPeer(byref(can), 0, 1)
assert can.value == lossy and access(WRITE) == (0 if lossy else 101)
assert copied_as_peers() == (not lossy)
""",
        DOVETAIL_CUDA_EMULATED_DEVICES="2",
        DOVETAIL_CUDA_EMULATED_PEERS=peers,
    )
