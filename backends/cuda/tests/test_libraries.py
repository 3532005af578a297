"""The search for NVIDIA's libraries: places, order, and the message if one is missing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from cuda_programs import PROGRAMS, run

SONAME = "libcublasLt.so.13"
CURE = "pip install -U 'dovetail-cuda[cu13]', or name its folder in DOVETAIL_CUDA_LIBS"


def library(folder: Path, code: str = "int cublasLtMatmul(void) { return 0; }") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", f"-Wl,-soname,{SONAME}", "-o", folder / SONAME]
    subprocess.run(command, input=code, text=True, check=True)
    return folder / SONAME


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """find_library in a folder of its own, where the plugin would be: site/dovetail_cuda."""
    folder = tmp_path / "site" / "dovetail_cuda"
    folder.mkdir(parents=True)
    return Path(shutil.copy(PROGRAMS / "find_library", folder))


def found(program: Path, *search: Path, **variables: str) -> str:
    return run(program, *search, **variables).stdout.strip()


def test_the_order_of_places(program, tmp_path):
    """Each place has priority over the later ones."""
    places = {
        "system": library(tmp_path / "system"),
        "next to it": library(tmp_path / "site/nvidia/cu13/lib"),
        "search": library(tmp_path / "entry/nvidia/cu13/lib"),
        "variable": library(tmp_path / "named/cu13/lib"),
        "loaded": library(tmp_path / "loaded"),
    }
    variables: dict[str, str] = {}
    search: list[Path] = []
    steps = {
        "system": lambda: variables.update(LD_LIBRARY_PATH=str(tmp_path / "system")),
        "next to it": lambda: None,
        "search": lambda: search.append(tmp_path / "entry/nvidia/cu13/lib"),
        "variable": lambda: variables.update(DOVETAIL_CUDA_LIBS=f"/nowhere:{tmp_path / 'named'}"),
        "loaded": lambda: variables.update(LD_PRELOAD=str(tmp_path / "loaded" / SONAME)),
    }
    hidden = places["next to it"].rename(tmp_path / "hidden")
    for place, step in steps.items():
        step()
        if place == "next to it":
            hidden.rename(places["next to it"])
        assert found(program, *search, **variables) == str(places[place])


def test_folders_are_as_wheels_have_them_or_flat(program, tmp_path):
    for folder in ("cu13/lib", "."):
        path = library(tmp_path / "toolkit" / folder)
        assert found(program, DOVETAIL_CUDA_LIBS=str(tmp_path / "toolkit")) == str(path.resolve())
        path.unlink()


def test_a_missing_library_is_reported_with_its_places_and_cure(program, tmp_path):
    message = found(program, DOVETAIL_CUDA_LIBS="/one:/two")
    nearby = tmp_path / "site" / "nvidia"
    assert message == (
        f"there is no cuBLASLt: {SONAME} is neither in /one, /two, {nearby} nor where the system looks for "
        f"libraries; {CURE}"
    )


def test_the_host_is_warned_where_our_own_kernels_do_the_work(program, tmp_path):
    message = found(program, tmp_path / "entry")
    assert message.startswith("level 2: there is no cuBLASLt: ") and str(tmp_path / "entry") in message
    assert message.endswith(f"{CURE}; until then slower kernels of dovetail-cuda's own do its work")


def test_a_file_that_is_no_library_is_not_passed_over(program, tmp_path):
    """Another library further on would hide the error."""
    broken = tmp_path / SONAME
    broken.write_bytes(b"no library")
    library(tmp_path / "site/nvidia/cu13/lib")
    message = found(program, DOVETAIL_CUDA_LIBS=str(tmp_path))
    assert message.startswith(f"cuBLASLt cannot be opened: {broken}: ") and message.endswith(CURE)


def test_a_library_that_lacks_a_function_is_too_old(program, tmp_path):
    library(tmp_path, "int cublasLtCreate(void) { return 0; }")
    assert (
        found(program, DOVETAIL_CUDA_LIBS=str(tmp_path)) == f"cuBLASLt is too old: it has no cublasLtMatmul; {CURE}"
    )
