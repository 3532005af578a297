"""benchmarks/cuda.py without a GPU: it reports that, and its programs still run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cuda_programs import EMULATED, NO_DRIVER, has_gpu, python, run

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
PARTS = ("memory", "allocation", "gemm", "tf32", "attention", "launch", "replay")
SLOW = {"replay": pytest.mark.slow}  # minutes on an emulated driver
PROGRAMS = ("cuda.py", *(f"cuda_{part}.py" for part in PARTS if part != "tf32"))


def program(name: str, *args: str, **options):
    return run(sys.executable, BENCHMARKS / name, *args, **{"check": False, "timeout": 1200} | options)


@pytest.mark.parametrize("part", [pytest.param(p, marks=SLOW.get(p, ())) for p in PARTS])
def test_every_part_runs_and_marks_each_figure(part, machine):
    ended = program("cuda.py", "--tiny", "--only", part, **machine)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    device, begin, *lines = ended.stdout.splitlines()
    assert device and begin == f"-- {part}"
    figures = [line for line in lines if "not measured" not in line]
    assert figures and all(line.endswith(" meaningless: --tiny") for line in figures), ended.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_a_gpu_there_are_no_figures(name):
    ended = program(name, **NO_DRIVER)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "nothing measured: " in ended.stderr and "there is no CUDA driver" in ended.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_emulated_driver_gives_no_figures(name):
    ended = program(name, **EMULATED)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("nothing measured: the driver is emulated")


def test_a_part_that_fails_is_named():
    ended = program(
        *("cuda.py", "--tiny", "--only", "launch"),
        **EMULATED,
        DOVETAIL_CUDA_EMULATED_FAILURES="cuLaunchKernel=999@1+",
    )
    assert ended.returncode == 1 and ended.stderr.splitlines()[-1] == "failed: launch", ended.stderr


def in_benchmarks(code: str, **options) -> str:
    return python(f"import sys; sys.path.insert(0, {str(BENCHMARKS)!r})\n{code}", **options)


def test_verdicts():
    printed = in_benchmarks("""
from cuda_timing import Aim
for aim, figures in ((Aim(0.85), (0.84, 0.85)), (Aim(3.0, at_most=True), (3.1, 3.0))):
    print(aim, *map(aim.verdict, figures))
""")
    assert printed.splitlines() == ["at least 0.85 MISSED met", "at most 3 MISSED met"]


@pytest.mark.slow
def test_the_peer_of_cublaslt_and_cudnn_builds():
    """Without a GPU it reports that there is none; with one, cuda.py's own checks compare its results."""
    printed = in_benchmarks(
        """
from cuda_direct import Direct
direct = Direct()
print(bool(direct.library.direct_gemm(b"bf16", 64, None, None, None)), direct.failure())
""",
        timeout=1200,
    )
    planned, *words = printed.split()
    assert planned == str(has_gpu()) and (planned == "True" or "driver" in words), printed
