from itertools import combinations

import harness
import numpy as np
import pytest
from closeness import assert_close
from harness import BOOL, FLOATS, INTEGERS

rng = np.random.default_rng(2)
REAL = [*FLOATS, *INTEGERS]
names = {"ids": lambda d: d.name}


def draw(shape, dtype) -> np.ndarray:
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    if dtype == BOOL:
        return rng.random(shape) < 0.5
    return rng.uniform(-4, 4, shape).astype(dtype)


def views(shape, dtype):
    """The same values in several layouts: dense, reversed axes, with gaps, broadcast."""
    yield draw(shape, dtype)
    yield draw(shape[::-1], dtype).transpose(range(len(shape))[::-1])
    yield draw((*shape[:-1], 2 * shape[-1]), dtype)[..., ::2]
    yield np.broadcast_to(draw((1, *shape[1:]), dtype), shape)


def axes_of(ndim):
    return [a for n in range(ndim + 1) for a in combinations(range(ndim), n)]


def reduced(x, axis):
    return tuple(n for i, n in enumerate(x.shape) if i not in axis)


@pytest.mark.parametrize("dtype", REAL, **names)
def test_sum_and_prod(cpu, dtype):
    for x in views((3, 5, 37), dtype):
        for axis in axes_of(3):
            got = cpu.run("sum", x, out=dtype, shape=reduced(x, axis), attrs=[axis, None, False])
            if dtype in FLOATS:
                wide = x.astype(np.longdouble)
                assert_close(got, wide.sum(axis), 2, np.abs(wide).sum(axis))
                y = (1 + x / 64).astype(dtype)
                p = y.astype(np.longdouble).prod(axis)
                got = cpu.run("prod", y, out=dtype, shape=reduced(x, axis), attrs=[axis, None, False])
                assert_close(got, p, 2 * max(1, x.size / max(1, p.size) / 4))
                got = cpu.run("mean", x, out=dtype, shape=reduced(x, axis), attrs=[axis, False])
                assert_close(got, wide.mean(axis), 2, np.abs(wide).mean(axis))
            else:
                with np.errstate(over="ignore"):
                    assert (got == x.sum(axis, dtype=dtype)).all()
                    got = cpu.run("prod", x, out=dtype, shape=reduced(x, axis), attrs=[axis, None, False])
                    assert (got == x.prod(axis, dtype=dtype)).all()


@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f8"), harness.bfloat16], **names)
def test_long_sums(cpu, dtype):
    """Errors do not grow with the number of terms, and chunks of several threads cover all of them."""
    cases = [
        ((300_000,), (0,)),
        ((70_000, 3), (0,)),
        ((3, 70_000), (1,)),
        ((2000, 40), (0,)),
        ((40, 50, 60), (0, 2)),
    ]
    for shape, axis in [*cases, ((20, 30, 20, 30), (1, 3))]:
        x = rng.uniform(0, 1, shape).astype(dtype)
        wide = x.astype(np.float64 if dtype != np.float64 else np.longdouble)
        for t, w in [(x, wide), (x.T, wide.T)]:
            a = axis if t is x else tuple(sorted(x.ndim - 1 - i for i in axis))
            got = cpu.run("sum", t, out=dtype, shape=reduced(t, a), attrs=[a, None, False])
            assert_close(got, w.sum(a), 2)


def test_complex_sum(cpu):
    for dtype in harness.COMPLEX:
        x = (draw((3, 40), "f4") + 1j * draw((3, 40), "f4")).astype(dtype)
        for t, axis in [(x, (0,)), (x, (1,)), (x, (0, 1)), (x.T, (0,)), (x, ())]:
            got, wide = (
                cpu.run("sum", t, out=dtype, shape=reduced(t, axis), attrs=[axis, None, False]),
                t.astype("c16"),
            )
            for part in ("real", "imag"):
                scale = np.abs(getattr(wide, part)).sum(axis)
                assert_close(getattr(got, part).copy(), getattr(wide.sum(axis), part), 2, scale)


@pytest.mark.parametrize("dtype", [*REAL, BOOL], **names)
def test_max_and_min(cpu, dtype):
    for x in views((3, 5, 37), dtype):
        for axis in axes_of(3):
            for op, fn in (("max", np.max), ("min", np.min)):
                got = cpu.run(op, x, out=dtype, shape=reduced(x, axis), attrs=[axis, False])
                assert (got == fn(x, axis)).all(), (op, axis)


