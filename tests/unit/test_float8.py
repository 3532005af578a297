"""float8_e4m3fn and float8_e5m2: all their numbers, rounding to them, computing through float32."""

import functools
import math

import dovetail as dt
import ml_dtypes
import numpy as np
import pytest
from dovetail import _core, nn
from dovetail.prototype import kernel
from python_devices import add, opened

FLOAT8 = ["float8_e4m3fn", "float8_e5m2"]
OTHERS = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64",
]  # fmt: skip
pytestmark = pytest.mark.parametrize("dtype", FLOAT8)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def foreign(dtype: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, dtype))


def every(dtype: str) -> np.ndarray:
    return np.arange(256, dtype=np.uint8).view(foreign(dtype))


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """The nearest numbers by a search among all of them, in float64; ties go to the even last bit."""
    numbers = np.unique(np.abs(every(dtype).astype(np.float64)))  # sorted: NaN is last, infinity before it
    numbers = numbers[np.isfinite(numbers)]
    step = numbers[-1] - numbers[-2]
    numbers = np.append(numbers, numbers[-1] + step)  # the next value above the largest
    x = np.abs(values.astype(np.float64))
    at = np.clip(np.searchsorted(numbers, np.where(np.isnan(x), 0, x)), 1, len(numbers) - 1)
    low, high = numbers[at - 1], numbers[at]
    upper = (x > (low + high) / 2) | ((x == (low + high) / 2) & (at % 2 == 0))
    nearest = np.where(upper, high, low)
    beyond = math.nan if dtype == "float8_e4m3fn" else math.inf
    nearest = np.where(nearest == numbers[-1], beyond, nearest)
    return np.where(np.isnan(x), math.nan, np.copysign(nearest, values))


def same(got, want):
    np.testing.assert_array_equal(got, want)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])


def test_every_number(dtype):
    x = dt.asarray(every(dtype))
    assert x.dtype == dtype and x.numpy().dtype == foreign(dtype) and np.asarray(x).dtype == foreign(dtype)
    np.testing.assert_array_equal(x.numpy().view(np.uint8), np.arange(256))
    wide = every(dtype).astype(np.float64)
    same(np.array(x.tolist()), wide)
    for other in ("float64", "float32", "bfloat16", "float16"):
        same(x.astype(other).numpy().astype(np.float64), wide)
    finite = np.isfinite(wide)
    np.testing.assert_array_equal(x[finite].astype("int32").numpy(), np.trunc(wide[finite]))
    np.testing.assert_array_equal(x.astype("bool").numpy(), wide != 0)


@pytest.mark.parametrize("source", ["float64", "float32", "bfloat16", "float16", "python"])
def test_is_rounded_once(dtype, source, rng):
    numbers = every(dtype).astype(np.float64)
    numbers = np.sort(numbers[np.isfinite(numbers)])
    ties = (numbers[1:] + numbers[:-1]) / 2
    near = [t * (1 + s * 2.0**-e) for t in ties for s in (-1, 1) for e in (9, 22, 30, 50)]
    draws = rng.standard_normal(4000) * 10.0 ** rng.integers(-8, 8, 4000)
    ends = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1e300, 463.9, 464, 465, 61439, 61440, 61441]
    values = np.concatenate([numbers, ties, near, draws, ends])
    if source == "python":
        values = values[np.abs(values) <= dt.finfo(dtype).max]  # larger values raise
        got = dt.asarray(values.tolist(), dtype=dtype)
    else:
        with np.errstate(all="ignore"):
            values = values.astype(ml_dtypes.bfloat16 if source == "bfloat16" else source)
        got = dt.asarray(values).astype(dtype)
    same(got.numpy().astype(np.float64), rounded(values, dtype))
    if source == "float64":  # NumPy's own conversion goes through float32
        same(dt.asarray(values, dtype=dtype).numpy().astype(np.float64), rounded(values, dtype))


