"""The emulated driver follows CUDA's manual: memory, streams, events, captures, contexts, failures."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cuda_programs import EMULATED, run

PRELUDE = """
import ctypes, threading
import numpy as np
from ctypes import byref, c_int, c_int32, c_uint64, c_ubyte
from libcuda import *
"""
DEVICE = """
device = Device()
driver = device.driver
"""


def program(code: str, check: bool = True, **variables: str):
    here = str(Path(__file__).resolve().parent)
    return run(sys.executable, "-c", PRELUDE + code, check=check, **EMULATED, PYTHONPATH=here, **variables)


def test_calls_need_an_initialised_driver_and_a_current_context():
    program("""
driver, address = Driver(), c_uint64()
count = c_int()
assert driver.result("cuDeviceGetCount", byref(count)) == 3
driver.cuInit(0)
driver.cuDeviceGetCount(byref(count))
assert count.value == 1 and driver.result("cuDeviceGet", byref(count), 1) == 101
assert driver.result("cuMemAlloc", byref(address), c_size_t(1)) == 201
assert driver.result("cuDevicePrimaryCtxRelease", 0) == 201
device = Device(driver)
driver.cuMemAlloc(byref(address), c_size_t(1))
popped, now = c_void_p(), c_void_p()
driver.cuCtxPopCurrent(byref(popped))
driver.cuCtxGetCurrent(byref(now))
assert popped.value == device.context.value and not now.value
assert driver.result("cuMemFree", address) == 201 and driver.result("cuCtxPopCurrent", byref(popped)) == 201
""")


def test_a_context_that_was_reset_is_dead_until_it_is_retained_again():
    program(
        DEVICE
        + """
old = device.put(np.arange(9))
driver.cuDevicePrimaryCtxReset(0)
flags, active = ctypes.c_uint(), c_int(7)
driver.cuDevicePrimaryCtxGetState(0, byref(flags), byref(active))
assert active.value == 0 and result_of(device.wait) == 709
again = Device(driver)
driver.cuDevicePrimaryCtxGetState(0, byref(flags), byref(active))
assert active.value == 1
assert result_of(device.wait) == 400, "a stream outlived its context"
assert result_of(lambda: again.get(old, 9, np.int64)) == 1, "memory outlived its context"
assert again.get(again.put(np.arange(9)), 9, np.int64).sum() == 36
"""
    )


def test_memory_is_counted_checked_and_given_back():
    ended = program(
        DEVICE
        + """
def unused():
    free, total = c_size_t(), c_size_t()
    driver.cuMemGetInfo(byref(free), byref(total))
    assert total.value == 64 << 20
    return free.value
assert unused() == 64 << 20
a, b = device.allocate(40 << 20), c_uint64()
assert unused() == 24 << 20
assert result_of(lambda: device.allocate((24 << 20) + 1)) == 2
b = device.allocate(24 << 20)
driver.cuMemFreeAsync(a, device.stream)
device.wait()
assert unused() == 40 << 20
driver.cuMemFree(b)
assert unused() == 64 << 20
assert driver.result("cuMemFree", b) == 1 and driver.result("cuMemFreeAsync", a, device.stream) == 1
assert result_of(lambda: device.allocate(0)) == 1

x = device.allocate(100)
host = np.zeros(200, np.uint8)
at_host = c_uint64(host.ctypes.data)
def copied(to, source, size): return result_of(lambda: device.copy(to, source, size))
def moved(x, n): return c_uint64(x.value + n)
assert copied(x, at_host, 100) == 0 and copied(at_host, moved(x, 60), 40) == 0
assert copied(x, at_host, 101) == 1 and copied(at_host, moved(x, 60), 41) == 1
assert copied(moved(x, 100), at_host, 1) == 1
assert copied(a, at_host, 1) == 1, "an address that was given back"
assert driver.result("cuMemsetD8Async", x, c_ubyte(1), c_size_t(101), device.stream) == 1
assert driver.result("cuMemsetD8Async", at_host, c_ubyte(1), c_size_t(1), device.stream) == 1

