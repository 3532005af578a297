"""One stream is delayed. Each test fails if the runtime misses one wait for it: work on another stream then reads
values before they are written, or overwrites values that are still read."""

import pytest

N = 1 << 18
LATE = "delay:1:60ms"  # stream 0 is the default stream, 1 the first that a program creates


@pytest.fixture
def late(python):
    return lambda code: python(f"n = {N}\nlate, prompt = dt.Stream(first), dt.Stream(first)\n" + code, FAULT=LATE)


def test_reading_what_another_stream_writes(late):
    late(
        """
x = dt.ones((n,))
with late:
    y = x + 1
with prompt:
    z = y * 10
equal(z, np.full(n, 20))
"""
    )


def test_writing_in_place_what_another_stream_reads(late):
    late(
        """
x = dt.ones((n,)) + 1
first.synchronize()
with late:
    y = x * 10
x += 5
equal(y, np.full(n, 20))
equal(x, np.full(n, 7))
"""
    )


def test_reusing_memory_that_another_stream_reads(late):
    late(
        """
x, one = dt.ones((n,)) + 1, dt.ones((n,))
with late:
    y = dt.zeros((n,))  # memory for the result
    del y
first.synchronize()
memory.set_limit(memory.stats(first)["reserved"], first)
with late:
    y = x * 10
del x
z = one + 6
equal(y, np.full(n, 20))
equal(z, np.full(n, 7))
"""
    )


def test_reusing_memory_that_another_stream_wrote(late):
    late(
        """
x, one = dt.ones((n,)) + 1, dt.ones((n,))
with late:
    y = dt.zeros((n,))
    del y
first.synchronize()
memory.set_limit(memory.stats(first)["reserved"], first)
with late:
    y = x + 1
    del y
z = one + 6
first.synchronize()
equal(z, np.full(n, 7))
"""
    )


# Another library that reads the device's memory, through the mapping of the device's worker threads.
CONSUMER = """
def consume(array):
    capsule = array.__dlpack__(max_version=(1, 0))
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    # version, manager_ctx, deleter and flags stand before the tensor, whose first member is data
    data = ctypes.c_void_p.from_address(get(capsule, b"dltensor_versioned") + 32).value
    maps = [line.split(maxsplit=5) for line in open("/proc/self/maps") if "memfd:device" in line]
    maps = [([int(at, 16) for at in m[0].split("-")], m[1], m[4]) for m in maps]
    begin, inode = next((at[0], inode) for at, mode, inode in maps if at[0] <= data < at[1] and mode == "---s")
    readable = next(at[0] for at, mode, i in maps if i == inode and mode == "rw-s")
    seen = (ctypes.c_float * array.size).from_address(readable + data - begin)
    return capsule, np.frombuffer(seen, np.float32)
"""


def test_exporting_an_array_that_a_stream_still_writes(late):
    late(
        CONSUMER
        + """
x = dt.ones((n,))
with late:
    y = x + 1
capsule, seen = consume(y)
np.testing.assert_array_equal(seen, np.full(n, 2))
"""
    )


def test_writing_an_exported_array(late):
    """The consumer's elements keep their values when the array is written and freed."""
    late(
        CONSUMER
        + """
x = dt.ones((n,)) + 1
capsule, seen = consume(x)
with late:
    x += 5
x[3:] = 9.0
del x
memory.set_limit(memory.stats(first)["reserved"] + (1 << 20), first)
for _ in range(4):
    dt.zeros((n,))
first.synchronize()
np.testing.assert_array_equal(seen, np.full(n, 2))
"""
    )


def test_copying_to_the_host_what_another_stream_writes(late):
    late(
        """
x = dt.ones((n,))
with late:
    y = x + 1
equal(y, np.full(n, 2))
"""
    )


def test_the_interpreter_ends_while_threads_compute(python):
    """The last arrays and the interpreter's end can still use the stream."""
    python(
        """
x = dt.ones(1000)

class AtTheEnd:
    def __del__(self):
        print(float(dt.sum(self.x)), flush=True)

last = AtTheEnd()
last.x, last.itself = x, last  # a cycle: freed at the interpreter's end

def work():
    while True:
        dt.ones((100, 100)) @ dt.ones((100, 100))

for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(2)  # until the queue is full and threads wait for each other
""",
        FAULT="delay:0:1ms",
    )
