"""The wheels in an otherwise empty virtual environment, with the dependencies that pip finds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


class Environment:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)

    def pip(self, *args: str) -> None:
        command = [
            sys.executable,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "--python",
            str(self.folder / "bin/python"),
        ]
        ended = subprocess.run([*command, *args, "--quiet"], capture_output=True, text=True, timeout=600)
        assert ended.returncode == 0, ended.stderr

    def run(self, *command: str, **variables: str) -> str:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("DOVETAIL_", "PYTHON"))} | variables
        ended = subprocess.run(
            [str(self.folder / "bin" / command[0]), *command[1:]],
            capture_output=True, text=True, timeout=300, cwd=self.folder, env=environment,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout


@pytest.fixture
def environment(tmp_path):
    return Environment(tmp_path / "venv")


USE = """
import dovetail as dv
a = dv.asarray([[1.0, 2.0], [3.0, 4.0]], dtype=dv.float32)
assert (a @ a).tolist() == [[7.0, 10.0], [15.0, 22.0]]
x = dv.ones((64, 64), dtype=dv.float32)
assert (x @ x)[0].tolist() == [64.0] * 64
"""


def test_smoke(environment, core_wheel, cpu_wheel):
    """pip install, the command line, a program, a device author's header and CMake folder; then uninstall."""
    environment.pip("install", str(core_wheel), str(cpu_wheel))
    environment.run("python", "-c", USE)
    listed = json.loads(environment.run("dovetail", "devices", "--json"))
    assert [device["device"] for device in listed["devices"]] == ["cpu:0"]
    assert Path(environment.run("dovetail", "--include-dir").strip(), "dovetail/abi.h").is_file()
    assert Path(environment.run("dovetail", "--cmake-dir").strip(), "dovetail-config.cmake").is_file()
    assert "cpu 0" in environment.run("dovetail", "env").replace("  ", " ")

    environment.pip("uninstall", "--yes", "dovetail-cpu")
    code = "import dovetail as dv; print(dv.devices())\ntry: dv.device('cpu')\nexcept ValueError as e: print(e)"
    out = environment.run("python", "-c", code)
    assert out.startswith("[]") and "pip install" in out
    environment.pip("uninstall", "--yes", "dovetail-runtime")
    left = [str(path) for path in environment.folder.rglob("*dovetail*")]
    assert left == []


MAPS = USE + "print(open('/proc/self/maps').read())"


def test_another_onednn_on_the_library_path(site, tmp_path):
    """A libdnnl.so.3 that is no oneDNN: ours is a file of another name."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    for name in ("libdnnl.so.3", "libdnnl.so", "libgomp.so.1"):
        (folder / name).write_text("not a library")
    maps = site.python(MAPS, LD_LIBRARY_PATH=str(folder))
    assert str(folder) not in maps


@pytest.mark.slow
@pytest.mark.parametrize("wheel", ["onednn", "onednn-cpu-gomp"])
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_with_the_public_onednn(environment, core_wheel, cpu_wheel, wheel, first):
    """PyPI's oneDNN wheels overwrite each other's libdnnl.so.3; neither their order nor their removal affects
    ours."""
    environment.pip("install", str(core_wheel))
    # Without the gigabytes of its dependencies, which the library does not need here.
    steps = [("install", str(cpu_wheel)), ("install", "--no-deps", wheel)]
    for step in steps if first == "ours" else reversed(steps):
        environment.pip(*step)
    theirs = environment.folder / "lib/libdnnl.so.3"
    assert theirs.exists()
    for path in ("", str(theirs.parent)):
        maps = environment.run("python", "-c", MAPS, LD_LIBRARY_PATH=path)
        assert "libdovetail_cpu" in maps and str(theirs) not in maps
    environment.pip("uninstall", "--yes", wheel)
    assert not theirs.exists()
    environment.run("python", "-c", USE)
