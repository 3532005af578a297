"""Which instructions run on which Arm processor: by the emulator's log, as a part of `make test-aarch64`.

This runs on the machine that builds and drives the emulator. DOVETAIL_AARCH64: the folder with emulator and wheels.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "cmake/aarch64"))

import emulated

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("DOVETAIL_AARCH64", ""))
pytestmark = pytest.mark.skipif(
    "DOVETAIL_AARCH64" not in os.environ, reason="make test-aarch64 builds the emulator and passes its path"
)
HARNESS = ROOT / "backends/cpu/tests"
OWN = "libdovetail_cpu.so"
BFLOAT16 = r"^bf(cvt|dot|mmla|mlal)"
SVE = r"\b[zp]\d+(\.[bhsdq]|/[mz])|^(cnt|inc|dec)[bhwd]\b|^(ptrue|while\w+)\b"
# Beyond armv8-a: bfloat16, dot products and float16 arithmetic, but not its conversion to float32.
BEYOND = rf"{BFLOAT16}|^[us]dot|^f(?!cvt|mov)\w+ (v\d+\.[48]h|h\d+)\b"

# Also checks right results and no SIGILL.
WORK = """
import os, sys
sys.path.insert(0, sys.argv[1])
import harness, numpy as np
cpu = harness.fresh(os.environ.get("DOVETAIL_CPU_CAPABILITY"))
rng = np.random.default_rng(0)
for dtype in (harness.bfloat16, harness.float32, harness.float64):
    x, y = rng.uniform(-1, 1, (2, 40, 40)).astype(dtype)
    got = cpu.run("matmul", x, y, out=dtype, shape=(40, 40))
    np.testing.assert_allclose(got.astype("f8"), x.astype("f8") @ y.astype("f8"), atol=0.05)
for half in (harness.float16, harness.bfloat16):
    x = rng.uniform(-1, 1, 100).astype(half)
    wide = cpu.run("astype", x, out=harness.float32)
    np.testing.assert_array_equal(wide, x.astype("f4"))
    np.testing.assert_array_equal(cpu.run("astype", wide, out=half), x)
print(open("/proc/self/maps").read())
"""

PACKED = """
import sys
sys.path.insert(0, sys.argv[1])
import harness, numpy as np
cpu = harness.fresh()
rng = np.random.default_rng(0)
x, y = rng.uniform(-1, 1, (2, 64, 64)).astype(harness.bfloat16)
got = cpu.run("matmul", x, y, out=x.dtype, shape=(64, 64), pack=1)
np.testing.assert_allclose(got.astype("f8"), x.astype("f8") @ y.astype("f8"), atol=0.05)
x, y = rng.integers(-128, 128, (2, 64, 64), "i1")
np.testing.assert_array_equal(cpu.run("matmul", x, y, out=x.dtype, shape=(64, 64), pack=1), x @ y)
print(open("/proc/self/maps").read())
"""


@cache
def instructions(model: str, level: str) -> dict[str, set[str]]:
    chosen = {"DOVETAIL_CPU_CAPABILITY": level} if level != "best" else {}
    return emulated.translated(FOLDER, model, WORK, HARNESS, **chosen)


def ours(libraries: dict[str, set[str]]) -> set[str]:
    """The instructions of our library and those that it calls; NumPy has an OpenBLAS of its own."""
    called = [name for name in libraries if not name or name.startswith("libdovetail")]
    assert OWN in called and len(called) > 1, sorted(libraries)
    return set().union(*(libraries[name] for name in called))


def matching(instructions: set[str], pattern: str) -> set[str]:
    return {i for i in instructions if re.search(pattern, i)}


@pytest.mark.parametrize("model", ["neoverse-v1", "neoverse-n2"])
def test_the_processor_multiplies_bfloat16(model):
    libraries = instructions(model, "best")
    assert matching(ours(libraries), r"^bf(mmla|dot)")
    assert matching(libraries[OWN], r"^bfcvtn")


@pytest.mark.parametrize("model", ["neoverse-v1", "neoverse-n2"])
def test_onednn_multiplies_with_code_that_it_generates(model):
    folder = FOLDER / "onednn"
    path = f"{folder / 'site'}:{FOLDER / 'site'}"
    generated = emulated.translated(folder, model, PACKED, HARNESS, PYTHONPATH=path)[""]
    assert matching(generated, r"^bf(mmla|dot) z")
    assert matching(generated, r"^[us]mmla z")


@pytest.mark.parametrize(
    "model, level", [("neoverse-v1", "default"), ("neoverse-n2", "default"), ("cortex-a72", "best")]
)
def test_the_baseline_runs_nothing_beyond_it(model, level):
    libraries = instructions(model, level)
    assert matching(ours(libraries), r"^fmla v\d+\.4s"), "the log was not understood"
    assert not matching(ours(libraries), f"{BEYOND}|{SVE}")
    assert matching(libraries[OWN], r"^fcvtl2? v\d+\.4s, v\d+\.[48]h")
    assert matching(libraries[OWN], r"^fcvtn2? v\d+\.[48]h, v\d+\.4s")


def test_no_function_uses_more_than_its_level():
    """By disassembly: instructions beyond the baseline are only in the namespace of their level."""
    library = os.environ.get("DOVETAIL_CPU_LIBRARY") or FOLDER / "site/dovetail_cpu/lib" / OWN
    command = ["aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", library]
    dump = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    functions = re.findall(r"^[0-9a-f]+ <(.*)>:\n((?:.+\n)+)", dump, re.MULTILINE)
    if not any("isa_neon_bf16" in name for name, _ in functions):
        pytest.skip("the library is stripped of its symbols")
    beyond = set()
    for name, code in functions:
        found = {" ".join(line.split("\t")[1:3]) for line in code.splitlines()}
        assert not matching(found, SVE), name
        if matching(found, BEYOND):
            beyond.add(name)
    assert beyond, "the disassembly was not understood"
    assert all("isa_neon_bf16" in name for name in beyond), sorted(beyond)
