"""Loops of decompositions whose number of rounds follows from sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["loop"]


def loop(count: int, body: Callable[..., Any], *carries: Any) -> tuple[Any, ...]:
    """The carries after carries = body(i, *carries) for each i in range(count), as a tuple.

        x, y = loop(n.bit_length(), lambda i, x, y: (x + y, y * (1 << i)), x, y)

    In a trace the body runs once, on tracers of round 0, and becomes a program of its own: a loop serves every
    count, and the carries' sizes may change from round to round. It may use arrays and integers from outside.
    """
    for carry in carries:
        if record := getattr(carry, "__dovetail_loop__", None):
            return record(count, body, carries)
    for i in range(count):
        results = body(i, *carries)
        carries = results if isinstance(results, tuple) else (results,)
    return carries
