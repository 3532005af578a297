"""dovetail build on an emulated Arm processor: the folder's packed weights and machine code run there.

A part of `make test-aarch64`. DOVETAIL_AARCH64: the folder with emulator and wheels; DOVETAIL_LLVM_PYTHON: a Python
of this machine with dovetail-llvm, which makes the code.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("DOVETAIL_AARCH64", ""))
pytestmark = pytest.mark.skipif(
    "DOVETAIL_AARCH64" not in os.environ, reason="make test-aarch64 builds the emulator and passes its path"
)
MODEL = "neoverse-v1"  # oneDNN packs for it; without oneDNN the device packs nothing on Arm
SEED = int(os.environ.get("DOVETAIL_SEED", "20261128"))
print(f"DOVETAIL_SEED={SEED}")
ROWS = 16
LLVM = os.environ.get("DOVETAIL_LLVM_PYTHON", sys.executable)
WORKER = ROOT / "toolchains/llvm"

# The saved program: two products with bfloat16 weights, and elementwise ops between them that make a group.
EXPORT = """
import sys, dovetail as dt, numpy as np
w1, w2 = (dt.asarray(np.load(p), device="cpu").astype("bfloat16") for p in sys.argv[2:])
def network(x):
    h = dt.astype(x, "bfloat16") @ w1
    h = dt.astype(h, "float32")
    h = h * dt.tanh(h) + dt.exp(-h * h)
    return dt.astype(dt.astype(h, "bfloat16") @ w2, "float32")
dt.export(network, dt.spec(("n", 64), "float32")).save(sys.argv[1])
"""
# Prints how many packed weights were taken as they are, packed anew and damaged, and how many images ran.
RUN = """
import os, sys, dovetail as dt, numpy as np
folder, x, y, images = sys.argv[1:]
dt._core.record_images()
program = dt.load(folder, device="cpu", trust_code=True)
for _ in range(3):
    got = program(dt.asarray(np.load(x), device="cpu")).numpy()
np.save(y, got)
os.makedirs(os.path.join(images, "code"), exist_ok=True)
print(*dt._core.saved_packs(), dt._core.write_code(images)[0], os.uname().machine)
"""


def rounded(x: np.ndarray) -> np.ndarray:
    """To bfloat16, to nearest even, as float64."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32).astype(np.float64)


def expected(x: np.ndarray, w1: np.ndarray, w2: np.ndarray) -> np.ndarray:
    h = rounded(x) @ rounded(w1)
    return (h * np.tanh(h) + np.exp(-h * h)) @ rounded(w2)


def emulated(*command: object, **environment: object) -> str:
    """What the command, of Python for aarch64, prints."""
    (python,) = FOLDER.glob("sysroot/usr/bin/python3.[0-9][0-9]")
    here = FOLDER.resolve()
    settings = {
        "QEMU_CPU": MODEL,
        "PYTHONPATH": f"{here / 'onednn/site'}:{here / 'site'}",
        "DOVETAIL_COMPILE_WAIT": "1",
        **environment,
    }
    done = subprocess.run(
        ["sh", ROOT / "cmake/aarch64/run.sh", FOLDER / "onednn", python, *map(str, command)],
        env={**os.environ, **{k: str(v) for k, v in settings.items()}},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def builds(model: Path, folder: Path, **environment: object) -> dict:
    arguments = ["build", model, "--device", "cpu", "--out", folder, "--sizes", f"n={ROWS}"]
    emulated("-c", "from dovetail.cli.app import dovetail; dovetail()", *arguments, **environment)
    return json.loads((folder / "manifest.json").read_text())


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The program's file, its weights and operand, and the folder of their files."""
    here = tmp_path_factory.mktemp("saved")
    rng = np.random.default_rng(SEED)
    arrays = {
        "w1": (rng.standard_normal((64, 256)) / 8).astype(np.float32),
        "w2": (rng.standard_normal((256, 64)) / 16).astype(np.float32),
        "x": rng.standard_normal((ROWS, 64)).astype(np.float32),
    }
    for name, array in arrays.items():
        np.save(here / f"{name}.npy", array)
    emulated("-c", EXPORT, here / "m.dvt", here / "w1.npy", here / "w2.npy")
    return here, arrays


def runs(folder: Path, here: Path, arrays: dict, tmp_path: Path, **environment: object) -> list[str]:
    printed = emulated(
        "-c", RUN, folder, here / "x.npy", tmp_path / "y.npy", tmp_path / "images",
        DOVETAIL_TOOLCHAINS="", XDG_CACHE_HOME=tmp_path / "run", **environment,
    )  # fmt: skip
    h = expected(arrays["x"], arrays["w1"], arrays["w2"])
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), h, rtol=0.03, atol=0.03 * np.abs(h).max())
    return printed.split()


def test_packed_weights_of_an_arm_build_are_taken_as_they_are(saved, tmp_path):
    here, arrays = saved
    manifest = builds(here / "m.dvt", tmp_path / "m.aot", XDG_CACHE_HOME=tmp_path, DOVETAIL_TOOLCHAINS="")
    assert manifest["target"] == "aarch64" and manifest["packs"]["count"] == 2
    assert runs(tmp_path / "m.aot", here, arrays, tmp_path) == ["2", "0", "0", "0", "aarch64"]


def test_other_processors_pack_anew(saved, tmp_path):
    """A baseline processor's kernels have no layout of such weights; the results are right all the same."""
    here, arrays = saved
    builds(here / "m.dvt", tmp_path / "m.aot", XDG_CACHE_HOME=tmp_path, DOVETAIL_TOOLCHAINS="")
    taken, *_ = runs(tmp_path / "m.aot", here, arrays, tmp_path, QEMU_CPU="cortex-a72")
    assert taken == "0"


@pytest.mark.skipif(
    subprocess.run([LLVM, "-c", "import llvmlite"], capture_output=True, check=False).returncode != 0,
    reason="needs llvmlite; DOVETAIL_LLVM_PYTHON names a Python of this machine that has it",
)
def test_machine_code_of_an_arm_build_runs_without_a_compiler(saved, tmp_path):
    """The compiler is this machine's; the emulated process asks it for aarch64 code."""
    here, arrays = saved
    worker = tmp_path / "worker"
    worker.write_text(f"#!/bin/sh\nPYTHONPATH={WORKER} exec {LLVM} -m dovetail_llvm.worker\n")
    worker.chmod(0o700)
    manifest = builds(
        here / "m.dvt", tmp_path / "m.aot", XDG_CACHE_HOME=tmp_path, DOVETAIL_TOOLCHAINS=f"llvm={worker}"
    )
    assert manifest["code"] and manifest["notes"] == []
    taken, stale, damaged, images, machine = runs(tmp_path / "m.aot", here, arrays, tmp_path)
    assert (taken, stale, damaged, machine) == ("2", "0", "0", "aarch64")
    assert int(images) == len(manifest["code"])
