"""The instruction set levels: which one is chosen, that they agree, and that the lowest one never executes AVX."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import harness
import numpy as np
import pytest
from abi import INVALID
from harness import KernelError

HERE = Path(__file__).resolve().parent


def need(tool: str) -> str:
    """The tool's path. Without the tool the test is skipped, except in CI."""
    path = shutil.which(tool)
    if not path:
        if os.environ.get("CI"):
            pytest.fail(f"{tool} is missing: CI must prove this")
        pytest.skip(f"{tool} is not installed")
    return path


def test_best_level_is_chosen():
    best = [level for level in harness.LEVELS if harness.available(level)][-1]
    s = harness.fresh()
    assert s.device_count() == 1
    assert f"kernels {best};" in s.table.build_info.decode()


def test_the_levels_that_are_built_are_reported():
    info = harness.fresh().table.build_info.decode()
    built = re.search("; levels ([^;]*)", info)[1].split()
    assert built and built == [level for level in harness.LEVELS if level in built], info
    assert all(level in built for level in harness.LEVELS if harness.available(level))


def test_unknown_capability_is_explained():
    s = harness.fresh("sse9")
    known = ", ".join(harness.LEVELS[:-1]) + f" or {harness.LEVELS[-1]}"
    message = f'DOVETAIL_CPU_CAPABILITY is not a capability: expected {known}, got "sse9"'
    with pytest.raises(KernelError, match=re.escape(message)) as e:
        s.device_count()
    assert e.value.code == INVALID
    with pytest.raises(KernelError, match="sse9"):
        s.open()
    assert not s.rows


def test_unknown_selection_of_kernels_is_explained():
    s = harness.fresh(DOVETAIL_CPU_KERNELS="few")
    with pytest.raises(KernelError, match="DOVETAIL_CPU_KERNELS is not a selection: expected must or all"):
        s.device_count()
    assert harness.fresh(DOVETAIL_CPU_KERNELS="all").device_count() == 1


def test_unknown_choice_of_amx_is_explained():
    s = harness.fresh(DOVETAIL_CPU_AMX="yes")
    with pytest.raises(KernelError, match='DOVETAIL_CPU_AMX is not a choice: expected 0 or 1, got "yes"'):
        s.device_count()
    assert not harness.has_amx(harness.fresh(DOVETAIL_CPU_AMX="0"))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="AMX is of x86-64")
def test_amx_is_used_where_the_processor_has_it():
    flags = Path("/proc/cpuinfo").read_text().split("flags", 1)[-1].split("\n")[0].split()
    best = [level for level in harness.LEVELS if harness.available(level)][-1]
    has = best == "avx512" and {"amx_tile", "amx_bf16", "amx_int8", "avx512_bf16"} <= set(flags)
    assert harness.has_amx(harness.fresh()) == has
    assert not harness.has_amx(harness.session("default"))


def test_levels_agree():
    """Every row's samples return the same at each level, up to the rounding of fused multiply-add."""
    import samples

    levels = [harness.session(level) for level in harness.LEVELS if harness.available(level)]
    if len(levels) == 1:
        pytest.skip("one level alone runs here")
    for rows in zip(*(s.rows for s in levels), strict=True):
        assert len({row.op for row in rows}) == 1
        results = [samples.run_row(s, row) for s, row in zip(levels, rows, strict=True)]
        for other in results[1:]:
            for got, want in zip(other, results[0], strict=True):
                if want.dtype.kind == "c":
                    got, want = (z.view(z.real.dtype) for z in (got, want))
                if want.dtype not in harness.FLOATS:
                    np.testing.assert_array_equal(got, want, err_msg=str(rows[0].op))
                    continue
                eps = float(harness.ml_dtypes.finfo(want.dtype).eps)
                np.testing.assert_allclose(
                    got.astype("f8"), want.astype("f8"), rtol=32 * eps, atol=8 * eps, err_msg=str(rows[0].op)
                )


