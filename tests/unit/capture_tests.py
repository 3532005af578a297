"""Capture beyond the suite's cases: what the runtime's ops do in a graph, and what cannot be part of one. Tests for
any device that captures: its own test file imports them and provides the fixture `program`, which runs code after
the prelude of device_programs.
"""

import pytest

PRELUDE = """
stream = dv.Stream(device)
handle = dv._core.stream_handle(stream)

def capture(work):
    '''The graph of the ops of work(), and its result: run once before, as what is used first is prepared then.'''
    with stream:
        work()
        device.synchronize()
        own.call("capture_begin", handle)
        result = work()
        return own.captured(handle), result

def replay(graph, on=None):
    own.call("capture_replay", graph, on or handle)
    own.call("sync", on or handle)

def put(x, values):
    own.copy(address(x), values.view(np.uint8), values.nbytes)

def get(x, dtype):
    return own.read(address(x), x.size * np.dtype(dtype).itemsize).view(dtype)
"""


@pytest.fixture
def captured(program):
    # Packing is off while the host captures; this program captures without the runtime's knowledge.
    return lambda code: program(PRELUDE + code, DOVETAIL_PACKING="0")


def test_random_numbers_advance_with_every_replay(captured):
    """Each replay reads their state on the device."""
    captured("""
bits = dv.random._op("random_bits")
state, step = dv.asarray(np.uint32([7, 0, 0, 0])), dv.asarray(np.uint32([0, 0, 64, 0]))
graph, (drawn, after) = capture(lambda: (bits(state, (64,)), state + step))
for offset in (0, 64, 128):
    replay(graph)
    expected = bits(dv.asarray(np.uint32([7, 0, offset, 0])), (64,)).numpy()
    np.testing.assert_array_equal(get(drawn, np.uint32), expected)
    own.copy(address(state), address(after), 16)
""")


def test_matmul_is_replayed(captured):
    captured("""
rng = np.random.default_rng(0)
first, second = rng.integers(-4, 5, (2, 64, 64)).astype(np.float32)
x, w = dv.asarray(first), dv.asarray(second)
graph, y = capture(lambda: dv.nn.relu(x @ w))
for values in (first, -first):
    put(x, values)
    replay(graph)
    np.testing.assert_array_equal(get(y, np.float32).reshape(64, 64), np.maximum(values @ second, 0))
""")


def test_a_fault_in_a_graph_is_raised_by_each_stream_that_replays_it(captured):
    """It is raised by each stream, although it is the fault of one call, and not where the indices are right."""
    captured("""
x, indices = dv.arange(5), dv.asarray([1, 2])
graph, y = capture(lambda: dv.take(x, indices))
other = own.stream()
for bad, on in ((7, handle), (7, handle), (1, handle), (9, other), (1, other), (8, handle)):
    put(indices, np.int64([bad, 2]))
    own.call("capture_replay", graph, on)
    fault = own.refused("sync", on)
    assert bool(fault) == (bad > 4), (bad, fault)
    assert not fault or f"index {bad} is out of range" in fault.words, fault.words
    own.call("sync", on)
assert get(y, np.int64)[1] == 2
""")


def test_replays_on_a_blocked_queue_return(captured):
    captured("""
source, target = own.block(np.arange(64, dtype=np.uint8)), own.block(np.zeros(64, np.uint8))
queue = own.stream()
own.call("capture_begin", queue)
own.copy(target, source, 64, queue)
graph = own.captured(queue)
held = threading.Event()
function = HOST_FN(lambda _: held.wait(20) and None)
own.call("host_fn", queue, function, None)
for _ in range(10):
    own.call("capture_replay", graph, queue)
assert not own.read(target, 64).any(), "a replay overtook what the queue waits for"
held.set()
own.call("sync", queue)
assert (own.read(target, 64) == np.arange(64)).all()
""")


def test_what_cannot_be_captured_is_refused_and_the_rest_goes_on(captured):
    captured("""
first = np.arange(64, dtype=np.uint8)
source, target, pinned = own.block(first), own.block(0 * first), own.alloc(64, kind=PINNED)
outside, inside, one, two = own.event(), own.event(), own.stream(), own.stream()
own.call("ev_record", outside, two)
assert "no capture has begun" in own.refused("capture_end", one, None).words
own.call("capture_begin", one)
own.copy(target, source, 64, one)
own.call("ev_record", inside, one)
refusals = [
    ("copy", lambda: own.copy(target, first, 64, one)),
    ("copy", lambda: own.copy(np.zeros(64, np.uint8), target, 64, one)),
    ("sync", lambda: own.call("sync", one)),
    ("host_fn", lambda: own.call("host_fn", one, HOST_FN(lambda _: None), None)),
    ("ev_wait", lambda: own.call("ev_wait", one, outside)),
    ("ev_sync", lambda: own.call("ev_sync", inside)),
    ("ev_query", lambda: own.is_done(inside)),
    ("capture_begin", lambda: own.call("capture_begin", one)),
]
for name, work in refusals:
    try:
        work()
        raise AssertionError(f"{name} was captured")
    except Refused as error:
        assert error.status == 2 and "capture" in error.words, (name, error)
own.copy(own.at_host(pinned, 64), target, 64, one)
graph = own.captured(one)
assert "recorded in a capture" in own.refused("ev_wait", two, inside).words
assert "recorded in a capture" in own.refused("ev_sync", inside).words
for values in (first, first[::-1].copy()):
    own.copy(source, values, 64)
    replay(graph, two)
    assert (own.at_host(pinned, 64) == values).all()
own.copy(target, 255 - first, 64, one)
own.call("sync", one)
assert (own.read(target, 64) == 255 - first).all()
""")
