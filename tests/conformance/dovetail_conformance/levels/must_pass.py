"""The list of what L1 demands: read from data/must_pass.toml, whose hash stands in it.

A profile is such a list for devices that have other dtypes only; they are in data/profiles.toml.

python -m dovetail_conformance.levels.must_pass      prints the hashes of the lists as they are
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from dovetail.schema.dtypes import DType, by_name

FILES = ("must_pass.toml", "profiles.toml")


class MustPass(NamedTuple):
    version: int
    sha256: str  # as the file claims
    dtypes: tuple[str, ...]
    ops: dict[str, tuple[str, ...]]  # op -> the dtypes that it must have
    profile: str | None = None
    about: str = ""  # of a profile: its devices

    @property
    def float(self) -> DType:
        """The one that checks of L0 compute in."""
        return next(by_name[d] for d in self.dtypes if by_name[d].kind == "f")

    def hash(self) -> str:
        """The hash of the list's meaning: comments, order and spacing of the file have no part in it."""
        lines = [f"version {self.version}", *(f"{op}: {' '.join(sorted(d))}" for op, d in sorted(self.ops.items()))]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def parse(data: dict[str, Any], file: str) -> MustPass:
    """The list of a file, or of one profile in it."""
    ops: dict[str, tuple[str, ...]] = {}
    for group in data["group"]:
        for op in group["ops"].split():
            if op in ops:
                raise ValueError(f"{file} names {op} twice")
            ops[op] = tuple(group["dtypes"].split())
    dtypes = tuple(data["dtypes"].split())
    return MustPass(data["version"], data["sha256"], dtypes, ops, data.get("name"), data.get("about", ""))


def _lists() -> list[tuple[str, MustPass]]:
    """All of them, each with its file."""
    folder = files("dovetail_conformance.levels.data")
    plain, profiles = (tomllib.loads(folder.joinpath(file).read_text("utf-8")) for file in FILES)
    every = [(FILES[0], plain), *((FILES[1], profile) for profile in profiles["profile"])]
    return [(file, parse(data, file)) for file, data in every]


@cache
def _checked() -> dict[str | None, MustPass]:
    """By profile; None is the plain list."""
    for file, listed in _lists():
        if listed.hash() != listed.sha256:
            raise ValueError(
                f"{file} was changed: its ops hash to {listed.hash()}, expected {listed.sha256}; "
                "a level is only comparable for the list as published: reinstall dovetail-conformance"
            )
    return {listed.profile: listed for _, listed in _lists()}


def profiles() -> dict[str, MustPass]:
    return {name: listed for name, listed in _checked().items() if name}


_chosen: str | None = None  # by choose(), for this process


def choose(profile: str | None) -> None:
    """Sets the profile. ValueError where there is none of that name."""
    global _chosen
    if profile is not None and profile not in profiles():
        near = get_close_matches(profile, profiles(), 1, 0.5)
        known = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(profiles())}"
        raise ValueError(f"there is no profile {profile!r}: {known}")
    _chosen = profile


def must_pass() -> MustPass:
    """The list in force."""
    return _checked()[_chosen]


def level_of(op: str, d: DType, named: Iterable[DType] = ()) -> str:
    """L1 where the list has the op in that dtype, and the call names no dtype that L1 does not ask for; else L2."""
    listed = must_pass()
    beyond = any(other.brief not in listed.dtypes for other in named)
    return "L1" if d.brief in listed.ops.get(op, ()) and not beyond else "L2"


if __name__ == "__main__":
    for _, listed in _lists():
        print(f"{listed.hash()}  {listed.profile or 'L1'}")
