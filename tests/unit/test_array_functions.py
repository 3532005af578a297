"""Functions of the array API that are not ops, against NumPy."""

import dovetail as dt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_devices import add, opened

rng = np.random.default_rng(0)


def equal(x, expected, dtype=None):
    assert x.shape == expected.shape and (dtype is None or x.dtype == dtype)
    np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize("shape", [(0,), (1,), (100,), (5, 7), (3, 0, 2), (4, 5, 6)])
def test_nonzero(shape):
    n = rng.integers(0, 3, shape)
    for values in (n, n.astype("float32"), n > 0):
        found = dt.nonzero(dt.asarray(values))
        assert len(found) == len(shape)
        for got, expected in zip(found, np.nonzero(values), strict=True):
            equal(got, expected, "int64")
    with pytest.raises(ValueError, match="axis"):
        dt.nonzero(dt.asarray(1))


@pytest.mark.parametrize("shape", [(0,), (1,), (200,), (5, 8)])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "bool", "complex64"])
def test_unique(shape, dtype):
    n = rng.integers(0, 9, shape)
    n = (n % 3 + 1j * (n // 3) if dtype == "complex64" else n).astype(dtype)
    found, x = dt.unique_all(dt.asarray(n)), dt.asarray(n)
    expected = np.unique_all(n)
    for got, want in zip(found, expected, strict=True):
        equal(got, want)
    equal(dt.unique_values(x), expected.values, dtype)
    equal(dt.unique_counts(x).counts, expected.counts, "int64")
    equal(dt.unique_inverse(x).inverse_indices, expected.inverse_indices, "int64")


def test_unique_nan():
    found = dt.unique_all(dt.asarray([float("nan"), 1.0, float("nan"), 1.0]))
    assert found.counts.tolist() == [2, 1, 1] and found.values.tolist()[0] == 1


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(-5, 5), max_size=20),
    st.lists(st.integers(-6, 6), max_size=20),
    st.sampled_from(["left", "right"]),
)
def test_searchsorted(a, v, side):
    a, v = np.sort(np.array(a, dtype="int64")), np.array(v, dtype="int64")
    equal(dt.searchsorted(dt.asarray(a), dt.asarray(v), side=side), np.searchsorted(a, v, side=side), "int64")


def test_searchsorted_more():
    a = np.array([1.0, 2.0, 2.0, np.inf, np.nan, np.nan], dtype="float32")
    v = np.array([[2.0, np.nan], [-np.inf, np.inf]], dtype="float32")
    for side in ("left", "right"):
        equal(dt.searchsorted(dt.asarray(a), dt.asarray(v), side=side), np.searchsorted(a, v, side=side))
    assert dt.searchsorted(dt.asarray([3, 1, 2]), 2, sorter=dt.asarray([1, 2, 0])).item() == 1
    assert dt.searchsorted(dt.asarray([1, 2]), dt.asarray([1.5])).tolist() == [1]
    with pytest.raises(ValueError, match="side"):
        dt.searchsorted(dt.asarray([1]), 1, side="middle")
    with pytest.raises(ValueError, match="one axis"):
        dt.searchsorted(dt.asarray([[1]]), 1)


@pytest.mark.parametrize("size", [0, 3, 40])
def test_isin(size):
    n, m = rng.integers(0, 50, (6, 7)), rng.integers(0, 50, size)
    equal(dt.isin(dt.asarray(n), dt.asarray(m)), np.isin(n, m), "bool")
    equal(dt.isin(dt.asarray(n), dt.asarray(m), invert=True), np.isin(n, m, invert=True), "bool")
    assert dt.isin(dt.asarray([1, 2]), 2).tolist() == [False, True] and dt.isin(2, dt.asarray([1, 2])).item()
    assert dt.isin(dt.asarray([float("nan")]), dt.asarray([float("nan")])).tolist() == [False]
    with pytest.raises(TypeError, match="array"):
        dt.isin(1, 2)


