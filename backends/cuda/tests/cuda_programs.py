"""Programs that use the device, each in a process of its own, whose environment selects the driver."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

# Variables that change the visible devices, or the places of their libraries.
OURS = ("DOVETAIL_", "CUDA_", "LD_", "PYTHONWARNINGS")
# The driver that runs kernels on the host: the Makefile builds it.
EMULATOR = os.environ.get("DOVETAIL_CUDA_EMULATOR", "")
EMULATED = {"DOVETAIL_CUDA_DRIVER": EMULATOR, "DOVETAIL_CUDA_UNVERIFIED": "1"}
# Programs of tests/programs, which it builds too.
PROGRAMS = Path(os.environ.get("DOVETAIL_CUDA_PROGRAMS", ""))
NVIDIA = Path(os.environ.get("DOVETAIL_CUDA_LIBS") or Path(sysconfig.get_path("purelib"), "nvidia"))  # the wheels'
ON_GPU = {"DOVETAIL_CUDA_UNVERIFIED": "1"}
NO_DRIVER = {"DOVETAIL_CUDA_DRIVER": "/nowhere/libcuda.so.1"}  # whatever the machine has


def has_gpu() -> bool:
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


needs_gpu = pytest.mark.skipif(not has_gpu(), reason="no GPU with a driver on this machine")


def run(*command: str | Path, check: bool = True, timeout: float = 120, input: str | None = None, **variables: str):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(OURS)} | variables
    ended = subprocess.run(
        list(map(str, command)),
        input=input,
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment,
        check=False,
    )
    assert not check or ended.returncode == 0, ended.stdout + ended.stderr
    return ended


def python(code: str, interpreter: str | Path = sys.executable, **options) -> str:
    """Run the code, which must succeed; return its output."""
    return run(interpreter, "-c", code, **options).stdout


def plugin() -> str:
    """The installed plugin's file."""
    from dovetail_cuda import backend

    return backend.library


def dovetail(*args: str | Path, interpreter: str | Path = sys.executable, **options):
    """The command line."""
    return run(interpreter, "-m", "dovetail", *args, **options)
