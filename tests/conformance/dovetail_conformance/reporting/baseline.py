"""Changes since an earlier run of the suite: which cases became slower or faster, which ended otherwise.

Pure: two documents go in, a Difference comes out, which the terminal prints and the page shows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .document import SCHEMA, SCHEMA_VERSION, malformed

NOISE = 0.15  # a change of the time by less is none
SHOWN = 20  # of each kind, on the terminal

Json = Mapping[str, Any]


class BadBaseline(ValueError):
    """With the cure."""


class Timing(NamedTuple):
    """A case whose time changed by more than noise."""

    id: str
    before_s: float
    now_s: float
    ratio: float  # now / before
    noise: float  # the change that means nothing: NOISE, or the larger spread of the two runs


class Ending(NamedTuple):
    """A case whose status changed."""

    id: str
    before: str
    now: str


class Difference(NamedTuple):
    device: str  # of the baseline
    backend: str
    started: str
    same_device: bool  # else the times are of two machines
    timed: int  # cases whose times could be compared
    slower: tuple[Timing, ...]  # the most first
    faster: tuple[Timing, ...]
    endings: tuple[Ending, ...]
    appeared: tuple[str, ...]  # ids that only this run has
    missing: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """For results.json."""
        changes = {name: [c._asdict() for c in getattr(self, name)] for name in ("slower", "faster", "endings")}
        lists = {name: list(getattr(self, name)) for name in ("appeared", "missing")}
        return self._asdict() | changes | lists

    def lines(self) -> Iterator[str]:
        """For the terminal."""
        yield f"since the baseline of {self.started} ({self.device}, {self.backend}):"
        if not self.same_device:
            yield "  it is of another device: times cannot show a change"
        for what, changes in (("slower", self.slower), ("faster", self.faster)):
            for c in changes[:SHOWN]:
                yield f"  {what}: {c.id} {c.before_s * 1e6:.4g} -> {c.now_s * 1e6:.4g} us, {c.ratio - 1:+.0%}"
            if len(changes) > SHOWN:
                yield f"  and {len(changes) - SHOWN} more are {what}"
        for e in self.endings[:SHOWN]:
            yield f"  {e.id} was {e.before}, is {e.now}"
        if len(self.endings) > SHOWN:
            yield f"  and {len(self.endings) - SHOWN} more ended otherwise"
        steady = self.timed - len(self.slower) - len(self.faster)
        yield f"  {len(self.slower)} slower, {len(self.faster)} faster, {steady} as fast as before"


def read(path: Path) -> dict[str, Any]:
    """An earlier results.json, or that of a report's folder. Raises BadBaseline."""
    file = path / "results.json" if path.is_dir() else path
    cure = "name the results.json of an earlier run"
    try:
        content = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise BadBaseline(f"{file} cannot be read: {error.strerror}: {cure}") from error
    except (ValueError, RecursionError) as error:
        raise BadBaseline(f"{file} is not JSON: {cure}") from error
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise BadBaseline(f"{file} does not hold results of dovetail conform: {cure}")
    if content.get("schema_version") != SCHEMA_VERSION:
        found = content.get("schema_version")
        raise BadBaseline(f"{file} has version {found} of the format, not {SCHEMA_VERSION}: make it anew")
    if where := malformed(content):  # known now, not after the run
        raise BadBaseline(f"{file} is malformed at {where}: {cure}")
    return content


def difference(before: Json, now: Json) -> Difference:
    was, are = ({case["id"]: case for case in content["cases"]} for content in (before, now))
    both = [id for id in are if id in was and "not-run" not in (was[id]["status"], are[id]["status"])]
    timings = [_timing(id, was[id], are[id]) for id in both if _comparable(was[id], are[id])]
    changed = [t for t in timings if max(t.ratio, 1 / t.ratio) > 1 + t.noise]
    backend = before["backend"]
    return Difference(
        device=before["device"]["name"],
        backend=f"{backend['name']} {backend['version']}",
        started=before["run"]["started"],
        same_device=all(_identity(before)[k] == _identity(now)[k] for k in _identity(now)),
        timed=len(timings),
        slower=tuple(sorted((t for t in changed if t.ratio > 1), key=lambda t: -t.ratio)),
        faster=tuple(sorted((t for t in changed if t.ratio < 1), key=lambda t: t.ratio)),
        endings=tuple(Ending(id, was[id]["status"], are[id]["status"]) for id in both
                      if was[id]["status"] != are[id]["status"]),
        appeared=tuple(id for id in are if id not in was),
        missing=tuple(id for id in was if id not in are),
    )  # fmt: skip


def _identity(content: Json) -> dict[str, Any]:
    device = content["device"]
    return {"kind": device["kind"], "arch": device["arch"], "name": device["properties"].get("name")}


def _comparable(was: Json, now: Json) -> bool:
    """Both were timed, by the same clock, and are of the same size: a large one depends on the machine."""
    return bool(was.get("time_s") and now.get("time_s")) and all(was[k] == now[k] for k in ("bytes", "timer"))


def _timing(id: str, was: Json, now: Json) -> Timing:
    noise = max(NOISE, was.get("spread", 0.0), now.get("spread", 0.0))
    return Timing(id, was["time_s"], now["time_s"], now["time_s"] / was["time_s"], noise)
