"""Devices by name, the default one, and the fallback mode. Backends are looked for at first use."""

from __future__ import annotations

import os
from contextvars import ContextVar

from dovetail import _core
from dovetail._core import Device

TYPE_CHECKING = False  # importing typing would take longer than everything else
if TYPE_CHECKING:
    from typing import Any

_entered: ContextVar[tuple[Device, ...]] = ContextVar("dovetail.device", default=())
_default: Device | None = None


def devices() -> list[Device]:
    """Every device of every installed backend that works."""
    from dovetail import entry_points

    _core.refuse_reentry()
    entry_points.discover()
    return _core.devices()


def device(name: str | Device | None = None) -> Device:
    """The device of that name: "cpu:0", or "cpu" for the first of its backend. None: the current default.

    Also a context manager: `with dovetail.device("cpu:0"):` makes it the default for new arrays.
    Raises ValueError for an unknown name (with the nearest known one), RuntimeError with cause and cure where the
    backend is installed but cannot be used.
    """
    if isinstance(name, Device):
        return name
    if name is None:
        entered = _entered.get()
        return entered[-1] if entered else default_device()
    if not isinstance(name, str):
        raise TypeError(f"[device] expected a device or its name, got {name!r}: dovetail.devices() lists them")
    found = _core.find_device(name)
    if found is None:
        from dovetail import entry_points

        backend = entry_points.require(name.partition(":")[0])
        found = _core.find_device(name)
        if found is None:
            known = ", ".join(d.name for d in _core.devices() if d.backend == backend.name)
            known = known or "none" + (f"; {backend.hint}" if backend.hint else "")
            raise ValueError(f"there is no device {name!r}: backend {backend.name!r} has {known}")
    return found


def default_device() -> Device:
    """The device of new arrays: from set_default_device(), DOVETAIL_DEVICE, the first of kind "cpu", the first."""
    global _default
    if _default is None:
        wanted = os.environ.get("DOVETAIL_DEVICE")
        if wanted:
            try:
                _default = device(wanted)
            except (ValueError, RuntimeError) as error:
                raise type(error)(f"{error} (DOVETAIL_DEVICE={wanted})") from error.__cause__
        else:
            found = devices()
            if not found:
                from dovetail import entry_points

                raise RuntimeError(entry_points.why_none())
            _default = next((d for d in found if d.kind == "cpu"), found[0])
    return _default


def set_default_device(name: str | Device | None) -> None:
    """Makes a device the default of the process; None restores the choice at start."""
    global _default
    _default = None if name is None else device(name)


def enter(d: Device) -> Device:
    _entered.set((*_entered.get(), d))
    return d


def leave(d: Device) -> None:
    _entered.set(_entered.get()[:-1])


def synchronize(name: str | Device | None = None) -> None:
    """Waits for all work on a device; raises the faults that it reports, naming the op."""
    device(name).synchronize()


def fallback(mode: str | None = None) -> Any:
    """Sets what happens when a device has neither a kernel nor a decomposition of an op for these dtypes.

    "error" raises NotImplementedError, "warn" runs the op on another device of the host and warns once per op,
    "allow" opens all devices, as any may be that other one, and does so silently. Returns the mode before; without
    an argument only returns it.
    """
    before = _core.fallback()
    if mode is not None:
        if not isinstance(mode, str):
            raise TypeError(f"[fallback] expected 'error', 'warn' or 'allow', got {mode!r}")
        _core.set_fallback(mode)
        if mode == "allow":
            devices()
    return before


def fallback_report(*, reset: bool = False) -> list[dict[str, Any]]:
    """The calls that ran on another device so far: a dict of op, device and calls for each."""
    return _core.fallback_report(reset)
