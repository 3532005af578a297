"""Complex numbers: kernels of dovetail-cpu, and bodies over pairs of floats on a device without."""

import cmath
import itertools
import math

import dovetail as dt
import numpy as np
import pytest

INF, NAN = math.inf, math.nan
FUNCTIONS = "acos acosh asin asinh atan atanh cos cosh exp log log10 sin sinh sqrt tan tanh".split()
PARTS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 1e-30, -1e-300, 300.0, -3e7, 1e300, INF, -INF, NAN)
POINTS = [complex(a, b) for a, b in itertools.product(PARTS, PARTS)]


# Where the array API names another value than cmath, whose C99 leaves it open.
OTHERS = {
    "tan": lambda z: _is_open(z.imag, z.real),
    "tanh": lambda z: _is_open(z.real, z.imag),
    "acosh": lambda z: z.real == 0 and math.isnan(z.imag),
}


def _is_open(a: float, b: float) -> bool:
    return math.isinf(a) or (math.isnan(a) and b == 0) or (math.isnan(b) and a == 0)


def by_cmath(name: str, z: complex) -> complex | None:
    """C99's value, or None where cmath raises an error instead."""
    try:
        return None if name in OTHERS and OTHERS[name](z) else getattr(cmath, name)(z)
    except (ValueError, OverflowError):
        return None


def near(z: complex, got: complex, wanted: complex) -> bool:
    finite = [abs(p) for p in (wanted.real, wanted.imag) if math.isfinite(p)]
    most = 16 * math.ulp(max([*finite, 1e-300]))
    unknown = cmath.isnan(z) or cmath.isnan(wanted)  # then the signs of infinities and zeros, too

    def same(a: float, b: float) -> bool:
        if not math.isfinite(b):
            return math.isnan(a) if math.isnan(b) else abs(a) == INF if unknown else a == b
        return abs(a - b) <= most and (b != 0 or a != 0 or math.copysign(1, a) == math.copysign(1, b) or unknown)

    return same(got.real, wanted.real) and same(got.imag, wanted.imag)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values_are_those_of_c99(name, home):
    wanted = [(z, w) for z in POINTS if (w := by_cmath(name, z)) is not None]
    got = getattr(dt, name)(dt.asarray([z for z, _ in wanted], dtype="complex128")).tolist()
    wrong = [(z, g, w) for (z, w), g in zip(wanted, got, strict=True) if not near(z, g, w)]
    assert not wrong, f"{len(wrong)} of {len(wanted)}: (argument, got, wanted) {wrong[:12]}"


def draw(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(7)  # of each call: tests run in any order
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 5, 5), (40, 40), (6, 4), (3, 7)])
def test_factors_of_complex_matrices(shape, home):
    a = draw(*shape)
    x = dt.asarray(a)
    for got, wanted in zip(dt.linalg.qr(x), np.linalg.qr(a), strict=True):
        np.testing.assert_allclose(got.numpy(), wanted, atol=1e-12)
    u, s, vh = (r.numpy() for r in dt.linalg.svd(x, full_matrices=False))
    np.testing.assert_allclose(u * s[..., None, :] @ vh, a, atol=1e-12)
    np.testing.assert_allclose(s, np.linalg.svd(a)[1], atol=1e-12)
    np.testing.assert_allclose(dt.linalg.pinv(x).numpy(), np.linalg.pinv(a), atol=1e-11)
    if shape[-1] != shape[-2]:
        return
    positive = a @ np.swapaxes(a, -1, -2).conj() + np.eye(shape[-1])
    lower = dt.linalg.cholesky(dt.asarray(positive))
    np.testing.assert_allclose(lower.numpy(), np.linalg.cholesky(positive), atol=1e-12)
    values, vectors = (r.numpy() for r in dt.linalg.eigh(dt.asarray(positive)))
    assert values.dtype == "float64"
    np.testing.assert_allclose(values, np.linalg.eigvalsh(positive), rtol=1e-12)
    np.testing.assert_allclose(positive @ vectors, vectors * values[..., None, :], atol=1e-10)
    b = draw(*shape[:-1], 2)
    np.testing.assert_allclose(a @ dt.linalg.solve(x, dt.asarray(b)).numpy(), b, atol=1e-10)
    np.testing.assert_allclose(dt.linalg.det(x).numpy(), np.linalg.det(a), rtol=1e-10)


