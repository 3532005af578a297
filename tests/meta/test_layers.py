"""The layers: which folder may depend on what. Each check reads the sources."""

import difflib
import itertools
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("core", "entry_points", "backends", "toolchains", "cmake", "tests", "examples", "benchmarks")
CODE = {".py", ".c", ".h", ".cpp", ".hpp", ".inc", ".cmake", ".txt", ".toml", ".pyi"}
SKIPPED = {"build", "__pycache__", "generated"}
CXX = {".c", ".h", ".cpp", ".hpp", ".inc", ".cu", ".cuh"}

# Whole words, in addition to the names of the folders of backends/.
DEVICES = {"cuda", "rocm", "hip", "xpu", "sycl", "metal", "mps", "neon", "avx512"}

# It names the languages of kernels, which are also names of backends.
LANGUAGES = ROOT / "core/include/dovetail/portable.hpp"


def files(*folders: str, suffixes: set[str] = CODE) -> list[Path]:
    return sorted(
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in suffixes and path.is_file() and not SKIPPED & set(path.relative_to(ROOT).parts)
    )


def lines(path: Path, pattern: str, flags: int = 0) -> list[str]:
    """The places of a pattern, as file:line: text."""
    found = re.compile(pattern, flags)
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if found.search(line)
    ]


def nothing(found: list[str]) -> None:
    assert not found, "\n" + "\n".join(found)


def test_the_core_names_no_backend():
    """The only exception is the cure `pip install dovetail-cpu`, printed if there is no device."""
    backends = {path.parent.name for path in (ROOT / "backends").glob("*/pyproject.toml")} - {"template"}
    words = "|".join(sorted((DEVICES | backends) - {"cpu"}))
    packages = "|".join(sorted(backends))
    pattern = rf"\b({words})\b|(?<!pip install )\b(lib)?dovetail[_-]({packages})\b"
    sources = [path for path in files("core", "entry_points") if path != LANGUAGES]
    nothing([hit for path in sources for hit in lines(path, pattern, re.IGNORECASE)])


# Headers that GPU backends share. A backend uses them by including this file in its CMakeLists.txt.
SHARED = ROOT / "backends/gpu/host.cmake"


def gpu_backends() -> list[Path]:
    builds = (ROOT / "backends").glob("*/CMakeLists.txt")
    return sorted(path.parent for path in builds if "../gpu/host.cmake" in path.read_text())


def included(path: Path) -> list[tuple[str, str]]:
    """Names of the headers that a file includes with quotation marks, each with its line."""
    return [(re.search(r'"(.*)"', hit).group(1), hit) for hit in lines(path, r'^\s*#\s*include\s+"')]


def is_public(name: str) -> bool:
    return (ROOT / "core/include" / name).is_file()


def test_a_backend_includes_only_the_public_headers():
    """Also its own and, if its build includes them, those of backends/gpu."""
    found = []
    for path in files("backends", suffixes=CXX):
        backend = ROOT / Path(*path.relative_to(ROOT).parts[:2])
        if backend == SHARED.parent:
            continue
        own = {header.name for header in backend.rglob("*") if header.suffix in CXX}
        shared = set()
        if backend in gpu_backends():
            shared = {header.relative_to(SHARED.parents[1]).as_posix() for header in SHARED.parent.rglob("*.hpp")}
        for name, hit in included(path):
            if not is_public(name) and name not in shared and (".." in name or Path(name).name not in own):
                found.append(hit)
        found += lines(path, r"^\s*#\s*include\s+<dovetail/(?!abi\.h>|backend\.hpp>)")
    nothing(found)


def test_shared_headers_include_what_every_gpu_backend_has():
    found = []
    for path in files("backends/gpu", suffixes=CXX):
        for name, hit in included(path):
            homes = [SHARED.parents[1] / name, *(backend / "src" / name for backend in gpu_backends())]
            everywhere = homes[0].is_file() if name.startswith("gpu/") else all(h.is_file() for h in homes[1:])
            if not is_public(name) and not everywhere:
                found.append(hit)
    assert len(gpu_backends()) > 1
    nothing(found)


