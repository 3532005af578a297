"""Kernels along axes and by index at the sizes where the host switches from one kernel to another, or a thread's
share ends; the suite's sizes are smaller."""

from __future__ import annotations

import pytest

NUMPY = """
from dovetail import _core
scatter = _core.op_function("scatter")
rng = np.random.default_rng(0)
def ints(*shape, dtype=np.int32): return rng.integers(-99, 99, shape).astype(dtype)
def floats(*shape, dtype=np.float32): return rng.standard_normal(shape).astype(dtype)
def on_device(x): return dv.asarray(x)
def same(got, expected, *what):
    np.testing.assert_array_equal(np.asarray(got), expected, err_msg=str(what))
def near(got, expected, *what, tolerance=3e-6):
    np.testing.assert_allclose(np.asarray(got), expected, rtol=tolerance, atol=tolerance, err_msg=str(what))
"""

# Sizes next to those of packs, warps, blocks, rows in registers, tiles and parts.
LENGTHS = [1, 2, 3, 7, 8, 31, 32, 33, 127, 129, 255, 257, 1023, 1025, 4095, 4097, 8191, 16384, 16385, 40003]


@pytest.fixture
def run(program):
    return lambda code: program(NUMPY + f"lengths = {LENGTHS}\n" + code)


def test_the_first_of_rows(run):
    """Sorted whole, or selected by a block; larger ones and bytes are always sorted."""
    run("""
def first(x, k, mode="largest", axis=-1):
    order = np.argsort(-x if mode == "largest" else x, axis=axis, kind="stable")
    order = np.take(order, np.arange(k), axis)
    values, indices = dv.top_k(on_device(x), k, axis=axis, mode=mode)
    same(indices, order, x.dtype, x.shape, k, mode)
    same(values, np.take_along_axis(x, order, axis), x.dtype, x.shape, k, mode)
for n in [n for n in lengths if n > 1000]:
    for mode in "largest", "smallest":
        for k in 1, 50, min(n, 1536):
            first(floats(3, n), k, mode)
            first(ints(2, n), k, mode)  # many are equal: the first of them
    first(floats(n, 3).T, 7)
    first(floats(n, 3), 7, axis=0)
    first(floats(2, n + 1)[:, 1:], 7)
    first(floats(2, 3, n), 7)
for dtype in np.float16, np.float64, np.int64, np.int16:
    first(ints(3, 9001, dtype=dtype) if dtype != np.float16 else floats(3, 9001, dtype=dtype), 99)
first(rng.permutation(20_000).astype(np.uint64) << np.uint64(40), 1536, "smallest")
first(ints(2, 9001, dtype=np.int8), 99)
first(floats(2, 9001), 3073)
x = floats(2, 9001)
x[:, 50:8950] = np.nan  # last, whichever way
x[0, :9] = [0.0, -0.0, 0.0, np.inf, -np.inf, -0.0, 1e-45, -1e-45, 0.0]
for mode in "largest", "smallest":
    for k in 90, 101, 200:
        values, indices = map(np.asarray, dv.top_k(on_device(x), k, mode=mode))
        wanted = np.array([np.lexsort((np.arange(9001), -y if mode == "largest" else y)) for y in x])[:, :k]
        same(indices, wanted, mode, k)
        same(values, np.take_along_axis(x, wanted, 1), mode, k)
""")


def test_reductions(run):
    """By lanes of a warp, a block, or in parts; packed or not; along any axis, or columns of threads."""
    run("""
for n in lengths:
    for x in (ints(3, n), ints(n, 3).T, ints(n, 40).T, ints(3, n, dtype=np.int8), ints(3, n + 1)[:, 1:]):
        y = on_device(x)
        same(dv.sum(y, axis=1, dtype=dv.int32), x.sum(1, dtype=np.int32), n, x.strides)
        same(dv.max(y, axis=1), x.max(1), n, x.strides)
        same(dv.argmin(y, axis=1), x.argmin(1), n, x.strides)
    x = floats(5, n)
    near(dv.mean(on_device(x), axis=1), x.astype(np.float64).mean(1), n)
x = ints(6, 5, 40, 7)
for axes in ((0, 2), (1, 3), (0, 1, 2, 3), (3,), (0,)):
    same(dv.sum(on_device(x), axis=axes), x.sum(axes, dtype=np.int32), axes)
x = ints(300_001)
same(dv.argmax(on_device(x)), x.argmax())
""")


def test_contiguous_and_strided_rows_give_the_same_bits(run):
    """The order of a sum is that of the shape, not of the address."""
    run("""
for n in (1000, 4096, 16384):
    aligned = floats(n)
    shifted = on_device(np.concatenate([[np.float32(0)], aligned]))[1:]
    for op in (dv.sum, dv.cumulative_sum, dv.nn.softmax):
        same(op(shifted), np.asarray(op(on_device(aligned))), op.__name__, n)
""")


