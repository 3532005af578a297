"""templates.py FOLDER: what `dovetail new` copies, made from projects of this repository that are built and tested.

Each becomes a copier template: its names are replaced by fields in file names and contents, and its pyproject.toml
by that of a project which stands alone.
"""

import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

# Delimiters that no file of a backend contains; every file is rendered, and keeps its last newline.
COPIER = """\
_templates_suffix: ""
_envops:
  variable_start_string: "@{"
  variable_end_string: "}@"
  block_start_string: "@%"
  block_end_string: "%@"
  comment_start_string: "@#"
  comment_end_string: "#@"
  keep_trailing_newline: true
_exclude: [copier.yml, __pycache__, "@% if not compiler %@/src/compile*@% endif %@"] # pip compiles what it installs
name: { type: str, help: "the backend's or pack's name, as in Python: acme" }
vendor: { type: str, help: "who makes it" }
device: { type: str, default: cpu, help: "of a kernel pack: the backend that it is for" }
compiler: { type: bool, default: false, help: "of a device: with a compiler of groups of ops" }
"""
MEMBERS = {
    "pyproject.toml", "CMakeLists.txt", "README.md", "waivers.toml",
    ".gitignore", ".github", "src", "python", "tests",
}  # fmt: skip


class Template(NamedTuple):
    sources: tuple[str, ...]  # folders, or files as "file -> place"; what comes later goes over what was there
    names: dict[str, str]  # words of the first source -> their replacements
    without: tuple[str, ...] = ()  # of the first source


TEMPLATES = {
    "simulated": Template(
        ("backends/template", "core/templates/project", "core/templates/device"),
        {
            "It is also the device to copy when you write your own.": (
                "It is where your device begins: your hardware replaces the files in bold below."
            ),
            "pip install dovetail-runtime dovetail-sim": "pip install .",
            "`CMakeLists.txt` and the folder": "`CMakeLists.txt`, `.github/workflows/test.yml` and the folder",
            "Simulated accelerator": "@{vendor}@, simulated",
            "sim": "@{name}@",
            "SIM": "@{name | upper}@",
            "[Dovetail](../../README.md)": "Dovetail",
        },
    ),
    "host-memory": Template(
        ("backends/template", "core/templates/project", "core/templates/device", "core/templates/host-memory"),
        {
            "A simulated accelerator for Dovetail: memory of its own, queues, faults on demand": (
                "The device @{name}@ of @{vendor}@ for Dovetail"
            ),
            "sim": "@{name}@",
        },
        ("src/driver.cpp", "src/driver.hpp", "src/settings.cpp", "tests/simulator/"),
    ),
    "python": Template(
        (
            "examples/numpy_device.py -> python/dovetail_@{name}@/device.py",
            "backends/template/tests/test_device.py -> tests/test_device.py",
            "core/templates/project",
            "core/templates/device",
            "core/templates/python",
        ),
        {
            "DOVETAIL_BACKEND_PATH=$PWD/examples/numpy_device.py dovetail conform --device numpy --quick": (
                "dovetail conform --device @{name}@ --quick"
            ),
            "NumpyDevice": "Device",
            'name = "numpy"': 'name = "@{name}@"',
            "version = np.__version__": 'version = "0.0.1"',
            'product = "NumPy"': 'product = "@{vendor}@"',
            'kind = "cpu"': 'kind = "other"',
        },
    ),
    "pack": Template(
        ("examples/kernel_pack", "core/templates/project", "core/templates/pack"),
        {"acme_fast": "@{name}@", "acme-fast": "@{name | replace('_', '-')}@", "cpu": "@{device}@"},
    ),
}

VERSION_OF_REPOSITORY = re.compile(r"\n\[tool\.scikit-build\.metadata\.version\]\n(.+\n)+")


IN_TREE = re.compile(r"include\(in_tree\.cmake OPTIONAL\).*\nif\(NOT DEFINED hints\)\n((?:  .*\n)+)endif\(\)\n")


def without_tree(cmake: str) -> str:
    """Always use the headers of the installed dovetail."""
    return IN_TREE.sub(lambda found: textwrap.dedent(found[1]), cmake)


# Where other files mention src/compile.*, which a project has only if it is asked for.
OF_COMPILER = re.compile(r"^.*compile\.[ch]pp.*\n", re.MULTILINE)


def with_condition(text: str) -> str:
    return OF_COMPILER.sub(r"@% if compiler %@\g<0>@% endif %@", text)


def alone(pyproject: str) -> str:
    """Set a version of its own, and the headers from the installed Dovetail: the release that it will run with."""
    text = VERSION_OF_REPOSITORY.sub("", pyproject).replace('dynamic = ["version"]', 'version = "0.0.1"')
    required = re.search(r'^dependencies = \[("dovetail-runtime[^"]+")', text, re.MULTILINE)[1]
    build, rest = text.split("\n\n", 1)
    if "scikit_build_core" in build and required not in build:
        build = build.replace("requires = [", f"requires = [{required}, ", 1)
    return f"{build}\n\n{rest}"


def with_fields(text: str, names: dict[str, str]) -> str:
    for word, field in names.items():
        text = re.sub(rf"(?<![A-Za-z]){re.escape(word)}(?![A-Za-z])", lambda _, field=field: field, text)
    return text


def files(source: str) -> Iterator[tuple[Path, str]]:
    """Each file with its path in the project."""
    file, _, place = source.partition(" -> ")
    if place:
        yield ROOT / file, place
        return
    for path in sorted((ROOT / source).rglob("*")):
        inside = path.relative_to(ROOT / source)
        if path.is_file() and inside.parts[0] in MEMBERS and not {"__pycache__", "build"} & {*inside.parts}:
            yield path, inside.as_posix()


def make(template: Template, at: Path) -> None:
    for number, source in enumerate(template.sources):
        names = {} if number else template.names  # the later sources already have the fields
        for path, place in files(source):
            if not number and place.startswith(template.without):
                continue
            text = path.read_text()
            if path.name == "pyproject.toml":
                text = alone(text)
            elif path.name == "CMakeLists.txt":
                text = without_tree(text)
            if not path.name.startswith("compile"):
                text = with_condition(text)
            to = at / with_fields(place, names)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(with_fields(text, names))
    (at / "copier.yml").write_text(COPIER)


def main() -> None:
    folder = Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    for kind, template in TEMPLATES.items():
        make(template, folder / kind)


if __name__ == "__main__":
    main()
