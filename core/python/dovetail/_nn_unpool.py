"""Pools at random places, and the reverse of max_pool: functions of dovetail.nn."""

from __future__ import annotations

import math

from dovetail import _core
from dovetail._array import expect_array
from dovetail._core import Array
from dovetail._nn_common import along, counting, drawn, each, expect_rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Ints = int | Sequence[int]

__all__ = ["fractional_max_pool2d", "fractional_max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d"]

_op = _core.op_function


# ---- max_unpool --------------------------------------------------------------------------------------------------


def _max_unpool(
    n: int, x: Array, indices: Array, kernel: Ints, stride: Ints | None, padding: Ints, output_size: Any
) -> Array:
    what = f"max_unpool{n}d"
    expect_rank(what, x, n + 2)
    expect_array(what, indices, "indices")
    if indices.shape != x.shape:
        raise ValueError(f"[{what}] indices: got shape {indices.shape}, expected x's {x.shape}")
    kernel = each(what, "kernel_size", kernel, n)
    steps = kernel if stride is None else each(what, "stride", stride, n)
    edges = each(what, "padding", padding, n)
    sizes = tuple((m - 1) * s - 2 * p + k for m, s, p, k in zip(x.shape[2:], steps, edges, kernel, strict=True))
    if output_size is not None:
        wanted = tuple(output_size)[-n:]
        near = len(wanted) == n and all(abs(w - m) < s for w, m, s in zip(wanted, sizes, steps, strict=True))
        if not near:
            raise ValueError(f"[{what}] output_size: got {output_size}, expected {sizes} to less than a stride")
        sizes = wanted
    flat = _op("zeros")((*x.shape[:2], math.prod(sizes)), dtype=x.dtype, device=x.device)
    rows = (*x.shape[:2], math.prod(x.shape[2:]))
    places, values = _op("reshape")(indices, rows), _op("reshape")(x, rows)
    return _op("reshape")(_op("put_along_axis")(flat, places, values, axis=2), (*x.shape[:2], *sizes))


