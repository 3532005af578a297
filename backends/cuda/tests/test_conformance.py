"""The suite on the emulated driver, and on a GPU if there is one: no case fails, and no waiver is needed."""

from __future__ import annotations

import pytest
from cuda_programs import EMULATED, dovetail, needs_gpu
from device_programs import cases_of_kernels


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
    """Of ops with kernels: all others are programs of these, some of them of thousands of launches. Of one dtype of
    each kind and size: an H200 has passed them all, and the emulated driver takes a minute for a thousand cases."""
    listing = dovetail("ops", "--device", "cuda", "--json", **EMULATED).stdout
    results = conform("--level", "L2", "-k", cases_of_kernels(listing))
    assert not wrong(results), results["printed"]
    assert len(results["cases"]) > 6_000
