"""The installed wheel, as Dovetail finds and starts it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[3] / "tests/unit"
SQUARE = """
define void @square(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%j, %loop]
  %q = getelementptr float, ptr %p, i64 %i
  %v = load float, ptr %q
  %w = fmul float %v, %v
  store float %w, ptr %q
  %j = add i64 %i, 1
  %c = icmp ult i64 %j, %n
  br i1 %c, label %loop, label %done
done:
  ret void
}
"""
# Prints what the function does, how many came from where, and the modules of LLVM in this process.
PROGRAM = f"""
import ctypes, platform, sys, dovetail
from dovetail import _core, entry_points
from toolchain_service import Unbuilt, build, request
entry_points.names()
def ask(text={SQUARE!r}):
    return build("llvm", request(text, ["square"], platform.machine() + "-linux-gnu"))
x = (ctypes.c_float * 5)(1, 2, 3, 4, 5)
ask().function(0, None, ctypes.c_void_p, ctypes.c_int64)(ctypes.addressof(x), 5)
print(list(x))
"""


@pytest.fixture
def run(tmp_path):
    """run(code, VARIABLE=...): what the program and then the code print; one cache for all of them."""

    def run(code: str, **variables: str) -> list[str]:
        paths = os.pathsep.join(filter(None, [str(UNIT), os.environ.get("PYTHONPATH")]))
        environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": paths} | variables
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM + code], env=environment, cwd=tmp_path, capture_output=True, text=True,
            timeout=100,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


REPORT = """
(tool,), problem = _core.toolchains()
import json
print(json.dumps([len(tool["made"]), tool["kept"], tool["failures"], problem]))
"""


def test_it_is_found_started_and_cached(run):
    right = "[1.0, 4.0, 9.0, 16.0, 25.0]"
    assert run(REPORT) == [right, '[1, 0, [], ""]']
    assert run(REPORT) == [right, '[0, 1, [], ""]']


def test_nothing_of_llvm_is_in_the_process(run):
    out = run(
        "print([name for name in sys.modules if 'llvm' in name])\n"
        "print('llvmlite' in open('/proc/self/maps').read())"
    )
    assert out[1:] == ["[]", "False"]


ABORTS = """declare i64 @llvm.read_register.i64(metadata)
define i64 @square() {
  %x = call i64 @llvm.read_register.i64(metadata !{!"bogus"})
  ret i64 %x
}"""


def test_an_llvm_that_aborts_costs_one_request(run):
    out = run(f"try: ask({ABORTS!r})\nexcept Unbuilt as e: print('unbuilt')\nask({SQUARE + ';'!r})\n{REPORT}")
    assert out[1] == "unbuilt"
    made, kept, (reason,), _ = json.loads(out[2])
    assert (made, kept) == (2, 0)
    assert re.match(r"the worker (died with SIG|left with exit code).*(?i:invalid register)", reason)


def test_the_folder_that_the_user_works_in_hides_no_module(run, tmp_path):
    (tmp_path / "llvmlite.py").write_text("raise SystemExit('the wrong llvmlite')")
    assert run(REPORT)[1] == '[1, 0, [], ""]'


def test_without_llvmlite(run, tmp_path):
    absent = tmp_path / "absent/llvmlite"
    absent.mkdir(parents=True)
    (absent / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'llvmlite'\")")
    paths = os.pathsep.join([str(UNIT), str(absent.parent), os.environ.get("PYTHONPATH", "")])
    with pytest.raises(
        AssertionError, match="Unbuilt: the worker left with exit code 1, saying: ModuleNotFoundError: No mod"
    ):
        run("", PYTHONPATH=paths)


def test_the_extra_of_the_cpu_device_names_it():
    try:
        required = metadata.requires("dovetail-cpu") or []
    except metadata.PackageNotFoundError:
        pytest.skip("dovetail-cpu is not installed")
    assert [r for r in required if r.startswith("dovetail-llvm") and 'extra == "jit"' in r.replace("'", '"')]
