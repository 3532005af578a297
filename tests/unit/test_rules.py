"""Rules as users see them: views of views against NumPy, and error messages."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest


def step(rng: np.random.Generator, ours: Any, theirs: np.ndarray) -> tuple[Any, np.ndarray]:
    """One random view of both arrays."""
    rank = theirs.ndim
    kind = rng.integers(0, 6)
    if kind == 0:
        order = tuple(int(i) for i in rng.permutation(rank))
        return dt.permute_dims(ours, order), np.transpose(theirs, order)
    if kind == 1 and rank:
        key = []
        for n in theirs.shape:
            start, stop = sorted(int(v) for v in rng.integers(0, n + 1, 2))
            key.append(slice(start if start != stop else 0, stop, int(rng.integers(1, 4))))
        return ours[tuple(key)], theirs[tuple(key)]
    if kind == 2 and rank < 6:
        at = int(rng.integers(-rank - 1, rank + 1))
        return dt.expand_dims(ours, axis=at), np.expand_dims(theirs, at)
    if kind == 3:
        shape = tuple(int(rng.integers(1, 4)) if n == 1 else n for n in theirs.shape)
        return dt.broadcast_to(ours, (2, *shape)), np.broadcast_to(theirs, (2, *shape))
    if kind == 4 and theirs.size:
        shape, left = [], theirs.size
        while left > 1 and len(shape) < 4:
            shape.append(int(rng.choice([d for d in range(1, left + 1) if left % d == 0])))
            left //= shape[-1]
        shape.append(-1)
        return dt.reshape(ours, tuple(shape)), theirs.reshape(shape)
    if kind == 5 and rank > 1:
        return dt.matrix_transpose(ours), theirs.swapaxes(-1, -2)
    return ours, theirs


@pytest.mark.parametrize("seed", range(60))
def test_views_of_views(seed: int) -> None:
    rng = np.random.default_rng(seed)
    theirs = np.arange(120, dtype=np.int32).reshape(2, 3, 4, 5)
    ours = dt.asarray(theirs)
    for _ in range(8):
        if theirs.size > 5000:
            break
        ours, theirs = step(rng, ours, theirs)
        assert ours.shape == theirs.shape
        assert np.array_equal(np.asarray(ours), theirs)


def ones(*shape: int) -> Any:
    return dt.ones(shape)


FAILURES: dict[str, tuple[Any, type[Exception], str]] = {
    "matmul": (
        lambda: ones(2, 3) @ ones(4, 5),
        ValueError,
        "[matmul] shapes (2, 3) and (4, 5) do not match: expected x1's last axis 3 to equal x2's first 4",
    ),
    "broadcast": (lambda: ones(2, 3) + ones(4, 3), ValueError, "expected x1's axis -2 of 2 to equal x2's 4"),
    "axis": (
        lambda: dt.sum(ones(2, 3), axis=2),
        ValueError,
        "[sum] axis 2 is out of range: expected -2 to 1 for x of shape (2, 3)",
    ),
    "axis twice": (lambda: dt.sum(ones(2, 3), axis=(1, -1)), ValueError, "names axis 1 twice"),
    "no identity": (lambda: dt.max(ones(2, 0), axis=1), ValueError, "[max] zero-size reduction"),
    "reshape": (lambda: dt.reshape(ones(2, 3), (4, -1)), ValueError, "expected a multiple of 4"),
    "negative size": (lambda: dt.zeros((2, -1)), ValueError, "[zeros] shape (2, -1) has a negative size"),
    "overflow": (lambda: dt.zeros((2**40, 2**40)), ValueError, "is too large"),
    "17 axes": (lambda: dt.zeros((1,) * 17), ValueError, "has 17 axes: expected at most 16"),
    "float indices": (
        lambda: dt.take(ones(3), ones(2), axis=0),
        TypeError,
        "indices is float32: expected an integer",
    ),
    "integers only": (
        lambda: ones(3) & ones(3),
        TypeError,
        "dtype float32 is not supported: expected an integer or bool",
    ),
    "numbers only": (
        lambda: (ones(3) > 0) - (ones(3) > 0),
        TypeError,
        "[subtract] dtype bool is not supported: expected numbers (logical_and, logical_or",
    ),
    "numbers only, by its own name": (
        lambda: dt.remainder(ones(3) > 0, ones(3) > 0),
        TypeError,
        "[remainder] dtype bool is not supported",
    ),
    "no minus": (lambda: -(ones(3) > 0), TypeError, "and logical_not are there for bool); astype it"),
    "no promotion": (
        lambda: dt.zeros(3, dtype=dt.uint64) + dt.zeros(3, dtype=dt.int8),
        TypeError,
        "dtypes uint64 and int8 do not promote to a common one: astype one of them",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_errors_name_the_expected_value(case: str) -> None:
    call, kind, text = FAILURES[case]
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)
    assert float(dt.asarray(np.float32(2))) == 2.0  # the next call works


@pytest.mark.parametrize(
    "call",
    [
        lambda x: dt.expand_dims(x, 4),
        lambda x: dt.sum(x, axis=2),
        lambda x: dt.unstack(x, axis=2),
        lambda x: dt.tensordot(x, x, axes=([2], [0])),
        lambda x: dt.repeat(x, dt.asarray([1, 2]), axis=2),
    ],
)
def test_an_axis_that_is_not_there_is_an_index_error_and_a_value_error(call: Any) -> None:
    with pytest.raises(dt.AxisError, match="axis") as caught:
        call(ones(2, 3))
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, IndexError)


def test_creation_follows_the_scalar() -> None:
    assert dt.full((2,), 1).dtype == dt.int64
    assert dt.full((2,), 1.0).dtype == dt.float32
    assert dt.full((2,), True).dtype == dt.bool
    assert dt.arange(3).dtype == dt.int64
    assert dt.arange(3.0).dtype == dt.float32
