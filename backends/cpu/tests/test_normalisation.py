import harness
import numpy as np
import pytest
from closeness import assert_close

rng = np.random.default_rng(4)
floats = pytest.mark.parametrize("dtype", harness.FLOATS, ids=lambda d: d.name)


def largest(y, axis):
    return np.max(np.abs(np.where(np.isfinite(y), y, 0)), axis, keepdims=True) + np.zeros_like(y)


def softmax(x, axis):
    m = np.max(x, axis, keepdims=True)
    e = np.exp(x - np.where(np.isinf(m), 0, m))
    return e / e.sum(axis, keepdims=True)


def log_softmax(x, axis):
    m = np.max(x, axis, keepdims=True)
    d = x - np.where(np.isinf(m), 0, m)
    return d - np.log(np.exp(d).sum(axis, keepdims=True))


def check_softmax(cpu, x, axis):
    wide = x.astype(np.longdouble)
    got = cpu.run("softmax", x, out=x.dtype, attrs=[axis])
    assert_close(got, softmax(wide, axis), 3, largest(softmax(wide, axis), axis))
    got = cpu.run("log_softmax", x, out=x.dtype, attrs=[axis])
    want = log_softmax(wide, axis)
    assert_close(got, want, 4, np.maximum(largest(want, axis), 1))


@floats
def test_softmax(cpu, dtype):
    for shape, axis in [
        ((4, 1), 1),
        ((4, 5), 1),
        ((4, 5), 0),
        ((3, 1000), 1),
        ((2, 17, 40), 1),
        ((5, 33), 0),
        ((2, 3, 64), 2),
        ((1000, 3), 0),
        ((1000, 64), 0),
    ]:
        for spread in (1, 40):
            whole = rng.uniform(-spread, spread, shape).astype(dtype)
            for x in (whole, np.asfortranarray(whole)):
                check_softmax(cpu, x, axis)


