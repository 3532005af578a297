"""Gradients of convolution and pooling, over any number of spatial axes.

Throughout, `grad` is the gradient of some loss by the forward op's result; results are those by its operands.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from .. import dtypes as dt
from ..declare import Ints, Tensor, op
from ..lazy_numpy import np
from ..samples import Sample, draw, given, sample
from .logic import isnan
from .primitives import astype, divide, dot_scale, equal, full, iota, matmul, max_, where
from .reduction import argmax
from .transposed import add_windows, spread_sizes, transposed_product
from .views import broadcast_to, expand_dims, matrix_transpose, permute_dims, reshape, sliding_window
from .window import _padded, _windows, counts, each

# ---- oracles -----------------------------------------------------------------------------------------------------


def _taps(taps, places, stride, dilation):
    """Each tap, and the part of a padded array that it sees."""
    for tap in np.ndindex(*taps):
        axes = zip(tap, dilation, places, stride, strict=True)
        yield tap, (..., *(slice(t * d, t * d + (m - 1) * s + 1, s) for t, d, m, s in axes))


def _padded_zeros(shape, padding):
    return np.zeros((*shape[:2], *(n + 2 * p for n, p in zip(shape[2:], padding, strict=True))))


def _without(padded, shape, padding):
    return padded[(..., *(slice(p, p + n) for n, p in zip(shape[2:], padding, strict=True)))]


def _conv_grad_input(weight, grad, input_size, stride, padding, dilation, groups):
    n = weight.ndim - 2
    stride, padding, dilation = each(stride, n), each(padding, n), each(dilation, n)
    out = _padded_zeros(input_size, padding)
    for tap, seen in _taps(weight.shape[2:], grad.shape[2:], stride, dilation):
        parts = zip(np.split(grad, groups, 1), np.split(weight[(..., *tap)], groups, 0), strict=True)
        out[seen] += np.concatenate([np.einsum("no...,oc->nc...", g, w) for g, w in parts], 1)
    return _without(out, input_size, padding)


def _conv_grad_input_scale(weight, grad, input_size, stride, padding, dilation, groups, like):
    size = _conv_grad_input(np.abs(weight), np.abs(grad), input_size, stride, padding, dilation, groups)
    return dot_scale(size, math.prod(weight.shape[2:]) * (weight.shape[0] // groups), like)


def _conv_grad_weight(x, grad, weight_size, stride, padding, dilation, groups):
    n = x.ndim - 2
    windows = _windows(x, weight_size[2:], stride, padding, dilation, 0)
    parts = zip(np.split(windows, groups, 1), np.split(grad, groups, 1), strict=True)
    places, taps = "abd"[:n], "xyz"[:n]
    return np.concatenate([np.einsum(f"nc{places}{taps},no{places}->oc{taps}", w, g) for w, g in parts], 0)


def _conv_grad_weight_scale(x, grad, weight_size, stride, padding, dilation, groups, like):
    size = _conv_grad_weight(np.abs(x), np.abs(grad), weight_size, stride, padding, dilation, groups)
    return dot_scale(size, grad.shape[0] * math.prod(grad.shape[2:]), like)


def _max_pool_grad(x, grad, kernel_size, stride, padding, dilation):
    n = x.ndim - 2
    kernel, padding, dilation = each(kernel_size, n), each(padding, n), each(dilation, n)
    stride = kernel if stride is None else each(stride, n)
    out, padded = _padded_zeros(x.shape, padding), _padded_zeros(x.shape, padding) > 0
    _without(padded, x.shape, padding)[...] = True
    values = np.full(padded.shape, -np.inf)
    _without(values, x.shape, padding)[...] = x
    best, at = np.full(grad.shape, np.nan), np.full(grad.shape, -1)
    for i, (_, seen) in enumerate(_taps(kernel, grad.shape[2:], stride, dilation)):
        v = values[seen]
        wins = padded[seen] & ((at < 0) | (v > best) | (np.isnan(v) & ~np.isnan(best)))
        best, at = np.where(wins, v, best), np.where(wins, i, at)
    for i, (_, seen) in enumerate(_taps(kernel, grad.shape[2:], stride, dilation)):
        out[seen] += np.where(at == i, grad, 0)
    return _without(out, x.shape, padding)


def _avg_pool_grad(grad, input_size, kernel_size, stride, padding, count_include_pad):
    n = grad.ndim - 2
    kernel, padding = each(kernel_size, n), each(padding, n)
    stride = kernel if stride is None else each(stride, n)
    ones = _windows(np.ones((1, 1, *input_size[2:])), kernel, stride, padding, 1, int(count_include_pad))
    share = grad / np.sum(ones, tuple(range(2 + n, 2 + 2 * n)))
    out = _padded_zeros(input_size, padding)
    for _, seen in _taps(kernel, grad.shape[2:], stride, [1] * n):
        out[seen] += share
    return _without(out, input_size, padding)


# ---- convolution -------------------------------------------------------------------------------------------------

# name, x, weight, grad and how: of one to three spatial axes
_CONVOLUTIONS = (
    ("plain", (2, 4, 9, 8), (6, 4, 3, 2), (2, 6, 7, 7), {}),
    ("stride", (2, 4, 9, 8), (6, 4, 3, 2), (2, 6, 4, 4), {"stride": 2}),
    ("padding", (2, 4, 9, 8), (6, 4, 3, 2), (2, 6, 11, 9), {"padding": (2, 1)}),
    ("stride_padding", (2, 4, 9, 8), (6, 4, 3, 2), (2, 6, 3, 3), {"stride": (4, 3), "padding": (1, 1)}),
    ("dilation", (2, 4, 9, 8), (6, 4, 3, 2), (2, 6, 5, 6), {"dilation": 2}),
    ("groups", (2, 4, 9, 8), (6, 2, 3, 2), (2, 6, 7, 7), {"groups": 2}),
    ("depthwise", (2, 4, 9, 8), (4, 1, 3, 2), (2, 4, 5, 9), {"stride": (2, 1), "padding": 1, "groups": 4}),
    ("pointwise", (2, 4, 9, 8), (6, 4, 1, 1), (2, 6, 9, 8), {}),
    ("signals", (2, 4, 9), (6, 4, 3), (2, 6, 5), {"stride": 2, "padding": 1}),
    ("volumes", (1, 2, 5, 4, 3), (3, 2, 2, 2, 2), (1, 3, 3, 3, 2), {"stride": (2, 1, 1), "padding": (1, 0, 0)}),
    ("no_batch", (0, 4, 9, 8), (6, 4, 3, 2), (0, 6, 7, 7), {}),
)


def _conv_grad_input_samples() -> Iterator[Sample]:
    for name, x, weight, grad, how in _CONVOLUTIONS:
        yield sample(name, draw(*weight), draw(*grad), x, **how)
    weight, grad = draw(6, 4, 3, 2), draw(2, 6, 7, 7)
    yield sample("other_input", weight, grad, (2, 4, 11, 8), error=ValueError)
    yield sample("channels", weight, grad, (2, 3, 9, 8), error=ValueError)
    yield sample("filters", weight, draw(2, 5, 7, 7), (2, 4, 9, 8), error=ValueError)
    yield sample("rank", weight, grad, (4, 9, 8), error=ValueError)
    yield sample("negative_size", weight, grad, (-2, 4, 9, 8), error=ValueError)
    yield sample("matrices", draw(6, 4), draw(2, 6), (2, 4), error=ValueError)


def _conv_grad_weight_samples() -> Iterator[Sample]:
    for name, x, weight, grad, how in _CONVOLUTIONS:
        yield sample(name, draw(*x), draw(*grad), weight, **how)
    x, grad = draw(2, 4, 9, 8), draw(2, 6, 7, 7)
    yield sample("other_weight", x, grad, (6, 4, 2, 2), error=ValueError)
    yield sample("channels", x, grad, (6, 3, 3, 2), error=ValueError)
    yield sample("filters", x, grad, (5, 4, 3, 2), error=ValueError)
    yield sample("rank", x, grad, (6, 4, 3), error=ValueError)
    yield sample("no_taps", x, grad, (6, 4, 0, 2), error=ValueError)


CONV = {"dtype": "float", "autocast": "lower", "space": "nn", "tier": "extended", "tol": 4}


@op(
    **CONV,
    shape="conv_grad_input",
    reference=_conv_grad_input,
    scale=_conv_grad_input_scale,
    samples=_conv_grad_input_samples,
)
def conv_grad_input(
    weight: Tensor,
    grad: Tensor,
    input_size: Ints,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv1d, conv2d or conv3d by x, which has the shape input_size."""
    places, taps = grad.shape[2:], weight.shape[2:]
    least = spread_sizes(places, taps, stride, padding, (0,) * len(taps), dilation)
    more = tuple(size - few for size, few in zip(input_size[2:], least, strict=True))
    return transposed_product(grad, weight, None, stride, padding, more, groups, dilation)


