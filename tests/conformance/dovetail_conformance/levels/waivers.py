"""Waivers: failures of a device that are known and do not stand in the way of L2. L0 and L1 have none.

    [[waiver]]
    case = "erf[f16,*]"           # a pattern of case ids: * and ? as in a shell, brackets for themselves
    reason = "the hardware's table has 8 bits"
    device = "acme"               # of this backend alone, a pattern too
    versions = ">=1.2,<1.4"       # of the backend
    url = "https://acme.example/issues/12"
    expires = 2027-01-31          # the last day

case and reason must be there, the others may.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from ..cases import Case
from ..ids import glob
from ..results import Result, Status
from .standing import costs


class BadWaivers(ValueError):
    """With file, line and cure."""


class Waiver(NamedTuple):
    case: str
    reason: str
    device: str | None = None
    versions: str | None = None
    url: str | None = None
    expires: date | None = None

    def is_for(self, backend: str) -> bool:
        return self.device is None or glob(self.device)(backend)

    def admits(self, version: str) -> bool:
        """A backend whose version cannot be compared does not match."""
        try:
            return self.versions is None or SpecifierSet(self.versions).contains(Version(version), prereleases=True)
        except InvalidVersion:
            return False

    def as_dict(self) -> dict[str, Any]:
        return self._asdict() | {"expires": self.expires.isoformat() if self.expires else None}


class Waivers:
    """The waivers of a file for one backend. They change the results of cases, and remember which."""

    def __init__(self, waivers: Iterable[Waiver], backend: str, version: str, today: date):
        self.listed = [w for w in waivers if w.is_for(backend)]
        self._stale: dict[Waiver, str] = {}
        for w in self.listed:
            if w.expires and w.expires < today:
                self._stale[w] = "expired"
            elif not w.admits(version):
                self._stale[w] = "other-version"
        self._matches = [(w, glob(w.case)) for w in self.listed]

    def _of(self, case: Case) -> Iterator[Waiver]:
        """The waivers in force for a case, in the order of the file."""
        if case.level == "L2":
            yield from (w for w, matches in self._matches if w not in self._stale and matches(case.id))

    def apply(self, case: Case, result: Result) -> Result:
        """The result, waived where it costs the level and one of them is for its case."""
        waiver = next(self._of(case), None) if costs(case, result) else None
        if waiver is None:
            return result
        measured = {**result.measured, "waiver": waiver.reason, "outcome": result.status.value}
        return result._replace(status=Status.WAIVED, measured=measured)

    def report(self, cases: Iterable[Case], results: Mapping[str, Result]) -> list[dict[str, Any]]:
        """For results.json, after the run: each waiver, and the cases that it waived."""
        waived: dict[Waiver, list[str]] = {w: [] for w in self.listed}
        passed: dict[Waiver, list[str]] = {w: [] for w in self.listed}
        refused: dict[Waiver, list[str]] = {w: [] for w in self.listed}
        for case in cases if self.listed else ():
            result = results[case.id]
            if result.status is Status.WAIVED:
                waived[next(self._of(case))].append(case.id)
            elif result.status is Status.PASS:
                for w in self._of(case):
                    passed[w].append(case.id)
            elif costs(case, result):
                for w, matches in self._matches:
                    if matches(case.id):
                        refused[w].append(case.id)
        return [
            w.as_dict()
            | {"state": self._state(w, waived[w], passed[w])}
            | {"cases": waived[w], "passed": passed[w], "refused": refused[w]}
            for w in self.listed
        ]

    def _state(self, waiver: Waiver, waived: list[str], passed: list[str]) -> str:
        return self._stale.get(waiver) or ("used" if waived else "unexpected-pass" if passed else "unused")


# ---- the file ---------------------------------------------------------------------------------------------------


def read(path: Path, cases: Mapping[str, Case]) -> list[Waiver]:
    """The waivers of a file; BadWaivers if it is invalid, or names cases that cannot be waived."""
    try:
        text = path.read_text("utf-8")
        found = tomllib.loads(text)
    except OSError as error:
        raise BadWaivers(f"{path}: {error.strerror}: name a file that can be read") from error
    except ValueError as error:  # of TOML or of UTF-8
        raise BadWaivers(f"{path}: not a TOML file: {error}") from error
    entries = found.pop("waiver", [])
    if found or not isinstance(entries, list):
        name = next(iter(found), "waiver")
        raise BadWaivers(f"{path}, line {_line(text, name)}: {name!r} is not expected: begin each with [[waiver]]")
    lines = [n for n, line in enumerate(text.splitlines(), 1) if re.match(r"\s*\[\[\s*waiver\s*\]\]", line)]
    lines += [1] * (len(entries) - len(lines))  # written as one array
    waivers = []
    for entry, line in zip(entries, lines):
        where = f"{path}, line {line}"
        waivers.append(_waiver(entry, where))
        _only_l2(waivers[-1], cases, where)
    twice = [case for case, n in Counter(waivers).items() if n > 1]
    if twice:
        raise BadWaivers(f"{path}: the waiver of {twice[0].case!r} is there twice: take one out")
    return waivers


def _line(text: str, name: str) -> int:
    word = re.compile(rf"\s*\[*\s*{re.escape(name)}\b")
    return next((n for n, line in enumerate(text.splitlines(), 1) if word.match(line)), 1)


def _waiver(entry: dict[str, Any], where: str) -> Waiver:
    if not isinstance(entry, dict):
        raise BadWaivers(f"{where}: {entry!r} is not expected: begin each with [[waiver]]")
    for key, value in entry.items():
        if key not in Waiver._fields:
            near = get_close_matches(key, Waiver._fields, 1, 0.5)
            cure = f"did you mean {near[0]!r}?" if near else f"expected {', '.join(Waiver._fields)}"
            raise BadWaivers(f"{where}: {key!r} is not known: {cure}")
        if key != "expires" and not (isinstance(value, str) and value.strip()):
            raise BadWaivers(f"{where}: {key} is {value!r}: expected a text")
    for key in ("case", "reason"):
        if key not in entry:
            raise BadWaivers(f"{where}: {key} is missing: {_MISSING[key]}")
    try:
        SpecifierSet(entry.get("versions", ""))
    except InvalidSpecifier:
        raise BadWaivers(
            f"{where}: versions is {entry['versions']!r}: expected a range such as '>=1.2,<1.4'"
        ) from None
    return Waiver(**entry | {"expires": _day(entry.get("expires"), where)})


_MISSING = {
    "case": 'add a pattern of case ids, such as case = "erf[f16,*]"',
    "reason": 'say why these cases fail, such as reason = "the hardware\'s table has 8 bits"',
}


def _day(value: Any, where: str) -> date | None:
    try:
        if isinstance(value, str):
            return date.fromisoformat(value)
        if value is None or type(value) is date:
            return value
    except ValueError:
        pass
    raise BadWaivers(f"{where}: expires is {value!r}: expected a day such as 2027-01-31")


def _only_l2(waiver: Waiver, cases: Mapping[str, Case], where: str) -> None:
    """One that could never waive anything is a mistake; one that reaches beyond L2 waives of L2 alone."""
    matches = glob(waiver.case)
    matched = [case for case in cases.values() if matches(case.id)]
    if matched and all(case.level != "L2" for case in matched):
        raise BadWaivers(
            f"{where}: {waiver.case!r} stands for {matched[0].id} of {matched[0].level}, which has no waivers: "
            "take it out, or name cases of L2"
        )