def test_gpu_backends_do_not_repeat_their_host_code():
    """Code that two of them would repeat belongs in backends/gpu."""
    most = 12  # consecutive lines
    found = []
    for ours, theirs in itertools.combinations(gpu_backends(), 2):
        for path in files(str((ours / "src").relative_to(ROOT)), suffixes={".cpp", ".hpp"}):
            other = theirs / path.relative_to(ours)
            if "kernels" in path.parts or not other.is_file():
                continue
            a, b = ([line.strip() for line in p.read_text().splitlines() if line.strip()] for p in (path, other))
            run = difflib.SequenceMatcher(None, a, b, autojunk=False).find_longest_match()
            if run.size > most:
                found.append(f"{path.relative_to(ROOT)}: {run.size} lines from {a[run.a]!r} as in {theirs.name}")
    nothing(found)


def test_a_backend_does_not_import_the_core():
    """Its module returns the library's path, with or without dovetail installed."""
    modules = [path for path in files("backends", suffixes={".py"}) if "python" in path.parts]
    assert modules
    nothing([hit for path in modules for hit in lines(path, r"^\s*(import|from)\s+dovetail(\.|\s|$)")])


def test_a_toolchain_and_the_runtime_import_nothing_of_each_other():
    """A tool runs in a process of its own. Tests may know both."""
    workers = [path for path in files("toolchains", suffixes={".py"}) if "tests" not in path.parts]
    assert workers
    found = [hit for path in workers for hit in lines(path, r"^\s*(import|from)\s+dovetail(\.|\s|$)")]
    tools = "|".join(path.name for path in (ROOT / "toolchains").glob("*/*") if (path / "__init__.py").is_file())
    runtime = [path for path in files("core", "entry_points", "backends") if "tests" not in path.parts]
    imports = rf"^\s*(import|from)\s+({tools}|llvmlite)\b"
    nothing(found + [hit for path in runtime if path.suffix == ".py" for hit in lines(path, imports)])


def test_only_the_bindings_know_python():
    sources = [path for path in files("core", suffixes=CXX) if "bindings" not in path.parts]
    nothing(
        [hit for path in sources for hit in lines(path, r"#\s*include\s*[<\"](Python\.h|pybind11)|\bPyObject\b")]
    )


def test_only_platform_asks_for_the_operating_system():
    """In the public header, only the export macro."""
    pattern = r"#\s*(el)?if.*\b(_WIN32|_WIN64|_MSC_VER|__linux__|__APPLE__|__unix__|__FreeBSD__|__ANDROID__)\b"
    headers = r"#\s*include\s*<(unistd|dlfcn|sys/\w+|windows|pthread|sched|fcntl|signal|link|spawn|elf)\.h>"
    found = []
    for path in files("core", suffixes=CXX):
        if not {"platform", "templates"} & {*path.parts}:  # a project of an author may use it
            found += [hit for hit in lines(path, f"{pattern}|{headers}") if not hit.endswith("#if defined(_WIN32)")]
    nothing(found)


# The folders of core/src, from the bottom up: each with those whose headers it may include. text.hpp and error.hpp
# are for all of them.
LAYERS = {
    "types": set(),
    "platform": set(),
    "rules": {"types"},
    "graph": {"types", "rules", "platform"},
    "device": {"types", "platform"},
    "probe": {"device", "platform"},  # a program of its own, which shares the handshake
    "dispatch": {"types", "rules", "graph", "device", "platform"},
    "api": {"types", "rules", "graph", "device", "dispatch", "platform"},
    "bindings": {"types", "rules", "graph", "device", "dispatch", "api", "platform"},
}
FOR_ALL = {"text.hpp", "error.hpp", "few.hpp", "sha256.hpp", "spare.hpp"}
GENERATED = {"rules": {"ops.inc"}}
# Of core/include/dovetail: the names of a call's parts and the dtypes are for all, runtime.h is the layer api, and
# dispatch looks into calls as a backend does, and prints groups as a compiler does.
NUMBERS = {"abi.h", "dtypes.hpp", "float16.hpp", "floats.hpp"}
PUBLIC = {"api": {"runtime.h"}, "dispatch": {"backend.hpp", "codegen.hpp"}}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_includes_only_those_below_it(layer):
    allowed = LAYERS[layer] | {layer}
    found = []
    for path in files(f"core/src/{layer}", suffixes=CXX):
        found += lines(path, rf"#\s*include\s*<({'|'.join(LAYERS)}|dovetail)/")
        for name, hit in included(path):
            folder, _, rest = name.rpartition("/")
            if folder == "dovetail":
                fits = rest in NUMBERS | PUBLIC.get(layer, set())
            else:
                base = name.removeprefix("../")  # where the layer has a file of that name itself
                inside = folder in allowed or folder.startswith(f"{layer}/")
                fits = inside or base in FOR_ALL | GENERATED.get(layer, set())
            if not fits:
                found.append(hit)
    nothing(found)


