"""The build environment of an outside device author: the headers and the CMake package of the wheel."""

import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = """
cmake_minimum_required(VERSION 3.24)
project(acme LANGUAGES C CXX)
find_package(dovetail {version} CONFIG REQUIRED HINTS "{cmake_dir}")
dovetail_add_backend(acme SOURCES plugin.c)
"""


def build(site, folder: Path, version: str) -> subprocess.CompletedProcess:
    cmake = shutil.which("cmake") or pytest.skip("cmake is not installed")
    cmake_dir = site.run("-m", "dovetail", "--cmake-dir").stdout.strip()
    (folder / "CMakeLists.txt").write_text(PROJECT.format(cmake_dir=cmake_dir, version=version))
    shutil.copy(Path(__file__).parent / "plugin.c", folder)
    environment = site.environment()
    for command in (["-S", folder, "-B", folder / "build"], ["--build", folder / "build"]):
        ended = subprocess.run(
            [cmake, *command], capture_output=True, text=True, timeout=120, check=False, env=environment
        )
        if ended.returncode:
            break
    return ended


def test_build_and_load(site, tmp_path, repository):
    ended = build(site, tmp_path, (repository / "VERSION").read_text().strip())
    assert ended.returncode == 0, ended.stderr
    code = f"import dovetail; print(dovetail.load_backend({str(tmp_path / 'build/libdovetail_acme.so')!r}))"
    assert "acme:0" in site.python(code)


def test_a_newer_version_is_not_found(site, tmp_path):
    ended = build(site, tmp_path, "99.0")
    assert ended.returncode != 0 and 'compatible with requested version "99.0"' in ended.stderr
