"""Wheels made by hand, folders with installed wheels, and interpreters that run there."""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
VERSION = (ROOT / "VERSION").read_text().strip()
# Variables that change discovery, or turn the interpreter's warnings into output of the test.
OURS = ("DOVETAIL_", "PYTHONWARNINGS")


def compile_plugin(at: Path, *defines: str, flags: tuple[str, ...] = (), source: str = "plugin.c") -> Path:
    """The shared library of plugin.c or pack.c."""
    at.parent.mkdir(parents=True, exist_ok=True)
    command = [os.environ.get("CC", "cc"), "-std=c11", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror"]
    command += [f"-I{ROOT / 'core/include'}", *(f"-D{define}" for define in defines)]
    subprocess.run([*command, str(HERE / source), "-o", str(at), *flags], check=True)
    return at


def make_wheel(
    folder: Path,
    name: str,
    files: dict[str, bytes | str | Path],
    entry_points: dict[str, str],
    version: str = "1.0",
    group: str = "dovetail.backends",
) -> Path:
    """A wheel that pip accepts; `files` maps each path in it to its content or to a source file."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    lines = [f"{key} = {value}" for key, value in entry_points.items()]
    contents: dict[str, bytes] = {
        path: data.read_bytes() if isinstance(data, Path) else data.encode() if isinstance(data, str) else data
        for path, data in files.items()
    }
    contents[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
    contents[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    contents[f"{info}/entry_points.txt"] = "\n".join([f"[{group}]", *lines, ""]).encode()

    def digest(data: bytes) -> str:
        return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")

    record = [f"{path},sha256={digest(data)},{len(data)}" for path, data in contents.items()]
    contents[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    folder.mkdir(parents=True, exist_ok=True)
    at = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(at, "w") as archive:
        for path, data in contents.items():
            archive.writestr(path, data)
    return at


ENTRY = """
from pathlib import Path
from typing import NamedTuple

class Backend(NamedTuple):
    library: str
    search: list

backend = Backend(str(Path(__file__).parent / "lib{name}.so"), [])
"""


@cache
def installed() -> list[str]:
    """The devices of the wheels under test; a site may add more."""
    code = "import dovetail; print(*(d.name for d in dovetail.devices()))"
    clean = {key: value for key, value in os.environ.items() if not key.startswith(OURS)}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=clean
    ).stdout.split()


class Site:
    """A folder with wheels that pip installed, before the wheels under test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.packages = folder / "site"
        self.packages.mkdir(parents=True)

    def install(self, *wheels: Path) -> None:
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index"]
        command += ["--no-deps", "--target", str(self.packages), *map(str, wheels)]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)

    def backend(self, name: str, library: Path | None, *, entry: str = "", module: str = "", **kwargs) -> None:
        """Install the wheel dovetail-<name>; `entry`: the entry point's value, `module`: the package's source."""
        package = f"dovetail_{name}"
        files: dict[str, bytes | str | Path] = {f"{package}/__init__.py": module or ENTRY.format(name=name)}
        if library:
            files[f"{package}/lib{name}.so"] = library
        entry_points = {name: entry or f"{package}:backend"}
        self.install(make_wheel(self.folder / "wheels", f"dovetail-{name}", files, entry_points, **kwargs))

    def pack(
        self, name: str, library: Path, *, device: str = "cpu", module: str = "", entry_name: str = ""
    ) -> None:
        """Install the kernel pack dovetail-<name> for a device."""
        package = f"dovetail_{name}"
        files: dict[str, bytes | str | Path] = {
            f"{package}/__init__.py": ENTRY.format(name=name) + module,
            f"{package}/lib{name}.so": library,
        }
        entry_points = {entry_name or f"{device}.{name}": f"{package}:backend"}
        wheels = self.folder / "wheels"
        self.install(make_wheel(wheels, f"dovetail-{name}", files, entry_points, group="dovetail.kernels"))

    def environment(self, **variables: str) -> dict[str, str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith(OURS)}
        path = os.pathsep.join([str(self.packages), *filter(None, [os.environ.get("PYTHONPATH")])])
        return clean | {"PYTHONPATH": path} | variables

    def run(self, *args: str, **variables: str) -> subprocess.CompletedProcess:
        command = [sys.executable, *args]
        environment = self.environment(**variables)
        return subprocess.run(
            command, capture_output=True, text=True, timeout=120, cwd=self.folder, env=environment, check=False
        )

    def python(self, code: str, **variables: str) -> str:
        """Run code that must succeed; return its output."""
        ended = self.run("-c", code, **variables)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def found(self, *more: str) -> list[str]:
        """The expected devices if the site adds these."""
        return sorted([*installed(), *more])

    def devices(self, **variables: str) -> dict:
        """The output of `dovetail devices --json`."""
        ended = self.run("-m", "dovetail", "devices", "--json", **variables)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return json.loads(ended.stdout)


@pytest.fixture
def site(tmp_path: Path):
    made = Site(tmp_path / "world")
    yield made
    shutil.rmtree(made.folder, ignore_errors=True)


@pytest.fixture
def plugin(tmp_path: Path):
    """plugin("libacme.so", "MAJOR=2"): the C device, broken by the macros."""
    return lambda file, *defines, **options: compile_plugin(tmp_path / file, *defines, **options)


@pytest.fixture
def pack(tmp_path: Path):
    """pack("libacme_fast.so", "ANSWER=-2"): the kernel pack in C."""
    return lambda file, *defines: compile_plugin(tmp_path / file, *defines, source="pack.c")


@pytest.fixture
def wheel(tmp_path: Path):
    return lambda *args, **options: make_wheel(tmp_path / "wheels", *args, **options)


@pytest.fixture
def repository() -> Path:
    return ROOT


def built_wheel(pattern: str) -> Path:
    found = sorted((ROOT / "dist").glob(pattern), key=lambda path: path.stat().st_mtime)
    assert found, f"dist/{pattern} is missing: run `make install`"
    return found[-1]


@pytest.fixture
def core_wheel() -> Path:
    return built_wheel(f"dovetail_runtime-{VERSION}-cp{sysconfig.get_config_var('py_version_nodot')}-*.whl")


@pytest.fixture
def cpu_wheel() -> Path:
    return built_wheel(f"dovetail_cpu-{VERSION}-*.whl")


@pytest.fixture
def template_wheel() -> Path:
    """The wheel of backends/template, under any name."""
    name = tomllib.loads((ROOT / "backends/template/pyproject.toml").read_text())["project"]["name"]
    return built_wheel(f"{name.replace('-', '_')}-{VERSION}-*.whl")
