"""A device in L1's dtypes, without float64 and float8: the NumPy device with fewer rows. It must reach L1 and
L2."""

from __future__ import annotations

import sys
from pathlib import Path

from dovetail.prototype import Kernel

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from numpy_device import NumpyDevice

DTYPES = ("bool", "int32", "int64", "float32")  # of L1
# The kernels in other dtypes that ops of L1 need: the table of docs/first_device.md.
FURTHER = {
    "uint32": "astype add bitwise_right_shift",
    "uint64": "astype full iota take where add subtract multiply equal bitwise_and bitwise_or bitwise_xor "
    "bitwise_left_shift bitwise_right_shift",
}


def _narrow(found: Kernel) -> Kernel:
    """Keep the rows of the given dtypes."""
    dtypes = [*DTYPES, *(d for d, ops in FURTHER.items() if found.op in ops.split())]
    if found.dtypes == "any->any":
        words = " ".join(f"{a}->{b}" for a in dtypes for b in dtypes)
    elif found.op == "copy":
        words = "any"  # of bytes: every device has it
    else:
        words = " ".join(d for d in dtypes if found.dtypes == "any" or d in found.dtypes.split())
    return Kernel(found.function, found.op, words, found.options)


class Narrow(NumpyDevice):
    name = "narrow"
    product = "Float32 and integers"
    locals().update({name: _narrow(k) for name, k in vars(NumpyDevice).items() if isinstance(k, Kernel)})
