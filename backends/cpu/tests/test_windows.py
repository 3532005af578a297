"""conv2d, conv1d and pooling."""

import ctypes
import mmap

import harness
import numpy as np
import pytest
from closeness import assert_close
from harness import FLOATS, INTEGERS
from test_matmul import slack

rng = np.random.default_rng(6)
names = {"ids": lambda d: d.name}


def draw(shape, dtype) -> np.ndarray:
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    return rng.uniform(-2, 2, shape).astype(dtype)


def windows(x, kernel, stride, padding, dilation, fill):
    """(N, C, out..., kernel...)."""
    n = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)], constant_values=fill)
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    w = np.lib.stride_tricks.sliding_window_view(x, reach, tuple(range(2, 2 + n)))
    steps = [slice(None), slice(None), *(slice(None, None, s) for s in stride)]
    return w[(*steps, *(slice(None, None, d) for d in dilation))]


def convolve(x, weight, stride, padding, dilation, groups):
    n = x.ndim - 2
    w = windows(x, weight.shape[2:], stride, padding, dilation, 0)
    axes = [1, *range(2 + n, 2 + 2 * n)], [1, *range(2, 2 + n)]
    parts = zip(np.split(w, groups, 1), np.split(weight, groups, 0), strict=True)
    return np.concatenate([np.moveaxis(np.tensordot(a, b, axes), -1, 1) for a, b in parts], 1)


def check(cpu, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, pack=None):
    n = x.ndim - 2
    how = [(v,) * n if isinstance(v, int) else v for v in (stride, padding, dilation)]
    exact = x.dtype in INTEGERS
    wide = x.dtype if exact else np.float64
    with np.errstate(over="ignore"):
        want = convolve(x.astype(wide), weight.astype(wide), *how, groups)
    got = cpu.run(f"conv{n}d", x, weight, bias, out=x.dtype, shape=want.shape, attrs=[*how, groups], pack=pack)
    if exact:
        assert (got == (want if bias is None else want + bias.reshape(-1, *(1,) * n))).all()
        return
    scale = convolve(np.abs(x.astype(wide)), np.abs(weight.astype(wide)), *how, groups)
    if bias is not None:
        b = bias.astype(wide).reshape(-1, *(1,) * n)
        want, scale = want + b, scale + np.abs(b)
    assert_close(got, want, 3, scale * slack(x.dtype, weight[0].size))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], **names)
def test_no_channels(cpu, dtype):
    x, w = draw((2, 0, 9, 8), dtype), draw((6, 0, 3, 2), dtype)
    check(cpu, x, w)
    check(cpu, x, w, draw((6,), dtype))
    check(cpu, x, w, draw((6,), dtype), groups=2)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], **names)
def test_conv2d(cpu, dtype):
    x, w = draw((2, 4, 9, 8), dtype), draw((6, 4, 3, 2), dtype)
    check(cpu, x, w)
    check(cpu, x, w, draw(6, dtype))
    check(cpu, x, w, stride=2)
    check(cpu, x, w, padding=(2, 1))
    check(cpu, x, w, dilation=2, stride=(1, 2), padding=3)
    check(cpu, x, draw((6, 2, 3, 2), dtype), draw(6, dtype), groups=2)
    check(cpu, x, draw((4, 1, 3, 2), dtype), draw(4, dtype), stride=(2, 1), padding=1, groups=4)
    check(cpu, x, draw((8, 1, 3, 2), dtype), groups=4)
    check(cpu, x, draw((6, 4, 1, 1), dtype))
    check(cpu, np.asfortranarray(x), w, padding=1)


@pytest.mark.parametrize("dtype", [np.dtype("f4"), harness.bfloat16], **names)
def test_bigger_convolutions(cpu, dtype):
    check(cpu, draw((1, 64, 20, 20), dtype), draw((70, 64, 3, 3), dtype), draw(70, dtype), padding=1)
    check(cpu, draw((1, 3, 64, 50), dtype), draw((16, 3, 7, 7), dtype), stride=2, padding=3)
    check(cpu, draw((2, 200, 14, 14), dtype), draw((300, 200, 1, 1), dtype))
    check(cpu, draw((1, 32, 40, 33), dtype), draw((32, 1, 3, 3), dtype), padding=1, groups=32)
    check(cpu, draw((1, 2, 40, 40), dtype), draw((3, 2, 30, 30), dtype), padding=2)


