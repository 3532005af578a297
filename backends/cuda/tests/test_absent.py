"""A missing driver, a GPU that is absent, kernels that have not run on one. Other devices still work."""

from __future__ import annotations

import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from cuda_programs import EMULATED, NO_DRIVER, dovetail, python, run

USE_CPU = "import dovetail as dv; print((dv.asarray([1.0, 2.0], device='cpu') + 1.0).tolist())"
NVIDIA = r"libcuda|libcu(blas|dnn|dart)|libnccl|libnvrtc|libdovetail_cuda"


def expect_no_device(*words: str, **variables: str) -> None:
    """Both lists show the message, nothing is a warning, and another device works."""
    listed = dovetail("devices", **variables)
    assert "cuda: opened, but it has no device" in listed.stdout
    output = dovetail("env", **variables)
    assert re.search(r"^ +cuda \S+: no device found$", output.stdout, flags=re.MULTILINE)
    for word in words:
        assert word in listed.stdout and word in output.stdout, (word, listed.stdout, output.stdout)
    assert (listed.stderr, output.stderr) == ("", "")
    ended = run(sys.executable, "-c", "import dovetail as dv; print((dv.asarray([1.0]) + 1.0).device)", **variables)
    assert (ended.stdout, ended.stderr) == ("cpu:0\n", "")


def test_without_a_driver():
    """With a wrong path of the user's own, no other driver is tried."""
    expect_no_device(
        "there is no CUDA driver: /nowhere/libcuda.so.1: cannot open",
        "; correct or unset DOVETAIL_CUDA_DRIVER",
        **NO_DRIVER,
    )


@pytest.mark.parametrize(
    ("failures", "words"),
    [
        ("cuInit=100@1", "the CUDA driver finds no GPU; CUDA_VISIBLE_DEVICES must not hide it"),
        (
            "cuInit=34@1",
            "libcuda.so.1 is the stub that programs are linked with, not a driver; take its folder out of",
        ),
        ("cuInit=999@1", " (999); see what nvidia-smi prints"),
    ],
)
def test_a_driver_that_does_not_start_says_why(failures, words):
    expect_no_device(words, **EMULATED, DOVETAIL_CUDA_EMULATED_FAILURES=failures)


def test_a_driver_that_is_too_old(tmp_path):
    """A driver of CUDA 12.4, then one that lacks a function."""
    expect_no_device(
        "the CUDA driver is too old: it knows CUDA 12.4, expected 13.0 or newer; install NVIDIA's driver",
        **EMULATED,
        DOVETAIL_CUDA_EMULATED_VERSION="12040",
    )
    ancient = tmp_path / "libcuda.so.1"
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", ancient], check=True)
    expect_no_device("the CUDA driver is too old: it has no cu", DOVETAIL_CUDA_DRIVER=str(ancient))


def test_a_gpu_that_is_too_old():
    old = EMULATED | {"DOVETAIL_CUDA_EMULATED_CAPABILITY": "7.5"}
    expect_no_device("is too old: expected compute capability 8.0 (Ampere) or newer", **old)


def test_what_is_verified_is_used_without_being_asked_for():
    """And each name of verified.hpp is a family."""
    root = Path(__file__).parents[2]
    verified = set(re.findall(r'^    "(\w+)",', (root / "cuda/src/verified.hpp").read_text(), re.MULTILINE))
    families = {file.stem for file in (root / "cuda/src/ops").glob("*.cpp")} | {"groups"}
    families |= set(re.findall(r'{"(\w+)", add_', (root / "gpu/rows.hpp").read_text()))
    assert verified and verified <= families
    listed = [dovetail("ops", "--device", "cuda", **EMULATED | {"DOVETAIL_CUDA_UNVERIFIED": on}) for on in "01"]
    assert (listed[0].stdout == listed[1].stdout) == (verified == families)


def test_asking_for_the_absent_device_is_an_error():
    ended = run(sys.executable, "-c", "import dovetail as dv; dv.device('cuda:0')", check=False, **NO_DRIVER)
    assert ended.returncode == 1
    output = ended.stderr.splitlines()[-1]
    assert output.startswith(
        "ValueError: there is no device 'cuda:0': backend 'cuda' has none; there is no CUDA driver"
    )


def test_the_emulated_gpu_is_there():
    """Without the changes of the tests above, everything works."""
    listed = dovetail("devices", **EMULATED)
    assert re.search(r"^cuda:0 +gpu .* sm_90 ", listed.stdout, flags=re.MULTILINE) and listed.stderr == ""


def loaded(code: str, **variables: str) -> set[str]:
    """The libraries of NVIDIA's that a program has mapped at its end."""
    maps = python(code + "\nprint(open('/proc/self/maps').read())", **variables)
    return {Path(line.split()[-1]).name for line in maps.splitlines() if re.search(NVIDIA, line)}


def test_nothing_is_mapped_while_only_the_cpu_is_used():
    assert loaded(USE_CPU, **EMULATED) == set()
    assert "libdovetail_cuda.so" in loaded(USE_CPU.replace("'cpu'", "'cuda'"), **EMULATED)


def test_the_plugin_needs_no_library_of_nvidias():
    import dovetail_cuda

    needed = run("readelf", "-d", dovetail_cuda.backend.library).stdout
    assert re.findall(r"\(NEEDED\).*\[(.*)\]", needed) and not re.search(NVIDIA, re.sub(r"SONAME.*", "", needed))


def test_the_wheel_is_small():
    """The size to download: each file of the package packed by itself, as in every wheel."""
    import dovetail_cuda

    files = Path(dovetail_cuda.__file__).parent.rglob("*")
    packed = sum(len(zlib.compress(f.read_bytes())) for f in files if f.is_file() and f.suffix != ".pyc")
    assert packed < 5_000_000
