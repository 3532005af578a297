"""Every device of Dovetail as a torch device: ``model.to("dovetail")``.

``import torch`` finds this package by its entry point. ``torch.dovetail`` has what ``torch.cuda`` has; here is
what is Dovetail's own.
"""

import os
import warnings

from dovetail_torch.report import counting_calls, fallback, fallback_report

__all__ = ["counting_calls", "device", "devices", "error", "fallback", "fallback_report", "to"]

error: Exception | None = None
"""Why there is no torch device 'dovetail'; None where there is one."""
_loaded = False


def _autoload() -> None:
    """torch calls this at the end of `import torch`, which goes on whatever happens here."""
    global error, _loaded
    if _loaded or os.environ.get("DOVETAIL_TORCH", "1") == "0":
        return
    _loaded = True
    try:
        from dovetail_torch import _bridge

        _bridge.start()
    except Exception as cause:
        error = cause
        warnings.warn(f"dovetail-torch: there is no device 'dovetail': {cause}", stacklevel=2)


def devices() -> list[str]:
    """The names of Dovetail's devices in torch's order: devices()[1] is torch's "dovetail:1"."""
    from dovetail_torch import _bridge

    return list(_bridge.names)


def device(name: str):
    """The torch.device of a Dovetail device: device("sim:0"). ValueError where there is none."""
    import torch

    full = name if ":" in name else f"{name}:0"
    if full not in devices():
        raise ValueError(f"dovetail_torch.device: there is no {full!r}: expected one of {', '.join(devices())}")
    return torch.device("dovetail", devices().index(full))


def to(module, device):
    """module.to(device), which keeps shared parameters shared."""
    return module.to(device)
