"""The suite on the emulated driver, and on a GPU if there is one: no case fails, and no waiver is needed."""

from __future__ import annotations

import json

import pytest
from cuda_programs import EMULATED, dovetail, needs_gpu


def wrong(results: dict) -> list[str]:
    return [c["id"] for c in results["cases"] if c["status"] not in ("pass", "unsupported")]


def reached(results: dict) -> tuple[int, str, list[str], bool]:
    return results["exit"], results["level"]["reached"], wrong(results), bool(results["level"].get("waived"))


@pytest.mark.parametrize("machine", [pytest.param("gpu", marks=needs_gpu)], indirect=True)
def test_level_two(conform):
    results = conform("--level", "L2")
    assert reached(results) == (0, "L2", [], False), results["printed"]


@pytest.mark.parametrize("machine", ["emulated"], indirect=True)
def test_level_two_of_kernels(conform):
    """Of ops with kernels: all others are programs of these, some of them of thousands of launches."""
    ops = json.loads(dovetail("ops", "--device", "cuda", "--json", **EMULATED).stdout)["ops"]
    names = [f"{op['space']}.{op['op']}".lstrip(".") for op in ops if op["kernels"]]
    assert len(names) > 80
    results = conform("--level", "L2", "-k", " or ".join(("device.*", *(f"{name}[*" for name in names))))
    assert not wrong(results), results["printed"]
    assert len(results["cases"]) > 15_000
