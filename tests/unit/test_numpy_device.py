"""The NumPy device of the examples: L1, the CPU's random bits, and MiniLM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples/numpy_device.py"


@pytest.fixture(scope="module")
def device():
    before = dt.fallback("error")
    yield dt.load_backend(EXAMPLE)[0]
    dt.fallback(before)


def test_it_is_short():
    assert len(EXAMPLE.read_text().splitlines()) < 150


def conform(*options):
    """Through the public command line; worker processes find the device as this process does."""
    ended = subprocess.run(
        [sys.executable, "-m", "dovetail", "conform", "--device", "numpy", "-n", "2", *options],
        env=os.environ
        | {
            "DOVETAIL_BACKEND_PATH": str(EXAMPLE),
            "DOVETAIL_BACKENDS": "numpy",
            "OPENBLAS_NUM_THREADS": "1",  # the workers suffice
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_it_reaches_l1(tmp_path):
    results = tmp_path / "results.json"
    printed = conform("--quick", "--json", results)
    assert "L1" in printed.splitlines()[-1] and "not met" not in printed
    assert json.loads(results.read_text())["device"]["name"] == "numpy:0"


def test_its_kernels_give_every_op(tmp_path):
    """A case of each op, in float32 where it has one: what a device's author gets for the must-have kernels."""
    cases = {}
    for case in conform("--level", "l2", "--list").splitlines():
        cases.setdefault(case.partition("[")[0], []).append(case)
    chosen = []
    for op in {op["name"] for op in dt._core.ops()} & cases.keys():
        in_float32 = [case for case in cases[op] if "[f32" in case] or cases[op]
        chosen += ["--case", in_float32[len(in_float32) // 2]]
    results = tmp_path / "results.json"
    conform("--level", "l2", "--json", results, *chosen)
    ended = json.loads(results.read_text())
    kernels = ended["kernels"]
    failed = [case["id"] for case in ended["cases"] if case["status"] != "pass"]
    print(f"{len(ended['cases'])} ops work with {len(kernels)} kernels")
    assert not failed
    assert len(kernels) < 35
    assert len(ended["cases"]) > 195


@pytest.mark.parametrize(
    "draw",
    [
        lambda g, where: g.bits((7, 143), device=where),
        lambda g, where: g.uniform((7, 143), device=where),
        lambda g, where: g.integers(0, 1 << 32, (7, 143), device=where),
    ],
    ids=["bits", "uniform", "integers"],
)
def test_random_numbers_are_the_cpus_bit_by_bit(device, draw):
    here, there = (draw(dt.random.Generator(7), where).numpy() for where in (device, "cpu"))
    assert here.shape == (7, 143) and here.dtype == there.dtype and here.tobytes() == there.tobytes()
    assert len(np.unique(here)) > 990


def test_minilm_embeds_as_on_the_cpu(device, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE.parent / "minilm"))
    from model import MiniLM

    sentences = ["A man is playing a guitar.", "Hardware got a lot quicker, says the vendor.", "rye"]
    here, there = (MiniLM(where)(sentences).numpy() for where in (device, "cpu"))
    np.testing.assert_allclose(here, there, atol=1e-5)
