"""The list of what L1 demands: read from data/must_pass.toml, whose hash stands in it.

A profile is the same list in other dtypes, for devices that have no others; those of data/profiles.toml.

python -m dovetail_conformance.levels.must_pass      prints the hashes of the lists as they are
"""

from __future__ import annotations

import hashlib
import tomllib
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from dovetail.schema.dtypes import DType, by_name


class MustPass(NamedTuple):
    version: int
    sha256: str  # as the file claims
    dtypes: tuple[str, ...]
    ops: dict[str, tuple[str, ...]]  # op -> the dtypes that it must have
    profile: str | None = None
    about: str = ""  # of a profile: for which devices

    @property
    def float(self) -> DType:
        """The one that checks of L0 compute in."""
        return next(by_name[d] for d in self.dtypes if by_name[d].kind == "f")

    def hash(self) -> str:
        """Of the list's meaning: comments, order and spacing of the file have no part in it."""
        lines = [f"version {self.version}", *(f"{op}: {' '.join(sorted(d))}" for op, d in sorted(self.ops.items()))]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def parse(text: str) -> MustPass:
    data = tomllib.loads(text)
    ops: dict[str, tuple[str, ...]] = {}
    for group in data["group"]:
        for op in group["ops"].split():
            if op in ops:
                raise ValueError(f"must_pass.toml names {op} twice")
            ops[op] = tuple(group["dtypes"].split())
    return MustPass(data["version"], data["sha256"], tuple(data["dtypes"].split()), ops)


def parse_profile(data: dict[str, Any], plain: MustPass) -> MustPass:
    """The plain list with its dtypes replaced, less the ops that such devices need not have."""
    replaced = {d: tuple(by.split()) for d, by in data["dtypes"].items()}
    without = set(data["without"].split())
    if unknown := without - set(plain.ops):
        raise ValueError(f"profiles.toml, {data['name']}: {', '.join(sorted(unknown))} are not of must_pass.toml")
    ops = {}
    for op, dtypes in plain.ops.items():
        if op not in without and (mapped := tuple(dict.fromkeys(new for d in dtypes for new in replaced[d]))):
            ops[op] = mapped
    every = tuple(dict.fromkeys(new for d in plain.dtypes for new in replaced[d]))
    return MustPass(data["version"], data["sha256"], every, ops, data["name"], data["about"])


def _read(file: str) -> str:
    return files("dovetail_conformance.levels.data").joinpath(file).read_text("utf-8")


def _lists() -> list[tuple[str, MustPass]]:
    """All of them, each with its file."""
    plain = parse(_read("must_pass.toml"))
    found = [("must_pass.toml", plain)]
    for data in tomllib.loads(_read("profiles.toml"))["profile"]:
        found.append(("profiles.toml", parse_profile(data, plain)))
    return found


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
    """From now on levels are the profile's. ValueError where there is none of that name."""
    global _chosen
    if profile is not None and profile not in profiles():
        near = get_close_matches(profile, profiles(), 1, 0.5)
        known = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(profiles())}"
        raise ValueError(f"there is no profile {profile!r}: {known}")
    _chosen = profile


def must_pass() -> MustPass:
    """The list in force."""
    return _checked()[_chosen]


def level_of(op: str, d: DType) -> str:
    """L1 where the list has it; everything else belongs to L2."""
    return "L1" if d.brief in must_pass().ops.get(op, ()) else "L2"


if __name__ == "__main__":
    for _, listed in _lists():
        print(f"{listed.hash()}  {listed.profile or 'L1'}")
