"""Makes a package of a run that is over."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from . import archive
from .statement import as_text, as_toml, statement
from .wheels import Wheel, installed


def not_whole(run: Mapping[str, Any]) -> str | None:
    """The option that makes a run less than a submission takes; None where there is none."""
    given = {"--quick": run["quick"], "-k": run["expression"], "--case": run["cases"], "--shard": run["shard"]}
    return next((option for option, value in given.items() if value), None)


def package(document: dict[str, Any], log: str, submitter: str = "") -> bytes:
    """`log`: the run's output on the terminal."""
    return assemble(document, log, submitter, installed(document))


def assemble(document: dict[str, Any], log: str, submitter: str, wheels: Iterable[Wheel]) -> bytes:
    took_part = list(wheels)
    stated = statement(document, took_part, submitter)
    return archive.pack(
        {
            archive.LOG: log.encode("utf-8", "replace"),
            archive.RESULTS: _json(document),
            archive.STATEMENT: as_toml(stated),
            archive.STATEMENT_TEXT: as_text(stated, document, took_part),
            archive.WHEELS: _json({"wheels": [wheel._asdict() for wheel in took_part]}),
        },
        mtime(document),
    )


def mtime(document: dict[str, Any]) -> int:
    """The time at which the run began, for every member of the archive."""
    return int(datetime.fromisoformat(document["run"]["started"]).timestamp())


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()
