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


def test_it_reaches_l1(tmp_path):
    """Through the public command line; worker processes find the device as this process does."""
    results = tmp_path / "results.json"
    ended = subprocess.run(
        [sys.executable, "-m", "dovetail", "conform", "--device", "numpy", "--quick", "-n", "2", "--json", results],
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
    assert "L1" in ended.stdout.splitlines()[-1] and "not met" not in ended.stdout
    assert json.loads(results.read_text())["device"]["name"] == "numpy:0"


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
