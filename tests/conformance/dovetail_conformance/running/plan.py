"""Which cases a run asks, and whether they make a level."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import version
from typing import Any

from dovetail.entry_points import import_ops

from ..cases import Case, all_cases, choose_profile, find
from ..levels import standing as levels
from ..levels.must_pass import must_pass
from ..levels.standing import PERFORMANCE
from ..levels.waivers import BadWaivers, Waiver, read
from ..performance.ceilings import is_probe
from .options import Options, UsageError
from .selection import BadExpression, selects


@dataclass(frozen=True)
class Plan:
    level: str
    demanded: list[Case]  # required by the level; fewer for --quick
    cases: list[Case]  # to be run
    whole: bool  # they make a level
    timed: tuple[Case, ...] = ()  # those of `cases` that are measured, after all others and alone

    def record(self) -> dict[str, Any]:
        """For results.json: the meaning of the level's name."""
        ids = "\n".join(c.id for c in self.demanded)
        return {
            "must_pass": {"version": must_pass().version, "sha256": must_pass().sha256},
            "cases_sha256": hashlib.sha256(ids.encode()).hexdigest(),
            "suite": version("dovetail-conformance"),
        }


def plan(options: Options, packs: Collection[str] | None = None) -> Plan:
    """Raises UsageError where there is nothing to run.

    A level takes the ops of the schema and those that the device's own wheels bring: its backend and its kernel
    packs, or these `packs` of it. What is installed for other devices changes no level.
    """
    backend = options.device.partition(":")[0] if options.device else None
    import_ops(None if options.selection else backend, packs)
    try:
        choose_profile(options.profile)
    except ValueError as error:
        raise UsageError(f"--profile: {error}") from error
    of = levels.up_to(options.asked)
    demanded = [c for c in all_cases().values() if c.level in of and (c.quick or not options.quick)]
    offered = [c for c in all_cases().values() if c.level == PERFORMANCE] if options.performance else []
    chosen = [_find(id) for id in dict.fromkeys(options.cases)] if options.cases else demanded + offered
    if options.expression:
        chosen = _matching(options.expression, chosen, options.asked)
    if options.shard:
        chosen = [c for c in chosen if options.shard.has(c.id)]
        if not chosen:
            raise UsageError(f"--shard {options.shard}: no case falls into that part: make fewer")
    asked = [c for c in chosen if c.level != PERFORMANCE]
    timed = [c for c in chosen if c.level == PERFORMANCE]
    if options.performance and timed:  # a selection is measured against the same ceilings
        timed = list({c.id: c for c in [*(c for c in offered if is_probe(c.id)), *timed]}.values())
    return Plan(options.asked, demanded, asked + timed, not (options.selection or options.shard), tuple(timed))


def read_waivers(options: Options) -> list[Waiver]:
    """The waivers of the file, which must be for existing cases."""
    try:
        return read(options.waiver_file, all_cases()) if options.waiver_file else []
    except BadWaivers as error:
        raise UsageError(str(error)) from error


def _find(id: str) -> Case:
    try:
        return find(id)
    except KeyError:
        near = get_close_matches(id, all_cases(), 1, 0.5)
        raise UsageError(f"there is no case {id!r}{f': did you mean {near[0]!r}?' if near else ''}") from None


def _matching(expression: str, pool: list[Case], level: str) -> list[Case]:
    try:
        chosen = selects(expression, {c.group for c in all_cases().values()})
    except BadExpression as error:
        raise UsageError(str(error)) from error
    if matching := [c for c in pool if chosen(c.id)]:
        return matching
    beyond = sorted(c.level for c in all_cases().values() if chosen(c.id))
    if not beyond:
        raise UsageError(f"-k {expression!r} matches no case of {level}{_nearest(expression)}")
    option = "--performance" if beyond[0] == PERFORMANCE else f"--level {beyond[0]}"
    hint = f"; {beyond.count(beyond[0])} cases above it do: add {option}"
    raise UsageError(f"-k {expression!r} matches no case of {level}{hint}")


def _nearest(expression: str) -> str:
    """The nearest op's name; kernel tables have their names after "dvt."."""
    word = expression.removeprefix("dvt.").partition("[")[0]
    near = get_close_matches(word, {c.op for c in all_cases().values()}, 1, 0.7)
    return f": did you mean {near[0]!r}?" if near else ": see --list"
