"""The error function and its relatives."""

from __future__ import annotations

import math

from .. import dtypes as dt
from ..declare import Tensor, op
from ..lazy_numpy import np
from ._float import fit, flipped, magnitude, polynomial, split, with_sign
from .primitives import exp, minimum, where

# erf(x) / x - 1 of z = x * x, x <= 1
ERF = (0.128379166, -0.376126258, 0.112835851, -0.0268538119, 0.00518832768, -0.000801019357, 7.85386116e-05)
ERF_64 = (
    0.1283791670955126, -0.3761263890318375, 0.11283791670954879, -0.026866170645076792, 0.0052239776248180145,
    -0.000854832698083379, 0.0001205533111164271, -1.4925595266831182e-05, 1.6461000484121368e-06,
    -1.6350312701054695e-07, 1.4659775274047436e-08, -1.1372848856791674e-09, 5.957176147748911e-11,
)  # fmt: skip
# (1 + 2 u) exp(u**2) erfc(u) of q = (u - k) / (u + k), k = 2 for u <= 10.5 and k = 4 for u <= 27.5
ERFCX = (
    1.2769784, -0.0927639974, -0.166031572, 0.164055654, -0.0542026209, -0.00806088706, 0.00862535418,
    0.00131256796, -0.0012223383, -0.000396104245,
)  # fmt: skip
ERFCX_64 = (
    1.2329951186255526, -0.13962111684056286, 0.015379652102620996, 0.06809705425473468, -0.10103906603636773,
    0.0937328349968727, -0.06633036581115447, 0.03716751556148306, -0.016197734063710445, 0.005031969762284736,
    -0.0007577733091379332, -0.00019925552619520982, 0.00015062210715057866, -2.440316536962711e-05,
    -1.1224436722701745e-05, 5.718019430428633e-06, 3.00822697160671e-07, -8.355403600708081e-07,
    6.309931892048124e-08, 1.1579545491817747e-07, -7.770852409868655e-09, -1.387063343675277e-08,
    -1.8822551750393533e-09,
)  # fmt: skip


def _erfcx(a: Tensor, unit: float) -> Tensor:
    """exp(u**2) * erfc(u) for u = a / unit >= 0."""
    k = unit * (4.0 if a.dtype is dt.float64 else 2.0)
    return polynomial((a - k) / (a + k), fit(a.dtype, ERFCX, ERFCX_64)) / (1.0 + a * (2.0 / unit))


def _exp_minus_square(a: Tensor, factor: float) -> tuple[Tensor, Tensor]:
    """Two numbers whose product is exp(-factor * a * a), accurate in its tail."""
    high, low = split(a)  # high * high is exact
    return exp(high * high * -factor), exp(low * (a + high) * -factor)


def _erfc_positive(a: Tensor) -> Tensor:
    a = minimum(a, 27.5 if a.dtype is dt.float64 else 10.5)
    e1, e2 = _exp_minus_square(a, 1.0)
    return _erfcx(a, 1.0) * e2 * e1


def _oracle(fn, x):
    return np.vectorize(fn, otypes=[np.float64])(x)


@op(
    shape="same",
    dtype="float",
    autocast="float32",
    tier="extended",
    tol=8,
    reference=lambda x: _oracle(math.erfc, x),
)
def erfc(x: Tensor, /) -> Tensor:
    """1 - erf(x), accurate in its tail."""
    r = _erfc_positive(magnitude(x))
    return where(x < 0.0, 2.0 - r, r)


@op(shape="same", dtype="float", tier="extended", tol=3, reference=lambda x: _oracle(math.erf, x))
def erf(x: Tensor, /) -> Tensor:
    """The error function, 2/sqrt(pi) times the integral of exp(-t * t) from 0 to x."""
    a = magnitude(x)
    z = minimum(a, 1.0)
    near = a * (1.0 + polynomial(z * z, fit(x.dtype, ERF, ERF_64)))
    return with_sign(where(a < 1.0, near, 1.0 - _erfc_positive(a)), x)


def _before_normal_vanishes(x: Tensor) -> Tensor:
    """abs(x), but no more than where Phi(-x) is 0."""
    return minimum(magnitude(x), 39.0 if x.dtype is dt.float64 else 14.5)


def normal_gate(x: Tensor) -> Tensor:
    """x * Phi(x) of the normal distribution; its lower tail directly, never as 1 + erf."""
    a = _before_normal_vanishes(x)
    e1, e2 = _exp_minus_square(a, 0.5)
    tail = (a * _erfcx(a, math.sqrt(2.0)) * 0.5) * e2 * e1  # a * Phi(-a)
    return where(x < 0.0, flipped(tail), x - tail)


def normal_cdf_slope(x: Tensor) -> Tensor:
    """Phi(x) + x * phi(x) of the normal distribution, the derivative of normal_gate."""
    a = _before_normal_vanishes(x)
    e1, e2 = _exp_minus_square(a, 0.5)
    tail = ((_erfcx(a, math.sqrt(2.0)) * 0.5 - a * (1 / math.sqrt(2 * math.pi))) * e2) * e1  # at -a
    return where(x < 0.0, tail, 1.0 - tail)