def test_systems_know_nothing_of_each_other():
    """What both have is in platform's headers, for each function that they declare one definition a system."""
    systems = ("posix", "windows")
    found = [
        hit
        for ours, theirs in itertools.permutations(systems)
        for path in files(f"core/src/platform/{ours}", suffixes=CXX)
        for name, hit in included(path)
        if name.startswith(f"platform/{theirs}/")
    ]
    assert all(files(f"core/src/platform/{system}", suffixes=CXX) for system in systems)
    nothing(found)


def test_the_layers_have_no_circle():
    below = list(LAYERS)
    assert all(below.index(lower) < below.index(layer) for layer, of in LAYERS.items() for lower in of)


def test_what_is_for_all_layers_includes_the_lowest_at_most():
    sources = [ROOT / "core/src" / name for name in (*FOR_ALL, "text.cpp", "sha256.cpp")]
    nothing([hit for path in sources for name, hit in included(path) if name not in FOR_ALL])


def test_public_headers_include_each_other_alone():
    found = []
    for path in files("core/include", suffixes=CXX):
        found += [hit for name, hit in included(path) if not is_public(name) and not (path.parent / name).is_file()]
    nothing(found)


def test_every_folder_is_a_layer():
    folders = {path.name for path in (ROOT / "core/src").iterdir() if path.is_dir()}
    assert folders == LAYERS.keys()


def test_rules_name_nothing_of_a_device():
    """A declaration would do to name it, without an include."""
    sources = [path for folder in ("types", "rules") for path in files(f"core/src/{folder}", suffixes=CXX)]
    nothing(
        [hit for path in sources for hit in lines(path, r"^(?!\s*//).*\b(Device|Storage|Stream|Invocation|Plan)\b")]
    )


def test_dispatch_knows_no_op_by_name():
    """It may call ops. What is special about an op is a flag of its declaration."""
    pattern = r"spec\.name\s*[!=]=|[!=]=\s*\w*\.?spec\.name\b|&inv\.op\s*[!=]="
    nothing([hit for path in files("core/src/dispatch", suffixes=CXX) for hit in lines(path, pattern)])


def test_files_fit_in_the_head():
    long = {path: len(path.read_text().splitlines()) for path in files(*SOURCES, suffixes=CXX | {".py"})}
    nothing([f"{path.relative_to(ROOT)}: {count} lines" for path, count in long.items() if count > 600])


def test_the_version_has_one_home():
    version = re.escape((ROOT / "VERSION").read_text().strip())
    # Other packages' requirements (>=0.1.0) and longer numbers do not match.
    pattern = rf"(?<![\d.=<>~!]){version}(?![\d.])"
    found = [hit for path in files(*SOURCES) for hit in lines(path, pattern)]
    found += [
        hit
        for name in ("pyproject.toml", "setup.py", "CMakeLists.txt", "Makefile")
        for hit in lines(ROOT / name, pattern)
    ]
    nothing(found)


# Projects made by `dovetail new`, and the examples, have versions of their own.
WHEELS = ("backends", "toolchains", "tests")
PROJECTS = [ROOT / "pyproject.toml", *(path for path in files(*WHEELS) if path.name == "pyproject.toml")]


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: path.parent.name)
def test_every_wheel_reads_it(path):
    assert "version" in tomllib.loads(path.read_text())["project"].get("dynamic", [])


def test_nothing_is_left_for_later():
    sources = files("core", "entry_points", "backends", "toolchains", "cmake", "examples", "benchmarks")
    nothing([hit for path in sources for hit in lines(path, r"\b(TODO|FIXME|XXX|HACK)\b")])
