"""Mutation check: is a wrong CPU kernel found by the cases of its own ops?

    make mutation                       60 mutants, two per file of backends/cpu/src/kernels
    python tests/meta/mutate_cpu_kernels.py --build DIR [--count 60] [--seed 0] [--level avx2]

One line of a kernel, or of a file of src/simd that it rests on, is changed in one place; that object is
compiled for one instruction set level and linked with those of a whole build, and `dovetail conform --level L2`
runs the cases of the ops that the kernel serves (if the object is one that several kernels call, those of all of
them), and the one of its rows. A mutant is killed when a case does not
pass; one that compiles to the very same object is no mutant. Those that survive are printed; mutants_alive.toml
lists those that change nothing which the suite requires of a device, with reasons.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "backends/cpu/src"
ARGUED = Path(__file__).with_name("mutants_alive.toml")
PATIENCE = 420.0  # seconds for the cases of one mutant; the suite itself finds hangs

# Each change: the old text and the new one. Only between spaces or in calls, which spares templates and pointers.
SWAPS = [
    (r" \+ ", " - "), (r" - ", " + "), (r" \* ", " + "), (r" / ", " * "), (r" % ", " / "),
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "),
    (r" && ", " || "), (r" \|\| ", " && "), (r" & ", " | "), (r" \| ", " & "), (r" << ", " >> "), (r" >> ", " << "),
    (r" \+= ", " -= "), (r" -= ", " += "), (r" \*= ", " += "), (r" \|= ", " &= "), (r" &= ", " |= "),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r"\bmin\(", "max("), (r"\bmax\(", "min("),
    (r"\b0\b", "1"), (r"\b1\b", "2"), (r"\b2\b", "1"), (r"!(?=[a-z(])", ""), (r"\bif \(", "if (!"),
]  # fmt: skip
# Not behaviour: declarations of types, and the division of work.
PASSED_OVER = re.compile(
    r"^\s*(//|#|template|using|namespace|struct|static_assert|enum|typedef|inline constexpr Elementwise|\}|$)|"
    r'"dvt\.|'
    r"\b(grain|threads?|workers?|chunk|block|tile|prefetch|reserve|noexcept|alignas|assume|likely|step_bytes)\w*\b|"
    r"\bwork\b"
)


class Mutant(NamedTuple):
    kernel: str  # the file of src/kernels whose ops are run
    file: str  # the changed one, relative to src
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: `{self.before.strip()}` -> `{self.after.strip()}`"


class Fate(NamedTuple):
    mutant: Mutant
    killed: bool
    by: str  # the case, or the crash
    seconds: float


# ---- making them
# --------------------------------------------------------------------------------------------------


def foundations(kernel: Path) -> list[Path]:
    """The headers of src/simd that a kernel includes, recursively; of those that it names itself also the .cpp."""
    found: dict[Path, None] = {}
    todo = [kernel]
    while todo:
        file = todo.pop()
        for name in re.findall(r'#include "(simd/\w+\.hpp)"', file.read_text()):
            header = SOURCES / name
            for path in (header, header.with_suffix(".cpp")) if file == kernel else (header,):
                if path.exists() and path not in found:
                    found[path] = None
                    todo.append(path)
    return list(found)


def changes(path: Path) -> list[tuple[int, str, str]]:
    """Every single change of every line: (line number, before, after)."""
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        code = line.split("//")[0]
        if PASSED_OVER.search(code):
            continue
        for pattern, replacement in SWAPS:
            for match in re.finditer(pattern, code):
                changed = code[: match.start()] + replacement + code[match.end() :]
                if pattern == r"\bif \(":  # negates the whole condition
                    changed = re.sub(r"if \(!(.*)\)( \{| \S.*;|)$", r"if (!(\1))\2", changed.rstrip())
                found.append((number, line, changed))
    return found


def draw(seed: int) -> dict[str, Iterator[Mutant]]:
    """An endless choice of mutants per kernel: half from the kernel's own file, half from its dependencies."""

    def of(kernel: Path) -> Iterator[Mutant]:
        rng = random.Random(f"{seed} {kernel.name}")
        own, below = changes(kernel), {path: changes(path) for path in foundations(kernel)}
        below = {path: found for path, found in below.items() if found}
        drawn = set()
        for _ in range(1000):
            path, found = (
                (kernel, own) if own and (not below or rng.random() < 0.5) else rng.choice([*below.items()])
            )
            mutant = Mutant(kernel.stem, str(path.relative_to(SOURCES)), *rng.choice(found))
            if mutant not in drawn:
                drawn.add(mutant)
                yield mutant

    return {kernel.stem: of(kernel) for kernel in sorted((SOURCES / "kernels").glob("*.cpp"))}


