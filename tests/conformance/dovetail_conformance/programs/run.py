"""Runs a random program eagerly and compiled, compares all that a caller sees, and makes a failing one smaller."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .generate import GIVEN, NUMBERS, Program, generate

if TYPE_CHECKING:
    from ..running.target import Target

# (sizes, values) of the calls of one compiled function: other values, other sizes, other captured arrays.
CALLS = ((0, 0), (0, 1), (1, 2), (0, 3))


def difference(target: Target, program: Program) -> str:
    """What a compiled function does otherwise than an eager call; "" for nothing, or where an eager call raises."""
    eager, compiled = ({}, {})
    for space in (eager, compiled):
        exec(program.source(), space)
    run = target.api.compile(compiled["f"], numerics="eager")
    for i, ((which, draw), (n, k)) in enumerate(zip(CALLS, NUMBERS, strict=True)):
        results = []
        for space, f in ((eager, eager["f"]), (compiled, run)):
            held, given = program.state(target, which, draw)
            space |= held  # box, W, ...: other objects in each call
            target.api.random.seed(draw)
            try:
                results.append(_seen(f(*given, n, k), given, held))
            except Exception as error:
                results.append(error)
        expected, got = results
        if isinstance(expected, Exception):
            return ""
        if isinstance(got, Exception):
            return f"call {i} raised {type(got).__name__}: {got}"
        for name, value in expected.items():
            if not _equal(got.get(name), value):
                return f"call {i}, {name}: got {_shown(got.get(name))}, expected {_shown(value)}"
    return ""


def _seen(results: list[Any], given: list[Any], held: dict[str, Any]) -> dict[str, Any]:
    box = held["box"]
    arrays = {f"result {i}": x for i, x in enumerate(results)} | dict(zip(GIVEN, given, strict=True))
    arrays |= {"W": held["W"], "box.w": box.w, "box.parts": box.parts[0]["b"]}
    return {name: np.asarray(x.numpy()) if hasattr(x, "numpy") else x for name, x in arrays.items()}


def _equal(a: Any, b: Any) -> bool:
    """Bit by bit; one NaN is like another, whose sign depends on the order of operands."""
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return type(a) is type(b) and a == b
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.tobytes() == b.tobytes():
        return True
    if a.dtype.kind == "c":
        a, b = (np.stack([x.real, x.imag]) for x in (a, b))
    if a.dtype.kind in "biu":
        return False
    with np.errstate(invalid="ignore"):  # signalling NaN
        nan, others = np.isnan(a), np.isnan(b)
    return np.array_equal(nan, others) and np.where(nan, 0, a).tobytes() == np.where(nan, 0, b).tobytes()


def _shown(x: Any) -> str:
    if not isinstance(x, np.ndarray):
        return repr(x)
    return f"{x.dtype}{list(x.shape)} {np.array2string(x.ravel()[:6], max_line_width=200)}"


def smaller(program: Program, fails: Callable[[Program], str]) -> Program:
    """A program of fewer lines, and arrays that are dense, that fails too."""
    changed = True
    while changed:
        changed = False
        for i in reversed(range(len(program.lines))):
            if less := next(filter(fails, _without(program, i)), None):
                program, changed = less, True
    for name, array in program.arrays.items():
        dense = replace(program, arrays=program.arrays | {name: replace(array, layout="")})
        if fails(dense):
            program = dense
    return program


def _without(program: Program, i: int) -> Iterator[Program]:
    """The program without line i; then those that take an array which they are given for what it computes."""
    rest = program.lines[:i] + program.lines[i + 1 :]
    yield replace(program, lines=rest)
    if made := re.match(r"v\d+", program.lines[i]):
        for name in program.arrays:
            yield replace(program, lines=tuple(line.replace(made[0], name) for line in rest))


def check(target: Target, seed: int) -> str:
    """The report of a seed whose program fails; "" of one that does not."""
    program = generate(target, seed)
    if not difference(target, program):
        return ""
    program = smaller(program, lambda p: difference(target, p))
    given = "\n".join(f"# {name}: {a.dtype}{a.shape} {a.layout}" for name, a in program.arrays.items())
    return (
        f"{difference(target, program)}\n# sizes {program.sizes[0]}, then {program.sizes[1]}\n{given}\n"
        f"{program.source()}\nto run it again:\n  dovetail fuzz-compile --device {target.name} --seed {seed} "
        "--programs 1"
    )
