"""Calls that every row declines, in the real core: counted, and run on request."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import ctypes, sys
sys.path.insert(0, {folder!r})
import dovetail as dt
import numpy as np
from dovetail import _core
from dispatch_kernel import Kernel, float32_kernel

def ours(x, y):
    return np.hypot(x, y) + 100

Query = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
declines = Query(lambda device, call, answer: 1)  # DVT_UNSUPPORTED
address = float32_kernel("dvt.hypot", 2, ours)  # an op with a decomposition to fall back to
Kernel.from_address(address).query = ctypes.cast(declines, ctypes.c_void_p).value
name = dt.device("cpu").name
_core.add_kernel(name, address)
assert [r["queries"] for r in _core.kernel_table(name) if r["op"] == "hypot"][0] is True
x, y = (dt.asarray(np.full(3, v, np.float32), device="cpu") for v in (3, 4))

def call():
    return _core.op_function("hypot")(x, y).numpy().tolist()

assert _core.declined_calls("hypot") == 0
assert call() == [5, 5, 5] and ours.calls == 0
assert _core.declined_calls("hypot") == 1 and _core.declined_calls("add") == 0
_core.serve_declined(True)
assert call() == [105, 105, 105] and ours.calls == 1
assert _core.declined_calls("hypot") == 2
_core.serve_declined(False)
assert call() == [5, 5, 5]
"""


def test_declined_calls_are_counted_and_served_when_asked_for():
    script = SCRIPT.format(folder=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
