"""The entry point of the backend: the path of its library. It imports only the standard library."""

from pathlib import Path
from typing import NamedTuple

__all__ = ["backend"]


class Backend(NamedTuple):
    """The attributes that Dovetail's loader reads."""

    library: str
    """The plugin's file."""
    search: list[str]
    """Folders of the libraries that the plugin opens itself."""


backend = Backend(str(Path(__file__).resolve().with_name(f"lib{__name__}.so")), [])
