"""The recipes of CONTRIBUTING.md are diffs that apply to the code as it is, each to one file."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DIFFS = re.findall(r"```diff\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.DOTALL)


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
    assert "softsign" in (tmp_path / files[0]).read_text()
