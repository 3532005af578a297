"""What the tests of compiled and recorded functions share."""

from __future__ import annotations

import dovetail as dt
import numpy as np


def array(*values, dtype="float32"):
    return dt.asarray(list(values), dtype=dtype)


def traces(f) -> int:
    return len(f._state.traces)


def same(a, b):
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def leaves(x):
    """What tuples, lists and dicts hold, one within another, in order."""
    if isinstance(x, dict):
        x = list(x.values())
    return [leaf for part in x for leaf in leaves(part)] if isinstance(x, tuple | list) else [x]
