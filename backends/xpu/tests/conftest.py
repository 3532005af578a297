from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from device_programs import prelude

sys.path.insert(0, str(Path(__file__).resolve().parent))

from programs import ON_CPU, dovetail, python


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    try:
        distribution("dovetail-xpu")
    except PackageNotFoundError:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="dovetail-xpu is not installed: make test-xpu"))


@pytest.fixture
def conform(tmp_path: Path) -> Callable[..., dict]:
    """conform("--level", "L0") runs the suite through the public command line and returns its results."""

    def conform(*args: str, device: str = "xpu", **options) -> dict:
        results = tmp_path / "results.json"
        ended = dovetail(
            *("conform", "--device", device, "--no-report", "--json", results),
            *args,
            **{"timeout": 3600, "check": False} | ON_CPU | options,
        )
        assert results.exists(), ended.stdout + ended.stderr
        return json.loads(results.read_text("utf-8")) | {"exit": ended.returncode, "printed": ended.stdout}

    return conform


@pytest.fixture
def program() -> Callable[..., None]:
    """program(code) runs it in a new process, after the prelude of device_programs."""
    return lambda code, **variables: python(prelude("xpu") + code, **ON_CPU | variables)