def test_repeat():
    n = np.arange(6).reshape(2, 3)
    x = dt.asarray(n)
    for repeats, axis in ((2, None), (2, 1), ([1, 0, 2], 1), ([3], 0), ([1, 2, 3, 0, 1, 2], None)):
        counts = dt.asarray(repeats) if isinstance(repeats, list) else repeats
        equal(dt.repeat(x, counts, axis=axis), np.repeat(n, repeats, axis=axis))
    with pytest.raises(ValueError, match="one for each of 3"):
        dt.repeat(x, dt.asarray([1, 2]), axis=1)
    with pytest.raises(ValueError, match="at least 0"):
        dt.repeat(x, dt.asarray([1, -2]), axis=0)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize(
    "counts", [[2**63 - 1, 2**63 - 1, 4], [2**62] * 4, [2**62] * 2, [2**58, 1], [0, 2**58 + 1]]
)
def test_repeats_beyond_any_size(counts, dtype):
    x = dt.arange(len(counts))
    with pytest.raises(ValueError, match=rf"\[repeat\] repeats add up to {sum(counts)}: expected at most 2\^58"):
        dt.repeat(x, dt.asarray(counts, dtype=dtype))


def test_shapes_of_several():
    assert dt.broadcast_shapes((2, 1), (3,), ()) == (2, 3) and dt.broadcast_shapes() == ()
    with pytest.raises(ValueError, match="match"):
        dt.broadcast_shapes((2,), (3,))
    a, b = dt.broadcast_arrays(dt.zeros((2, 1)), dt.zeros(3))
    assert a.shape == b.shape == (2, 3)
    for indexing in ("xy", "ij"):
        n = [np.arange(2), np.arange(3), np.arange(4)]
        for got, want in zip(
            dt.meshgrid(*map(dt.asarray, n), indexing=indexing), np.meshgrid(*n, indexing=indexing), strict=True
        ):
            equal(got, want)
    assert [p.tolist() for p in dt.unstack(dt.asarray([[1, 2], [3, 4]]), axis=1)] == [[1, 3], [2, 4]]
    with pytest.raises(ValueError, match="indexing"):
        dt.meshgrid(dt.zeros(1), indexing="ab")
    with pytest.raises(ValueError, match="axis 2"):
        dt.unstack(dt.zeros((1, 1)), axis=2)


@pytest.mark.parametrize("axes", [0, 1, 2, ([0], [1]), ([1, 0], [0, 1]), ([-1], [0])])
def test_tensordot(axes):
    a, b = rng.standard_normal((3, 3)).astype("float32"), rng.standard_normal((3, 3)).astype("float32")
    got = dt.tensordot(dt.asarray(a), dt.asarray(b), axes=axes)
    np.testing.assert_allclose(got.numpy(), np.tensordot(a, b, axes=axes), rtol=1e-5, atol=1e-6)


def test_parts_of_real_arrays():
    x = dt.asarray([1.0, -2.0])
    assert dt.real(x).tolist() == dt.conj(x).tolist() == [1.0, -2.0] and dt.imag(x).tolist() == [0.0, 0.0]
    assert dt.imag(x).dtype == x.dtype


def test_vecdot_conjugates_its_first_operand():
    x, y = dt.asarray([[1j, 2j]] * 3), dt.asarray([[1.0, 1j]])
    assert dt.vecdot(x, y).tolist() == [2 - 1j] * 3


def test_tensordot_refuses():
    with pytest.raises(ValueError, match=r"x1's axis 1 of size 3 .*x2's axis 0 of size 2"):
        dt.tensordot(dt.zeros((2, 3)), dt.zeros((2, 3)), axes=1)
    with pytest.raises(ValueError, match="axes"):
        dt.tensordot(dt.zeros(2), dt.zeros(2), axes=2)
    with pytest.raises(ValueError, match="no axis 5"):
        dt.tensordot(dt.zeros(2), dt.zeros(2), axes=([5], [0]))


