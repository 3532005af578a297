"""oneDNN and OpenBLAS: opened when needed, without threads of their own, alive in a forked child."""

import platform
import shutil
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
        has_openblas = b"; OpenBLAS" in cpu.table.build_info
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


@pytest.mark.parametrize("level", levels())
def test_a_child_forked_while_others_build_primitives_computes(level):
    """Each product has new sizes: its code is generated under oneDNN's own locks."""
    run(level, """
        sizes = iter(range(40, 10**6))

        def products():
            n = next(sizes)
            x, y = np.ones((2, 64), harness.bfloat16), np.ones((64, n), harness.bfloat16)
            assert (cpu.run("matmul", x, y, out=x.dtype, shape=(2, n)) == 64).all()
            assert (cpu.run("matmul", np.ones((32, 64), x.dtype), y, out=x.dtype, shape=(32, n)) == 64).all()

        assert harness.forked_meanwhile(products, 40, 60) == [0] * 40
    """)  # fmt: skip


# An OpenBLAS that writes no result.
WRONG_OPENBLAS = """
const char* scipy_openblas_get_corename(void) { return "wrong"; }
void scipy_cblas_sgemm(void) {}
void scipy_cblas_dgemm(void) {}
void scipy_cblas_cgemm(void) {}
void scipy_cblas_zgemm(void) {}
"""


def is_for_this_processor(compiler: str) -> bool:
    machine = subprocess.run([compiler, "-dumpmachine"], capture_output=True, text=True, check=True).stdout
    return machine.startswith(platform.machine())


@pytest.mark.parametrize("level", levels())
def test_a_library_that_multiplies_wrongly_is_not_used(level, tmp_path):
    compiler = shutil.which("cc")
    if not compiler or not is_for_this_processor(compiler):
        pytest.skip("no C compiler for this processor")
    name = "libdovetail_openblas.so.0"
    (tmp_path / "wrong.c").write_text(WRONG_OPENBLAS)
    command = [compiler, "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", tmp_path / name, tmp_path / "wrong.c"]
    subprocess.run(command, check=True)
    run(level, f"""
        import ctypes
        wrong = ctypes.CDLL({str(tmp_path / name)!r})  # what is asked for by this name from here on
        for dtype in (np.dtype("f4"), np.dtype("f8"), np.dtype("c16"), harness.bfloat16):
            product(dtype)
        expected = ["OpenBLAS multiplies wrongly on this processor, which it takes for wrong: "
                    "dovetail-cpu's own kernels do it, more slowly"]
        assert cpu.logged == (expected if b"; OpenBLAS" in cpu.table.build_info else []), cpu.logged
    """)  # fmt: skip
