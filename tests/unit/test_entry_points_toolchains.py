"""Discovery of toolchains: commands for the core, without importing anything of theirs."""

from __future__ import annotations

import sys

import pytest
from dovetail.entry_points import installed
from dovetail.entry_points.backend import Failure
from dovetail.entry_points.installed import TOOLCHAINS, EntryPoint
from dovetail.entry_points.registry import Registry
from dovetail.entry_points.toolchains import toolchains


def point(name="acme", value="acme_tool.worker", distribution="dovetail-acme 1.0", **more) -> EntryPoint:
    return EntryPoint(name, value, distribution, TOOLCHAINS, **more)


def test_the_command_and_the_fingerprint():
    python = "/opt/env/bin/python3.11"
    (tool,) = toolchains([point(content="files 1"), EntryPoint("cpu", "acme:backend", "x 1")], python)
    assert tool.name == "acme" and tool.problem == ""
    assert tool.command == [python, "-P", "-m", "acme_tool.worker"]
    for change in ({"content": "files 2"}, {"distribution": "dovetail-acme 1.1", "content": "files 1"}):
        (other,) = toolchains([point(**change)], python)
        assert other.fingerprint != tool.fingerprint
    (same,) = toolchains([point(content="files 1")], python)
    assert same == tool


@pytest.mark.parametrize(
    "python", ["python", "/usr/bin/python3", "/x/python3.14t", "/x/python3-dbg", "/x/python3.11d"]
)
def test_interpreters(python):
    (tool,) = toolchains([point()], python)
    assert tool.command[0] == python


@pytest.mark.parametrize(
    "program", ["", "/usr/bin/blender", "/opt/python-studio/app", "/usr/bin/uwsgi", "/x/pythonw-app"]
)
def test_a_program_that_embeds_python_is_not_started_again(program):
    (tool,) = toolchains([point()], program)
    assert tool.command == [] and f"sys.executable is {program!r}, which is no Python interpreter" in tool.problem


def test_two_wheels_with_one_name():
    (tool,) = toolchains([point(), point(distribution="dovetail-acme-too 2")], "python")
    assert tool.command == []
    assert "pip uninstall dovetail-acme or dovetail-acme-too" in tool.problem


@pytest.mark.parametrize("value", ["acme:object", "acme worker", "-c", ""])
def test_a_value_that_is_no_module(value):
    (tool,) = toolchains([point(value=value)], "python")
    assert tool.command == [] and f"entry point {value!r}: expected a module's name" in tool.problem


def test_broken_metadata():
    (tool,) = toolchains([point(problem=Failure("METADATA is missing", "reinstall it"))], "python")
    assert tool.command == [] and "METADATA is missing; reinstall it" in tool.problem


def test_the_registry_tells_the_core_when_it_reads_metadata():
    told, reads = [], []

    def read():
        reads.append(1)
        return [point()]

    registry = Registry(lambda *_: "", read, {}, set_toolchain=lambda *tool: told.append(tool))
    assert not reads
    assert registry.names() == ()  # a toolchain is no backend
    registry.names()
    assert [name for name, *_ in told] == ["acme"] and len(reads) == 1
    assert told[0][1] == [sys.executable, "-P", "-m", "acme_tool.worker"]


def test_installed_toolchains(tmp_path, monkeypatch):
    """The fingerprint changes with the wheel's files and with its requirements."""

    def install(name: str, version: str, *, record: str, requires: str = "", points: str = "") -> None:
        folder = tmp_path / f"{name}.dist-info"
        folder.mkdir(exist_ok=True)
        lines = [
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}",
            *(f"Requires-Dist: {r}" for r in requires.split()),
        ]
        (folder / "METADATA").write_text("\n".join(lines) + "\n")
        (folder / "RECORD").write_text(record)
        (folder / "entry_points.txt").write_text(points)

    def content() -> str:
        (found,) = [p for p in installed.entry_points() if p.group == TOOLCHAINS and p.name == "acme"]
        return found.content

    monkeypatch.syspath_prepend(str(tmp_path))
    points = "[dovetail.toolchains]\nacme = acme_tool.worker\n"
    mine = {"requires": "acmelib>=2,<3 absentlib", "points": points}
    install("acme_tool", "1.0", record="worker.py,sha256=1,10", **mine)
    install("acmelib", "2.0", record="")
    seen = [content()]
    install("acmelib", "2.1", record="")
    seen.append(content())
    install("acme_tool", "1.0", record="worker.py,sha256=2,10", **mine)
    seen.append(content())
    assert len(set(seen)) == 3
    assert "acmelib 2.0" in seen[0] and "no absentlib" in seen[0]
