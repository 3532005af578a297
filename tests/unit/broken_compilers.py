"""A device with a compiler that counts its calls and fails on demand: broken_compiler.cpp."""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path

import broken_devices
import dovetail as dt
import pytest

SOURCE = Path(__file__).with_name("broken_compiler.cpp")
FAULTS = ("tail", "past_the_end", "stale_sizes", "dropped_operand", "ignored_strides", "in_place")
CAPTURE_FAULTS = ("stale_addresses", "replays_nothing")


def build(factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The library, and for it (DOVETAIL_WRAPPED) a copy of that of the simulated device, which keeps its own."""
    library = broken_devices.build(factory, "broken_compiler", {SOURCE: ()}, "-Wno-cast-function-type")
    return library, wrapped_beside(library)


def wrapped_beside(library: Path) -> Path:
    """A copy of the simulated device's library in the folder of this one."""
    wrapped = library.with_name("libwrapped.so")
    if not wrapped.exists():
        sim = pytest.importorskip("dovetail_sim").backend.library
        copied = wrapped.with_suffix(f".{os.getpid()}")  # other processes of the run make one, too
        shutil.copy(sim, copied)
        copied.rename(wrapped)
    return wrapped


def load(path: Path, wrapped: Path) -> ctypes.CDLL:
    """The functions of a library that build() has made, with its device."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOVETAIL_WRAPPED", str(wrapped))
        device = dt.load_backend(str(path))[0]
    functions = ctypes.CDLL(str(path))
    functions.calls_of.restype = ctypes.c_uint64
    functions.device = device
    return functions
