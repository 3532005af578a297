"""The list of what L1 demands: read from data/must_pass.toml, whose hash stands in it.

python -m dovetail_conformance.levels.must_pass      prints the hash of the list as it is
"""

from __future__ import annotations

import hashlib
import tomllib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from dovetail.schema.dtypes import DType


class MustPass(NamedTuple):
    version: int
    sha256: str  # as the file claims
    dtypes: tuple[str, ...]
    ops: dict[str, tuple[str, ...]]  # op -> the dtypes that it must have

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


@cache
def must_pass() -> MustPass:
    listed = parse(files("dovetail_conformance.levels.data").joinpath("must_pass.toml").read_text("utf-8"))
    if listed.hash() != listed.sha256:
        raise ValueError(
            f"must_pass.toml was changed: its ops hash to {listed.hash()}, expected {listed.sha256}; "
            "a level is only comparable for the list as published: reinstall dovetail-conformance"
        )
    return listed


def level_of(op: str, d: DType) -> str:
    """L1 where the list has it; everything else belongs to L2."""
    return "L1" if d.brief in must_pass().ops.get(op, ()) else "L2"


if __name__ == "__main__":
    print(parse(files("dovetail_conformance.levels.data").joinpath("must_pass.toml").read_text("utf-8")).hash())
