"""How arrays print."""

import dovetail as dt
import numpy as np
import pytest


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: dt.asarray([1.0, 2.5]), "array([1. , 2.5])"),
        (lambda: dt.asarray([1, 2]), "array([1, 2])"),
        (lambda: dt.asarray([True, False]), "array([ True, False])"),
        (lambda: dt.asarray([[1, 2], [3, 4]], dtype="int8"), "array([[1, 2],\n       [3, 4]], dtype=int8)"),
        (lambda: dt.asarray([0.1, -3.0], dtype="bfloat16"), "array([ 0.1001, -3.    ], dtype=bfloat16)"),
        (lambda: dt.asarray([0.1], dtype="float64"), "array([0.1], dtype=float64)"),
        (lambda: dt.asarray([1 + 2j]), "array([1.+2.j], dtype=complex64)"),
        (lambda: dt.asarray(3), "array(3)"),
        (lambda: dt.zeros(0), "array([], dtype=float32)"),
        (lambda: dt.zeros((2, 0), dtype="int64"), "array([], shape=(2, 0), dtype=int64)"),
        (lambda: dt.asarray([float("nan"), float("inf")]), "array([nan, inf])"),
    ],
)
def test_repr(make, text):
    assert repr(make()) == text


def test_str():
    assert str(dt.asarray([[1, 2], [3, 4]])) == "[[1 2]\n [3 4]]"
    assert str(dt.asarray(1.5)) == "1.5" and str(dt.zeros(0)) == "[]"


@pytest.mark.parametrize("shape", [(2000,), (50, 50), (3, 1200), (10, 20, 30)])
def test_long_ones_are_abridged_as_numpy_does(shape):
    n = np.arange(np.prod(shape)).reshape(shape) % 11
    assert str(dt.asarray(n)) == str(n)


def test_numpys_options_apply():
    with np.printoptions(precision=2, threshold=5, edgeitems=1):
        assert repr(dt.asarray([0.12345, 2.0])) == "array([0.12, 2.  ])"
        assert str(dt.arange(10)) == "[0 ... 9]"


def test_the_device_is_named_where_it_is_not_the_default(monkeypatch):
    from dovetail import _devices

    x = dt.zeros(1)
    monkeypatch.setattr(_devices, "device", lambda name=None: "elsewhere:0")
    assert repr(x) == f"array([0.], device='{x.device}')"


def test_long_notes_go_to_a_line_of_their_own():
    x = dt.asarray([1.0] * 14 + [100.0], dtype="float64")
    assert repr(x).endswith(",\n      dtype=float64)") or len(repr(x).splitlines()[-1]) <= 75