kind = c_int()
def kind_of(x):
    result = driver.result("cuPointerGetAttribute", byref(kind), 2, x)
    return kind.value if result == 0 else -result
pinned, managed = c_uint64(), c_uint64()
driver.cuMemHostAlloc(byref(pinned), c_size_t(10), 0)
driver.cuMemAllocManaged(byref(managed), c_size_t(10), 1)
assert [kind_of(p) for p in (x, pinned, managed, at_host, moved(x, 100))] == [2, 1, 2, -1, -1]
assert driver.result("cuMemFree", pinned) == 1 and driver.result("cuMemFreeHost", managed) == 1
driver.cuMemFreeHost(pinned)
driver.cuMemFree(managed)

device.launch("check_write_at", x, ctypes.c_int64(25))  # behind its 100 bytes
device.wait()
driver.cuMemFree(x)
assert result_of(device.wait) == 700
""",
        DOVETAIL_CUDA_EMULATED_MEMORY=str(64 << 20),
    )
    assert "a write behind an allocation of 100 bytes" in ended.stderr


def test_memory_that_is_freed_in_order_serves_what_is_queued_before():
    program(
        DEVICE
        + """
x, out = device.put(np.full(256, 7, np.int32)), np.zeros(256, np.int32)
blocked = device.block(device.stream)
device.launch("check_add", x, c_int32(1), block=(256,))
device.copy(c_uint64(out.ctypes.data), x, 1024)
driver.cuMemFreeAsync(x, device.stream)
assert result_of(lambda: device.copy(x, x, 4)) == 1
blocked.release()
device.wait()
assert (out == 8).all()
"""
    )


def test_streams_go_on_by_themselves_and_events_order_them():
    program(
        DEVICE
        + """
one, two, event, late = device.new_stream(), device.new_stream(), device.new_event(), device.new_event()
x = device.put(np.zeros(256, np.int32))
assert driver.result("cuEventQuery", event) == 0 and driver.result("cuEventSynchronize", event) == 0
assert result_of(lambda: device.elapsed(event, event)) == 400, "an event without a record has no time"
blocked = device.block(one)
device.launch("check_add", x, c_int32(3), block=(256,), stream=one)
driver.cuEventRecord(event, one)
driver.cuStreamWaitEvent(two, event, 0)
device.launch("check_scale", x, c_int32(2), block=(256,), stream=two)
driver.cuEventRecord(late, two)
assert driver.result("cuStreamQuery", one) == driver.result("cuStreamQuery", two) == 600
assert driver.result("cuEventQuery", event) == driver.result("cuEventQuery", late) == 600
assert (device.get(x, 256, np.int32) == 0).all(), "another stream need not wait"
assert result_of(lambda: device.elapsed(event, late)) == 600
blocked.release()
driver.cuEventSynchronize(late)
assert driver.result("cuEventQuery", event) == 0 and device.elapsed(event, late) >= 0
assert (device.get(x, 256, np.int32) == 6).all()
driver.cuEventDestroy(event)
assert driver.result("cuEventRecord", event, one) == 400

without_time = device.new_event(2)
driver.cuEventRecord(without_time, one)
device.wait(one)
assert result_of(lambda: device.elapsed(without_time, late)) == 400
"""
    )


def test_a_stream_that_is_destroyed_does_what_it_was_given():
    program(
        DEVICE
        + """
stream, x = device.new_stream(), device.put(np.zeros(256, np.int32))
event = device.new_event()
blocked = device.block(stream)
device.launch("check_add", x, c_int32(3), block=(256,), stream=stream)
driver.cuEventRecord(event, stream)
driver.cuStreamDestroy(stream)
assert result_of(lambda: device.wait(stream)) == 400
blocked.release()
driver.cuEventSynchronize(event)
assert (device.get(x, 256, np.int32) == 3).all()
"""
    )


def test_the_default_stream_and_blocking_streams_wait_for_each_other():
    program(
        DEVICE
        + """
