"""Devices that are broken on purpose: the suite must name the culprit, and find nothing wrong with the good one."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("broken_device.c")
HEADERS = SOURCE.parents[2] / "core/include"
OPS = "add[f32 or multiply[f32 or maximum[f32 or copy[f32"


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc") or pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("broken")

    def build(fault: str) -> Path:
        library = folder / f"{fault.lower()}.so"
        options = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", f"-I{HEADERS}", f"-DBROKEN={fault}"]
        subprocess.run([compiler, *options, "-o", library, SOURCE, "-lm"], check=True)
        return library

    return build


def conform(library: Path, *args: str) -> tuple[int, dict, str]:
    """Through the public command line, as a device's author would."""
    results = library.with_suffix(".json")
    command = "from dovetail.cli import main; main()"
    run = subprocess.run(
        [sys.executable, "-c", command, "conform", "--device", "meta", "-k", OPS, "--json", results, *args],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"DOVETAIL_BACKEND_PATH": str(library), "DOVETAIL_BACKENDS": "meta"},
    )
    assert results.exists(), run.stdout + run.stderr
    return run.returncode, json.loads(results.read_text()), run.stdout


def test_the_good_one_passes(build):
    code, results, said = conform(build("NOTHING"))
    assert code == 0, said
    assert set(results["counts"]) == {"pass"} and results["counts"]["pass"] > 50
    assert results["device"]["name"] == "meta:0"


@pytest.mark.parametrize(
    ("fault", "culprit", "status", "told"),
    [
        ("LAST", "multiply", "fail", "1 of"),
        ("STRIDES", "multiply", "fail", "layout=strided"),
        ("CRASH", "multiply", "crash", "SIGABRT"),
        ("NANS", "maximum", "fail", "expected nan"),
        ("SILENT", "multiply", "fail", "elements wrong"),
        ("WRITES_OPERAND", "multiply", "fail", "wrote into its operand 0"),
        ("KEEPS_CALL", "multiply", "crash", "SIGSEGV"),
    ],
)
def test_the_culprit_is_named(build, fault, culprit, status, told):
    code, results, said = conform(build(fault))
    bad = {case["id"].partition("[")[0]: case["status"] for case in results["cases"] if case["status"] != "pass"}
    assert (code, bad) == (1, {culprit: status}), said
    assert f"not right: {culprit} (" in said and told in said
    replay = next(case["replay"] for case in results["cases"] if case["status"] != "pass")
    assert f"--case '{culprit}[f32," in replay


def test_a_hang_is_cut_short(build):
    code, results, said = conform(
        build("HANG"), "-k", "multiply[f32,one] or multiply[f32,vectors] or add[f32,v", "--timeout", "2"
    )
    assert code == 1 and results["counts"]["timeout"] >= 1, said
    assert {case["id"][:8] for case in results["cases"] if case["status"] == "timeout"} == {"multiply"}
