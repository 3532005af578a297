"""One run of the suite, from the options to the exit code."""

from __future__ import annotations

import os
import platform
import sys
import time
from datetime import UTC, date, datetime
from typing import IO, Any

from ..cases import Case
from ..device_checks import OPS
from ..levels.waivers import Waiver, Waivers
from ..performance.ceilings import ceilings, share
from ..reporting import baseline
from ..reporting.live import Live, headline
from ..results import Result, Status
from . import journal
from .conclusion import Conclusion, several
from .interrupts import one_interrupt
from .options import STDOUT, Options, UsageError
from .plan import plan, read_waivers
from .pool import Config, DeviceUnavailable, Pool
from .publish import publish


def processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Session:
    """The cases of a run and their results. Raises UsageError."""

    def __init__(self, options: Options):
        self.options = options
        self.plan = plan(options)
        self.cases: dict[str, Case] = {c.id: c for c in self.plan.cases}
        self.listed: list[Waiver] = read_waivers(options)
        self.record = options.record() | self.plan.record()
        self.earlier = journal.read(options.resume) if options.resume else None
        if self.earlier:
            journal.expect_same(f"--resume {options.resume}", self.earlier.run, self.record, journal.SAME_RUN)
        try:
            self.baseline = baseline.read(options.baseline) if options.baseline else None
        except baseline.BadBaseline as error:
            raise UsageError(f"--baseline: {error}") from error
        options.make_folder()
        journal.expect_unused(options.folder)
        workers = min(options.workers or min(8, processors()), max(1, len(self.cases) // 8))
        self.config = Config(options.device, options.seed, workers, options.timeout, options.api, options.profile)
        self.begin, self.started = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
        self.results: dict[str, Result] = {}
        self.description: dict[str, Any] = {}
        self.waivers = Waivers([], "", "", date.today())
        self.journal = journal.Journal(None)

    def run(self) -> int:
        """Runs the cases and prints the results; returns the exit code."""
        with one_interrupt():
            return self._run_to_the_end()

    def _run_to_the_end(self) -> int:
        stopped: BaseException | None = None
        out = sys.stderr if self.options.json_file == STDOUT else sys.stdout
        with Live(len(self.cases), self.options.replay, out) as live, Pool(self.config, live.say) as pool:
            try:
                self._run(live, pool)
            except (KeyboardInterrupt, DeviceUnavailable) as error:
                stopped = error
            except BrokenPipeError as error:
                stopped = error
                _discard(out)
            finally:
                self.journal.close()
        for id in self.cases:
            self.results.setdefault(id, Result(id, Status.NOT_RUN))
        waivers = self.waivers.report(self.plan.cases, self.results)
        performance = self._measure()
        conclusion = Conclusion(self.options, self.plan, self.results, self.description, waivers, performance,
                                self.baseline)  # fmt: skip
        return publish(conclusion, self._run_record(stopped), live, stopped, self.journal)

    def _run(self, live: Live, pool: Pool) -> None:
        self.pool = pool
        self.description = pool.open()
        earlier = self._taken_over()
        backend = self.description["backend"]
        self.waivers = Waivers(self.listed, backend["name"], backend["version"], date.today())
        live.begin(self._headline(len(earlier)), lambda: self.pool.running())
        if self.plan.level == "L0" and self.plan.whole:
            live.say(f"L0 calls the ops {', '.join(OPS)}: the device needs kernels for these")
        self.journal.open(self.options.folder, self._run_record(None), self.description, earlier.values())
        for result in earlier.values():
            self._take(result, live)
        timed = [c.id for c in self.plan.timed if c.id not in earlier]
        done = {*earlier, *timed}
        if len(earlier) == len(self.cases):
            live.say(f"nothing is left to run of {self.options.resume}: the report is written anew")
        self._ask(pool, [id for id in self.cases if id not in done], live)
        if timed:
            pool.close()  # nothing else runs during a measurement
            with Pool(self.config._replace(workers=1, debug_checks=False), live.say) as alone:
                alone.open()
                self._ask(alone, timed, live)

    def _ask(self, pool: Pool, ids: list[str], live: Live) -> None:
        self.pool = pool
        for result in pool.run(ids):
            self._take(result, live)
            if failure := self.journal.add(result, self._seconds):
                live.say(f"Error: {failure}: this run cannot be resumed", "red")

    def _measure(self) -> dict[str, Any] | None:
        """Adds to the measured cases their share of the device's ceilings; returns the ceilings."""
        measured = {c.id: self.results[c.id].measured for c in self.plan.timed}
        measured = {id: m for id, m in measured.items() if "time_s" in m}
        if not measured:
            return None
        found = ceilings(measured)
        for id, m in measured.items():
            self.results[id] = self.results[id]._replace(measured={**m, **share(id, m, found)})
        return {"ceilings": found.as_dict()}

    def _take(self, result: Result, live: Live) -> None:
        self.results[result.id] = self.waivers.apply(self.cases[result.id], result)
        live.show(self.results[result.id])

    def _taken_over(self) -> dict[str, Result]:
        """The results that --resume takes over; UsageError where it was another device."""
        if not self.earlier:
            return {}
        journal.expect_same_device(f"--resume {self.options.resume}", self.earlier.description, self.description)
        self.begin -= self.earlier.run["seconds"]
        self.started = self.earlier.run["started"]
        return {id: result for id, result in self.earlier.results.items() if id in self.cases}

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self.begin

    def _headline(self, earlier: int) -> str:
        profile = f"profile {self.options.profile}, " if self.options.profile else ""
        what = "" if self.options.selection else f"{'quick ' if self.options.quick else ''}{self.plan.level}, "
        shard = f"shard {self.options.shard}, " if self.options.shard else ""
        size = several(len(self.cases), "case") + (f" ({earlier} of them already run)" if earlier else "")
        how = f"seed {self.config.seed}, {several(self.config.workers, 'worker')}"
        return f"{headline(self.description)}: {profile}{what}{shard}{size}, {how}"

    def _run_record(self, stopped: BaseException | None) -> dict[str, Any]:
        why = {KeyboardInterrupt: "Ctrl-C", BrokenPipeError: "the output was closed"}
        return self.record | {
            "workers": self.config.workers,
            "started": self.started,
            "seconds": round(self._seconds, 3),
            "complete": stopped is None,
            "stopped_by": None if stopped is None else why.get(type(stopped), str(stopped)),
            "system": {
                "platform": platform.platform(),
                "machine": platform.machine(),
                "processors": processors(),
            },
        }


def _discard(out: IO[str]) -> None:
    """The reader of the output is gone: the rest goes to the null device."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, out.fileno())
    os.close(null)
