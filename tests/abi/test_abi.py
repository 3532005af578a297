"""abi.h for its users: both languages, other compilers, another DLPack header, and plugins that run."""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
INCLUDE = HERE.parents[1] / "core/include"
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
LANGUAGES = {"c": ("CC", "cc", "-std=c11"), "cpp": ("CXX", "c++", "-std=c++17")}
MINGW = "x86_64-w64-mingw32-gcc"


def compile_with(command: list[str], *words: object) -> None:
    done = subprocess.run([*command, *WARNINGS, f"-I{INCLUDE}", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def output_of(*words: object) -> str:
    return subprocess.run([*map(str, words)], capture_output=True, text=True, check=True).stdout


def compiler(language: str) -> list[str]:
    variable, default, standard = LANGUAGES[language]
    return [os.environ.get(variable, default), standard]


@pytest.fixture
def mingw() -> list[str]:
    if not shutil.which(MINGW):
        if os.environ.get("CI") == "true":
            pytest.fail(f"{MINGW} is missing: install gcc-mingw-w64-x86-64")
        pytest.skip(f"{MINGW} is not installed: Debian's gcc-mingw-w64-x86-64 has it")
    return [MINGW, "-std=c11"]


@pytest.fixture(scope="session")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plugins; the first worker of the test run builds it."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "abi-plugins"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "built").exists():
            shared_library = ["-O1", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden"]
            compile_with(compiler("c"), HERE / "minimal.c", "-o", folder / "minimal.so", *shared_library)
            compile_with(compiler("cpp"), HERE / "queue.cpp", "-o", folder / "queue.so", *shared_library)
            drafty = ['-DNAME="drafty"', "-DCLAIM_DRAFT=7"]
            compile_with(compiler("c"), HERE / "broken.c", "-o", folder / "drafty.so", *shared_library, *drafty)
            (folder / "built").touch()
    return folder


@pytest.fixture
def run(plugins: Path) -> Callable[[str], str]:
    """Run a program in a new interpreter, with `path(name)` defined; return its output."""

    def run(program: str) -> str:
        start = f"import dovetail\ndef path(name): return {str(plugins)!r} + '/' + name + '.so'\n"
        command = [sys.executable, "-c", start + program]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=plugins)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize("dlpack", ["own", "other"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_layout(language: str, dlpack: str, tmp_path: Path) -> None:
    other = [f"-I{HERE / 'standin'}", "-DEXPECT_OTHER_DLPACK"] if dlpack == "other" else []
    compile_with(compiler(language), *other, "-c", HERE / f"layout.{language}", "-o", tmp_path / "layout.o")


@pytest.mark.parametrize("command", ["c++", "clang++-14"])
def test_headers_for_compilers_without_float16(command: str) -> None:
    """clang has no _Float16 for x86 before 15."""
    if not shutil.which(command):
        pytest.skip(f"{command} is not installed")
    headers = [word for header in sorted(INCLUDE.glob("dovetail/*.h*")) for word in ("-include", header)]
    missing = ["-U__FLT16_MAX__", "-D_Float16=missing"]
    compile_with([command], "-std=c++17", "-fsyntax-only", *missing, "-x", "c++", *headers, os.devnull)


def test_layout_on_windows(mingw: list[str], tmp_path: Path) -> None:
    compile_with(mingw, "-c", HERE / "layout.c", "-o", tmp_path / "layout.o")


def test_a_plugin_for_windows(mingw: list[str], tmp_path: Path) -> None:
    library = tmp_path / "minimal.dll"
    compile_with(mingw, "-shared", HERE / "minimal.c", "-o", library)
    names = (
        output_of("x86_64-w64-mingw32-objdump", "-p", library)
        .partition("[Ordinal/Name Pointer] Table")[2]
        .partition("\n\n")[0]
    )
    assert "dvt_probe_v1" in names and "dvt_backend_v1" in names
    assert len([line for line in names.splitlines() if "]" in line]) == 2


@pytest.mark.parametrize("name", ["minimal", "queue"])
def test_nothing_but_two_functions_crosses_the_border(name: str, plugins: Path) -> None:
    table = output_of("nm", "-D", "--defined-only", plugins / f"{name}.so")
    functions = {line.split()[-1] for line in table.splitlines() if " T " in line}
    assert {f for f in functions if f.startswith("dvt_")} == {"dvt_probe_v1", "dvt_backend_v1"}
    missing = output_of("nm", "-D", "--undefined-only", plugins / f"{name}.so")
    assert "dovetail" not in missing and "dvt_" not in missing


def test_plugins_in_both_languages_run(run: Callable[[str], str]) -> None:
    out = run("""
for name in "minimal", "queue":
    dovetail.load_backend(path(name))
    x = dovetail.asarray([1.0, 2.0, 3.5], device=name)
    print(name, [float(v) for v in (x + x).to_device("minimal")])
""")
    assert out.splitlines() == ["minimal [2.0, 4.0, 7.0]", "queue [2.0, 4.0, 7.0]"]


def test_another_draft_is_refused_with_the_cure(run: Callable[[str], str]) -> None:
    out = run("""
try:
    dovetail.load_backend(path("drafty"))
except RuntimeError as error:
    print(error)
dovetail.load_backend(path("minimal"))
print(dovetail.device("minimal"))
""")
    assert "built for draft 7 of the device protocol, this dovetail speaks its final version 1; install " in out
    assert out.splitlines()[-1] == "minimal:0"


def test_a_bad_index_is_found_later_and_names_its_op(run: Callable[[str], str]) -> None:
    out = run("""
dovetail.load_backend(path("queue"))
x = dovetail.asarray([1.0, 2.0, 3.0], device="queue")
y = dovetail.take(x, dovetail.asarray([0, 7], device="queue"))
try:
    x.device.synchronize()
except IndexError as error:
    print(error)
x.device.synchronize()
print(float((x + x)[2]))
""")
    assert out.splitlines() == ["[take] index 7 is out of range: the axis has 3 elements", "6.0"]
