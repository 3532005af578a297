"""Reads JSON from a stranger within bounds: it counts the punctuation before it builds any object."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

from . import Refused

# A whole L2 run has about 100,000 lists and objects, 400,000 keys and 700,000 values.
MOST_CONTAINERS = 500_000
MOST_KEYS = 1_000_000
MOST_VALUES = 4_000_000


def loads(name: str, text: bytes) -> Any:
    """The content of the member `name`. Raises Refused where it is no JSON, or too much of it."""
    _check_size(name, text)
    try:
        return json.loads(text.decode(), object_pairs_hook=_object, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{name} cannot be read: {error}") from error


def _check_size(name: str, text: bytes) -> None:
    """Punctuation within strings counts too: the bounds allow for it."""
    counts = {
        "lists and objects": (text.count(b"[") + text.count(b"{"), MOST_CONTAINERS),
        "keys": (text.count(b":"), MOST_KEYS),
        "values": (text.count(b","), MOST_VALUES),
    }
    for what, (n, most) in counts.items():
        if n > most:
            raise Refused(f"{name} cannot be read: it has {n:,} {what}, expected at most {most:,}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"{Counter(key for key, _ in pairs).most_common(1)[0][0]!r} is there twice")
    return found


def _finite(number: str) -> float:
    if not math.isfinite(value := float(number)):
        raise ValueError(f"{number} is no number of JSON")
    return value
