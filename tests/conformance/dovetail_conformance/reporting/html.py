"""index.html: the whole report in one file, which asks the network for nothing.

What must be readable everywhere is in the page as text; the cases themselves are packed, and unpacked by the page's
script when a cell is opened. A content security policy allows that script and nothing else.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import shlex
from importlib.resources import files
from typing import Any

from ..cli import TIMEOUT
from ..results import BAD, WORDS, Status
from . import plots, summary
from .live import Replay, counted
from .summary import Cell, Json

ANY = "[case]"  # a placeholder for the id in the replay command
LETTERS = {status.value: letter for status, letter in zip(Status, "pfctuwbn")}  # a case's status in the packed data


def render(document: Json, baseline: Json | None = None) -> str:
    """The page for the document of a run, and for its difference to a baseline where there is one."""
    from jinja2 import Environment, PackageLoader

    loader = PackageLoader("dovetail_conformance.reporting")
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    filters = (summary.duration, summary.moment, summary.plural, summary.quantity, counted)
    environment.filters |= {f.__name__: f for f in filters}
    environment.globals |= {"signs": summary.SIGNS, "words": WORDS, "bad": BAD, "states": summary.STATES}
    script = _static("report.js")
    found = summary.cells(document)
    measured = summary.performance(document)
    return environment.get_template("index.html.j2").render(
        document=document,
        style=_static("report.css"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        packed=packed(document, found),
        badge=summary.badge(document),
        reservations=summary.reservations(document),
        ladder=summary.ladder(document),
        facts=summary.facts(document),
        failures=summary.failures(document, found),
        matrix=summary.matrix(document, found),
        checks=summary.checks(found),
        fallbacks=summary.fallbacks(found),
        performance=measured,
        tolerance_plot=plots.tolerance(found),
        roofline_plot=plots.roofline(measured) if measured else None,
        baseline=baseline,
        command=summary.command(document),
    )


def _static(name: str) -> str:
    return files(__package__).joinpath("static", name).read_text("utf-8")


def packed(document: Json, found: dict[str, dict[str, Cell]]) -> str:
    """The cases by op and dtype, for the script: base64 of gzip of JSON."""
    device, run = document["device"]["name"], document["run"]
    timeout = run.get("timeout", TIMEOUT)
    content = {
        "replay": Replay(
            device, run.get("seed", 0), None if timeout == TIMEOUT else timeout, run.get("profile")
        ).command(ANY),
        "case": shlex.quote(ANY),
        "edges": document.get("error_edges", []),
        "statuses": {letter: WORDS[Status(value)] for value, letter in LETTERS.items()},
        "signs": {letter: summary.SIGNS[Status(value)] for value, letter in LETTERS.items()},
        "cells": {op: {d: _columns(cell) for d, cell in by_dtype.items()} for op, by_dtype in found.items()},
    }
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def _columns(cell: Cell) -> dict[str, Any]:
    """A cell's cases column by column, which packs better than row by row."""
    cases = cell.cases
    shown = ("message", "replay", "got", "expected", "index", "waiver")
    return {
        "names": [summary.parts(case["id"])[2] for case in cases],
        "status": "".join(LETTERS[case["status"]] for case in cases),
        "ulp": [case.get("ulp") for case in cases],
        "tol": [case.get("tol") for case in cases],
        "ms": [float(f"{1000 * case.get('seconds', 0):.2g}") for case in cases],
        "more": {i: {k: case[k] for k in shown if case.get(k) not in (None, "")}
                 for i, case in enumerate(cases) if case.get("message") or case.get("replay")},
        "errors": cell.histogram(),
    }  # fmt: skip
