"""fits.py [NAME...]: prints the polynomials of dovetail/math*.hpp. Needs mpmath.

Minimax fits by Remez's exchange in 100 digits, rounded to float32 or float64. What is minimised is the error of the
function that the polynomial is a part of, relative to its value.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass

from mpmath import (
    asin,
    atan,
    atanh,
    cos,
    erf,
    erfc,
    exp,
    log1p,
    lu_solve,
    matrix,
    mp,
    mpf,
    pi,
    polyval,
    sin,
    sqrt,
)

mp.dps = 100
Function = Callable[[mpf], mpf]


@dataclass
class Fit:
    target: Function
    weight: Function  # what an error of the polynomial is in the function
    low: float
    high: float
    single: int = 0  # how many coefficients for float32, and for float64
    double: int = 0


def of_square(function: Function, terms: Callable[[mpf], mpf], factor: Function, high: float, *n: int) -> Fit:
    """P of function(x) = terms(x) + factor(x) P(x * x), where x <= high."""
    return Fit(
        lambda z: (function(sqrt(z)) - terms(sqrt(z))) / factor(sqrt(z)),
        lambda z: factor(sqrt(z)) / function(sqrt(z)),
        0,
        high * high,
        *n,
    )


def scaled_erfc(k: float, most: float, *n: int) -> Fit:
    """(u + k) exp(u * u) erfc(u) of t = (u - k) / (u + k), 0 <= u <= most."""

    def target(t: mpf) -> mpf:
        u = k * (1 + t) / (1 - t)
        return (u + k) * exp(u * u) * erfc(u)

    return Fit(target, lambda t: 1 / target(t), -1, (most - k) / (most + k), *n)


turn, slope = 0.7855, 0.41422  # a little beyond pi / 4 and tan(pi / 8)
FITS = {
    "exp": Fit(lambda r: (exp(r) - 1 - r) / r**2, lambda r: r**2 / exp(r), -0.3467, 0.3467, 5, 10),
    "log": Fit(lambda f: (log1p(f) - f + f**2 / 2) / f**3, lambda f: f**3 / log1p(f), -0.2929, 0.41422, 9),
    "atanh": of_square(lambda s: 2 * atanh(s), lambda s: 2 * s, lambda s: s**3, 0.17158, 0, 7),
    "atanh_tail": of_square(
        lambda s: 2 * atanh(s), lambda s: 2 * s + 2 * s**3 / 3, lambda s: s**5, 0.17158, 3, 8
    ),
    "sin": of_square(sin, lambda x: x, lambda x: x**3, turn, 3, 6),
    "cos": of_square(cos, lambda x: 1 - x**2 / 2, lambda x: x**4, turn, 3, 6),
    "asin": of_square(asin, lambda x: x, lambda x: x**3, 0.5, 5, 13),
    "atan": of_square(atan, lambda x: x, lambda x: x**3, slope, 5, 11),
    "erf": of_square(erf, lambda x: x, lambda x: x, 1.0, 7, 13),
    "erfcx_single": scaled_erfc(3, 10.5, 10, 0),
    "erfcx_double": scaled_erfc(3.5, 27.6, 0, 22),
}  # fmt: skip


def remez(fit: Fit, n: int) -> tuple[list[mpf], mpf]:
    """n coefficients, the lowest first, and the largest error."""
    middle, half = (mpf(fit.low) + fit.high) / 2, (mpf(fit.high) - fit.low) / 2
    at = [cos(pi * (2 * k + 1) / (2 * n + 2)) for k in range(n + 1)]
    nodes = [middle - half * (x if abs(x) > 1e-9 else mpf("0.05")) for x in at]
    grid = [middle - half * cos(pi * (k + mpf("0.37")) / (24 * n + 1)) for k in range(24 * n + 1)]
    values = [(x, fit.target(x), fit.weight(x)) for x in grid]
    for _ in range(9):
        rows = [[x**k for k in range(n)] + [(-1) ** i / fit.weight(x)] for i, x in enumerate(nodes)]
        solution = list(lu_solve(matrix(rows), matrix([fit.target(x) for x in nodes])))
        c, level = solution[:n], abs(solution[n])
        errors = [(w * (f - polyval(c[::-1], x)), x) for x, f, w in values]
        worst = max(abs(e) for e, _ in errors)
        peaks: list[tuple[mpf, mpf]] = []  # the largest of each run of errors of one sign
        for e in errors:
            if peaks and peaks[-1][0] * e[0] > 0:
                peaks[-1] = max(peaks[-1], e, key=lambda p: abs(p[0]))
            else:
                peaks.append(e)
        while len(peaks) > n + 1:
            peaks.pop(0 if abs(peaks[0][0]) < abs(peaks[-1][0]) else -1)
        if worst < level * mpf("1.01") or len(peaks) <= n:
            break
        nodes = [x for _, x in peaks]
    return c, worst


def single(x: mpf) -> str:
    rounded = struct.unpack("f", struct.pack("f", float(x)))[0]
    return next(t for d in range(1, 10) if struct.pack("f", float(t := f"{rounded:.{d}g}")) == struct.pack("f", x))


if __name__ == "__main__":
    for name in sys.argv[1:] or FITS:
        fit = FITS[name]
        for kind, n, text in (
            ("float", fit.single, lambda c: single(c) + "f"),
            ("double", fit.double, lambda c: repr(float(c))),
        ):
            if n:
                c, worst = remez(fit, n)
                print(f"{name} {kind}, error 2^{float(mp.log(worst, 2)):.1f}: {', '.join(map(text, c))}")
