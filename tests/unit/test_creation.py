"""Creating arrays."""

import array
import math

import dovetail as dt
import numpy as np
import pytest


def test_default_dtypes():
    for value, dtype in ((True, "bool"), (1, "int64"), (1.0, "float32"), (1j, "complex64")):
        assert dt.asarray(value).dtype == dtype and dt.asarray([value]).dtype == dtype
        assert dt.asarray(value).shape == () and dt.asarray([[value]]).shape == (1, 1)
    assert dt.asarray([]).dtype == "float32"
    assert dt.asarray([True, 2]).dtype == "int64" and dt.asarray([[1, 2.5]]).dtype == "float32"
    assert dt.asarray(np.zeros(2)).dtype == "float64" and dt.asarray(np.float16(1)).dtype == "float16"


REAL = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64",
]  # fmt: skip


@pytest.mark.parametrize("dtype", REAL)
def test_numbers_of_every_dtype(dtype):
    x = dt.asarray([[0, 1], [True, 1]], dtype=dtype)
    assert x.dtype == dtype and x.tolist() == [[0, 1], [1, 1]]
    assert dt.asarray(1, dtype=dtype).item() == 1
    assert dt.asarray([], dtype=dtype).dtype == dtype


def test_numbers_are_rounded_once():
    values = [0.1, 1e-8, 65504.0, -1 / 3]
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        x, wide = dt.asarray(values, dtype=dtype), np.asarray(values)
        if dtype == "bfloat16":
            import ml_dtypes

            np.testing.assert_array_equal(x.numpy(), wide.astype(ml_dtypes.bfloat16))
        else:
            np.testing.assert_array_equal(x.numpy(), wide.astype(dtype))
    assert dt.asarray([2**63], dtype="uint64").item() == 2**63
    assert dt.asarray([-(2**63)]).item() == -(2**63)


@pytest.mark.parametrize(
    ("value", "dtype", "error", "message"),
    [
        ([[1, 2], [3]], None, ValueError, "ragged"),
        ([1, [2]], None, ValueError, "ragged"),
        ([[1], 2], None, ValueError, "ragged"),
        ([300], "int8", OverflowError, "int8"),
        ([-1], "uint8", OverflowError, "uint8"),
        ([2**70], None, OverflowError, "int64"),
        ([1.5], "int32", TypeError, "floating-point.*int32"),
        ([1j], "float32", TypeError, "complex.*float32"),
        (["a"], None, TypeError, "numbers"),
        ("text", None, TypeError, "str"),
        (None, None, TypeError, "NoneType"),
        ({1: 2}, None, TypeError, "dict"),
        ([1], "float31", TypeError, "float31"),
        (np.array(["a"]), None, TypeError, "<U1"),
        (np.zeros(2, dtype="datetime64[s]"), None, TypeError, "datetime"),
        (np.zeros(2, dtype="complex64"), "float32", TypeError, "complex"),
    ],
)
def test_bad_input(value, dtype, error, message):
    with pytest.raises(error, match=message):
        dt.asarray(value, dtype=dtype)


def test_a_list_within_itself():
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="16 deep"):
        dt.asarray(loop)


def test_unknown_device():
    with pytest.raises(ValueError, match="nowhere"):
        dt.asarray(1, device="nowhere:0")
    with pytest.raises(ValueError, match="nowhere"):
        dt.zeros(1, device="nowhere")
    with pytest.raises(TypeError, match="device"):
        dt.zeros(1, device=3)


def test_sources():
    n = np.arange(6, dtype="int32").reshape(2, 3)
    for x in (
        dt.asarray(n),
        dt.asarray(n.astype(">i4")),
        dt.asarray(np.asfortranarray(n)),
        dt.asarray(n[::-1])[::-1],
        dt.asarray(memoryview(n)),
        dt.asarray(dt.asarray(n)),
        dt.asarray([dt.asarray(n[0]), dt.asarray(n[1])]),
        dt.asarray(list(n)),
    ):
        assert x.dtype == "int32" and x.tolist() == n.tolist()
    assert dt.asarray(range(3)).tolist() == [0, 1, 2]
    assert dt.asarray(array.array("d", [1.5])).dtype == "float64"
    assert dt.asarray([np.float64(1.5), 2]).dtype == "float64"
    assert dt.asarray(n, dtype="float16").tolist() == n.tolist()


def test_asarray_copies_what_others_may_change():
    n = np.zeros(3)
    x = dt.asarray(n)
    n[:] = 1
    assert x.tolist() == [0, 0, 0]


