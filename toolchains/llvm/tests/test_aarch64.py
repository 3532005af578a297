"""dovetail-cpu's groups on emulated Arm processors, with machine code that this one makes for them.

A part of `make test-aarch64`. DOVETAIL_AARCH64: the folder with the emulator and the wheels for aarch64.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite: pip install dovetail-llvm")
ROOT, HERE = Path(__file__).resolve().parents[3], Path(__file__).parent
FOLDER = Path(os.environ.get("DOVETAIL_AARCH64", ""))
pytestmark = pytest.mark.skipif(
    "DOVETAIL_AARCH64" not in os.environ, reason="make test-aarch64 builds the emulator and passes its path"
)
COUNT = 28  # each dtype twice
MODELS = ("cortex-a72", "neoverse-n2")  # one for each level of dovetail-cpu


@pytest.fixture
def run(tmp_path):
    """run(model, worker): the digests of each group, compiled and eager; the report. The worker is native."""
    (python,) = FOLDER.glob("sysroot/usr/bin/python3.[0-9][0-9]")
    script = tmp_path / "worker.sh"

    def run(model: str, worker: str, count: int = COUNT) -> tuple[list[str], list[str], str]:
        script.write_text(f"#!/bin/sh\nPYTHONPATH='{os.environ.get('PYTHONPATH', '')}' exec {worker}\n")
        script.chmod(0o700)
        environment = os.environ | {
            "QEMU_CPU": model,
            "PYTHONPATH": str(FOLDER.resolve() / "site"),
            "DOVETAIL_TOOLCHAINS": f"llvm={script}",
            "DOVETAIL_COMPILE_WAIT": "1",
            "DOVETAIL_COMPILE_DUMP": str(tmp_path / "dump"),
            "XDG_CACHE_HOME": str(tmp_path),
        }
        program = [python, HERE / "random_groups.py", "0", str(count)]
        command = ["sh", ROOT / "cmake/aarch64/run.sh", FOLDER, *program]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        cases = [line.split() for line in done.stdout.splitlines() if line.startswith("case ")]
        assert len(cases) >= 2 * count
        report = done.stdout[done.stdout.index("toolchain llvm:") :]
        return [case[-2] for case in cases], [case[-1] for case in cases], report

    return run


@pytest.mark.parametrize("model", MODELS)
def test_machine_code_has_the_bits_of_tiles(run, model, tmp_path):
    without, eager, report = run(model, "false")
    assert report.startswith("toolchain llvm: 0 made")
    compiled, again, report = run(model, f"{sys.executable} -m dovetail_llvm.worker")
    assert "not made" not in report and int(report.split()[2]) > COUNT
    assert again == eager
    assert compiled == without
    requests = list((tmp_path / "dump").glob("llvm-*.request"))
    assert requests and all('"target": "aarch64-linux-gnu"' in request.read_text() for request in requests)


def test_the_code_is_what_runs(run):
    compiled, eager, _ = run(MODELS[0], f"{sys.executable} {HERE / 'unusual_worker.py'} wrong", count=10)
    assert compiled[1::2] != eager[1::2]  # those with the roundings of eager calls
