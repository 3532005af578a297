"""Queues, without the runtime: enqueueing does not wait, and the device measures its own time. Tests for any
asynchronous device: its own test file imports them and provides the fixture `program`, which runs code after the
prelude of device_programs.
"""


def test_a_hundred_calls_on_a_blocked_queue_return(program):
    """Kernels, copies from the host, views, allocation and freeing."""
    program("""
stream = dv.Stream(device)
x = dv.arange(10_000, dtype=dv.float32)
indices = dv.asarray([3, 1, 2])
(dv.where(x < 2.0, x + 1.0, dv.exp(x)), dv.take(x, indices))  # kernels are compiled when they are first used
device.synchronize()
blocked = Blocked(dv._core.stream_handle(stream))
with stream:
    y = x
    for i in range(100):
        y = dv.where(x < 5000.0, y + 1.0, y)
        z = dv.take(y, indices) + dv.asarray(np.float32([i, i, i]))
blocked.release()
stream.synchronize()
expected = np.arange(10_000, dtype=np.float32) + 100 * (np.arange(10_000) < 5000)
np.testing.assert_array_equal(y.numpy(), expected)
np.testing.assert_array_equal(z.numpy(), expected[[3, 1, 2]] + 99)
""")


def test_waiting_for_a_blocked_stream_blocks_no_caller(program):
    """An event of a blocked queue: recorded, waited for by another queue, and queried, all without blocking."""
    program("""
one, two, event = own.stream(), own.stream(), own.event()
source, target = own.block(np.ones(64, np.uint8)), own.block(np.zeros(64, np.uint8))
blocked = Blocked(one)
own.copy(target, source, 64, one)
own.call("ev_record", event, one)
for _ in range(100):
    own.call("ev_wait", two, event)
out = own.alloc(64, two)
own.copy(out, target, 64, two)
assert not own.is_done(event)
blocked.release()
own.call("sync", two)
assert own.is_done(event) and own.read(out, 64).all()
""")


def test_a_stream_destroyed_while_blocked_finishes_its_work(program):
    program("""
stream = own.create()
source, target = own.block(np.ones(64, np.uint8)), own.block(np.zeros(64, np.uint8))
blocked = Blocked(stream)
own.copy(target, source, 64, stream)
own.dealloc(source, stream)
own.destroy(stream)
blocked.release()
import time
end = time.monotonic() + 20
while not own.read(target, 64).all():
    assert time.monotonic() < end, "the queued copy was not done"
""")


def test_a_fault_is_raised_once_by_the_next_wait(program):
    """The call itself has returned before the kernel runs, and later calls do not raise it."""
    program("""
stream = dv.Stream(device)
x, bad, good = dv.arange(5), dv.asarray([7]), dv.asarray([2])
dv.take(x, good)
device.synchronize()
blocked = Blocked(dv._core.stream_handle(stream))
with stream:
    y = dv.take(x, bad)
    z = dv.take(x, good)
blocked.release()
try:
    stream.synchronize()
    raise AssertionError("the fault was lost")
except IndexError as error:
    assert "index 7 is out of range: axis 0 has 5 elements" in str(error), error
stream.synchronize()
assert z.tolist() == [2]
""")


def test_time_is_measured_between_events_made_for_it(program):
    program("""
stream = own.stream()
plain, first, second = own.event(), own.event(timing=True), own.event(timing=True)
source, target = (own.alloc(1 << 24) for _ in range(2))
for event in (plain, first):
    own.call("ev_record", event, stream)
own.copy(target, source, 1 << 24, stream)
own.call("ev_record", second, stream)
own.call("ev_sync", second)
assert own.elapsed_ns(first, second) > 0
import ctypes
refused = own.refused("ev_elapsed_ns", plain, second, ctypes.byref(ctypes.c_uint64()))
assert refused and "expected two recorded with timing" in refused.words, refused
""")
