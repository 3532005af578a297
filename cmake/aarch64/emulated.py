"""Which instructions a program for aarch64 ran on an emulated processor, from the emulator's log.

The program is a piece of Python that prints its /proc/self/maps when its work is done. `folder` is the one that
sysroot.sh made, with the wheels for aarch64 in its folder `site`.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
# What would change which kernels are chosen.
CHOICES = ("DOVETAIL_CPU_CAPABILITY", "DOVETAIL_CPU_KERNELS", "OPENBLAS_CORETYPE", "ONEDNN_MAX_CPU_ISA")


@dataclass(frozen=True)
class Mapped:
    """Executable memory of the program: a library's by its file's name, or code made at run time: ""."""

    start: int
    end: int
    library: str


def run(folder: Path, model: str, code: str, *arguments: object, **env: object) -> list[Mapped]:
    """Runs it, and says what was mapped where."""
    python = next(Path(folder, "sysroot/usr/bin").glob("python3.*[0-9]"))
    inherited = {k: v for k, v in os.environ.items() if k not in CHOICES}
    settings = {"QEMU_CPU": model, "PYTHONPATH": Path(folder).resolve() / "site", **env}
    done = subprocess.run(
        ["sh", HERE / "run.sh", folder, python, "-c", code, *map(str, arguments)],
        env=inherited | {k: str(v) for k, v in settings.items()},
        capture_output=True,
        text=True,
    )
    if done.returncode:  # of SIGILL, where an instruction is more than the processor has
        raise RuntimeError(f"{model}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    line = re.compile(r"^(\w+)-(\w+) ..x. \S+ \S+ \S+ *(.*)$", re.MULTILINE)
    return [Mapped(int(a, 16), int(b, 16), Path(name).name) for a, b, name in line.findall(done.stdout)]


def translated(folder: Path, model: str, code: str, *arguments: object, **env: object) -> dict[str, set[str]]:
    """The instructions that each library ran, as "bfmmla v0.4s, v1.8h, v2.8h"."""
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch, "log")
        maps = run(folder, model, code, *arguments, QEMU_LOG="in_asm", QEMU_LOG_FILENAME=log, **env)
        words: dict[str, set[int]] = {m.library: set() for m in maps}
        for address, word in re.findall(r"^0x(\w+): +([0-9a-f]{8}) ", log.read_text(), re.MULTILINE):
            if (library := _library(maps, int(address, 16))) is not None:
                words[library].add(int(word, 16))
    return {library: set(disassemble(found).values()) for library, found in words.items()}


def _library(maps: Iterable[Mapped], address: int) -> str | None:
    return next((m.library for m in maps if m.start <= address < m.end), None)


def disassemble(words: Iterable[int]) -> dict[int, str]:
    """Each word as an instruction."""
    words = list(words)
    with tempfile.NamedTemporaryFile() as binary:
        binary.write(struct.pack(f"<{len(words)}I", *words))
        binary.flush()
        command = ["aarch64-linux-gnu-objdump", "-D", "-z", "-b", "binary", "-m", "aarch64", binary.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout if words else ""
    lines = [line.split("\t") for line in text.splitlines() if re.match(r" *[0-9a-f]+:\t", line)]
    return {word: " ".join(fields[2:4]) for word, fields in zip(words, lines, strict=True)}
