"""How arrays print: as NumPy prints them, with dtype and device if they are not obvious from the elements."""

from __future__ import annotations

from typing import Any

from dovetail import _core
from dovetail._array import FOREIGN, PACKED, recording_on, to_numpy
from dovetail._core import Array

# The dtypes that asarray gives to printed values: they are not printed.
_OBVIOUS = ("float32", "int64", "bool")


def array_str(x: Array) -> str:
    """The elements, as NumPy prints them."""
    return _elements(x, "", " ")


def array_repr(x: Array) -> str:
    """array([1., 2.]); with dtype where it is not that of Python's numbers, device where it is not the default."""
    from dovetail import _devices

    notes = []
    try:
        x.dtype  # noqa: B018
    except RuntimeError as why:  # it has no elements: a call took them
        return f"<array of shape {x.shape}: {why}>"
    if x.dtype.name not in _OBVIOUS or x.size == 0:
        notes.append(f"dtype={x.dtype}")
    if x.size == 0 and x.ndim != 1:
        notes.insert(0, f"shape={x.shape}")
    if x.device != _devices.device(None):
        notes.append(f"device='{x.device}'")
    text = "array(" + _elements(x, "array(", ", ")
    if not notes:
        return text + ")"
    tail = ", ".join(notes) + ")"
    last = len(text) - text.rfind("\n") - 1
    import numpy as np

    fits = last + 2 + len(tail) <= np.get_printoptions()["linewidth"]
    return text + (", " if fits else ",\n      ") + tail


def _elements(x: Array, prefix: str, separator: str) -> str:
    import numpy as np

    if x.size == 0:
        return "[]"
    options = np.get_printoptions()
    how: dict[str, Any] = {"threshold": options["threshold"]}
    if x.size > options["threshold"] and x.dtype.name not in PACKED:  # which has no slices, and is small
        with recording_on(None):
            x = _outline(x, options["edgeitems"])
        how["threshold"] = 0
    values = to_numpy(x)
    if x.dtype.name in PACKED:
        values = values.astype(PACKED[x.dtype.name])
    elif x.dtype.name in FOREIGN:  # NumPy does not print them well; eight bits take three digits
        values = values.astype(np.float32)
        how["precision"] = min(4, options["precision"])
    return np.array2string(values, separator=separator, prefix=prefix, suffix=")" if prefix else "", **how)


def _outline(x: Array, edge: int) -> Array:
    """The elements of an abridged print, and one more along each axis: only these are copied to the host."""
    for axis, n in enumerate(x.shape):
        if n > 2 * edge + 1:
            lead = (slice(None),) * axis
            ends = [x[(*lead, slice(0, edge + 1))], x[(*lead, slice(n - edge, n))]]
            x = _core.op_function("concat")(ends, axis=axis)
    return x
