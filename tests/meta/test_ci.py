"""`.ci/run` with a fake make: the legs, their times, and the last line."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEGS = ["test", "test-llvm", "test-torch", "test-xpu", "test-cuda"]
LEGS += ["test-aarch64", "test-wheels", "test-windows", "test-asan"]
LEFT_OUT = 5  # of them, where the machine is slow
MAKE = """#!/bin/sh
echo "begin $1"
[ "$1" != "$FAILING" ] || { echo "make: *** [$1] Error 1"; exit 2; }
echo "=== 5 passed in 1.00s ==="
"""


@pytest.fixture
def ci(tmp_path):
    """ci(FAILING=leg) runs it with all tools present, so that it installs none."""
    for tool in re.findall(r"^need ([\w.+-]+) ", (ROOT / ".ci/run").read_text(), re.MULTILINE):
        (tmp_path / tool).write_text(MAKE if tool == "make" else "#!/bin/sh\n")
        (tmp_path / tool).chmod(0o755)
    (tmp_path / "python").symlink_to("/bin/true")

    def ci(**variables: str) -> subprocess.CompletedProcess:
        path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTHON": str(tmp_path / "python"), **variables}
        return subprocess.run(["sh", ".ci/run"], cwd=ROOT, env=environment, capture_output=True, text=True)

    return ci


def test_each_leg_is_timed_and_pytest_has_the_last_line(ci):
    done = ci()
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    timed = [line.split(":")[0] for line in lines if re.search(r": \d+ min \d\d s, \d+ min \d\d s in all$", line)]
    assert timed == [f"-- make {leg}" for leg in LEGS]
    assert [line for line in lines if line.startswith("begin")] == [f"begin {leg}" for leg in LEGS]
    assert lines[-1] == "=== 5 passed in 1.00s ==="


def test_the_last_legs_are_left_out_in_words_where_the_machine_is_slow(ci, tmp_path):
    clock = tmp_path / "date"  # a thousand seconds pass from call to call
    clock.write_text('#!/bin/sh\necho . >> "$0.calls"\necho $(($(wc -l < "$0.calls") * 1000))\n')
    clock.chmod(0o755)
    done = ci()
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert [line for line in lines if line.startswith("begin")] == [f"begin {leg}" for leg in LEGS[:-LEFT_OUT]]
    for leg in LEGS[-LEFT_OUT:]:
        assert any(line.startswith(f"-- make {leg} is left out: ") for line in lines)
    assert lines[-1] == "=== 5 passed in 1.00s ==="


@pytest.mark.parametrize("leg", ["test", "test-cuda", "test-asan"])
def test_a_leg_that_fails_ends_it(ci, leg):
    done = ci(FAILING=leg)
    assert done.returncode != 0
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("begin")] == [
        f"begin {leg}" for leg in LEGS[: LEGS.index(leg) + 1]
    ]
    assert lines[-1] == f"make: *** [{leg}] Error 1"
