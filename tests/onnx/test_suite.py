"""onnx.backend.test on each device: what passes, and a list of what does not, with reasons."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx")
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import suite  # noqa: E402
import support  # noqa: E402

sys.path.remove(str(HERE))

# {device: {case: [status, reason]}}; "any": on every device
NOT_PASSED = json.loads((HERE / "not_passed.json").read_text())
CASES = 2033  # of onnx 1.23


def run(who, device, path):
    """The results by name, of a process of its own: it forks, which devices that are in use do not survive."""
    command = [sys.executable, HERE / "suite.py", who, "--device", device, "-o", path]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return {name: suite.Result(*result) for name, result in json.loads(path.read_text()).items()}


@pytest.mark.parametrize("device", ["cpu:0", "sim:0"])
def test_the_suite(device, tmp_path):
    expected = NOT_PASSED["any"] | NOT_PASSED[device]
    made = run("dovetail", device, tmp_path / "results.json")
    assert len(made) == CASES, "not_passed.json is for onnx 1.23"
    failed = {name: result for name, result in made.items() if result.status != "pass"}
    news = {name: f"{r.status}: {r.why}" for name, r in failed.items() if expected.get(name, [""])[0] != r.status}
    assert not news, "cases that are not in not_passed.json, or fail otherwise"
    assert not expected.keys() - failed.keys(), "cases of not_passed.json that pass: take them out"


def test_the_table_of_ops_is_that_of_the_results():
    assert support.PAGE.read_text() == support.page(suite.cases()), "python tests/onnx/support.py writes it"


@pytest.mark.slow
def test_more_cases_pass_than_by_onnxruntime(tmp_path):
    pytest.importorskip("onnxruntime")
    ours, theirs = (
        sum(result.status == "pass" for result in run(who, "cpu:0", tmp_path / f"{who}.json").values())
        for who in ("dovetail", "onnxruntime")
    )
    assert ours >= 2005
    assert ours > theirs
