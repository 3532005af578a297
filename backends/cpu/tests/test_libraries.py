"""oneDNN and OpenBLAS: opened when needed, without threads of their own, alive in a forked child."""

import subprocess
import sys
import textwrap
from pathlib import Path

import harness
import pytest

HERE = Path(__file__).resolve().parent
PROLOGUE = """
    import os, platform, sys
    sys.path.insert(0, {here!r})
    import harness, numpy as np
    cpu = harness.fresh({level!r})
    rng = np.random.default_rng(0)

    def product(dtype, n=96):
        x, y = rng.uniform(-1, 1, (2, n, n)).astype(dtype)
        got = cpu.run("matmul", x, y, out=dtype, shape=(n, n))
        assert np.allclose(got.astype("c16"), x.astype("c16") @ y.astype("c16"), atol=0.2)

    def opened(name):
        return name in open("/proc/self/maps").read()

    def threads():
        return len(os.listdir("/proc/self/task"))
"""


def run(level: str, code: str) -> None:
    script = textwrap.dedent(PROLOGUE).format(here=str(HERE), level=level) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def levels():
    absent = [pytest.mark.skipif(not harness.available(level), reason="not here") for level in harness.LEVELS]
    return [pytest.param(level, marks=mark) for level, mark in zip(harness.LEVELS, absent, strict=True)]


@pytest.mark.parametrize("level", levels())
def test_opened_when_needed_and_without_threads(level):
    run(level, """
        before = threads()
        for dtype in (np.dtype("f4"), np.dtype("f8"), harness.bfloat16):
            product(dtype, 8)
        assert not opened("libdovetail_dnnl") and not opened("libdovetail_openblas")
        has_openblas = b"OpenBLAS" in cpu.table.build_info
        product(np.dtype("f4"))
        assert not opened("libdovetail_dnnl")
        assert opened("libdovetail_openblas") == (has_openblas and platform.machine() == "aarch64")
        for dtype in (harness.bfloat16, np.dtype("c8"), np.dtype("f8")):
            product(dtype)
        assert opened("libdovetail_openblas") == has_openblas
        assert threads() == before, os.listdir("/proc/self/task")
        assert not opened("libgomp")
    """)  # fmt: skip


@pytest.mark.parametrize("level", levels())
def test_a_forked_child_computes(level):
    run(level, """
        import signal
        dtypes = (np.dtype("f4"), np.dtype("f8"), harness.bfloat16, np.dtype("c8"))
        for dtype in dtypes:
            product(dtype)
        child = os.fork()
        if not child:
            signal.alarm(30)
            for dtype in dtypes:
                product(dtype)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """)  # fmt: skip
