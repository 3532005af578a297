"""Transposed convolution: a product, and the sum of its windows where they overlap."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from ..declare import Ints, Tensor, op
from ..lazy_numpy import np
from ..number import largest
from ..samples import Sample, draw, sample
from .movement import pad
from .primitives import add, dot_scale, full, matmul, sum_
from .views import matrix_transpose, permute_dims, reshape, set_slice
from .window import each


def spread_sizes(n, taps, stride, padding, output_padding, dilation):
    return [
        (a - 1) * s - 2 * p + d * (k - 1) + o + 1
        for a, k, s, p, o, d in zip(n, taps, stride, padding, output_padding, dilation, strict=True)
    ]


def _conv_transpose(x, weight, bias, stride, padding, output_padding, groups, dilation):
    n, taps, places = x.ndim - 2, weight.shape[2:], x.shape[2:]
    stride, padding, output_padding, dilation = (each(v, n) for v in (stride, padding, output_padding, dilation))
    sizes = spread_sizes(places, taps, stride, padding, output_padding, dilation)
    room = [size + 2 * p for size, p in zip(sizes, padding, strict=True)]
    out = np.zeros((x.shape[0], weight.shape[1] * groups, *room), np.result_type(x, weight))
    for tap in np.ndindex(*taps):
        at = (slice(t * d, t * d + (m - 1) * s + 1, s) for t, d, m, s in zip(tap, dilation, places, stride))
        parts = zip(np.split(x, groups, 1), np.split(weight[(..., *tap)], groups, 0), strict=True)
        out[(..., *at)] += np.concatenate([np.einsum("nc...,co->no...", a, b) for a, b in parts], 1)
    out = out[(..., *(slice(p, p + size) for p, size in zip(padding, sizes, strict=True)))]
    return out if bias is None else out + np.reshape(bias, (-1, *(1,) * n))


def _conv_transpose_scale(x, weight, bias, stride, padding, output_padding, groups, dilation, like):
    magnitudes = np.abs(x), np.abs(weight), bias if bias is None else np.abs(bias)
    size = _conv_transpose(*magnitudes, stride, padding, output_padding, groups, dilation)
    return dot_scale(size, math.prod(weight.shape[2:]) * (weight.shape[0] // groups), like)


def overlap_add(columns: Tensor, stride: int, padding: int, dilation: int, size: int) -> Tensor:
    """(outer, taps, places, inner) as (outer, size, inner): tap t of place i is added at i * stride + t * dilation.

    The result begins at `padding`. Taps stride apart fall on the same elements: they are rows, each one place to
    the right of the one before, which longer rows make of them, and one sum over the rows adds them.
    """
    outer, taps, places, inner = columns.shape
    if dilation > 1:
        spread = (outer, dilation * (taps - 1) + 1, places, inner)
        columns = set_slice(
            full(spread, 0, dtype=columns.dtype), columns, start=(0,) * 4, stop=spread, step=(1, dilation, 1, 1)
        )
        taps = spread[1]
    end = largest((places - 1) * stride + taps, padding + size)  # output_padding goes beyond the last tap
    rows = -(-(end - (places - 1) * stride) // stride)
    columns = pad(columns, (0, 0, 0, rows * stride - taps, 0, 0, 0, 0))
    columns = permute_dims(reshape(columns, (outer, rows, stride, places, inner)), (0, 1, 3, 2, 4))
    if rows == 1:
        out = reshape(columns, (outer, places * stride, inner))
    else:
        columns = reshape(columns, (outer, rows, places, stride * inner))
        longer = reshape(pad(columns, (0, 0, 0, 0, 0, rows, 0, 0)), (outer, rows * (places + rows), stride * inner))
        length = places + rows - 1
        shifted = reshape(longer[:, : rows * length], (outer, rows, length, stride * inner))
        out = reshape(sum_(shifted, axis=(1,), dtype=columns.dtype), (outer, length * stride, inner))
    return out[:, padding : padding + size]


def add_windows(columns: Tensor, stride: Ints, padding: Ints, dilation: Ints, sizes: tuple[int, ...]) -> Tensor:
    """(outer, taps and places of each axis in turn) as (outer, *sizes): overlap_add along each axis in turn."""
    outer, n = columns.shape[0], len(sizes)
    taps, places = columns.shape[1::2], columns.shape[2::2]
    for i in range(n):
        inner = math.prod(taps[i + 1 :]) * math.prod(places[i + 1 :])
        columns = reshape(columns, (outer, taps[i], places[i], inner))
        columns = overlap_add(columns, stride[i], padding[i], dilation[i], sizes[i])
        outer = outer * sizes[i]
    return columns


def transposed_product(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    groups: int,
    dilation: Ints,
) -> Tensor:
    n, batch, channels, filters = x.ndim - 2, x.shape[0], x.shape[1] // groups, weight.shape[1]
    taps, places = weight.shape[2:], x.shape[2:]
    w = matrix_transpose(reshape(weight, (groups, channels, filters * math.prod(taps))))
    columns = matmul(w, reshape(x, (batch, groups, channels, math.prod(places))))
    columns = reshape(columns, (batch * groups * filters, *taps, *places))
    columns = permute_dims(columns, (0, *(axis for i in range(n) for axis in (1 + i, 1 + n + i))))
    sizes = spread_sizes(places, taps, stride, padding, output_padding, dilation)
    columns = add_windows(columns, stride, padding, dilation, sizes)
    out = reshape(columns, (batch, groups * filters, *sizes))
    return out if bias is None else add(out, reshape(bias, (groups * filters, *(1,) * n)))


def _samples(n: int) -> Callable[[], Iterator[Sample]]:
    size, kernel = (5, 4, 3)[:n], (3, 2, 2)[:n]

    def samples() -> Iterator[Sample]:
        x, w = draw(2, 4, *size), draw(4, 6, *kernel)
        yield sample("plain", x, w)
        yield sample("bias", x, w, draw(6))
        yield sample("stride", x, w, stride=2)
        yield sample("doubles", x, draw(4, 3, *(2,) * n), draw(3), stride=2)
        yield sample("wide_stride", x, w, stride=(5, 1, 4)[:n])
        yield sample("padding", x, draw(4, 6, *(4,) * n), stride=2, padding=1)
        yield sample(
            "output_padding", x, w, stride=(3, 2, 2)[:n], padding=(1, 0, 1)[:n], output_padding=(2, 1, 0)[:n]
        )
        yield sample("dilation", x, w, stride=2, dilation=(3, 2, 1)[:n], output_padding=1)
        yield sample("groups", x, draw(4, 3, *kernel), draw(6), groups=2)
        yield sample("depthwise", x, draw(4, 1, *kernel), stride=2, groups=4)
        yield sample("no_batch", draw(0, 4, *size), w)
        yield sample("channels", x, draw(3, 6, *kernel), error=ValueError)
        yield sample("padding_too_large", draw(1, 4, *(1,) * n), w, padding=3, error=ValueError)
        yield sample("output_padding_too_large", x, w, stride=2, output_padding=2, error=ValueError)
        yield sample("rank", draw(4, *size), w, error=ValueError)

    return samples


TRANSPOSED = {
    "shape": "conv_transpose",
    "dtype": "promote",
    "autocast": "lower",
    "space": "nn",
    "tol": 4,
    "reference": _conv_transpose,
    "scale": _conv_transpose_scale,
}


@op(**TRANSPOSED, samples=_samples(1))
def conv_transpose1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of conv1d: signals x (N, C, L) spread by a weight (C, O / groups, k), plus bias (O,).

    padding is cut off both ends of the result, output_padding added behind it.
    """
    return transposed_product(x, weight, bias, stride, padding, output_padding, groups, dilation)


@op(**TRANSPOSED, samples=_samples(2))
def conv_transpose2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of conv2d: images x (N, C, H, W) spread by a weight (C, O / groups, kh, kw), plus bias (O,).

    padding is cut off both ends of each axis of the result, output_padding added behind it.
    """
    return transposed_product(x, weight, bias, stride, padding, output_padding, groups, dilation)


@op(**TRANSPOSED, samples=_samples(3))
def conv_transpose3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of conv3d: volumes x (N, C, D, H, W), a weight (C, O / groups, kd, kh, kw), plus bias (O,).

    padding is cut off both ends of each axis of the result, output_padding added behind it.
    """
    return transposed_product(x, weight, bias, stride, padding, output_padding, groups, dilation)
