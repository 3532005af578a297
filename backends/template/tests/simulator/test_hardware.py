"""Properties of the simulated hardware: memory of its own, asynchronous queues, a clock."""

import signal

ADDRESS = """
def address(array):
    capsule = array.__dlpack__(max_version=(1, 0))
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    # version, manager_ctx, deleter and flags stand before the tensor, whose first member is data
    return ctypes.c_void_p.from_address(get(capsule, b"dltensor_versioned") + 32).value
"""


def test_the_host_cannot_touch_its_memory(python):
    touched = python(
        ADDRESS + "x = dt.asarray([1.0]); print(dt.add(x, 1.0), flush=True); ctypes.string_at(address(x), 4)",
        check=False,
    )
    assert "[2.]" in touched.stdout
    assert touched.returncode == -signal.SIGSEGV


def test_addresses_are_unique(python):
    python(
        ADDRESS
        + """
ranges = []
for array in [dt.zeros((1 << 20,), device=d) for d in (first, second) for _ in range(5)]:
    ranges.append((address(array), array.nbytes))
host = [np.zeros(1 << 22, np.uint8) for _ in range(5)]
ranges += [(h.ctypes.data, h.nbytes) for h in host]
ranges.sort()
assert all(a + n <= b for (a, n), (b, _) in zip(ranges, ranges[1:])), ranges
"""
    )


def test_enqueuing_does_not_wait(python, tmp_path):
    """While the device is stopped, 100 calls and a copy from the host return."""
    gate = tmp_path / "gate"
    python(
        f"""
stream = dt.Stream(first)
x = dt.asarray(np.arange(1000, dtype=np.float32))
first.synchronize()
open({str(gate)!r}, "w").close()
with stream:
    y = x
    for _ in range(100):
        y = y + 1
    z = y + dt.asarray(np.full(1000, 5, np.float32))
    assert not stream.query()
done = threading.Event()
waiter = threading.Thread(target=lambda: (z.numpy(), done.set()))
waiter.start()
assert not done.wait(0.05)
os.unlink({str(gate)!r})
waiter.join()
equal(z, np.arange(1000) + 105)
assert stream.query()
""",
        FAULT=f"hold:1:{gate}",
    )


def test_a_full_queue_blocks_the_host(python):
    """A loop that reads no result is at most 1024 calls ahead of the device."""
    python(
        """
x = dt.zeros((4,))
begin = time.perf_counter()
for _ in range(2024):
    x = x + 1
took = time.perf_counter() - begin
assert took > 0.9, took
equal(x, [2024] * 4)
""",
        FAULT="delay:0:1ms",
    )


def test_devices_copy_from_each_other_without_the_host(python, tmp_path):
    """The copy returns before the first device has computed its source."""
    gate = tmp_path / "gate"
    python(
        f"""
x = dt.asarray(np.arange(1000, dtype=np.float32))
first.synchronize()
open({str(gate)!r}, "w").close()
y = (x + 1).to_device(second) * 2
w = y.to_device(first) - 1
assert w.device == first and not dt.default_stream(second).query()
os.unlink({str(gate)!r})
equal(y, np.arange(1, 1001) * 2)
equal(w, np.arange(1, 1001) * 2 - 1)
""",
        FAULT=f"hold:0:{gate}",
    )


def test_a_copy_to_another_device_is_not_overtaken(python):
    """Its source is neither written nor reused before the other device has read it."""
    python(
        """
n = 1 << 20
x = dt.zeros((n,)) + 3
first.synchronize()
memory.set_limit(memory.stats(first)["reserved"], first)
y = x.to_device(second)
x += 4
z = x.to_device(second)
del x
x = dt.zeros((n,)) + 9
equal(y, np.full(n, 3)), equal(z, np.full(n, 7)), equal(x, np.full(n, 9))
""",
        FAULT="delay:0:40ms@1",
    )


def test_events_measure_time(python):
    python(
        """
x = dt.ones((10,))
first.synchronize()
begin, end = (dt.Event(first, timing=True) for _ in range(2))
begin.record()
for _ in range(5):
    x = x + 1
end.record()
end.synchronize()
assert begin.elapsed_ns(end) >= 5 * 4_000_000
""",
        LATENCY_US=4000,
    )


def test_copies_overlap_with_kernels(python):
    """On two streams each begins before the other ends; on one stream they do not."""
    python(
        """
def span(stream, work):
    events = [dt.Event(first, timing=True) for _ in range(2)]
    with stream:
        events[0].record(stream)
        work()
        events[1].record(stream)
    return events

def meet(one, two):
    first.synchronize()
    return one[0].elapsed_ns(two[1]) > 0 and two[0].elapsed_ns(one[1]) > 0

def compute():
    y = x
    for _ in range(5):
        y = y + 1

host = np.zeros(10_000_000, np.uint8)
x = dt.ones((10,))
copies, kernels = dt.Stream(first), dt.Stream(first)
assert meet(span(copies, lambda: dt.asarray(host)), span(kernels, compute))
assert not meet(span(kernels, lambda: dt.asarray(host)), span(kernels, compute))
""",
        BANDWIDTH_GBS=0.1,
        LATENCY_US=20_000,
    )


def test_the_memory_setting_limits_memory(python):
    python(
        """
assert first.properties["mem_total"] == 8 << 20
held = []
printed = raises(MemoryError, lambda: [held.append(dt.zeros((1 << 18,))) for _ in range(20)])
assert "cannot allocate 1.0 MiB" in printed and NAME + ":0" in printed, printed
assert 6 <= len(held) <= 8
equal(held[-1][:3], [0, 0, 0])
held.pop(), held.pop()
equal(dt.ones((1 << 18,))[:2], [1, 1])
dt.zeros((1 << 19,), device=second)
""",
        MEMORY="8MiB",
    )
