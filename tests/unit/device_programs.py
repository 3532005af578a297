"""What backends' tests share: a choice of the suite's cases, programs that call a device without the runtime."""

import json

# For a choice of the suite's cases where all would take too long: one dtype of each kind and size.
DTYPES = ("f32", "f16", "i32", "u8", "bool", "c64", "f8e4m3fn")


def cases_of_kernels(listing: str) -> str:
    """The choice, for -k, of DTYPES and of ops with kernels, of which all others are programs, and of the checks of
    the device. `listing`: what `dovetail ops --json` prints."""
    ops = [op for op in json.loads(listing)["ops"] if op["kernels"]]
    assert len(ops) > 80
    of_ops = " or ".join(f"{op['op']}[*" for op in ops)
    return f"device.* or (({of_ops}) and ({' or '.join(f'*[{d}*' for d in DTYPES)}))"


PRELUDE = """
import ctypes, threading, types
import dovetail as dv, numpy as np
from dovetail_conformance.device_checks.interchange import address
from dovetail_conformance.device_checks.table import HOST_FN, PINNED, Refused, Table

device = dv.device(name)
dv.set_default_device(device)
own = Table(types.SimpleNamespace(api=dv, device=device))

class Blocked:
    '''A stream that a function of the host holds up, at most for 20 s.'''
    def __init__(self, stream):
        self.handle, self._event, self.timed_out = stream, threading.Event(), False
        self._function = HOST_FN(self._hold)
        own.call("host_fn", stream, self._function, None)
    def _hold(self, _):
        self.timed_out = not self._event.wait(20)
    def release(self):
        assert not self.timed_out, "a call came back only when the stream was free again"
        self._event.set()
"""


def prelude(device: str) -> str:
    """The prelude of such a program: `own` has the functions of this device's table."""
    return f"name = {device!r}" + PRELUDE
