"""Capture on the simulated device: the tests of every device that captures, and those of what its queues do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from capture_tests import *  # noqa: F403
from device_programs import prelude


@pytest.fixture
def program() -> Callable[..., None]:
    """program(code) runs it in a new process, after the prelude of device_programs."""

    def run(code: str, **variables: str) -> None:
        ended = subprocess.run(
            [sys.executable, "-c", prelude("sim") + code],
            env=os.environ | variables,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr

    return run


def test_replays_by_two_threads_do_not_mix(captured):
    """Each thread's graph goes through the same memory in between, on one stream; each keeps all its results."""
    captured("""
TIMES = 500
through = own.block(np.zeros(64, np.uint8))
def recorded(value):
    source, target = (own.block(np.full(64, v, np.uint8)) for v in (value, 0))
    own.call("capture_begin", handle)
    own.copy(through, source, 64, handle)
    for _ in range(20):
        own.copy(through, through, 64, handle)
    own.copy(target, through, 64, handle)
    return own.captured(handle), target, own.block(np.zeros(64 * TIMES, np.uint8))
graphs = [recorded(1), recorded(2)]
def replays(graph, target, results):
    for i in range(TIMES):
        own.call("capture_replay", graph, handle)
        own.copy(results + 64 * i, target, 64, handle)
threads = [threading.Thread(target=replays, args=graph) for graph in graphs]
[t.start() for t in threads], [t.join() for t in threads]
own.call("sync", handle)
assert [set(own.read(results, 64 * TIMES)) for _, _, results in graphs] == [{1}, {2}]
""")


def test_another_stream_runs_while_one_records(captured):
    captured("""
other = own.stream()
source, target, late = (own.block(np.full(64, v, np.uint8)) for v in (7, 0, 0))
own.call("capture_begin", handle)
own.copy(late, source, 64, handle)
def copies():
    own.copy(target, source, 64, other)
    own.call("sync", other)
thread = threading.Thread(target=copies)
thread.start(), thread.join()
assert (own.read(target, 64) == 7).all()
graph = own.captured(handle)
assert not own.read(late, 64).any()
replay(graph)
assert (own.read(late, 64) == 7).all()
""")


def test_a_stream_that_goes_while_it_records_ends_the_capture(captured):
    captured("""
one, two, forked = own.create(), own.stream(), own.event()
source, target = (own.block(np.full(64, v, np.uint8)) for v in (7, 0))
own.call("capture_begin", one)
own.call("ev_record", forked, one)
own.call("ev_wait", two, forked)
own.destroy(one)
own.copy(target, source, 64, two)
own.call("sync", two)
assert (own.read(target, 64) == 7).all()
""")
