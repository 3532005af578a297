"""Accuracy of elementary functions: float32, fp16 and bf16 against float64, float64 against the x87's 80 bits.

The bound of each function is column T of the operator inventory, in units of the last place of the exact result.
fp16 and bf16: every input there is, within one unit. Special values, and the signs of zeros, must agree exactly.
"""

from __future__ import annotations

import platform
from functools import cache

import ml_dtypes
import numpy as np
import pytest
from abi import INVALID
from harness import EMULATED, FLOATS, KernelError, Scalar, bfloat16, float16, float32, float64

longdouble = np.dtype(np.longdouble)
HALVES = (float16, bfloat16)


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


@pytest.fixture
def level(request: pytest.FixtureRequest) -> str:
    """Of the fixture cpu."""
    return request.node.callspec.params["cpu"]


def erf_and_erfc(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """In long double, relatively accurate: a series of positive terms inside, a continued fraction outside.

    The square of a float is exact in long double; exp would amplify what rounding takes from that of a double.
    """
    z = np.abs(x).astype(longdouble)
    root_pi = np.sqrt(np.arccos(longdouble.type(-1)))
    inner, outer = np.minimum(z, 1), np.clip(z, 1, 200)
    term, total = inner, inner
    for n in range(1, 40):
        term = term * (2 * inner * inner) / (2 * n + 1)
        total = total + term
    near = 2 / root_pi * np.exp(-inner * inner) * total
    fraction = outer
    for n in range(400, 0, -1):
        fraction = outer + n / longdouble.type(2) / fraction
    short = outer.astype("f4").astype(longdouble)
    far = np.exp(-short * short) * np.exp((short - outer) * (short + outer)) / (root_pi * fraction)
    big = z > 1
    erf, erfc = np.where(big, 1 - far, near), np.where(big, far, 1 - near)
    erf, erfc = np.where(z != z, z, erf), np.where(z != z, z, erfc)
    return np.copysign(erf, x), np.where(x < 0, 2 - erfc, erfc)


def erf(x):
    return erf_and_erfc(x)[0].astype(x.dtype)


def erfc(x):
    return erf_and_erfc(x)[1].astype(x.dtype)


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def limit(x, y):  # of x * (a factor that vanishes faster)
    return np.where(x == -np.inf, -0.0, y).astype(x.dtype)


def gelu(x):
    y = x.astype(longdouble)
    return limit(x, (0.5 * y * erf_and_erfc(-y / np.sqrt(longdouble.type(2)))[1]).astype(x.dtype))


def gelu_tanh(x):
    y = np.clip(x, -50, 50).astype(longdouble)
    u = np.sqrt(longdouble.type(2) / np.arccos(longdouble.type(-1))) * (y + longdouble.type("0.044715") * y**3)
    return limit(x, (x * sigmoid(2 * u)).astype(x.dtype))


# name: reference, bound in ulp
UNARY = {
    "exp": (np.exp, 1),
    "log": (np.log, 1),
    "sin": (np.sin, 1),
    "sqrt": (np.sqrt, 0.5001),
    "cos": (np.cos, 6),
    "tan": (np.tan, 7),
    "asin": (np.arcsin, 4),
    "acos": (np.arccos, 3),
    "atan": (np.arctan, 4),
    "sinh": (np.sinh, 5),
    "cosh": (np.cosh, 5),
    "tanh": (np.tanh, 6),
    "asinh": (np.arcsinh, 5),
    "acosh": (np.arccosh, 5),
    "atanh": (np.arctanh, 5),
    "exp2": (np.exp2, 2),
    "expm1": (np.expm1, 4),
    "log1p": (np.log1p, 4),
    "log2": (np.log2, 3),
    "log10": (np.log10, 4),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 2),
    "erf": (erf, 3),
    "erfc": (erfc, 8),
    "sigmoid": (sigmoid, 4),
    "silu": (lambda x: limit(x, x * sigmoid(x)), 7),
    "gelu": (gelu, 8),
    "gelu_tanh": (gelu_tanh, 8),
}
BINARY = {"pow": (np.power, 8), "atan2": (np.arctan2, 4)}
SPECIAL = [0.0, 1, 0.5, 1.5, 2, 2.5, 3, 10, 100, 1000, 20, 88.7, 104, 200, 1e-45, 1e-40, 1.1754944e-38, 1e30]
SPECIAL += [3.4028235e38, 8388607.5, 16777217.0, 2147483648.0, np.inf]
SPECIAL = np.array([*SPECIAL, *(-np.array(SPECIAL)), np.nan])


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Error of got in units in the last place of its type; infinite where NaN or a zero's sign is wrong."""
    info = ml_dtypes.finfo(got.dtype)
    wide = exact.dtype
    top = wide.type(2) ** wide.type(int(info.maxexp))  # what overflow counts as
    r = np.clip(exact, -top, top)
    g = got.astype(wide)
    g = np.where(np.isinf(g), np.copysign(top, g), g)
    exponent = np.frexp(np.where((r == 0) | (r != r), 1, r))[1] - 1
    lowest = int(info.minexp)
    unit = np.ldexp(wide.type(1), np.maximum(np.where(r == 0, lowest, exponent), lowest) - int(info.nmant))
    error = np.abs(g - r) / unit
    zero = (exact == 0) & ((got != 0) | (np.signbit(got.astype(wide)) != np.signbit(exact)))
    return np.where(np.isnan(g) & np.isnan(r), 0, np.where(np.isnan(error) | zero, np.inf, error))


