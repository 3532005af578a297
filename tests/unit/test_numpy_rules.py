"""Arithmetic and creation by NumPy's rules, on every device alike."""

import math

import dovetail as dt
import numpy as np
import pytest
from dispatch_kernel import float32_kernel

rng = np.random.default_rng(1717)


@pytest.fixture(params=["default", "sim"])
def device(request):
    """The default device, and the simulated accelerator, whose memory the host cannot read."""
    if request.param == "default":
        return dt.default_device()
    try:
        return dt.device(request.param)
    except (ValueError, RuntimeError):
        pytest.skip("the simulated accelerator is not installed")


# ---- operators in place ------------------------------------------------------------------------------------------


def test_in_place_casts_by_same_kind(device):
    x = dt.asarray([1.5, 2.5], device=device)
    shared = x[...]
    x += dt.asarray([0.25, 0.5], dtype="float64", device=device)
    assert x.dtype == dt.float32 and x.tolist() == [1.75, 3.0] and shared.tolist() == [1.5, 2.5]
    n = dt.asarray([1, 2, 3], dtype="int32", device=device)
    n[n > 1] += dt.asarray([10, 20], device=device)
    assert n.dtype == dt.int32 and n.tolist() == [1, 12, 23]
    cure = r"expected one that int32 can hold; write x = x \+ y, or first x = x.astype\(\"float32\"\)"
    with pytest.raises(TypeError, match=r"\[add\] .*got a result of float32, " + cure):
        n += 0.5
    small = dt.asarray([1], dtype="uint8", device=device)
    with pytest.raises(TypeError, match="expected one that uint8 can hold"):
        small += dt.asarray([1], device=device)
    with pytest.raises(ValueError, match=r"\[add\] .*keeps the shape: got a result of \(2, 3\), expected \(3,\)"):
        n += dt.zeros((2, 3), dtype="int32", device=device)
    assert n.tolist() == [1, 12, 23]


def test_bool_arithmetic(device):
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    x, y = dt.asarray(a, device=device), dt.asarray(b, device=device)
    for ours, theirs in (
        (x + y, a + b), (x * y, a * b), (dt.add(x, True), a + True), (dt.linalg.outer(x, y), np.outer(a, b)),
        (dt.diff(x), np.diff(a)), (dt.square(x), a * a), (x + 1, a + 1), (x * y + y, a * b + b),
    ):  # fmt: skip
        assert (
            ours.tolist() == theirs.tolist()
            and ours.dtype.kind.split()[-1] == dt.asarray(theirs).dtype.kind.split()[-1]
        )
    x += y
    assert x.dtype == dt.bool and x.tolist() == (a + b).tolist()
    for call in (lambda: x - y, lambda: dt.sign(x), lambda: -x):
        with pytest.raises(TypeError, match="dtype bool is not supported: expected numbers"):
            call()


# ---- integer powers, remainders ----------------------------------------------------------------------------------


def test_negative_integer_powers_raise(device):
    x = dt.asarray([3, -2, 1], device=device)
    why = r"\[pow\] integers to negative integer powers are not allowed"
    for exponent in (-1, dt.asarray(-1, device=device), dt.asarray([0, 2, -3], dtype="int8", device=device)):
        with pytest.raises(ValueError, match=why):
            x**exponent
    with pytest.raises(ValueError, match=why):
        2 ** dt.asarray([-1], device=device)
    with pytest.raises(ValueError, match=why):
        x **= -2
    assert x.tolist() == [3, -2, 1] and (x ** dt.asarray([2, 3, 0], device=device)).tolist() == [9, -8, 1]
    assert (x ** dt.asarray([1, 2, 3], dtype="uint8", device=device)).tolist() == [3, 4, 1]
    assert (x.astype("float32") ** -1).tolist() == [np.float32(1 / 3), -0.5, 1.0]
    assert (x[:0] ** dt.asarray(-1, device=device)[None][:0]).tolist() == []


def test_float64_remainder_is_exact(device):
    n = 400
    a, b = (np.ldexp(rng.uniform(-1, 1, n), rng.integers(-1074, 1024, n)) for _ in range(2))
    special = [
        0.0,
        -0.0,
        math.inf,
        -math.inf,
        math.nan,
        5e-324,
        -5e-324,
        1.7976931348623157e308,
        3.0,
        -7.5,
        2.0**-1022,
    ]
    a = np.concatenate([a, np.repeat(special, len(special))])
    b = np.concatenate([b, np.tile(special, len(special))])
    with np.errstate(all="ignore"):
        wanted = np.remainder(a, b)
        wanted = np.where(np.isfinite(a) & np.isinf(b) & (a != 0) & ((a < 0) != (b < 0)), b, wanted)
    got = (dt.asarray(a, device=device) % dt.asarray(b, device=device)).numpy()
    np.testing.assert_array_equal(got, wanted)
    zeros = wanted == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(b[zeros]))