def max_unpool1d(
    x: Array,
    indices: Array,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Array:
    """x (N, C, L) at the indices that max_pool1d(return_indices=True) gave, 0 elsewhere.

    output_size: that of the pool's operand, where several have a pool of x's size. Raises ValueError where shapes
    do not match, IndexError for an index beyond the result.
    """
    return _max_unpool(1, x, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    x: Array,
    indices: Array,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Array:
    """x (N, C, H, W) at the indices that max_pool2d(return_indices=True) gave, 0 elsewhere.

    output_size: that of the pool's operand, where several have a pool of x's size. Raises ValueError where shapes
    do not match, IndexError for an index beyond the result.
    """
    return _max_unpool(2, x, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    x: Array,
    indices: Array,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Array:
    """x (N, C, D, H, W) at the indices that max_pool3d(return_indices=True) gave, 0 elsewhere.

    output_size: that of the pool's operand, where several have a pool of x's size. Raises ValueError where shapes
    do not match, IndexError for an index beyond the result.
    """
    return _max_unpool(3, x, indices, kernel_size, stride, padding, output_size)


# ---- fractional_max_pool -----------------------------------------------------------------------------------------


def _results(what: str, n: int, x: Array, kernel: tuple[int, ...], size: Any, ratio: Any) -> tuple[int, ...]:
    """The sizes of the result."""
    if (size is None) == (ratio is None):
        raise ValueError(f"[{what}] output_size and output_ratio: got {size}, {ratio}, expected one of them")
    if size is not None:
        sizes = each(what, "output_size", size, n)
    else:
        ratios = (ratio,) * n if isinstance(ratio, (int, float)) else tuple(ratio)
        if len(ratios) != n or not all(0 < r < 1 for r in ratios):
            raise ValueError(f"[{what}] output_ratio: got {ratio}, expected a number between 0 and 1, or {n}")
        sizes = tuple(int(m * r) for m, r in zip(x.shape[2:], ratios, strict=True))
    for m, k, out in zip(x.shape[2:], kernel, sizes, strict=True):
        if out < 1 or k < 1 or out + k - 1 > m:
            raise ValueError(
                f"[{what}] x of shape {x.shape}, kernel_size {kernel}: {sizes} results do not fit; expected "
                "output_size + kernel_size - 1 to be at most x's size, on each axis"
            )
    return sizes


def _begins(size: int, kernel: int, results: int, sample: Array) -> Array:
    """Where the windows of one axis begin, (N, C, results): the last at the end, others by the sample."""
    place = counting(results, "int64", sample.device)
    if results == 1:
        return _op("broadcast_to")(place + (size - kernel), (*sample.shape, 1))
    step = (size - kernel) / (results - 1)
    sample = _op("expand_dims")(sample, axis=-1)
    moved = _op("floor")((_op("astype")(place, sample.dtype) + sample) * step) - _op("floor")(sample * step)
    return _op("where")(place == results - 1, size - kernel, _op("astype")(moved, "int64"))


def _fractional_max_pool(
    n: int, x: Array, kernel: Ints, size: Any, ratio: Any, indices: bool, samples: Array | None, key: Array | None
) -> Any:
    what = f"fractional_max_pool{n}d"
    expect_rank(what, x, n + 2)
    kernel = each(what, "kernel_size", kernel, n)
    results = _results(what, n, x, kernel, size, ratio)
    each_channel = (*x.shape[:2], n)
    if samples is None:
        samples = drawn(x, each_channel, key)
    elif samples.shape != each_channel:
        raise ValueError(f"[{what}] samples: got shape {samples.shape}, expected {each_channel}")
    rank, place, sizes = 2 + 2 * n, None, x.shape[2:]
    for i in range(n):
        # torch's order of the samples of images: width first
        sample = samples[..., n - 1 - i if n == 2 else i]
        begins = _begins(sizes[i], kernel[i], results[i], sample)
        shape = [*begins.shape[:2], *(1,) * (rank - 2)]
        shape[2 + i] = results[i]
        here = _op("reshape")(begins, tuple(shape)) + along(counting(kernel[i], "int64", x.device), 2 + n + i, rank)
        place = here if place is None else place * sizes[i] + here
    flat = _op("reshape")(x, (*x.shape[:2], math.prod(sizes)))
    count, taps = math.prod(results), math.prod(kernel)
    place = _op("reshape")(place, (*x.shape[:2], count, taps))
    rows = _op("reshape")(place, (*x.shape[:2], count * taps))
    windows = _op("reshape")(_op("take_along_axis")(flat, rows, axis=2), place.shape)
    if not indices:
        return _op("reshape")(_op("max")(windows, axis=-1), (*x.shape[:2], *results))
    tap = _op("argmax")(windows, axis=-1, keepdims=True)
    found = (_op("take_along_axis")(a, tap, axis=-1) for a in (windows, place))
    return tuple(_op("reshape")(a, (*x.shape[:2], *results)) for a in found)


def fractional_max_pool2d(
    x: Array,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    *,
    samples: Array | None = None,
    key: Array | None = None,
) -> Any:
    """The largest of windows of x (N, C, H, W) at steps that vary at random, for a result of any smaller size.

    output_size, or output_ratio: the size of the result, or its share of x's. return_indices: a tuple of the values
    and their int64 positions in x's spatial axes as one. samples: (N, C, 2), numbers from 0 to 1 that place the
    windows of each channel, along W and H; by default uniform ones of key, or of dovetail.random's next. Raises
    ValueError for a size that does not fit. Graham, Fractional max-pooling, 2014.
    """
    return _fractional_max_pool(2, x, kernel_size, output_size, output_ratio, return_indices, samples, key)


def fractional_max_pool3d(
    x: Array,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    *,
    samples: Array | None = None,
    key: Array | None = None,
) -> Any:
    """The largest of windows of x (N, C, D, H, W) at steps that vary at random, for a result of any smaller size.

    output_size, or output_ratio: the size of the result, or its share of x's. return_indices: a tuple of the values
    and their int64 positions in x's spatial axes as one. samples: (N, C, 3), numbers from 0 to 1 that place the
    windows of each channel, along D, H and W; by default uniform ones of key, or of dovetail.random's next. Raises
    ValueError for a size that does not fit. Graham, Fractional max-pooling, 2014.
    """
    return _fractional_max_pool(3, x, kernel_size, output_size, output_ratio, return_indices, samples, key)
