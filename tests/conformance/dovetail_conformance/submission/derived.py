"""What of results.json follows from the rest of it: made again, as the run made it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from dovetail.schema import registry

from ..cases import Case
from ..cli import TIMEOUT
from ..levels import standing as levels
from ..reporting import document as report
from ..reporting.live import Replay
from ..results import Result, Status

OF_RESULT = ("id", "level", "status", "seconds", "message", "replay")
DESCRIPTION = ("device", "backend", "packs", "native", "kernels", "dovetail", "python", "numpy")


def cases_hash(cases: Iterable[Case]) -> str:
    return hashlib.sha256("\n".join(c.id for c in cases).encode()).hexdigest()


def derived(document: dict[str, Any], cases: list[Case]) -> dict[str, Any]:
    """The document anew: from what became of each case, the run and the device."""
    run = document["run"]
    results = {c["id"]: _result(c) for c in document["cases"]}
    at = levels.standing(cases, results, run["level"])
    native = set(document["native"])
    bodies = {op.name for op in registry.values() if op.body}
    text = levels.closing_line(at, lambda level: levels.coverage(level, native.__contains__, bodies))
    return report.document(
        [(case, results[case.id]) for case in cases],
        run=run,
        description={key: document[key] for key in DESCRIPTION},
        level={"reached": at.level, "asked": run["level"], "profile": run["profile"], "text": text},
        replay=_replay(document),
        waivers=document["waivers"],
        performance=document["performance"],
    )


def _result(told: dict[str, Any]) -> Result:
    measured = {key: value for key, value in told.items() if key not in OF_RESULT}
    return Result(told["id"], Status(told["status"]), told["seconds"], told.get("message", ""), measured)


def _replay(document: dict[str, Any]) -> Replay:
    """The device may have been named without its index."""
    run, name = document["run"], document["device"]["name"]
    timeout = None if run["timeout"] == TIMEOUT else run["timeout"]
    brief = Replay(name.partition(":")[0], run["seed"], timeout)
    said = next((c for c in document["cases"] if "replay" in c), None)
    if said and said["replay"] == brief.command(said["id"]):
        return brief
    return brief._replace(device=name)
