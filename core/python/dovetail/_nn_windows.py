"""Convolutions and pools with more arguments than the ops have: padding by name or by side, ceil_mode, indices."""

from __future__ import annotations

import math

from dovetail import _core
from dovetail._core import Array
from dovetail._nn_common import along, counting, each, expect_rank, is_integer, one_of, rounded, working

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Ints = int | Sequence[int]
    Padding = str | int | Sequence[int] | Sequence[Sequence[int]]

__all__ = [
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "conv1d", "conv2d", "conv3d", "lp_pool1d", "lp_pool2d", "lp_pool3d",
    "max_pool1d", "max_pool2d", "max_pool3d",
]  # fmt: skip

_op = _core.op_function
Pairs = list[tuple[int, int]]


def _pairs(what: str, padding: Any, n: int) -> Pairs | None:
    """Padding of each side where it is given so: a pair for each of n axes; None for integers."""
    if not isinstance(padding, (tuple, list)) or all(map(is_integer, padding)):
        return None
    if len(padding) != n or any(not isinstance(p, (tuple, list)) or len(p) != 2 for p in padding):
        raise ValueError(f"[{what}] padding: got {padding!r}, expected integers, or (before, after) for {n} axes")
    return [(before, after) for before, after in padding]


def _with_sides(x: Array, pairs: Pairs, value: Any = 0) -> Array:
    sides = tuple(n for pair in pairs for n in pair)
    return _op("pad")(x, (0, 0, 0, 0, *sides), constant_values=value) if any(sides) else x


# ---- convolutions ------------------------------------------------------------------------------------------------


def _conv(
    n: int, x: Array, weight: Array, bias: Array | None, stride: Ints, padding: Padding, dilation: Ints, groups: int
) -> Array:
    what = f"conv{n}d"
    if isinstance(padding, str):
        one_of(what, "padding", padding, "same", "valid")
        padding = 0 if padding == "valid" else _same(what, n, x, weight, stride, dilation)
    if (pairs := _pairs(what, padding, n)) is not None:
        if all(before == after for before, after in pairs):
            padding = [before for before, _ in pairs]
        else:
            expect_rank(what, x, n + 2)
            x, padding = _with_sides(x, pairs), 0
    return _op(what)(x, weight, bias, stride, padding, dilation, groups)