def test_dtypes():
    assert dt.result_type(dt.int8, dt.uint8) == dt.int16 and dt.result_type(dt.zeros(1), 1) == dt.float32
    assert dt.result_type(dt.int32, 1.0) == dt.float32 and dt.result_type(dt.float16, dt.bfloat16) == dt.float32
    assert dt.result_type(dt.float64, 1j) == dt.complex128
    with pytest.raises(TypeError, match="common dtype"):
        dt.result_type(dt.uint64, dt.int8)
    assert dt.can_cast(dt.int8, dt.int16) and not dt.can_cast(dt.int16, dt.int8)
    assert (
        dt.isdtype(dt.int8, "integral")
        and dt.isdtype(dt.int8, ("bool", dt.int8))
        and not dt.isdtype(dt.bool, "numeric")
    )
    with pytest.raises(ValueError, match="kind"):
        dt.isdtype(dt.int8, "whole")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_finfo(dtype):
    import ml_dtypes

    got, want = dt.finfo(dtype), ml_dtypes.finfo(dtype if dtype != "bfloat16" else ml_dtypes.bfloat16)
    for name in ("bits", "eps", "max", "min", "smallest_normal"):
        assert float(getattr(got, name)) == float(getattr(want, name))
    with pytest.raises(ValueError, match="iinfo"):
        dt.finfo(dt.int8)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint64"])
def test_iinfo(dtype):
    got, want = dt.iinfo(dtype), np.iinfo(dtype)
    assert (got.bits, got.max, got.min) == (want.bits, want.max, want.min)
    with pytest.raises(ValueError, match="finfo"):
        dt.iinfo(dt.float32)


def test_inspection():
    info = dt.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] == dt.float32 and info.default_device() in info.devices()
    assert (
        "float64" in info.dtypes() and "bfloat16" not in info.dtypes() and set(info.dtypes(kind="bool")) == {"bool"}
    )
    assert set(info.dtypes(kind="complex floating")) == {"complex64", "complex128"}
    before = dt.fallback("error")
    try:
        assert info.dtypes(device="cpu").keys() == info.dtypes(device="sim").keys() == info.dtypes().keys()
        assert set(info.dtypes(device=opened(add=add))) == {"float32", "int32", "complex64"}
    finally:
        dt.fallback(before)
    assert info.capabilities()["boolean indexing"] and dt.__array_api_version__ == "2025.12"


def test_astype_function():
    x = dt.asarray([1.5])
    assert dt.astype(x, dt.int32, device=x.device).tolist() == [1]
    assert dt.astype(x, dt.float32, copy=False).tolist() == [1.5]


# ---- invalid arguments ----------------------------------------------------------------------------------------


def test_functions_written_in_python_expect_arrays():
    x = dt.ones((2, 2))
    for call in (
        lambda: dt.unstack(3),
        lambda: dt.broadcast_arrays(x, 1),
        lambda: dt.meshgrid(1),
        lambda: dt.tensordot(x, [1]),
        lambda: dt.astype(np.ones(2), "float32"),
        lambda: dt.nonzero(None),
        lambda: dt.unique_all(3),
        lambda: dt.unique_values([1]),
        lambda: dt.searchsorted([1], x),
        lambda: dt.repeat(3, dt.asarray([1, 2])),
        lambda: dt.zeros_like(3),
        lambda: dt.empty_like(None),
    ):
        with pytest.raises(
            TypeError, match=r"\[\w+\] [\w ]+: expected a dovetail array, got .*asarray\(\) makes an array"
        ):
            call()


@pytest.mark.parametrize("axis", [None, 1.0, "a", True, [0], (0,), np.ones(2)], ids=repr)
def test_functions_written_in_python_expect_integers(axis):
    x = dt.ones((2, 2))
    for call in (
        lambda: dt.unstack(x, axis=axis),
        lambda: dt.random.permutation(x, axis=axis),
        lambda: dt.tensordot(x, x, axes=(axis, axis, axis)),
    ):
        with pytest.raises((TypeError, ValueError), match=r"\[[\w.]+\] axe?i?s: expected a"):
            call()
    for call in (lambda: dt.unstack(x, axis=2), lambda: dt.random.permutation(x, axis=-3)):
        with pytest.raises(ValueError, match="expected -2 to 1"):
            call()
