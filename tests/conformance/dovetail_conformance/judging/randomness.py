"""Statistical tests of random numbers, by inequalities that hold for every n, not by limits.

Each passes truly random numbers but for a probability of ALARM at most. A run makes less than 1000 of them, so that
it calls a right generator wrong with a probability below 1000 * 1e-13 = 1e-10; a few thousand numbers are enough to
see a bias of some per cent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

ALARM = 1e-13


def _likely(n: int) -> float:
    """The mean of n values within [0, 1] is hardly ever farther off: Hoeffding, 2 exp(-2 n t^2) = ALARM."""
    return math.sqrt(math.log(2 / ALARM) / (2 * n))


def mean(values: np.ndarray, expected: float, low: float, high: float) -> str:
    """Tests the mean of independent values within [low, high]. All tests here return "" or the error."""
    found, allowed = float(values.mean(dtype=np.float64)), (high - low) * _likely(values.size)
    if abs(found - expected) <= allowed:
        return ""
    return f"the mean of {values.size} is {found:.6g}, expected {expected:.6g} +- {allowed:.2g}"


def distribution(values: np.ndarray, below: Callable[[Any], Any], up_to: Callable[[Any], Any]) -> str:
    """Kolmogorov-Smirnov, given below(x) <= P(X < x) and up_to(x) >= P(X <= x). The distance is bounded by
    Dvoretzky, Kiefer and Wolfowitz with Massart's constant: 2 exp(-2 n t^2), of discrete distributions too."""
    x, count = np.unique(values, return_counts=True)
    upper = np.cumsum(count) / values.size
    lower = upper - count / values.size
    farther = max(float(np.max(upper - up_to(x))), float(np.max(below(x) - lower)))
    allowed = _likely(values.size)
    if farther <= allowed:
        return ""
    return f"the distribution of {values.size} is {farther:.2g} off (Kolmogorov-Smirnov), allowed {allowed:.2g}"


def evenly(classes: np.ndarray, n: int) -> str:
    """Chi-square of classes 0 .. n - 1 that are all as likely: neither too uneven nor too even.

    Laurent and Massart bound the tails of chi-square of k degrees: 2 sqrt(k t) + 2 t above and 2 sqrt(k t) below
    have a probability of exp(-t). Classes of 100 values and more are near enough to the limit.
    """
    if classes.size < 100 * n:
        raise ValueError(f"{classes.size} values are too few for {n} classes: expected {100 * n}")
    expected = classes.size / n
    k, t = n - 1, math.log(2 / ALARM)
    found = float(((np.bincount(classes, minlength=n) - expected) ** 2).sum() / expected)
    low, high = k - 2 * math.sqrt(k * t), k + 2 * math.sqrt(k * t) + 2 * t
    if low <= found <= high:
        return ""
    return f"chi-square of {n} classes is {found:.4g}, expected {max(low, 0):.4g} to {high:.4g}"


def apart(signs: np.ndarray, lag: int) -> str:
    """Serial correlation of values of mean 0 within [-1, 1]. Their products with the value `lag` before are a
    martingale's steps: Azuma, 2 exp(-n t^2 / 2) = ALARM."""
    n = signs.size - lag
    found = float((signs[lag:].astype(np.float64) * signs[:-lag]).mean())
    allowed = 2 * _likely(n)
    if abs(found) <= allowed:
        return ""
    return f"values {lag} apart are correlated: {found:.2g}, allowed {allowed:.2g}"
