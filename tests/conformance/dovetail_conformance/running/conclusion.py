"""The conclusion of a run: the level, the exit code and the last lines on the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dovetail.schema import registry

from ..levels import standing as levels
from ..levels.must_pass import must_pass
from ..reporting.live import by_group, counted
from ..results import Result, Status
from .options import Options
from .plan import Plan

MET, NOT_MET, USAGE, UNAVAILABLE, NOT_WRITTEN, INTERRUPTED = 0, 1, 2, 3, 4, 130


def several(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


@dataclass
class Conclusion:
    options: Options
    plan: Plan
    results: Mapping[str, Result]  # of every case of the plan, with waivers applied
    description: Mapping[str, Any]  # empty where the device never came up
    waivers: list[dict[str, Any]]
    performance: dict[str, Any] | None = None  # ceilings, where anything was measured
    baseline: dict[str, Any] | None = None  # the document of an earlier run

    @cached_property
    def standing(self) -> levels.Standing:
        return levels.standing(self.plan.demanded, self.results, self.plan.level)

    @property
    def exit_code(self) -> int:
        run = [(c, self.results[c.id]) for c in self.plan.cases if c.level != levels.PERFORMANCE]
        if any(r.bad or r.status is Status.NOT_RUN or levels.costs(c, r) for c, r in run):
            return NOT_MET
        return MET if not self.plan.whole or self.standing.missed is None else NOT_MET

    @cached_property
    def level(self) -> dict[str, Any]:
        """For results.json."""
        reached = self.standing.level if self.plan.whole else None
        return {
            "reached": reached,
            "asked": self.plan.level,
            "profile": must_pass().profile,
            "text": self._level_text(),
        }

    def _level_text(self) -> str:
        if self.options.selection:
            return "no level is claimed for a selection of cases"
        if self.options.shard:
            return f"no level is claimed for shard {self.options.shard}: dovetail conform --merge reads all of them"
        return levels.closing_line(self.standing, self._coverage)

    def _coverage(self, level: str) -> str:
        native = set(self.description.get("native", ()))
        decompositions = {op.name for op in registry.values() if op.decomposition}
        further = levels.further_dtypes(self.plan.demanded, self.results)
        waived = sum(r.status is Status.WAIVED for r in self.results.values())
        return levels.coverage(level, native.__contains__, decompositions, further, waived)

    # ---- the last lines -----------------------------------------------------------------------------------------

    def lines(self, seconds: float, undeclared: list[dict[str, str]]) -> Iterator[str]:
        """The lines between the failures and the level."""
        kernels = [op for op in registry if op in self.description.get("native", ())]
        if groups := by_group(self.results.values(), kernels):
            yield f"not right: {_some([f'{name} ({n})' for name, n in groups], 20)}"
        if undeclared:
            where = [f"{u['op']} {u['dtype']}".rstrip() for u in undeclared]
            yield f"works undeclared: {_some(where, 5)}"
        yield from self._of_waivers()
        yield from self._of_unsupported()
        counts = Counter(r.status for r in self.results.values())
        yield f"{counted(counts)} in {seconds:.1f} s"

    def _of_unsupported(self) -> Iterator[str]:
        """Every unsupported case that costs a level, with its reason; if cases were named, also the others."""
        for case in self.plan.cases:
            result = self.results[case.id]
            if result.status is not Status.UNSUPPORTED:
                continue
            reason = result.message.partition("\n")[0]
            if levels.costs(case, result):
                yield f"unsupported, and {case.level} asks for it: {case.id}: {reason}"
                yield f"         {self.options.replay.command(case.id)}"
            elif self.options.cases:
                yield f"unsupported, which no level forbids: {case.id}: {reason}"

    def _of_waivers(self) -> Iterator[str]:
        for waiver in self.waivers:
            named = f"waiver {waiver['case']}"
            if waiver["state"] == "expired":
                yield f"{named} expired on {waiver['expires']}"
            elif waiver["state"] == "other-version":
                yield f"{named} is for versions {waiver['versions']}, not {self.description['backend']['version']}"
            elif waiver["state"] == "unused" and self.plan.whole and self.plan.level in ("L2", "L3"):
                yield f"{named} is not used: none of its cases failed"
            if passed := waiver["passed"]:
                yield f"{named}: {several(len(passed), 'case')} passed unexpectedly: {_some(passed, 2)}"
            if below := [id for id in waiver["refused"] if self._levels[id] != "L2"]:
                yield f"{named} does not reach L0 and L1: not waived: {_some(below, 2)}"

    @cached_property
    def _levels(self) -> dict[str, str]:
        return {c.id: c.level for c in self.plan.cases}


def _some(names: list[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
