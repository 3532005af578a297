"""How this thread does floating-point arithmetic: the oracle computes in it too.

A library that is built with -ffast-math makes the thread that loads it flush subnormal numbers, NumPy with it. A
device that flushes would then agree with its oracle.
"""

from __future__ import annotations

import sys

SMALLEST, TINY, EPS = 5e-324, sys.float_info.min, sys.float_info.epsilon


def unusual() -> str:
    """How this thread's arithmetic differs from IEEE 754's default; "" where it does not."""
    one = SMALLEST / SMALLEST if SMALLEST > 0 else TINY / TINY  # not known when this is compiled
    found = []
    if TINY * one / 2 == 0:
        found.append("subnormal results become 0")
    if SMALLEST * one == 0:
        found.append("subnormal operands are read as 0")
    if one + EPS / 4 != 1 or one - EPS / 4 != 1:  # upward; downward or towards 0
        found.append("results are not rounded to the nearest")
    return ", ".join(found)