# ---- building and running them ----------------------------------------------------------------------------------


class Builder:
    """A finished build of the backend with Ninja, whose commands are reused with one file changed."""

    def __init__(self, build: Path, level: str):
        self.build, self.level = build, level
        commands = json.loads((build / "compile_commands.json").read_text())
        words = [shlex.split(c["command"]) for c in commands]
        self.compile = {(Path(w[-1]).name, w[w.index("-o") + 1]): w for w in words}
        ninja = subprocess.run(
            ["ninja", "-C", build, "-t", "commands", "libdovetail_cpu.so"],
            capture_output=True,
            text=True,
            check=True,
        )
        self.link = ninja.stdout.strip().splitlines()[-1].replace("/./", "/")

    def library(self, mutant: Mutant, folder: Path) -> Path | None:
        """The backend with one change; None if it does not compile, or compiles to the same object."""
        unit = f"{mutant.kernel}.cpp" if mutant.file.endswith(".hpp") else Path(mutant.file).name
        ((output, command),) = (
            (o, c) for (name, o), c in self.compile.items() if name == unit and f"_{self.level}.dir" in o
        )
        lines = (SOURCES / mutant.file).read_text().splitlines()
        before = self._object(command, mutant.file, lines, folder / "before")
        lines[mutant.line - 1] = mutant.after
        after = self._object(command, mutant.file, lines, folder / "after")
        if after is None or (before and before.read_bytes() == after.read_bytes()):
            return None
        # First in the link, so that inline functions of a shared header are the changed ones.
        library = folder / "libdovetail_cpu.so"
        link = self.link.replace(output, "").replace("-o libdovetail_cpu.so", f"-o {library} {after}")
        subprocess.run(link, shell=True, cwd=self.build, check=True, capture_output=True)
        return library

    def _object(self, command: list[str], file: str, lines: list[str], folder: Path) -> Path | None:
        """The output of a compile command when one of its files has these lines instead."""
        overlay = folder / "src" / file
        overlay.parent.mkdir(parents=True)
        overlay.write_text("\n".join(lines) + "\n")
        words = list(command)
        words[words.index("-o") + 1] = str(folder / "object.o")
        if file.endswith(".cpp"):
            words[-1] = str(overlay)
        words[1:1] = ["-w", f"-I{folder / 'src'}", f"-iquote{(SOURCES / file).parent}"]
        words += [f"-ffile-prefix-map={folder}=", "-fno-ident"]
        done = subprocess.run(words, cwd=self.build, capture_output=True)
        return None if done.returncode else folder / "object.o"


def ops_of(mutant: Mutant) -> list[str]:
    """The ops of the mutant's kernel; of a .cpp of src/simd those of every kernel that includes its header."""
    kernels = [SOURCES / "kernels" / f"{mutant.kernel}.cpp"]
    if re.fullmatch(r"simd/\w+\.cpp", mutant.file):
        header = (SOURCES / mutant.file).with_suffix(".hpp")
        kernels += [k for k in (SOURCES / "kernels").glob("*.cpp") if header in foundations(k)]
    return sorted({op for k in kernels for op in re.findall(r'"dvt\.(\w+)"', k.read_text())})


