"""benchmarks/growth.py: a run of two sizes of one op, its files, and what it calls a step."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import growth

SVG = "{http://www.w3.org/2000/svg}"


def run(*args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, growth.__file__, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_two_sizes_of_one_op(tmp_path):
    drawn, figures = tmp_path / "growth.svg", tmp_path / "growth.json"
    options = ["--seconds", 0.01, "--against", "numpy", "--svg", drawn, "--json", figures]
    done = run("transpose", "--sizes", 100, 1000, *options)
    assert done.returncode == 0, done.stderr
    rows = json.loads(figures.read_text("utf-8"))
    assert [(row["op"], row["size"]) for row in rows] == [("transpose", 100), ("transpose", 31 * 31)]
    assert all(set(row["ns"]) == {"dovetail", "numpy"} and min(row["ns"].values()) > 0 for row in rows)
    root = ElementTree.fromstring(drawn.read_text("utf-8"))
    curves = [e for e in root.iter(SVG + "polyline") if e.get("fill") == "none"]
    assert len(curves) == 2 and all(len(curve.get("points").split()) == 2 for curve in curves)
    assert {"transpose", "dovetail", "numpy", "1e2", "1e3"} <= {e.text for e in root.iter(SVG + "text")}


def test_an_unknown_op_is_refused():
    done = run("transposed")
    assert done.returncode == 2 and "there is no growth of 'transposed'; choose from add, exp" in done.stderr


def test_a_step_is_slower_than_both_sizes_before():
    curve = [(10, 9.0), (20, 1.0), (40, 2.0), (80, 2.5), (160, 4.0), (320, 4.1)]
    assert growth.steps(curve) == [(160, pytest.approx(1.6))]


def test_work_of_products_are_multiplications():
    assert growth.work(growth.OPS["matmul"](101)) == 1000 and growth.work(growth.OPS["exp"](101)) == 101