@pytest.mark.parametrize("dtype", FLOATS, **names)
def test_blocks_that_share_planes(cpu, dtype):
    """More outputs than a block has, of several images and groups; rows of whole vectors, and others."""
    for width in (13, 32):
        x, w = draw((2, 24, 12, width), dtype), draw((150, 24, 3, 3), dtype)
        check(cpu, x, w, draw(150, dtype), padding=1)
        check(cpu, x, draw((150, 12, 3, 3), dtype), padding=1, groups=2)
        check(cpu, x, draw((10, 24, 3, 4), dtype), draw(10, dtype), stride=2, padding=(1, 2))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], **names)
def test_vectors_of_outputs(cpu, dtype):
    """Short rows and many outputs, some of which fill no vector; runs of taps, one of them of part of a channel."""
    x = draw((2, 24, 9, 7), dtype)
    for outputs in (16, 45, 72):
        w, bias = draw((outputs, 24, 3, 3), dtype), draw(outputs, dtype)
        check(cpu, x, w, padding=1)
        check(cpu, x, w, bias, padding=1)
        check(cpu, x, w, bias, stride=2, padding=(2, 1))
        check(cpu, x, w, dilation=2, stride=(1, 2), padding=3)
        check(cpu, np.asfortranarray(x), w, bias, padding=1)
    check(cpu, x, draw((64, 12, 3, 2), dtype), draw(64, dtype), padding=1, groups=2)
    check(cpu, draw((1, 2, 17, 18), dtype), draw((33, 2, 16, 17), dtype), draw(33, dtype), padding=1)
    check(cpu, draw((1, 40, 7, 7), dtype), draw((40, 40, 1, 1), dtype), draw(40, dtype))
    check(cpu, draw((1, 20, 21), dtype), draw((40, 20, 5), dtype), draw(40, dtype), padding=2)


@pytest.mark.parametrize("dtype", FLOATS, **names)
@pytest.mark.parametrize("sizes", [(64, 14, 96), (8, 33, 200), (24, 17, 3), (1, 9, 64)], ids=str)
def test_bits_do_not_depend_on_threads(cpu, monkeypatch, sizes, dtype):
    channels, width, outputs = sizes
    for stride in (1, 2) if harness.EMULATED else (1, 2) * 4:
        x, w, bias = (
            draw((1, channels, 31, width), dtype),
            draw((outputs, channels, 3, 3), dtype),
            draw(outputs, dtype),
        )
        shape, how = (1, outputs, 30 // stride + 1, (width - 1) // stride + 1), [(stride,) * 2, (1, 1), (1, 1), 1]
        seen = set()
        for threads in (1, 2, 5, 16):
            monkeypatch.setattr(cpu, "threads", threads)
            seen.add(cpu.run("conv2d", x, w, bias, out=dtype, shape=shape, attrs=how).tobytes())
        assert len(seen) == 1


@pytest.mark.parametrize("dtype", (*FLOATS, np.dtype("i4"), np.dtype("u8")), **names)
def test_windows_of_one_element(cpu, dtype):
    for shape in ((2, 20, 9, 7), (1, 400, 4, 8), (3, 33, 1, 5), (2, 9, 32, 32)):
        for outputs in (1, 2, 40, 150):
            x, w = draw(shape, dtype), draw((outputs, shape[1], 1, 1), dtype)
            check(cpu, x, w, draw(outputs, dtype))
            check(cpu, x, w, padding=1)
            check(cpu, x[:, :, :, 1:], w)
            check(cpu, np.asfortranarray(x), w, stride=(1, 2))


@pytest.mark.parametrize("sizes", [(3, 5, 7), (4, 16, 16), (1, 1, 33)])
@pytest.mark.parametrize("kernel", [1, 3])
def test_nothing_behind_x_is_read(cpu, kernel, sizes):
    """x ends at a page that cannot be read."""
    x = at_the_end_of_a_page(draw((1, *sizes), "f4"))
    for outputs in (5, 64):
        w = draw((outputs, sizes[0], kernel, kernel), "f4")
        check(cpu, x, w, draw(outputs, "f4"), padding=kernel // 2)


def at_the_end_of_a_page(x: np.ndarray) -> np.ndarray:
    page = mmap.PAGESIZE
    size = -(-x.nbytes // page) * page
    memory = mmap.mmap(-1, size + page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + size), ctypes.c_size_t(page), 0) == 0
    copy = np.frombuffer(memory, x.dtype, x.size, size - x.nbytes).reshape(x.shape)
    copy[...] = x
    return copy


@pytest.mark.parametrize("dtype", FLOATS, **names)
def test_conv1d(cpu, dtype):
    x = draw((2, 4, 50), dtype)
    check(cpu, x, draw((6, 4, 3), dtype), draw(6, dtype))
    check(cpu, x, draw((6, 4, 3), dtype), stride=2, padding=1, dilation=3)
    check(cpu, x, draw((4, 1, 5), dtype), padding=2, groups=4)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], **names)
