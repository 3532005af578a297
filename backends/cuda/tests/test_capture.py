"""Capture beyond the suite's cases, as for every device that captures."""

from capture_tests import *  # noqa: F403


def test_memory_that_is_new_in_a_capture_outlives_the_graph(captured):
    """The pool asks for it then, and has it afterwards as any other."""
    captured("""
x = dv.asarray(np.arange(1 << 18, dtype=np.float32))
with stream:
    device.synchronize()
    own.call("capture_begin", handle)
    y = x + 1  # of a size that the pool has not
    graph = own.captured(handle)
replay(graph)
expected = np.arange(1 << 18, dtype=np.float32) + 1
np.testing.assert_array_equal(get(y, np.float32), expected)
np.testing.assert_array_equal((y * 2).numpy(), expected * 2)
""")


def test_memory_freed_in_a_capture_is_not_lost(captured):
    captured("""
x = dv.asarray(np.zeros(1 << 18, np.float32))
free = []
for _ in range(4):
    with stream:
        z = x + 1
        lost = z.nbytes
        device.synchronize()
        del z
        own.call("capture_begin", handle)
        dv.memory.empty_cache(device)
        own.captured(handle)
    device.synchronize()
    dv.memory.empty_cache(device)
    free.append(device.properties["mem_free"])
assert free[-1] > free[0] - lost, free  # a little less where other processes use the GPU
""")
