"""The pytest plugin, in processes of its own: imports, collection, outcomes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from dovetail_conformance.running.options import Options
from dovetail_conformance.running.plan import plan

FAKE = Path(__file__).parent / "conformance_fake"
SUITE = ("--pyargs", "dovetail_conformance")
ON_FAKE = ("--dovetail-device", "fake", "--dovetail-api", "fake_dovetail")
PLUGIN = "dovetail_conformance.pytest_plugin"


def run(folder, *args, fault="", plugins=()):
    """Run pytest with this suite's plugin, installed or not."""
    path = os.pathsep.join([str(FAKE), *sys.path])
    environment = os.environ | {
        "FAKE_FAULT": fault, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200",
    }  # fmt: skip
    environment.pop("PYTEST_ADDOPTS", None)
    loaded = [x for plugin in (PLUGIN, *plugins) for x in ("-p", plugin)]
    command = [sys.executable, "-m", "pytest", *loaded, *args]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def demanded(level, quick=False):
    return plan(Options(device="fake", level=level, quick=quick)).cases


def ended(out):
    """The counts in the last line."""
    return {word: int(n) for n, word in re.findall(r"(\d+) (\w+)", out.splitlines()[-1].partition(" in ")[0])}


# ---- runs without the suite -----------------------------------------------------------------------------------


def test_loading_the_plugin_loads_nothing_else():
    code = (
        "import sys, json, pytest; before = {*sys.modules}; import dovetail_conformance.pytest_plugin; "
        "print(json.dumps(sorted({*sys.modules} - before)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(out) == ["dovetail_conformance", PLUGIN]


def test_other_runs_are_not_affected(tmp_path):
    (tmp_path / "test_mine.py").write_text(
        "import sys\ndef test_mine():\n"
        "    ours = [m for m in sys.modules if m.startswith(('dovetail', 'numpy'))]\n"
        f"    assert sorted(ours) == ['dovetail_conformance', {PLUGIN!r}]\n"
    )
    code, out = run(tmp_path)
    assert (code, ended(out)) == (0, {"passed": 1}), out
    assert "dovetail:" not in out


def test_its_own_folder_is_not_collected():
    """This repository's own run collects the package's folder too."""
    package = Path(sys.modules["dovetail_conformance"].__file__).parent
    code, out = run(package.parent, str(package), "-p", "no:cacheprovider", "--import-mode=importlib")
    assert (code, ended(out)) == (pytest.ExitCode.NO_TESTS_COLLECTED, {}), out


# ---- what is collected ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "level", "quick"), [((), "L1", False), (("--dovetail-level", "L0", "--dovetail-quick"), "L0", True)]
)
def test_same_cases_with_the_same_ids(tmp_path, args, level, quick):
    code, out = run(tmp_path, *SUITE, *ON_FAKE, *args, "--collect-only", "-q", fault="absent:")
    assert code == 0, out
    listed = [line for line in out.splitlines() if "::" in line]
    assert listed == [f"dovetail_conformance::{c.id}" for c in demanded(level, quick)]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("dovetail_conformance::add[f32,values]",), ["add[f32,values]"]),
        (("dovetail_conformance::device.errors",), None),
        (("dovetail_conformance", "-k", "multiply and values and not layout and i32"), ["multiply[i32,values]"]),
    ],
)
def test_selection(tmp_path, args, expected):
    code, out = run(tmp_path, "--pyargs", *args, *ON_FAKE, "--collect-only", "-q")
    chosen = [line.removeprefix("dovetail_conformance::") for line in out.splitlines() if "::" in line]
    assert code == 0 and chosen, out
    assert chosen == (expected or [c.id for c in demanded("L0") if c.group == "device.errors"])


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((), "--dovetail-device NAME"),
        ((*ON_FAKE, "--dovetail-level", "L2", "--dovetail-quick"), "--dovetail-quick claims nothing above L1"),
        ((*ON_FAKE, "--dovetail-profile", "f17"), "--dovetail-profile: there is no profile 'f17'"),
        ((*ON_FAKE, "--dovetail-seed", "-1"), "--dovetail-seed: expected 0 or more"),
        ((*ON_FAKE, "--dovetail-timeout", "0"), "--dovetail-timeout: expected more than 0"),
        (("--dovetail-device", "fak", "--dovetail-api", "fake_dovetail"), "did you mean 'fake:0'"),
    ],
)
def test_usage(tmp_path, args, expected):
    code, out = run(tmp_path, *SUITE, *args)
    line = [x for x in out.splitlines() if "error: " in x.lower()][-1]
    assert code == pytest.ExitCode.USAGE_ERROR and expected in line, out


