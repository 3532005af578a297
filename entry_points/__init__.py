"""Finds the backends and kernel packs that are installed, opens them on first need, and keeps why one fails.

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
    """Opens every installed backend, or only the one called `name`. What fails is quarantined with a warning."""
    _registry.discover(name)


def require(name: str) -> Backend:
    """Opens the backend; BackendError where it is quarantined, ValueError where nobody has it."""
    return _registry.require(name)


def load_backend(what: str | PathLike[str] | type) -> Backend:
    """Opens a backend by name, library, Python file or Python class, whatever the environment says.

    Tries a quarantined one again.
    """
    return _registry.load_backend(what)


def load_kernels(name_or_path: str, device: str | None = None) -> Pack:
    """Opens a kernel pack by name or library, whatever the environment says, after the backend that it is for."""
    return _registry.load_kernels(name_or_path, device)


def import_ops(backend: str | None = None, packs: Collection[str] | None = None) -> None:
    """Imports the modules that installed backends and kernel packs name in `.ops`: they register ops.

    Those of one backend and its packs alone, or of these packs of it, where they are named. Opens nothing; what
    fails is a warning.
    """
    _registry.import_ops(backend, packs)


def packs() -> tuple[Pack, ...]:
    """The kernel packs that are known so far. Neither reads metadata nor opens anything."""
    return _registry.packs()


def names() -> tuple[str, ...]:
    """The backends that discovery finds, opened or not. Opens nothing."""
    return _registry.names()


def backends() -> tuple[Backend, ...]:
    """What is known so far. Neither reads metadata nor opens anything."""
    return _registry.backends()


def problems() -> tuple[str, ...]:
    """What is wrong with the environment variables that steer discovery; each was also a warning."""
    return _registry.problems()


def why_none() -> str:
    """Why discovery found no device, and what helps. For when it found none."""
    return _registry.why_none()