blocking, default = device.new_stream(0), c_void_p(0)
x = device.put(np.zeros(256, np.int32))
blocked = device.block(blocking)
device.launch("check_add", x, c_int32(3), block=(256,), stream=blocking)
driver.cuMemcpyAsync(x, x, c_size_t(4), default)
assert driver.result("cuStreamQuery", default) == 600
two = c_int32(2)
pointers = (c_void_p * 2)(ctypes.addressof(x), ctypes.addressof(two))
driver.cuLaunchKernel(device.kernel("check_scale"), 1, 1, 1, 256, 1, 1, 0, default, pointers, None)
device.launch("check_add", x, c_int32(1), block=(256,), stream=blocking)
blocked.release()
device.wait(blocking)
assert (device.get(x, 256, np.int32) == 7).all()
"""
    )


def test_host_functions_may_not_call_the_driver():
    program(
        DEVICE
        + """
answers = []
function = HOST_FUNCTION(lambda _: answers.append(driver.result("cuStreamQuery", device.stream)))
driver.cuLaunchHostFunc(device.stream, function, None)
device.wait()
assert answers == [800]
"""
    )


CAPTURE = """
RELAXED, GLOBAL = 2, 0
def begin(stream, mode=RELAXED):
    driver.cuStreamBeginCapture(stream, mode)
def end(stream):
    graph = c_void_p()
    driver.cuStreamEndCapture(stream, byref(graph))
    return graph
def status(stream):
    which, id_ = c_int(-1), c_uint64()
    driver.cuStreamIsCapturing(stream, byref(which))
    also = c_int(-1)
    driver.cuStreamGetCaptureInfo(stream, byref(also), byref(id_), None, None, None, None)
    assert which.value == also.value
    return which.value
def instantiate(graph):
    executable = c_void_p()
    driver.cuGraphInstantiate(byref(executable), graph, c_uint64(0))
    driver.cuGraphDestroy(graph)
    return executable
def fork(source, target):
    event = device.new_event()
    driver.cuEventRecord(event, source)
    driver.cuStreamWaitEvent(target, event, 0)
"""


@pytest.mark.parametrize("order", ["forward", "backward", "shuffled:5"])
def test_a_capture_spreads_over_streams_and_is_replayed(order):
    program(
        DEVICE
        + CAPTURE
        + """
one, two = device.new_stream(), device.new_stream()
x, y = device.put(np.zeros(256, np.int32)), device.put(np.zeros(256, np.int32))
begin(one)
device.launch("check_add", x, c_int32(1), block=(256,), stream=one)
fork(one, two)
device.launch("check_add_other", x, y, block=(256,), stream=two)  # y += x
assert status(one) == status(two) == 1
fork(two, one)
device.launch("check_scale", x, c_int32(2), block=(256,), stream=one)
executable = instantiate(end(one))
assert status(one) == status(two) == 0
assert not device.get(x, 256, np.int32).any(), "captured work was done"
expected_x = expected_y = 0
for _ in range(4):
    driver.cuGraphLaunch(executable, two)
    expected_x += 1
    expected_y += expected_x
    expected_x *= 2
device.wait(two)
driver.cuGraphExecDestroy(executable)
assert (device.get(x, 256, np.int32) == expected_x).all() and (device.get(y, 256, np.int32) == expected_y).all()
""",
        DOVETAIL_CUDA_EMULATED_ORDER=order,
    )


def test_an_event_that_is_missing_in_a_capture_shows_in_some_order():
    """Two kernels on one array, on streams that nothing orders."""
    results = {
        order: program(
            DEVICE
            + CAPTURE
            + """
one, two = device.new_stream(), device.new_stream()
x = device.put(np.zeros(256, np.int32))
begin(one)
fork(one, two)
device.launch("check_add", x, c_int32(1), block=(256,), stream=one)
device.launch("check_scale", x, c_int32(2), block=(256,), stream=two)
fork(two, one)
executable = instantiate(end(one))
driver.cuGraphLaunch(executable, one)
device.wait(one)
print(device.get(x, 256, np.int32)[0])
""",
            DOVETAIL_CUDA_EMULATED_ORDER=order,
        ).stdout.strip()
        for order in ("forward", "backward")
    }
    assert results == {"forward": "2", "backward": "1"}


def test_calls_that_captures_refuse():
    program(
        DEVICE
        + CAPTURE
        + """