def test_compiled_functions_and_programs_compute_with_complex_numbers(home):
    def rotate(z, angle):
        return dt.sum(dt.abs(z * dt.exp(1j * angle)) + (z / 2).real, axis=0)

    z, angle = draw(5, 3), draw(5, 1).real.copy()
    wanted = np.sum(np.abs(z) + z.real / 2, axis=0)
    args = (dt.asarray(z), dt.asarray(angle))
    for function in (rotate, dt.compile(rotate), dt.export(rotate, *args)):
        np.testing.assert_allclose(function(*args).numpy(), wanted, rtol=1e-12)


def test_numbers_and_other_dtypes_promote(home):
    z = dt.asarray([1 + 2j, -3j])
    assert (z + 1).dtype == "complex64"
    assert (z * dt.asarray([1.0, 2.0], dtype="float64")).dtype == "complex128"
    assert (dt.asarray([1.0]) * 1j).dtype == "complex64"
    assert (z.astype("complex128") / 2).tolist() == [0.5 + 1j, -1.5j]
    assert dt.asarray([2, 3]).astype("complex64").tolist() == [2, 3]
    assert z.astype("bool").tolist() == [True, True]
    assert dt.full((2,), 1 - 1j).tolist() == [1 - 1j] * 2
    assert dt.conj(z).tolist() == [1 - 2j, 3j]
    with pytest.raises(TypeError, match=r"\[floor\] dtype complex64"):
        dt.floor(z)
    with pytest.raises(NotImplementedError, match=r"\[var\].*complex"):
        dt.var(z)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_both_products_of_a_part_are_rounded(home, dtype):
    rng = np.random.default_rng(0)
    for n in (1, 7, 64, 1001):
        host = (rng.normal(size=n) + 1j * rng.normal(size=n)).astype(dtype)
        z = dt.asarray(host)
        square = (z * dt.conj(z)).numpy()
        np.testing.assert_array_equal(square.imag, 0)
        np.testing.assert_allclose(square.real, abs(host) ** 2, rtol=8 * np.finfo(dtype).eps)
        np.testing.assert_array_equal((z * (2 - 1j)).numpy(), (z * dt.full(n, 2 - 1j, dtype=dtype)).numpy())
        for got, wanted in ((z * z, host * host), (dt.square(z), host * host), (abs(z), abs(host))):
            np.testing.assert_allclose(got.numpy(), wanted, rtol=8 * np.finfo(dtype).eps)
        np.testing.assert_allclose(dt.sum(z).numpy(), host.astype("complex128").sum(), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["asin", "acos", "asinh", "acosh"])
def test_inverse_functions_of_the_largest_numbers(name, dtype):
    part = np.finfo(dtype)
    sizes = np.array([0.9, -0.9, 0.2, 1e-3, 0, -0.0]) * float(part.max)
    z = (sizes[:, None] + 1j * sizes[:-1]).astype(dtype)
    wanted = getattr(np, "arc" + name[1:])(z.astype(np.clongdouble))
    for home in ("cpu", "sim") if dtype == "complex64" else ("cpu",):
        got = getattr(dt, name)(dt.asarray(z, device=home)).numpy()
        np.testing.assert_allclose(got.real, wanted.real.astype(part.dtype), rtol=4 * part.eps)
        np.testing.assert_allclose(got.imag, wanted.imag.astype(part.dtype), rtol=4 * part.eps)


def test_extremes_have_the_same_values_with_kernels_and_without(home):
    """Infinities, NaN and numbers whose products overflow: as pairs of floats, which sim computes with."""
    sign = lambda x: np.where(np.isnan(x), 0, np.copysign(1, x))  # noqa: E731
    a, b = (np.array(x).reshape(-1) for x in np.meshgrid(POINTS, POINTS))
    x, y = dt.asarray(a), dt.asarray(b)
    u, v = dt.asarray(a, device="sim"), dt.asarray(b, device="sim")
    for f in (dt.multiply, dt.divide, dt.add, lambda x, _: abs(x), lambda x, _: dt.reciprocal(x)):
        got, wanted = (np.stack([z.real, z.imag]) for z in (f(x, y).numpy(), f(u, v).numpy()))
        np.testing.assert_allclose(got, wanted, rtol=4e-16, atol=0)
        np.testing.assert_array_equal(sign(got), sign(wanted))
