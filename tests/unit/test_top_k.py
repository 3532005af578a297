"""top_k: the first elements of sort, with their indices."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest

X = np.random.default_rng(5).integers(0, 20, (4, 3, 100)).astype(np.float32)


@pytest.mark.parametrize("mode", ["largest", "smallest"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_top_k_is_the_beginning_of_a_sort(mode, axis):
    x, k = dt.asarray(X), 2
    values, indices = dt.top_k(x, k, axis=axis, mode=mode)
    order = np.argsort(-X if mode == "largest" else X, axis, kind="stable")
    np.testing.assert_array_equal(indices.numpy(), np.take(order, range(k), axis))
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(X, indices.numpy(), axis))
    assert values.dtype == dt.float32 and indices.dtype == dt.int64


def test_nan_is_never_better_than_a_number():
    x = dt.asarray([np.nan, 1.0, np.nan, -np.inf, 2.0])
    assert dt.top_k(x, 3)[1].tolist() == [4, 1, 3]
    assert dt.top_k(x, 5, mode="smallest")[1].tolist() == [3, 1, 4, 0, 2]


def test_all_and_none():
    values, indices = dt.top_k(dt.asarray([3, 1, 2]), 3)
    assert (values.tolist(), indices.tolist()) == ([3, 2, 1], [0, 2, 1])
    assert [a.shape for a in dt.top_k(dt.zeros((2, 5)), 0)] == [(2, 0)] * 2


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: dt.top_k(x, 4),
            ValueError,
            r"\[top_k\] k: expected 0 to 3, the elements of x of shape \(2, 3\)",
        ),
        (lambda x: dt.top_k(x, 2.0), TypeError, r"\[top_k\] k: expected an integer"),
        (lambda x: dt.top_k(x, 1, axis=2), IndexError, r"axis 2 is out of range: expected -2 to 1"),
        (lambda x: dt.top_k(x, 1, mode="median"), ValueError, "mode 'median': expected 'largest' or 'smallest'"),
        (lambda x: dt.top_k(x), TypeError, r"misses the argument 'k': expected top_k\(x, k, \*, axis=-1, mode="),
        (
            lambda x: dt.top_k(dt.zeros(3, dtype="complex64"), 1),
            NotImplementedError,
            r"\[top_k\] complex64 is not supported on cpu:0",
        ),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call(dt.zeros((2, 3)))
