"""NumPy's functions that write to their argument change an Array, too, and nothing that shares its elements."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest

RNG = np.random.default_rng(0)
X, N = RNG.uniform(-1, 1, (4, 5)).astype("float32"), RNG.integers(0, 9, (4, 5))
PLACES, VALUES = RNG.permuted(np.tile(np.arange(5), (4, 1)), axis=1), RNG.uniform(-1, 1, (4, 5)).astype("float32")
MASK, ROWS = X > 0.2, np.array([3, 0, -1, 0])

WRITES = {
    "put_along_axis": lambda x, a: np.put_along_axis(x, a(PLACES), a(VALUES), 1),
    "put_along_columns": lambda x, a: np.put_along_axis(x, a(ROWS[None, :1] % 4), 7, axis=0),
    "put_along_all": lambda x, a: np.put_along_axis(x, a(np.array([3, 17])), a(VALUES[0, :2]), None),
    "put": lambda x, a: np.put(x, [1, -2, 7], [9, 8]),
    "put_array": lambda x, a: np.put(x, a(ROWS), a(VALUES[0, :4])),
    "putmask": lambda x, a: np.putmask(x, a(MASK), a(VALUES)),
    "putmask_in_turn": lambda x, a: np.putmask(x, a(MASK), a(VALUES[0, :3])),
    "place": lambda x, a: np.place(x, a(MASK), a(VALUES[0, :3])),
    "copyto": lambda x, a: np.copyto(x, a(VALUES)),
    "copyto_row": lambda x, a: np.copyto(x, a(VALUES[0]), where=a(MASK)),
    "copyto_number": lambda x, a: np.copyto(x, 3),
    "fill_diagonal": lambda x, a: np.fill_diagonal(x, 5),
    "fill_diagonal_array": lambda x, a: np.fill_diagonal(x, a(VALUES[0, :3])),
    "add.at": lambda x, a: np.add.at(x, a(ROWS), a(VALUES)),
    "add.at_number": lambda x, a: np.add.at(x, 2, 1),
    "add.at_mask": lambda x, a: np.add.at(x, a(MASK), a(VALUES[MASK])),
    "subtract.at": lambda x, a: np.subtract.at(x, (a(ROWS), a(np.array([1, 1, -5, 1]))), a(VALUES[0, :4])),
    "multiply.at": lambda x, a: np.multiply.at(x, (a(ROWS), 2), 3),
    "add.at_slices": lambda x, a: np.add.at(x, (slice(None, None, -1), [0, 0, 1]), a(VALUES[:1, :1])),
    "multiply.at_rest": lambda x, a: np.multiply.at(x, (..., a(np.array([1, 1]))), 3),
    "maximum.at": lambda x, a: np.maximum.at(x, [0, 0, 1], a(VALUES[:3])),
    "minimum.at": lambda x, a: np.minimum.at(x, a(ROWS[:, None]), a(VALUES[:, None])),
}


@pytest.mark.parametrize("case", WRITES)
@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_as_numpy(case, device):
    write, expected = WRITES[case], X.copy()
    write(expected, lambda a: a)
    x = dt.asarray(X, device=device)
    kept = x[...]
    assert write(x, lambda a: dt.asarray(a, device=device)) is None
    np.testing.assert_allclose(x.numpy(), expected, 1e-6)
    np.testing.assert_array_equal(kept.numpy(), X)
    again = dt.asarray(X, device=device)
    write(again, lambda a: a)  # with NumPy's arrays beside it
    np.testing.assert_array_equal(again.numpy(), x.numpy())


@pytest.mark.parametrize("case", [case for case in WRITES if ".at" not in case])
def test_arrays_beside_one_of_numpys_come_to_the_host(case):
    write, expected, got = WRITES[case], X.copy(), X.copy()
    write(expected, lambda a: a)
    write(got, dt.asarray)
    np.testing.assert_array_equal(got, expected)


def test_what_is_written_to_may_be_named():
    host, x = X.copy(), dt.asarray(X)
    np.copyto(src=dt.asarray(VALUES), dst=host)
    np.put(ind=[1], v=9, a=x)
    np.testing.assert_array_equal(host, VALUES)
    assert x[0, 1] == 9


@pytest.mark.parametrize("case", WRITES)
def test_in_a_compiled_function(case):
    write, expected = WRITES[case], X.copy()

    @dt.compile
    def double_and_write(x):
        write(x, dt.asarray)
        return x * 2

    write(expected, lambda a: a)
    for _ in range(2):
        x = dt.asarray(X)
        np.testing.assert_allclose(double_and_write(x).numpy(), expected * 2, 1e-6)
        np.testing.assert_allclose(x.numpy(), expected, 1e-6)


def test_dovetails_own_put_along_axis_returns_what_it_wrote_to():
    x = dt.asarray(N)
    assert dt.put_along_axis(x, dt.asarray(PLACES), dt.asarray(N), axis=1, mode="add") is x
    expected = N.copy()
    np.add.at(expected, (np.arange(4)[:, None], PLACES), N)
    np.testing.assert_array_equal(x.numpy(), expected)


def test_pythons_numbers_are_not_rounded_to_the_default_dtype():
    x, y = dt.zeros((3, 3), dtype=dt.float64), np.zeros((3, 3))
    for a in (x, y):
        np.fill_diagonal(a, 0.1)
        np.put(a, [1], [0.3])
        np.putmask(a, np.arange(9).reshape(3, 3) == 2, 0.7)
        np.place(a, np.arange(9).reshape(3, 3) == 3, [0.9])
        np.add.at(a, ([0, 0], [1, 1]), 0.2)
    np.testing.assert_array_equal(x.numpy(), y)
    np.copyto(x, 0.1)
    assert np.array_equal(x[0], [0.1, 0.1, 0.1]) and float(np.dot(x[0], [0.3, 0.0, 0.0])) == 0.1 * 0.3


def test_values_that_the_array_cannot_hold():
    x = dt.asarray(N)
    for write in (
        lambda: np.copyto(x, VALUES),
        lambda: np.putmask(x, MASK, VALUES),
        lambda: np.fill_diagonal(x, dt.asarray([0.5])),
        lambda: dt.put_along_axis(x, dt.asarray(PLACES), dt.asarray(VALUES), 1),
    ):
        with pytest.raises(TypeError, match=r"cannot store float32 in an array of int64"):
            write()
    np.testing.assert_array_equal(x.numpy(), N)


def test_what_is_refused():
    x = dt.asarray(X)
    for write, message in (
        (lambda: np.put(x, [1], [2], mode="clip"), r"\[put\] mode: got 'clip', expected 'raise'"),
        (lambda: np.fill_diagonal(x, 1, wrap=True), r"\[fill_diagonal\] wrap=True and shape \(4, 5\)"),
        (lambda: np.copyto(x, X, casting="unsafe"), r"\[copyto\] casting: got 'unsafe'"),
        (lambda: np.add.at(x, dt.asarray([0.5]), 1), r"\[at\] indices: expected integers"),
        (lambda: np.divide.at(x, [0], 2), "no counterpart of numpy.divide.at"),
    ):
        with pytest.raises(TypeError, match=message):
            write()
    for write in (lambda: np.add.at(x, [4], 1), lambda: np.add.at(x, ([0], [-6]), 1), lambda: np.put(x, [20], 1)):
        with pytest.raises(IndexError):
            write()
    np.testing.assert_array_equal(x.numpy(), X)
