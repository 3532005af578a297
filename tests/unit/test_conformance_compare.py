import math

import ml_dtypes
import numpy as np
import pytest
from dovetail.schema import dtypes as dt
from dovetail_conformance.judging.compare import compare, rounded, ulp

FLOATS = (dt.float16, dt.bfloat16, dt.float32, dt.float64)


def wide(d):
    return np.longdouble if d is dt.float64 else np.float64


@pytest.mark.parametrize("d", FLOATS, ids=str)
def test_ulp_is_the_distance_to_the_next_number(d):
    values = np.array([1, 1.5, 2 - 2.0**-5, 3, 0.1, 1000, 2.0**-3], d.numpy)
    bits = values.view(f"u{d.itemsize}")
    following = (bits + 1).astype(bits.dtype).view(d.numpy)
    distance = following.astype(wide(d)) - values.astype(wide(d))
    assert (ulp(values.astype(wide(d)), d) == distance).all()


@pytest.mark.parametrize("d", FLOATS, ids=str)
def test_ulp_at_the_ends_of_the_range(d):
    least = wide(d)(d.tiny) * wide(d)(d.eps)
    for x in (0.0, least, d.tiny / 2, d.tiny):
        assert ulp(wide(d)(x), d) == least
    largest = wide(d)(d.max)
    assert ulp(largest, d) == largest - np.nextafter(largest, wide(d)(0)) or ulp(largest, d) == largest * d.eps / (
        2 - d.eps
    )
    assert ulp(wide(d)(math.inf), d) == ulp(largest, d)


@pytest.mark.parametrize("d", (dt.float16, dt.float32), ids=str)
def test_rounded_is_what_numpy_rounds_to(d):
    x = np.random.default_rng(0).normal(size=5000) * 2.0 ** np.random.default_rng(1).integers(-160, 140, 5000)
    x = np.concatenate([x, [0.0, -0.0, math.inf, -math.inf, d.max * (1 + d.eps / 4), d.max * (1 + d.eps / 3)]])
    with np.errstate(over="ignore", under="ignore"):
        assert rounded(x, d).astype(d.numpy).tobytes() == x.astype(d.numpy).tobytes()


def test_rounded_rounds_once():
    just_below, just_above = 1 + 2.0**-8 - 2.0**-40, 1 + 3 * 2.0**-8 + 2.0**-40
    assert rounded(np.array([just_below, just_above]), dt.bfloat16).tolist() == [1.0, 1 + 2.0**-6]


def judged(got, expected, d=dt.float32, **how):
    return compare(np.array(got, d.numpy), np.array(expected, np.float64), d, **how)


def test_the_tolerance_is_kept_and_not_exceeded():
    eps = 2.0**-23
    assert judged([1, 1 + 2 * eps], [1, 1], tol=2).ok
    verdict = judged([1, 1 + 3 * eps, 1 + 4 * eps], [1, 1, 1], tol=2)
    assert (verdict.ok, verdict.wrong, verdict.index, verdict.ulp) == (False, 2, (2,), 4)
    assert "4 ulp" in verdict.message and "2 of 3" in verdict.message and verdict.expected == "1"


def test_tolerance_zero_means_rounded_once():
    assert judged([np.float32(0.1)], [0.1]).ok
    assert not judged([np.nextafter(np.float32(0.1), np.float32(1))], [0.1]).ok


def test_half_an_ulp():
    assert judged([1], [1 + 2.0**-24], tol=0.501).ok
    assert not judged([1], [1 + 1.1 * 2.0**-24], tol=0.501).ok


def test_scale_widens_the_tolerance_where_sums_cancel():
    assert not judged([1e-5], [0.0], tol=2).ok
    assert judged([1e-5], [0.0], tol=2, scale=np.array([100.0])).ok
    assert not judged([1e-4], [0.0], tol=2, scale=100.0).ok


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (math.nan, 1.0),
        (1.0, math.nan),
        (math.inf, math.nan),
        (math.inf, 1.0),
        (-math.inf, math.inf),
        (3.4e38, math.inf),
        (0.0, -0.0),
        (-0.0, 0.0),
        (0.0, math.inf),
    ],
)
def test_special_values_are_exact(got, expected):
    assert not judged([got], [expected], tol=1e6).ok
    assert judged([expected], [expected], tol=0).ok


def test_zeros_of_either_sign_where_the_op_allows_them():
    assert judged([0.0], [-0.0], signed_zeros=False).ok
    assert judged([0.0], [-0.0], scale=1.0).ok  # a sum that cancelled


