"""Checks the description of the device in results.json. The JSON Schema has checked types and sizes before."""

from __future__ import annotations

from typing import Any

from dovetail.schema import dtypes as dt
from dovetail.schema import registry


def unlikely(document: dict[str, Any]) -> str | None:
    """The first thing in the description that no device can report; None where there is none."""
    return _of_names(document) or _of_properties(document["device"]) or _of_kernels(document)


def _of_names(document: dict[str, Any]) -> str | None:
    name, backend = document["device"]["name"], document["backend"]["name"]
    if name.partition(":")[0] != backend:
        return f"device.name is {name!r}, which is no device of the backend {backend!r}"
    for pack in document["packs"]:
        if not all(pack.partition(" ")[::2]):
            return f"packs has {pack!r}: expected a name and a version"
    return None


def _of_properties(device: dict[str, Any]) -> str | None:
    found = device["properties"]
    if found.get("arch", device["arch"]) != device["arch"]:
        return f"device.arch is {device['arch']!r}, but its properties name {found['arch']!r}"
    align = found.get("alloc_align", 64)
    if align & (align - 1):
        return f"device.properties.alloc_align is {align}: expected a power of two"
    total = found.get("mem_total", 0)  # 0: it does not report any
    if total and found.get("mem_free", 0) > total:
        return "device.properties.mem_free is more than mem_total"
    return _of_dtypes("device.properties.peaks", list(found.get("peaks", ())))


def _of_kernels(document: dict[str, Any]) -> str | None:
    native, kernels = document["native"], document["kernels"]
    if native != sorted({*native}):
        return "native is not in the order of its names, or names an op twice"
    if unknown := [op for op in native if op not in registry]:
        return f"native has {unknown[0]!r}, which is no op of this version or of a wheel that is installed here"
    if extra := [op for op in kernels if op not in native]:
        return f"kernels has {extra[0]!r}, which native does not name"
    for op, dtypes in kernels.items():
        if why := _of_dtypes(f"kernels.{op}", dtypes):
            return why
    return None


def _of_dtypes(where: str, names: list[str]) -> str | None:
    if unknown := [name for name in names if name not in _BRIEF]:
        return f"{where} has {unknown[0]!r}, which is no dtype"
    return f"{where} names a dtype twice" if len({*names}) != len(names) else None


_BRIEF = frozenset(d.brief for d in dt.ALL)
