"""A device with a compiler that counts its calls and fails on demand: broken_compiler.cpp."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import broken_devices
import pytest

SOURCE = Path(__file__).with_name("broken_compiler.cpp")
FAULTS = ("tail", "past_the_end", "stale_sizes", "dropped_operand", "ignored_strides")
CAPTURE_FAULTS = ("stale_addresses", "replays_nothing")


def build(factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The library, and for it (DOVETAIL_WRAPPED) a copy of that of the simulated device, which keeps its own."""
    library = broken_devices.build(factory, "broken_compiler", {SOURCE: ()}, "-Wno-cast-function-type")
    wrapped = library.with_name("libwrapped.so")
    if not wrapped.exists():
        sim = pytest.importorskip("dovetail_sim").backend.library
        copied = wrapped.with_suffix(f".{os.getpid()}")  # other processes of the run make one, too
        shutil.copy(sim, copied)
        copied.rename(wrapped)
    return library, wrapped
