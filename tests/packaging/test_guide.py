"""docs/first_device.md, verbatim, in an empty environment: files are written, commands run in one shell.

A ```console block has commands, each behind "$ ", and below each what it prints: "..." in a line stands for any
text, a line of it alone for any lines. A code block below a line that ends with `a path`: is that file.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BLOCK = re.compile(r"^(`{3,}|:{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^\1\n", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^(?!From |All of ).*`([^`\n]+)`:\n\n\Z", re.MULTILINE)
MARK = "@@ guide @@"


def steps(text: str) -> list[tuple[str, str, str]]:
    """("file", path, content) and ("run", command, expected output), in order."""
    found = []
    for block in BLOCK.finditer(text):
        info, body = block["info"].strip(), block["body"]
        if info == "console":
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                found.append(("run", command, output))
        elif above := FILE.search(text[: block.start()]):
            found.append(("file", above[1], body))
    return found


def fits(output: str, expected: str) -> bool:
    """Collapse spaces within lines and strip them at the ends."""

    def pattern(line: str) -> str:
        words = [".*".join(map(re.escape, word.split("..."))) for word in line.split()]
        return r" +".join(words) if words else ""

    lines = expected.strip("\n").split("\n")
    whole = "".join(r"(?:.*\n)*?" if line.strip() == "..." else rf" *{pattern(line)} *\n" for line in lines)
    text = output.strip("\n") + "\n" if output.strip() else ""
    return re.fullmatch(whole if expected.strip() else "", text) is not None


def run(guide: Path, folder: Path, environment: dict[str, str]) -> None:
    """Fail at the first command that fails, or whose output differs from the guide."""
    script = ["exec 2>&1"]
    todo = steps(guide.read_text())
    assert todo, f"{guide} has no step"
    for kind, what, content in todo:
        if kind == "file":
            script.append(f"cat > {what} <<'{MARK}'\n{content}{MARK}")
        else:
            script.append(f"{what}\necho '{MARK}' $?")
    ended = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=folder, env=os.environ | environment, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    outputs = re.split(rf"^{MARK} (\d+)\n", ended.stdout, flags=re.MULTILINE)
    commands = [(command, expected) for kind, command, expected in todo if kind == "run"]
    for i, (command, expected) in enumerate(commands):
        assert 2 * i + 1 < len(outputs), f"$ {command}\nnever ended: {ended.stdout[-2000:]}"
        output, status = outputs[2 * i], outputs[2 * i + 1]
        assert status == "0", f"$ {command}\nexit code {status}:\n{output}"
        assert fits(output, expected), f"$ {command}\nprints\n{output}\nwhere {guide.name} has\n{expected}"


@pytest.mark.parametrize(
    ("output", "expected", "fit"),
    [
        ("a  b\n", "a b", True),
        ("a c\n", "a b", False),
        ("", "", True),
        ("x\n", "", False),
        ("one\ntwo\nthree\n", "...\nthree", True),
        ("one\ntwo\nthree\n", "...\ntwo", False),
        ("one\ntwo\nthree\n", "...\ntwo\n...", True),
        ("25 files. Now:\n", "... files. Now:", True),
        ("tanh  b  N  x\n", "tanh ... N ...", True),
    ],
)
def test_the_comparison_itself(output, expected, fit):
    assert fits(output, expected) == fit


def test_cases_that_the_guides_name(repository):
    """Each `--case ID` is one of the suite's."""
    from dovetail_conformance.cases import all_cases

    guides = {path.name: path.read_text() for path in Path(repository, "docs").glob("*.md")}
    named = {(name, case) for name, text in guides.items() for case in re.findall(r"--case '([^']+)'", text)}
    assert named
    assert not {(name, case) for name, case in named if case not in all_cases()}


def test_first_device(repository, core_wheel, tmp_path):
    ours = ("DOVETAIL_", "PYTHON", "VIRTUAL_ENV")
    environment = {name: "" for name in os.environ if name.startswith(ours)} | {
        "PIP_FIND_LINKS": str(core_wheel.parent),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_QUIET": "2",
        "COLUMNS": "120",
        "PATH": os.pathsep.join([os.path.dirname(sys._base_executable), "/usr/local/bin", "/usr/bin", "/bin"]),
    }
    run(Path(repository, "docs/first_device.md"), tmp_path, environment)