@pytest.mark.parametrize("other", OTHERS)
def test_integers_and_back(dtype, other):
    values = np.arange(2) if other == "bool" else np.array([0, 1, 2, 17, 25, 100, 112])
    x = dt.asarray(values, dtype=other).astype(dtype)
    same(x.numpy().astype(np.float64), rounded(values, dtype))
    np.testing.assert_array_equal(x.astype(other).numpy().astype(np.float64), np.trunc(rounded(values, dtype)))


def test_large_integers(dtype):
    values = np.array([2**63 - 1, 2**24 + 1, 465, 464, -(2**40), 57344, 61439, 65536])
    same(dt.asarray(values).astype(dtype).numpy().astype(np.float64), rounded(values, dtype))


def test_the_values_that_it_has(dtype):
    if dtype == "float8_e4m3fn":
        x = dt.ones(2, dtype=dtype)
        for made in (lambda: x < 1000, lambda: dt.maximum(x, -math.inf), lambda: dt.asarray([465.0], dtype=dtype)):
            with pytest.raises(OverflowError, match="has no infinity: expected -448 to 448, or a wider dtype"):
                made()
        assert (x < 464).all() and np.isnan(dt.add(x, math.nan).numpy().astype(float)).all()
    got, want = dt.finfo(dtype), ml_dtypes.finfo(foreign(dtype))
    for name in ("bits", "eps", "max", "min", "smallest_normal"):
        assert float(getattr(got, name)) == float(getattr(want, name))
    assert dt.isdtype(got.dtype, "real floating") and dtype not in dt.__array_namespace_info__().dtypes()


def test_promotion(dtype):
    (other,) = {*FLOAT8} - {dtype}
    assert dt.result_type(dtype, dtype) == dt.result_type(dtype, "int32") == dt.result_type(dtype, 1.5) == dtype
    assert dt.result_type(dtype, other) == "float32"
    for wider in ("float16", "bfloat16", "float32", "float64"):
        assert dt.result_type(dtype, wider) == wider


def test_arithmetic_is_float32s_rounded_once(dtype, rng):
    a, b = (rng.permutation(every(dtype))[:200] for _ in range(2))
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    x, y = dt.asarray(a), dt.asarray(b)
    with np.errstate(all="ignore"):
        for got, want in ((x + y, wide_a + wide_b), (x * y, wide_a * wide_b), (dt.sqrt(x), np.sqrt(wide_a))):
            assert got.dtype == dtype
            same(got.numpy().astype(np.float64), rounded(want, dtype))
        np.testing.assert_array_equal((x < y).numpy(), wide_a < wide_b)
    few = dt.asarray([1.0, 2.0, 0.5], dtype=dtype)
    assert dt.sum(few).item() == 3.5 and dt.max(few).item() == 2 and nn.relu(-few).tolist() == [0, 0, 0]
    few[1] = 0.3
    assert few[1].item() == rounded(np.array(0.3), dtype)


def test_copies_keep_the_bits(dtype):
    x = dt.asarray(every(dtype).reshape(16, 16))
    bits = np.arange(256, dtype=np.uint8).reshape(16, 16)
    moved = dt.concat([dt.flip(x.T, axis=0), dt.roll(x, 3, axis=1)], axis=1)
    want = np.concatenate([bits.T[::-1], np.roll(bits, 3, 1)], 1)
    np.testing.assert_array_equal(moved.numpy().view(np.uint8), want)
    np.testing.assert_array_equal(dt.take(x, dt.asarray([5, 0]), axis=0).numpy().view(np.uint8), bits[[5, 0]])
    assert dt.full((2,), 1.3, dtype=dtype).tolist() == rounded(np.array([1.3, 1.3]), dtype).tolist()
    with pytest.raises(BufferError, match=f"array of {dtype} .* use x.numpy"):
        _core.elements(x)