def inputs32(n: int) -> np.ndarray:
    rng = np.random.default_rng(11)
    near = [
        np.float32(c).view("i4") + np.arange(-300, 300, dtype="i4")
        for c in (1, -1, 2, 0.5, -0.5, 20, 88.72, -103.9)
    ]
    turns = (np.arange(1, 2001) * (np.pi / 2)).astype("f4").view("i4")
    far = (10.0 ** rng.uniform(-45, 38.5, n) * rng.choice([-1, 1], n)).astype("f4")
    return np.concatenate(
        [
            SPECIAL.astype("f4"),
            rng.integers(0, 2**32, n, dtype="u4").view("f4"),
            *(v.view("f4") for v in near),
            *((turns + d).view("f4") for d in (-1, 0, 1)),
            *(rng.uniform(-w, w, n).astype("f4") for w in (1, 12, 110)),
            far,
        ]
    )


def inputs64(n: int) -> np.ndarray:
    rng = np.random.default_rng(12)
    return np.concatenate(
        [
            SPECIAL,
            rng.integers(0, 2**64, n, dtype="u8").view("f8"),
            *(rng.uniform(-w, w, n) for w in (1, 12, 750)),
            1 + rng.uniform(-1e-3, 1e-3, n),
            10.0 ** rng.uniform(-320, 308, n) * rng.choice([-1, 1], n),
            np.arange(1, 200) * (np.pi / 2),
        ]
    )


