"""The files of a report, each made from the document alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from . import junit, support
from .document import as_text

RESULTS = "results.json"
FILES: dict[str, Callable[[dict[str, Any]], str]] = {
    RESULTS: as_text,
    "junit.xml": junit.render,
    "support.csv": support.render,
}
PAGE = "index.html"


def write_report(folder: Path, content: dict[str, Any], baseline: dict[str, Any] | None = None) -> Path:
    """Puts the files into the folder, where others stay; the one to look at. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, render in FILES.items():
        write(folder / name, render(content))
    from . import html  # and with it matplotlib

    write(folder / PAGE, html.render(content, baseline))
    return folder / PAGE


def write(path: Path, text: str) -> None:
    """All of it or nothing: an old file stays until the new one is complete. A pipe or a device is written to."""
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    path = path.resolve()
    new = path.with_name(path.name + ".new")
    try:
        new.write_text(text, encoding="utf-8")
        os.replace(new, path)
    except OSError:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise
