"""The accuracy of the functions of dovetail/math*.hpp. They do not depend on the compiler or the processor, so GPUs
have the same errors. The bounds are the schema's tolerances, in units of the last place of the exact result. NaN,
infinities and signs of zeros are exact.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

SEED = 7
long = np.longdouble
Compute = Callable[..., np.ndarray]


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


@pytest.fixture(scope="session")
def compute(functions: ctypes.CDLL) -> Compute:
    """compute("exp", x): a function of math_functions.cpp on arrays of one type."""

    def compute(name: str, *operands: np.ndarray) -> np.ndarray:
        x = [np.ascontiguousarray(a) for a in operands]
        y = np.empty_like(x[0])
        suffix = {np.float32: "_f32", np.float64: "_f64", long: ""}[y.dtype.type]
        call = getattr(functions, name + suffix)
        call(*(ctypes.c_void_p(a.ctypes.data) for a in (x[0], x[-1], y)), ctypes.c_size_t(y.size))
        return y

    return compute


def errors(got: np.ndarray, exact: np.ndarray, scale: np.ndarray | float = 0) -> np.ndarray:
    """The error in ulp of the exact result, or of scale if that is larger; infinite where a NaN or the sign of a
    zero is wrong."""
    info = np.finfo(got.dtype)
    top = long(2) ** info.maxexp  # the value for overflow
    want, have = (np.clip(a.astype(long), -top, top) for a in (exact, got))
    size = np.maximum(np.abs(want), np.minimum(scale, top))
    exponent = np.frexp(np.where(size > 0, size, info.tiny))[1] - 1
    error = np.abs(have - want) / np.ldexp(long(1), np.maximum(exponent, info.minexp) - info.nmant)
    wrong_zero = (exact == 0) & (np.signbit(got) != np.signbit(exact))
    error = np.where(np.isnan(error) | wrong_zero, np.inf, error)
    return np.where(np.isnan(want) & np.isnan(have), 0, error)


def expect(got: np.ndarray, exact: np.ndarray, bound: float, *inputs: np.ndarray, scale=0) -> None:
    error = errors(got, exact, scale)
    k = int(np.argmax(error))
    assert error[k] <= bound, (
        f"{[x[k] for x in inputs]}: expected {exact[k]}, got {got[k]}: {error[k]:.3f} ulp, above {bound}"
    )


SPECIAL = [0, 1e-320, 5e-324, 1e-45, 1e-40, 2.0**-126, 2.0**-1022, 0.5, 1, 1.5, 2, 3, 10, 20, 88.72, 88.73, 103.97]
SPECIAL += [709.78, 709.79, 745.13, 745.14, 1e9, 2.0**17, 2.0**28, 3.4028235e38, 1e300, 1.7976931348623157e308]
SPECIAL += [np.inf, np.nan]
EDGES = [0.41421356, 0.5, 0.70710678, 0.75, 0.785398, 1, 1.41421356, 2.4142135, 20, 1e9]  # of a function's forms


def neighbours(x: np.ndarray, reach: int) -> np.ndarray:
    """x, and this many numbers on either side of each."""
    kind = np.dtype(f"i{x.itemsize}")
    return (x.view(kind)[:, None] + np.arange(-reach, reach + 1, dtype=kind)).view(x.dtype).reshape(-1)


def everywhere(dtype: type, n: int) -> np.ndarray:
    """Numbers of every exponent, evenly from the least bits to the greatest; those next to the
    special values and branches of functions; multiples of a quarter turn; and ordinary ones."""
    rng = np.random.default_rng(SEED)
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}")
    count = 2 ** (8 * unsigned.itemsize)
    strided = np.arange(n, dtype=np.uint64) * (count // n) + rng.integers(count // n)
    strided = strided.astype(unsigned).view(dtype)
    special = np.array([*SPECIAL, *(-x for x in SPECIAL)], dtype)
    edges = neighbours(np.array(EDGES, dtype), 200)
    turns = neighbours((np.arange(1, 10_000) * (np.pi / 2)).astype(dtype), 1)
    usual = [rng.uniform(-w, w, n // 4).astype(dtype) for w in (1e-3, 1, 4, 30, 110, 750, 1e5)]
    return np.concatenate([strided, special, edges, -edges, turns, *usual])


def normal_gate(x: np.ndarray, erfc: Compute) -> np.ndarray:
    x = x.astype(long)
    return np.where(x == -np.inf, -0.0, x / 2 * erfc(-x / np.sqrt(long(2))))


FUNCTIONS = {
    "exp": (np.exp, 1),
    "log": (np.log, 1),
    "sin": (np.sin, 1),
    "sqrt": (np.sqrt, 0.501),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 2),
    "exp2": (np.exp2, 2),
    "expm1": (np.expm1, 4),
    "log2": (np.log2, 3),
    "log10": (np.log10, 4),
    "log1p": (np.log1p, 4),
    "sinh": (np.sinh, 5),
    "cosh": (np.cosh, 5),
    "tanh": (np.tanh, 6),
    "asinh": (np.arcsinh, 5),
    "acosh": (np.arccosh, 5),
    "atanh": (np.arctanh, 5),
    "cos": (np.cos, 6),
    "tan": (np.tan, 7),
    "asin": (np.arcsin, 4),
    "acos": (np.arccos, 3),
    "atan": (np.arctan, 4),
    "erf": ("erf_exact", 3),
    "erfc": ("erfc_exact", 8),
    "normal_gate": (normal_gate, 8),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_unary(compute, name, dtype):
    exact, bound = FUNCTIONS[name]
    x = everywhere(dtype, 200_000 if dtype is np.float32 else 50_000)
    if exact is normal_gate:
        want = normal_gate(x, lambda u: compute("erfc_exact", u))
    elif isinstance(exact, str):
        want = compute(exact, x.astype(long))
    else:
        want = exact(x.astype(np.float64 if dtype is np.float32 else long))
    expect(compute(name, x), want, bound, x)


def pairs(dtype: type, n: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of special numbers, and random pairs."""
    rng = np.random.default_rng(SEED + 1)
    special = np.array([*SPECIAL, *(-x for x in SPECIAL)], dtype)
    first, second = (a.reshape(-1) for a in np.meshgrid(special, special))
    x = everywhere(dtype, n)
    return np.concatenate([first, x, x]), np.concatenate(
        [second, rng.permutation(x), x + rng.choice(x[-n:], x.size)]
    )


