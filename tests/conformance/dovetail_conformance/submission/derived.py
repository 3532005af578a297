"""The parts of results.json that follow from the rest of it: made again, as the run made them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from ..levels.waivers import Waiver, Waivers
from ..reporting.document import DESCRIPTION, results
from ..running.conclusion import Conclusion
from ..running.options import Options
from ..running.plan import Plan, plan
from ..running.publish import document_of


def options(document: dict[str, Any]) -> Options:
    """The options of the whole-level run that results.json describes. Raises UsageError."""
    run, name = document["run"], document["device"]["name"]
    same = {key: run[key] for key in ("level", "profile", "seed", "timeout", "performance")}
    brief, full = (Options(device=device, no_report=True, **same) for device in (name.partition(":")[0], name))
    # The device may have been named without its index.
    stated = next((case for case in document["cases"] if "replay" in case), None)
    return brief if stated and stated["replay"] == brief.replay.command(stated["id"]) else full


def whole_run(document: dict[str, Any]) -> tuple[Plan, dict[str, Any]]:
    """The plan of the level in this suite, and the record of such a run. UsageError, for an unknown profile."""
    asked = options(document)
    whole = plan(asked, [pack.rpartition(" ")[0] for pack in document["packs"]])
    return whole, asked.record() | whole.record()


def derived(document: dict[str, Any], whole: Plan) -> dict[str, Any]:
    """The document, recomputed from the cases' outcomes, the waivers, the run and the device."""
    backend = document["backend"]
    waivers = Waivers(map(_waiver, document["waivers"]), backend["name"], backend["version"], _day(document))
    before = results(document)
    found = {case.id: waivers.apply(case, before[case.id]) for case in whole.cases}
    description = {key: document[key] for key in DESCRIPTION}
    report = waivers.report(whole.cases, found)
    conclusion = Conclusion(options(document), whole, found, description, report)
    kept = {key: document[key] for key in ("performance", "baseline") if key in document}  # needs the other run
    return document_of(conclusion, document["run"]) | kept


def _waiver(entry: dict[str, Any]) -> Waiver:
    fields = {key: entry[key] for key in Waiver._fields}
    return Waiver(**fields | {"expires": date.fromisoformat(entry["expires"]) if entry["expires"] else None})


def _day(document: dict[str, Any]) -> date:
    """The first day on which the waivers match the statement: shards are merged after their runs."""
    began = datetime.fromisoformat(document["run"]["started"]).astimezone(UTC).date() - timedelta(days=1)
    expired = [w["expires"] for w in document["waivers"] if w["state"] == "expired" and w["expires"]]
    day = max([began, *(date.fromisoformat(e) + timedelta(days=1) for e in expired)])
    return min(day, datetime.now(UTC).date() + timedelta(days=1))
