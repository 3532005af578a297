"""The distribution is dovetail-runtime: on the public index `dovetail` is another project with such a package."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

CURE = "python -m pip uninstall --yes dovetail; python -m pip install --force-reinstall --no-deps dovetail-runtime"


class Environment:
    """An empty virtual environment."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)

    def pip(self, *args: str) -> None:
        command = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), *args, "--quiet"]
        subprocess.run(command, check=True, capture_output=True, timeout=120)

    def install(self, wheel: Path) -> None:
        self.pip("install", "--no-index", "--no-deps", "--force-reinstall", str(wheel))

    def error(self, *command: str) -> str:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("DOVETAIL_", "PYTHON"))}
        full = [str(self.bin / command[0]), *command[1:]]
        ended = subprocess.run(full, capture_output=True, text=True, timeout=60, env=clean)
        assert bool(ended.returncode) == bool(ended.stderr), ended.stdout + ended.stderr
        return ended.stderr


@pytest.mark.parametrize("last", ["ours", "theirs"])
def test_both_in_one_environment(last, tmp_path, core_wheel, wheel):
    """Whichever came last, using Dovetail raises an error whose cure helps."""
    theirs = wheel("dovetail", {"dovetail/__init__.py": "build = 'theirs'\n"}, {}, version="1.0b2")
    here = Environment(tmp_path / "venv")
    for one in (theirs, core_wheel) if last == "ours" else (core_wheel, theirs):
        here.install(one)
    uses = [
        ("python", "-c", "import dovetail.nn"),
        ("python", "-c", "import dovetail._core"),
        ("dovetail", "devices"),
    ]
    uses += [("python", "-c", "import dovetail")] * (last == "ours")
    for use in uses:
        error = here.error(*use)
        assert "ImportError: another project, dovetail 1.0b2, is installed in " in error and CURE in error, error
    here.pip("uninstall", "--yes", "dovetail")
    error = here.error("python", "-c", "import dovetail.nn")
    assert "dovetail/__init__.py" in error and "is missing or another project's" in error and CURE in error
    here.install(core_wheel)
    assert here.error("python", "-c", "import dovetail; dovetail.Device, dovetail.nn.relu") == ""


def test_whoever_needs_the_runtime_says_which(repository):
    """By its name on the index, this version of it, and how far: plugins that use the device protocol alone work
    until the next major version, what uses more until the next minor one."""
    version = Version(Path(repository, "VERSION").read_text())
    minor, major = f"{version.major}.{version.minor + 1}.0.dev0", f"{version.major + 1}.0.dev0"
    projects = {path for path in repository.glob("*/*/pyproject.toml") if not path.match("*/build/*")}
    projects = {path for path in projects if not path.match("toolchains/*/*")}  # processes of their own
    assert {path.parent.name for path in projects} >= {"cpu", "template", "conformance", "kernel_pack"}
    for path in projects:
        data = tomllib.loads(path.read_text())
        (needed,) = [text for text in data["project"].get("dependencies", ()) if "dovetail" in text]
        requirement = Requirement(needed)
        assert requirement.name == "dovetail-runtime" and version in requirement.specifier, path
        plugin = path.parent.name in ("template", "kernel_pack")
        assert requirement.specifier.contains(minor, prereleases=True) == plugin, path
        assert not requirement.specifier.contains(major, prereleases=True), path
        assert {text for text in data["build-system"]["requires"] if "dovetail" in text} <= {needed}, path
    for path in repository.glob("core/templates/*/pyproject.toml"):
        assert (
            f'"dovetail-runtime>={version.major}.{version.minor},<{version.major}.{version.minor + 1}"'
            in path.read_text()
        ), path


def test_nobody_is_sent_to_the_other_project(repository):
    """No command, requirement or cure names the distribution `dovetail`, except to uninstall it."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=repository, capture_output=True, text=True).stdout
    wrong = re.compile(
        r"""pip install (-\S+ )*["']?dovetail(\[|[ =<>"'`]|$)|["']dovetail(\[\w+\])?[=<>~]=""", re.MULTILINE
    )
    found = []
    for name in filter(None, tracked.split("\0")):
        path = repository / name
        if path.is_file() and path.suffix not in (".svg", ".png", ".dvt", ".safetensors", ".xz"):
            found += [f"{name}: {line}" for line in path.read_text().splitlines() if wrong.search(line)]
    assert not [line for line in found if not line.startswith("tests/packaging/test_distribution_name.py")]
