"""templates.py FOLDER: what `dovetail new` copies, made from projects of this repository that are built and tested.

Each becomes a copier template: its names are replaced by fields in file names and contents, and its pyproject.toml
by that of a project which stands alone.
"""

import re
import shutil
import sys
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
_exclude: [copier.yml]
name: { type: str, help: "the backend's or pack's name, as in Python: acme" }
vendor: { type: str, help: "who makes it" }
device: { type: str, default: cpu, help: "of a kernel pack: the backend that it is for" }
"""
MEMBERS = ("pyproject.toml", "CMakeLists.txt", "README.md", "src", "python", "tests", ".github", ".gitignore")


class Template(NamedTuple):
    sources: tuple[str, ...]  # folders of this repository; a later one's files go over an earlier one's
    names: dict[str, str]  # words there -> fields
    without: tuple[str, ...] = ()


BACKEND = {"sim": "name", "SIM": "name | upper"}
PACK = {
    "acme_fast": "name",
    "acme-fast": "name | replace('_', '-')",
    "cpu": "device",
}
TEMPLATES = {
    "simulated": Template(("backends/template", "core/templates/project", "core/templates/device"), BACKEND),
    "pack": Template(("examples/kernel_pack", "core/templates/project", "core/templates/pack"), PACK),
}

VERSION_OF_REPOSITORY = re.compile(r"\n\[tool\.scikit-build\.metadata\.version\]\n(.+\n)+")


def alone(pyproject: str) -> str:
    """A version of its own, and the headers from the installed dovetail."""
    text = VERSION_OF_REPOSITORY.sub("", pyproject).replace('dynamic = ["version"]', 'version = "0.1.0"')
    if '"dovetail>=' not in text:
        text = text.replace("requires = [", 'requires = ["dovetail>=0.1", ', 1)
        text = text.replace("classifiers = [", 'dependencies = ["dovetail>=0.1"]\nclassifiers = [', 1)
    return text


def with_fields(text: str, names: dict[str, str]) -> str:
    for word, field in names.items():
        text = re.sub(rf"(?<![A-Za-z]){word}(?![A-Za-z])", f"@{{{field}}}@", text)
    return text


def make(template: Template, at: Path) -> None:
    for source in template.sources:
        for path in sorted((ROOT / source).rglob("*")):
            inside = path.relative_to(ROOT / source)
            known = inside.parts[0] in MEMBERS and not {"__pycache__", "build"} & {*inside.parts}
            if not path.is_file() or not known or inside.as_posix() in template.without:
                continue
            text = path.read_text()
            if inside.name == "pyproject.toml":
                text = alone(text)
            to = at / with_fields(inside.as_posix(), template.names)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(with_fields(text, template.names))
    (at / "copier.yml").write_text(COPIER)


def main() -> None:
    folder = Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    for kind, template in TEMPLATES.items():
        if (ROOT / template.sources[0]).is_dir():
            make(template, folder / kind)


if __name__ == "__main__":
    main()