def test_copy_argument():
    x = dt.asarray([1.0])
    assert dt.asarray(x, copy=True).tolist() == dt.asarray(x, copy=False).tolist() == [1]
    with pytest.raises(ValueError, match="copy"):
        dt.asarray([1.0], copy=False)
    with pytest.raises(ValueError, match="copy"):
        dt.asarray(x, dtype="float64", copy=False)
    n = np.zeros(3, dtype="float32")
    shared = dt.asarray(n, copy=False)
    n[0] = 1
    assert shared.tolist() == [1, 0, 0]


def test_empty_and_full():
    assert dt.empty((2, 3)).shape == (2, 3) and dt.empty(4).dtype == "float32"
    x = dt.asarray([[1, 2]], dtype="int16")
    for made, value in ((dt.zeros_like(x), 0), (dt.ones_like(x), 1), (dt.full_like(x, 7), 7)):
        assert made.dtype == "int16" and made.tolist() == [[value, value]]
    assert dt.empty_like(x, dtype="bool").dtype == "bool"
    assert dt.zeros((2, 0)).tolist() == [[], []] and dt.full((), 3).item() == 3
    assert (
        dt.full(2, True).dtype == "bool" and dt.full(2, 1.0).dtype == "float32" and dt.full(2, 1).dtype == "int64"
    )


@pytest.mark.parametrize("make", [dt.empty, dt.zeros, dt.ones])
@pytest.mark.parametrize(
    ("shape", "error"), [((-1,), ValueError), ((2**40, 2**40), ValueError), ("ab", TypeError), (1.5, TypeError),
    ((1,) * 17, ValueError)]
)  # fmt: skip
def test_bad_shapes(make, shape, error):
    with pytest.raises(error, match=make.__name__):
        make(shape)


def test_ranges():
    np.testing.assert_array_equal(dt.arange(5).numpy(), np.arange(5))
    np.testing.assert_array_equal(dt.arange(5, -5, -3).numpy(), np.arange(5, -5, -3))
    np.testing.assert_allclose(dt.arange(0.0, 1.0, 0.1).numpy(), np.arange(0, 1, 0.1, dtype="float32"), rtol=1e-6)
    np.testing.assert_allclose(dt.linspace(0, 1, 7).numpy(), np.linspace(0, 1, 7), rtol=1e-6)
    np.testing.assert_array_equal(dt.eye(3, 4, k=1).numpy(), np.eye(3, 4, k=1))
    np.testing.assert_allclose(dt.linspace(1, 2 - 1j, 5).numpy(), np.linspace(1, 2 - 1j, 5), rtol=1e-6)
    assert dt.linspace(0, 1, 3, dtype="complex64").tolist() == [0, 0.5, 1]
    assert dt.arange(1, 3, dtype="complex64").tolist() == [1, 2]
    with pytest.raises(TypeError, match=r"\[linspace\] dtype float32 of complex numbers"):
        dt.linspace(0, 1j, 3, dtype="float32")


def test_device_context():
    d = dt.default_device()
    with dt.device(d.name):
        assert dt.asarray([1]).device == d and dt.zeros(1).device == d


@pytest.mark.parametrize(
    "value, dtype, error, text",
    [
        (300, "int8", OverflowError, r"\[full\] 300 does not fit in int8: expected -128 to 127"),
        (np.int64(-1), "uint8", OverflowError, r"\[full\] -1 does not fit in uint8"),
        (1e10, "int32", OverflowError, r"\[full\] 10000000000 does not fit in int32"),
        (2.5, "int32", TypeError, r"\[full\] cannot store floating-point numbers as int32"),
        (math.nan, "int64", TypeError, r"\[full\] cannot store floating-point numbers as int64"),
        (1j, "float32", TypeError, r"\[full\] cannot store complex numbers as float32"),
        (np.complex64(1j), "float32", TypeError, r"\[full\] cannot store complex numbers as float32"),
    ],
)
def test_full_holds_its_value(value, dtype, error, text):
    for make in (
        lambda: dt.full((2,), value, dtype=dtype),
        lambda: dt.full_like(dt.ones((2,), dtype=dtype), value),
    ):
        with pytest.raises(error, match=text):
            make()


def test_full_takes_what_fits():
    assert dt.full((1,), 2.0, dtype="int8").tolist() == [2] and dt.full((1,), -128, dtype="int8").tolist() == [-128]
    assert dt.full((1,), 1e300, dtype="float32").tolist() == [math.inf]
    assert dt.full((1,), np.complex64(1 + 2j)).tolist() == [1 + 2j]


def test_complex_numbers_of_numpy_keep_their_imaginary_part():
    """complex64 is no subclass of Python's complex, and its __float__ drops the imaginary part."""
    x = dt.ones((2,), dtype="float32", device="cpu")
    for number in (np.complex64(1j), np.complex128(1j), 1j):
        assert (x * number).tolist() == [1j, 1j]
