"""The journal of a run: its results, appended as they come, so that nothing is lost when the runner is killed.

A line of JSON for the run and the device, then one for each result. It lies in the report's folder until
results.json is there; --resume reads either.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..reporting import document
from ..reporting.write_report import RESULTS
from ..results import Result, Status
from .options import UsageError

NAME = "journal.jsonl"
SCHEMA = "dovetail-conformance-journal"


class Earlier(NamedTuple):
    """A run that was, as far as it went."""

    run: dict[str, Any]
    description: dict[str, Any]
    results: dict[str, Result]


def expect_unused(folder: Path | None) -> None:
    """UsageError where another run writes its journal to the folder."""
    if not folder:
        return
    with suppress(FileNotFoundError), open(folder / NAME, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            cure = "wait for it, or name another folder with --report"
            raise UsageError(f"another run writes its report to {folder}: {cure}") from None


class Journal:
    """Stops at the first error."""

    def __init__(self, path: Path | None = None):
        self.path = path
        self._file: Any = None

    def open(self, folder: Path | None, run: dict[str, Any], description: dict[str, Any],
             earlier: Iterable[Result] = ()) -> str | None:  # fmt: skip
        """Begins it in a folder, if there is one. Returns an error as add() does."""
        if folder is None:
            return None
        self.path = folder / NAME
        new = self.path.with_name(NAME + ".new")  # the journal that is resumed must not be lost on the way

        def begin() -> None:
            self._file = open(new, "wb", buffering=0)  # noqa: SIM115  a line is one write
            fcntl.flock(self._file, fcntl.LOCK_EX)  # during the run
            self._line({"schema": SCHEMA, "run": run, "description": description})
            for result in earlier:
                self._line(_entry(result, run["seconds"]))
            os.replace(new, self.path)

        return self._try(begin)

    def add(self, result: Result, seconds: float) -> str | None:
        """The error, the first time; `seconds`: how long the run has been going on."""
        return self._try(lambda: self._line(_entry(result, seconds))) if self._file else None

    def _line(self, content: dict[str, Any]) -> None:
        line = json.dumps(content).encode() + b"\n"
        if self._file.write(line) != len(line):  # a full disk takes a part
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _try(self, write: Callable[[], None]) -> str | None:
        try:
            write()
        except OSError as error:
            self.close()
            return f"{self.path} could not be written: {error.strerror}"
        return None

    def close(self) -> None:
        if self._file:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """results.json has it all."""
        if self.path:
            self.path.unlink(missing_ok=True)


def _entry(result: Result, seconds: float) -> dict[str, Any]:
    return {"at": round(seconds, 3), **result._asdict(), "measured": dict(result.measured)}


# ---- reading ----------------------------------------------------------------------------------------------------


def read(path: Path) -> Earlier:
    """From a report's folder, its journal or results.json; cases that did not run are not among the results."""
    file = path
    if path.is_dir():
        file = next((path / name for name in (NAME, RESULTS) if (path / name).exists()), path / RESULTS)
    try:
        text = file.read_text("utf-8", errors="replace")  # text that is not UTF-8 is not JSON either
    except OSError as error:
        raise UsageError(
            f"{file}: {error.strerror}: name the results of a run, or the folder of its report"
        ) from error
    try:
        first, _, rest = text.partition("\n")
        if _is_journal(first):
            return _from_journal(json.loads(first), rest)
        content = json.loads(text)
        if not document.malformed(content):
            return _from_document(content)
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise UsageError(
        f"{file} is not the results of a run of this version of dovetail-conformance: name another file"
    )


def _is_journal(line: str) -> bool:
    try:
        return json.loads(line)["schema"] == SCHEMA
    except (ValueError, KeyError, TypeError):
        return False


def _from_journal(head: dict[str, Any], rest: str) -> Earlier:
    found: dict[str, Result] = {}
    if lacking := {*SAME_RUN} - {*head["run"]} | {*SAME_SOFTWARE, "device"} - {*head["description"]}:
        raise KeyError(min(lacking))
    seconds = head["run"]["seconds"]
    for line in rest.split("\n")[:-1]:  # bytes after the last newline were cut off
        entry = json.loads(line)
        seconds = entry.pop("at")
        found[entry["id"]] = Result(**entry | {"status": Status(entry["status"])})
    run = head["run"] | {"seconds": seconds, "complete": False}  # or there would be a results.json
    return Earlier(run, head["description"], found)


def _from_document(content: dict[str, Any]) -> Earlier:
    description = {key: content[key] for key in document.DESCRIPTION}
    found = {id: r for id, r in document.results(content).items() if r.status is not Status.NOT_RUN}
    return Earlier(content["run"], description, found)


# ---- is it the same? --------------------------------------------------------------------------------------------

SAME_RUN = ("level", "quick", "profile", "expression", "cases", "shard", "seed", "timeout", "performance", "suite",
            "must_pass", "cases_sha256")  # fmt: skip
SAME_SOFTWARE = ("backend", "packs", "dovetail", "numpy")
SAME_DEVICE = ("name", "kind", "arch")

_CURES = {
    "level": "--level {}",
    "quick": "--quick",
    "profile": "--profile {}",
    "expression": "-k {!r}",
    "shard": "--shard {}",
    "seed": "--seed {}",
    "timeout": "--timeout {:g}",
    "performance": "--performance",
}


def expect_same(what: str, earlier: dict[str, Any], now: dict[str, Any], keys: Iterable[str]) -> None:
    """UsageError at the first of the keys that two records of runs or devices differ in."""
    for key in keys:
        was, is_ = earlier[key], now[key]
        if was == is_:
            continue
        if key in _CURES:
            given = _CURES[key].format(was)
            cure = f"leave {_CURES[key].split()[0]} out" if was is None or was is False else f"give {given} again"
        else:
            cure = "what differs cannot be one run: begin anew"
        raise UsageError(f"{what}: {key} was {_shown(was)} there and is {_shown(is_)} here: {cure}")


def expect_same_device(what: str, earlier: dict[str, Any], now: dict[str, Any]) -> None:
    expect_same(what, earlier["device"], now["device"], SAME_DEVICE)
    expect_same(what, earlier, now, SAME_SOFTWARE)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(str(v) for v in value.values() if v not in ("", None, {}))
    return repr(value)
