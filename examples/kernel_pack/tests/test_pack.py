"""Tests of this pack alone; `dovetail conform` tests the rest: the README has the command."""

import json
import subprocess
import sys

import dovetail
import numpy as np
import pytest
from dovetail_acme_fast.ops import squareplus

DEVICE = "cpu"


def test_its_rows_are_in_the_table():
    command = [sys.executable, "-m", "dovetail", "ops", "--device", DEVICE, "--json"]
    rows = {row["op"]: row for row in json.loads(subprocess.check_output(command))["ops"]}
    assert "acme_fast" in rows["hardswish"]["engines"]
    assert rows["acme_fast.squareplus"]["dtypes"]["f32"] == "native"


@pytest.mark.parametrize("dtype", ["float32", "float64"])  # by the kernel, by the decomposition
def test_squareplus(dtype):
    x = np.linspace(-50, 50, 1001).astype(dtype)
    want = (x.astype("float64") + np.sqrt(x.astype("float64") ** 2 + 4)) / 2
    np.testing.assert_allclose(squareplus(dovetail.asarray(x, device=DEVICE)).numpy(), want, rtol=1e-5)


def test_hardswish():
    x = np.array([-np.inf, -1e30, -3.5, -3, -1, -0.0, 0, 1, 3, 1e30, np.inf, np.nan], "float32")
    with np.errstate(invalid="ignore"):  # -inf * 0, which np.where does not take
        want = np.where(x <= -3, -0.0, x * np.clip(np.float64(x) / 6 + 0.5, 0, 1)).astype("float32")
    got = dovetail.nn.hardswish(dovetail.asarray(x, device=DEVICE)).numpy()
    np.testing.assert_allclose(got, want, rtol=5e-7)
