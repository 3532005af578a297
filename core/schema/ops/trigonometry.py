"""Trigonometric functions and their inverses."""

from __future__ import annotations

from .. import dtypes as dt
from ..declare import Tensor, op
from ..lazy_numpy import np
from ._float import PI, fit, magnitude, polynomial, with_sign
from .logic import signbit
from .primitives import maximum, minimum, sin, sqrt, where

# Near-minimax fits, with relative errors of the functions below 2**-25 and 2**-56.
# (atan(t) / t - 1) / z of z = t * t, t <= tan(pi / 8)
ATAN = (-0.333333152, 0.19998471, -0.142435222, 0.10593727, -0.0607799075)
ATAN_64 = (
    -0.3333333333333333, 0.19999999999995516, -0.14285714284665682, 0.11111111015187018, -0.0909090457530649,
    0.07692183125376892, -0.06664510525508936, 0.05858140904866328, -0.050854078345894844, 0.03923044778479309,
    -0.019175404711104935,
)  # fmt: skip
# (asin(t) / t - 1) / z of z = t * t, t <= 1/2
ASIN = (0.166667525, 0.0749529764, 0.0454703759, 0.024179515, 0.0421663079)
ASIN_64 = (
    0.16666666666666669, 0.07499999999998433, 0.04464285714635543, 0.030381944138531247, 0.02237217294214989,
    0.017352392720869973, 0.013971212973552933, 0.011479177415184906, 0.01032281435018578, 0.005457506718640358,
    0.01740087944269402, -0.014851887071247204, 0.028757851367421566,
)  # fmt: skip


def _too_large(x, like):
    """True where the double of x overflows."""
    return np.abs(x) > (dt.float64 if like is dt.float64 else dt.float32).max / 2


@op(
    shape="same",
    dtype="float",
    tier="extended",
    tol=6,
    reference=np.cos,
    scale=lambda x, like: _too_large(x, like) * 1.0,
)
def cos(x: Tensor, /) -> Tensor:
    """The cosine.

    From half the dtype's largest number on (1.7e38 in float32) the tolerance is in units of the last place of 1.
    """
    big = x.dtype.max / 2 < magnitude(x)
    y = where(big, x * 0.5, x)
    c = sin(y * 2.0) / (sin(y) * 2.0)
    return where(x == 0.0, 1.0, where(big, c * c * 2.0 - 1.0, c))


@op(
    shape="same",
    dtype="float",
    autocast="float32",
    tol=7,
    reference=np.tan,
    scale=lambda x, like: _too_large(x, like) * (1 + np.abs(np.tan(x)) ** 2),
)
def tan(x: Tensor, /) -> Tensor:
    """The tangent, keeping -0.

    From half the dtype's largest number on (1.7e38 in float32) the tolerance is in units of the last place of
    1 + tan(x)**2.
    """
    return where(x == 0.0, x, sin(x) / cos(x))


def _asin_small(t: Tensor) -> Tensor:
    z = t * t
    return t + t * z * polynomial(z, fit(t.dtype, ASIN, ASIN_64))


@op(shape="same", dtype="float", autocast="float32", tol=4, reference=np.arcsin)
def asin(x: Tensor, /) -> Tensor:
    """The inverse sine; NaN outside of [-1, 1]."""
    a = magnitude(x)
    far = a > 0.5
    r = _asin_small(where(far, sqrt((1.0 - a) * 0.5), a))
    return with_sign(where(far, PI / 2 - r * 2.0, r), x)


@op(shape="same", dtype="float", autocast="float32", tol=3, reference=np.arccos)
def acos(x: Tensor, /) -> Tensor:
    """The inverse cosine; NaN outside of [-1, 1]."""
    a = magnitude(x)
    far = a > 0.5
    r = _asin_small(where(far, sqrt((1.0 - a) * 0.5), x))
    return where(far, where(x < 0.0, PI - r * 2.0, r * 2.0), PI / 2 - r)


def _atan_positive(a: Tensor) -> Tensor:
    """atan(a) as pi/4 + atan((a - 1) / (a + 1)) or pi/2 - atan(1 / a) beyond tan(pi/8) and tan(3 pi/8)."""
    middle, high = a > 0.41421356, a > 2.4142135
    t = where(high, -1.0, where(middle, a - 1.0, a)) / where(high, a, where(middle, a + 1.0, 1.0))
    z = t * t
    r = t + t * z * polynomial(z, fit(a.dtype, ATAN, ATAN_64))
    return where(high, PI / 2 + r, where(middle, PI / 4 + r, r))


@op(shape="same", dtype="float", tol=4, reference=np.arctan)
def atan(x: Tensor, /) -> Tensor:
    """The inverse tangent; -pi/2 and pi/2 at infinities."""
    return with_sign(_atan_positive(magnitude(x)), x)


@op(shape="broadcast", dtype="float", tier="extended", tol=4, reference=np.arctan2)
def atan2(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The angle of the point (x2, x1), in [-pi, pi]; zeros and infinities as in C99."""
    ay, ax = magnitude(x1), magnitude(x2)
    low, high = minimum(ax, ay), maximum(ax, ay)  # NaN goes through both
    ratio = where(low == high, where(high == 0.0, high, 1.0), low / high)
    r = _atan_positive(ratio)
    r = where(ax < ay, PI / 2 - r, r)
    return with_sign(where(signbit(x2), PI - r, r), x1)
