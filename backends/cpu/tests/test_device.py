"""The device's own functions: probe, handshake, properties, memory, copies."""

from __future__ import annotations

import ctypes as ct
import mmap
import platform
import re

import harness
import numpy as np
import pytest
from abi import INVALID, OOM, DLTensor, Props
from harness import KernelError


@pytest.fixture(scope="module")
def cpu() -> harness.Session:
    return harness.fresh()


def test_probe_says_yes(cpu):
    probe = cpu.library.dvt_probe_v1
    probe.argtypes, probe.restype = [ct.c_char_p, ct.c_size_t], ct.c_int32
    assert probe(ct.create_string_buffer(200), 200) >= 1
    assert probe(None, 0) >= 1


def test_another_protocol_is_refused_with_the_cure():
    s = harness.fresh()
    table = ct.POINTER(harness.BackendTable)()
    for field in ("abi_major", "abi_draft"):
        host = s._make_host(harness.library_path())
        setattr(host, field, 9)
        s.keep.append(host)
        assert s.library.dvt_backend_v1(ct.byref(host), ct.byref(table)) == INVALID
        assert s.failure is not None and "rebuild the plugin" in s.failure[1]
        s.failure = None


def test_properties(cpu):
    device = cpu.open()
    p = Props(struct_size=ct.sizeof(Props))
    cpu.check(cpu.table.device_props(device, ct.byref(p)))
    level = re.search("kernels (\\w+);", cpu.table.build_info.decode())[1]
    architectures = {
        "default": b"x86-64-v2" if platform.machine() == "x86_64" else b"armv8-a",
        "avx2": b"x86-64-v3 (avx2)",
        "avx512": b"x86-64-v4 (avx512)",
        "neon_bf16": b"armv8.2-a (neon_bf16)",
    }
    assert p.name and p.arch == architectures[level]
    assert (p.kind, p.caps, p.dl_device_type, p.dl_device_id) == (0, 1 | 4, 1, 0)
    assert p.alloc_align >= 64 and p.mem_total > 1 << 28 and p.n_peaks == 0
    free, total = ct.c_uint64(), ct.c_uint64()
    cpu.check(cpu.table.mem_info(device, ct.byref(free), ct.byref(total)))
    assert 0 < free.value <= total.value == p.mem_total


def test_older_host_gets_only_what_it_knows(cpu):
    p = Props(struct_size=Props.caps.offset)
    cpu.check(cpu.table.device_props(cpu.open(), ct.byref(p)))
    assert p.name and p.alloc_align == 0


def test_only_one_device(cpu):
    device = ct.c_void_p()
    with pytest.raises(KernelError, match="expected index 0, got 1"):
        cpu.check(cpu.table.device_open(1, ct.byref(device)))


def test_memory(cpu):
    device = cpu.open()
    for size in (64, 4096, 1 << 24):
        for kind in (0, 1, 2):
            data = ct.c_void_p()
            cpu.check(cpu.table.alloc(device, size, kind, None, ct.byref(data)))
            assert data.value and data.value % 64 == 0
            ct.memset(data, 0x5A, size)
            cpu.table.dealloc(device, data, kind, None)
    data = ct.c_void_p()
    assert cpu.table.alloc(device, 1 << 60, 0, None, ct.byref(data)) == OOM
    assert not data.value


def test_copy(cpu):
    device = cpu.open()
    for source in (np.arange(1000, dtype="f4"), np.zeros((0, 3), "i8"), np.array(7, "i2")):
        keep: list[object] = []
        target = np.full_like(source, 3)
        to, of = harness._tensor(target, keep), harness._tensor(source, keep)
        cpu.check(cpu.table.copy(device, ct.pointer(to), ct.pointer(of), None))
        np.testing.assert_array_equal(target, source)
    assert ct.sizeof(DLTensor) == 48


def test_table_is_well_formed(cpu):
    """Rows name their op and types; rows of one op and engine do not repeat."""
    seen = set()
    for row in cpu.rows:
        operands = [row.operands[i] for i in range(row.n_in + row.n_out)]
        types = tuple((o.dtype.code, o.dtype.bits, o.dtype.lanes) for o in operands)
        assert row.op.startswith(b"dvt.") and row.op_version in (1, 2) and row.run
        assert all(lanes == 1 for *_, lanes in types)
        key = (row.op, row.engine, types)
        assert key not in seen, key
        seen.add(key)


def asks_for_large_pages(address: int) -> bool:
    """Whether the mapping of an address does, in what the system says of this process."""
    inside = False
    with open("/proc/self/smaps") as file:
        for line in file:
            if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
                inside = int(found[1], 16) <= address < int(found[2], 16)
            elif inside and line.startswith("VmFlags:"):
                return "hg" in line.split()
    return False


def test_large_arrays_are_in_large_pages(cpu):
    size = 16 << 20
    with mmap.mmap(-1, size) as own:
        own.madvise(mmap.MADV_HUGEPAGE)
        view = ct.c_char.from_buffer(own)
        known = asks_for_large_pages(ct.addressof(view) + size // 2)
        del view
    if not known:
        pytest.skip("the system, or its emulator, has no large pages")
    device, memory = cpu.open(), ct.c_void_p()
    cpu.check(cpu.table.alloc(device, size, 0, None, ct.byref(memory)))
    assert asks_for_large_pages(memory.value + size // 2)
    cpu.table.dealloc(device, memory, 0, None)