@floats
def test_softmax_of_columns_far_apart(cpu, dtype):
    """Rows a power of two apart, which share few lines of a cache; the last vector of columns is not whole."""
    whole = rng.uniform(-4, 4, (600, 2048 // np.dtype(dtype).itemsize)).astype(dtype)
    check_softmax(cpu, whole, 0)
    check_softmax(cpu, whole[:, :-3], 0)


@floats
def test_softmax_at_infinity(cpu, dtype):
    inf, nan = np.inf, np.nan
    rows = [[0, -inf, 1], [-inf, -inf, -inf], [inf, 1, 2], [nan, 1, 2], [-inf, 5, -inf]]
    for n in (3, 40):
        x = np.full((5, n), -inf, dtype)
        x[:, :3] = np.array(rows)
        with np.errstate(invalid="ignore", divide="ignore"):
            for op, fn in (("softmax", softmax), ("log_softmax", log_softmax)):
                want = fn(x.astype("f8"), 1)
                for t, axis in ((x, 1), (np.ascontiguousarray(x.T), 0)):
                    got = cpu.run(op, t, out=dtype, attrs=[axis])
                    assert_close(got if axis else got.T.copy(), want, 3, 1.0)


@floats
def test_layer_norm(cpu, dtype):
    for shape, last in [((4, 65), 1), ((3, 4, 5), 2), ((2, 3, 384), 1), ((1, 5000), 1), ((4, 1), 1)]:
        for mean in (0, 100):
            x = (rng.uniform(-2, 2, shape) + mean).astype(dtype)
            norm = shape[-last:]
            w, b = rng.uniform(-2, 2, norm).astype(dtype), rng.uniform(-2, 2, norm).astype(dtype)
            axes = tuple(range(len(shape) - last, len(shape)))
            wide = x.astype(np.longdouble)
            middle = wide.mean(axes, keepdims=True)
            root = np.sqrt(((wide - middle) ** 2).mean(axes, keepdims=True) + 1e-5)
            y = (wide - middle) / root
            size = np.abs(y).max(axes, keepdims=True) + np.abs(middle) / root + 0 * y
            for weight, bias in [(None, None), (w, None), (None, b), (w, b)]:
                want, scale = y, size
                if weight is not None:
                    want, scale = want * weight.astype("f8"), scale * np.abs(weight.astype("f8"))
                if bias is not None:
                    want, scale = want + bias.astype("f8"), scale + np.abs(bias.astype("f8"))
                got = cpu.run("layer_norm", x, weight, bias, out=dtype, shape=shape, attrs=[norm, 1e-5])
                assert_close(got, want, 4, scale)


@floats
def test_group_norm(cpu, dtype):
    for shape, groups in [((2, 6, 5, 7), 3), ((3, 4), 2), ((1, 8, 70, 70), 2), ((2, 5, 33), 1), ((2, 5, 33), 5)]:
        x = (rng.uniform(-2, 2, shape) + 3).astype(dtype)
        w, b = rng.uniform(-2, 2, (2, shape[1])).astype(dtype)
        rows = x.astype(np.longdouble).reshape(shape[0] * groups, -1)
        middle = rows.mean(1, keepdims=True)
        root = np.sqrt(((rows - middle) ** 2).mean(1, keepdims=True) + 1e-5)
        y = (rows - middle) / root
        size = (np.abs(y).max(1, keepdims=True) + np.abs(middle) / root + 0 * y).reshape(shape)
        by_channel = (1, -1) + (1,) * (len(shape) - 2)
        for weight, bias in [(None, None), (w, None), (None, b), (w, b)]:
            want, scale = y.reshape(shape), size
            if weight is not None:
                wide = weight.astype("f8").reshape(by_channel)
                want, scale = want * wide, scale * np.abs(wide)
            if bias is not None:
                wide = bias.astype("f8").reshape(by_channel)
                want, scale = want + wide, scale + np.abs(wide)
            got = cpu.run("group_norm", x, weight, bias, out=dtype, shape=shape, attrs=[groups, 1e-5])
            assert_close(got, want, 4, scale)


@floats
def test_rms_norm(cpu, dtype):
    for shape, last in [((4, 65), 1), ((3, 4, 5), 2), ((2, 384), 1)]:
        x, norm = rng.uniform(-4, 4, shape).astype(dtype), shape[-last:]
        w = rng.uniform(-2, 2, norm).astype(dtype)
        axes, wide = tuple(range(len(shape) - last, len(shape))), x.astype(np.longdouble)
        y = wide / np.sqrt((wide * wide).mean(axes, keepdims=True) + 1e-6)
        assert_close(cpu.run("rms_norm", x, None, out=dtype, shape=shape, attrs=[norm, 1e-6]), y, 4)
        assert_close(cpu.run("rms_norm", x, w, out=dtype, shape=shape, attrs=[norm, 1e-6]), y * w.astype("f8"), 4)


@floats
def test_rms_norm_keeps_negative_zero(cpu, dtype):
    x = np.array([[1, -0.0, 0, -2, -0.0] * 13]).astype(dtype)
    got = cpu.run("rms_norm", x, None, out=dtype, shape=x.shape, attrs=[(65,), 1e-6])
    assert (np.signbit(got) == np.signbit(x)).all()


@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f8")], ids=lambda d: d.name)
def test_rms_norm_divides(cpu, dtype):
    """A compiled function that divides by the root of the mean square calls it, with no larger errors."""
    for n in (33, 330, 1000):
        x = rng.normal(size=(1000, n)).astype(dtype)
        want = x / np.sqrt(np.mean(x.astype(np.longdouble) ** 2, 1, keepdims=True))
        plain = x / np.sqrt(np.mean(x * x, 1, keepdims=True))
        got = cpu.run("rms_norm", x, None, out=dtype, shape=x.shape, attrs=[(n,), 0.0])
        error, expected = (np.sqrt(np.mean((y - want) ** 2)) for y in (got, plain))
        assert error <= 1.1 * expected  # NumPy's sums have more lanes on some processors
