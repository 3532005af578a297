"""What a run says on the terminal: how far it is, and what failed."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Iterable
from typing import IO, Any, NamedTuple

from ..results import Result, Status

COLOURS = {Status.FAIL: "red", Status.CRASH: "red", Status.TIMEOUT: "red", Status.FALLBACK: "red"}


class Replay(NamedTuple):
    """The command that runs one case again."""

    device: str
    seed: int
    timeout: float | None = None  # where it is not the default

    def command(self, case: str) -> str:
        more = f" --timeout {self.timeout:g}" if self.timeout else ""
        return f"dovetail conform --device {self.device} --case {shlex.quote(case)} --seed {self.seed}{more}"


def headline(description: dict[str, Any]) -> str:
    """The device with its name, its backend and its packs."""
    device, backend = description["device"], description["backend"]
    name = str(device["properties"].get("name", "")).strip()
    versions = " + ".join([f"{backend['name']} {backend['version']}", *description["packs"]])
    return f"{device['name']}{f' ({name})' if name else ''}, {versions}"


def failure(result: Result, replay: Replay) -> list[str]:
    """The lines that tell of a case that did not pass."""
    told = [f"{result.status.upper():8} {result.id}"]
    told += [f"         {line}" for line in result.message.splitlines()]
    return [*told, f"         {replay.command(result.id)}"]


def by_group(results: Iterable[Result]) -> list[tuple[str, int]]:
    """The ops and parts that cases failed of, the most first."""
    return Counter(r.group for r in results if r.bad).most_common()


def counted(counts: Counter[Status]) -> str:
    """`118 passed, 2 failed, 1 not run`."""
    words = {Status.PASS: "passed", Status.FAIL: "failed", Status.CRASH: "crashed", Status.TIMEOUT: "timed out",
             Status.FALLBACK: "fell back", Status.NOT_RUN: "not run"}  # fmt: skip
    said = [f"{counts[s]} {words.get(s, s.value)}" for s in Status if counts[s]]
    return ", ".join(said) or "nothing ran"


class Live:
    """Shows how far the run is: a bar on a terminal, now and then a line elsewhere. Failures stay on the screen."""

    def __init__(self, total: int, replay: Replay, out: IO[str] | None = None):
        from rich.console import Console

        self.total, self.replay = total, replay
        self.counts: Counter[Status] = Counter()
        self.console = Console(file=out or sys.stdout, markup=False, highlight=False, soft_wrap=True)
        self._bar: Any = None
        self._task: Any = None
        self._said = 0
        self.log: list[str] = []  # all that was said

    def __enter__(self) -> Live:
        if self.console.is_terminal:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
            self._bar = Progress(*columns, console=self.console, transient=True)
            self._task = self._bar.add_task("", total=self.total)
            self._bar.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar:
            self._bar.stop()

    def show(self, result: Result) -> None:
        self.counts[result.status] += 1
        if result.bad:
            for i, line in enumerate(failure(result, self.replay)):
                self.say(line, COLOURS[result.status] if i == 0 else None)
        done = self.counts.total()
        if self._bar:
            bad = sum(self.counts[s] for s in COLOURS)
            told = f"{result.group}  {bad} bad" if bad else result.group
            self._bar.update(self._task, completed=done, description=told)
        elif done * 5 // self.total > self._said and done < self.total:
            self._said = done * 5 // self.total
            self.say(f"{done} of {self.total} cases: {counted(self.counts)}")

    def say(self, text: str = "", style: str | None = None) -> None:
        self.log.append(text)
        self.console.print(text, style=style)
