from concurrent.futures import ThreadPoolExecutor
from itertools import product

import harness
import numpy as np
import pytest
from abi import FLUSHES_SUBNORMALS
from closeness import assert_close

rng = np.random.default_rng(1)
SIZES = [
    (1, 1, 1),
    (2, 3, 4),
    (4, 4, 4),
    (1, 100, 33),
    (17, 128, 1),
    (5, 1, 9),
    (16, 384, 96),
    (33, 65, 127),
    (70, 40, 96),
]


def draw(shape, dtype) -> np.ndarray:
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    if dtype.kind == "c":
        return (rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)).astype(dtype)
    return rng.uniform(-1, 1, shape).astype(dtype)


def laid_out(a: np.ndarray, layout: str) -> np.ndarray:
    """The same values: row-major, column-major, or with gaps."""
    if layout == "T":
        return np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
    if layout == "S":
        wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
        wide[..., ::2] = a
        return wide[..., ::2]
    return a


def slack(dtype: np.dtype, terms: int) -> float:
    """Our own loops and the libraries' add up hundreds of products in order; the schema allows that (`dot_slack`).

    Narrower floats are added up in float32.
    """
    in_order = dtype.kind == "c" or dtype in (np.float32, np.float64)
    return max(1.0, terms**0.5 / 2) if in_order else 1.0


def check(cpu, op, x, y, bias=None, tol=3.0, pack=None):
    w = y.swapaxes(-1, -2) if op == "linear" else y
    wide = {"f8": np.longdouble, "c8": np.complex128, "c16": np.clongdouble}.get(x.dtype.str[1:], np.float64)
    if x.dtype.kind in "iu":
        want = np.matmul(x, w) if bias is None else np.matmul(x, w) + bias
    else:
        want = np.matmul(x.astype(wide), w.astype(wide))
        scale = np.matmul(np.abs(x.astype(wide)), np.abs(w.astype(wide))) * slack(x.dtype, x.shape[-1])
        if bias is not None:
            want, scale = want + bias.astype(wide), scale + np.abs(bias.astype(wide))
    operands = (x, y) if bias is None else (x, y, bias)
    got = cpu.run(op, *operands, out=x.dtype, shape=want.shape, pack=pack)
    if x.dtype.kind in "iu":
        assert (got == want).all()
    elif x.dtype.kind == "c":
        assert_close(got.real.copy(), want.real, 2 * tol, scale)
        assert_close(got.imag.copy(), want.imag, 2 * tol, scale)
    else:
        assert_close(got, want, tol, scale)


@pytest.mark.parametrize("dtype", [*harness.FLOATS, *harness.INTEGERS, *harness.COMPLEX], ids=lambda d: d.name)
def test_sizes(cpu, dtype):
    for m, k, n in SIZES:
        check(cpu, "matmul", draw((m, k), dtype), draw((k, n), dtype))


@pytest.mark.parametrize(
    "dtype",
    [np.dtype("f4"), np.dtype("f8"), harness.bfloat16, np.dtype("i4"), np.dtype("c8")],
    ids=lambda d: d.name,
)
def test_layouts(cpu, dtype):
    for (m, k, n), a, b in product(
        [(4, 4, 4), (33, 65, 127), (3, 200, 130), (130, 200, 3), (1, 300, 40), (40, 300, 1)], "NTS", "NTS"
    ):
        check(cpu, "matmul", laid_out(draw((m, k), dtype), a), laid_out(draw((k, n), dtype), b))


