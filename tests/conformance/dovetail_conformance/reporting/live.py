"""The output of a run on the terminal: its progress, and its failures."""

from __future__ import annotations

import errno
import os
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from io import TextIOWrapper
from typing import IO, Any, NamedTuple

from ..results import WORDS, Result, Status

COLOURS = {Status.FAIL: "red", Status.CRASH: "red", Status.TIMEOUT: "red", Status.FALLBACK: "red",
           Status.PASS: "green", Status.WAIVED: "yellow"}  # fmt: skip


class Replay(NamedTuple):
    """The command that runs one case again."""

    device: str
    seed: int
    timeout: float | None = None  # where it is not the default
    profile: str | None = None

    def command(self, case: str) -> str:
        more = f" --timeout {self.timeout:g}" if self.timeout else ""
        more += f" --profile {self.profile}" if self.profile else ""
        return f"dovetail conform --device {self.device} --case {shlex.quote(case)} --seed {self.seed}{more}"


def headline(description: dict[str, Any]) -> str:
    """The device with its name, its backend and its packs."""
    device, backend = description["device"], description["backend"]
    name = str(device["properties"].get("name", "")).strip()
    versions = " + ".join([f"{backend['name']} {backend['version']}", *description["packs"]])
    return f"{device['name']}{f' ({name})' if name else ''}, {versions}"


def failure(result: Result, replay: Replay) -> list[str]:
    """The lines about a case that did not pass."""
    lines = [f"{result.status.upper():8} {result.id}"]
    lines += [f"         {line}" for line in result.message.splitlines()]
    return [*lines, f"         {replay.command(result.id)}"]


def by_group(results: Iterable[Result], kernels: Iterable[str] = ()) -> list[tuple[str, int]]:
    """The ops and parts that cases failed of, and how many, the culprit first."""
    return culprits_first(Counter(r.group for r in results if r.bad), kernels)


def culprits_first(failed: Mapping[str, int], kernels: Iterable[str]) -> list[tuple[str, int]]:
    """The device's parts, then its `kernels` in their order. The rest comes last, the most first: decompositions,
    which may only show what a kernel does."""
    place = {op: i for i, op in enumerate(kernels)}

    def rank(group_and_count: tuple[str, int]) -> tuple[int, int]:
        group, n = group_and_count
        if group.startswith("device."):
            return 0, 0
        return (1, place[group]) if group in place else (2, -n)

    return sorted(failed.items(), key=rank)


def counted(counts: Counter[Status]) -> str:
    """`118 passed, 2 failed, 1 not run`."""
    printed = [f"{counts[s]:,} {WORDS[s]}" for s in Status if counts[s]]
    return ", ".join(printed) or "nothing ran"


def _unread() -> None:
    raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


class Live:
    """Shows how far the run is: below the failures on a terminal, in a line now and then elsewhere."""

    def __init__(self, total: int, replay: Replay, out: IO[str] | None = None):
        from rich.console import Console

        self.total, self.replay = total, replay
        self.counts: Counter[Status] = Counter()
        if isinstance(stream := out or sys.stdout, TextIOWrapper):
            stream.reconfigure(errors="replace")  # the names and messages of devices are not always ASCII
        self.console = Console(file=stream, markup=False, highlight=False)
        self.console.on_broken_pipe = _unread  # rich would end the process, and the results with it
        self._headline = ""
        self._running: Callable[[], Iterable[str]] = list
        self._said = 0
        self._region: Any = None  # the lines that are drawn again and again
        self._progress: Any = None  # knows the rate
        self._task: Any = None
        self.log: list[str] = []  # the whole output

    def __enter__(self) -> Live:
        if self.console.is_terminal and not self.console.is_dumb_terminal:
            from rich.live import Live as Region
            from rich.progress import Progress

            self._progress = Progress(console=self.console)
            self._task = self._progress.add_task("", total=self.total)
            self._region = Region(get_renderable=self._drawn, console=self.console, transient=True,
                                  refresh_per_second=8)  # fmt: skip
            self._region.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._region:
            self._region.stop()
            self._region = None
            if self._headline:
                self.say(self._headline)

    def begin(self, headline: str, running: Callable[[], Iterable[str]]) -> None:
        """The headline of the run, and a function that returns the cases that run at the moment."""
        self._headline, self._running = headline, running
        if not self._region:
            self.say(headline)

    def show(self, result: Result) -> None:
        self.counts[result.status] += 1
        if result.bad:
            for i, line in enumerate(failure(result, self.replay)):
                self.say(line, COLOURS[result.status] if i == 0 else None)
        done = self.counts.total()
        if self._region:
            self._progress.update(self._task, completed=done)
        elif done * 5 // self.total > self._said and done < self.total:
            self._said = done * 5 // self.total
            self.say(f"{done} of {self.total} cases: {counted(self.counts)}")

    def say(self, text: str = "", style: str | None = None) -> None:
        self.log.append(text)
        self.console.print(text, style=style, soft_wrap=True)

    # ---- the region of a terminal -------------------------------------------------------------------------------

    def _drawn(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        counts = [(f"{self.counts[s]:,} {WORDS[s]}", COLOURS.get(s, "")) for s in Status if self.counts[s]]
        tallies = Text("  ").join(Text(*count) for count in counts)
        now = Text("  ").join(Text(case) for case in self._running() if case)
        now.truncate(max(1, self.console.width - 6), overflow="ellipsis")  # the terminal's ^C goes there
        lines = [Text(self._headline or "opening the device", style="bold"), self._bar(), tallies, now]
        for line in lines:
            if isinstance(line, Text):
                line.no_wrap, line.overflow = True, "ellipsis"
        return Group(*lines)

    def _bar(self) -> Any:
        """The bar fills the space that the figures leave; a narrow terminal omits the rate."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        task, done = self._progress.tasks[0], self.counts.total()
        figures = [f"{100 * done // max(1, self.total)} %", f"{done:,}/{self.total:,}"]
        if task.speed and self.console.width >= 60:
            figures.append(f"{task.speed:,.0f}/s")
        if task.time_remaining is not None:
            minutes, seconds = divmod(int(task.time_remaining), 60)
            figures.append(f"{minutes}:{seconds:02d} left")
        table = Table.grid(padding=(0, 2, 0, 0), expand=True)
        table.add_column(ratio=1)
        for _ in figures:
            table.add_column(justify="right", no_wrap=True)
        table.add_row(ProgressBar(self.total, done, style="bright_black", complete_style="cyan"), *figures)
        return table
