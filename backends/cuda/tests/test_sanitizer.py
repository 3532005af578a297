"""NVIDIA's compute-sanitizer on the suite's quick cases: it needs a GPU."""

from __future__ import annotations

import shutil
import sys
from importlib.metadata import PackageNotFoundError, files

import pytest
from cuda_programs import ON_GPU, needs_gpu, run


def compute_sanitizer() -> str | None:
    try:
        found = [f for f in files("nvidia-cuda-sanitizer-api") or () if str(f).endswith("bin/compute-sanitizer")]
    except PackageNotFoundError:
        found = []
    return str(found[0].locate()) if found else shutil.which("compute-sanitizer")


@needs_gpu
@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck"])
def test_quick_cases_without_a_finding(tool):
    sanitizer = compute_sanitizer()
    if not sanitizer:
        pytest.skip("no compute-sanitizer: pip install nvidia-cuda-sanitizer-api")
    run(
        *(sanitizer, "--tool", tool, "--target-processes", "all", "--error-exitcode", "86"),
        *(
            ("--report-api-errors", "no") if tool == "memcheck" else ()
        ),  # some are expected, such as of pageable memory
        *(sys.executable, "-m", "dovetail", "conform", "--device", "cuda", "--quick", "--no-report"),
        *("-k", "not device.*"),  # which look at memory that the sanitizer uses, too
        timeout=3600,
        **ON_GPU,
    )
