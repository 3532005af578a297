"""What is derived from measured times. Pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from dovetail.cli.comparison.processes import OURS

CAP, BEHIND = 4.0, 0.9
_TOLERANCES = {"float64": 1e-6, "float32": 1e-3, "int32": 0.0, "int64": 0.0, "bool": 0.0}  # others are narrow: 0.03
_AGREEING = 0.99  # of the values: a rounding may change an integer, or the order of two


def times(batches: Sequence[float]) -> dict[str, float]:
    return {"min": min(batches), "median": median(batches)}


def agrees(ours: Mapping[str, Any], theirs: Mapping[str, Any], dtype: str) -> bool:
    """Whether two samples come from the same computation. Loose: accuracy is for the conformance suite."""
    if ours["shape"] != theirs["shape"]:
        return False
    a, b = np.asarray(ours["values"]), np.asarray(theirs["values"])
    if a.size == 0:
        return True
    tolerance = _TOLERANCES.get(dtype, 0.03)
    finite = np.abs(a[np.isfinite(a)])
    scale = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
    close = np.isclose(b, a, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    return float(np.mean(close)) >= _AGREEING


def best_peer(measured: Mapping[str, Mapping[str, float]], differs: Iterable[str] = ()) -> str | None:
    """The peer with the least time, without those whose results differ."""
    peers = [name for name in measured if name != OURS and name not in set(differs)]
    return min(peers, key=lambda name: measured[name]["min"], default=None)


def ratio(measured: Mapping[str, Mapping[str, float]], differs: Iterable[str] = ()) -> float | None:
    """The time of the best peer, divided by ours: more than 1 where ours is less. None without either."""
    peer = best_peer(measured, differs)
    if peer is None or OURS not in measured:
        return None
    return measured[peer]["min"] / measured[OURS]["min"]


def geometric_mean(ratios: Sequence[float], cap: float = CAP) -> float | None:
    """With each ratio capped, so that one op that is far ahead does not hide others that are behind."""
    if not ratios:
        return None
    return math.exp(sum(math.log(min(r, cap)) for r in ratios) / len(ratios))


def summary(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Of the points of one number of threads, or of all."""
    rows = list(rows)
    ratios = [row["ratio"] for row in rows if row["ratio"] is not None]
    return {
        "points": len(rows),
        "compared": len(ratios),
        "geometric_mean": geometric_mean(ratios),
        "cap": CAP,
        "behind": sum(r < BEHIND for r in ratios),
        "behind_below": BEHIND,
        "worst": min(ratios, default=None),
        "loaded": sum(row["loaded"] for row in rows),
    }
