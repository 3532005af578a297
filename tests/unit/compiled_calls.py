"""What the tests of dovetail.compile share; they run on each device of the fixture `home`."""

from __future__ import annotations

import dovetail as dt
import numpy as np


def array(*values, dtype="float32"):
    return dt.asarray(list(values), dtype=dtype)


def traces(f) -> int:
    return len(f._state.traces)


def same(a, b):
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
