"""The recipes of CONTRIBUTING.md are diffs that apply to the present code, each to one file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
DIFFS = re.findall(r"```diff\n(.*?)```", TEXT, flags=re.DOTALL)


@pytest.mark.skipif(shutil.which("git") is None, reason="git applies the diffs")
@pytest.mark.parametrize("diff", DIFFS, ids=["op", "kernel"])
def test_a_recipe_touches_one_file_and_applies(diff, tmp_path):
    files = re.findall(r"^\+\+\+ b/(\S+)", diff, flags=re.MULTILINE)
    assert len(files) == 1
    if (source := ROOT / files[0]).exists():
        (tmp_path / files[0]).parent.mkdir(parents=True)
        shutil.copy(source, tmp_path / files[0])
    run = subprocess.run(
        ["git", "apply", "-"], input=diff, text=True, capture_output=True, check=False, cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr
    assert "squared_relu" in (tmp_path / files[0]).read_text()


def test_the_device_in_python_runs():
    (device,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    code = f"{device}\nx = dovetail.asarray([1.0, 2.0], device='acme')\nprint((x + x).tolist(), (x + x).device)"
    environment = os.environ | {"DOVETAIL_BACKEND_AUTOLOAD": "0"}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert run.stdout.split("] ") == ["[2.0, 4.0", "acme:0\n"], run.stderr
