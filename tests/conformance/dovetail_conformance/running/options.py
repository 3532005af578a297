"""The options of the command line, checked as far as they can be without the cases and the device."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..cli import TIMEOUT
from ..reporting.live import Replay
from ..submission.package import not_whole
from ..submission.statement import bad_name
from .shard import Shard

REPORT = Path("dovetail-report")
WAIVERS = Path("waivers.toml")
STDOUT = Path("-")


class UsageError(Exception):
    """With the cure."""


@dataclass(frozen=True, kw_only=True)
class Options:
    device: str | None  # as `dovetail devices` shows it; None if the shards name it
    level: str | None = None
    quick: bool = False
    profile: str | None = None
    expression: str | None = None
    cases: tuple[str, ...] = ()
    shard: Shard | None = None
    seed: int = 0
    timeout: float = TIMEOUT
    workers: int | None = None
    waivers: Path | None = None
    resume: Path | None = None
    json_file: Path | None = None
    report: Path | None = None
    performance: bool = False
    baseline: Path | None = None
    no_report: bool = False
    package: Path | None = None
    submitter: str = ""
    api: str = "dovetail"

    def __post_init__(self) -> None:
        if self.quick and self.level in ("L2", "L3"):
            raise UsageError("--quick claims nothing above L1: leave it out, or ask for --level L1")
        if self.performance and self.shard:
            raise UsageError(
                "--performance measures one device alone: give it to a run of its own, without --shard"
            )
        if self.report and self.no_report:
            raise UsageError("--report and --no-report exclude each other: leave one out")
        file = self.json_file
        if file and file != STDOUT and not file.parent.is_dir():  # known now, not after the run
            raise UsageError(f"--json {file}: there is no folder {file.parent}: make it, or name another")
        if self.package:
            self._check_package(self.package)
        elif self.submitter:
            raise UsageError("--submitter stands in a package: name its file with --package, or leave it out")

    def _check_package(self, file: Path) -> None:
        if option := not_whole(self.record()):
            raise UsageError(f"--package shows a level, which takes all of its cases: leave {option} out")
        if why := bad_name(self.submitter):
            raise UsageError(f"--submitter: {why}")
        if not file.parent.is_dir():
            raise UsageError(f"--package {file}: there is no folder {file.parent}: make it, or name another")

    @property
    def asked(self) -> str:
        """The level; a selection is made from all there is."""
        return self.level or ("L2" if self.expression and not self.quick else "L1")

    @property
    def selection(self) -> bool:
        return bool(self.expression or self.cases)

    @property
    def waiver_file(self) -> Path | None:
        return self.waivers or (WAIVERS if WAIVERS.is_file() else None)

    @property
    def folder(self) -> Path | None:
        """The folder of the report: a run of a whole level writes one."""
        if self.report or self.no_report:
            return self.report
        if self.resume and self.resume.is_dir():
            return self.resume
        if self.quick or self.selection:
            return None
        return REPORT / f"shard-{self.shard.number}-of-{self.shard.of}" if self.shard else REPORT

    def make_folder(self) -> None:
        """Known now, not after the run, where there can be none."""
        try:
            if self.folder:
                self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            cure = "name another folder with --report, or give --no-report"
            raise UsageError(f"no report can be written to {self.folder}: {error.strerror}: {cure}") from error

    def remove_empty_folder(self) -> None:
        """Removes the folder if it is empty: without a report it would look like that of a run that was lost."""
        with suppress(OSError):
            if self.folder:
                self.folder.rmdir()

    @property
    def replay(self) -> Replay:
        timeout = None if self.timeout == TIMEOUT else self.timeout
        return Replay(self.device or "", self.seed, timeout, self.profile)

    def record(self) -> dict[str, Any]:
        """For results.json: the options that repeat the run."""
        return {
            "level": self.asked,
            "quick": self.quick,
            "profile": self.profile,
            "expression": self.expression,
            "cases": list(self.cases),
            "shard": str(self.shard) if self.shard else None,
            "seed": self.seed,
            "timeout": self.timeout,
            "performance": self.performance,
        }
