"""Instructions that kernels take on an Arm processor: python benchmarks/aarch64_instructions.py [FOLDER]

An emulator has no time, but it counts: every instruction between the beginning and the end of one call of the CPU
device (aarch64_instructions.cpp), on one thread and not the first of its kind, copies and conversions of operands
included. FOLDER, build/aarch64 by default, is what `make test-aarch64` makes. Each line comes from the emulator's
log of that call alone; the engine that it names is the one whose code did most of the multiplying. Minutes.

Instructions are not time: on neoverse-v1 those of SVE do twice the work of NEON's, and half as many run at once.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cmake/aarch64"))

import emulated

ROOT = Path(__file__).resolve().parents[1]
COMPILER = "aarch64-linux-gnu-g++"
LIBRARY = "site/dovetail_cpu/lib/libdovetail_cpu.so"
MODELS = ("neoverse-v1", "neoverse-n2")
ROWS, DEPTH, COLUMNS = 64, 256, 64
LOOPS = (
    ("astype", "float16", "float32"),
    ("add", "float32", "float32", "float32"),
    ("softmax", "float32", "float32"),
)
# By the instruction; scalar integer instructions compute addresses.
KINDS = {
    "multiply": r"fn?m(ul|l[as]|ad|s?ub|sb)|fmmla|bf(mmla|dot|ml[as]l)|([su]|us|su)(dot|mmla)|"
    r"[su]ml[as]l|[su]mull2? v|ml[as] |m(ul|ad|sb) [vz]",
    "load": r"ld",
    "store": r"st",
}
# Code without a file was generated.
ENGINES = {"libdovetail_cpu.so": "own", "libdovetail_openblas.so.0": "OpenBLAS", "": "oneDNN"}


def kind(instruction: str) -> str:
    return next((kind for kind, pattern in KINDS.items() if re.match(pattern, instruction)), "other")


def short(instruction: str) -> str:
    """Its name and the kind of its registers: "fmla v.4s" of NEON, "fmla z.s" of SVE."""
    return re.sub(r"^(\S+ [a-z]+)\d+(\.\w+)?.*", r"\1\2", instruction)


def multiplier(libraries: dict[str, Counter[str]]) -> tuple[str, str]:
    """The engine, and the instruction that it multiplies with."""
    counts: Counter[tuple[str, str]] = Counter()
    for library, executed in libraries.items():
        for instruction, times in executed.items():
            if kind(instruction) == "multiply":
                counts[ENGINES.get(library, library), short(instruction)] += times
    return counts.most_common(1)[0][0]


def print_line(model: str, what: str, libraries: dict[str, Counter[str]], units: int) -> None:
    """Instructions per thousand units, in all libraries."""
    total: Counter[str] = Counter()
    for executed in libraries.values():
        for instruction, times in executed.items():
            total[kind(instruction)] += times
    each = [total[kind] for kind in (*KINDS, "other")] + [total.total()]
    columns = "".join(f"{1000 * n / units:10.1f}" for n in each)
    print(f"{model:13}{what:42}{columns}{units / total.total():10.2f}", flush=True)


def print_heading(what: str, units: str) -> None:
    columns = "".join(f"{name:>10}" for name in (*KINDS, "other", "all"))
    print(f"\ninstructions for 1000 {units}, and {units} for each")
    print(f"{'processor':13}{what:42}{columns}{'for each':>10}")


def call(op: str, how: str, types: Sequence[str], shapes: Sequence[tuple[int, int]]) -> str:
    """The arguments of aarch64_instructions.cpp."""
    return ",".join([f"dvt.{op}", how, *(f"{dtype}:{m}x{n}" for dtype, (m, n) in zip(types, shapes, strict=True))])


def print_products(folder: Path, model: str, program: Path, library: Path, how: str, types: Sequence[str]) -> None:
    shapes = ((ROWS, DEPTH), (DEPTH, COLUMNS), (ROWS, COLUMNS))
    calls = [call("matmul", how, [dtype] * 3, shapes) for dtype in types]
    counted = emulated.executed(folder, model, [program, library, *calls])
    for dtype, libraries in zip(types, counted, strict=True):
        engine, instruction = multiplier(libraries)
        what = f"{dtype:9} {engine + ', packed' * (how == 'packed'):17} {instruction}"
        print_line(model, what, libraries, ROWS * COLUMNS * DEPTH)


def print_loops(folder: Path, model: str, program: Path, library: Path) -> None:
    calls = [call(op, "plain", types, [(ROWS, DEPTH)] * len(types)) for op, *types in LOOPS]
    counted = emulated.executed(folder, model, [program, library, *calls])
    for (op, *types), libraries in zip(LOOPS, counted, strict=True):
        print_line(model, f"{op:9} {types[0]} to {types[-1]}", libraries, ROWS * DEPTH)


def main(folder: Path) -> None:
    if not (folder / LIBRARY).exists() or not shutil.which(COMPILER):
        print(f"nothing counted: it needs {COMPILER} and {folder / LIBRARY}, see make test-aarch64")
        return
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch, "program")
        source = Path(__file__).with_suffix(".cpp")
        command = [COMPILER, "-std=c++20", "-O2", f"-I{ROOT}/core/include", source, "-o", program, "-ldl"]
        subprocess.run(command, check=True)
        own = Path(shutil.copy2(folder / LIBRARY, scratch))  # without such a library our own loops run
        print_heading(f"{ROWS} x {DEPTH} by {DEPTH} x {COLUMNS}", "multiply-adds")
        for model in MODELS:
            print_products(folder, model, program, own, "plain", ("float32", "bfloat16", "int8"))
            print_products(folder, model, program, folder / LIBRARY, "plain", ("float32", "bfloat16"))
            onednn = folder / "onednn"
            if (onednn / LIBRARY).exists():
                print_products(onednn, model, program, onednn / LIBRARY, "packed", ("float32", "bfloat16", "int8"))
        print_heading(f"{ROWS} x {DEPTH}, our own loops", "results")
        for model in MODELS:
            print_loops(folder, model, program, own)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/aarch64")
