"""Dovetail: one array API on any installed device.

Importing it reads no metadata and opens no library of a device: the first need of a device does.
"""

__distribution__ = "dovetail-runtime"  # _core refuses to be imported below a dovetail/__init__.py without it
try:
    from dovetail import _core
except ImportError as error:
    if error.name == "dovetail":  # Python found no file; for one that does not load the message has the cause
        from importlib.machinery import EXTENSION_SUFFIXES

        raise ImportError(
            f"dovetail is installed for another Python or processor: there is no _core{EXTENSION_SUFFIXES[0]} in "
            f"{__path__[0]}; install it again with this Python: "
            "python -m pip install --force-reinstall dovetail-runtime",
            name="dovetail._core",
        ) from None
    raise
from dovetail import _array, _einops  # noqa: F401 - they add the methods, and Array to einops
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
from dovetail._errors import AxisError, DeviceLostError, FallbackWarning

__all__ = [
    "Array",
    "AxisError",
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
    "load_kernels",
    "nan",
    "newaxis",
    "pi",
    "set_default_device",
    "synchronize",
]

__array_api_version__ = "2025.12"
e, pi, inf, nan, newaxis = 2.718281828459045, 3.141592653589793, float("inf"), float("nan"), None


def load_backend(what):
    """Opens a backend by name, by the path of its library or Python file, or from a class derived from
    dovetail.prototype.PythonDevice, also with DOVETAIL_BACKEND_AUTOLOAD=0; returns its devices."""
    from dovetail import entry_points

    _core.refuse_reentry()
    backend = entry_points.load_backend(what)
    return [d for d in _core.devices() if d.backend == backend.name]


def load_kernels(name_or_path: str, *, device: str | None = None) -> None:
    """Opens a kernel pack by name, or by its library for the backend `device`, also against DOVETAIL_KERNELS.

    Its rows are tried before those that the backend has. Packs that are installed open with their backend.
    Raises ValueError where there is no such pack or backend, RuntimeError with cause and cure where it fails.
    """
    from dovetail import entry_points

    _core.refuse_reentry()
    entry_points.load_kernels(name_or_path, device)


# Found at first use, so that importing dovetail stays quick: submodules, and functions by their module.
_SUBMODULES = ("cli", "entry_points", "fft", "linalg", "memory", "nn", "onnx", "prototype", "random", "schema")
_WRITTEN = {
    "_autocast": ("autocast",),
    "_creation": (
        "asarray",
        "empty",
        "empty_like",
        "eye",
        "from_dlpack",
        "full",
        "full_like",
        "linspace",
        "ones_like",
        "zeros_like",
    ),
    "_export": ("export", "spec"),
    "_program": ("Program", "from_exported", "load"),
    "_compile": ("compile", "compile_report"),
    "_control": ("cond", "scan", "while_loop"),
    "_dtypes": ("__array_namespace_info__", "can_cast", "finfo", "iinfo", "isdtype", "result_type"),
    "_functions": (
        "astype",
        "broadcast_arrays",
        "broadcast_shapes",
        "dot",
        "imag",
        "inner",
        "kron",
        "meshgrid",
        "pad",
        "real",
        "reshape",
        "tensordot",
        "unstack",
    ),
    "_einsum": ("einsum",),
    "_indexing": ("put_along_axis",),
    "_nan": (
        "allclose",
        "isclose",
        "nan_to_num",
        "nanargmax",
        "nanargmin",
        "nanmax",
        "nanmean",
        "nanmin",
        "nanprod",
        "nanstd",
        "nansum",
        "nanvar",
    ),
    "_profile": ("profile",),
    "_quantile": ("median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"),
    "_quantize": ("dequantize", "quantize"),
    "_register": ("register_op",),
    "_safetensors": ("load_safetensors", "save_safetensors"),
    "entry_points": ("BackendError", "BackendWarning"),
    "_searching": (
        "isin",
        "masked_scatter",
        "masked_select",
        "nonzero",
        "repeat",
        "searchsorted",
        "unique_all",
        "unique_counts",
        "unique_inverse",
        "unique_values",
    ),
    "_statistics": ("bincount", "corrcoef", "cov", "digitize", "histogram", "interp"),
}
_HOME = {name: module for module, names in _WRITTEN.items() for name in names}

_ops = {name: _core.op_function(name) for name in _core.op_names("") if name not in _HOME}
globals().update(_ops)
globals().update(_core.dtypes)
__all__ += [*_ops, *_core.dtypes, *_HOME]  # noqa: PLE0604 - all of them are strings


def __getattr__(name: str):
    from importlib import import_module

    if name in _SUBMODULES:
        return import_module("dovetail." + name)
    if name in _HOME:
        value = globals()[name] = getattr(import_module("dovetail." + _HOME[name]), name)
        return value
    hint = "" if name.startswith("_") else import_module("dovetail._names").hint(name)
    raise AttributeError(f"module 'dovetail' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES} - {"onnx"})  # which may lack the package that it needs
