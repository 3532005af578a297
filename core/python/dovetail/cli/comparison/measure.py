"""The measurement: contenders that take turns, tries that are discarded, ceilings before points."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dovetail.cli.comparison import ceilings, figures, kinds, load
from dovetail.cli.comparison.points import Point
from dovetail.cli.comparison.processes import OURS, Process, WorkerError

BATCHES = 7
_FEW, _LONG = 2, 1.0  # a contender whose calls took so many seconds gets no more than so many batches
_PAUSE = 0.01  # seconds before a batch
_PROBE_SECONDS = 0.1
Step = Callable[[str], None]


class Contest:
    """The workers of one number of threads."""

    def __init__(self, peers: Sequence[str], threads: int, device: str | None):
        self.threads = threads
        self.workers: list[Process] = []
        try:
            for name in (OURS, *peers):
                self.workers.append(Process(name, threads, device if name == OURS else None))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for worker in self.workers:
            worker.close()

    def measure(self, point: Point, seconds: float) -> dict[str, Any]:
        """The times of a point by contender, with what they moved, and which results differ from ours."""
        answers, errors = self._prepare(point, seconds / BATCHES)
        samples = {name: answer["sample"] for name, answer in answers.items()}
        compared = point.to or point.dtype
        differs = [
            n for n in samples if OURS in samples and not figures.agrees(samples[OURS], samples[n], compared)
        ]
        able = [worker for worker in self.workers if worker.name in answers]
        times, taken = load.least_loaded(lambda: self._turns(able, errors), self._watch)
        cost = answers.get(OURS) or next(iter(answers.values()), {"read": 0.0, "written": 0.0})
        return {
            "times": times,
            "differs": differs,
            "errors": errors,
            "read": cost["read"],
            "written": cost["written"],
            "load": taken,
            "loaded": taken is not None and taken > load.MOST,
        }

    def _prepare(self, point: Point, seconds: float) -> tuple[dict[str, Any], dict[str, str]]:
        """The answers of those that have a kernel, and the errors of those that failed."""
        answers, errors = {}, {}
        for worker in self.workers:
            try:
                answer = worker.ask(prepare=point.as_dict(), seconds=seconds)
            except WorkerError as error:
                answer = {"error": str(error)}
            if "error" in answer:
                errors[worker.name] = answer["error"]
            elif answer.get("kernel", True):
                answers[worker.name] = answer
            elif worker.name == OURS:
                errors[worker.name] = f"there is no function for {point.op} of {point.dtype}"
        return answers, errors

    def _watch(self) -> Callable[[], float | None]:
        return load.watch([worker.pid for worker in self.workers], self.threads)

    def _turns(self, workers: Sequence[Process], errors: dict[str, str]) -> dict[str, Any]:
        batches: dict[str, list[float]] = {worker.name: [] for worker in workers}
        for turn, worker in itertools.product(range(BATCHES), workers):
            found = batches[worker.name]
            if worker.name in errors or (turn >= _FEW and sum(found) > _LONG):
                continue
            try:
                found.append(worker.ask(time=_PAUSE)["seconds"])
            except WorkerError as error:
                errors[worker.name] = str(error)
        return {name: figures.times(found) for name, found in batches.items() if name not in errors}


def _flops(point: Point) -> float:
    kind = kinds.kind(point.op)
    return kind.flops(point) if kind and kind.flops else 0.0


class Comparison:
    """All that is measured; complete in itself at any time, as Ctrl-C may end it."""

    def __init__(self, points: Sequence[Point], peers: Sequence[str], device: str | None, seconds: float):
        self.points, self.peers, self.device, self.seconds = points, peers, device, seconds
        self.versions: dict[str, str] = {}
        self.ceilings: dict[int, ceilings.Ceilings] = {}
        self.measured: list[tuple[int, int, dict[str, Any]]] = []  # index of the point, threads, what was measured

    def run(self, threads: int, step: Step) -> None:
        """Measures everything with so many threads. Raises WorkerError where a contender cannot be used."""
        contest = Contest(self.peers, threads, self.device)
        try:
            self.versions = {worker.name: worker.version for worker in contest.workers}
            limits = self.ceilings[threads] = ceilings.Ceilings()
            for probe in ceilings.probes(threads, self.points):
                step(f"the machine's ceilings, {threads} thread{'s'[: threads > 1]}")
                self._probe(contest, limits, probe)
            for index, point in enumerate(self.points):
                step(f"{point.op} {point.dtype} {point.label}, {threads} thread{'s'[: threads > 1]}")
                self.measured.append((index, threads, contest.measure(point, self.seconds)))
        finally:
            contest.close()

    def steps(self, threads: Iterable[int]) -> int:
        return sum(len(ceilings.probes(n, self.points)) + len(self.points) for n in threads)

    def _probe(self, contest: Contest, limits: ceilings.Ceilings, probe: ceilings.Probe) -> None:
        found = contest.measure(probe.point, min(self.seconds, _PROBE_SECONDS))
        if (seconds := ceilings.fastest(found["times"])) is not None:
            limits.add(probe, found["read"] + found["written"], _flops(probe.point), seconds)

    def rows(self) -> list[dict[str, Any]]:
        """A row for each point and number of threads, in the order of the points."""
        for index, threads, found in self.measured:  # a product among the points may be the fastest of all
            point = self.points[index]
            fair = {name: t for name, t in found["times"].items() if name not in found["differs"]}
            if point.op in ceilings.PROVING and (seconds := ceilings.fastest(fair)) is not None:
                self.ceilings[threads].add_product(point.dtype, _flops(point), seconds)
        for fewer, threads in itertools.pairwise(sorted(self.ceilings)):
            self.ceilings[threads].raise_to(self.ceilings[fewer])
        return [self._row(*measured) for measured in sorted(self.measured, key=lambda m: m[:2])]

    def _row(self, index: int, threads: int, found: dict[str, Any]) -> dict[str, Any]:
        point, times = self.points[index], found["times"]
        read, written, flops = found["read"], found["written"], _flops(self.points[index])
        floor = self.ceilings[threads].floor(point.dtype, read, written, flops)
        return {
            **point.as_dict(),
            "label": point.label,
            "threads": threads,
            "times": times,
            "ratio": figures.ratio(times, found["differs"]),
            "best_peer": figures.best_peer(times, found["differs"]),
            "ceiling_percent": ceilings.percent(floor, times[OURS]["min"]) if OURS in times else None,
            "bytes": read + written,
            "flops": flops,
            "differs": found["differs"],
            "errors": found["errors"],
            "load": found["load"],
            "loaded": found["loaded"],
        }

    def as_dict(self, threads: Sequence[int], complete: bool) -> dict[str, Any]:
        rows = self.rows()
        return {
            "device": self.device,
            "complete": complete,
            "contenders": self.versions,
            "ceilings": {str(n): limits.as_dict() for n, limits in self.ceilings.items()},
            "summary": {str(n): figures.summary(row for row in rows if row["threads"] == n) for n in threads}
            | {"all": figures.summary(rows)},
            "points": rows,
        }
