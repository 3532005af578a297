"""results.json: everything that a run found out."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..results import Result
from .live import Replay

STDOUT = Path("-")
SCHEMA, SCHEMA_VERSION = "dovetail-conformance-results", 1


def document(results: Iterable[Result], run: dict[str, Any], description: dict[str, Any], level: dict[str, Any],
             replay: Replay) -> dict[str, Any]:  # fmt: skip
    """results.json: everything that the run found out."""
    listed = list(results)
    cases = []
    for r in listed:
        case: dict[str, Any] = {"id": r.id, "status": r.status.value, "seconds": round(r.seconds, 6), **r.measured}
        if r.message:
            case["message"] = r.message
        if r.bad:
            case["replay"] = replay.command(r.id)
        cases.append(case)
    counts = Counter(r.status.value for r in listed)
    return {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, "run": run, **description, "level": level,
            "counts": dict(sorted(counts.items())), "cases": cases}  # fmt: skip


def write(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    if path == STDOUT:
        sys.stdout.write(text)
    else:
        path.write_text(text, encoding="utf-8")
