"""results.json: everything that a run found out, and all that the other files of a report are made from.

data/results.schema.json describes it. A change that a reader of the file must know of raises SCHEMA_VERSION.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from ..cases import Case
from ..judging import histogram
from ..results import Result, Status
from .live import Replay

SCHEMA, SCHEMA_VERSION = "dovetail-conformance-results", 2
# What a worker says of the device.
DESCRIPTION = ("device", "backend", "packs", "native", "kernels", "dovetail", "python", "numpy")


def document(found: Iterable[tuple[Case, Result]], *, run: dict[str, Any], description: dict[str, Any],
             level: dict[str, Any], replay: Replay, waivers: Iterable[dict[str, Any]] = (),
             performance: dict[str, Any] | None = None) -> dict[str, Any]:  # fmt: skip
    """`description` is what a worker says of the device, `found` every case of the run with what became of it."""
    listed = list(found)
    counts = Counter(result.status.value for _, result in listed)
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "run": run,
        **description,
        "level": level,
        "counts": dict(sorted(counts.items())),
        "waivers": list(waivers),
        "undeclared": _undeclared(listed),
        "error_edges": list(histogram.EDGES),
        "performance": performance,
        "cases": [_case(case, result, replay) for case, result in listed],
    }


def _case(case: Case, result: Result, replay: Replay) -> dict[str, Any]:
    told = {"id": case.id, "level": case.level, "status": result.status.value, "seconds": round(result.seconds, 6)}
    told |= result.measured
    if result.message:
        told["message"] = result.message
    if result.bad:
        told["replay"] = replay.command(case.id)
    return told


_NOT_MEASURED = ("id", "level", "status", "seconds", "message", "replay", "waiver", "outcome")


def results(content: dict[str, Any]) -> dict[str, Result]:
    """What a document tells of its cases, by id; waived ones as they were before."""
    found = {}
    for case in content["cases"]:
        measured = {k: v for k, v in case.items() if k not in _NOT_MEASURED}
        status = Status(case.get("outcome", case["status"]))
        found[case["id"]] = Result(case["id"], status, case["seconds"], case.get("message", ""), measured)
    return found


def _undeclared(listed: list[tuple[Case, Result]]) -> list[dict[str, str]]:
    """What works although the device does not declare it: cases tell of it with `undeclared` among the measured."""
    told: dict[tuple[str, str], str] = {}
    for case, result in listed:
        if message := result.measured.get("undeclared"):
            told.setdefault((case.group, case.dtype.brief if case.dtype else ""), message)
    return [{"op": op, "dtype": dtype, "message": message} for (op, dtype), message in told.items()]


def schema() -> dict[str, Any]:
    """The JSON Schema of the document, as it is published."""
    return json.loads(
        files("dovetail_conformance.reporting.data").joinpath("results.schema.json").read_text("utf-8")
    )


def malformed(content: Any) -> str | None:
    """Where it is not as the schema has it."""
    from jsonschema import Draft202012Validator

    error = next(Draft202012Validator(schema()).iter_errors(content), None)
    return error.json_path if error else None


def as_text(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=1, allow_nan=False) + "\n"
