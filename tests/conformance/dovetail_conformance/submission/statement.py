"""The statement: the claim, the device and the submitter. All but the submitter follows from results.json."""

from __future__ import annotations

import json
import re
from typing import Any

import tomli_w

from ..reporting.live import headline
from .wheels import HOW, Wheel

MOST_LETTERS = 200


def bad_name(submitter: str) -> str | None:
    """Why the statement cannot have this name; None where it can."""
    if len(submitter) > MOST_LETTERS or not submitter.isprintable():
        return f"expected one line of at most {MOST_LETTERS} printable characters"
    return None


def statement(document: dict[str, Any], wheels: list[Wheel], submitter: str) -> dict[str, Any]:
    run, level, device = document["run"], document["level"], document["device"]
    profile = {"profile": level["profile"]} if level["profile"] else {}
    return {
        "submitter": submitter,
        "claim": level["text"],
        "level": level["reached"],
        "asked": level["asked"],
        **profile,
        "date": run["started"],
        "seed": run["seed"],
        "command": command(run, device["name"]),
        "device": {"name": device["name"], "kind": device["kind"], "arch": device["arch"]}
        | {"product": str(device["properties"].get("name", "")).strip()},
        "versions": {
            "dovetail": document["dovetail"],
            "dovetail-conformance": run["suite"],
            "backend": f"{document['backend']['name']} {document['backend']['version']}",
            "packs": document["packs"],
            "python": document["python"],
            "numpy": document["numpy"],
            "platform": run["system"]["platform"],
            "machine": run["system"]["machine"],
        },
        "suite": {
            "must_pass_version": run["must_pass"]["version"],
            "must_pass_sha256": run["must_pass"]["sha256"],
            "cases_sha256": run["cases_sha256"],
        },
        "cases": document["counts"],
        "waivers": [{k: v for k, v in waiver.items() if v is not None} for waiver in document["waivers"]],
        "wheels": [{k: v for k, v in wheel._asdict().items() if k != "files"} for wheel in wheels],
    }


def command(run: dict[str, Any], device: str) -> str:
    """The command that makes the same run: without paths of the machine that made this one."""
    stated = f"dovetail conform --device {device} --level {run['level']} --seed {run['seed']}"
    if run["profile"]:
        stated += f" --profile {run['profile']}"
    return f"{stated} --timeout {run['timeout']:g}{' --performance' if run['performance'] else ''}"


def as_toml(stated: dict[str, Any]) -> bytes:
    return tomli_w.dumps(stated).encode()


_SUBMITTER = "submitter = "  # as_toml writes it first
_LONGEST_LINE = 12 * MOST_LETTERS + 100  # six bytes for an escaped letter, twice


def submitter_of(text: bytes) -> str | None:
    """The submitter that a statement names, or None. The text is a stranger's: only its first line is read."""
    line, end, _ = text[:_LONGEST_LINE].partition(b"\n")
    try:
        # For one printable line as_toml writes a string that JSON reads too.
        name = json.loads(line.decode().removeprefix(_SUBMITTER))
    except (ValueError, RecursionError):
        return None
    return (
        name
        if end and line.startswith(_SUBMITTER.encode()) and isinstance(name, str) and not bad_name(name)
        else None
    )


def difference(found: bytes, expected: bytes) -> str | None:
    """The key or table of the first line that differs, or None where that line has neither."""
    table, theirs, ours = None, found.splitlines(), expected.splitlines()
    for i in range(max(len(theirs), len(ours))):
        line = theirs[i] if i < len(theirs) else b""
        right = ours[i] if i < len(ours) else b""
        if line != right:
            return table or _key(line) or (_key(right) if not line else None)
        table = _table(right) or table
    return None


def _table(line: bytes) -> str | None:
    name = re.fullmatch(rb"\[+([a-z_-]+)\]+", line)
    return name[1].decode() if name else None


def _key(line: bytes) -> str | None:
    name = re.match(rb"([A-Za-z_-]{1,40}) = [^=]", line)
    return name[1].decode() if name else _table(line)


def as_text(stated: dict[str, Any], document: dict[str, Any], wheels: list[Wheel]) -> bytes:
    """The same, to be read by people."""
    versions = stated["versions"]
    lines = [
        f"# {headline(document)}: {stated['claim']}",
        "",
        f"Submitted by: {stated['submitter'] or 'nobody named'}. The run began on {stated['date']}:",
        "",
        f"    {stated['command']}",
        "",
        f"- cases: {', '.join(f'{n} {status}' for status, n in stated['cases'].items())}",
        f"- dovetail {versions['dovetail']}, dovetail-conformance {versions['dovetail-conformance']}, "
        f"Python {versions['python']}, NumPy {versions['numpy']}",
        f"- {versions['platform']}, {versions['machine']}",
        f"- must-pass list {stated['suite']['must_pass_version']}, SHA-256 {stated['suite']['must_pass_sha256']}",
        *(
            f"- {w.label}: {HOW[w.installed]}{f'; SHA-256 of its files {w.sha256}' if w.files else ''}"
            for w in wheels
        ),
        *(f"- waived: {w['case']} ({len(w['cases'])} cases): {w['reason']}" for w in stated["waivers"]),
        "",
        "Checked by `dovetail verify`. A hash proves that nothing was changed, not that the run was honest.",
        "",
    ]
    return "\n".join(lines).encode()
