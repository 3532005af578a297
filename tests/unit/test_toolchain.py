"""The service "dovetail.toolchain" in a Python program, with the worker toolchain_worker.py.

test_toolchain.cpp and test_object_cache.cpp have the rest.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture
def start(tmp_path):
    """start(code, VARIABLE=...): a Python program in a process group of its own, with toolchain_service at hand."""

    def start(code: str, **variables: str) -> subprocess.Popen:
        tool = f"fake={sys.executable} -P {HERE / 'toolchain_worker.py'}"
        own = {"DOVETAIL_TOOLCHAINS": tool, "WORKER_LOG": str(log), "XDG_CACHE_HOME": str(tmp_path)}
        paths = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | own | {"PYTHONPATH": paths} | variables
        command = [sys.executable, "-c", f"from toolchain_service import *\n{code}"]
        return subprocess.Popen(
            command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0
        )

    log = start.log = tmp_path / "log"
    return start


@pytest.fixture
def run(start):
    def run(code: str, **variables: str) -> str:
        process = start(code, **variables)
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        return out + errors

    return run


CALL = "print(build('fake', b'hello').function(0, int_)())\n"
INT = "from ctypes import c_int as int_\n"


def test_code_of_a_tool_from_the_environment(run):
    assert run(INT + CALL) == "5\n"


@pytest.mark.parametrize("wait", ["0", "1"])
def test_whoever_asks_may_wait(run, wait):
    """With DOVETAIL_COMPILE_WAIT=1 `ready` was called when build returns."""
    code = (
        "came = []\n"
        "callback = READY(lambda ctx, code, reason: came.append(code))\n"
        "assert TABLE.build(None, b'fake', b'slow', 4, callback, None) == 0\n"
        "print(len(came))\n"
        "import time\n"
        "while not came: time.sleep(0.01)\n"
    )
    assert run(f"from toolchain_service import READY, TABLE\n{code}", DOVETAIL_COMPILE_WAIT=wait) == f"{wait}\n"


def test_ctrl_c_does_not_reach_the_worker(start):
    code = (
        "try: build('fake', b'slow 1')\n"
        "except KeyboardInterrupt: print('interrupted')\n"
        "print(build('fake', b'slow 1').function(0, int_)())\n"
    )
    process = start(INT + code)
    end = time.monotonic() + 30
    while not start.log.exists() and time.monotonic() < end:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert (out, errors) == ("interrupted\n6\n", "")
    assert len(start.log.read_text().splitlines()) == 1


def test_a_process_that_ends_while_a_worker_works(run, start):
    assert run("import threading\nthreading.Thread(target=build, args=('fake', b'slow 2'), daemon=True).start()\n"
               "import time; time.sleep(0.3)\n") == ""  # fmt: skip


def test_a_tool_that_is_not_installed(run):
    code = "try: build('none', b'x')\nexcept Unbuilt as e: print(e)\n"
    assert run(code) == "no toolchain 'none' is installed; pip install dovetail-none\n"


@pytest.mark.parametrize("value", ["fake", "fake=", "fake=worker", "fake= "])
def test_a_variable_that_is_wrong(run, value):
    code = "try: build('fake', b'x')\nexcept Unbuilt as e: print(e)\n"
    out = run(code, DOVETAIL_TOOLCHAINS=value)
    assert f"DOVETAIL_TOOLCHAINS: expected name=/path/of/command, got '{value}'" in out
    assert "no toolchain 'fake' is installed" in out


def test_the_report(run, tmp_path):
    report = "import dovetail; print(dovetail.compile_report())\n"
    assert run(report) == "no compiled functions\n"
    out = run(INT + CALL + CALL + report).splitlines()
    assert out[2:] == [
        "no compiled functions",
        "toolchain fake: 1 made in 2.5 ms of CPU time, 0 shared, 1 from the cache",
    ]
    assert run(INT + CALL + report).splitlines()[2:] == ["toolchain fake: 0 made, 0 shared, 1 from the cache"]
    out = run("try: build('none', b'x')\nexcept Unbuilt: pass\n" + report, XDG_CACHE_HOME="/dev/null/none")
    assert "toolchain none: 0 made, 0 shared, 0 from the cache" in out
    assert "  not made: no toolchain 'none' is installed" in out
    out = run(INT + CALL + report, XDG_CACHE_HOME="/dev/null/none")
    assert out.startswith("5\n") and "  nothing is kept on disk: /dev/null/none/dovetail/objects: Not a dir" in out
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))\n"  # of files, in bytes
    out = run(full + INT + CALL + report, WORKER_LOG="/dev/null", XDG_CACHE_HOME=str(tmp_path / "full"))
    assert out.startswith("5\n") and re.search("nothing is kept on disk: .*/dovetail/objects: File too large", out)


def test_importing_dovetail_needs_no_toolchain(run):
    code = (
        "import sys, dovetail\n"
        "assert not {'llvmlite', 'dovetail_llvm'} & sys.modules.keys()\n"
        "import os; print(len(os.listdir('/proc/self/task')))\n"
    )
    assert run(code, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1") == "1\n"
