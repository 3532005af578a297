"""The level that the results amount to, and how it is printed. Pure logic.

L0 is the device itself, L1 the must-pass list, L2 every op: in L1's dtypes, and in every other one that the device
declares, L3 every op within a compiled function. A level holds when every case of it and of those below was run and
passed. A check of L0 may also be declared unsupported, and so may a case above L1 whose call names a dtype that L1
does not ask for; cases of L2 may be waived.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from dovetail.schema import registry

from ..cases import Case
from ..results import Result, Status
from .must_pass import must_pass

LEVELS = ("L0", "L1", "L2", "L3")
PERFORMANCE = "P"  # of cases that are measured and do not count for a level


class Standing(NamedTuple):
    """The level reached, and the cases that prevent the next."""

    level: str | None
    missed: str | None  # the first requested level that was not reached
    bad: int = 0  # its cases that did not pass
    not_run: int = 0
    cases: int = 0


def up_to(level: str) -> tuple[str, ...]:
    return LEVELS[: LEVELS.index(level) + 1]


def holds(case: Case, result: Result | None) -> bool:
    if result is None:
        return False
    if result.status is Status.UNSUPPORTED:
        return case.level == "L0" or (case.level != "L1" and bool(case.further()))
    if result.status is Status.WAIVED:
        return case.level == "L2"
    return result.status is Status.PASS


def costs(case: Case, result: Result) -> bool:
    """Does the result keep the device from the level of the case?"""
    counts = case.level in LEVELS and result.status is not Status.NOT_RUN
    return counts and not holds(case, result)


def standing(cases: Iterable[Case], results: Mapping[str, Result], wanted: str) -> Standing:
    """`cases` are those that the levels up to `wanted` require (fewer for --quick), whatever was run."""
    reached = None
    by_level: dict[str, list[Case]] = {level: [] for level in up_to(wanted)}
    for case in cases:
        if case.level in by_level:
            by_level[case.level].append(case)
    for level, demanded in by_level.items():
        missing = [c for c in demanded if not holds(c, results.get(c.id))]
        if missing or not demanded:
            ran = [c for c in missing if c.id in results and results[c.id].status is not Status.NOT_RUN]
            return Standing(reached, level, len(ran), len(missing) - len(ran), len(demanded))
        reached = level
    return Standing(reached, None)


def coverage(level: str, has_kernel: Callable[[str], bool], decompositions: Collection[str],
             further: Iterable[str] = (), waived: int = 0) -> str:  # fmt: skip
    """`f32, i32, i64, bool; 31 native, 89 decomposed`: of the ops that the level demands; views need neither.

    From L2 on the `further` dtypes that it holds in, and how many of its cases are waived.
    """
    if level == "L0":
        return "the device itself"
    ops = must_pass().ops if level == "L1" else registry
    native = sum(map(has_kernel, ops))
    decomposition = sum(op in decompositions and not has_kernel(op) for op in ops)
    dtypes = [*must_pass().dtypes, *(further if level in ("L2", "L3") else ())]
    profile = f"profile {must_pass().profile}: " if must_pass().profile else ""
    text = f"{profile}{', '.join(dtypes)}; {native} native, {decomposition} decomposed"
    return f"{text}; {waived} waived" if level in ("L2", "L3") and waived else text


def further_dtypes(cases: Iterable[Case], results: Mapping[str, Result]) -> list[str]:
    """The dtypes beyond those of L1 that are complete: each of their cases passed or is waived.

    A case with several such dtypes counts against all of them, unless one of them is known to be incomplete.
    """
    seen: dict[str, None] = {}
    missing: list[set[str]] = []  # the further dtypes of every case that did not pass
    for case in cases:
        if case.level != "L2" or not case.dtype:
            continue
        if case.dtype.brief not in must_pass().dtypes:
            seen[case.dtype.brief] = None
        result = results.get(case.id)
        if (result is None or result.status not in (Status.PASS, Status.WAIVED)) and (named := case.further()):
            missing.append({d.brief for d in named})
    incomplete = {brief for named in missing if len(named) == 1 for brief in named}
    doubtful = [named for named in missing if not named & incomplete]
    return [brief for brief in seen if brief not in incomplete.union(*doubtful)]


def closing_line(at: Standing, covered: Callable[[str], str]) -> str:
    """The last line of a run for a level."""
    reached = f"level {at.level} ({covered(at.level)})" if at.level else "no level"
    if at.missed is None:
        return reached
    if not at.cases:
        return f"{reached}; {at.missed} has no cases"
    why = []
    if at.bad:
        why.append(f"{at.bad} of {at.cases} cases did not pass")
    if at.not_run:
        why.append(f"{at.not_run} of {at.cases} were not run")
    return f"{reached}; {at.missed} not met: {', '.join(why)}"
