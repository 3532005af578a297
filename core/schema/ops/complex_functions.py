"""Elementary functions of complex numbers, by those of their parts. Values at infinities and on branch cuts are
those of the array API, which are C99's (Annex G).

Inverse functions: W. Kahan, Branch Cuts for Complex Elementary Functions, or Much Ado About Nothing's Sign Bit, in
The State of the Art in Numerical Analysis (1987).
"""

from __future__ import annotations

import math

from .. import dtypes as dt
from ..declare import Tensor
from ._float import INF, LN2, LOG2E, NAN, PI, const, flipped, magnitude, with_sign
from .arithmetic import hypot
from .complex_arithmetic import joined, parts
from .exponential import (
    acosh,
    asinh,
    atanh,
    cosh,
    expm1,
    log1p,
    log2,
    log10,
    pow_,
    sinh,
    tanh,
)
from .logic import isfinite, isinf, isnan, logical_not, signbit
from .primitives import exp, log, maximum, minimum, sin, sqrt, where
from .trigonometry import acos, asin, atan, atan2, cos, tan

Parts = tuple[Tensor, Tensor]


def _is_single(x: Tensor) -> bool:
    return x.dtype is dt.float32


def _times_exp(a: Tensor, u: Tensor, v: Tensor) -> Parts:
    """exp(a) * u and exp(a) * v for u and v of at most 1, also where exp(a) alone would overflow."""
    most, k = (88.0, 32.0) if _is_single(a) else (709.0, 64.0)
    large = a > most
    e = exp(where(large, a - k, a))
    more = math.exp(k)
    return where(large, e * u * more, e * u), where(large, e * v * more, e * v)


def _over(b: Tensor) -> Tensor:
    return logical_not(isfinite(b))


def _exp(a: Tensor, b: Tensor) -> Parts:
    re, im = _times_exp(a, cos(b), sin(b))
    over = _over(b)
    vanishes = (a == -INF) & over
    re = where(vanishes, 0.0, where((a == INF) & over, INF, re))
    return re, where(b == 0, b, where(vanishes, 0.0, im))


@exp.of_complex
def _(x: Tensor) -> Tensor:
    return joined(*_exp(*parts(x)))


@expm1.of_complex
def _(x: Tensor) -> Tensor:
    a, b = parts(x)
    re, im = _exp(a, b)
    half = sin(b * 0.5)
    near = (a < 30.0) & isfinite(b)
    return joined(where(near, expm1(a) * cos(b) - 2.0 * half * half + 0.0, re - 1.0), im)


# ---- logarithms and powers ---------------------------------------------------------------------------------------


def _log_size(a: Tensor, b: Tensor) -> Tensor:
    """log(hypot(a, b)), without overflow and near 1 without cancellation."""
    a, b = magnitude(a), magnitude(b)
    m, n = maximum(a, b), minimum(a, b)
    near = (m > 0.5) & (m < 1.5)
    r = where(m == 0, 0.0, n / m)
    square = where(near, (m - 1.0) * (m + 1.0) + n * n, r * r)
    size = where(near, 0.0, log(m)) + 0.5 * log1p(square)
    return where(isinf(a) | isinf(b), INF, size)


def _log(a: Tensor, b: Tensor) -> Parts:
    return _log_size(a, b), atan2(b, a)


@log.of_complex
def _(x: Tensor) -> Tensor:
    return joined(*_log(*parts(x)))


@log2.of_complex
def _(x: Tensor) -> Tensor:
    re, im = _log(*parts(x))
    return joined(re * LOG2E, im * LOG2E)


@log10.of_complex
def _(x: Tensor) -> Tensor:
    re, im = _log(*parts(x))
    return joined(re * math.log10(math.e), im * math.log10(math.e))


@log1p.of_complex
def _(x: Tensor) -> Tensor:
    a, b = parts(x)
    near = (magnitude(a) < 0.5) & (magnitude(b) < 0.5)
    re = where(near, 0.5 * log1p(a * (2.0 + a) + b * b), _log_size(1.0 + a, b))
    return joined(re, atan2(b, 1.0 + a))


def _sqrt(a: Tensor, b: Tensor) -> Parts:
    single = _is_single(a)
    m = maximum(magnitude(a), magnitude(b))
    large, small = m > a.dtype.max / 8, m < (2.0**-90 if single else 2.0**-900)
    k = where(large, 2.0**-4, where(small, 2.0**60 if single else 2.0**200, const(1.0, a)))
    back = where(large, 2.0**2, where(small, 2.0**-30 if single else 2.0**-100, const(1.0, a)))
    p, q = magnitude(a) * k, magnitude(b) * k
    root = sqrt(0.5 * (p + hypot(p, q)))
    other = where(root == 0, 0.0, q / (2.0 * root))
    root, other = root * back, other * back
    left = a < 0
    re, im = where(left, other, root), with_sign(where(left, root, other), b)
    return where(isinf(b), INF, re), where(isinf(b), b, im)


@sqrt.of_complex
def _(x: Tensor) -> Tensor:
    return joined(*_sqrt(*parts(x)))


@pow_.of_complex
def _(x1: Tensor, x2: Tensor) -> Tensor:
    (a, b), (c, d) = parts(x1), parts(x2)
    re, im = _log(a, b)
    re, im = _exp(c * re - d * im, c * im + d * re)
    of_zero, one = (a == 0) & (b == 0), (c == 0) & (d == 0)
    re = where(of_zero, where(c > 0, 0.0, where(c < 0, INF, NAN)), re)
    im = where(of_zero, where(c > 0, 0.0, NAN), im)
    return joined(where(one, 1.0, re), where(one, 0.0, im))


# ---- hyperbolic and trigonometric --------------------------------------------------------------------------------


