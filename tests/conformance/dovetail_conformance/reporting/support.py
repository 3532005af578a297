"""support.csv: how the device runs each op and dtype, for a spreadsheet."""

from __future__ import annotations

import csv
import io
from typing import Any

from dovetail.schema import registry

COLUMNS = ("op", "dtype", "by", "status", "cases", "passed", "worst_ulp", "tolerance")
# A cell's status is the first of these that one of its cases has: one that only refuses well is no support.
WORST_FIRST = ("crash", "timeout", "fail", "fallback", "not-run", "waived", "unsupported", "pass")


def render(content: dict[str, Any]) -> str:
    """The file of a document."""
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for case in content["cases"]:
        op, _, asked = case["id"].partition("[")
        if case["level"] in ("L1", "L2"):
            cells.setdefault((op, asked.rstrip("]").partition(",")[0]), []).append(case)
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(COLUMNS)
    for (op, dtype), cases in cells.items():
        statuses = [case["status"] for case in cases]
        status = min(statuses, key=WORST_FIRST.index)
        by = served_by(content, op, dtype) if status != "unsupported" else "unsupported"
        row = (op, dtype, by, status, len(cases), statuses.count("pass"), _worst_ulp(cases), _tolerance(cases))
        rows.writerow(row)
    return out.getvalue()


def served_by(content: dict[str, Any], op: str, dtype: str) -> str:
    """The way in which the device runs an op: a kernel (native), the core itself, or the op's decomposition."""
    if dtype in content["kernels"].get(op, ()):
        return "native"
    declared = registry.get(op)
    return "core" if declared and (declared.core or declared.spec.view) else "decomposition"


def _worst_ulp(cases: list[dict[str, Any]]) -> str:
    found = [case["ulp"] for case in cases if "ulp" in case]
    return "" if not found else "inf" if None in found else f"{max(found):g}"


def _tolerance(cases: list[dict[str, Any]]) -> str:
    found = [case["tol"] for case in cases if "tol" in case]
    return f"{max(found):g}" if found else ""
