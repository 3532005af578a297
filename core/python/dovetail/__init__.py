"""Dovetail: one array API on any installed device.

Importing it looks nothing up and opens nothing: the first need of a device does.
"""

from dovetail import _array, _core, _creation, _dtypes, _functions, _searching  # noqa: F401 - _array adds the methods
from dovetail._core import Array, Device, DType, Event, Op, Stream, __version__, current_stream, default_stream
from dovetail._devices import (
    default_device,
    device,
    devices,
    fallback,
    fallback_report,
    set_default_device,
    synchronize,
)
from dovetail._errors import DeviceLostError, FallbackWarning

__all__ = [
    "Array",
    "DType",
    "Device",
    "DeviceLostError",
    "Event",
    "FallbackWarning",
    "Op",
    "Stream",
    "__version__",
    "current_stream",
    "default_device",
    "default_stream",
    "device",
    "devices",
    "e",
    "fallback",
    "fallback_report",
    "inf",
    "load_backend",
    "nan",
    "newaxis",
    "pi",
    "register_op",
    "set_default_device",
    "synchronize",
]

e, pi, inf, nan, newaxis = 2.718281828459045, 3.141592653589793, float("inf"), float("nan"), None


def load_backend(name_or_path: str) -> list[Device]:
    """Opens a backend by name or by its library's path, also with DOVETAIL_BACKEND_AUTOLOAD=0; returns its devices."""
    from dovetail import entry_points

    backend = entry_points.load_backend(name_or_path)
    return [d for d in _core.devices() if d.backend == backend.name]


_names = {name: _core.op_function(name) for name in _core.op_names("")} | _core.dtypes
for _module in (_creation, _dtypes, _functions, _searching):
    _names |= {name: getattr(_module, name) for name in _module.__all__}
globals().update(_names)
__all__ += _names

# Found at first use, so that importing dovetail stays quick.
_SUBMODULES = ("cli", "entry_points", "linalg", "memory", "nn", "random", "schema")


def __getattr__(name: str):
    import importlib

    if name in _SUBMODULES:
        return importlib.import_module("dovetail." + name)
    if name == "register_op":
        return importlib.import_module("dovetail._register").register_op
    raise AttributeError(f"module 'dovetail' has no attribute {name!r}")
