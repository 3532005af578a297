"""Images of another size: interpolate, adaptive pools, fold and unfold, grid_sample."""

from __future__ import annotations

import math

from dovetail import _core
from dovetail._core import Array
from dovetail._nn_common import (
    along,
    counting,
    each,
    expect_float,
    expect_rank,
    is_integer,
    one_of,
    rounded,
    working,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Ints = int | Sequence[int]

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "fold", "interpolate", "unfold",
]  # fmt: skip

_op = _core.op_function
_RANKS = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}
_MODES = ("nearest", "nearest-exact", *_RANKS, "area")


# ---- interpolate -------------------------------------------------------------------------------------------------


def interpolate(
    x: Array,
    size: Ints | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Array:
    """x (N, C, ...) with 1 to 3 spatial axes in another size: `size`, or scale_factor times as many elements.

    mode: "nearest", "nearest-exact" (as other libraries have it), "linear", "bilinear", "bicubic", "trilinear" for
    as many axes, or "area", the means of adaptive_avg_pool. align_corners: the centres of corner elements stay
    where they are, else their outer edges. antialias, of "bilinear" and "bicubic": a smaller image averages over
    all of x.
    recompute_scale_factor: coordinates follow from the sizes, not from scale_factor.

    With size, "nearest" computes places in integers: element i is x's floor(i * n / size), for every size. Raises
    TypeError for integers where elements are averaged, ValueError for arguments that do not go together.
    """
    expect_rank("interpolate", x, 3, 4, 5)
    one_of("interpolate", "mode", mode, *_MODES)
    if mode in _RANKS and x.ndim != _RANKS[mode]:
        raise ValueError(f"[interpolate] mode {mode!r} of x of shape {x.shape}: expected {_RANKS[mode]} axes")
    if align_corners is not None and mode not in _RANKS:
        raise ValueError(f"[interpolate] align_corners with mode {mode!r}: expected None")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(f"[interpolate] antialias with mode {mode!r}: expected 'bilinear' or 'bicubic'")
    sizes, scales = _target(x, size, scale_factor, bool(recompute_scale_factor))
    if mode == "area":
        return _adaptive("interpolate", x.ndim - 2, x, sizes, _means)
    if mode in _RANKS:
        expect_float("interpolate", x)
    y = working(x) if mode in _RANKS else x
    for i, (m, scale) in enumerate(zip(sizes, scales, strict=True)):
        y = _along_axis(y, i + 2, m, scale, mode, bool(align_corners), antialias)
    return rounded(y, x)


def _target(x: Array, size: Any, scale_factor: Any, recompute: bool) -> tuple[tuple[int, ...], list[float | None]]:
    """The new sizes, and for each axis the factor from which coordinates follow, None for the sizes' ratio."""
    n = x.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ValueError("[interpolate] size, scale_factor: expected one of them, got both or none")
    if any(is_integer(m) and type(m) is int and m < 1 for m in x.shape[2:]):
        raise ValueError(f"[interpolate] x of shape {x.shape}: expected spatial axes with elements")
    if size is not None:
        sizes = each("interpolate", "size", size, n)
        if any(m < 1 for m in sizes):
            raise ValueError(f"[interpolate] size: got {size}, expected at least 1")
        return sizes, [None] * n
    factors = list(scale_factor) if isinstance(scale_factor, (tuple, list)) else [scale_factor] * n
    if len(factors) != n or any(f <= 0 for f in factors):
        raise ValueError(f"[interpolate] scale_factor: got {scale_factor!r}, expected {n} positive numbers or one")
    sizes = tuple(m * f if is_integer(f) else math.floor(m * float(f)) for m, f in zip(x.shape[2:], factors))
    if any(m < 1 for m in sizes):
        raise ValueError(f"[interpolate] scale_factor {scale_factor!r} leaves nothing of x of shape {x.shape}")
    return sizes, [None if recompute or is_integer(f) else 1.0 / f for f in factors]


def _along_axis(
    x: Array, axis: int, m: int, scale: float | None, mode: str, align_corners: bool, antialias: bool
) -> Array:
    n = x.shape[axis]
    if mode.startswith("nearest"):
        return _op("take")(x, _nearest(x, n, m, scale, mode == "nearest-exact"), axis=axis)
    if align_corners:
        step = (n - 1) / (m - 1) if m > 1 else 0.0
    else:
        step = n / m if scale is None else scale
    i, cubic = counting(m, x.dtype, x.device), mode == "bicubic"
    if antialias:
        return _smoothed(x, axis, *_smooth_taps(i, n, step, cubic))
    place = i * step if align_corners else (i + 0.5) * step - 0.5  # beyond an end, all taps are the same
    low = _op("floor")(place)
    t = place - low
    first, weights = (-1, cubic_weights(t)) if cubic else (0, (1.0 - t, t))
    total = None
    for k, weight in enumerate(weights, first):
        elements = _op("take")(x, _index(low + float(k) if k else low, n), axis=axis)
        part = elements * along(weight, axis, x.ndim)
        total = part if total is None else total + part
    return total


def _smoothed(x: Array, axis: int, indices: Array, weights: Array) -> Array:
    m, taps = indices.shape
    parts = _op("take")(x, _op("reshape")(indices, (m * taps,)), axis=axis)
    parts = _op("reshape")(parts, (*x.shape[:axis], m, taps, *x.shape[axis + 1 :]))
    weights = _op("reshape")(weights, (m, taps, *(1,) * (x.ndim - axis - 1)))
    return _op("sum")(parts * weights, axis=axis + 1)


def _nearest(x: Array, n: int, m: int, scale: float | None, exact: bool) -> Array:
    """The index that each of m places takes of n."""
    if scale is None:
        place = counting(m, "int64", x.device)
        return _op("floor_divide")((place * 2 + 1) * n, m * 2) if exact else _op("floor_divide")(place * n, m)
    place = counting(m, "float32", x.device)
    place = _op("floor")((place + 0.5) * scale if exact else place * scale)
    return _op("minimum")(_op("astype")(place, "int64"), n - 1)


def _index(place: Array, n: int) -> Array:
    return _op("clip")(_op("astype")(place, "int64"), 0, n - 1)


def cubic_weights(t: Array) -> tuple[Array, Array, Array, Array]:
    """The weights of Keys' cubic convolution with -0.75, of the two elements before t and the two behind."""
    return tuple(_keys(d, -0.75, near) for d, near in ((t + 1.0, 0), (t, 1), (1.0 - t, 1), (2.0 - t, 0)))


def _keys(d: Array, a: float, near: bool) -> Array:
    """Keys' kernel at distances d of at most 1 (near), or from 1 to 2."""
    return ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0 if near else ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a


def _smooth_taps(i: Array, n: int, step: float, cubic: bool) -> tuple[Array, Array]:
    """Taps of a filter that is as wide as an element of the result, as Pillow has it."""
    width = step if step > 1.0 else 1.0
    reach = (2.0 if cubic else 1.0) * width
    centre = (i + 0.5) * step
    first = _op("maximum")(_op("floor")(centre - reach + 0.5), 0.0)
    end = _op("minimum")(_op("floor")(centre + reach + 0.5), n)
    taps = 2 * math.ceil(reach) + 1
    place = _op("expand_dims")(first, axis=1) + counting(taps, i.dtype, i.device)
    d = _op("abs")((place - _op("expand_dims")(centre, axis=1) + 0.5) / width)
    if cubic:
        weights = _op("where")(d < 1.0, _keys(d, -0.5, True), _op("where")(d < 2.0, _keys(d, -0.5, False), 0.0))
    else:
        weights = _op("maximum")(1.0 - d, 0.0)
    weights = _op("where")(place < _op("expand_dims")(end, axis=1), weights, 0.0)
    return _index(place, n), weights / _op("sum")(weights, axis=1, keepdims=True)


# ---- adaptive pools ----------------------------------------------------------------------------------------------


def _parts(x: Array, axis: int, m: int) -> tuple[Array, Array, Array]:
    """Part i of m of an axis, from floor(i n / m) to ceil((i + 1) n / m), as a row of elements on a further axis:
    the rows, which of their elements count (a matrix), and the index of each (a matrix)."""
    n = x.shape[axis]
    i = counting(m, "int64", x.device)
    first = _op("floor_divide")(i * n, m)
    end = _op("floor_divide")((i + 1) * n + (m - 1), m)
    longest = -(-n // m) + (1 if n % m else 0)
    index = _op("expand_dims")(first, axis=1) + counting(longest, "int64", x.device)
    inside = index < _op("expand_dims")(end, axis=1)
    index = _op("minimum")(index, n - 1)
    rows = _op("take")(x, _op("reshape")(index, (m * longest,)), axis=axis)
    return _op("reshape")(rows, (*x.shape[:axis], m, longest, *x.shape[axis + 1 :])), inside, index


def _on_axes(v: Array, axis: int, ndim: int) -> Array:
    """A matrix over the axes `axis` and the next one."""
    return _op("reshape")(v, (*(1,) * axis, *v.shape, *(1,) * (ndim - axis - 2)))


def _means(x: Array, axis: int, m: int) -> Array:
    n = x.shape[axis]
    if n % m == 0:
        return _op("mean")(_op("reshape")(x, (*x.shape[:axis], m, n // m, *x.shape[axis + 1 :])), axis=axis + 1)
    rows, inside, _ = _parts(x, axis, m)
    total = _op("sum")(_op("where")(_on_axes(inside, axis, rows.ndim), rows, 0.0), axis=axis + 1)
    count = _op("sum")(_op("astype")(inside, x.dtype), axis=1)
    return total / along(count, axis, x.ndim)


def _adaptive(what: str, n: int, x: Array, size: Any, pooled: Any) -> Array:
    """Parts are products of parts of each axis: one axis after the other. None leaves an axis as it is."""
    expect_rank(what, x, n + 2)
    expect_float(what, x)
    y = working(x)
    for i, m in enumerate(_sizes(what, n, x, size)):
        y = pooled(y, i + 2, m)
    return rounded(y, x)


def _sizes(what: str, n: int, x: Array, size: Any) -> tuple[int, ...]:
    if isinstance(size, (tuple, list)) and len(size) == n:
        size = [m if given is None else given for m, given in zip(x.shape[2:], size, strict=True)]
    sizes = each(what, "output_size", size, n)
    if any(m < 1 for m in sizes) or any(type(m) is int and m < 1 for m in x.shape[2:]):
        raise ValueError(f"[{what}] output_size {size!r} of x of shape {x.shape}: expected sizes of at least 1")
    return sizes


def adaptive_avg_pool1d(x: Array, output_size: Ints) -> Array:
    """The means of output_size parts of x (N, C, L): part i is from floor(i L / size) to ceil((i + 1) L / size)."""
    return _adaptive("adaptive_avg_pool1d", 1, x, output_size, _means)


def adaptive_avg_pool2d(x: Array, output_size: int | Sequence[int | None]) -> Array:
    """The means of output_size parts of x (N, C, H, W), cut as in adaptive_avg_pool1d; None keeps an axis."""
    return _adaptive("adaptive_avg_pool2d", 2, x, output_size, _means)


def adaptive_avg_pool3d(x: Array, output_size: int | Sequence[int | None]) -> Array:
    """The means of output_size parts of x (N, C, D, H, W), cut as in adaptive_avg_pool1d; None keeps an axis."""
    return _adaptive("adaptive_avg_pool3d", 3, x, output_size, _means)


def _adaptive_max(n: int, x: Array, size: Any, return_indices: bool) -> Any:
    what = f"adaptive_max_pool{n}d"
    expect_rank(what, x, n + 2)
    expect_float(what, x)
    values, position = x, None
    for i, m in reversed([*enumerate(_sizes(what, n, x, size))]):
        axis = i + 2
        rows, inside, index = _parts(values, axis, m)
        rows = _op("where")(_on_axes(inside, axis, rows.ndim), rows, -math.inf)
        if return_indices:
            best = _op("argmax")(rows, axis=axis + 1, keepdims=True)
            here = _on_axes(index, axis, rows.ndim)
            if position is not None:
                here = here * math.prod(x.shape[axis + 1 :]) + _parts(position, axis, m)[0]
            here = _op("broadcast_to")(here, rows.shape)
            position = _op("squeeze")(_op("take_along_axis")(here, best, axis=axis + 1), axis + 1)
        values = _op("max")(rows, axis=axis + 1)
    return (values, position) if return_indices else values


def adaptive_max_pool1d(x: Array, output_size: Ints, return_indices: bool = False) -> Any:
    """The largest of each of output_size parts of x (N, C, L), cut as in adaptive_avg_pool1d; NaN where one is.

    return_indices: a tuple of the values and their int64 positions in x's spatial axes as one.
    """
    return _adaptive_max(1, x, output_size, return_indices)


def adaptive_max_pool2d(x: Array, output_size: int | Sequence[int | None], return_indices: bool = False) -> Any:
    """The largest of each of output_size parts of x (N, C, H, W), cut as in adaptive_avg_pool1d.

    None as a size keeps an axis. return_indices: a tuple of the values and their int64 positions in x's spatial
    axes as one.
    """
    return _adaptive_max(2, x, output_size, return_indices)


def adaptive_max_pool3d(x: Array, output_size: int | Sequence[int | None], return_indices: bool = False) -> Any:
    """The largest of each of output_size parts of x (N, C, D, H, W), cut as in adaptive_avg_pool1d.

    None as a size keeps an axis. return_indices: a tuple of the values and their int64 positions in x's spatial
    axes as one.
    """
    return _adaptive_max(3, x, output_size, return_indices)


# ---- fold and unfold ---------------------------------------------------------------------------------------------


def unfold(x: Array, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Array:
    """The windows of images x (N, C, H, W) as columns: (N, C * kh * kw, windows)."""
    expect_rank("unfold", x, 4)
    names = {"kernel_size": kernel_size, "dilation": dilation, "padding": padding, "stride": stride}
    kernel, dilation, padding, stride = (each("unfold", name, v, 2) for name, v in names.items())
    x = _op("pad")(x, (0, 0, 0, 0, padding[0], padding[0], padding[1], padding[1]))
    windows = _op("sliding_window")(x, kernel, stride=stride, dilation=dilation)
    n, c, high, wide = windows.shape[:4]
    windows = _op("permute_dims")(windows, (0, 1, 4, 5, 2, 3))
    return _op("reshape")(windows, (n, c * kernel[0] * kernel[1], high * wide))


def fold(
    x: Array, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Array:
    """The sum of windows at their places: columns x (N, C * kh * kw, windows) as images (N, C, *output_size).

    Raises ValueError where x's sizes are not those of unfold of such images.
    """
    from dovetail.schema.ops.transposed import overlap_add

    expect_rank("fold", x, 3)
    names = {"output_size": output_size, "kernel_size": kernel_size, "dilation": dilation, "padding": padding,
             "stride": stride}  # fmt: skip
    size, kernel, dilation, padding, stride = (each("fold", name, v, 2) for name, v in names.items())
    places = [(size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2)]
    taps = kernel[0] * kernel[1]
    if x.shape[1] % taps or x.shape[2] != places[0] * places[1]:
        raise ValueError(
            f"[fold] x: got shape {x.shape}, expected (N, C, windows), C a multiple of {taps} and "
            f"{places[0]} x {places[1]} windows"
        )
    n, c = x.shape[0], x.shape[1] // taps
    columns = _op("reshape")(working(x), (n * c, kernel[0], kernel[1], *places))
    columns = _op("permute_dims")(columns, (0, 1, 3, 2, 4))
    for i, (outer, inner) in enumerate(((n * c, kernel[1] * places[1]), (n * c * size[0], 1))):
        columns = _op("reshape")(columns, (outer, kernel[i], places[i], inner))
        columns = overlap_add(columns, stride[i], padding[i], dilation[i], size[i])
    return rounded(_op("reshape")(columns, (n, c, *size)), x)
