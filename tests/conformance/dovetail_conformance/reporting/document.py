"""results.json: all results of a run, and all that the other files of a report are made from.

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
# The keys of a worker's description of the device.
DESCRIPTION = ("device", "backend", "packs", "native", "kernels", "dovetail", "python", "numpy")


def document(found: Iterable[tuple[Case, Result]], *, run: dict[str, Any], description: dict[str, Any],
             level: dict[str, Any], replay: Replay, waivers: Iterable[dict[str, Any]] = (),
             performance: dict[str, Any] | None = None) -> dict[str, Any]:  # fmt: skip
    """`description` is a worker's description of the device, `found` the result of every case of the run."""
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
    entry = {"id": case.id, "level": case.level, "status": result.status.value, "seconds": round(result.seconds, 6)}
    entry |= result.measured
    if result.message:
        entry["message"] = result.message
    if result.bad:
        entry["replay"] = replay.command(case.id)
    return entry


_NOT_MEASURED = ("id", "level", "status", "seconds", "message", "replay", "waiver", "outcome")


def results(content: dict[str, Any]) -> dict[str, Result]:
    """The results in a document, by id; waived ones as they were before."""
    found = {}
    for case in content["cases"]:
        measured = {k: v for k, v in case.items() if k not in _NOT_MEASURED}
        status = Status(case.get("outcome", case["status"]))
        found[case["id"]] = Result(case["id"], status, case["seconds"], case.get("message", ""), measured)
    return found


def _undeclared(listed: list[tuple[Case, Result]]) -> list[dict[str, str]]:
    """Calls that work although the device does not declare them, from the results of `undeclared` cases."""
    found: dict[tuple[str, str], str] = {}
    for case, result in listed:
        if message := result.measured.get("undeclared"):
            found.setdefault((case.group, case.dtype.brief if case.dtype else ""), message)
    return [{"op": op, "dtype": dtype, "message": message} for (op, dtype), message in found.items()]


def schema() -> dict[str, Any]:
    """The JSON Schema of the document, as it is published."""
    return json.loads(
        files("dovetail_conformance.reporting.data").joinpath("results.schema.json").read_text("utf-8")
    )


def malformed(content: Any) -> str | None:
    """The places where it violates the schema."""
    from jsonschema import Draft202012Validator

    error = next(Draft202012Validator(schema()).iter_errors(content), None)
    return error.json_path if error else None


def as_text(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=1, allow_nan=False) + "\n"
