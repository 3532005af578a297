"""The entry point of the CPU device: says where its library is, and needs nothing else to be installed."""

import sys
from pathlib import Path
from typing import NamedTuple

__all__ = ["backend"]


class Backend(NamedTuple):
    """What the loader of dovetail asks an entry point for."""

    library: str
    """The plugin's file."""
    search: list[str]
    """Folders of the libraries that it opens itself."""


_FOLDER = Path(__file__).resolve().parent / "lib"
_SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")

backend = Backend(str(_FOLDER / f"libdovetail_cpu{_SUFFIX}"), [str(_FOLDER)])
