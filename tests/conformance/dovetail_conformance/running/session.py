"""One run of the suite, from the options to the exit code."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dovetail.entry_points import import_ops
from dovetail.schema import registry

from ..cases import Case, all_cases, find
from ..cli import TIMEOUT
from ..levels import standing as levels
from ..levels.must_pass import must_pass
from ..reporting.document import STDOUT, document, write
from ..reporting.live import Live, Replay, by_group, counted
from ..results import Result, Status
from .pool import Config, DeviceUnavailable, Pool
from .selection import BadExpression, selects

MET, NOT_MET, USAGE, UNAVAILABLE, INTERRUPTED = 0, 1, 2, 3, 130


class UsageError(Exception):
    pass


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _several(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _find(id: str) -> Case:
    try:
        return find(id)
    except KeyError:
        near = get_close_matches(id, all_cases(), 1, 0.5)
        raise UsageError(f"there is no case {id!r}{f': did you mean {near[0]!r}?' if near else ''}") from None


class Session:
    """What is to be run, and what has become of it."""

    def __init__(self, *, device: str, level: str | None, quick: bool, expression: str | None,
                 cases: Iterable[str], seed: int, timeout: float, workers: int | None, json_file: Path | None,
                 list_only: bool, api: str):  # fmt: skip
        if quick and level == "L2":
            raise UsageError("--quick claims nothing above L1: leave it out, or ask for --level L1")
        self.level = level or ("L2" if expression and not quick else "L1")  # a selection is made from all there is
        self.quick, self.json_file, self.list_only = quick, json_file, list_only
        self.options = {
            "level": self.level,
            "quick": quick,
            "profile": None,
            "expression": expression,
            "cases": list(cases),
        }
        import_ops()
        if json_file and not json_file.parent.is_dir():  # known now, not after the run
            raise UsageError(f"--json {json_file}: there is no folder {json_file.parent}")
        self.cases = self._selected(expression, list(cases))
        self.partial = bool(expression or cases)
        count = workers or min(8, _processors())
        self.config = Config(device, seed, min(count, max(1, len(self.cases) // 8)), timeout, api)
        self.replay = Replay(device, seed, None if timeout == TIMEOUT else timeout)
        self.results: dict[str, Result] = {}
        self.description: dict[str, Any] = {}

    @cached_property
    def demanded(self) -> list[Case]:
        """What the level takes."""
        return self._cases(levels.up_to(self.level))

    def _cases(self, of: tuple[str, ...]) -> list[Case]:
        return [c for c in all_cases().values() if c.level in of and (c.quick or not self.quick)]

    def _selected(self, expression: str | None, ids: list[str]) -> list[Case]:
        if ids:
            pool = [_find(id) for id in dict.fromkeys(ids)]
        else:
            pool = self.demanded
        if not expression:
            return pool
        try:
            chosen = selects(expression, {c.group for c in all_cases().values()})
        except BadExpression as error:
            raise UsageError(str(error)) from error
        matching = [c for c in pool if chosen(c.id)]
        if not matching:
            beyond = sorted(c.level for c in all_cases().values() if chosen(c.id))
            hint = f"; {len(beyond)} cases above it do: add --level {beyond[-1]}" if beyond else ": see --list"
            raise UsageError(f"-k {expression!r} matches no case of {self.level}{hint}")
        return matching

    # ---- the run ------------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Runs it and prints what it finds; the exit code."""
        if self.list_only:
            print("\n".join(c.id for c in self.cases))
            return MET
        begin, started = time.monotonic(), datetime.now(UTC)
        stopped: BaseException | None = None
        out = sys.stderr if self.json_file == STDOUT else sys.stdout
        with Live(len(self.cases), self.replay, out) as live, Pool(self.config) as pool:
            try:
                self.description = pool.open()
                live.say(self._headline())
                for result in pool.run(c.id for c in self.cases):
                    self.results[result.id] = result
                    live.show(result)
            except KeyboardInterrupt as error:
                stopped = error
            except DeviceUnavailable as error:
                stopped = error
        for case in self.cases:
            if case.id not in self.results:
                self.results[case.id] = Result(case.id, Status.NOT_RUN)
        seconds = time.monotonic() - begin
        last = self._last_line()
        self._conclude(live, seconds, stopped, last)
        if self.json_file and self.description:
            write(self.json_file, self._document(started, seconds, stopped, last))
        if isinstance(stopped, DeviceUnavailable):
            return UNAVAILABLE
        return INTERRUPTED if stopped else self._exit_code()

    def _headline(self) -> str:
        device, backend = self.description["device"], self.description["backend"]
        name = str(device["properties"].get("name", "")).strip()
        versions = " + ".join([f"{backend['name']} {backend['version']}", *self.description["packs"]])
        told = f"{device['name']}{f' ({name})' if name else ''}, {versions}"
        what = "" if self.partial else f"{'quick ' if self.quick else ''}{self.level}, "
        size = _several(len(self.cases), "case")
        how = f"seed {self.config.seed}, {_several(self.config.workers, 'worker')}"
        return f"{told}: {what}{size}, {how}"

    def _conclude(self, live: Live, seconds: float, stopped: BaseException | None, last: str) -> None:
        if isinstance(stopped, DeviceUnavailable) and not self.description:
            print(f"Error: {stopped}", file=sys.stderr)
            return
        groups = by_group(self.results.values())
        if groups:
            shown = ", ".join(f"{name} ({n})" for name, n in groups[:20])
            live.say(f"not right: {shown}{f' and {len(groups) - 20} more' if len(groups) > 20 else ''}")
        counts = Counter(r.status for r in self.results.values())
        live.say(f"{counted(counts)} in {seconds:.1f} s")
        if isinstance(stopped, DeviceUnavailable):
            live.say(f"Error: the device was lost on the way: {stopped}", "red")
        elif stopped:
            live.say("stopped by Ctrl-C")
        live.say(last, "green" if self._exit_code() == MET else "red")

    # ---- what it amounts to -------------------------------------------------------------------------------------

    def standing(self) -> levels.Standing:
        return levels.standing(self.demanded, self.results, self.level)

    def _exit_code(self) -> int:
        run = [self.results[c.id] for c in self.cases]
        if any(r.bad or r.status is Status.NOT_RUN for r in run):
            return NOT_MET
        return MET if self.partial or self.standing().missed is None else NOT_MET

    def _last_line(self) -> str:
        if self.partial:
            return "no level is claimed for a selection of cases"
        return levels.closing_line(self.standing(), self._coverage)

    def _coverage(self, level: str) -> str:
        native = set(self.description.get("native", ()))
        bodies = {op.name for op in registry.values() if op.body}
        return levels.coverage(level, native.__contains__, bodies)

    def _document(
        self, started: datetime, seconds: float, stopped: BaseException | None, last: str
    ) -> dict[str, Any]:
        reached = None if self.partial else self.standing().level
        ids = "\n".join(c.id for c in self.demanded)
        run = self.options | {
            "seed": self.config.seed,
            "workers": self.config.workers,
            "timeout": self.config.timeout,
            "started": started.isoformat(timespec="seconds"),
            "seconds": round(seconds, 3),
            "complete": stopped is None,
            "stopped_by": None if stopped is None else (str(stopped) or "Ctrl-C"),
            "shard": None,
            "must_pass": {"version": must_pass().version, "sha256": must_pass().sha256},
            "cases_sha256": hashlib.sha256(ids.encode()).hexdigest(),
            "system": {"platform": platform.platform(), "machine": platform.machine(), "processors": _processors()},
            "suite": version("dovetail-conformance"),
        }
        level = {"reached": reached, "asked": self.level, "profile": None, "text": last}
        found = [(case, self.results[case.id]) for case in self.cases]
        return document(found, run=run, description=self.description, level=level, replay=self.replay)
