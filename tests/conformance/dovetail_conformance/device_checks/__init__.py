"""L0: what a device must do before any op is worth testing; and L3: what compiled functions do.

A check is a function of the target and random numbers. It raises Failed with what went wrong, or Declined where the
device declares that it lacks the feature. Everything else that it raises is a failure too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    from ..target import Target

PARTS = (
    "identity",
    "allocation",
    "memory",
    "copies",
    "events",
    "streams",
    "capture",
    "threads",
    "interchange",
    "errors",
    "faults",
    "compile",
    "programs",
)


# The ops that checks call on the device, in L1's float: L0 needs their kernels, and no others.
OPS = ("add", "copy", "matmul", "sum", "take")


class Failed(Exception):
    pass


class Declined(Exception):
    """The device itself declares that it does not have this."""


class Check(NamedTuple):
    part: str
    name: str
    run: Callable[[Target, np.random.Generator], None]
    slow: bool
    level: str


_found: list[Check] = []


def check(run: Callable | None = None, *, slow: bool = False, level: str = "L0") -> Any:
    """Declares a check, named as the function; not part of --quick if slow."""

    def declare(function: Callable) -> Callable:
        _found.append(Check(function.__module__.rpartition(".")[2], function.__name__, function, slow, level))
        return function

    return declare if run is None else declare(run)


@cache
def checks() -> tuple[Check, ...]:
    for part in PARTS:
        import_module(f"{__name__}.{part}")
    return tuple(sorted(_found, key=lambda c: PARTS.index(c.part)))


def expect(condition: Any, message: str) -> None:
    if not condition:
        raise Failed(message)


def raises(kind: type[Exception] | tuple[type[Exception], ...], call: Callable[[], Any], what: str) -> Exception:
    """The exception that the call raises; it must be of the kind and have a message."""
    names = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
    try:
        call()
    except kind as error:
        expect(
            len(str(error).split()) >= 3, f"{what} raised {type(error).__name__} without saying why: {str(error)!r}"
        )
        return error
    except Exception as error:
        raise Failed(f"{what} raised {type(error).__name__} ({error}), expected {names}") from error
    raise Failed(f"{what} was accepted, expected {names}")
