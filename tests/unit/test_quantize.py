"""quantize and dequantize: rounding, saturation, one scale or many, and invalid arguments."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest

RNG = np.random.default_rng(13)
X = RNG.normal(size=(3, 5, 8)).astype(np.float32)


def test_ties_go_to_even():
    x = dt.asarray([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], dtype="float32")
    assert dt.quantize(x, 1.0, dtype="int8").tolist() == [-2, -2, 0, 0, 2, 2]
    assert dt.quantize(x, 1.0, 3, dtype="uint8").tolist() == [1, 1, 3, 3, 5, 5]


@pytest.mark.parametrize(("dtype", "least", "most"), [("int8", -128, 127), ("uint8", 0, 255)])
def test_values_out_of_range_saturate(dtype, least, most):
    x = dt.asarray([-np.inf, -1e30, 1e30, np.inf], dtype="float32")
    assert dt.quantize(x, 0.5, 7, dtype=dtype).tolist() == [least, least, most, most]


def test_nan_becomes_zero_point():
    x = dt.asarray([np.nan, 0.0, -0.0], dtype="float32")
    assert dt.quantize(x, 0.5, 7, dtype="uint8").tolist() == [7, 7, 7]
    assert dt.quantize(x, 0.0, 7, dtype="uint8").tolist() == [7, 7, 7]  # 0 / 0


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("floating", ["float16", "bfloat16", "float32", "float64"])
def test_there_and_back(dtype, floating):
    info = np.iinfo(dtype)
    every = dt.asarray(np.arange(info.min, info.max + 1), dtype=dtype)
    scale = dt.asarray(0.125, dtype=floating)
    x = dt.dequantize(every, scale, 3)
    assert x.dtype == floating and x[0].item() == (info.min - 3) * 0.125
    np.testing.assert_array_equal(dt.quantize(x, scale, 3, dtype=dtype).numpy(), every.numpy())


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_each_index_of_an_axis_has_its_scale(axis):
    n = X.shape[axis]
    scales, zero_points = RNG.uniform(0.01, 0.05, n).astype(np.float32), RNG.integers(90, 160, n).astype(np.uint8)
    x, scale, zero_point = map(dt.asarray, (X, scales, zero_points))
    q = dt.quantize(x, scale, zero_point, axis=axis, dtype="uint8")
    back = dt.dequantize(q, scale, zero_point, axis=axis)
    assert (q.dtype, back.dtype) == ("uint8", "float32")
    for i in range(n):
        part = X.take(i, axis)
        steps = np.clip(np.rint(part / scales[i]) + zero_points[i], 0, 255)
        np.testing.assert_array_equal(q.numpy().take(i, axis), steps)
        np.testing.assert_array_equal(back.numpy().take(i, axis), (steps - zero_points[i]).astype("f4") * scales[i])


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("block_size", [1, 2, 3, 16])
@pytest.mark.parametrize("zero_points", ["none", "one", "each"])
@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_a_scale_for_each_block(axis, block_size, zero_points, device):
    shape = list(X.shape)
    shape[axis] = -(-shape[axis] // block_size)
    scale = RNG.uniform(0.01, 0.05, shape).astype(np.float32)
    each = {"none": 0, "one": 9, "each": RNG.integers(0, 255, shape)}[zero_points]

    def spread(v):
        v = np.repeat(np.broadcast_to(v, shape), block_size, axis)
        return np.take(v, range(X.shape[axis]), axis)

    zero = spread(each)
    steps = np.clip(np.rint(X / spread(scale)) + zero, 0, 255)
    given = [dt.asarray(scale, device=device)]
    given += [] if zero_points == "none" else [9] if zero_points == "one" else [dt.asarray(each, device=device)]
    q = dt.quantize(dt.asarray(X, device=device), *given, axis=axis, block_size=block_size, dtype="uint8")
    np.testing.assert_array_equal(q.numpy(), steps)
    back = dt.dequantize(q, *given, axis=axis, block_size=block_size)
    np.testing.assert_array_equal(back.numpy(), (steps - zero).astype("f4") * spread(scale))


def test_blocks_in_a_compiled_function_of_any_size():
    @dt.compile
    def there_and_back(x, scale):
        q = dt.quantize(x, scale, axis=1, block_size=32, dtype="int8")
        return dt.dequantize(q, scale, axis=1, block_size=32)

    for n in (64, 96, 40):
        x = dt.asarray(RNG.normal(size=(4, n)).astype(np.float32))
        scale = dt.full((4, -(-n // 32)), 0.02)
        np.testing.assert_allclose(there_and_back(x, scale).numpy(), np.clip(x.numpy(), -2.56, 2.54), atol=0.0101)


def test_one_zero_point_for_many_scales():
    x, scale = dt.asarray(X), dt.asarray(RNG.uniform(0.01, 0.05, 5).astype(np.float32))
    many = dt.quantize(x, scale, dt.full((5,), 128), axis=1, dtype="uint8")
    np.testing.assert_array_equal(dt.quantize(x, scale, 128, axis=1, dtype="uint8").numpy(), many.numpy())


def test_a_quotient_is_rounded_once_before_it_is_a_whole_number():
    """In float32, by IEEE: devices and NumPy agree to the bit, also where a product would differ."""
    x = RNG.normal(size=100_000).astype(np.float32)
    want = np.clip(np.rint(x / np.float32(0.013)), -128, 127).astype(np.int8)
    np.testing.assert_array_equal(dt.quantize(dt.asarray(x), 0.013, dtype="int8").numpy(), want)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: dt.quantize(x, 0.1), TypeError, "misses the argument 'dtype'"),
        (lambda x: dt.quantize(x, 0.1, dtype="int16"), TypeError, "dtype int16: expected int8, .*; astype"),
        (lambda x: dt.quantize(x, 0.1, dtype="float16"), TypeError, "dtype float16: expected int8, uint8, int4"),
        (lambda x: dt.quantize(dt.asarray(X * 1j), 0.1, dtype="int8"), TypeError, "expected a real float"),
        (lambda x: dt.quantize(x, 0.1, 0.5, dtype="int8"), TypeError, "zero_point is float32: .* astype it"),
        (
            lambda x: dt.quantize(x, dt.ones(5), dtype="int8"),
            ValueError,
            r"scale of shape \(5,\): expected one value for all of x; axis= names the axis",
        ),
        (
            lambda x: dt.quantize(x, dt.ones(5), axis=2, dtype="int8"),
            ValueError,
            r"scale of shape \(5,\) does not fit: expected shape \(8,\), one value for each index of x's axis 2",
        ),
        (lambda x: dt.quantize(x, 0.1, axis=0, dtype="int8"), ValueError, r"scale of shape \(\) does not fit"),
        (
            lambda x: dt.quantize(x, dt.ones(5), dt.full((4,), 1), axis=1, dtype="int8"),
            ValueError,
            r"zero_point of shape \(4,\) does not fit: expected shape \(5,\), that of scale, or one value",
        ),
        (
            lambda x: dt.quantize(x, dt.ones((3, 5, 8)), axis=1, block_size=2, dtype="int8"),
            ValueError,
            r"scale: got shape \(3, 5, 8\), expected \(3, 3, 8\), one for each block",
        ),
        (
            lambda x: dt.quantize(x, dt.ones((3, 5, 8)), block_size=2, dtype="int8"),
            ValueError,
            "block_size 2, axis None: expected an axis",
        ),
        (lambda x: dt.quantize(x, dt.ones(5), axis=3, dtype="int8"), IndexError, "axis 3 is out of range"),
        (lambda x: dt.dequantize(x, 0.1), TypeError, "x is float32: expected int8, .* multiply others"),
        (
            lambda x: dt.dequantize(dt.astype(x, "int8"), dt.ones(5)),
            ValueError,
            "axis= names the axis",
        ),
    ],
)
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call(dt.asarray(X))
