"""The suite on SYCL's CPU device: the device must reach its level without a waiver."""

from __future__ import annotations

import pytest
from device_programs import cases_of_kernels
from programs import ON_CPU, dovetail


def wrong(results: dict) -> list[str]:
    return [c["id"] for c in results["cases"] if c["status"] not in ("pass", "unsupported")]


@pytest.mark.slow
def test_level_two(conform):
    results = conform("--level", "L2")
    assert (results["exit"], results["level"]["reached"], wrong(results)) == (0, "L2", []), results["printed"]
    assert not results["level"].get("waived")


def test_level_two_of_kernels(conform):
    """Of ops with kernels, and of one dtype of each kind and size."""
    listing = dovetail("ops", "--device", "xpu", "--json", **ON_CPU).stdout
    results = conform("--level", "L2", "-k", cases_of_kernels(listing))
    assert not wrong(results), results["printed"]
    assert len(results["cases"]) > 6_000