def test_a_decomposition_that_refuses_a_dtype_falls_back(leave_the_schema_as_it_was):
    """fallback() promises a native kernel, then the decomposition, then a device on the host."""
    from dovetail import _core
    from dovetail.schema import Unsupported
    from dovetail.schema.declare import Tensor, op

    def refuses(x):
        """-x, for which a device needs a kernel."""
        raise Unsupported("no decomposition for float32")

    refuses.__annotations__ = {"x": Tensor, "return": Tensor}
    function = dt.register_op(op(name="border.refuses", shape="same", dtype="same", reference=np.negative)(refuses))
    try:
        away, host = dt.device("sim"), dt.device("cpu")
    except (ValueError, RuntimeError):
        pytest.skip("there are not two devices, one of them of the host")
    _core.add_kernel("cpu:0", float32_kernel("border.refuses", 1, np.negative))
    x, before = dt.asarray([1.0, 2.0], device=away), dt.fallback("error")
    try:
        with pytest.raises(NotImplementedError, match=r"\[border.refuses\] no decomposition for float32"):
            function(x)
        dt.fallback("allow")
        y = function(x)
        assert y.device == away and y.tolist() == [-1, -2] and function(x.to_device(host)).tolist() == [-1, -2]
    finally:
        dt.fallback(before)


# ---- arrays without axes on the host -----------------------------------------------------------------------------


def test_host_arrays_without_axes_join(device):
    host = dt.default_device()
    if host.kind != "cpu":
        pytest.skip("the default device is no host device")
    x, one = dt.asarray([1.0, 2.0], device=device), dt.asarray(3.0, device=host)
    for got in (x + one, one + x, dt.add(one, x)):
        assert got.device == device and got.tolist() == [4, 5]
    assert dt.where(x > 1, one, x).tolist() == [1, 3] and (x + dt.asarray(1, device=host)).dtype == dt.float32
    x[0] = one
    x += one
    assert x.device == device and x.tolist() == [6, 5]
    assert x[dt.asarray(1, device=host)].tolist() == 5
    if device != host:
        with pytest.raises(ValueError, match="expected one device"):
            x + one[None]


# ---- creation ----------------------------------------------------------------------------------------------------


def test_full_of_an_array(device):
    for value in (dt.asarray(1, device=device), dt.asarray(2.5, dtype="float64", device=device)):
        x = dt.full((2, 3), value)
        assert x.dtype == value.dtype and x.device == device and x.tolist() == [[value.item()] * 3] * 2
        x[0, 0] = 7
        assert x.tolist()[0][1] == value.item()
    assert dt.full(2, dt.asarray(1, device=device), dtype="float32").dtype == dt.float32
    assert dt.full_like(x, dt.asarray(1, device=device)).dtype == x.dtype
    with pytest.raises(TypeError, match=r"\[full\] fill_value: got an array of shape \(1,\), expected"):
        dt.full(2, dt.ones(1))


def test_pad_takes_numpys_pairs():
    n = np.arange(6).reshape(2, 3)
    x = dt.asarray(n)
    for width in (
        1,
        (1, 2),
        ((1, 2),),
        ((1, 2), (0, 1)),
        [[0, 3], [2, 0]],
        ((1,), (2,)),
        np.array([[1, 0], [0, 1]]),
    ):
        assert dt.pad(x, width).tolist() == np.pad(n, width).tolist()
    assert (
        dt.pad(x, (0, 1, 2, 0), constant_values=9).tolist()
        == np.pad(n, ((0, 1), (2, 0)), constant_values=9).tolist()
    )
    with pytest.raises(ValueError, match=r"\[pad\] pad_width: got .*, expected a pair for each of 2 axes"):
        dt.pad(x, ((1, 2), (0, 1), (1, 1)))
    assert dt.pad(x, 1, "reflect").tolist() == np.pad(n, 1, "reflect").tolist()


def test_linspace_of_integers_and_eye_far_off():
    for args in ((0, 10, 5), (-3.7, 4, 9), (0, 1, 1), (10, 0, 4)):
        got = dt.linspace(*args, dtype="int64")
        assert got.dtype == dt.int64 and got.tolist() == np.linspace(*args, dtype="int64").tolist()
    assert dt.linspace(0, 10, 5, dtype="int32", endpoint=False).tolist() == [0, 2, 4, 6, 8]
    assert dt.eye(2, k=10**30).tolist() == dt.eye(2, k=-(10**30)).tolist() == [[0, 0], [0, 0]]


def test_diff_of_order_zero():
    n = np.array([3, 1, 2])
    x = dt.asarray(n)
    assert dt.diff(x, n=0, prepend=x, append=x).tolist() == np.diff(n, n=0, prepend=n, append=n).tolist()
