"""Convolution and pooling: a product or a reduction over a view of all windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from ..declare import DType, Ints, Tensor, op
from ..lazy_numpy import np
from ..samples import Sample, draw, sample
from .movement import pad
from .primitives import add, divide, dot_scale, full, matmul, max_, sum_
from .views import expand_dims, permute_dims, reshape, sliding_window, squeeze

# ---- oracles -----------------------------------------------------------------------------------------------------


def each(value, n):
    """An int or sequence of ints for each of n axes."""
    value = [value] if isinstance(value, int) else list(value)
    return value * n if len(value) == 1 else value


def _windows(x, kernel, stride, padding, dilation, fill):
    """x's windows: (N, C, out..., kernel...)."""
    n = x.ndim - 2
    kernel, padding, dilation = each(kernel, n), each(padding, n), each(dilation, n)
    stride = kernel if stride is None else each(stride, n)
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)], constant_values=fill)
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    w = np.lib.stride_tricks.sliding_window_view(x, reach, tuple(range(2, 2 + n)))
    every = [slice(None, None, s) for s in stride]
    return w[(slice(None), slice(None), *every, *(slice(None, None, d) for d in dilation))]


def _conv(x, weight, bias, stride, padding, dilation, groups):
    n = x.ndim - 2
    w = _windows(x, weight.shape[2:], stride, padding, dilation, 0)
    parts = zip(np.split(w, groups, 1), np.split(weight, groups, 0), strict=True)
    rule = f"nc...{'xyz'[:n]},oc{'xyz'[:n]}->no..."  # not tensordot: its BLAS takes 0 * NaN for 0
    out = np.concatenate([np.einsum(rule, a, b) for a, b in parts], 1)
    return out if bias is None else out + np.reshape(bias, (-1, *(1,) * n))


def _conv_scale(x, weight, bias, stride, padding, dilation, groups, like):
    size = _conv(
        np.abs(x), np.abs(weight), bias if bias is None else np.abs(bias), stride, padding, dilation, groups
    )
    return dot_scale(size, math.prod(weight.shape[1:]), like)


def _pool_axes(x):
    n = x.ndim - 2
    return tuple(range(2 + n, 2 + 2 * n))


def _max_pool(x, kernel_size, stride, padding, dilation):
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    return np.max(_windows(x, kernel_size, stride, padding, dilation, least), _pool_axes(x))


def _avg_pool(x, kernel_size, stride, padding, count_include_pad):
    ones = np.full(x.shape, 1.0)
    total, n = (
        np.sum(_windows(v, kernel_size, stride, padding, 1, f), _pool_axes(x))
        for v, f in ((x, 0), (ones, int(count_include_pad)))
    )
    return total / n


# ---- decompositions ----------------------------------------------------------------------------------------------


def _padded(x: Tensor, padding: Ints, value: float) -> Tensor:
    if not any(padding):
        return x
    return pad(x, (0, 0, 0, 0, *(p for side in padding for p in (side, side))), constant_values=value)


def _conv_samples(n: int) -> Callable[[], Iterator[Sample]]:
    size, kernel = ((9, 8, 7)[:n], (3, 2, 2)[:n])

    def samples() -> Iterator[Sample]:
        x, w = draw(2, 4, *size), draw(6, 4, *kernel)
        yield sample("plain", x, w)
        yield sample("bias", x, w, draw(6))
        yield sample("stride", x, w, stride=2)
        yield sample("padding", x, w, padding=(2, 1, 1)[:n])
        yield sample("dilation", x, w, dilation=2)
        yield sample("groups", x, draw(6, 2, *kernel), draw(6), groups=2)
        yield sample("depthwise", x, draw(4, 1, *kernel), stride=(2, 1, 1)[:n], padding=1, groups=4)
        yield sample("pointwise", x, draw(6, 4, *(1,) * n))
        yield sample("no_batch", draw(0, 4, *size), w)
        yield sample("channels", x, draw(6, 3, *kernel), error=ValueError)
        yield sample("too_small", draw(1, 4, *(1,) * n), w, error=ValueError)
        yield sample("rank", draw(4, *size), w, error=ValueError)

    return samples