@cache
def case(op: str, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of a unary op, and exact results in a wider type."""
    if dtype in HALVES:
        x = np.arange(65536, dtype="u2").view(dtype)
    else:
        x = inputs32(20_000) if dtype == float32 else inputs64(2000)
    x = x[::16] if EMULATED else x
    return x, UNARY[op][0](x.astype(longdouble if dtype == float64 else float64))


def call(cpu, op, x):
    if op.startswith("gelu"):
        return cpu.run("gelu", x, out=x.dtype, attrs=["tanh" if op == "gelu_tanh" else "none"])
    return cpu.run(op, x, out=x.dtype)


def check(got: np.ndarray, exact: np.ndarray, bound: float, *ins: np.ndarray) -> None:
    error = ulps(got, exact)
    i = int(np.argmax(error))
    assert error[i] <= bound, (
        f"{[a[i] for a in ins]} gave {got[i]!r}, exactly {exact[i]!r}: {error[i]} ulp, not {bound}"
    )


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", UNARY)
def test_unary(cpu, op, dtype):
    x, exact = case(op, dtype)
    bound = UNARY[op][1]
    check(call(cpu, op, x), exact, min(bound, 1) if dtype in HALVES else bound, x)


# In ulp, of float32; exp where the result is normal. Those of torch 2.13: 0.56, 0.52, 1.00, 0.56.
CLOSE = {"exp": 0.58, "log": 0.81, "erf": 0.84, "tanh": 0.55}
CLOSE_BY_TABLES = CLOSE | {"exp": 0.54}


@cache
def float32_samples(op: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(15)
    n = 10_000 if EMULATED else 200_000
    x = np.concatenate(
        [inputs32(n), rng.uniform(-5, 5, n).astype("f4"), rng.integers(0, 2**24, n, "u4").view("f4")]
    )
    exact = UNARY[op][0](x.astype("f8" if op != "erf" else longdouble)).astype("f8")
    normal = exact > 2.0**-126
    return (x[normal], exact[normal]) if op == "exp" else (x, exact)


@pytest.mark.parametrize("op", CLOSE)
def test_float32_is_closer_than_the_bound(cpu, level, op):
    x, exact = float32_samples(op)
    check(call(cpu, op, x), exact, (CLOSE_BY_TABLES if level in ("avx2", "avx512") else CLOSE)[op], x)


# Of float64, in ulp, with fused multiply-add and without. gelu: where the rounding of the reference's argument does
# not matter.
CLOSE64 = {
    "erf": (0.75, 0.78), "erfc": (0.75, 0.78), "tanh": (0.73, 0.73), "gelu": (0.77, 0.79),
    "gelu_tanh": (0.83, 0.83), "exp": (0.53, 0.53), "exp2": (0.54, 0.54),
    "expm1": (0.82, 0.82), "sinh": (1.4, 1.6), "cosh": (0.76, 0.76),
    "sigmoid": (0.76, 0.76), "silu": (0.81, 0.81),
}  # fmt: skip
# Without fused multiply-add by the C library: glibc documents at most 0.62, others less than one.
TRIGONOMETRY64 = {"sin": 0.53, "cos": 0.53, "tan": 0.55, "asin": 0.53, "acos": 0.53, "atan": 0.53}
CLOSE64 |= {op: (bound, 1) for op, bound in TRIGONOMETRY64.items()}


def trigonometry_samples(op: str, rng: np.random.Generator, n: int) -> np.ndarray:
    near_half = 0.5 + rng.uniform(-0.05, 0.05, n)
    if op in ("asin", "acos"):
        return np.concatenate([rng.uniform(-1, 1, n), near_half, 1 - 2.0 ** rng.uniform(-53, 0, n)])
    spread = 2.0 ** rng.uniform(-30, 19, n) * rng.choice([-1, 1], n)
    if op == "atan":
        return np.concatenate([spread, rng.uniform(-4, 4, n), rng.uniform(0.05, 0.15, n), near_half])
    # Next to odd and even multiples of pi / 4, where the remainder is largest, and smallest.
    multiples = rng.integers(1, 1_200_000, n) * (np.pi / 4)
    close = (multiples.view("i8") + rng.integers(-3, 4, n)).view("f8")
    about = multiples * (1 + 2.0 ** rng.uniform(-40, -20, n))
    return np.concatenate([spread, rng.uniform(-2, 2, n), rng.uniform(-9e5, 9e5, n), close, about])


LOGARITHMS64 = {
    "log": 0.505,
    "log2": 0.53,
    "log10": 0.54,
    "log1p": 0.53,
    "asinh": 0.53,
    "acosh": 0.54,
    "atanh": 0.59,
}
CLOSE64 |= {op: (bound, UNARY[op][1]) for op, bound in LOGARITHMS64.items()}


def positive_and_small(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    """Numbers of every size, those next to 1 and to powers of two, and subnormal ones."""
    sign = rng.choice([-1, 1], n)
    small = 2.0 ** rng.uniform(-60, -1, n) * sign
    powers = 2.0 ** rng.integers(-1022, 1024, n)
    subnormal = rng.integers(1, 2**52, n) >> rng.integers(0, 52, n)
    return [
        SPECIAL,
        small,
        1 + small,
        rng.uniform(0.5, 2, n),
        2.0 ** rng.uniform(-1022, 1024, n) * sign,
        (powers.view("i8") + rng.integers(-9, 9, n)).view("f8"),
        subnormal.view("f8"),
    ]


@cache
def float64_samples(op: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(17)
    n = 2_000 if EMULATED else 30_000
    if op in TRIGONOMETRY64:
        x = trigonometry_samples(op, rng, n)
        return x, UNARY[op][0](x.astype(longdouble))
    widths = (0.5, 1, 3, 8) if op.startswith("gelu") else (0.5, 1, 3, 8, 28)
    parts = [rng.uniform(-w, w, n) for w in widths] + [rng.uniform(26.3, 27.3, n) * (op == "erfc")]
    if op in LOGARITHMS64:
        parts += positive_and_small(rng, n)
    x = np.concatenate(parts)
    return x, UNARY[op][0](x.astype(longdouble))


@pytest.mark.skipif(np.finfo(longdouble).nmant < 63, reason="long double is a double")
@pytest.mark.parametrize("op", CLOSE64)
def test_float64_is_closer_than_the_bound(cpu, level, op):
    has_fma = level != "default" or platform.machine() != "x86_64"
    x, exact = float64_samples(op)
    check(call(cpu, op, x), exact, CLOSE64[op][not has_fma], x)


@pytest.mark.skipif(np.finfo(longdouble).nmant < 63, reason="long double is a double")
def test_float64_gelu_grad_is_closer_than_the_bound(cpu):
    """In units of the last place, but of 1/4 where two terms of about that size cancel."""
    x = float64_samples("gelu")[0][:-1]
    y = x.astype(longdouble)
    density = np.exp(-y * y / 2) / np.sqrt(2 * np.arccos(longdouble.type(-1)))
    exact = 0.5 * erf_and_erfc(-y / np.sqrt(longdouble.type(2)))[1] + y * density
    unit = np.where(np.abs(x + 0.75) < 0.5, np.spacing(0.25), np.spacing(np.abs(exact).astype("f8")))
    grad = np.ldexp(np.where(np.arange(x.size) % 3, 1.0, -1.0), np.arange(x.size) % 7)
    for g in (grad, np.broadcast_to(grad[0], x.shape)):
        error = np.abs(cpu.run("gelu_grad", x, g, out=float64, attrs=["none"]) / g - exact) / unit
        i = int(np.argmax(error))
        assert error[i] <= 0.8, f"{x[i]!r} is wrong by {error[i]} ulp"
    special = np.array([np.inf, -np.inf, np.nan, 1e300, -39.5, 0, -0.0])
    got = cpu.run("gelu_grad", special, np.ones(7), out=float64, attrs=["none"])
    np.testing.assert_array_equal(got, [1, 0, np.nan, 1, 0, 0.5, 0.5])


def vary_neighbours(x: np.ndarray, special: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x where a tenth of the numbers is special, and a mask of the others."""
    rng = np.random.default_rng(16)
    changed = rng.random(x.size) < 0.1
    return np.where(changed, rng.choice(special, x.size), x), ~changed


@pytest.mark.parametrize("op", ["exp", "log", "erf", "gelu", "silu", "sigmoid", "tanh"])
def test_results_do_not_depend_on_their_neighbours(cpu, op):
    """Whatever else is in the vector: special values, which some levels compute on a way of their own."""
    x = np.random.default_rng(16).uniform(-12, 12, 4000).astype("f4")
    mixed, same = vary_neighbours(x, SPECIAL.astype("f4"))
    for dtype in (float32, float16, bfloat16):
        want, got = (call(cpu, op, v.astype(dtype)).astype(float32)[same] for v in (x, mixed))
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("op", [*TRIGONOMETRY64, "atan2"])
def test_float64_does_not_depend_on_the_rest_of_its_vector(cpu, op):
    """Some numbers are left to the C library: others in the same vector are not."""
    rng = np.random.default_rng(18)
    x, y = rng.uniform(-1, 1, (2, 4000)) * (1 if op in ("asin", "acos") else 1000)
    other = rng.choice([*SPECIAL, 1e7, 1e300, -1e300, 5e-324, -1e-310], x.size)
    mixed = np.where(rng.random(x.size) < 0.1, other, x)
    rest = (y,) if op == "atan2" else ()
    want, got = (cpu.run(op, v, *rest, out=float64) for v in (x, mixed))
    np.testing.assert_array_equal(got[mixed == x], want[mixed == x])
    for n in (1, 2, 3, 5, 7, 9, 15):
        np.testing.assert_array_equal(cpu.run(op, x[:n], *(v[:n] for v in rest), out=float64), want[:n])
    np.testing.assert_array_equal(cpu.run(op, x, *rest, out=float64, inplace=True), want)


@pytest.mark.skipif(np.finfo(longdouble).nmant < 63, reason="long double is a double")
def test_float64_atan2_is_closer_than_the_bound(cpu, level):
    has_fma = level != "default" or platform.machine() != "x86_64"
    rng = np.random.default_rng(19)
    n = 2_000 if EMULATED else 30_000
    x = np.concatenate([rng.uniform(-1, 1, n), 10.0 ** rng.uniform(-160, 160, n) * rng.choice([-1, 1], n)])
    y = np.concatenate([rng.uniform(-1, 1, n), x[n:] * 2.0 ** rng.uniform(-20, 20, n)])
    y[: n // 2] = x[: n // 2] * rng.uniform(0.4, 0.6, n // 2)
    exact = np.arctan2(y.astype(longdouble), x.astype(longdouble))
    check(cpu.run("atan2", y, x, out=float64), exact, 0.53 if has_fma else 1, y, x)


@pytest.mark.parametrize("op", CLOSE64)
def test_float64_results_do_not_depend_on_their_neighbours(cpu, op):
    """Nor do the signs of zeros."""
    x = float64_samples(op)[0]
    x = x[np.isfinite(x)]
    mixed, same = vary_neighbours(x, np.concatenate([SPECIAL, [1e-310, -1e-310, 1e200, -1e200, 1.7e308]]))
    want, got = (call(cpu, op, v)[same] for v in (x, mixed))
    np.testing.assert_array_equal(got.view("u8"), want.view("u8"))


@pytest.mark.parametrize("op", UNARY)
def test_every_size_gives_the_same(cpu, op):
    x = np.linspace(0.01, 0.99, 1100).astype("f4")
    want = call(cpu, op, x)
    for n in [*range(1, 70), 511, 512, 513, 1029]:
        np.testing.assert_array_equal(call(cpu, op, x[:n]), want[:n])
    strided = np.repeat(x, 3)[::3]
    np.testing.assert_array_equal(call(cpu, op, strided), want)
    if op not in ("gelu", "gelu_tanh"):
        np.testing.assert_array_equal(cpu.run(op, x, out=float32, inplace=True), want)


def pairs(op: str, dtype: np.dtype, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(13)
    a, b = (v.reshape(-1) for v in np.meshgrid(SPECIAL, SPECIAL))
    wild = rng.integers(0, 2**32, (2, n), dtype="u4").view("f4").astype("f8")
    spread = 10.0 ** rng.uniform(-38, 38, (2, n)) * rng.choice([-1, 1], (2, n))
    blocks = [(a, b), wild, spread, rng.uniform(-100, 100, (2, n)), rng.integers(-40, 40, (2, n)).astype("f8")]
    if op == "pow":
        span = 1000 if dtype == float64 else 140
        for base in (np.abs(spread[0]), rng.uniform(0.4, 2.5, n), 1 + rng.uniform(-1e-3, 1e-3, n)):
            blocks.append((base, rng.uniform(-span, span, n) / np.log2(base)))
    x, y = (np.concatenate([np.asarray(block[i], "f8") for block in blocks]).astype(dtype) for i in (0, 1))
    return x, y


@cache
def binary_case(op: str, dtype: np.dtype):
    x, y = pairs(op, dtype, 3000 if dtype == float64 else 10_000)
    wide = longdouble if dtype == float64 else float64
    return x, y, BINARY[op][0](x.astype(wide), y.astype(wide))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", BINARY)
def test_binary(cpu, op, dtype):
    x, y, exact = binary_case(op, dtype)
    check(cpu.run(op, x, y, out=dtype), exact, BINARY[op][1] if dtype.itemsize > 2 else 1, x, y)
    for i in (1, 5, 30, 77):
        for ins in ((Scalar(x[i]), y[:300]), (x[:300], Scalar(y[i]))):
            plain = [v.value if isinstance(v, Scalar) else v for v in ins]
            left, right = (np.ascontiguousarray(v) for v in np.broadcast_arrays(*plain))
            got = cpu.run(op, *ins, out=dtype, shape=(300,))
            np.testing.assert_array_equal(
                got.astype("f8"), cpu.run(op, left, right, out=dtype).astype("f8"), err_msg=str(plain)
            )


@cache
def pow_samples() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Also such as have a result near the greatest or least number."""
    rng = np.random.default_rng(18)
    n = 1_000 if EMULATED else 30_000
    near = 1 + 2.0 ** rng.uniform(-50, -1, n) * rng.choice([-1, 1], n)
    bases = [rng.uniform(0.1, 4, n), near, 2.0 ** rng.uniform(-1070, 1024, n)]
    bases += [rng.uniform(-9, 9, n), rng.choice(np.concatenate([SPECIAL, [1e-310, 1e300]]), n)]
    exponents = [rng.uniform(-3, 3, n), *(rng.uniform(-760, 760, n) / np.log(b) for b in bases[1:3])]
    exponents += [rng.integers(-20, 20, n).astype("f8"), rng.choice(SPECIAL, n)]
    x, y = np.concatenate(bases), np.concatenate(exponents)
    return x, y, np.power(x.astype(longdouble), y.astype(longdouble))


@pytest.mark.skipif(np.finfo(longdouble).nmant < 63, reason="long double is a double")
def test_float64_pow_is_closer_than_the_bound(cpu, level):
    x, y, exact = pow_samples()
    check(cpu.run("pow", x, y, out=float64), exact, 0.51 if level in ("avx2", "avx512") else 1, x, y)


def test_float64_pow_does_not_depend_on_neighbours(cpu):
    x, y, _ = pow_samples()
    (left, same), (right, also_same) = (vary_neighbours(v, SPECIAL) for v in (x, y))
    same &= also_same
    want, got = (cpu.run("pow", *ins, out=float64)[same].view("u8") for ins in ((x, y), (left, right)))
    np.testing.assert_array_equal(got, want)


def test_exact_values(cpu):
    """If the result is a float, it must be that float."""
    k = np.arange(-126, 128, dtype="f4")
    power = np.exp2(k.astype("f8")).astype("f4")
    np.testing.assert_array_equal(cpu.run("exp2", k, out=float32), power)
    np.testing.assert_array_equal(cpu.run("log2", power, out=float32), k)
    ten = np.array([10.0**i for i in range(11)], "f4")
    np.testing.assert_array_equal(cpu.run("log10", ten, out=float32), np.arange(11, dtype="f4"))
    x, y = (v.reshape(-1).astype("f4") for v in np.meshgrid(np.arange(-15, 16), np.arange(0, 6)))
    np.testing.assert_array_equal(cpu.run("pow", x, y, out=float32), (x.astype("f8") ** y).astype("f4"))
    assert cpu.run("exp", np.zeros(1, "f4"), out=float32) == 1
    assert cpu.run("log", np.ones(1, "f4"), out=float32) == 0


def test_sin_of_huge_and_almost_multiples_of_pi(cpu):
    rng = np.random.default_rng(14)
    n = 4_000 if EMULATED else 60_000
    huge = (2.0 ** rng.uniform(18, 128, n) * rng.choice([-1, 1], n)).astype("f4")
    # floats next to multiples of pi / 2, all over the range
    k = np.floor(2.0 ** rng.uniform(0, 52, n))
    close = (k * (np.pi / 2)).astype("f4")
    x = np.concatenate([huge, close, np.float32([16367173.0 * 2.0**72, 3.3639536e38, 1.1e19])])
    for op, f in (("sin", np.sin), ("cos", np.cos), ("tan", np.tan)):
        check(cpu.run(op, x, out=float32), f(x.astype(longdouble)), 1, x)


def test_unknown_kind_of_gelu(cpu):
    with pytest.raises(KernelError, match='approximate is unknown: expected "none" or "tanh", got "other"') as e:
        cpu.run("gelu", np.ones(3, "f4"), out=float32, attrs=["other"])
    assert e.value.code == INVALID
