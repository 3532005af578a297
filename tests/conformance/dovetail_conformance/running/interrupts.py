"""Ctrl-C ends a run once. While the workers are stopped and the report is written, it is ignored."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 20.0  # seconds after the first one; the next one after them raises again


@contextmanager
def one_interrupt() -> Iterator[None]:
    """Within it the first SIGINT raises KeyboardInterrupt, and later ones are ignored for PATIENCE seconds.

    After an interrupt the handler stays: a person who holds Ctrl-C down sends more when the report is written.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # which gets no signals
        return
    first: float | None = None

    def interrupted(number: int, frame: Any) -> None:
        nonlocal first
        now = time.monotonic()
        if first is None or now > first + PATIENCE:
            first = now if first is None else first
            raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:  # the parent process has switched it off
        yield
        return
    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        if first is None:
            signal.signal(signal.SIGINT, before)