def test_cumulative_sums(run):
    """By lanes, blocks, parts, or a thread each; with an initial element, which takes the alignment away."""
    run("""
for n in lengths:
    for x in (ints(2, n), ints(n, 2).T, ints(n, 20).T, ints(2, n + 1)[:, 1:]):
        expected = x.cumsum(1, dtype=np.int32)
        same(dv.cumulative_sum(on_device(x), axis=1), expected, n, x.strides)
        got = np.asarray(dv.cumulative_sum(on_device(x), axis=1, include_initial=True))
        same(got[:, 1:], expected, n, x.strides), same(got[:, 0], [0] * len(x))
    x = floats(n)
    near(dv.cumulative_sum(on_device(x)), x.astype(np.float64).cumsum(), n, tolerance=1e-4)
""")


def test_softmax_and_norms(run):
    """In registers, packed or not, or in two passes; along an axis in the middle."""
    run("""
def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)
def norm(x):
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5)
for n in lengths:
    for x in (floats(3, n), floats(3, n + 1)[:, 1:], floats(n, 3).T, floats(n, 18).T):
        wide = x.astype(np.float64)
        near(dv.nn.softmax(on_device(x), axis=1), softmax(wide, 1), n, x.strides)
        near(dv.nn.log_softmax(on_device(x), axis=1), np.log(softmax(wide, 1)), n, x.strides, tolerance=1e-5)
    for dtype in (np.float16, np.float64):
        x = floats(3, n, dtype=dtype)
        got = np.asarray(dv.nn.softmax(on_device(x), axis=1)).astype(np.float64)
        near(got, softmax(x.astype(np.float64), 1), n, dtype, tolerance=1e-3 if dtype == np.float16 else 1e-14)
    x, weight, bias = floats(3, n), floats(n), floats(n)
    wide = x.astype(np.float64)
    near(dv.nn.layer_norm(on_device(x), n, on_device(weight), on_device(bias)), norm(wide) * weight + bias, n,
         tolerance=2e-5)
    root = wide / np.sqrt((wide * wide).mean(-1, keepdims=True) + 1e-5)
    near(dv.nn.rms_norm(on_device(x), n, on_device(weight), eps=1e-5), root * weight, n, tolerance=1e-5)
""")


def test_sorts(run):
    """By a warp, by a block, in parts; stable: few different values."""
    run("""
def check(x):
    y, axis = on_device(x), -1
    same(dv.argsort(y, axis=1), x.argsort(1, kind="stable"), x.shape, x.dtype)
    same(dv.sort(y, axis=1), np.sort(x, 1), x.shape, x.dtype)
for n in lengths:
    check(ints(2, n) // 30)
    check(ints(2, n, dtype=np.int8) // 30)
for n in (100, 3000, 9000):
    check(ints(2, n, dtype=np.int64) << 40), check(floats(2, n)), check(ints(2, n, dtype=np.int16))
    check(ints(n, 3).T)
    x = floats(n)
    same(dv.sort(on_device(x), descending=True), np.sort(x)[::-1])
x = ints(70_000) // 50
same(dv.argsort(on_device(x), descending=True), (-x).argsort(kind="stable"))
x = np.where(rng.random(9000) < 0.3, np.float32("nan"), floats(9000))
same(dv.argsort(on_device(x)), x.argsort(kind="stable"))
""")


def test_slices_by_index(run):
    """Slices of any width, which are moved in the widest elements that they and their addresses allow."""
    run("""
for dtype in (np.int8, np.int16, np.int32, np.int64):
    for width in (1, 2, 3, 8, 16, 33, 64, 1000):
        x, index = ints(50, width, dtype=dtype), rng.integers(-50, 50, 70)
        same(dv.take(on_device(x), on_device(index), axis=0), x[index], dtype, width)
        same(dv.take(on_device(ints(51, width, dtype=dtype))[1:], on_device(index), axis=0).shape, (70, width))
        rows, new = rng.permutation(50)[:20], ints(20, width, dtype=dtype)
        expected = x.copy()
        expected[rows] = new
        same(scatter(on_device(x), on_device(rows), on_device(new), axis=0), expected, dtype, width)
        expected[rows] = 7
        same(scatter(on_device(x), on_device(rows), dv.asarray(7, dtype=on_device(x).dtype), axis=0), expected)
""")


def test_transposes(run):
    """Elements of all sizes, edges of tiles that are not whole, other axes around them."""
    run("""
for dtype in (np.int8, np.int16, np.float32, np.int64):
    for shape in ((16, 16), (17, 100), (64, 64), (65, 31), (200, 16)):
        x = ints(*shape, dtype=dtype)
        same(dv.asarray(on_device(x).T, copy=True), x.T, dtype, shape)
    x = ints(3, 40, 5, 70, dtype=dtype)
    for axes in ((0, 3, 2, 1), (3, 2, 1, 0), (2, 3, 0, 1)):
        same(dv.asarray(dv.permute_dims(on_device(x), axes), copy=True), x.transpose(axes), dtype, axes)
""")
