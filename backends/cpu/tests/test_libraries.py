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


def c_compiler() -> str:
    compiler = shutil.which("cc")
    machine = compiler and subprocess.check_output([compiler, "-dumpmachine"], text=True)
    if not machine or not machine.startswith(platform.machine()):
        pytest.skip("no C compiler for this processor")
    return compiler


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


# Prints how many of 200 children hang that are forked while two threads multiply small matrices.
FORKS_BESIDE_OPENBLAS = """
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

void scipy_cblas_dsymm(int order, int side, int triangle, int m, int n, double alpha, const double* a, int lda,
                       const double* b, int ldb, double beta, double* c, int ldc);

static void product(void) {
  static const double a[16] = {1}, b[16] = {1};
  double c[16] = {0};
  scipy_cblas_dsymm(101, 141, 121, 4, 4, 1, a, 4, b, 4, 0, c, 4);
  if (c[0] != 1) abort();
}
static atomic_bool done;
static void* products(void* unused) {
  while (!done) product();
  return unused;
}
int main(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(threads + i, NULL, products, NULL);
  int hung = 0;
  for (int i = 0; i < 200 && hung < 3; ++i) {
    const pid_t child = fork();
    if (!child) {
      alarm(20);
      product();
      _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    hung += status != 0;
  }
  done = true;
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  printf("%d", hung);
}
"""


def test_a_child_forked_while_openblas_computes_computes(tmp_path):
    """OpenBLAS holds a mutex for a part of each call, most of one as small as these."""
    compiler, folder = c_compiler(), harness.library_path().parent
    folder = next((f for f in (folder, folder / "lib") if (f / "libdovetail_openblas.so.0").exists()), None)
    if not folder:
        pytest.skip("built without OpenBLAS")
    program = tmp_path / "forks"
    (tmp_path / "forks.c").write_text(FORKS_BESIDE_OPENBLAS)
    library = [folder / "libdovetail_openblas.so.0", f"-Wl,-rpath,{folder}"]
    command = [compiler, "-pthread", "-o", program, tmp_path / "forks.c", *library]
    subprocess.run(command, check=True)
    assert subprocess.check_output([program], text=True, timeout=100) == "0"


# An OpenBLAS that writes no result.
WRONG_OPENBLAS = """
const char* scipy_openblas_get_corename(void) { return "wrong"; }
void scipy_cblas_sgemm(void) {}
void scipy_cblas_dgemm(void) {}
void scipy_cblas_cgemm(void) {}
void scipy_cblas_zgemm(void) {}
"""


@pytest.mark.parametrize("level", levels())
def test_a_library_that_multiplies_wrongly_is_not_used(level, tmp_path):
    compiler, name = c_compiler(), "libdovetail_openblas.so.0"
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