@pytest.mark.parametrize(
    "dtype", [np.dtype("f4"), np.dtype("f8"), np.dtype("f2"), np.dtype("i4")], ids=lambda d: d.name
)
def test_operands_larger_than_the_second_cache(cpu, dtype):
    """Columns of b are packed in chunks. Rows of a are copied if a is transposed or they share cache lines.

    Small whole numbers: their sums are exact in any order.
    """
    for m, k, n in [(45, 420, 1051), (40, 1024, 300)]:
        x, y = (rng.integers(-4, 5, shape).astype(dtype) for shape in [(m, k), (k, n)])
        want = (x.astype(np.float64) @ y.astype(np.float64)).astype(dtype)
        for a, b in ["NN", "TN", "SN", "NT", "NS", "TT"]:
            got = cpu.run("matmul", laid_out(x, a), laid_out(y, b), out=dtype, shape=(m, n))
            np.testing.assert_array_equal(got, want, f"{m, k, n}, {a}{b}")


@pytest.mark.parametrize("dtype", [np.dtype("f2"), harness.bfloat16], ids=lambda d: d.name)
def test_float32_sums_of_narrow_floats(cpu, dtype):
    """They are not rounded: the float16 or bfloat16 that is nearest to them is the product without dtype."""
    for (m, k, n), a, b in product(
        [(1, 1, 1), (3, 5, 7), (1, 300, 40), (40, 300, 1), (70, 400, 200)], "NTS", "NTS"
    ):
        x, y = laid_out(draw((m, k), dtype), a), laid_out(draw((k, n), dtype), b)
        want, scale = x.astype("f8") @ y.astype("f8"), np.abs(x.astype("f8")) @ np.abs(y.astype("f8"))
        got = cpu.run("matmul", x, y, out="f4", shape=want.shape)
        assert_close(got, want, 3.0, scale * slack(np.dtype("f4"), k))
        if k > 5:
            assert (got != got.astype(dtype)).any()
            plain = cpu.run("matmul", x, y, out=dtype, shape=want.shape).astype("f4")
            assert np.abs(plain - got).max() <= np.abs(got).max() * 2.0**-8


def test_big(cpu):
    """Cut into tiles, several steps along k, and by the libraries where those are faster."""
    dtypes = [np.dtype("f4"), np.dtype("f8"), harness.bfloat16]
    sizes = [(60, 4, 1100), (30, 1600, 40)] if harness.EMULATED else [(600, 40, 1100), (100, 1600, 110)]
    for dtype, (m, k, n) in product(dtypes, sizes):
        check(cpu, "matmul", draw((m, k), dtype), draw((k, n), dtype))
        check(cpu, "linear", draw((m, k), dtype), draw((n, k), dtype), draw(n, dtype))


def test_aliasing_strides(cpu):
    check(cpu, "matmul", draw((40, 1024), "f4"), draw((1024, 300), "f4"))
    check(cpu, "matmul", draw((40, 300), "f4"), draw((300, 1024), "f4"))


@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f2")], ids=lambda d: d.name)
def test_batches_and_vectors(cpu, dtype):
    vectors = [((9,), (9,)), ((9,), (9, 4)), ((4, 9), (9,)), ((3, 4, 5), (5,)), ((5,), (3, 5, 4))]
    batches = [((3, 4, 5), (3, 5, 6)), ((2, 1, 4, 5), (3, 5, 6)), ((7, 4, 5), (5, 6)), ((2, 3, 1, 5), (5, 6))]
    for x, y in [*vectors, *batches, ((40, 30, 31), (40, 31, 32)), ((3, 0), (0, 4))]:
        check(cpu, "matmul", draw(x, dtype), draw(y, dtype))
    x = np.broadcast_to(draw((1, 4, 5), dtype), (6, 4, 5))
    check(cpu, "matmul", x, draw((6, 5, 3), dtype))
    check(cpu, "matmul", draw((4, 5, 6), dtype).transpose(1, 0, 2), draw((6, 3), dtype))


@pytest.mark.parametrize("dtype", [*harness.FLOATS, np.dtype("i8")], ids=lambda d: d.name)
def test_linear(cpu, dtype):
    for shape, n in [((4,), 3), ((2, 4), 3), ((16, 384), 100), ((2, 3, 50), 64), ((130, 33), 65)]:
        x, w = draw(shape, dtype), draw((n, shape[-1]), dtype)
        check(cpu, "linear", x, w)
        check(cpu, "linear", x, w, draw(n, dtype))
        check(cpu, "linear", laid_out(x, "S"), laid_out(w, "T"), draw(n, dtype))


