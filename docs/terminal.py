"""Runs what the README shows and saves the terminal as docs/images/terminal.svg: python docs/terminal.py"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
WIDTH = 100
COMMANDS = [
    ("dovetail devices", ["-m", "dovetail", "devices"]),
    ("python examples/minilm", ["examples/minilm", "--seconds", "2"]),
    ("dovetail conform --device cpu --quick", ["-m", "dovetail", "conform", "--device", "cpu", "--quick"]),
]


def in_a_terminal(arguments: list[str]) -> str:
    """What a Python program prints, with its colours."""
    parent, child = pty.openpty()
    size = {"COLUMNS": str(WIDTH), "LINES": "40", "TERM": "xterm-256color"}
    run = subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, stdout=child, stderr=child, env=os.environ | size
    )
    os.close(child)
    printed = b""
    try:
        while chunk := os.read(parent, 65536):
            printed += chunk
    except OSError:  # how Linux reports that the other side is closed
        pass
    if run.wait():
        sys.exit(f"{arguments} failed:\n{printed.decode()}")
    return printed.decode()


def settled(printed: str) -> str:
    """The lines as they stand at the end, of a program that draws over whole lines."""
    lines = [""]
    for part in re.split(r"(\r|\n|\x1b\[1A|\x1b\[2K|\x1b\[\?25[lh])", printed):
        if part == "\n":
            lines.append("")
        elif part == "\x1b[1A" and len(lines) > 1:
            lines.pop()
        elif part in ("\x1b[2K", "\x1b[1A"):
            lines[-1] = ""
        elif part not in ("", "\r") and not part.startswith("\x1b[?25"):
            lines[-1] += part
    return "\n".join(lines).rstrip()


def main() -> None:
    console = Console(record=True, width=WIDTH, force_terminal=True, file=open(os.devnull, "w"))  # noqa: SIM115
    for shown, arguments in COMMANDS:
        console.print(Text(f"$ {shown}", style="bold"))
        console.print(Text.from_ansi(settled(in_a_terminal(arguments))))
        console.print()
    (ROOT / "docs" / "images").mkdir(exist_ok=True)
    console.save_svg(str(ROOT / "docs" / "images" / "terminal.svg"), title="dovetail")


if __name__ == "__main__":
    main()
