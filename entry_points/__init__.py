"""Finds the installed backends and kernel packs, opens them on first need, and records why one fails.

Importing this reads no metadata and opens nothing.
"""

from collections.abc import Collection
from os import PathLike

from .backend import Backend, BackendError, BackendWarning, Pack
from .registry import Registry, open_in_core

__all__ = [
    "Backend",
    "BackendError",
    "BackendWarning",
    "Pack",
    "backends",
    "discover",
    "import_ops",
    "load_backend",
    "load_kernels",
    "names",
    "packs",
    "problems",
    "require",
    "why_none",
]

_registry = Registry(open_in_core)


def discover(name: str | None = None) -> None:
    """Opens every installed backend, or only the one called `name`; quarantines one that fails, with a warning."""
    _registry.discover(name)


def require(name: str) -> Backend:
    """Opens the backend. Raises BackendError if it is quarantined, ValueError if it is not installed."""
    return _registry.require(name)


def load_backend(what: str | PathLike[str] | type) -> Backend:
    """Opens a backend by name, library, Python file or Python class; ignores the environment variables.

    Tries a quarantined one again.
    """
    return _registry.load_backend(what)


def load_kernels(name_or_path: str, device: str | None = None) -> Pack:
    """Opens a kernel pack by name or library, after its backend; ignores the environment variables."""
    return _registry.load_kernels(name_or_path, device)


def import_ops(backend: str | None = None, packs: Collection[str] | None = None) -> None:
    """Imports the modules that installed backends and kernel packs name in `.ops`: they register ops.

    With `backend`, only those of that backend and its packs; with `packs`, only these of its packs. Opens nothing;
    a failure is a warning.
    """
    _registry.import_ops(backend, packs)


def packs() -> tuple[Pack, ...]:
    """The kernel packs found so far. Neither reads metadata nor opens anything."""
    return _registry.packs()


def names() -> tuple[str, ...]:
    """The names of all backends that discovery finds, opened or not. Opens nothing."""
    return _registry.names()


def backends() -> tuple[Backend, ...]:
    """The backends found so far. Neither reads metadata nor opens anything."""
    return _registry.backends()


def problems() -> tuple[str, ...]:
    """Errors in the environment variables that control discovery; each was also a warning."""
    return _registry.problems()


def why_none() -> str:
    """Why discovery found no device, and the cure. Call it when there is none."""
    return _registry.why_none()
