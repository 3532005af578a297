from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from device_programs import prelude

sys.path.insert(0, str(Path(__file__).resolve().parent))

from cuda_programs import EMULATED, EMULATOR, ON_GPU, PROGRAMS, dovetail, needs_gpu, python


def missing() -> str:
    try:
        distribution("dovetail-cuda")
    except PackageNotFoundError:
        return "dovetail-cuda is not installed: make test-cuda"
    if not (PROGRAMS / "cudnn_plans").is_file():
        return "DOVETAIL_CUDA_PROGRAMS names no folder with programs: make test-cuda"
    return "" if Path(EMULATOR).is_file() else "DOVETAIL_CUDA_EMULATOR names no emulator: make test-cuda"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if reason := missing():
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(params=["emulated", pytest.param("gpu", marks=needs_gpu)])
def machine(request) -> dict[str, str]:
    """The environment of a program that uses the device: on the emulated driver, and on a GPU if there is one."""
    return EMULATED if request.param == "emulated" else ON_GPU


@pytest.fixture
def conform(tmp_path: Path, machine: dict[str, str]) -> Callable[..., dict]:
    """conform("--level", "L0") runs the suite through the public command line and returns its results."""

    def conform(*args: str, device: str = "cuda", **options) -> dict:
        results = tmp_path / "results.json"
        ended = dovetail(
            *("conform", "--device", device, "--no-report", "--json", results),
            *args,
            **{"timeout": 3600, "check": False} | machine | options,
        )
        assert results.exists(), ended.stdout + ended.stderr
        return json.loads(results.read_text("utf-8")) | {"exit": ended.returncode, "printed": ended.stdout}

    return conform


@pytest.fixture
def program(machine: dict[str, str]) -> Callable[..., None]:
    """program(code) runs it in a new process, after the prelude of device_programs."""
    return lambda code, **variables: python(prelude("cuda") + code, **machine | variables)