def conform(library: Path, mutant: Mutant, level: str) -> str:
    """The first case that does not pass, or "" if all do. It stops there."""
    command = [
        sys.executable,
        "-c",
        "from dovetail.cli import main; main()",
        "conform",
        "--device",
        "cpu",
        "--level",
        "L2",
    ]
    # A missing row goes unnoticed if the op has a decomposition: the table itself is checked too.
    chosen = ["-k", " or ".join([*ops_of(mutant), "device.identity[kernel_table?"]), "--timeout", "20"]
    environment = os.environ | {
        "DOVETAIL_BACKEND_AUTOLOAD": "0", "DOVETAIL_BACKEND_PATH": str(library), "DOVETAIL_CPU_CAPABILITY": level,
    }  # fmt: skip
    begin, printed = time.monotonic(), []
    run = subprocess.Popen(
        [*command, *chosen],
        cwd=library.parent,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert run.stdout
    with run:
        for line in run.stdout:
            printed.append(line)
            if line.startswith(("FAIL", "CRASH", "TIMEOUT", "FALLBACK")) or time.monotonic() - begin > PATIENCE:
                run.terminate()
                with suppress(subprocess.TimeoutExpired):
                    run.wait(20)
                return line.strip()
    if run.returncode == 0:
        return ""
    return printed[-1].strip() if printed else f"exit code {run.returncode}"


# ---- the check --------------------------------------------------------------------------------------------------


def check(count: int, seed: int, build: Path, level: str) -> list[Fate]:
    builder, choices = Builder(build, level), draw(seed)
    fates: list[Fate] = []
    while len(fates) < count:
        for mutants in choices.values():
            if len(fates) >= count:
                break
            for mutant in mutants:
                with tempfile.TemporaryDirectory() as folder:
                    library = builder.library(mutant, Path(folder))
                    if library is None:
                        continue  # does not compile: the next one
                    begin = time.monotonic()
                    case = conform(library, mutant, level)
                fates.append(Fate(mutant, bool(case), case, time.monotonic() - begin))
                print(f"{len(fates):3} {'killed' if case else 'ALIVE ':6} {mutant}   {case}", flush=True)
                break
    return fates


def argued() -> dict[tuple[str, str, str], str]:
    """Survivors that change nothing observable, with the reason."""
    listed = tomllib.loads(ARGUED.read_text()).get("mutant", []) if ARGUED.exists() else []
    return {(m["file"], m["before"], m["after"]): m["reason"] for m in listed}


def conclude(fates: list[Fate]) -> int:
    reasons = argued()
    alive = [f.mutant for f in fates if not f.killed]
    equivalent = [m for m in alive if (m.file, m.before.strip(), m.after.strip()) in reasons]
    counted = len(fates) - len(equivalent)
    killed = len(fates) - len(alive)
    print(f"\n{killed} of {counted} that are not equivalent killed: {killed / max(1, counted):.1%}; "
          f"{len(equivalent)} of {len(fates)} argued equivalent")  # fmt: skip
    for mutant in alive:
        reason = reasons.get((mutant.file, mutant.before.strip(), mutant.after.strip()), "NOT ARGUED")
        print(f"alive: {mutant}\n       {reason}")
    print("per kernel:", dict(Counter(f.mutant.kernel for f in fates if f.killed)))
    return 0 if killed >= 0.95 * counted and len(equivalent) <= 0.1 * len(fates) else 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True, help="a finished Ninja build of backends/cpu")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--level", choices=["default", "avx2", "avx512"], default="avx2")
    given = parser.parse_args()
    if not shutil.which("ninja"):
        parser.error("needs ninja")
    print(f"seed {given.seed}, level {given.level}")
    sys.exit(conclude(check(given.count, given.seed, given.build.resolve(), given.level)))


if __name__ == "__main__":
    main()