one, two, three = (device.new_stream() for _ in range(3))
outside, inside, address = device.new_event(), device.new_event(), c_uint64()
x = device.put(np.zeros(256, np.int32))
driver.cuEventRecord(outside, two)
def end_of(stream): return result_of(lambda: end(stream))
def add(stream): device.launch("check_add", x, c_int32(1), block=(256,), stream=stream)

assert end_of(one) == 401, "no capture has begun"
assert result_of(lambda: begin(c_void_p(0))) == 900

for spoil, answer in (
    (lambda: device.wait(one), 900),
    (lambda: driver.cuStreamQuery(one), 900),
    (lambda: driver.cuStreamWaitEvent(one, outside, 0), 905),
    (lambda: driver.cuCtxSynchronize(), 900),
):
    begin(one)
    assert result_of(lambda: begin(one)) == 401 and status(one) == 1
    assert result_of(spoil) == answer and status(one) == 2
    assert result_of(lambda: add(one)) == 901
    assert end_of(one) == 901 and status(one) == 0

begin(one)  # an event of a capture
driver.cuEventRecord(inside, one)
assert driver.result("cuEventQuery", inside) == 907 and driver.result("cuEventSynchronize", inside) == 907
assert end_of(one) == 0
assert driver.result("cuStreamWaitEvent", two, inside, 0) == 1, "its capture has ended"
driver.cuEventRecord(inside, one)
driver.cuStreamWaitEvent(two, inside, 0)

begin(one)  # two captures
begin(two)
driver.cuEventRecord(inside, one)
assert driver.result("cuStreamWaitEvent", two, inside, 0) == 902
assert end_of(one) == 901 and end_of(two) == 901

begin(one)  # a stream that does not come back
fork(one, two)
add(two)
assert end_of(one) == 904 and status(two) == 0

begin(one)  # the end on another stream
fork(one, two)
assert end_of(two) == 903 and end_of(one) == 901

begin(one, GLOBAL)  # what a capture cannot see
assert driver.result("cuMemAlloc", byref(address), c_size_t(4)) == 900
assert end_of(one) == 901
begin(one)
assert driver.result("cuMemAlloc", byref(address), c_size_t(4)) == 0
assert end_of(one) == 0

begin(one, GLOBAL)  # another thread
answers = []
def elsewhere():
    driver.cuCtxPushCurrent(device.context)
    answers.append(end_of(one))
thread = threading.Thread(target=elsewhere)
thread.start()
thread.join()
assert answers == [908] and end_of(one) == 0

blocking = device.new_stream(0)  # the default stream would wait for it
begin(blocking)
assert driver.result("cuMemcpyAsync", x, x, c_size_t(4), c_void_p(0)) == 906
assert end_of(blocking) == 901

begin(one)
driver.cuStreamDestroy(one)
assert end_of(one) == 400
device.launch("check_add", x, c_int32(1), block=(256,))
assert (device.get(x, 256, np.int32) == 1).all(), "what was spoiled was done"
"""
    )


def test_failures_come_at_the_call_that_was_asked_for():
    program(
        DEVICE
        + """
def allocated(): return result_of(lambda: device.allocate(4))
assert [allocated() for _ in range(6)] == [0, 0, 2, 0, 999, 999]
driver.fail("cuMemAllocAsync=2@2")
assert [allocated() for _ in range(3)] == [0, 2, 0]
driver.fail("")
assert allocated() == 0
for wrong in ("cuMemAllocAsync", "cuMemAllocAsync=2", "cuMemAllocAsync=2@x", "cuMemAllocAsync=2@1,,", "cuFly=1@1"):
    assert driver.library.dovetail_cuda_emulator(wrong.encode()) != 0, wrong
""",
        DOVETAIL_CUDA_EMULATED_FAILURES="cuMemAllocAsync=2@3,cuMemAllocAsync=999@5-6",
    )


def test_a_lasting_failure_is_returned_by_every_call_until_the_reset():
    program(
        DEVICE
        + """
