import numpy as np
import pytest
from harness import BOOL, FLOATS, INTEGERS

rng = np.random.default_rng(3)


def draw(shape, dtype) -> np.ndarray:
    if dtype in FLOATS:
        bits = rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8)
        x = bits.view(dtype)[..., 0].copy()
        x[..., ::7] = 0
        x[..., ::5] = -0.0
        x[..., ::11] = np.nan
        return x
    return rng.integers(0, 2 if dtype == BOOL else 100, shape).astype(dtype)


def order(x, axis, descending):
    """The stable order: NaN last, zeros equal."""
    comparable = x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype in FLOATS else x
    rank = np.unique(comparable, return_inverse=True)[1].reshape(x.shape).astype(np.int64)
    nan = np.isnan(comparable) if x.dtype in FLOATS else np.zeros(x.shape, bool)
    rank = np.where(nan, x.size, -rank if descending else rank)
    return np.argsort(rank, axis, kind="stable")


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, BOOL], ids=lambda d: d.name)
@pytest.mark.parametrize("descending", [False, True], ids=["up", "down"])
def test_sort(cpu, dtype, descending):
    for shape, axis in [((1, 1), 1), ((3, 17), 1), ((17, 3), 0), ((2, 300), 1), ((2, 300, 3), 1), ((1, 5000), 1)]:
        whole = draw(shape, dtype)
        for x in (whole, np.asfortranarray(whole)):
            want = order(x, axis, descending)
            index = cpu.run("argsort", x, out=np.dtype("i8"), attrs=[axis, descending, True])
            assert (index == want).all()
            values = cpu.run("sort", x, out=dtype, attrs=[axis, descending, True])
            assert values.tobytes() == np.take_along_axis(x, want, axis).tobytes()


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, BOOL], ids=lambda d: d.name)
@pytest.mark.parametrize("mode", ["largest", "smallest"])
def test_top_k(cpu, dtype, mode):
    """Rows that use insertion sort, radix sort and partial selection; also with the best at the end."""
    cases = [
        ((3, 17), 1, 5),
        ((17, 3), 0, 17),
        ((2, 900), 1, 14),
        ((2, 900, 3), 1, 13),
        ((2, 900), 1, 15),
        ((1, 99), 1, 1),
    ]
    for shape, axis, k in cases:
        whole = draw(shape, dtype)
        if k == 14:
            whole = np.sort(whole, axis)
        for x in (whole, np.asfortranarray(whole)):
            want = np.take(order(x, axis, mode == "largest"), range(k), axis)
            values, index = cpu.run(
                "top_k", x, out=[dtype, np.dtype("i8")], shape=[want.shape] * 2, attrs=[k, axis, mode]
            )
            assert (index == want).all()
            assert values.tobytes() == np.take_along_axis(x, want, axis).tobytes()


LONG = {
    "few values": lambda n: rng.integers(0, 5, n),
    "one value": lambda n: np.full(n, 7),
    "ordered": lambda n: np.arange(n),
    "reversed": lambda n: np.arange(n)[::-1],
    "up and down": lambda n: np.concatenate([np.arange(n // 2), np.arange(n - n // 2)[::-1]]),
    "mostly the largest": lambda n: np.where(rng.integers(0, 9, n) > 0, np.iinfo(np.int32).max, 3),
}


@pytest.mark.parametrize("dtype", [np.dtype(t) for t in ("i4", "u4", "f4", "i8", "f8")], ids=lambda d: d.name)
@pytest.mark.parametrize("kind", LONG)
def test_long_rows(cpu, dtype, kind):
    """Orders that pivots divide badly."""
    for n in (2049, 70_001):
        x = LONG[kind](n).astype(dtype)[None]
        for descending in (False, True):
            got = cpu.run("sort", x, out=dtype, attrs=[1, descending, True])
            assert np.array_equal(got[0, ::-1] if descending else got[0], np.sort(x[0]))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=lambda d: d.name)
@pytest.mark.parametrize("descending", [False, True], ids=["up", "down"])
def test_rows_that_threads_share(cpu, dtype, descending):
    for shape, axis, k in [((1, 50_001), 1, 50_001), ((2, 33_000), 1, 900), ((70_000, 1), 0, 40_000)]:
        x = draw(shape, dtype)
        x[..., 10:3000] = x[..., :1]  # of equal elements the first comes first, whichever thread has them
        x = np.concatenate([x, x], 1)[:, ::2] if axis else x
        want = order(x, axis, descending)
        attrs = [axis, descending, True]
        assert cpu.run("sort", x, out=dtype, attrs=attrs).tobytes() == np.take_along_axis(x, want, axis).tobytes()
        assert (cpu.run("argsort", x, out=np.dtype("i8"), attrs=attrs) == want).all()
        want = np.take(want, range(k), axis)
        values, index = cpu.run(
            "top_k",
            x,
            out=[dtype, np.dtype("i8")],
            shape=[want.shape] * 2,
            attrs=[k, axis, "largest" if descending else "smallest"],
        )
        assert (index == want).all()
        assert values.tobytes() == np.take_along_axis(x, want, axis).tobytes()
