"""A device without float64 and float8, and with no other dtype than L1 needs: the NumPy device of the examples, with
rows for these alone. It must reach L1 and L2."""

from __future__ import annotations

import sys
from pathlib import Path

from dovetail.prototype import Kernel

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from numpy_device import NumpyDevice

DTYPES = ("bool", "int32", "int64", "float32")  # of L1
# What its ops need besides, in the words of docs/first_device.md.
FURTHER = {
    "uint8": "astype",
    "uint32": "astype full iota add subtract multiply maximum minimum less bitwise_and bitwise_or bitwise_xor "
    "bitwise_left_shift bitwise_right_shift",
    "uint64": "astype full iota add subtract multiply bitwise_and bitwise_or bitwise_xor bitwise_left_shift "
    "bitwise_right_shift",
}


def _narrow(found: Kernel) -> Kernel:
    """With rows for the dtypes that there are."""
    dtypes = [*DTYPES, *(d for d, ops in FURTHER.items() if found.op in ops.split())]
    if found.dtypes == "any->any":
        words = " ".join(f"{a}->{b}" for a in dtypes for b in dtypes)
    elif found.op == "copy":
        words = "any"  # of bytes, as every device has it
    else:
        words = " ".join(d for d in dtypes if found.dtypes == "any" or d in found.dtypes.split())
    made = Kernel(found.function, found.op, words, found.options)
    return made


class Narrow(NumpyDevice):
    name = "narrow"
    product = "Float32 and integers"
    locals().update({name: _narrow(k) for name, k in vars(NumpyDevice).items() if isinstance(k, Kernel)})
