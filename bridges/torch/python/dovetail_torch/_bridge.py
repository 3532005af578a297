"""Opens the library for this torch, and registers Dovetail's devices."""

import atexit
import ctypes
import os
import time
from pathlib import Path

import torch

from dovetail_torch import report

names: list[str] = []
"""Dovetail's name of dovetail:0, dovetail:1, ..."""
library: ctypes.CDLL | None = None
_process = os.getpid()
_FOLDER = Path(__file__).resolve().parent / "lib"


def chosen_devices() -> list[str]:
    """DOVETAIL_TORCH_DEVICES in its order, else all devices, accelerators first."""
    import dovetail

    found = sorted(dovetail.devices(), key=lambda d: d.kind == "cpu")  # stable
    wanted = os.environ.get("DOVETAIL_TORCH_DEVICES")
    if not wanted:
        return [d.name for d in found]
    known, chosen = [d.name for d in found], []
    for name in (part.strip() for part in wanted.split(",")):
        full = name if ":" in name else f"{name}:0"
        if full not in known:
            what = repr(full) if name else f"an empty name in {wanted!r}"
            raise ValueError(f"DOVETAIL_TORCH_DEVICES has {what}: expected some of {', '.join(known)}")
        if full in chosen:
            raise ValueError(f"DOVETAIL_TORCH_DEVICES has {full!r} twice in {wanted!r}: expected it once")
        chosen.append(full)
    return chosen


def library_path() -> Path:
    minor = ".".join(torch.__version__.split(".")[:2])
    path = _FOLDER / minor / "libdovetail_torch.so"
    if path.exists():
        return path
    built = sorted(p.name for p in _FOLDER.glob("*")) if _FOLDER.exists() else []
    raise ImportError(
        f"dovetail-torch has no library for torch {torch.__version__}, but for {', '.join(built) or 'no version'}: "
        "pip install --upgrade dovetail-torch, or build it for this torch: pip install --no-binary=dovetail-torch "
        "--no-build-isolation dovetail-torch"
    )


def wait_at_exit() -> None:
    """pthread_exit aborts a Python that ends while a device thread of autograd drops its last state."""
    if os.getpid() != _process:  # a forked process has none of these threads, and not every device
        return
    for i in range(len(names)):
        torch.accelerator.synchronize(i)
    for task in Path("/proc/self/task").glob("*/comm"):
        if task.read_text().startswith("pt_autograd"):
            time.sleep(0.02)
            return


def start() -> None:
    other = torch._C._get_privateuse1_backend_name()
    if other not in ("privateuseone", "dovetail"):
        raise RuntimeError(
            f"torch has one place for a device of its own, and {other!r} took it; DOVETAIL_TORCH=0 is silent"
        )
    policy = os.environ.get("DOVETAIL_TORCH_FALLBACK")
    if policy:
        report.check_policy("DOVETAIL_TORCH_FALLBACK", policy)
    chosen = chosen_devices()
    if not chosen:
        raise RuntimeError(
            "Dovetail has no device; pip install dovetail-cpu, or `dovetail devices` says what failed"
        )
    opened = ctypes.CDLL(
        str(library_path())
    )  # fails where it was built for another torch, before anything has changed
    opened.dovetail_torch_start.restype = ctypes.c_char_p
    opened.dovetail_torch_fallbacks.restype = ctypes.c_char_p
    opened.dovetail_torch_served.restype = ctypes.c_int64
    problem = opened.dovetail_torch_start(
        (ctypes.c_char_p * len(chosen))(*[n.encode() for n in chosen]), len(chosen)
    )
    if problem:
        raise RuntimeError(problem.decode())

    global library
    library, names[:] = opened, chosen
    from dovetail_torch import _module, _parameters, _sharing

    torch.utils.rename_privateuse1_backend("dovetail")
    torch._register_device_module("dovetail", _module)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    _sharing.register()
    _parameters.register()
    if policy:
        report.fallback(policy)
    atexit.register(wait_at_exit)
