"""Devices that are broken on purpose: the suite must name the culprit, and find nothing wrong with the good one.

The faults, the case that catches each and what it says stand in the table of docs/conformance.md, and nowhere else.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
BROKEN, TEMPLATE = ROOT / "tests/meta/broken", ROOT / "backends/template/src"
OTHERS = "add[i64,v* or minimum[f64,v* or subtract[u8,v*"  # ops that no fault touches: they must pass beside it
SECONDS = 4  # for one case, where one hangs
# They resemble others, and each costs two seconds: `make test-all` has the time.
RESEMBLE_OTHERS = frozenset(
    """large_index before_the_start reads_subnormals_as_zero equal_bits long_through_int int_through_float
    shift_modulo divides_by_reciprocal root_by_reciprocal short_pi max_from_zero whole_tiles half_saturates
    rounds_to_int byte_to_bool full_through_double iota_in_half negative_index scatters_into_nothing
    counter_carry seven_rounds stream_sync_returns_at_once event_is_never_done elapsed_in_microseconds
    copies_whole_words memory_too_small memory_unaligned no_name more_free_than_total""".split()
)


class Fault(NamedTuple):
    name: str
    what: str
    case: str
    status: str
    said: str

    @property
    def culprit(self) -> str:
        return self.case.partition("[")[0]

    @property
    def selection(self) -> str:
        """The op's cases in the dtype in which it is wrong; fewer where each costs a process or seconds."""
        sample = self.case.removesuffix("]").partition(",layout=")[0]
        if self.culprit.startswith("device."):
            return f"{sample}? or device.identity[kernel_table?"  # a bracket is what follows, and nothing longer
        few = sample + ("*" if "layout=" in self.case else "?")
        return f"{few if self.status in ('crash', 'timeout') else sample.partition(',')[0] + '*'} or {OTHERS}"


def table() -> list[Fault]:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| `(\S+)` \| (\w+) \| (.+) \|$", GUIDE, flags=re.MULTILINE)
    return [Fault(*row) for row in rows]


GUIDE = (ROOT / "docs/conformance.md").read_text("utf-8")
FAULTS = table()


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    """Built once for all workers of the test run: the fault is chosen when it is loaded."""
    compiler = shutil.which("c++") or shutil.which("g++") or pytest.skip("needs a C++ compiler")
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    built = folder / "libmeta.so"
    with (folder / "libmeta.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            build(compiler, folder / "libmeta", built)
    return built


def build(compiler: str, objects: Path, library: Path) -> None:
    objects.mkdir()
    options = [
        "-std=c++17",
        "-O1",
        "-ffp-contract=off",
        "-fPIC",
        "-fvisibility=hidden",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]
    options += [f"-I{ROOT / 'core/include'}", f"-I{TEMPLATE}"]

    def compile(number: int, source: Path) -> Path:
        names = ["-Ddvt_backend_v1=good_backend_v1", "-Dlaunch=good_launch"] if source == good else []
        made = objects / f"{number}.o"
        subprocess.run([compiler, *options, *names, "-c", source, "-o", made], check=True)
        return made

    good = TEMPLATE / "device.cpp"
    sources = [*BROKEN.glob("*.cpp"), *TEMPLATE.glob("*.cpp"), *TEMPLATE.glob("kernels/*.cpp")]
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(compile, range(len(sources)), sources))
    subprocess.run([compiler, "-shared", "-pthread", *made, "-o", objects / library.name], check=True)
    (objects / library.name).rename(library)


@pytest.fixture
def conform(library, tmp_path):
    """Through the public command line, as a device's author would."""

    def conform(fault: str | None, *args: str) -> tuple[int, dict, str]:
        results = tmp_path / "results.json"
        environment = os.environ | {"DOVETAIL_BACKEND_PATH": str(library), "DOVETAIL_BACKENDS": "meta"}
        environment |= {"DOVETAIL_BROKEN": fault} if fault else {}
        command = [sys.executable, "-c", "from dovetail.cli import main; main()", "conform", "--device", "meta"]
        run = subprocess.run(
            [*command, "--no-report", "--json", results, *args],
            capture_output=True,
            text=True,
            timeout=3600,
            env=environment,
        )
        assert results.exists(), run.stdout + run.stderr
        return run.returncode, json.loads(results.read_text("utf-8")), run.stdout

    return conform


def bad_ones(results: dict) -> dict[str, dict]:
    return {c["id"]: c for c in results["cases"] if c["status"] not in ("pass", "unsupported")}


def words(message: str) -> str:
    """Its first line without values, which another processor or another run may have others of."""
    return re.sub(r"-?\b(\d[\w.+-]*|nan|inf|True|False)", "#", message.partition("\n")[0])


# ---- the good one ------------------------------------------------------------------------------------------------


def test_the_good_one_passes(conform):
    code, results, said = conform(None, "--quick")
    assert (code, set(results["counts"])) == (0, {"pass"}), said
    assert results["counts"]["pass"] > 3000
    assert results["device"]["name"] == "meta:0" and results["level"]["reached"] == "L1"


@pytest.mark.slow
def test_the_good_one_reaches_the_highest_level(conform):
    code, results, said = conform(None, "--level", "L2")
    assert (code, results["level"]["reached"], bad_ones(results)) == (0, "L2", {}), said


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
    more = ["--timeout", str(SECONDS)] if fault.status == "timeout" else []
    code, results, said = conform(fault.name, "-n", "1", "-k", fault.selection, *more)
    bad = bad_ones(results)
    assert (code, {id.partition("[")[0] for id in bad}) == (1, {fault.culprit}), said
    assert results["counts"]["pass"] >= 1
    case = bad[fault.case]
    assert (case["status"], words(case["message"])) == (fault.status, words(fault.said))
    assert f"not right: {fault.culprit} ({len(bad)})" in said
    assert f"{fault.status.upper():8} {fault.case}" in said and f"--case '{fault.case}'" in case["replay"]


@pytest.mark.parametrize("fault", [f for f in FAULTS if f.status == "pass"], ids=lambda f: f.name)
def test_what_works_undeclared_is_reported(conform, fault):
    code, results, said = conform(fault.name, "-n", "1", "-k", f"{fault.case} or {OTHERS}")
    assert (code, set(results["counts"])) == (0, {"pass"}), said
    (told,) = results["undeclared"]
    assert (f"{told['op']}[{told['dtype']},undeclared]", told["message"]) == (fault.case, fault.said)
    assert f"works undeclared: {told['op']} {told['dtype']}" in said


def test_the_culprit_is_named_first_of_all(conform):
    """In the run of a level, where everything that is made of the op is wrong too."""
    code, results, said = conform("last_element", "--quick")
    assert code == 1 and len({id.partition("[")[0] for id in bad_ones(results)}) > 10
    assert "not right: multiply (" in said