@pytest.mark.parametrize("dtype", harness.COMPLEX, ids=lambda d: d.name)
def test_complex_linear(cpu, dtype):
    for shape, n in [((3, 4), 5), ((20, 30), 17)]:
        x, w, bias = draw(shape, dtype), draw((n, shape[-1]), dtype), draw(n, dtype)
        for layout in "NS":
            check(cpu, "linear", laid_out(x, layout), w, bias)


@pytest.mark.parametrize("dtype", harness.FLOATS, ids=lambda d: d.name)
def test_big_batches(cpu, dtype):
    """Matrices that a library may take, with repeated rows, broadcast batches and tiles at every offset."""
    check(cpu, "matmul", draw((3, 40, 37), dtype), draw((37, 50), dtype))
    check(cpu, "matmul", draw((2, 1, 40, 37), dtype), draw((3, 37, 50), dtype))
    check(cpu, "matmul", np.broadcast_to(draw((1, 37), dtype), (40, 37)), draw((37, 50), dtype))
    check(cpu, "matmul", draw((40, 2, 37), dtype).transpose(1, 0, 2), draw((37, 50), dtype))
    check(cpu, "linear", draw((2, 100, 90), dtype), draw((130, 90), dtype), draw(130, dtype))


@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f8"), np.dtype("c8")], ids=lambda d: d.name)
def test_the_bias_is_added_to_the_sum(cpu, dtype):
    """A sum that begins with a large bias rounds each of its terms to the bias's digits."""
    for (m, k, n), layout in product(
        [(2, 3, 4), (3, 100, 33), (16, 384, 96), (40, 300, 5), (130, 1600, 99)], "NTS"
    ):
        x, w = draw((m, k), dtype), laid_out(draw((n, k), dtype), layout)
        bias = 1000 * draw(n, dtype)
        sums = cpu.run("matmul", x, w.T, out=dtype, shape=(m, n))
        assert (cpu.run("linear", x, w, bias, out=dtype, shape=(m, n)) == sums + bias).all(), (m, k, n, layout)


def test_no_terms_gives_the_bias(cpu):
    bias = draw(5, "f4")
    assert (cpu.run("linear", draw((3, 0), "f4"), draw((5, 0), "f4"), bias, out="f4", shape=(3, 5)) == bias).all()


@pytest.mark.parametrize("dtype", ["u1", "i4", "f2", "f4", "f8"])
def test_no_terms_on_a_thread_that_never_multiplied(cpu, dtype):
    """It has no scratch memory yet, and needs none: that must not count as out of memory."""
    x, y = np.ones((3, 0), dtype), np.ones((0, 4), dtype)
    with ThreadPoolExecutor(1) as fresh:
        got = fresh.submit(lambda: cpu.run("matmul", x, y, out=dtype, shape=(3, 4))).result()
    assert not got.any()


@pytest.mark.parametrize("dtype", harness.FLOATS, ids=lambda d: d.name)
def test_nan_and_infinity_spread(cpu, dtype):
    """Nor into the next product, through reused memory."""
    for n in (4, 37, 40):
        x, y = draw((n, n), dtype), draw((n, n), dtype)
        clean = x.copy(), y.copy()
        x[1, 2], y[3, 1], y[0, 0], x[2, n - 1] = np.nan, np.inf, -np.inf, np.inf
        with np.errstate(invalid="ignore"):
            want = x.astype("f8") @ y.astype("f8")
        got = cpu.run("matmul", x, y, out=dtype, shape=(n, n)).astype("f8")
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        np.testing.assert_array_equal(got[np.isinf(want)], want[np.isinf(want)])
        check(cpu, "matmul", *clean)


