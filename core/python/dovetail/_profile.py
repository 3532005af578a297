"""dovetail.profile: what a block of code spends its time on."""

from __future__ import annotations

import functools
import gzip
import inspect
import json
import os
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from dovetail import _core
from dovetail._profile_events import Summary, Trace

__all__ = ["profile"]
_Function = TypeVar("_Function", bound=Callable[..., Any])
_SECONDS_AFTER_ERROR = 1.0  # to wait for the devices when the block ended with an exception


class profile:
    """Records ops, kernels, copies and memory of a block of code, of all threads and devices.

    with dovetail.profile("t.json"): writes a trace that ui.perfetto.dev and chrome://tracing open; a path that ends
    with .gz is compressed. Without a path, `.events`, `.summary()` and `.save(path)` give what was recorded. As a
    decorator it records each call of the function; the file has the last one.

    `max_events`: per thread; later ones are dropped, and the end of the block warns with their number.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, max_events: int = 200_000) -> None:
        if callable(path):
            raise TypeError("[profile] expected a path, got a function; write @dovetail.profile() with parentheses")
        if isinstance(max_events, bool) or not isinstance(max_events, int) or not 0 < max_events < 2**63:
            raise ValueError(f"[profile] max_events: expected a positive int, got {max_events!r}")
        self._path = None if path is None else Path(path)
        self._max_events = max_events
        self._trace: Trace | None = None

    def __enter__(self) -> profile:
        if self._path is not None:
            _check_writable(self._path)
        _core.profile_begin(self._max_events)
        _seen.clear()
        self._trace = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        interrupt = None
        try:
            _core.profile_wait(None if kind is None else _SECONDS_AFTER_ERROR)
        except KeyboardInterrupt as stop:  # what is finished by now is kept
            interrupt = stop
        finally:
            recorded = _core.profile_end()
        if recorded is None:  # a fork of the process that began it
            return
        self._trace = Trace(recorded, {**_seen, **_thread_names()})
        try:
            if self._path is not None:
                self.save(self._path)
        except OSError as failure:
            if error is None:
                raise
            error.add_note(f"[profile] the trace was not written: {failure}")
        if interrupt is not None:
            raise interrupt
        if self._trace.dropped:
            warnings.warn(
                f"[profile] {self._trace.dropped} events were dropped, as a thread recorded more than "
                f"{self._max_events}: profile a shorter block, or pass a larger max_events",
                RuntimeWarning,
                stacklevel=2,
            )

    def __call__(self, function: _Function) -> _Function:
        if not callable(function):
            raise TypeError(f"[profile] expected a function to decorate, got {type(function).__name__}")
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise TypeError(
                f"[profile] {function.__qualname__} returns before its code runs: "
                "use `with dovetail.profile()` inside"
            )

        @functools.wraps(function)
        def profiled(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return profiled  # type: ignore[return-value]

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events in Chrome's trace format, as dicts; times in microseconds from the beginning of the block."""
        return self._recorded().events

    def summary(self) -> Summary:
        """A table of ops: calls, host time and device time. print() shows it; .rows has the numbers."""
        return self._recorded().summary()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace as JSON; compressed where the path ends with .gz."""
        text = json.dumps(self._recorded().document(), separators=(",", ":"))
        if str(path).endswith(".gz"):
            with gzip.open(path, "wt", encoding="utf-8") as file:
                file.write(text)
        else:
            Path(path).write_text(text, encoding="utf-8")

    def _recorded(self) -> Trace:
        if self._trace is None:
            raise RuntimeError(
                "[profile] nothing is recorded yet: the block of `with dovetail.profile()` must end first"
            )
        return self._trace


_seen: dict[int, str] = {}  # names of threads, of which some end before the block does


def note_thread() -> None:
    """The core calls it at a thread's first op."""
    _seen[threading.get_native_id()] = threading.current_thread().name


def _thread_names() -> dict[int, str]:
    return {t.native_id: t.name for t in threading.enumerate() if t.native_id is not None}


def _check_writable(path: Path) -> None:
    """Raises OSError before the block runs, and leaves no file."""
    existed = path.exists()
    try:
        with path.open("ab"):
            pass
    except OSError as error:
        cure = (
            "name a file, not a folder"
            if path.is_dir()
            else "choose a folder that you may write to"
            if path.parent.is_dir()
            else f"create the folder first: mkdir -p {path.parent}"
        )
        raise type(error)(
            error.errno, f"[profile] cannot write the trace: {error.strerror}; {cure}", str(path)
        ) from None
    if not existed:
        path.unlink()