def _sinh_cosh(a: Tensor, b: Tensor) -> tuple[Parts, Parts]:
    c, s = cos(b), sin(b)
    large = magnitude(a) > (88.0 if _is_single(a) else 709.0)
    u, v = _times_exp(magnitude(a), 0.5 * c, 0.5 * s)
    sh, ch = sinh(a), cosh(a)
    left, over = a < 0, _over(b)
    vast, over = isinf(a) & over, over & (a == 0)
    of_sinh = (
        where(over, a, where(vast, a, where(large, where(left, -u, u), sh * c))),
        where(b == 0, b, where(large, v, ch * s)),
    )
    of_cosh = (
        where(vast, INF, where(large, u, ch * c)),
        where(over, a, where(b == 0, where(signbit(a), flipped(b), b), where(large, where(left, -v, v), sh * s))),
    )
    return of_sinh, of_cosh


def _tanh(a: Tensor, b: Tensor) -> Parts:
    t, s = tan(b), sinh(a)
    far = magnitude(a) > (20.0 if _is_single(a) else 170.0)
    beta = 1.0 + t * t
    size = 1.0 + beta * s * s
    re = where(far & isfinite(b), with_sign(const(1.0, a), a), beta * cosh(a) * s / size)
    im = where(far, 4.0 * sin(b) * cos(b) * exp(-2.0 * magnitude(a)), t / size)
    over = _over(b)
    re = where(isinf(a), with_sign(const(1.0, a), a), where((a == 0) & over, a, re))
    return re, where(b == 0, b, where(isinf(a), where(over, 0.0, with_sign(const(0.0, a), b)), im))


def _turned(f, a: Tensor, b: Tensor) -> Parts:
    """-i * f(i * z): sin by way of sinh, and so on."""
    p, q = f(flipped(b), a)
    return q, flipped(p)


@sinh.of_complex
def _(x: Tensor) -> Tensor:
    return joined(*_sinh_cosh(*parts(x))[0])


@cosh.of_complex
def _(x: Tensor) -> Tensor:
    return joined(*_sinh_cosh(*parts(x))[1])


@tanh.of_complex
def _(x: Tensor) -> Tensor:
    return joined(*_tanh(*parts(x)))


@sin.of_complex
def _(x: Tensor) -> Tensor:
    return joined(*_turned(lambda a, b: _sinh_cosh(a, b)[0], *parts(x)))


@cos.of_complex
def _(x: Tensor) -> Tensor:
    a, b = parts(x)
    return joined(*_sinh_cosh(flipped(b), a)[1])


@tan.of_complex
def _(x: Tensor) -> Tensor:
    return joined(*_turned(_tanh, *parts(x)))


# ---- their inverses ----------------------------------------------------------------------------------------------


def _roots(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """sqrt(1 - z) and sqrt(1 + z)."""
    return *_sqrt(1.0 - a, flipped(b)), *_sqrt(1.0 + a, b)


def _far(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Where the products of roots could overflow; and log(2 * abs(z)), what inverse functions are there."""
    far = isinf(a) | isinf(b) | (maximum(magnitude(a), magnitude(b)) > a.dtype.max / 8)
    return far, _log_size(a, b) + LN2


def _asin(a: Tensor, b: Tensor) -> Parts:
    p, q, r, s = _roots(a, b)
    far, size = _far(a, b)
    re = where(far, atan2(a, magnitude(b)), atan2(a, p * r - q * s))
    return where(a == 0, a, re), where(far, with_sign(size, b), asinh(p * s - q * r))


@asin.of_complex
def _(x: Tensor) -> Tensor:
    return joined(*_asin(*parts(x)))


@asinh.of_complex
def _(x: Tensor) -> Tensor:
    return joined(*_turned(_asin, *parts(x)))


@acos.of_complex
def _(x: Tensor) -> Tensor:
    a, b = parts(x)
    p, q, r, s = _roots(a, b)
    far, size = _far(a, b)
    re = where(far, atan2(magnitude(b), a), 2.0 * atan2(p, r))
    re = where((a == 0) & isnan(b), PI / 2, re)
    return joined(re, where(far, with_sign(size, flipped(b)), asinh(r * q - s * p)))


@acosh.of_complex
def _(x: Tensor) -> Tensor:
    a, b = parts(x)
    (p, q), (r, s) = _sqrt(a - 1.0, b), _sqrt(a + 1.0, b)
    far, size = _far(a, b)
    im = where(far, atan2(b, a), 2.0 * atan2(q, r))
    im = where((a == 0) & isnan(b), PI / 2, im)
    return joined(where(far, size, asinh(p * r + q * s)), im)


def _atanh(a: Tensor, b: Tensor) -> Parts:
    u, v = magnitude(a), magnitude(b)
    m = maximum(u, v)
    far = m > (1e8 if _is_single(a) else 1e16)
    p, q = u / m, v / m
    distance = (1.0 - u) * (1.0 - u) + v * v  # from 1, squared
    vanishes = (u == 1) & (distance < (1e-30 if _is_single(a) else 1e-290))
    near = where(vanishes, 0.5 * (LN2 - log(v)), 0.25 * log1p(4.0 * u / distance))
    re = where(far, p / (p * p + q * q) / m, near)
    re = where(isinf(u) | isinf(v) | (u == 0), 0.0, re)
    turned = where(isnan(b), NAN, with_sign(const(PI / 2, b), b))
    im = where(far | isinf(u) | isinf(v), turned, 0.5 * atan2(2.0 * b, (1.0 - u) * (1.0 + u) - b * b))
    return with_sign(re, a), im


@atanh.of_complex
def _(x: Tensor) -> Tensor:
    return joined(*_atanh(*parts(x)))


@atan.of_complex
def _(x: Tensor) -> Tensor:
    return joined(*_turned(_atanh, *parts(x)))
