"""dovetail-cpu's groups: machine code gives the bits of the loops on tiles, which are those of eager calls."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite: pip install dovetail-llvm")
HERE = Path(__file__).parent
COUNT = 48


LEVELS = ("default", "avx2", "") if platform.machine() == "x86_64" else ("",)  # "": the best of this processor


@pytest.fixture(params=LEVELS, ids=lambda level: level or "best")
def level(request):
    """A level of dovetail-cpu, in DOVETAIL_CPU_CAPABILITY."""
    environment = os.environ | {"DOVETAIL_CPU_CAPABILITY": request.param}
    command = [sys.executable, "-c", "import dovetail; dovetail.device('cpu')"]
    if request.param and subprocess.run(command, env=environment, capture_output=True).returncode:
        pytest.skip(f"{request.param} is not built, or this processor has not got it")
    return request.param


@pytest.fixture
def run(tmp_path):
    """run(worker): the digests of each group with machine code of that worker, and with eager calls; the report."""

    def run(worker: str, seed: int = 0, count: int = COUNT, level: str = "") -> tuple[list[str], list[str], str]:
        environment = os.environ | {
            "DOVETAIL_TOOLCHAINS": f"llvm={worker}",
            "DOVETAIL_COMPILE_WAIT": "1",
            "XDG_CACHE_HOME": str(tmp_path),
        }
        environment["DOVETAIL_COMPILE_DUMP"] = str(tmp_path / "dump")
        if level:
            environment["DOVETAIL_CPU_CAPABILITY"] = level
        command = [sys.executable, str(HERE / "random_groups.py"), str(seed), str(count)]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        cases = [line.split() for line in done.stdout.splitlines() if line.startswith("case ")]
        assert len(cases) >= 2 * count
        compiled = [" ".join(case[:-1]) for case in cases]
        eager = [" ".join([*case[:-2], case[-1]]) for case in cases]
        return compiled, eager, done.stdout[done.stdout.index("toolchain llvm:") :]

    return run


LLVM = f"{sys.executable} -m dovetail_llvm.worker"


def made(report: str) -> int:
    assert "not made" not in report
    return int(re.match(r"toolchain llvm: (\d+) made", report)[1])


def test_machine_code_has_the_bits_of_tiles_and_of_eager_calls(run, level, tmp_path):
    without, eager, report = run("/nowhere", level=level)
    assert "toolchain llvm: 0 made" in report
    compiled, again, report = run(LLVM, level=level)
    assert made(report) > COUNT
    requests = list((tmp_path / "dump").glob("llvm-*.request"))
    assert len(requests) > COUNT and all("define void @loop0(" in request.read_text() for request in requests)
    assert again == eager
    assert compiled == without
    assert [c for c in compiled if " eager " in c] == [e for e in eager if " eager " in e]


def test_the_code_is_what_runs(run):
    compiled, eager, _ = run(f"{sys.executable} {HERE / 'unusual_worker.py'} wrong", count=10)
    assert [c for c in compiled if " eager " in c] != [e for e in eager if " eager " in e]


def test_code_links_on_x86_and_on_aarch64(run):
    _, _, report = run(f"{sys.executable} {HERE / 'unusual_worker.py'} both", seed=100, count=20)
    assert made(report) > 20


PROGRAM = """
import os, time, numpy as np, dovetail as dt
from dovetail import _core
def f(x, w): return dt.sqrt(abs(x * w - 1.0)) + x
x = dt.asarray(np.linspace(-3, 3, 1 << 20, dtype="float32"), device="cpu")
expected = np.asarray(f(x, x))
compiled, end = dt.compile(f), time.monotonic() + 60
runs = 0
compiled(x[:4], x[:4])
assert "tiles; no machine code yet" in compiled.explain(x[:4], x[:4]), compiled.explain(x[:4], x[:4])
while time.monotonic() < end and "llvm: 1 made" not in str(dt.compile_report()):
    assert np.array_equal(np.asarray(compiled(x, x)), expected)
    runs += 1
assert runs > 1, runs
for _ in range(3):
    assert np.array_equal(np.asarray(compiled(x, x)), expected)
explained = compiled.explain(x, x)
assert "nodes 0, 1, 2, 3, 4: tiles; machine code of 5 steps in 1 loops" in explained, explained
# Destroyed while code is being made.
for i in range(5):
    g = dt.compile(lambda x, w, i=i: f(x, w) * (i + 0.5) - w)
    for _ in range(3): g(x, x)
    del g
print("ends with", str(dt.compile_report()).splitlines()[-1])
"""


def test_a_group_runs_on_while_its_code_is_made(tmp_path):
    environment = os.environ | {"DOVETAIL_TOOLCHAINS": f"llvm={LLVM}", "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("DOVETAIL_COMPILE_WAIT", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert "ends with" in done.stdout
