"""Devices that are broken on purpose: the suite must name the culprit, and find no error in the good one."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import broken_devices
import pytest
from broken_devices import BROKEN, FAULTS, OTHERS, ROOT, bad_ones, expect_culprit

TEMPLATE = ROOT / "backends/template/src"
SECONDS = 4  # for one case that hangs
# They resemble others, and each costs two seconds: `make test-all` has the time.
RESEMBLE_OTHERS = frozenset(
    """large_index before_the_start reads_subnormals_as_zero equal_bits long_through_int int_through_float
    shift_modulo divides_by_reciprocal root_by_reciprocal short_pi max_from_zero whole_tiles half_saturates
    rounds_to_int byte_to_bool full_through_double iota_in_half negative_index scatters_into_nothing
    counter_carry seven_rounds stream_sync_returns_at_once event_is_never_done elapsed_in_microseconds
    copies_whole_words memory_too_small memory_unaligned no_name more_free_than_total short_factors
    sums_as_they_come max_drops_nan innermost_stride event_sync_returns_at_once copy_writes_late
    stream_waits_for_no_event memory_never_recovers memory_without_end counts_from_one rounds_upward
    declares_too_much scalar_as_array clears_first unsigned_as_signed aligned_loads past_the_end""".split()
)


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    """The library reads the fault when it is loaded."""
    sources = [*BROKEN.glob("*.cpp"), *TEMPLATE.glob("*.cpp"), *TEMPLATE.glob("kernels/*.cpp")]
    renamed = {TEMPLATE / "device.cpp": ("dvt_backend_v1=good_backend_v1", "launch=good_launch")}
    return broken_devices.build(
        tmp_path_factory,
        "broken_template",
        {source: renamed.get(source, ()) for source in sources},
        f"-I{TEMPLATE}",
    )


@pytest.fixture
def conform(library, tmp_path):
    return partial(broken_devices.conform, library, tmp_path / "results.json")


# ---- the good one ------------------------------------------------------------------------------------------------


def test_the_good_one_passes(conform):
    code, results, printed = conform(None, "--quick")
    passed = [c["status"] == "pass" for c in results["cases"]]
    assert code == 0 and all(passed), printed
    assert len(passed) > 3000
    assert results["device"]["name"] == "meta:0" and results["level"]["reached"] == "L1"


@pytest.mark.slow
def test_the_good_one_reaches_the_highest_level(conform):
    code, results, printed = conform(None, "--level", "L2")
    assert (code, results["level"]["reached"], bad_ones(results)) == (0, "L2", {}), printed


# ---- each of the others ------------------------------------------------------------------------------------------


def test_the_table_has_every_fault(library):
    faults = ctypes.CDLL(str(library)).broken_faults
    faults.restype = ctypes.POINTER(ctypes.c_char_p)
    names = []
    while name := faults()[len(names)]:
        names.append(name.decode())
    assert sorted(names) == sorted(f.name for f in FAULTS) and len(names) == len(set(names)) >= 30


def parameters() -> Iterator:
    for fault in FAULTS:
        if fault.status != "pass":
            marks = [pytest.mark.slow] if fault.name in RESEMBLE_OTHERS else []
            yield pytest.param(fault, id=fault.name, marks=marks)


@pytest.mark.parametrize("fault", list(parameters()))
def test_the_culprit_is_named(conform, fault):
    expect_culprit(conform, fault, *(["--timeout", str(SECONDS)] if fault.status == "timeout" else []))


@pytest.mark.parametrize("fault", [f for f in FAULTS if f.status == "pass"], ids=lambda f: f.name)
def test_undeclared_calls_that_work_are_reported(conform, fault):
    code, results, printed = conform(fault.name, "-n", "1", "-k", f"{fault.case} or {OTHERS}")
    assert (code, set(results["counts"])) == (0, {"pass"}), printed
    (entry,) = results["undeclared"]
    assert (f"{entry['op']}[{entry['dtype']},undeclared]", entry["message"]) == (fault.case, fault.printed)
    assert f"works undeclared: {entry['op']} {entry['dtype']}" in printed


@pytest.mark.slow
def test_the_culprit_is_named_first_of_all(conform):
    """In the run of a level, where every op that decomposes into the culprit is wrong too."""
    code, results, printed = conform("last_element", "--quick")
    assert code == 1 and len({id.partition("[")[0] for id in bad_ones(results)}) > 10
    assert "not right: multiply (" in printed
