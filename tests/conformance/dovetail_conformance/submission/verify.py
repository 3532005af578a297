"""Checks a package: computes all of it again that follows from this suite and the cases' statuses.

Needs no device and no backend, and runs nothing that is in the package.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import dovetail
from jsonschema import Draft202012Validator

from ..reporting.document import schema
from ..running.options import UsageError
from ..running.plan import Plan
from . import Refused, archive, bounded
from .contradictions import contradiction
from .derived import derived, whole_run
from .description import unlikely
from .package import mtime, not_whole
from .statement import as_text, as_toml, difference, statement, submitter_of
from .wheels import DEVELOPMENT, HOW, SUITE, WHEEL, Wheel, digest, installed_suite, parts


class Verified(NamedTuple):
    sha256: str  # of the package
    document: dict[str, Any]
    statement: dict[str, Any]
    wheels: list[Wheel]
    notes: list[str]  # facts that do not break it, but that its reader should know


def verify(path: Path) -> Verified:
    """Raises Refused with the first thing that is wrong."""
    data = archive.read(path)
    members, time = archive.unpack(data)
    document = _document(members[archive.RESULTS])
    _check_run(document, time)
    _check_cases(document)
    wheels = _wheels(members[archive.WHEELS], document)
    stated = _statement(members, document, wheels)
    _check_log(members[archive.LOG], document)
    return Verified(hashlib.sha256(data).hexdigest(), document, stated, wheels, _notes(document, wheels))


# ---- results.json ----------------------------------------------------------------------------------------------


def _document(text: bytes) -> dict[str, Any]:
    document = bounded.loads(archive.RESULTS, text)
    version_here = schema()["properties"]["schema_version"]["const"]
    found = document.get("schema_version") if isinstance(document, dict) else None
    if isinstance(found, int) and found != version_here:
        raise Refused(f"results.json has schema version {found}, here is {version_here}: {_cure(document)}")
    error = next(Draft202012Validator(schema()).iter_errors(document), None)
    if error:
        message = error.message if len(error.message) < 100 else f"{error.message[:100]}..."
        raise Refused(f"results.json is malformed at {error.json_path}: {message}")
    return document


def _cure(document: dict[str, Any]) -> str:
    run = document.get("run")
    suite = run.get("suite") if isinstance(run, dict) else "?"
    return f"pip install dovetail-runtime=={document.get('dovetail')} {SUITE}=={suite}"


def _check_run(document: dict[str, Any], time: int) -> None:
    run = document["run"]
    here = (dovetail.__version__, version(SUITE))
    if (made_with := (document["dovetail"], run["suite"])) != here:
        raise Refused(
            f"made with dovetail {made_with[0]} and {SUITE} {made_with[1]}, here are {here[0]} and {here[1]}: "
            f"{_cure(document)}"
        )
    if option := not_whole(run):
        raise Refused(f"not of a whole run: made with {option}")
    if not run["complete"] or run["stopped_by"]:
        raise Refused(f"not of a whole run: stopped by {run['stopped_by'] or 'something'}")
    try:
        started = datetime.fromisoformat(run["started"])
    except ValueError:
        started = None
    if started is None or started.tzinfo is None:
        raise Refused(f"results.json: run.started is {run['started']!r}: expected a date and time with its zone")
    if started > datetime.now(UTC) + timedelta(days=1):
        raise Refused(f"the run began in the future: {run['started']}")
    if time != mtime(document):
        raise Refused("the archive's time is not that of the run")


def _check_cases(document: dict[str, Any]) -> None:
    """The cases are those of the level, each is consistent, and everything else follows from them."""
    run = document["run"]
    try:
        whole, right = whole_run(document)
    except UsageError as error:
        raise Refused(f"no run can be made so: {error}") from error
    if why := unlikely(document):
        raise Refused(f"results.json: {why}")
    if run["must_pass"] != right["must_pass"]:
        lists = (run["must_pass"], right["must_pass"])
        theirs, ours = (f"version {m['version']} ({m['sha256'][:12]})" for m in lists)
        raise Refused(f"its must-pass list is {theirs}, this suite's is {ours}: {_cure(document)}")
    _expect_same_ids([c.id for c in whole.cases], [c["id"] for c in document["cases"]], run["level"])
    for key in right:
        if run[key] != right[key]:
            raise Refused(f"results.json: {key} is not that of a run of {run['level']}")
    for case, entry in zip(whole.cases, document["cases"]):
        if found := contradiction(case, entry, document["kernels"]):
            raise Refused(f"case {case.id} {found}")
    try:
        _expect_derived(document, whole)
    except (ValueError, OverflowError) as error:  # a day or a range of versions that is none
        raise Refused(f"results.json cannot be worked out again: {error}") from error
    if document["level"]["reached"] is None:
        raise Refused("no level is reached")


def _expect_same_ids(expected: list[str], found: list[str], level: str) -> None:
    twice = [id for id, n in Counter(found).items() if n > 1]
    if twice:
        raise Refused(f"case {twice[0]} is there twice")
    if lacking := set(expected) - set(found):
        raise Refused(
            f"partial: {len(lacking)} of the {len(expected)} cases of {level} are missing: {min(lacking)}"
        )
    if unknown := set(found) - set(expected):
        raise Refused(
            f"{len(unknown)} cases are not of {level} in this suite: {min(unknown)}; where a wheel brings its op, "
            "install that too"
        )
    if expected != found:
        first = next(b for a, b in zip_longest(expected, found) if a != b)
        raise Refused(f"its cases are not in the suite's order: {first}")


def _expect_derived(document: dict[str, Any], whole: Plan) -> None:
    for key, right in derived(document, whole).items():
        if document[key] == right:
            continue
        if key == "cases":
            id = next(a["id"] for a, b in zip(document[key], right) if a != b)
            raise Refused(f"case {id} does not say what its status amounts to")
        if key == "level":
            raise Refused(f"it claims {document[key]['text']!r}, its results amount to {right['text']!r}")
        raise Refused(f"results.json: {key} is not what its cases amount to")


# ---- the other members ----------------------------------------------------------------------------------------


def _wheels(text: bytes, document: dict[str, Any]) -> list[Wheel]:
    name = archive.WHEELS
    try:
        listed = [Wheel(**entry) for entry in bounded.loads(name, text)["wheels"]]
        for wheel in listed:
            texts = [*wheel[:-1], *wheel.files, *wheel.files.values()]
            if not all(isinstance(t, str) and t.isprintable() for t in texts) or wheel.installed not in HOW:
                raise ValueError(wheel.part)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise Refused(f"{name} is malformed") from error
    if [w.part for w in listed] != parts(document):
        raise Refused(f"{name} is not about what the run was made of: {', '.join(parts(document))}")
    for wheel in listed:
        if wheel.sha256 != digest(wheel.files):
            raise Refused(f"{name}: the SHA-256 of {wheel.part} is not that of its files")
        if wheel.installed == WHEEL and not wheel.files:
            raise Refused(f"{name}: {wheel.part} is listed as installed from a wheel, but has no files")
    core, suite = listed[:2]
    if (core.version, suite.version) != (document["dovetail"], document["run"]["suite"]):
        raise Refused(f"{name}: other versions than those of the run")
    here = installed_suite()
    if suite.installed == here.installed == WHEEL and suite.sha256 != here.sha256:
        raise Refused(f"the suite that ran is not {SUITE} {here.version}: its files are others than those here")
    return listed


def _statement(members: dict[str, bytes], document: dict[str, Any], wheels: list[Wheel]) -> dict[str, Any]:
    text = members[archive.STATEMENT]
    submitter = submitter_of(text)
    if submitter is None:
        raise Refused(f"{archive.STATEMENT} is malformed: its first line does not name the submitter")
    right = statement(document, wheels, submitter)
    if text != (expected := as_toml(right)):
        key = difference(text, expected)
        what = f": {key} is not what the results say" if key else " is not as the suite writes it"
        raise Refused(f"{archive.STATEMENT}{what}")
    if members[archive.STATEMENT_TEXT] != as_text(right, document, wheels):
        raise Refused(f"{archive.STATEMENT_TEXT} does not say what {archive.STATEMENT} says")
    return right


def _check_log(text: bytes, document: dict[str, Any]) -> None:
    try:
        lines = text.decode().splitlines()
    except UnicodeDecodeError as error:
        raise Refused(f"{archive.LOG} cannot be read: {error}") from error
    if document["level"]["text"] not in lines[-1:]:
        raise Refused(f"{archive.LOG} does not end with the level")
    commands = {line.strip() for line in lines}
    for case in document["cases"]:
        if "replay" in case and case["replay"] not in commands:
            raise Refused(f"{archive.LOG} says nothing of {case['id']}, which did not pass")


def _notes(document: dict[str, Any], wheels: list[Wheel]) -> list[str]:
    notes = [f"{w.label}: {HOW[w.installed]}" for w in wheels if w.installed != WHEEL]
    here = installed_suite()
    if here.installed == DEVELOPMENT:
        notes.append(f"the {SUITE} that checks this is {HOW[DEVELOPMENT]}")
    today = datetime.now(UTC).date().isoformat()
    for waiver in document["waivers"]:
        if waiver["state"] == "used" and (waiver["expires"] or today) < today:
            notes.append(f"the waiver {waiver['case']} has expired since, on {waiver['expires']}")
    return notes
