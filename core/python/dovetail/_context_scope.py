"""Scopes that hold for the calls of a thread and task: what dovetail.autocast and dovetail.nn.sdpa_engine share."""

from __future__ import annotations

from contextlib import ContextDecorator

TYPE_CHECKING = False  # importing typing would take longer than everything else
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import ContextVar
    from typing import Any, Self

__all__ = ["ContextScope"]


class ContextScope(ContextDecorator):
    """`with scope:`, or a decorator of plain functions. The core reads the last entry of `_variable`, a tuple."""

    _variable: ContextVar[tuple[Any, ...]]

    def _entry(self) -> Any:
        """What the core reads while the scope holds, an object of its own each time."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        entry = self._entry()
        entry.owner = self
        self._variable.set((*self._variable.get(()), entry))
        return self

    def __exit__(self, *args: object) -> None:
        entries = list(self._variable.get(()))
        for i in reversed(range(len(entries))):  # where a generator holds it, others may have come after
            if entries[i].owner is self:
                del entries[i]
                break
        self._variable.set(tuple(entries))

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction

        if isgeneratorfunction(function) or iscoroutinefunction(function) or isasyncgenfunction(function):
            name = type(self).__name__
            raise TypeError(
                f"[{name}] {function.__qualname__} runs after its call has returned: expected a plain function; "
                f"write `with {name}(...)` inside of it"
            )
        return super().__call__(function)
