"""Programs that use the device, each in a process of its own, whose environment selects the devices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# Variables that change the visible devices, or the places of their libraries.
OURS = ("DOVETAIL_", "ONEAPI_", "SYCL_", "UR_", "OCL_", "LD_", "PYTHONWARNINGS")
ON_CPU = {"DOVETAIL_XPU_ALLOW_CPU": "1"}


def run(*command: str | Path, check: bool = True, timeout: float = 120, **variables: str):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(OURS)} | variables
    ended = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=timeout, env=environment, check=False
    )
    assert not check or ended.returncode == 0, ended.stdout + ended.stderr
    return ended


def python(code: str, interpreter: str | Path = sys.executable, **options) -> str:
    """Run the code, which must succeed; return its output."""
    return run(interpreter, "-c", code, **options).stdout


def built(program: Path, source: str) -> Path:
    """Build the program of that name in this folder, from its own source and one of the backend's."""
    prefix, here = Path(sys.prefix), Path(__file__).resolve().parent
    command = ["c++", "-std=c++20", "-O0", "-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING", "-o", program]
    command += ["-isystem", prefix / "include", f"-I{here.parent}/src", f"-I{here.parents[1]}"]
    command += [f"-I{here.parents[2]}/core/include"]
    command += [here / f"{program.name}.cpp", here.parent / "src" / source, prefix / "lib/libsycl.so"]
    command += ["-no-pie", "-Wl,--unresolved-symbols=ignore-all", f"-Wl,-rpath,{prefix}/lib"]
    run(*command)
    return program


def dovetail(*args: str | Path, interpreter: str | Path = sys.executable, **options):
    """The command line."""
    return run(interpreter, "-m", "dovetail", *args, **options)