def _same(what: str, n: int, x: Array, weight: Array, stride: Ints, dilation: Ints) -> Pairs:
    """The padding with which the result has x's size; of an odd number, more behind."""
    expect_rank(what, x, n + 2)
    expect_rank(what, weight, n + 2)
    if any(s != 1 for s in each(what, "stride", stride, n)):
        raise ValueError(f"[{what}] padding='same' with stride {stride!r}: expected a stride of 1")
    totals = [d * (k - 1) for d, k in zip(each(what, "dilation", dilation, n), weight.shape[2:], strict=True)]
    return [(total // 2, total - total // 2) for total in totals]


def conv1d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Array:
    """The cross-correlation of signals x (N, C, L) with a weight (O, C / groups, k), plus bias (O,).

    padding: integers, "valid" for none, "same" for a result of x's size (with a stride of 1), or (before, after)
    for each spatial axis. Raises ValueError where shapes do not match or a window does not fit.
    """
    return _conv(1, x, weight, bias, stride, padding, dilation, groups)


def conv2d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Array:
    """The cross-correlation of images x (N, C, H, W) with a weight (O, C / groups, kh, kw), plus bias (O,).

    padding: integers, "valid" for none, "same" for a result of x's size (with a stride of 1), or (before, after)
    for each spatial axis. Raises ValueError where shapes do not match or a window does not fit.
    """
    return _conv(2, x, weight, bias, stride, padding, dilation, groups)


def conv3d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Array:
    """The cross-correlation of volumes x (N, C, D, H, W) with a weight (O, C / groups, kd, kh, kw), plus bias (O,).

    padding: integers, "valid" for none, "same" for a result of x's size (with a stride of 1), or (before, after)
    for each spatial axis. Raises ValueError where shapes do not match or a window does not fit.
    """
    return _conv(3, x, weight, bias, stride, padding, dilation, groups)


# ---- pools -------------------------------------------------------------------------------------------------------


class _Places:
    """Where the windows of a pool lie on each spatial axis."""

    def __init__(
        self, what: str, n: int, x: Array, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
    ):
        expect_rank(what, x, n + 2)
        self.n, self.sizes = n, x.shape[2:]
        self.kernel = each(what, "kernel_size", kernel, n)
        self.stride = self.kernel if stride is None else each(what, "stride", stride, n)
        self.dilation = each(what, "dilation", dilation, n)
        pairs = _pairs(what, padding, n)
        self.padding = pairs or [(p, p) for p in each(what, "padding", padding, n)]
        self._check(what)
        self.beyond = [self._beyond(i) if ceil else 0 for i in range(n)]  # of the padding, by ceil_mode

    def _check(self, what: str) -> None:
        for name in ("kernel", "stride", "dilation"):
            if any(v < 1 for v in getattr(self, name)):
                raise ValueError(f"[{what}] {name}: got {getattr(self, name)}, expected at least 1")
        for k, pair in zip(self.kernel, self.padding, strict=True):
            if any(not 0 <= p <= k // 2 for p in pair):
                raise ValueError(f"[{what}] padding: got {pair}, expected 0 to {k // 2}, half of kernel_size")

    def _beyond(self, i: int) -> int:
        (before, after), n, stride = self.padding[i], self.sizes[i], self.stride[i]
        room = before + n + after - (self.dilation[i] * (self.kernel[i] - 1) + 1)
        last = -(-room // stride) * stride  # where the last window begins
        if last >= before + n:  # it would hold nothing but padding
            last -= stride
        return max(last - room, 0)

    @property
    def plain(self) -> bool:
        """Whether the op has what is asked for."""
        return all(before == after for before, after in self.padding) and not any(self.beyond)

    @property
    def sides(self) -> Pairs:
        return [(before, after + more) for (before, after), more in zip(self.padding, self.beyond, strict=True)]

    def counts(self, x: Array, include_padding: bool) -> Array:
        """How many elements of each window are x's, or its padding's."""
        counts = None
        for i in range(self.n):
            (before, after), n = self.padding[i], self.sizes[i]
            places = (before + n + after + self.beyond[i] - self.kernel[i]) // self.stride[i] + 1
            first = counting(places, "int64", x.device) * self.stride[i] - before
            low, high = (-before, n + after) if include_padding else (0, n)
            inside = _op("minimum")(first + self.kernel[i], high) - _op("maximum")(first, low)
            inside = along(_op("astype")(inside, working(x).dtype), 2 + i, self.n + 2)
            counts = inside if counts is None else counts * inside
        return counts


def _least(x: Array) -> float:
    if "floating" in x.dtype.kind:
        return -math.inf
    from dovetail._dtypes import iinfo

    return int(iinfo(x.dtype).min)


def _max_pool(
    n: int, x: Array, kernel: Ints, stride: Ints | None, padding: Any, dilation: Ints, ceil: bool, indices: bool
) -> Any:
    what = f"max_pool{n}d"
    if not ceil and not indices and _pairs(what, padding, n) is None:
        return _op(what)(x, kernel, stride, padding, dilation)
    at = _Places(what, n, x, kernel, stride, padding, dilation, ceil)
    if at.plain and not indices:
        return _op(what)(x, at.kernel, at.stride, [before for before, _ in at.padding], at.dilation)
    padded = _with_sides(x, at.sides, _least(x))
    if not indices:
        return _op(what)(padded, at.kernel, at.stride, 0, at.dilation)
    windows = _op("sliding_window")(padded, at.kernel, stride=at.stride, dilation=at.dilation)
    windows = _op("reshape")(windows, (*windows.shape[: n + 2], math.prod(at.kernel)))
    tap = _op("argmax")(windows, axis=-1, keepdims=True)
    values = _op("squeeze")(_op("take_along_axis")(windows, tap, axis=-1), -1)
    return values, _positions(at, _op("squeeze")(tap, -1), x)


def _positions(at: _Places, tap: Array, x: Array) -> Array:
    """The place in the flat spatial axes of x that a tap of each window is."""
    position, taps, size = None, math.prod(at.kernel), 1
    for i in range(at.n):
        taps //= at.kernel[i]
        here = _op("remainder")(_op("floor_divide")(tap, taps), at.kernel[i]) * at.dilation[i]
        first = counting(tap.shape[2 + i], "int64", x.device) * at.stride[i] - at.padding[i][0]
        here = here + along(first, 2 + i, tap.ndim)
        position = here if position is None else position * size + here
        size = at.sizes[i + 1] if i + 1 < at.n else 1
    return position


def max_pool1d(
    x: Array,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints | Sequence[Sequence[int]] = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest of each window of x (N, C, L), NaN where there is one; padding never wins.

    padding: integers, or (before, after) for each spatial axis. ceil_mode: a last window that fits only in part
    counts. return_indices: a tuple of the values and their int64 positions in x's last axis.
    """
    return _max_pool(1, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    x: Array,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints | Sequence[Sequence[int]] = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest of each window of x (N, C, H, W), NaN where there is one; padding never wins.

    padding: integers, or (before, after) for each spatial axis. ceil_mode: a last window that fits only in part
    counts. return_indices: a tuple of the values and their int64 positions in x's spatial axes as one.
    """
    return _max_pool(2, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(
    x: Array,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints | Sequence[Sequence[int]] = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest of each window of x (N, C, D, H, W), NaN where there is one; padding never wins.

    padding: integers, or (before, after) for each spatial axis. ceil_mode: a last window that fits only in part
    counts. return_indices: a tuple of the values and their int64 positions in x's spatial axes as one.
    """
    return _max_pool(3, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _avg_pool(
    n: int,
    x: Array,
    kernel: Ints,
    stride: Ints | None,
    padding: Any,
    ceil: bool,
    include: bool,
    divisor: int | None,
) -> Array:
    what = f"avg_pool{n}d"
    if not ceil and divisor is None and _pairs(what, padding, n) is None:
        return _op(what)(x, kernel, stride, padding, count_include_pad=include)
    at = _Places(what, n, x, kernel, stride, padding, 1, ceil)
    if divisor is None and at.plain:
        before = [before for before, _ in at.padding]
        return _op(what)(x, at.kernel, at.stride, before, count_include_pad=include)
    if divisor == 0:
        raise ValueError(f"[{what}] divisor_override: got 0, expected another number")
    means = _op(what)(_with_sides(working(x), at.sides), at.kernel, at.stride, 0)
    total = means * math.prod(at.kernel)
    return rounded(total / (at.counts(x, include) if divisor is None else divisor), x)


def avg_pool1d(
    x: Array,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints | Sequence[Sequence[int]] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    """The mean of each window of x (N, C, L); count_include_pad=False divides by what is not padding.

    padding: integers, or (before, after) for each spatial axis. ceil_mode: a last window that fits only in part
    counts, and is divided by what lies in x and its padding.
    """
    return _avg_pool(1, x, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    x: Array,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints | Sequence[Sequence[int]] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """The mean of each window of x (N, C, H, W); count_include_pad=False divides by what is not padding.

    padding: integers, or (before, after) for each spatial axis. ceil_mode: a last window that fits only in part
    counts, and is divided by what lies in x and its padding. divisor_override: what to divide sums by instead.
    """
    return _avg_pool(2, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    x: Array,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints | Sequence[Sequence[int]] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """The mean of each window of x (N, C, D, H, W); count_include_pad=False divides by what is not padding.

    padding: integers, or (before, after) for each spatial axis. ceil_mode: a last window that fits only in part
    counts, and is divided by what lies in x and its padding. divisor_override: what to divide sums by instead.
    """
    return _avg_pool(3, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _lp_pool(n: int, x: Array, norm_type: float, kernel: Ints, stride: Ints | None, ceil: bool) -> Array:
    what = f"lp_pool{n}d"
    expect_rank(what, x, n + 2)
    sizes = each(what, "kernel_size", kernel, n)
    powers = _op("pow")(_op("abs")(working(x)), norm_type)
    means = _avg_pool(n, powers, sizes, stride, 0, ceil, True, None)
    return rounded(_op("pow")(means * math.prod(sizes), 1.0 / norm_type), x)


def lp_pool1d(
    x: Array, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
) -> Array:
    """The norm sum(abs(x) ** norm_type) ** (1 / norm_type) of each window of x (N, C, L)."""
    return _lp_pool(1, x, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    x: Array, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
) -> Array:
    """The norm sum(abs(x) ** norm_type) ** (1 / norm_type) of each window of x (N, C, H, W)."""
    return _lp_pool(2, x, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    x: Array, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
) -> Array:
    """The norm sum(abs(x) ** norm_type) ** (1 / norm_type) of each window of x (N, C, D, H, W)."""
    return _lp_pool(3, x, norm_type, kernel_size, stride, ceil_mode)