@pytest.mark.parametrize("dtype", harness.FLOATS, ids=lambda d: d.name)
def test_infinity_in_the_last_term(cpu, dtype):
    """Kernels that multiply numbers in pairs have no partner for the last of an odd number."""
    for k, layout in product((33, 64, 95), "NT"):
        x, y = np.ones((64, k), dtype), np.ones((k, 200), dtype)
        x[5, -1] = y[-1, 7] = np.inf
        got = cpu.run("matmul", laid_out(x, layout), y, out=dtype, shape=(64, 200)).astype("f8")
        infinite = np.zeros(got.shape, bool)
        infinite[5] = infinite[:, 7] = True
        assert (got == np.where(infinite, np.inf, k)).all(), (k, layout)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_subnormal_numbers_survive(cpu, dtype):
    x = (draw((40, 40), dtype) * (np.finfo(dtype).tiny / 2)).astype(dtype)
    got = cpu.run("matmul", x, np.eye(40, dtype=dtype), out=dtype, shape=(40, 40))
    assert 0 < np.abs(x).max() < np.finfo(dtype).tiny
    np.testing.assert_array_equal(got, x)


def test_rows_say_where_subnormal_bfloat16_is_lost(cpu):
    """The instructions that multiply bfloat16 flush subnormal numbers."""
    dtype, ops = harness.bfloat16, ("matmul", "linear", "conv2d", "conv1d")
    declared = {bool(cpu.find(op, [dtype] * 2, [dtype]).flags & FLUSHES_SUBNORMALS) for op in ops}
    x, eye = np.full((64, 64), 2.0**-130).astype(dtype), np.eye(64, dtype=dtype)
    got = cpu.run("matmul", x, eye, out=dtype, shape=x.shape)
    assert (got == x).all() or (declared == {True} and not got.any())


THREADED = [(100, 300, 200), (1, 5000, 700), (3, 900, 1000), (513, 64, 33)]


@pytest.mark.parametrize("dtype", [*harness.FLOATS, *harness.COMPLEX], ids=lambda d: d.name)
def test_bits_do_not_depend_on_threads(cpu, monkeypatch, dtype):
    """Tiles at an end have few rows or columns, which as a whole product would be summed in another order."""
    for (m, k, n), op in product(THREADED, ("matmul", "linear")):
        x, y = draw((m, k), dtype), draw((k, n) if op == "matmul" else (n, k), dtype)
        seen = set()
        for threads in (1, 2, 3, 7):
            monkeypatch.setattr(cpu, "threads", threads)
            seen.add(cpu.run(op, x, y, out=dtype, shape=(m, n)).tobytes())
        assert len(seen) == 1, (op, m, k, n)


@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f8")], ids=lambda d: d.name)
def test_threads_that_pack_together_change_no_bits(cpu, monkeypatch, dtype):
    """Where several rows of tiles need the same columns of b; one thread has a single tile, which packs its own."""
    m, k, n = (70, 40, 50) if harness.EMULATED else (400, 611, 330)
    for op, a, b in product(("matmul", "linear"), "NT", "NTS"):
        x, y = laid_out(draw((m, k), dtype), a), laid_out(draw((k, n) if op == "matmul" else (n, k), dtype), b)
        seen = set()
        for threads in (1, 2, 5):
            monkeypatch.setattr(cpu, "threads", threads)
            seen.add(cpu.run(op, x, y, out=dtype, shape=(m, n)).tobytes())
        assert len(seen) == 1, (op, a, b)
        if dtype == np.float32:  # for float64, the product to compare with takes long
            check(cpu, op, x, y)


@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f8")], ids=lambda d: d.name)
def test_more_terms_than_are_read_at_a_time(cpu, dtype):
    m, k, n = (40, 300, 40) if harness.EMULATED else (45, 2500, 330)
    bias = draw(n, dtype)
    for a, b in product("NT", "NT"):
        check(cpu, "linear", laid_out(draw((m, k), dtype), a), laid_out(draw((n, k), dtype), b), bias)
