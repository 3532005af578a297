"""The instructions that a program for aarch64 ran on an emulated processor, with counts, from the emulator's log.

The program prints its /proc/self/maps when its work is done. `folder` is the one that sysroot.sh made, with the
wheels for aarch64 in its folder `site`.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Variables that would change the choice of kernels.
CHOICES = ("DOVETAIL_CPU_CAPABILITY", "DOVETAIL_CPU_KERNELS", "OPENBLAS_CORETYPE", "ONEDNN_MAX_CPU_ISA")


@dataclass(frozen=True)
class Mapped:
    """Executable memory of the program: a library's by its file's name, or generated code: ""."""

    start: int
    end: int
    library: str


@dataclass
class Block:
    """Consecutive instructions, as the emulator translated them."""

    address: int
    words: list[int]


def run(folder: Path, model: str, command: Iterable[object], log: int | None = None, **env: object) -> list[Mapped]:
    """Runs the program, and returns its memory map. log: a file descriptor that it inherits."""
    inherited = {k: v for k, v in os.environ.items() if k not in CHOICES}
    settings = {"QEMU_CPU": model, "PYTHONPATH": Path(folder).resolve() / "site", **env}
    done = subprocess.run(
        ["sh", HERE / "run.sh", folder, *map(str, command)],
        env=inherited | {k: str(v) for k, v in settings.items()},
        pass_fds=() if log is None else (log,),
        capture_output=True,
        text=True,
    )
    if done.returncode:  # of SIGILL, on an instruction that the processor lacks
        raise RuntimeError(f"{model}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    line = re.compile(r"^(\w+)-(\w+) ..x. \S+ \S+ \S+ *(.*)$", re.MULTILINE)
    return [Mapped(int(a, 16), int(b, 16), Path(name).name) for a, b, name in line.findall(done.stdout)]


def translated(folder: Path, model: str, code: str, *arguments: object, **env: object) -> dict[str, set[str]]:
    """The instructions that each library ran in some Python code, as "bfmmla v0.4s, v1.8h, v2.8h"."""
    python = next(Path(folder, "sysroot/usr/bin").glob("python3.*[0-9]"))
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch, "log")
        maps = run(folder, model, [python, "-c", code, *arguments], QEMU_LOG="in_asm", QEMU_LOG_FILENAME=log, **env)
        words: dict[str, set[int]] = {m.library: set() for m in maps}
        for address, word in re.findall(r"^0x(\w+): +([0-9a-f]{8}) ", log.read_text(), re.MULTILINE):
            if (library := _library(maps, int(address, 16))) is not None:
                words[library].add(int(word, 16))
    return {library: set(disassemble(found).values()) for library, found in words.items()}


def executed(folder: Path, model: str, command: Iterable[object]) -> list[dict[str, Counter[str]]]:
    """How often each library ran each instruction, in each span between two calls of the program's marker()."""
    end, start = os.pipe()  # the log may be larger than the memory

    def read() -> tuple[list[Block], list[Counter[int]]]:
        with os.fdopen(end) as log:  # closed if this fails, or the program would wait for ever
            return count_blocks(log)

    with ThreadPoolExecutor() as reader:
        counted = reader.submit(read)
        try:  # nochain: every block that runs has a line in the log
            settings = {"QEMU_LOG": "in_asm,exec,nochain", "QEMU_LOG_FILENAME": f"/dev/fd/{start}"}
            maps = run(folder, model, command, start, **settings)
        finally:
            os.close(start)
        blocks, spans = counted.result()
    names = disassemble({word for block in blocks for word in block.words})
    result = []
    for span in spans:
        counts: dict[str, Counter[str]] = {}
        for i, times in span.items():
            counter = counts.setdefault(_library(maps, blocks[i].address) or "", Counter())
            for word in blocks[i].words:
                counter[names[word]] += times
        result.append(counts)
    return result


def count_blocks(log: Iterable[str]) -> tuple[list[Block], list[Counter[int]]]:
    """All blocks, and how often each ran, by its number, in each span."""
    blocks: list[Block] = []
    last: dict[int, int] = {}  # translated at an address, which generated code may reuse
    spans: list[Counter[int]] = []
    inside, beginning = False, True
    for line in log:
        if line.startswith("Trace"):  # Trace 0: 0x7f386c6f8080 [00001111/00007f387bf622d0/00000001/00000200] symbol
            if line.endswith(" marker\n"):
                inside = not inside
                if inside:
                    spans.append(Counter())
            elif inside:
                spans[-1][last[int(line.split("/")[1], 16)]] += 1
        elif line.startswith("IN:"):
            beginning = True
        elif line.startswith("0x"):  # 0x7f4709bc1fc4:  6f00e400  movi     v0.2d, #0
            address, word = line.split()[:2]
            if beginning:
                last[int(address[:-1], 16)] = len(blocks)
                blocks.append(Block(int(address[:-1], 16), []))
                beginning = False
            blocks[-1].words.append(int(word, 16))
    if inside or not spans:
        raise RuntimeError("the log ends before the program's last call of marker()")
    return blocks, spans


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