@op(
    **CONV,
    shape="conv_grad_weight",
    reference=_conv_grad_weight,
    scale=_conv_grad_weight_scale,
    samples=_conv_grad_weight_samples,
)
def conv_grad_weight(
    x: Tensor,
    grad: Tensor,
    weight_size: Ints,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv1d, conv2d or conv3d by weight, which has the shape weight_size.

    That by the bias is grad's sum over all axes but 1.
    """
    n, batch, filters = x.ndim - 2, x.shape[0], weight_size[0]
    windows = sliding_window(_padded(x, padding, 0), weight_size[2:], stride=stride, dilation=dilation)
    order = (1, *range(2 + n, 2 + 2 * n), 0, *range(2, 2 + n))
    terms, places = math.prod(weight_size[1:]), batch * math.prod(grad.shape[2:])
    columns = reshape(permute_dims(windows, order), (groups, terms, places))
    rows = reshape(permute_dims(grad, (1, 0, *range(2, 2 + n))), (groups, filters // groups, places))
    return reshape(matmul(rows, matrix_transpose(columns)), weight_size)


# ---- pooling -----------------------------------------------------------------------------------------------------


def _pool_samples(of_largest: bool) -> Iterator[Sample]:
    def images(*places: int) -> tuple:
        shape = (2, 3, *(9, 8, 7)[: len(places)])
        x, grad = draw(*shape), draw(2, 3, *places)
        return (x, grad) if of_largest else (grad, shape)

    yield sample("plain", *images(4, 4), 2)
    yield sample("stride", *images(4, 6), 3, stride=(2, 1))
    yield sample("padding", *images(5, 4), 3, stride=2, padding=1)
    yield sample("gaps", *images(3, 2), 2, stride=(3, 4))
    yield sample("kernel", *images(3, 4), (3, 2))
    yield sample("signals", *images(4), 3, stride=2)
    yield sample("volumes", *images(3, 2, 2), (3, 4, 2), stride=(3, 3, 3))
    yield sample("no_batch", *((draw(0, 3, 4), draw(0, 3, 2)) if of_largest else (draw(0, 3, 2), (0, 3, 4))), 2)
    yield sample("places", *images(4, 3), 2, error=ValueError)
    yield sample("padding_too_large", *images(4, 4), 2, padding=2, error=ValueError)


def _max_pool_grad_samples() -> Iterator[Sample]:
    yield from _pool_samples(True)
    x = draw(2, 3, 9, 8)
    yield sample("dilation", x, draw(2, 3, 5, 4), 3, stride=1, dilation=2)
    yield sample("ties", given((1.0, 2.0, 2.0, 1.0) * 108, 2, 3, 9, 8), draw(2, 3, 4, 6), 3, stride=(2, 1))
    yield sample("any_value", draw(2, 3, 40, 40, low=None), draw(2, 3, 20, 20), 3, stride=2, padding=1)
    yield sample("least", given((-math.inf,) * 8, 1, 2, 4), draw(1, 2, 2), 3, stride=2, padding=1)
    yield sample("grad_rank", x, draw(3, 4, 4), 2, error=ValueError)


def _avg_pool_grad_samples() -> Iterator[Sample]:
    yield from _pool_samples(False)
    how = {"stride": 2, "padding": 1}
    yield sample("without_pad", draw(2, 3, 5, 4), (2, 3, 9, 8), 3, count_include_pad=False, **how)
    yield sample("channels", draw(2, 3, 4, 4), (2, 4, 9, 8), 2, error=ValueError)
    yield sample("rank", draw(2, 3, 4, 4), (3, 9, 8), 2, error=ValueError)


POOL = {"dtype": "float", "space": "nn", "tier": "extended", "tol": 4}


def _interleaved(columns: Tensor, n: int) -> Tensor:
    """(N, C, places, taps) as (N * C, taps and places of each axis in turn)."""
    order = (0, 1, *(axis for i in range(n) for axis in (2 + n + i, 2 + i)))
    columns = permute_dims(columns, order)
    return reshape(columns, (columns.shape[0] * columns.shape[1], *columns.shape[2:]))


@op(
    **POOL,
    shape="max_pool_grad",
    reference=_max_pool_grad,
    scale=lambda x, grad, **how: _max_pool_grad(x, np.abs(grad), **how),
    samples=_max_pool_grad_samples,
)
def max_pool_grad(
    x: Tensor,
    grad: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
) -> Tensor:
    """The gradient of max_pool1d, max_pool2d or max_pool3d by x: each window's goes to its first largest element.

    NaN counts as the largest.
    """
    n, taps = x.ndim - 2, math.prod(kernel_size)
    how = {"stride": stride, "dilation": dilation}
    windows = sliding_window(_padded(x, padding, -math.inf), kernel_size, **how)
    places = windows.shape[: 2 + n]
    rows = reshape(windows, (*places, taps))
    if any(padding):  # which is never the largest
        inside = sliding_window(_padded(full(x.shape, True, dtype=dt.bool_), padding, False), kernel_size, **how)
        largest = equal(rows, max_(rows, axis=(2 + n,), keepdims=True)) | isnan(rows)
        rows = astype(largest & reshape(inside, (*places, taps)), dt.int32)
    hit = equal(argmax(rows, axis=2 + n, keepdims=True), iota(taps, dt.int64))
    columns = reshape(where(hit, expand_dims(grad, axis=2 + n), 0.0), windows.shape)
    return reshape(add_windows(_interleaved(columns, n), stride, padding, dilation, x.shape[2:]), x.shape)


@op(
    **POOL,
    shape="avg_pool_grad",
    reference=_avg_pool_grad,
    scale=lambda grad, **how: _avg_pool_grad(np.abs(grad), **how),
    samples=_avg_pool_grad_samples,
)
def avg_pool_grad(
    grad: Tensor,
    input_size: Ints,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    *,
    count_include_pad: bool = True,
) -> Tensor:
    """The gradient of avg_pool1d, avg_pool2d or avg_pool3d by x, which has the shape input_size."""
    n, sizes = grad.ndim - 2, input_size[2:]
    share = divide(grad, counts(sizes, kernel_size, stride, padding, count_include_pad, grad.dtype))
    columns = broadcast_to(reshape(share, (*grad.shape, *(1,) * n)), (*grad.shape, *kernel_size))
    return reshape(add_windows(_interleaved(columns, n), stride, padding, (1,) * n, sizes), input_size)