def gate(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(z))
    return x * np.where(z < 0, e, 1) / (1 + e)


PAIRS = {
    "pow": (np.float_power, 8),
    "hypot": (np.hypot, 2),
    "logaddexp": (np.logaddexp, 8),
    "atan2": (np.arctan2, 4),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", PAIRS)
def test_binary(compute, name, dtype):
    exact, bound = PAIRS[name]
    x, y = pairs(dtype, 50_000)
    scale = np.fmax(np.abs(x), np.abs(y)).astype(long) if name == "logaddexp" else 0
    expect(compute(name, x, y), exact(x.astype(long), y.astype(long)), bound, x, y, scale=np.nan_to_num(scale))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_that_use_the_whole_range(compute, dtype):
    """Bases near 1 with large exponents amplify an error in the logarithm most."""
    rng = np.random.default_rng(SEED)
    x = np.concatenate([1 + rng.uniform(-s, s, 100_000) for s in (0.5, 1e-2, 1e-4)]).astype(dtype)
    y = (rng.uniform(-1, 1, x.size) * np.log(np.finfo(dtype).max) / np.log(x.astype(np.float64))).astype(dtype)
    expect(compute("pow", x, y), np.float_power(x.astype(long), y.astype(long)), 2, x, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sigmoid_gate(compute, dtype):
    rng = np.random.default_rng(SEED)
    x = np.concatenate([rng.uniform(-w, w, 100_000) for w in (1, 12, 110, 760)]).astype(dtype)
    expect(compute("gate", x, x), gate(x.astype(long), x.astype(long)), 7, x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainder(compute, dtype):
    """Agrees with Python's %, exact except for one rounding, for any distance of exponents and for subnormals."""
    x, y = pairs(dtype, 50_000)
    r = np.fmod(x.astype(long), y.astype(long))
    want = np.where(r == 0, np.copysign(long(0), y), np.where((r < 0) != (y < 0), r + y, r))
    expect(compute("remainder", x, y), want, 0.501, x, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_that_are_floats(compute, dtype):
    """If the exact result is a number of the type, it is the result."""
    info = np.finfo(dtype)
    n = np.arange(info.minexp - info.nmant, info.maxexp).astype(dtype)
    power = np.ldexp(np.ones_like(n), n.astype(int))
    np.testing.assert_array_equal(compute("exp2", n), power)
    np.testing.assert_array_equal(compute("log2", power), n)
    x, y = (a.reshape(-1).astype(dtype) for a in np.meshgrid(np.arange(-10, 11), np.arange(0, 7)))
    np.testing.assert_array_equal(compute("pow", x, y), x**y)
    one, zero = np.ones(1, dtype), np.zeros(1, dtype)
    assert compute("exp", zero) == 1 and compute("log", one) == 0