def _product(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Tensor:
    """The convolution over any number of spatial axes: a product with the matrix of all windows."""
    batch, o, n = x.shape[0], weight.shape[0], weight.ndim - 2
    windows = sliding_window(_padded(x, padding, 0), weight.shape[2:], stride=stride, dilation=dilation)
    places = windows.shape[2 : 2 + n]
    terms = math.prod(weight.shape[1:])  # of each sum
    order = (0, 1, *range(2 + n, 2 + 2 * n), *range(2, 2 + n))
    columns = reshape(permute_dims(windows, order), (batch, groups, terms, math.prod(places)))
    out = matmul(reshape(weight, (groups, o // groups, terms)), columns)
    out = reshape(out, (batch, o, *places))
    return out if bias is None else add(out, reshape(bias, (o, *(1,) * n)))


CONV = {
    "shape": "conv",
    "dtype": "promote",
    "autocast": "lower",
    "space": "nn",
    "tol": 3,
    "reference": _conv,
    "scale": _conv_scale,
}


@op(**CONV, tier="extended", samples=_conv_samples(2))
def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The cross-correlation of images x (N, C, H, W) with a weight (O, C / groups, kh, kw), plus bias (O,)."""
    return _product(x, weight, bias, stride, padding, dilation, groups)


@op(**CONV, samples=_conv_samples(1))
def conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The cross-correlation of signals x (N, C, L) with a weight (O, C / groups, k), plus bias (O,)."""
    y = conv2d(
        expand_dims(x, axis=2),
        expand_dims(weight, axis=2),
        bias,
        stride=(1, *stride),
        padding=(0, *padding),
        dilation=(1, *dilation),
        groups=groups,
    )
    return squeeze(y, (2,))


@op(**CONV, samples=_conv_samples(3))
def conv3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The cross-correlation of volumes x (N, C, D, H, W) with a weight (O, C / groups, kd, kh, kw), plus bias."""
    return _product(x, weight, bias, stride, padding, dilation, groups)


def _pool_samples(n: int, dilated: bool) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        x = draw(2, 3, *(9, 8, 7)[:n])
        yield sample("plain", x, 2)
        yield sample("stride", x, 3, stride=(2, 1, 2)[:n])
        yield sample("padding", x, 3, stride=2, padding=1)
        yield sample("kernel", x, (3, 2, 2)[:n])
        if dilated:
            yield sample("dilation", x, 3, stride=1, dilation=2)
            yield sample(
                "any_value",
                draw(2, 3, *((40, 40) if n < 3 else (12, 12, 12))[:n], low=None),
                3,
                stride=2,
                padding=1,
            )
        else:
            yield sample("without_pad", x, 3, stride=2, padding=1, count_include_pad=False)
        yield sample("too_small", draw(1, 1, *(1,) * n), 3, error=ValueError)
        yield sample("padding_too_large", x, 2, padding=2, error=ValueError)

    return samples


def _largest_of_windows(x: Tensor, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Tensor:
    least = float("-inf") if x.dtype.kind == "f" else int(x.dtype.min)
    windows = sliding_window(_padded(x, padding, least), kernel_size, stride=stride, dilation=dilation)
    return max_(windows, axis=tuple(range(x.ndim, windows.ndim)))


MAX_POOL = {"shape": "pool", "dtype": "same", "space": "nn", "reference": _max_pool}


@op(**MAX_POOL, tier="extended", samples=_pool_samples(2, dilated=True))
def max_pool2d(
    x: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1
) -> Tensor:
    """The largest of each window of x (N, C, H, W), NaN where there is one; padding never wins.

    stride is the kernel's size by default.
    """
    return _largest_of_windows(x, kernel_size, stride, padding, dilation)


@op(**MAX_POOL, samples=_pool_samples(1, dilated=True))
def max_pool1d(
    x: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1
) -> Tensor:
    """The largest of each window of x (N, C, L), NaN where there is one; padding never wins."""
    y = max_pool2d(expand_dims(x, axis=2), (1, *kernel_size), (1, *stride), (0, *padding), (1, *dilation))
    return squeeze(y, (2,))


@op(**MAX_POOL, samples=_pool_samples(3, dilated=True))
def max_pool3d(
    x: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1
) -> Tensor:
    """The largest of each window of x (N, C, D, H, W), NaN where there is one; padding never wins."""
    return _largest_of_windows(x, kernel_size, stride, padding, dilation)


AVG_POOL = {
    "shape": "pool",
    "dtype": "float",
    "space": "nn",
    "tol": 3,
    "reference": _avg_pool,
    "scale": lambda x, **how: _avg_pool(np.abs(x), **how) * 1.5,  # as a sum of nine terms
}


def _window_sum(x: Tensor, kernel: Ints, stride: Ints) -> Tensor:
    windows = sliding_window(x, kernel, stride=stride, dilation=(1,) * len(kernel))
    return sum_(windows, axis=tuple(range(x.ndim, windows.ndim)))


def counts(
    sizes: tuple[int, ...], kernel: Ints, stride: Ints, padding: Ints, count_include_pad: bool, dtype: DType
) -> Tensor | int:
    """How many elements each window of an array of these spatial sizes takes the mean of."""
    if count_include_pad or not any(padding):
        return math.prod(kernel)
    return _window_sum(_padded(full((1, 1, *sizes), 1, dtype=dtype), padding, 0), kernel, stride)


def _mean_of_windows(x: Tensor, kernel: Ints, stride: Ints, padding: Ints, count_include_pad: bool) -> Tensor:
    total = _window_sum(_padded(x, padding, 0), kernel, stride)
    return divide(total, counts(x.shape[2:], kernel, stride, padding, count_include_pad, x.dtype))


@op(**AVG_POOL, tier="extended", samples=_pool_samples(2, dilated=False))
def avg_pool2d(
    x: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, *, count_include_pad: bool = True
) -> Tensor:
    """The mean of each window of x (N, C, H, W); count_include_pad=False divides by what is not padding."""
    return _mean_of_windows(x, kernel_size, stride, padding, count_include_pad)


@op(**AVG_POOL, samples=_pool_samples(1, dilated=False))
def avg_pool1d(
    x: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, *, count_include_pad: bool = True
) -> Tensor:
    """The mean of each window of x (N, C, L); count_include_pad=False divides by what is not padding."""
    y = avg_pool2d(
        expand_dims(x, axis=2), (1, *kernel_size), (1, *stride), (0, *padding), count_include_pad=count_include_pad
    )
    return squeeze(y, (2,))


@op(**AVG_POOL | {"tol": 5}, samples=_pool_samples(3, dilated=False))
def avg_pool3d(
    x: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, *, count_include_pad: bool = True
) -> Tensor:
    """The mean of each window of x (N, C, D, H, W); count_include_pad=False divides by what is not padding."""
    return _mean_of_windows(x, kernel_size, stride, padding, count_include_pad)