# ---- how cases end ----------------------------------------------------------------------------------------------

SOME = ("dovetail_conformance::add[i32,values]", "dovetail_conformance::multiply[i32,values]")


def test_a_good_device_passes(tmp_path):
    code, out = run(tmp_path, "--pyargs", *SOME, *ON_FAKE, "--dovetail-seed", "7", "-v")
    assert code == 0 and ended(out)["passed"] == 2, out
    assert "dovetail: fake:0 (Fake), fake 1.2, dovetail 0, dovetail-conformance " in out and "L1, seed 7" in out
    assert "dovetail_conformance::add[i32,values] PASSED" in out


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("last", "fail: 1 of "),
        ("crash", "crash: signal SIGSEGV"),
        ("fallback", "fallback: multiply ran on another device"),
    ],
)
def test_failures_print_their_replay_command(tmp_path, fault, expected):
    code, out = run(tmp_path, "--pyargs", *SOME, *ON_FAKE, "--dovetail-timeout", "99", fault=f"{fault}:multiply")
    assert code == 1 and (ended(out)["failed"], ended(out)["passed"]) == (1, 1), out
    assert expected in out and "Traceback" not in out
    assert "dovetail conform --device fake --case 'multiply[i32,values]' --seed 0 --timeout 99" in out
    assert "FAILED dovetail_conformance::multiply[i32,values]" in out


def test_a_hang_is_a_failure(tmp_path):
    code, out = run(tmp_path, "--pyargs", SOME[1], *ON_FAKE, "--dovetail-timeout", "1", fault="hang:multiply")
    assert code == 1 and ended(out)["failed"] == 1 and "timeout: not done after 1 s" in out, out


def test_unsupported_is_skipped_with_its_reason(tmp_path):
    only = ("-k", "divide and f64 and values and not layout")
    code, out = run(tmp_path, *SUITE, *ON_FAKE, "--dovetail-level", "L2", *only, "-rs", fault="unsupported:divide")
    assert code == 0 and ended(out)["skipped"] == 1, out
    assert "[divide] not supported on fake:0" in out


def test_waived_is_an_expected_failure(tmp_path):
    """Nothing on the fake device is waived: the test changes the pool's result on its way."""
    (tmp_path / "conftest.py").write_text(
        "from dovetail_conformance.results import Result, Status\n"
        "from dovetail_conformance.running.pool import Pool\n"
        "Pool.run = lambda self, ids: [Result(i, Status.WAIVED, 0.0, 'known, see the tracker') for i in ids]\n"
    )
    code, out = run(tmp_path, "--pyargs", *SOME, *ON_FAKE, "-rx", "--rootdir", str(tmp_path), "-c", os.devnull)
    assert code == 0 and ended(out)["xfailed"] == 2, out
    assert "known, see the tracker" in out


def test_stops_at_the_first_and_comes_back_to_the_last(tmp_path):
    code, out = run(tmp_path, "--pyargs", *SOME, *ON_FAKE, "-x", fault="last:add")
    assert code == 1 and ended(out)["failed"] == 1 and "passed" not in ended(out), out
    code, out = run(tmp_path, "--pyargs", *SOME, *ON_FAKE, "--lf")
    assert code == 0 and (ended(out)["passed"], ended(out)["deselected"]) == (1, 1), out


def test_a_lost_device_ends_the_run(tmp_path):
    (tmp_path / "conftest.py").write_text(
        "from dovetail_conformance.running.pool import DeviceUnavailable, Pool\n"
        "def run(self, ids):\n    raise DeviceUnavailable('it fell off')\nPool.run = run\n"
    )
    code, out = run(tmp_path, "--pyargs", *SOME, *ON_FAKE, "--rootdir", str(tmp_path), "-c", os.devnull)
    assert code == 1 and ended(out)["failed"] == 1 and "the device was lost: it fell off" in out, out


def test_with_xdist(tmp_path):
    """Each process of pytest-xdist has a worker of its own, and gets the results of its own cases."""
    code, out = run(
        tmp_path, *SUITE, *ON_FAKE, "-n", "2", "-k", "multiply and i32 and (values or vectors)",
        fault="last:multiply", plugins=["xdist.plugin"],
    )  # fmt: skip
    expected = {c.id for c in demanded("L1") if c.group == "multiply" and "i32,v" in c.id}
    assert code == 1 and ended(out)["failed"] == len(expected) == 6, out
    assert {*re.findall(r"--case '([^']+)'", out)} == expected
    assert "seed 0" in out
