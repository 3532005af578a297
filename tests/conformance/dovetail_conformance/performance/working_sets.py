"""The memory that a measured call uses: a ceiling of one size does not apply to another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

KIB, MIB = 1 << 10, 1 << 20
SIZES = ("small", "medium", "large")
SMALL, MEDIUM = 256 * KIB, 8 * MIB  # in a cache near the cores, and in the last one
LEAST, MOST = 64 * MIB, 1024 * MIB  # larger than any cache
UNKNOWN_CACHE = 64 * MIB  # the device protocol has no field for it; most accelerators have less


def working_set(size: str, kind: str, properties: Mapping[str, Any]) -> int:
    """Bytes. A large one is 4 times the last cache, but 1/16 of the device's memory at most."""
    if size != "large":
        return {"small": SMALL, "medium": MEDIUM}[size]
    cache = _host_cache() if kind == "cpu" else UNKNOWN_CACHE
    return min(max(LEAST, min(4 * cache, MOST)), max(MEDIUM, properties["mem_total"] // 16))


def _host_cache() -> int:
    """The third level's, as Linux reports it."""
    try:
        text = Path("/sys/devices/system/cpu/cpu0/cache/index3/size").read_text("ascii")
        return int(text.strip().removesuffix("K")) * KIB
    except (OSError, ValueError):
        return UNKNOWN_CACHE
