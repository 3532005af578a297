"""Products of bytes in int32: every sign, layout and kind of zero points, against int64."""

from itertools import product

import numpy as np
import pytest
from test_matmul import draw, laid_out

rng = np.random.default_rng(2)
BYTES = [np.dtype("i1"), np.dtype("u1")]
SIGNS = pytest.mark.parametrize("signs", list(product(BYTES, BYTES)), ids=lambda s: f"{s[0].name}_{s[1].name}")


@pytest.fixture
def cpu(with_and_without_amx):
    return with_and_without_amx


def expected(x, y, zx=None, zy=None):
    a, b = x.astype("i8"), y.astype("i8")
    if zx is not None:
        a = a - (zx.astype("i8")[:, None] if zx.ndim and a.ndim > 1 else zx.astype("i8"))
    return np.matmul(a, b if zy is None else b - zy.astype("i8")).astype("i4")


def check(cpu, x, y, zx=None, zy=None):
    want = expected(x, y, zx, zy)
    got = cpu.run("matmul_integer", x, y, zx, zy, out="i4", shape=want.shape)
    np.testing.assert_array_equal(got, want)


@SIGNS
def test_sizes(cpu, signs):
    for m, k, n in [(1, 1, 1), (2, 3, 4), (1, 100, 33), (17, 128, 1), (5, 1, 9), (33, 65, 127), (70, 40, 96)]:
        x, y = draw((m, k), signs[0]), draw((k, n), signs[1])
        check(cpu, x, y)
        check(cpu, x, y, draw((), signs[0]), draw((), signs[1]))
        check(cpu, x, y, draw((m,), signs[0]), draw((n,), signs[1]))
        check(cpu, x, y, draw((1,), signs[0]))
        check(cpu, x, y, None, draw((n,), signs[1]))


@SIGNS
def test_layouts(cpu, signs):
    for (m, k, n), a, b in product([(33, 65, 127), (3, 203, 130), (130, 202, 3), (1, 301, 40)], "NTS", "NTS"):
        x, y = laid_out(draw((m, k), signs[0]), a), laid_out(draw((k, n), signs[1]), b)
        check(cpu, x, y, draw((m,), signs[0]), draw((n,), signs[1]))


@SIGNS
def test_nothing_saturates(cpu, signs):
    """Sums of two products of bytes do not fit int16."""
    ends = [(np.iinfo(d).min, np.iinfo(d).max) for d in signs]
    for p, q in product(*ends):
        x, y = np.full((6, 200), p, signs[0]), np.full((200, 40), q, signs[1])
        check(cpu, x, y)
        for zp, zq in product(*ends):
            check(cpu, x, y, np.array(zp, signs[0]), np.array(zq, signs[1]))


def test_sums_wrap(cpu):
    """255 * 255 * 40000 is beyond int32."""
    k = 40_000
    check(cpu, np.full((2, k), 255, "u1"), np.full((k, 3), 255, "u1"))
    check(cpu, np.full((2, k), -128, "i1"), np.full((k, 3), -128, "i1"), np.array(127, "i1"), np.array(127, "i1"))


@SIGNS
def test_batches_and_vectors(cpu, signs):
    shapes = [((9,), (9,)), ((9,), (9, 4)), ((4, 9), (9,)), ((3, 4, 5), (3, 5, 6)), ((2, 1, 4, 5), (3, 5, 6))]
    for x, y in [*shapes, ((7, 4, 5), (5, 6)), ((2, 3, 1, 5), (5, 6)), ((3, 0), (0, 4)), ((0, 3), (3, 4))]:
        of_rows = x[-2:-1] if len(x) > 1 else ()
        of_columns = y[-1:] if len(y) > 1 else ()
        check(cpu, draw(x, signs[0]), draw(y, signs[1]), draw(of_rows, signs[0]), draw(of_columns, signs[1]))


def test_tiles(cpu):
    """Several tiles, steps along k, and batches that share x2, whose rows repeat the zero points."""
    x, y = draw((600, 700), "u1"), draw((700, 530), "i1")
    check(cpu, x, y, draw((600,), "u1"), draw((530,), "i1"))
    check(cpu, draw((3, 200, 90), "u1"), y[:90], draw((200,), "u1"), draw((530,), "i1"))


@pytest.mark.parametrize("dtype", [*BYTES, np.dtype("i2")], ids=lambda d: d.name)
def test_matmul_in_int32(cpu, dtype):
    for m, k, n in [(1, 1, 1), (3, 5, 7), (33, 65, 127), (100, 300, 90)]:
        for a, b in product("NTS", "NTS"):
            x, y = laid_out(draw((m, k), dtype), a), laid_out(draw((k, n), dtype), b)
            got = cpu.run("matmul", x, y, out="i4", shape=(m, n))
            np.testing.assert_array_equal(got, expected(x, y))
