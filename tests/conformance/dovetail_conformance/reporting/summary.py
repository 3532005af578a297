"""The content of the report, drawn from the document of a run (and nothing else): no HTML here.

Everything that documents of older versions lack counts as empty.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from dovetail.schema import registry
from dovetail.schema.dtypes import ALL

from ..results import BAD, Status
from .live import counted, culprits_first

Json = dict[str, Any]
PERFORMANCE = "P"  # the level of cases that measure and judge nothing
DTYPES = [d.brief for d in ALL]
FAILED_CASES, FAILED_GROUPS = 5, 40  # listed at the top; the cells have them all


class State(NamedTuple):
    """The state of a cell of the matrix, shown by its letter and its colour."""

    name: str
    sign: str
    means: str


STATES = {
    state.name: state
    for state in (
        State("native", "N", "passed, with a kernel of the device"),
        State("decomposition", "D", "passed as its decomposition: a graph of other ops"),
        State("core", "C", "passed, served by the core: a view"),
        State("failed", "✗", "failed, crashed, timed out or fell back to another device"),
        State("waived", "W", "fails, and a waiver gives the reason"),
        State("unsupported", "–", "the device declares that it cannot, or not in every case"),
        State("not-run", "○", "not run, or not all of it"),
    )
}
SIGNS = {
    Status.PASS: "✓", Status.FAIL: "✗", Status.CRASH: "✗", Status.TIMEOUT: "✗", Status.FALLBACK: "✗",
    Status.WAIVED: "W", Status.UNSUPPORTED: "–", Status.NOT_RUN: "○",
}  # fmt: skip
LEVELS = {
    "L0": "the device itself",
    "L1": "the must-pass ops",
    "L2": "every op and dtype",
    "L3": "every op, compiled",
}


def parts(id: str) -> tuple[str, str, str]:
    """`add[f32,values]` is the op, the dtype and the rest; a check of the device has no dtype."""
    group, _, inside = id.partition("[")
    inside = inside.removesuffix("]")
    if group.startswith("device."):
        return group, "", inside
    dtype, _, rest = inside.partition(",")
    return group, dtype, rest


class Cell(NamedTuple):
    """All cases of an op and a dtype, or of a part of the device."""

    op: str
    dtype: str
    cases: list[Json]

    def counts(self) -> Counter[str]:
        return Counter(case["status"] for case in self.cases)

    def state(self, served: str) -> State:
        """The worst outcome of a cell; if all passed, what `served` the op."""
        statuses = self.counts()
        if statuses.keys() & BAD:
            return STATES["failed"]
        for status in (Status.NOT_RUN, Status.WAIVED, Status.UNSUPPORTED):
            if statuses[status]:
                return STATES[status]
        return STATES[served]

    def label(self, state: State) -> str:
        """`add f32: native, 30 passed, 5 unsupported`."""
        return f"{self.op} {self.dtype}: {state.name}, {counted(self.counts())}"

    def worst(self) -> float | None:
        """The share of its tolerance that it uses: the largest error in units of the tolerance."""
        used = [r for r in map(used_tolerance, self.cases) if r is not None]
        return max(used, default=None)

    def histogram(self) -> list[int]:
        """Elements by the size of their error, over all cases."""
        return [sum(bins) for bins in zip(*(case["errors"] for case in self.cases if case.get("errors")))]


def used_tolerance(case: Json) -> float | None:
    """The error in units of the tolerance; None where nothing may differ."""
    tol, ulp = case.get("tol"), case.get("ulp")
    return ulp / tol if tol and ulp is not None else None


def cells(document: Json) -> dict[str, dict[str, Cell]]:
    """The cells by op (or part of the device) and dtype, in the order of the document."""
    found: dict[str, dict[str, Cell]] = {}
    for case in document["cases"]:
        if case.get("level") != PERFORMANCE:
            group, dtype, _ = parts(case["id"])
            found.setdefault(group, {}).setdefault(dtype, Cell(group, dtype, [])).cases.append(case)
    return found


def plural(n: int, one: str, many: str = "") -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def quantity(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def moment(iso: str) -> str:
    return iso.replace("T", " ").replace("+00:00", " UTC")


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{seconds:.1f} s"


# ---- the head of the report -------------------------------------------------------------------------------------


def badge(document: Json) -> Json:
    """The level, and whether it is the requested one."""
    level = document["level"]
    reached, asked = level.get("reached"), level.get("asked")
    tone = "none" if reached is None else "met" if reached == asked else "short"
    return {"level": reached, "asked": asked, "profile": level.get("profile"), "text": level.get("text", ""),
            "tone": tone}  # fmt: skip


def selected(run: Json) -> bool:
    """Whether it is a selection of the cases, which cannot prove a level."""
    return bool(run.get("expression") or run.get("cases") or run.get("shard"))


def reservations(document: Json) -> list[str]:
    """The limits of this run: the report begins with them."""
    run, counts = document["run"], document["counts"]
    lines = []
    if not run.get("complete", True):
        ran, total = len(document["cases"]) - counts.get(Status.NOT_RUN, 0), len(document["cases"])
        lines.append(f"The run is not complete: {run.get('stopped_by')}. {ran:,} of {total:,} cases were run.")
    if run.get("expression") or run.get("cases"):
        ids = plural(len(run.get("cases") or ()), "case")
        asked = f"-k {shlex.quote(run['expression'])}" if run.get("expression") else ids
        lines.append(f"Only a selection of cases was run ({asked}): no level is claimed.")
    if run.get("shard"):
        lines.append(f"This is shard {run['shard']} of a run: no level is claimed for it alone.")
    if run.get("quick"):
        lines.append("A quick run has fewer cases of each op, and claims nothing above L1.")
    if profile := document["level"].get("profile"):
        lines.append(f"The profile {profile} restricts the dtypes: the level is that profile's, not the full one.")
    return lines


def ladder(document: Json) -> list[Json]:
    """The number of cases per level and status."""
    reached = document["level"].get("reached")
    by_level: dict[str, Counter[str]] = {}
    for case in document["cases"]:
        by_level.setdefault(case.get("level", ""), Counter())[case["status"]] += 1
    rungs, claimed = [], not selected(document["run"])
    for level, what in LEVELS.items():
        if counts := by_level.get(level):
            held = reached is not None and level <= reached
            rungs.append({"level": level, "what": what, "held": held, "claimed": claimed, "counts": counts,
                          "total": counts.total()})  # fmt: skip
    return rungs


def facts(document: Json) -> dict[str, dict[str, Any]]:
    """The device and the system: headings with names and values."""
    device, backend, run = document["device"], document.get("backend", {}), document["run"]
    properties = device.get("properties", {})
    about_device = {"device": device["name"], "kind": device.get("kind"), "architecture": device.get("arch")}
    about_device |= {name.replace("_", " "): _shown(name, value) for name, value in properties.items()
                     if name not in ("arch", "mem_free")}  # fmt: skip
    software = {"backend": f"{backend.get('name', '')} {backend.get('version', '')}".strip(),
                "build": backend.get("build_info"), "ABI": backend.get("abi"),
                "kernel packs": ", ".join(document.get("packs", ())), "dovetail": document.get("dovetail"),
                "suite": run.get("suite"), "Python": document.get("python"),
                "NumPy": document.get("numpy")}  # fmt: skip
    system = {name.replace("_", " "): _shown(name, value) for name, value in run.get("system", {}).items()}
    found = {"Device": about_device, "Software": software, "System": system}
    return {head: {k: v for k, v in rows.items() if v not in (None, "")} for head, rows in found.items()}


def _shown(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{k} {_shown(k, v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, int) and name.startswith("mem"):
        return f"{value / 2**30:.1f} GiB"
    if isinstance(value, float):
        return f"{value:.4g}" if value else ""
    return str(value)


# ---- the matrix, the checks and the failures ------------------------------------------------------------------


def matrix(document: Json, found: dict[str, dict[str, Cell]]) -> Json:
    """The ops in the families of the schema, each with a cell or None for every dtype that has one."""
    ops = {op: by_dtype for op, by_dtype in found.items() if not op.startswith("device.")}
    present = {dtype for by_dtype in ops.values() for dtype in by_dtype}
    columns = sorted(present, key=lambda d: (DTYPES.index(d) if d in DTYPES else len(DTYPES), d))
    served = _served_by(document)
    families: dict[str, list[Json]] = {}
    for op, by_dtype in ops.items():
        row = []
        for dtype in columns:
            cell = by_dtype.get(dtype)
            state = cell and cell.state(served(op, dtype))
            row.append(cell and state and {"state": state, "label": cell.label(state), "dtype": dtype})
        worst = max((w for c in by_dtype.values() if (w := c.worst()) is not None), default=None)
        family = registry[op].__module__.rpartition(".")[2] if op in registry else "other"
        families.setdefault(family, []).append({"op": op, "cells": row, "worst": worst})
    listed = [cell for rows in families.values() for row in rows for cell in row["cells"] if cell]
    states = Counter(cell["state"].name for cell in listed)
    return {"dtypes": columns, "families": families, "states": states}


def _served_by(document: Json) -> Any:
    """A function that returns what computes an op in a dtype."""
    native, kernels = set(document.get("native", ())), document.get("kernels")

    def served(op: str, dtype: str) -> str:
        if dtype in kernels.get(op, ()) if kernels is not None else op in native:
            return "native"
        return "core" if op in registry and (registry[op].core or registry[op].spec.view) else "decomposition"

    return served


def checks(found: dict[str, dict[str, Cell]]) -> list[Json]:
    """L0, part by part."""
    rows = []
    for group, by_dtype in found.items():
        if group.startswith("device."):
            counts = by_dtype[""].counts()
            listed = [case | {"name": parts(case["id"])[2]} for case in by_dtype[""].cases]
            rows.append({"part": group.removeprefix("device."), "counts": counted(counts), "cases": listed,
                         "bad": bool(counts.keys() & BAD)})  # fmt: skip
    return rows


def failures(document: Json, found: dict[str, dict[str, Cell]]) -> Json:
    """The groups that cases failed of, the culprit first, each with one case for every message."""
    by_group: dict[str, list[Json]] = {}
    for case in document["cases"]:
        if case["status"] in BAD:
            by_group.setdefault(parts(case["id"])[0], []).append(case)
    groups = []
    kernels = [op for op in registry if op in document.get("native", ())]
    for name, total in culprits_first({name: len(bad) for name, bad in by_group.items()}, kernels):
        bad = by_group[name]
        dtypes = {d: n for d, cell in found.get(name, {}).items() if d and (n := _count(cell.cases, BAD))}
        examples = list({case.get("message"): case for case in reversed(bad)}.values())[::-1][:FAILED_CASES]
        groups.append({"name": name, "total": total, "dtypes": dtypes, "cases": examples})
    total = sum(group["total"] for group in groups)
    return {"total": total, "groups": groups[:FAILED_GROUPS], "more": groups[FAILED_GROUPS:]}


def fallbacks(found: dict[str, dict[str, Cell]]) -> list[Json]:
    """The ops that another device computed, by dtype."""
    moved = []
    for op, by_dtype in found.items():
        for dtype, cell in by_dtype.items():
            if cases := [case for case in cell.cases if case["status"] == Status.FALLBACK]:
                message = cases[0].get("message", "")
                moved.append({"op": op, "dtype": dtype, "total": len(cases), "message": message})
    return moved


def _count(cases: Iterable[Json], statuses: Iterable[str]) -> int:
    return sum(case["status"] in statuses for case in cases)


# ---- performance, and how to do it again ------------------------------------------------------------------------


def performance(document: Json) -> Json | None:
    """The measured times, with the ceilings of the same run."""
    rows = []
    for case in document["cases"]:
        if case.get("level") == PERFORMANCE:
            op, dtype, rest = parts(case["id"])
            sample = rest.removeprefix("perf").lstrip(",=").replace(",", ", ")
            rows.append(case | {"op": op, "dtype": dtype, "sample": sample})
    ceilings = (document.get("performance") or {}).get("ceilings") or {}
    return {"rows": rows, "ceilings": ceilings, "roofs": _roofs(ceilings)} if rows or ceilings else None


def _roofs(ceilings: Json) -> dict[str, float]:
    """The fastest way through memory for each size of working set: `read, small` and its GB/s."""
    roofs = {}
    for size, rates in ceilings.get("memory", {}).items():
        way = max(("copy", "read", "write"), key=lambda way: rates[f"{way}_gb_per_s"])
        roofs[f"{way}, {size}"] = rates[f"{way}_gb_per_s"]
    return roofs or ({"copy": rate} if (rate := ceilings.get("copy_gb_per_s")) else {})


def command(document: Json) -> str:
    """The command line that ran this."""
    run = document["run"]
    words = ["dovetail", "conform", "--device", document["device"]["name"]]
    if document["level"].get("asked"):
        words += ["--level", document["level"]["asked"]]
    for name, flag in (("profile", "--profile"), ("shard", "--shard"), ("expression", "-k")):
        if run.get(name):
            words += [flag, str(run[name])]
    words += [word for case in run.get("cases") or () for word in ("--case", case)]
    words += [f"--{name}" for name in ("quick", "performance") if run.get(name)]
    return shlex.join([*words, "--seed", str(run.get("seed", 0))])
