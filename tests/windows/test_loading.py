"""Plugins and files that cannot be opened in Windows, and their errors with cause and cure; what a plugin needs."""

from __future__ import annotations

import re
import shutil
import struct
from pathlib import Path

import pytest


@pytest.fixture
def load(wine, deployed):
    """load(library, *search, status=0) -> the output of a program that opens one plugin."""

    def run(library: Path | str, *search: Path | str, status: int = 0, **options) -> str:
        ended = wine.run(deployed / "load.exe", library, *search, **options)
        assert ended.returncode == status, f"{ended.returncode}: {ended.stdout}\n{ended.stderr}"
        return ended.stdout.strip()

    return run


@pytest.fixture
def plugin(built, deployed):
    """plugin(name): the path of one of the plugins in the folder with letters of no code page."""
    return lambda name: Path(shutil.copy(built.programs / "plugins" / f"{name}.dll", deployed / "plugins"))


def test_a_sound_plugin(load, plugin):
    assert load(plugin("sound")) == "sound:0 sound:1"


def test_paths_with_slashes_and_relative_ones(wine, deployed, plugin):
    sound = plugin("sound")
    ended = wine.run(deployed / "load.exe", wine.path(sound).replace("\\", "/"))
    assert ended.stdout.strip() == "sound:0 sound:1", ended.stderr
    ended = wine.run(deployed / "load.exe", "plugins/sound.dll", cwd=deployed)
    assert ended.stdout.strip() == "sound:0 sound:1", ended.stderr


def test_a_missing_file(load, deployed):
    out = load(deployed / "plugins/nothing \u65e5.dll", status=1)
    assert "there is no file Z:\\" in out and "t\u00e4st \u65e5\u672c\\plugins\\nothing \u65e5.dll" in out
    assert "[cure] reinstall the plugin" in out


def test_what_it_needs_is_opened_from_the_search_folders(wine, load, plugin, built, deployed):
    """Not from the current folder, nor from PATH."""
    needs = plugin("needs")
    needed = deployed / "n\u00f6tig"
    needed.mkdir()
    shutil.copy(built.programs / "needed/needed.dll", needed)
    assert load(needs, needed) == "needs:0 needs:1"
    for options in ({"cwd": needed}, {"WINEPATH": wine.path(needed)}):
        out = load(needs, status=1, **options)
        assert re.search(r"needs\.dll needs needed\.dll, which is in none of its folders", out), out
        assert "[cure] install the library that it needs, or name its folder" in out
    shutil.copy(built.programs / "needed/needed.dll", deployed / "plugins")
    assert load(needs) == "needs:0 needs:1"  # the plugin's own folder


def test_another_processor_and_another_system(load, plugin, deployed):
    library = plugin("sound")
    content = bytearray(library.read_bytes())
    (header,) = struct.unpack_from("<I", content, 0x3C)
    for machine, name in ((0x014C, "32-bit x86"), (0xAA64, "Arm64")):
        struct.pack_into("<H", content, header + 4, machine)
        library.write_bytes(content)
        out = load(library, status=1)
        assert f"is built for another kind of processor: {name}, expected x86-64" in out
        assert "[cure] reinstall" in out and "take the file for this machine" in out
    import dovetail_cpu

    library = Path(shutil.copy(dovetail_cpu.backend.library, deployed / "plugins"))
    out = load(library, status=1)
    assert "is built for another system: it is a library of Linux" in out and "[cure] reinstall" in out


def test_files_that_are_no_library(load, plugin, deployed):
    library = plugin("sound")
    content = library.read_bytes()
    for text, expected in ((b"no library", "is no DLL"), (b"", "is no DLL"), (content[:700], "sound.dll")):
        library.write_bytes(text)
        out = load(library, status=1)
        assert "it cannot be opened: " in out and expected in out and "[cure] reinstall or update the plugin" in out
    library.write_bytes((deployed / "libdovetail.dll").read_bytes())
    assert "has no symbol dvt_probe_v1; it is not a Dovetail plugin" in load(library, status=1)


def test_a_crash_while_devices_are_counted(load, plugin):
    """It ends the probe's process, not the program's."""
    out = load(plugin("count_crashes"), status=1)
    assert "opened in a child process, crashed with an illegal instruction (0xc000001d) in device_count" in out
    assert "saying: about to crash" in out and "[cure] reinstall or update it" in out


def test_a_crash_in_a_constructor(load, plugin):
    """Windows turns it into an error of the function that opens the library."""
    out = load(plugin("constructor_crashes"), status=1)
    assert "constructor_crashes.dll" in out and "(error " in out and "[cure] reinstall or update the plugin" in out


def test_a_plugin_that_does_not_answer(load, plugin):
    out = load(plugin("count_hangs"), status=1, DOVETAIL_PROBE_TIMEOUT="2")
    assert "did not answer within 2 s in device_count" in out


def test_a_device_that_fails_to_open(load, plugin):
    assert "the firmware is missing" in load(plugin("open_fails"), status=1)


def test_a_library_is_probed_once(wine, deployed, plugin, tmp_path):
    """What did not crash is remembered in a cache whose path has letters of no code page."""
    cache = tmp_path / "c\u00e4che \u65e5"
    variables = {"DOVETAIL_LOGS": "+loader", "XDG_CACHE_HOME": wine.path(cache)}
    sound = plugin("sound")
    first, second = (wine.run(deployed / "load.exe", sound, **variables) for _ in range(2))
    assert "was probed in a child process in" in first.stderr and first.returncode == 0
    assert "was probed since the machine started" in second.stderr and second.returncode == 0
    assert [file.name for file in (cache / "dovetail").iterdir()] == ["probed"]


def test_without_the_probe(wine, deployed, plugin):
    """Its absence is no reason to go without every device."""
    (deployed / "dovetail-probe.exe").unlink()
    ended = wine.run(deployed / "load.exe", plugin("sound"), XDG_CACHE_HOME=wine.path(deployed / "cache"))
    assert ended.stdout.strip() == "sound:0 sound:1"
    assert re.search(
        r"dovetail-probe\.exe cannot be run \(.*\(error \d+\)\): .* is opened without a test", ended.stderr
    )


def test_saved_programs_that_cannot_be_opened(wine, built, tmp_path):
    run = built.programs / "run_program.exe"
    missing = tmp_path / "missing \u65e5.dvt"
    ended = wine.run(run, "cpu:0", built.cpu, missing)
    assert ended.returncode == 1 and "no such file: " + wine.path(missing) in ended.stderr
    cut = tmp_path / "cut.dvt"
    cut.write_bytes(struct.pack("<Q", 1000) + b"{}")
    ended = wine.run(run, "cpu:0", built.cpu, cut)
    assert ended.returncode == 1 and "cut" in ended.stderr, ended.stderr


def test_the_device_reports_what_it_does_without(wine, deployed, built):
    """In the description of its build, which `dovetail env` prints and C programs get from dvr_get_device_info."""
    name, build = wine.ok(deployed / "load.exe", built.cpu).splitlines()
    assert name == "cpu:0" and build.startswith("gcc ") and build.endswith("; without OpenBLAS; without oneDNN")
