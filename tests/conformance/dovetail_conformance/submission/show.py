"""The output of `dovetail verify`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from ..reporting.live import headline
from . import Refused
from .verify import Verified, verify
from .wheels import HOW

HOLDS, REFUSED = 0, 1
MOST_LETTERS = 1000  # of one line


def show(path: Path, as_json: bool) -> int:
    try:
        verified = verify(path)
    except Refused as why:
        print(_printable(f"Error: {path}: {why}"), file=sys.stderr)
        return REFUSED
    if as_json:
        wheels = [w._asdict() for w in verified.wheels]
        shown = {"sha256": verified.sha256, "statement": verified.statement, "wheels": wheels}
        print(json.dumps(shown | {"notes": verified.notes}, indent=2))
    else:
        print("\n".join(map(_printable, _lines(path, verified))))
    return HOLDS


def _lines(path: Path, verified: Verified) -> Iterator[str]:
    stated, run = verified.statement, verified.document["run"]
    versions, suite = stated["versions"], stated["suite"]
    python = f"Python {versions['python']}, NumPy {versions['numpy']}"
    yield f"{path} holds: {stated['claim']}"
    yield f"device     {headline(verified.document)}"
    yield f"by         {stated['submitter'] or 'nobody named'}"
    cases = ", ".join(f"{n} {status}" for status, n in stated["cases"].items())
    yield f"run        {stated['date']}, seed {run['seed']}: {cases}"
    yield f"on         {versions['platform']}, {versions['machine']}, {python}"
    yield f"must pass  version {suite['must_pass_version']}, {suite['must_pass_sha256']}"
    yield f"cases      {suite['cases_sha256']}"
    for wheel in verified.wheels:
        yield f"wheel      {wheel.label}, {HOW[wheel.installed]}{f': {wheel.sha256}' if wheel.files else ''}"
    yield f"package    {verified.sha256}"
    for note in verified.notes:
        yield f"note       {note}"


def _printable(line: str) -> str:
    """The package's texts are a stranger's: none of them steers the terminal or fills it."""
    shown = line if len(line) <= MOST_LETTERS else f"{line[:MOST_LETTERS]}..."
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown)