@pytest.mark.parametrize("dtype", [*REAL, BOOL], **names)
def test_argmax_and_argmin(cpu, dtype):
    for x in views((3, 5, 37), dtype):
        if dtype in INTEGERS:
            x = x % 5  # ties
        for op, fn in (("argmax", np.argmax), ("argmin", np.argmin)):
            for axis in range(3):
                got = cpu.run(op, x, out=np.dtype("i8"), shape=reduced(x, (axis,)), attrs=[axis, False])
                assert (got == fn(x, axis)).all(), (op, axis)
            assert cpu.run(op, x, out=np.dtype("i8"), shape=(), attrs=[None, False]) == fn(x)


@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f8"), np.dtype("i2")], **names)
def test_rows_of_every_length(cpu, dtype):
    for n in [*range(1, 300), 1023, 1025, 2049, 4097]:
        x = rng.permuted(np.arange(3 * n) - 3 * n // 2).reshape(3, n).astype(dtype)  # exact sums; each number once
        for op, fn in (("sum", np.sum), ("max", np.max), ("min", np.min)):
            attrs = [(1,), None, False] if op == "sum" else [(1,), False]
            got = cpu.run(op, x, out=dtype, shape=(3,), attrs=attrs)
            assert (got == fn(x, 1).astype(dtype)).all(), (op, n)
        for op, fn in (("argmax", np.argmax), ("argmin", np.argmin)):
            got = cpu.run(op, x, out=np.dtype("i8"), shape=(3,), attrs=[1, False])
            assert (got == fn(x, 1)).all(), (op, n)


@pytest.mark.parametrize("dtype", [*map(np.dtype, ("f4", "f8", "i2", "i4", "i8")), harness.bfloat16], **names)
def test_many_rows(cpu, dtype):
    """Rows that are combined at once have the bits of each of them alone; also rows with gaps between them."""
    for n in [*range(1, 140, 3), 196, 255, 256, 257, 511, 513, 1000, 1023, 1024, 1025]:
        for x in (draw((37, n), dtype), draw((3, 19, n + 3), dtype)[..., :n]):
            for op, attrs in (("sum", [(x.ndim - 1,), None, False]), ("max", [(x.ndim - 1,), False])):
                got = cpu.run(op, x, out=dtype, shape=x.shape[:-1], attrs=attrs).reshape(-1)
                alone = [
                    cpu.run(op, row, out=dtype, shape=(), attrs=[(0,), *attrs[1:]]) for row in x.reshape(-1, n)[::9]
                ]
                assert got[::9].tobytes() == np.stack(alone).tobytes(), (op, n)
                if op == "max":
                    assert (got.reshape(x.shape[:-1]) == x.max(-1)).all(), n
        if dtype in FLOATS:
            wide = x.astype(np.longdouble)
            got = cpu.run("mean", x, out=dtype, shape=x.shape[:-1], attrs=[(2,), False])
            assert_close(got, wide.mean(-1), 2, np.abs(wide).mean(-1))


@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f8")], **names)
def test_nan_in_one_of_many_rows(cpu, dtype):
    for n in (5, 64, 196, 1024):
        for row, place in ((0, 0), (17, n // 2), (31, n - 1), (36, 1)):
            x = draw((37, n), dtype)
            x[row, place] = np.nan
            for op in ("max", "min"):
                got = cpu.run(op, x, out=dtype, shape=(37,), attrs=[(1,), False])
                assert np.array_equal(got, getattr(np, op)(x, 1), equal_nan=True), (op, n, row)


@pytest.mark.parametrize("dtype", FLOATS, **names)
def test_every_number_of_columns(cpu, dtype):
    for rows in (3, 40):
        for n in [*range(1, 150), 1023, 1024, 1025, 1100]:
            x = rng.integers(-3, 4, (rows, n)).astype(dtype)  # their sums are exact
            for op, fn in (("sum", np.sum), ("max", np.max)):
                attrs = [(0,), None, False] if op == "sum" else [(0,), False]
                got = cpu.run(op, x, out=dtype, shape=(n,), attrs=attrs)
                assert (got == fn(x.astype("f8"), 0)).all(), (op, rows, n)
    for rows in range(900, 910):  # of several chunks
        x = rng.integers(-1, 2, (rows, 300)).astype(dtype)
        exact = x.astype("f8").sum(0)
        assert (cpu.run("sum", x, out=dtype, shape=(300,), attrs=[(0,), None, False]) == exact.astype(dtype)).all()


@pytest.mark.parametrize("dtype", FLOATS, **names)
def test_nan_wins(cpu, dtype):
    for n in (1, 5, 70, 3000):
        for place in {0, n // 2, n - 1}:
            x = draw((2, n), dtype)
            x[1, place] = np.nan
            if n > 1:
                x[1, (place + 1) % n] = np.inf
            for t, axis in ((x, 1), (np.ascontiguousarray(x.T), 0)):
                for op in ("max", "min"):
                    got = cpu.run(op, t, out=dtype, shape=(2,), attrs=[(axis,), False])
                    assert got[0] == getattr(np, op)(x[0]) and np.isnan(got[1])
                for op in ("argmax", "argmin"):
                    got = cpu.run(op, t, out=np.dtype("i8"), shape=(2,), attrs=[axis, False])
                    assert (got == getattr(np, op)(x.astype("f4"), 1)).all()


def test_all_minus_infinity(cpu):
    x = np.full((2, 40), -np.inf, "f4")
    assert (cpu.run("max", x, out="f4", shape=(2,), attrs=[(1,), False]) == -np.inf).all()
    assert (cpu.run("argmax", x, out="i8", shape=(2,), attrs=[1, False]) == 0).all()


@pytest.mark.parametrize("dtype", [*REAL, BOOL], **names)
def test_any_and_all(cpu, dtype):
    for share in (0.0, 0.02, 0.98, 1.0):
        x = np.where(rng.random((4, 6, 41)) < share, draw((4, 6, 41), dtype), np.zeros((), dtype)).astype(dtype)
        if dtype in FLOATS:
            x[0, 0, 0], x[1, 1, 1] = -0.0, np.nan
        for t in (x, x.transpose(2, 0, 1)):
            for axis in axes_of(3):
                for op in ("any", "all"):
                    got = cpu.run(op, t, out=BOOL, shape=reduced(t, axis), attrs=[axis, False])
                    assert (got == getattr(np, op)(t, axis)).all()


@pytest.mark.parametrize(
    ("shape", "axes"), [((0, 3), (0,)), ((3, 0), (1,)), ((3, 0), (0, 1)), ((3, 0, 2), (0, 1, 2))]
)
def test_nothing_to_reduce(cpu, shape, axes):
    x, result = np.empty(shape, "f4"), tuple(n for i, n in enumerate(shape) if i not in axes)
    assert (cpu.run("sum", x, out="f4", shape=result, attrs=[axes, None, False]) == 0).all()
    assert (cpu.run("prod", x, out="f4", shape=result, attrs=[axes, None, False]) == 1).all()
    assert np.isnan(cpu.run("mean", x, out="f4", shape=result, attrs=[axes, False])).all()
    assert not cpu.run("any", x, out=BOOL, shape=result, attrs=[axes, False]).any()
    assert cpu.run("all", x, out=BOOL, shape=result, attrs=[axes, False]).all()


@pytest.mark.parametrize("dtype", REAL, **names)
def test_cumulative(cpu, dtype):
    for x in views((3, 5, 37), dtype):
        for axis in range(3):
            for initial in (False, True):
                shape = tuple(n + (initial and i == axis) for i, n in enumerate(x.shape))
                attrs = [axis, None, initial]
                rest = tuple(slice(1, None) if initial and i == axis else slice(None) for i in range(3))
                got = cpu.run("cumulative_sum", x, out=dtype, shape=shape, attrs=attrs)
                y = (1 + x / 64).astype(dtype) if dtype in FLOATS else x
                product = cpu.run("cumulative_prod", y, out=dtype, shape=shape, attrs=attrs)
                if initial:
                    assert (np.take(got, 0, axis) == 0).all() and (np.take(product, 0, axis) == 1).all()
                if dtype in FLOATS:
                    wide = x.astype(np.longdouble)
                    assert_close(got[rest], wide.cumsum(axis), 1, np.abs(wide).cumsum(axis))
                    assert_close(product[rest], y.astype(np.longdouble).cumprod(axis), 40)
                else:
                    with np.errstate(over="ignore"):
                        assert (got[rest] == x.cumsum(axis, dtype=dtype)).all()
                        assert (product[rest] == x.cumprod(axis, dtype=dtype)).all()


def test_cumulative_special_values(cpu):
    for dtype in FLOATS:
        x = np.array([-0.0, -0.0, 1, np.inf, 2, -np.inf, 3], dtype)
        got = cpu.run("cumulative_sum", x, out=dtype, attrs=[0, None, False])
        with np.errstate(invalid="ignore"):
            want = x.astype("f8").cumsum()
        assert np.array_equal(got.astype("f8"), want, equal_nan=True) and np.signbit(got[:2]).all()
