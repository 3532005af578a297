"""Groups as the text of C kernels: dovetail/codegen_source.hpp, on the device of source_compiler.cpp. What text and
host code do together is run here as a device with a compiler of its own would: against the kernels of the simulated
device, which computes with the same functions, against its compiler, which interprets groups, and against NumPy."""

from __future__ import annotations

import ctypes
import os
import random
import shutil
from pathlib import Path

import broken_devices
import dovetail as dt
import numpy as np
import pytest
from trace_events import names

SOURCE = Path(__file__).with_name("source_compiler.cpp")


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """The library, with its device."""
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    path = broken_devices.build(tmp_path_factory, "source_compiler", {SOURCE: ()}, "-Wno-cast-function-type")
    wrapped = path.with_name("libwrapped.so")
    if not wrapped.exists():
        sim = pytest.importorskip("dovetail_sim").backend.library
        copied = wrapped.with_suffix(f".{os.getpid()}")
        shutil.copy(sim, copied)
        copied.rename(wrapped)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOVETAIL_WRAPPED", str(wrapped))
        device = dt.load_backend(str(path))[0]
    library = ctypes.CDLL(str(path))
    library.text_of_last.restype = ctypes.c_char_p
    library.device = device
    yield library
    library.set_threads(1)


def softmax(x, w, b):
    e = dt.exp(x - dt.max(x, axis=-1, keepdims=True))
    return e / dt.sum(e, axis=-1, keepdims=True)


def test_smoke(text):
    x = dt.asarray(np.random.default_rng(0).standard_normal((5, 70)).astype(np.float32), device=text.device)
    f = dt.compile(lambda x: softmax(x, x, x))
    y = f(x)
    print(text.text_of_last().decode())
    print(f.explain(x))
    print(np.abs(np.asarray(y) - np.asarray(softmax(x, x, x))).max())
    assert 0