# Prints "name width" for every function that has an instruction of AVX or beyond.
AWK = r"""
/^[0-9a-f]+ <.*>:$/ { if (width) print name, width; name = $2; width = 0 }
/\t/ { split($0, f, "\t"); op = f[2]
       if (op ~ /^v/ && op !~ /^v(err|erw|mcall|mmcall)/) {
         w = /%zmm|%k[0-7]|%[xy]mm(1[6-9]|2[0-9]|3[01])/ ? 512 : 256
         if (w > width) width = w } }
END { if (width) print name, width }
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the pattern knows the instructions of x86-64")
def test_no_function_uses_more_than_its_level():
    """By disassembly: AVX is only in the namespaces of the avx2 and avx512 kernels."""
    objdump, awk, nm = need("objdump"), need("awk"), need("nm")
    library = harness.library_path()
    if "isa_avx2" not in subprocess.run([nm, library], capture_output=True, text=True).stdout:
        pytest.skip("the library is stripped of its symbols")
    dump = subprocess.Popen([objdump, "-d", "--no-show-raw-insn", library], stdout=subprocess.PIPE)
    functions = subprocess.run([awk, AWK], stdin=dump.stdout, capture_output=True, text=True, check=True).stdout
    assert dump.wait() == 0
    found = [line.split() for line in functions.splitlines()]
    assert len(found) > 100, "the disassembly was not understood"
    for name, width in found:
        assert "isa_avx512" in name or ("isa_avx2" in name and width == "256"), (
            f"{name} has instructions of {width} bits"
        )


SHARED = """
#include "kernel.hpp"
namespace dovetail::cpu::DOVETAIL_CPU_ISA { int own(int x) { return x + 1; } }
%s
"""


@pytest.mark.parametrize("code, shared", [("", False), ("[[gnu::weak]] int twice(int x) { return 2 * x; }", True)])
def test_the_build_refuses_functions_that_levels_would_share(tmp_path, code, shared):
    compiler, cmake, nm = (shutil.which(tool) for tool in ("c++", "cmake", "nm"))
    if not (compiler and cmake and nm):
        pytest.skip("needs a compiler, cmake and nm")
    source, result = tmp_path / "a.cpp", tmp_path / "a.o"
    source.write_text(SHARED % code)
    include = [f"-I{HERE.parent / 'src'}", f"-I{HERE.parents[2] / 'core' / 'include'}"]
    subprocess.run([compiler, "-std=c++20", "-c", *include, source, "-o", result], check=True)
    script = HERE.parent / "cmake" / "check_level.cmake"
    settings = [f"-DNM={nm}", "-DNAMESPACE=isa_default", f"-DOBJECTS={result}", f"-DSTAMP={tmp_path / 'stamp'}"]
    done = subprocess.run([cmake, *settings, "-P", script], capture_output=True, text=True)
    assert (done.returncode != 0) == shared, done.stderr
    assert ("twice" in done.stderr) == shared


# choose_level() on a made-up processor: argument 1 is its level, the others are the built levels.
CHOICE = """
#include <cstdio>
#include <cstring>
#include "isa.hpp"
namespace dovetail::cpu {
Features processor;
bool built[3];
Features read_features() { return processor; }
std::span<const LevelName> level_names() {
  static constexpr LevelName names[] = {{"default", ""}, {"avx2", ""}, {"avx512", ""}};
  return names;
}
bool is_built(Level level) { return built[int(level)]; }
Level active_level() { return Level::none; }
bool permit_tiles() { return false; }
}
using namespace dovetail::cpu;
int main(int n, char** args) {
  std::strcpy(processor.name, "Invented");
  for (int i = 0; i < 3; ++i) {
    if (!std::strcmp(level_names()[i].name, args[1])) processor.level = Level(i);
    for (int k = 2; k < n; ++k) built[i] |= !std::strcmp(level_names()[i].name, args[k]);
  }
  char error[512] = "";
  const Level level = choose_level(error, sizeof error);
  std::puts(level == Level::none ? error : name(level));
}
"""
x86_only = pytest.mark.skipif(platform.machine() != "x86_64", reason="make test-aarch64 emulates others")


@x86_only
def test_which_of_the_built_levels_is_chosen(tmp_path):
    compiler = need("c++")
    source, program = tmp_path / "choice.cpp", tmp_path / "choice"
    source.write_text(CHOICE)
    src = HERE.parent / "src"
    subprocess.run([compiler, "-std=c++20", f"-I{src}", source, src / "isa.cpp", "-o", program], check=True)

    def choose(processor: str, built: str, wish: str = "") -> str:
        env = {**os.environ, "DOVETAIL_CPU_CAPABILITY": wish}
        done = subprocess.run(
            [program, processor, *built.split()], capture_output=True, text=True, check=True, env=env
        )
        return done.stdout.strip()

    assert choose("avx512", "default avx2 avx512") == "avx512"
    assert choose("avx512", "default avx2") == choose("avx2", "avx2 avx512") == "avx2"
    assert choose("avx512", "default avx2 avx512", "default") == "default"
    cure = "build all levels with `pip install --force-reinstall ./backends/cpu`"
    assert choose("avx2", "avx2", "default") == (
        '[cpu] DOVETAIL_CPU_CAPABILITY names a level that this build leaves out: got "default", expected avx2; '
        f"unset it or {cure}"
    )
    assert 'this processor (Invented) has: expected at most "avx2"' in choose("avx2", "avx2 avx512", "avx512")
    assert choose("avx2", "avx512") == (
        "[cpu] this build has no kernels that this processor (Invented) can run: "
        f'got avx512, expected at most "avx2"; {cure}'
    )


def configured(folder: Path, levels: str) -> subprocess.CompletedProcess[str]:
    cmake = need("cmake")
    options = [f"-DDOVETAIL_CPU_LEVELS={levels}", "-DDOVETAIL_CPU_ONEDNN=OFF", "-DDOVETAIL_CPU_OPENBLAS=OFF"]
    return subprocess.run(
        [cmake, "-S", HERE.parent, "-B", folder, *options], capture_output=True, text=True, timeout=300
    )


@x86_only
@pytest.mark.skipif(bool(os.environ.get("DOVETAIL_SYSROOT")), reason="a cross build")
def test_the_build_takes_the_levels_that_it_is_given(tmp_path):
    best = [level for level in harness.LEVELS if "this processor" not in harness.absent(level)][-1]
    runnable = harness.LEVELS[: harness.LEVELS.index(best) + 1]
    for levels, chosen in {
        "native": (best,),
        "runnable": runnable,
        "all": harness.LEVELS,
        "avx2": ("avx2",),
    }.items():
        done = configured(tmp_path / "build", levels)
        assert done.returncode == 0, done.stderr
        assert f"dovetail-cpu: levels {', '.join(chosen)}\n" in done.stdout
    refused = configured(tmp_path / "build", "sse9")
    assert refused.returncode != 0
    assert "DOVETAIL_CPU_LEVELS" in refused.stderr and '"sse9"' in refused.stderr


def old_processor(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    qemu = need("qemu-x86_64")
    # Settings of NumPy's OpenBLAS for this processor are not for the emulated one.
    own = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    # Nehalem is x86-64-v2: an AVX instruction would end the program with SIGILL.
    return subprocess.run(
        [qemu, "-cpu", "Nehalem", sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**own, "DOVETAIL_CPU_LIBRARY": str(harness.library_path()), "OPENBLAS_NUM_THREADS": "1", **env},
    )


@x86_only
@pytest.mark.skipif(bool(harness.absent("default")), reason=harness.absent("default"))
def test_every_row_runs_on_a_processor_without_avx():
    env = {k: os.environ.get(k, "") for k in ("DOVETAIL_CPU_CAPABILITY", "DOVETAIL_CPU_KERNELS")}
    done = old_processor(str(HERE / "samples.py"), **dict.fromkeys(env, ""))
    assert done.returncode == 0, done.stdout + done.stderr
    rows = harness.session("default").table.n_kernels
    assert done.stdout.startswith(f"{rows} rows"), done.stdout
    assert "kernels default; processor default" in done.stdout


@x86_only
def test_asking_an_old_processor_for_avx_is_explained():
    done = old_processor(str(HERE / "samples.py"), DOVETAIL_CPU_CAPABILITY="avx2")
    assert done.returncode != 0
    assert re.search(
        r"DOVETAIL_CPU_CAPABILITY=avx2 is more than this processor \(.*\) has: .*\"default\"", done.stderr
    )
