"""L0, without the runtime: each check finds the device that violates it."""

import ctypes

import dovetail
import numpy as np
import pytest
from dovetail_conformance.device_checks import Declined, Failed, checks
from dovetail_conformance.device_checks.table import BLOCK, OOM, Refused, Table, Work, table
from dovetail_conformance.running.target import Target, Unavailable


@pytest.fixture
def target():
    fallback = dovetail.fallback()
    try:
        made = Target("sim")
        dovetail.memory.empty_cache("sim")  # checks fill the device: what other tests left there counts
        yield made
    except Unavailable:
        pytest.skip("the simulated accelerator is not installed")
    finally:
        dovetail.fallback(fallback)
        dovetail.set_default_device(None)


def run(target, name, seed=0):
    (check,) = [c for c in checks() if f"{c.part}.{c.name}" == name]
    check.run(target, np.random.default_rng(seed))


class Breaks:
    """Replace a function of the device by one behaviour."""

    def __init__(self, function, behaviour):
        self.function, self.behaviour, self.right = function, behaviour, Table.call
        self.dropped, self.tables = [], []

    def __call__(self, own, function, *arguments):
        if function != self.function:
            return self.right(own, function, *arguments)
        if function == "dealloc" and self.behaviour is nothing:
            self.dropped.append((own, arguments))
        return self.behaviour(lambda *a: self.right(own, function, *(a or arguments)), *arguments)

    def make_good(self):
        """Free the memory that a broken device keeps."""
        for own, arguments in self.dropped:
            self.right(own, self.function, *arguments)
        for own in self.tables:
            own.close()


def nothing(right, *arguments):
    """Return DVT_OK and do nothing."""


def done(right, event, out):
    ctypes.cast(out, ctypes.POINTER(ctypes.c_uint32))[0] = 1


def first_only():
    seen = set()
    return lambda right, event, stream: None if event in seen else (seen.add(event), right())


def no_memory_after(n):
    given = []

    def alloc(right, handle, size, *rest):
        given.append(size)
        if sum(given) > n:
            raise Refused("alloc", OOM, "")
        right()

    return alloc


def at_once(right, handle, block, kind, stream):
    right(handle, block, kind, None)


def twice(right, stream, function, context):
    right()
    right()


@pytest.mark.parametrize(
    ("function", "behaviour", "check", "expected"),
    [
        ("sync", nothing, "events.sync_of_a_stream", "before the stream's work was done"),
        ("ev_sync", nothing, "events.sync_of_an_event", "before the work in front of the event was done"),
        ("ev_query", done, "events.query_of_an_event", "before the work in front of it was"),
        ("ev_wait", nothing, "events.wait_for_an_event", "did not wait for it"),
        ("ev_wait", nothing, "events.across_devices", "did not wait for an event"),
        ("ev_record", first_only(), "events.recorded_again", "recorded again"),
        ("dealloc", at_once, "events.memory_in_flight", "handed out again before"),
        ("host_fn", twice, "events.host_functions", "were called as"),
        ("dealloc", nothing, "allocation.comes_back", "each given back before the next"),
        ("dealloc", nothing, "allocation.recovers", "refused"),
        ("alloc", no_memory_after(1 << 30), "allocation.recovers", "refused|left"),
        ("copy", nothing, "allocation.every_byte_is_kept", "changed"),
    ],
)
def test_a_broken_device_is_found(target, monkeypatch, function, behaviour, check, expected):
    run(target, check)
    breaks = Breaks(function, behaviour)
    monkeypatch.setattr(Table, "call", lambda *arguments: breaks(*arguments))
    monkeypatch.setattr(Table, "close", lambda own: breaks.tables.append(own))
    try:
        with pytest.raises(Failed, match=expected):
            run(target, check)
    finally:
        monkeypatch.undo()
        breaks.make_good()


def test_a_check_frees_what_it_created(target):
    with table(target) as own:
        before, _ = own.mem_info()
        with table(target, streams=True) as other:
            Work(target, other, np.random.default_rng(0)).enqueue(other.stream())
            other.event()
            assert own.mem_info()[0] < before
        assert own.mem_info()[0] == before


@pytest.mark.parametrize("check", ["events.wait_for_an_event", "events.destroyed_with_work"])
def test_checks_use_the_streams_of_the_host(target, monkeypatch, check):
    """Together they never have more than max_streams: the suite creates at most one more than the host."""
    streams, call = [0], Table.call

    def counted(own, function, *arguments):
        call(own, function, *arguments)
        streams.append(streams[-1] + {"create": 1, "destroy": -1}.get(function, 0))

    monkeypatch.setattr(Table, "call", counted)
    run(target, check)
    assert max(streams) <= 1 and streams[-1] == 0


def test_a_device_of_two_streams(target):
    with table(target, streams=True) as own:
        own.properties = own.properties | {"max_streams": 2}
        for _ in range(2):
            assert own.stream() != own.stream()
            for more in (own.stream, own.create):
                with pytest.raises(Declined, match="max_streams 2"):
                    more()
            own.release()


def test_refusals_have_messages(target):
    with table(target) as own:
        error = own.refused("device_open", 9999, ctypes.byref(ctypes.c_void_p()))
        assert str(error).startswith("device_open answered DVT_INVALID: there are ")
        assert str(own.refused("alloc", own.handle, 1 << 62, 0, None, ctypes.byref(ctypes.c_void_p()))) == (
            "alloc answered DVT_OOM"
        )
        values = np.arange(BLOCK, dtype=np.uint8)
        assert np.array_equal(own.read(own.block(values)), values)