@pytest.mark.parametrize("d", FLOATS, ids=str)
def test_overflow_is_measured_from_the_largest_number(d):
    one = wide(d)(1)
    beyond = one * wide(d)(d.max) + 2 * ulp(wide(d)(d.max), d)
    got = np.array([math.inf, d.max], d.numpy)
    assert compare(got[:1], np.array([beyond]), d, tol=0.501).ok
    assert not compare(got[1:], np.array([beyond * 4]), d, tol=0.501).ok
    just_below = wide(d)(d.max) - ulp(wide(d)(d.max), d) * one / 4
    assert not compare(got[:1], np.array([just_below]), d, tol=1).ok
    assert compare(got[:1], np.array([just_below]), d, tol=1.5).ok  # one ulp off


def test_underflow_counts_in_smallest_steps():
    least = 2.0**-149
    assert judged([0.0], [least * 0.4], tol=0.5).ok
    assert not judged([0.0], [least * 3], tol=2).ok
    assert judged([least], [least * 3], tol=2).ok


def test_integers_and_bools_are_exact():
    got = np.array([1, 2, 2**62 + 1], np.int64)
    assert compare(got, got, dt.int64).ok
    verdict = compare(got, np.array([1, 2, 2**62]), dt.int64, tol=100)
    assert (verdict.ok, verdict.index, verdict.ulp) == (False, (2,), math.inf)
    assert not compare(np.array([True, False]), np.array([True, True]), dt.bool_).ok
    assert compare(np.array([3], np.uint8), np.array([3.0]), dt.uint8).ok
    assert not compare(np.array([3], np.uint8), np.array([3.5]), dt.uint8).ok


def test_shape_and_dtype_come_first():
    assert "shape (2,), expected (3,)" in compare(np.zeros(2), np.zeros(3), dt.float64).message
    assert "dtype float64, expected float32" in compare(np.zeros(2), np.zeros(2), dt.float32).message
    assert "dtype" in compare(np.zeros(2, ml_dtypes.bfloat16), np.zeros(2), dt.float16).message


def test_empty_and_scalar():
    assert judged(np.zeros((0, 3)), np.zeros((0, 3))).ok
    verdict = judged(1.0, 2.0, tol=3)
    assert verdict.index == () and verdict.message.startswith("wrong, ") and "got 1, expected 2" in verdict.message


def test_complex_is_judged_by_its_length():
    exact = np.array([1e8 + 1e-3j])
    got = np.array([1e8 + 0j], np.complex64)
    assert compare(got, exact, dt.complex64, tol=1).ok
    assert not compare(got * np.complex64(1.001), exact, dt.complex64, tol=4).ok
    assert not compare(np.array([np.nan + 0j], np.complex64), exact, dt.complex64, tol=4).ok
    infinite = np.array([complex(math.inf, -math.inf)])
    assert compare(infinite.astype(np.complex64), infinite, dt.complex64).ok
    assert not compare(infinite.astype(np.complex64).conj(), infinite, dt.complex64).ok


@pytest.mark.parametrize("d", FLOATS, ids=str)
def test_every_number_equals_itself(d):
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**d.bits - 1, 4000, endpoint=True, dtype=f"u{d.itemsize}").view(d.numpy)
    with np.errstate(invalid="ignore"):
        assert compare(bits, bits.astype(wide(d)), d).ok


def test_errors_are_counted_by_size():
    eps = 2.0**-23
    off = np.array([0, 1, 2, 3, 100, math.nan])
    verdict = judged(1 + off * eps, np.ones(6), tol=3)
    assert verdict.errors.tolist() == [1, 0, 0, 1, 1, 1, 0, 0, 0, 2]
    quarters = compare(np.ones(3, np.float32), 1 + np.array([0.25, 0.26, 0.5]) * eps, dt.float32, 1)
    assert quarters.errors.tolist() == [0, 1, 2, 0, 0, 0, 0, 0, 0, 0]
    assert judged([], []).errors.tolist() == [0] * 10
    assert compare(np.arange(3), np.arange(3), dt.int64).errors is None
    assert judged([1], [1, 2]).errors is None  # nothing to compare element by element


def test_operands_may_be_flushed_in_some_elements_only():
    """An infinity times a subnormal number is an infinity, and times 0 NaN."""
    inf, nan = np.inf, np.nan
    how = {"flushes": True, "flushed": (np.array([nan, nan]), 0.0)}
    assert judged([inf, nan], [inf, inf], **how).ok
    assert not judged([inf, nan], [inf, inf], flushes=True).ok
    assert judged([inf, 1.0], [inf, inf], **how).wrong == 1
