"""Finds the backends that are installed, opens them on first need, and keeps why one cannot be used.

Importing this reads no metadata and opens nothing.
"""

from .backend import Backend, BackendError, BackendWarning
from .registry import Registry, open_in_core

__all__ = [
    "Backend",
    "BackendError",
    "BackendWarning",
    "backends",
    "discover",
    "load_backend",
    "names",
    "problems",
    "require",
]

_registry = Registry(open_in_core)


def discover(name: str | None = None) -> None:
    """Opens every installed backend, or only the one called `name`. What fails is quarantined with a warning."""
    _registry.discover(name)


def require(name: str) -> Backend:
    """Opens the backend; BackendError where it is quarantined, ValueError where nobody has it."""
    return _registry.require(name)


def load_backend(name_or_path: str) -> Backend:
    """Opens a backend by name or library, whatever the environment says; tries a quarantined one again."""
    return _registry.load_backend(name_or_path)


def names() -> tuple[str, ...]:
    """The backends that discovery finds, opened or not. Opens nothing."""
    return _registry.names()


def backends() -> tuple[Backend, ...]:
    """What is known so far. Neither reads metadata nor opens anything."""
    return _registry.backends()


def problems() -> tuple[str, ...]:
    """What is wrong with the environment variables that steer discovery; each was also a warning."""
    return _registry.problems()
