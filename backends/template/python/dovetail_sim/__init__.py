"""The entry point of the backend: says where its library is, and needs nothing else to be installed."""

from pathlib import Path
from typing import NamedTuple

__all__ = ["backend"]


class Backend(NamedTuple):
    """What the loader of dovetail asks an entry point for."""

    library: str
    """The plugin's file."""
    search: list[str]
    """Folders of the libraries that it opens itself."""


backend = Backend(str(Path(__file__).resolve().with_name(f"lib{__name__}.so")), [])
