"""The entry point of the kernel pack: the path of its library. Its ops are in dovetail_acme_fast.ops."""

from pathlib import Path
from typing import NamedTuple

__all__ = ["pack"]


class Pack(NamedTuple):
    """The attributes that Dovetail's loader reads."""

    library: str
    """The library's file."""
    search: list[str]
    """Folders of the libraries that it opens itself."""
    ops: str
    """The module that registers the pack's ops, for `dovetail ops` and `dovetail conform`."""


pack = Pack(str(Path(__file__).resolve().with_name(f"lib{__name__}.so")), [], f"{__name__}.ops")
