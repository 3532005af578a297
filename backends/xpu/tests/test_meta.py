"""The device with a fault in its streams, events or errors: the suite names the culprit on this device too."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import broken_devices
import pytest
from broken_devices import BROKEN, FAULTS, bad_ones, expect_culprit
from programs import ON_CPU

# The faults in the table of docs/conformance.md that only an asynchronous device can have.
ASYNCHRONOUS = frozenset(
    """runs_at_once runs_on_any_queue stream_waits_for_no_event event_wait_blocks_the_host
    event_sync_returns_at_once event_is_always_done event_is_never_done stream_sync_returns_at_once
    elapsed_in_microseconds copy_overtakes loses_errors reports_again""".split()
)


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    installed = BROKEN / "installed"
    sources = [installed / "device.cpp", BROKEN / "device.cpp", BROKEN / "broken.cpp"]
    return broken_devices.build(tmp_path_factory, "broken_xpu", dict.fromkeys(sources, ()), f"-I{installed}")


@pytest.fixture
def conform(library, tmp_path, monkeypatch):
    import dovetail_xpu

    for name, value in {"DOVETAIL_GOOD": dovetail_xpu.backend.library, **ON_CPU}.items():
        monkeypatch.setenv(name, value)
    return partial(broken_devices.conform, library, tmp_path / "results.json")


def test_without_a_fault_it_passes(conform):
    code, results, printed = conform(
        None, "-n", "1", "-k", "device.events[* or device.streams[* or device.faults[*"
    )
    assert (code, bad_ones(results)) == (0, {}), printed


@pytest.mark.parametrize("fault", [f for f in FAULTS if f.name in ASYNCHRONOUS], ids=lambda f: f.name)
def test_the_culprit_is_named(conform, fault):
    """Within three runs: on a loaded machine, whose processors this device shares, a copy may overtake nothing."""
    for left in (2, 1, 0):
        try:
            expect_culprit(conform, fault)
            break
        except AssertionError:
            if not left:
                raise


def test_all_of_them_are_in_the_table():
    assert {f.name for f in FAULTS} >= ASYNCHRONOUS