def test_pools(cpu, dtype):
    for shape in ((2, 3, 9, 8), (1, 2, 7, 149), (2, 3, 40)):  # 149: more than two vectors of int8, and a rest
        n = len(shape) - 2
        x = draw(shape, dtype)
        for kernel, stride, padding, dilation in [
            (2, 2, 0, 1),
            (3, 2, 1, 1),
            (3, 1, 0, 2),
            (1, 1, 0, 1),
            (3, 3, 1, 1),
        ]:
            how = [(v,) * n for v in (kernel, stride, padding, dilation)]
            least = -np.inf if dtype in FLOATS else np.iinfo(dtype).min
            axes = tuple(range(2 + n, 2 + 2 * n))
            want = windows(x, *how, least).max(axes)
            for t in (x, np.asfortranarray(x)):
                assert (cpu.run(f"max_pool{n}d", t, out=dtype, shape=want.shape, attrs=how) == want).all()
            if dtype not in FLOATS or dilation > 1:
                continue
            wide = x.astype(np.longdouble)  # float64 itself rounds the sum of a window by as much
            total, scale = (windows(t, *how, 0).sum(axes) for t in (wide, np.abs(wide)))
            for with_padding in (True, False):
                count = windows(np.ones(shape), *how, int(with_padding)).sum(axes)
                attrs = [*how[:3], with_padding]
                got = cpu.run(f"avg_pool{n}d", x, out=dtype, shape=want.shape, attrs=attrs)
                assert_close(got, total / count, 2, scale / count)


@pytest.mark.parametrize("dtype", FLOATS, **names)
@pytest.mark.parametrize("width", [6, 75])
def test_nan_wins_in_a_pool(cpu, width, dtype):
    """In every place of a window, before and after larger numbers."""
    x = draw((1, 1, 6, width), dtype)
    x[0, 0, 2, 3] = x[0, 0, 5, 0] = x[0, 0, 1, width - 2] = np.nan
    for stride in (1, 2):
        how = [(3, 3), (stride, stride), (1, 1), (1, 1)]
        want = windows(x.astype(np.float64), *how, -np.inf).max((4, 5))
        assert 0 < np.isnan(want).sum() < want.size
        got = cpu.run("max_pool2d", x, out=dtype, shape=want.shape, attrs=how)
        np.testing.assert_array_equal(got.astype(np.float64), want)


@pytest.mark.parametrize("dtype", FLOATS, **names)
def test_gradients_by_the_weight_for_rows_of_any_width(cpu, dtype):
    """None of what an earlier call left in memory is in them."""
    for kernel, width in [(k, n) for k in (3, 5) for n in range(1, 41)]:
        how = [(4, 3, kernel), (1,), (kernel // 2,), (1,), 1]
        x, grad = draw((2, 3, width), dtype), draw((2, 4, width), dtype)
        large = np.full((2, 4, 100), 1e4, dtype)
        cpu.run("conv_grad_weight", large[:, :3].copy(), large, out=dtype, shape=how[0], attrs=how)
        got = cpu.run("conv_grad_weight", x, grad, out=dtype, shape=how[0], attrs=how)
        seen, wide = windows(x.astype("f8"), (kernel,), (1,), (kernel // 2,), (1,), 0), grad.astype("f8")
        scale = np.einsum("nclk,nol->ock", np.abs(seen), np.abs(wide))
        assert_close(got, np.einsum("nclk,nol->ock", seen, wide), 3, scale)
