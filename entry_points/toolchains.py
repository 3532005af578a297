"""The commands that start the workers of installed toolchains. Nothing of them is imported in this process."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .backend import Failure, cleaned
from .installed import TOOLCHAINS, EntryPoint, claims


class Toolchain(NamedTuple):
    name: str
    command: list[str]
    """The interpreter, its options and the module that is run."""
    fingerprint: str
    """What its code depends on beside the request."""
    problem: str
    """Why it cannot be used; empty: it can."""


def toolchains(points: Iterable[EntryPoint], interpreter: str | None = None) -> Iterator[Toolchain]:
    """The toolchains of the group `dovetail.toolchains`. `interpreter`: in place of sys.executable."""
    for name, found, owners in claims(points, TOOLCHAINS):
        try:
            command = _command(found, sys.executable if interpreter is None else interpreter)
        except Failure as failure:
            cure = f"; {failure.cure}" if failure.cure else ""
            yield Toolchain(name, [], "", cleaned(f"toolchain {name!r} of {owners}: {failure.cause}{cure}"))
        else:
            yield Toolchain(name, command, f"{owners} {sys.version}\n{found[0].content}", "")


def _command(found: list[EntryPoint], interpreter: str) -> list[str]:
    point = found[0]
    if len(found) > 1:
        cure = f"uninstall all but one: pip uninstall {' or '.join(sorted({p.package for p in found}))}"
        raise Failure(f"{len(found)} entry points claim its name", cure)
    if point.problem:
        raise point.problem
    if not all(part.isidentifier() for part in point.value.split(".")):
        raise Failure(f"entry point {point.value!r}: expected a module's name", f"correct {point.distribution}")
    # A program that embeds Python would be started again in place of an interpreter.
    if not re.fullmatch(r"python[\d.]*[a-z]?(-dbg)?(\.exe)?", os.path.basename(interpreter or "")):
        raise Failure(f"sys.executable is {interpreter!r}, which is no Python interpreter")
    # -P: no module of the folder that the user works in takes the place of an installed one.
    return [interpreter, "-P", "-m", point.value]
