"""The entry point of the backend: the path of its library, and the folders of NVIDIA's libraries."""

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


def _libraries() -> list[str]:
    """The folders of NVIDIA's wheels, wherever on sys.path they are installed; nothing of theirs is imported."""
    packages = [Path(entry, "nvidia") for entry in sys.path if entry]
    return [str(folder) for package in packages for folder in sorted(package.glob("*/lib"))]


backend = Backend(str(Path(__file__).resolve().with_name(f"lib{__name__}.so")), _libraries())
