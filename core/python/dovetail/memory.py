"""The caching memory pool of each device."""

from __future__ import annotations

from dovetail import _core
from dovetail._core import Device

__all__ = ["empty_cache", "reset_peak", "set_limit", "stats"]


def stats(device: str | Device | None = None) -> dict[str, int]:
    """Bytes of a device's pool: in_use and peak by arrays, cached (free, kept), reserved (taken from the device),
    packed (of those in use: operands that kernels have turned into a layout of their own), limit (0: none), and the
    numbers of device_allocations and device_frees."""
    return _core.memory_stats(device)


def set_limit(bytes: int | None, device: str | Device | None = None) -> None:
    """Sets the most bytes that the pool takes from the device; None: no limit. Beyond it MemoryError is raised,
    with the bytes in use."""
    if bytes is not None and (not isinstance(bytes, int) or isinstance(bytes, bool) or not 0 < bytes < 2**64):
        raise ValueError(f"[memory.set_limit] expected 1 to 2^64 - 1 bytes or None, got {bytes!r}")
    _core.set_memory_limit(device, bytes or 0)


def empty_cache(device: str | Device | None = None) -> None:
    """Gives every cached buffer back to the device."""
    _core.empty_cache(device)


def reset_peak(device: str | Device | None = None) -> None:
    """Starts the peak anew, at what is in use."""
    _core.reset_peak_memory(device)


def __dir__() -> list[str]:
    return __all__