def test_scaled_linear(dtype, rng):
    x, w = (rng.uniform(-8, 8, shape).astype(foreign(dtype)) for shape in ((2, 5, 33), (7, 33)))
    rows, columns, bias = rng.random((2, 5)), rng.random(7), rng.random(7).astype(np.float32)
    rows, columns = rows.astype(np.float32), columns.astype(np.float32)
    want = x.astype(np.float64) @ w.T.astype(np.float64) * rows[..., None] * columns + bias
    operands = [dt.asarray(a) for a in (x, w, rows, columns, bias)]
    got = nn.scaled_linear(*operands)
    assert got.dtype == "float32"
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-4)
    half = nn.scaled_linear(*operands, dtype="bfloat16")
    assert half.dtype == "bfloat16"
    np.testing.assert_allclose(half.numpy().astype(np.float64), want, rtol=2**-8, atol=1e-4)
    with pytest.raises(TypeError, match=r"x is float32: expected int8, float8_e4m3fn or float8_e5m2; linear\(\)"):
        nn.scaled_linear(dt.ones((2, 3)), operands[1], 1.0, 1.0)
    with pytest.raises(ValueError, match=r"x_scale .* expected shape .2, 5., one value for each row of x, or one"):
        nn.scaled_linear(*operands[:2], dt.ones(5), 1.0)
    with pytest.raises(TypeError, match="dtype int8 is not supported: expected a real float"):
        nn.scaled_linear(*operands[:2], 1.0, 1.0, dtype="int8")


@kernel("astype", " ".join(f"float32->{d} {d}->float32" for d in [*FLOAT8, "int32"]))
def astype(self, x, out, *, dtype):
    out.numpy()[...] = x.numpy().astype(out.numpy().dtype)


@functools.cache
def with_float32_alone() -> dt.Device:
    return opened(astype=astype, add=add)


def test_float32_is_enough_for_a_device(dtype):
    """Through it astype converts from and to all other types, and so does every op."""
    device, before = with_float32_alone(), dt.fallback("error")
    try:
        x = dt.asarray([1, 3, 25], dtype="int32", device=device).astype(dtype)
        assert x.dtype == dtype and x.tolist() == rounded(np.array([1.0, 3.0, 25.0]), dtype).tolist()
        assert x.astype("int32").tolist() == x.tolist() and (x + x).tolist() == [2 * n for n in x.tolist()]
        wide = dt.asarray([1.0], dtype="float64", device=device)  # would be rounded twice
        with pytest.raises(NotImplementedError, match=rf"\[astype\] float64 to {dtype} is not supported"):
            wide.astype(dtype)
    finally:
        dt.fallback(before)


def test_each_scale_applies_separately(dtype):
    one, two = dt.ones((1, 1), dtype=dtype), dt.full((1, 1), 2, dtype=dtype)
    for scale in (dt.asarray(1.0, dtype="float16"), dt.asarray(1, dtype="int8"), dt.asarray(1.0, dtype=dtype), 1):
        for other, want in ((1e-9, 2e-9), (1000, 2000), (dt.asarray(100_000), 200_000)):
            assert nn.scaled_linear(one, two, other, scale).item() == np.float32(want)
            assert nn.scaled_linear(one, two, scale, other).item() == np.float32(want)
    exact = nn.scaled_linear(one, one, 0.1, 0.1, dtype="float64")
    assert exact.item() == 0.1 * 0.1
    kept = nn.scaled_linear(dt.ones((2, 3), dtype=dtype), one * dt.ones((4, 3), dtype=dtype), dt.ones((2, 1)), 1.0)
    assert kept.tolist() == [[3.0] * 4] * 2
    with pytest.raises(TypeError, match="is not supported: expected a real number"):
        nn.scaled_linear(one, two, 1j, 1.0)
    with pytest.raises(TypeError, match="bias is complex: expected real numbers"):
        nn.scaled_linear(one, two, 1.0, 1.0, dt.asarray([1j]))


def test_the_activation_is_applied_to_the_sums(dtype):
    x, w = dt.full((1, 1), -400, dtype=dtype), dt.full((1, 1), 300, dtype=dtype)  # their product is out of range
    assert nn.linear_with_activation(x, w, activation="relu").item() == 0
