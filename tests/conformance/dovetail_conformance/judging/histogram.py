"""A histogram of the elements' errors; a verdict has only the worst."""

from __future__ import annotations

from typing import Any

import numpy as np

# In ulp. Bin 0 holds what is exactly right, bin i errors up to EDGES[i], the last all above and wrong specials.
EDGES = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0)


def histogram(errors: Any) -> np.ndarray:
    """The number of elements in each bin."""
    bins = np.searchsorted(EDGES, np.ravel(errors))  # an edge belongs to the bin below it
    return np.bincount(bins, minlength=len(EDGES) + 1)
