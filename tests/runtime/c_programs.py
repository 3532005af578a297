"""Compiles the C programs of this folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import dovetail

HERE = Path(__file__).parent


def compiled(name: str, folder: Path) -> Path:
    """The program of `name`.c in the folder: it links libdovetail and the C library, and nothing else."""
    package = Path(dovetail.__file__).parent
    headers = [package / "include", HERE.parents[1] / "core/include"]
    include = next(h for h in headers if (h / "dovetail/runtime.h").is_file())
    program = folder / name
    command = [os.environ.get("CC", "cc"), "-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{include}",
               HERE / f"{name}.c", package / "libdovetail.so", f"-Wl,-rpath,{package}", "-o", program]  # fmt: skip
    subprocess.run(command, check=True, timeout=300)
    return program
