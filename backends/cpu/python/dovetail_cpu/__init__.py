"""The entry point of the CPU device: the path of its library. It imports no other package."""

import sys
from pathlib import Path
from typing import NamedTuple

__all__ = ["backend"]


class Backend(NamedTuple):
    """The attributes that Dovetail's loader reads from an entry point."""

    library: str
    """The plugin's file."""
    search: list[str]
    """Folders of the libraries that it opens itself."""


_FOLDER = Path(__file__).resolve().parent / "lib"
_SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")

backend = Backend(str(_FOLDER / f"libdovetail_cpu{_SUFFIX}"), [str(_FOLDER)])