x, out = device.put(np.zeros(256, np.int32)), np.zeros(256, np.int32)
blocked = device.block(device.stream)
device.launch("check_add", x, c_int32(1), block=(256,))
device.copy(c_uint64(out.ctypes.data), x, 1024)
called = []
function = HOST_FUNCTION(lambda _: called.append(1))
driver.cuLaunchHostFunc(device.stream, function, None)
event = device.new_event()
driver.cuEventRecord(event, device.stream)
driver.fail("cuStreamQuery=700@2+")
assert [driver.result("cuStreamQuery", device.stream) for _ in range(3)] == [600, 700, 700]
for work in (device.wait, device.new_stream, device.new_event, lambda: device.allocate(4),
             lambda: driver.cuEventSynchronize(event), lambda: driver.cuMemFree(x)):
    assert result_of(work) == 700
blocked.release()
driver.cuDevicePrimaryCtxReset(0)
assert not out.any() and not called, "work that was queued behind the failure was done"
again = Device(driver)
assert again.get(again.put(np.ones(4)), 4, float).sum() == 4
"""
    )


@pytest.mark.parametrize(("failures", "answers"), [("cuInit=100@1+", [100, 100]), ("cuInit=34@1", [34, 0])])
def test_drivers_that_do_not_start(failures, answers):
    program(
        f"driver = Driver(); assert [driver.result('cuInit', 0) for _ in range(2)] == {answers}",
        DOVETAIL_CUDA_EMULATED_FAILURES=failures,
    )


def test_failures_that_are_not_understood_end_the_program():
    code = "Driver().result('cuInit', 0)"
    ended = program(code, check=False, DOVETAIL_CUDA_EMULATED_FAILURES="cuFly=1@1")
    assert ended.returncode and "expected function=result@call" in ended.stderr


def test_several_devices_of_the_kind_that_was_asked_for():
    program(
        """
devices = [Device(Driver(), i) for i in range(3)]
driver, (first, second, third) = devices[0].driver, devices
assert [first.attribute(which) for which in (75, 76, 16, 97)] == [8, 0, 108, 163 << 10]
version = c_int()
driver.cuDriverGetVersion(byref(version))
assert version.value == 12040
x = third.put(np.arange(256, dtype=np.int32))
driver.cuCtxPushCurrent(first.context)
y = first.allocate(1024)
def copied(*contexts):
    to, source = (c.context for c in contexts)
    return driver.result("cuMemcpyPeerAsync", y, to, x, source, c_size_t(1024), first.stream)
assert copied(first, third) == 0 and copied(third, first) == 1
assert (first.get(y, 256, np.int32) == np.arange(256)).all()
can = c_int()
driver.cuDeviceCanAccessPeer(byref(can), 0, 2)
assert can.value == 1
assert [driver.result("cuCtxEnablePeerAccess", d.context, 0) for d in (third, third, first)] == [0, 704, 101]

driver.fail("cuStreamQuery=700@1+")  # of one device alone
assert driver.result("cuStreamQuery", first.stream) == 700 == result_of(first.wait)
driver.cuCtxPushCurrent(second.context)
assert second.get(second.put(np.ones(4)), 4, float).sum() == 4
""",
        DOVETAIL_CUDA_EMULATED_DEVICES="3",
        DOVETAIL_CUDA_EMULATED_CAPABILITY="8.0",
        DOVETAIL_CUDA_EMULATED_VERSION="12040",
    )


def test_errors_have_the_drivers_names():
    program("""
driver, text = Driver(), ctypes.c_char_p()
driver.cuGetErrorName(700, byref(text))
assert text.value == b"CUDA_ERROR_ILLEGAL_ADDRESS"
driver.cuGetErrorString(2, byref(text))
assert text.value == b"out of memory"
assert driver.result("cuGetErrorName", 12345, byref(text)) == 1 and text.value is None
""")


def test_the_log_has_the_reason_of_a_refused_call():
    code = DEVICE + "device.result = driver.result('cuMemFree', c_uint64(5))"
    words = "emulated cuMemFree: error 1: no allocation of that kind begins at this address"
    assert words in program(code, DOVETAIL_CUDA_EMULATED_LOG="1").stderr
    assert program(code).stderr == ""
