"""Convolutions and pools over windows, and their reverses."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

import dovetail as dt
from dovetail import _core, nn
from dovetail.onnx.elementwise import fold
from dovetail.onnx.registry import Node, onnx_op
from dovetail.onnx.shape import padded, whole
from dovetail.onnx.values import Dequantized, arrays_of, constant, integers, is_float, prod
from dovetail.schema.number import largest

_op = _core.op_function
_CONV: dict[int, Callable[..., Any]] = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}
_TRANSPOSED: dict[int, Callable[..., Any]] = {
    1: nn.conv_transpose1d,
    2: nn.conv_transpose2d,
    3: nn.conv_transpose3d,
}
_MAX_POOL: dict[int, Callable[..., Any]] = {1: nn.max_pool1d, 2: nn.max_pool2d, 3: nn.max_pool3d}
_AVG_POOL: dict[int, Callable[..., Any]] = {1: nn.avg_pool1d, 2: nn.avg_pool2d, 3: nn.avg_pool3d}

Pairs = list[tuple[Any, Any]]


class Geometry:
    """Where the windows of a node lie."""

    def __init__(self, node: Node, sizes: tuple[Any, ...], kernel: list[int]):
        self.n = len(kernel)
        self.sizes, self.kernel = sizes, kernel
        self.strides = list(node.get("strides") or [1] * self.n)
        self.dilations = list(node.get("dilations") or [1] * self.n)
        self.pads = self._pads(node)
        self.ceil = bool(node.get("ceil_mode", 0))

    def _pads(self, node: Node) -> Pairs:
        auto, given = node.get("auto_pad", "NOTSET"), node.get("pads") or [0] * 2 * self.n
        if auto == "VALID":
            return [(0, 0)] * self.n
        if auto not in ("SAME_UPPER", "SAME_LOWER"):
            return list(zip(given[: self.n], given[self.n :]))
        pads = []
        for size, k, stride, dilation in zip(self.sizes, self.kernel, self.strides, self.dilations):
            places = -((-size) // stride)
            total = largest((places - 1) * stride + (k - 1) * dilation + 1 - size, 0)
            half = total // 2
            pads.append((half, total - half) if auto == "SAME_UPPER" else (total - half, half))
        return pads

    @property
    def symmetric(self) -> bool:
        return all(before is after or before == after for before, after in self.pads)

    @property
    def beyond(self) -> list[Any]:
        """How many elements behind the padding the last windows reach, by ceil_mode."""
        found = []
        for i in range(self.n):
            if not self.ceil:
                found.append(0)
                continue
            before, after = self.pads[i]
            room = before + self.sizes[i] + after - (self.dilations[i] * (self.kernel[i] - 1) + 1)
            last = -((-room) // self.strides[i]) * self.strides[i]  # where the last window begins
            if last >= before + self.sizes[i]:  # it would hold nothing of x
                last = last - self.strides[i]
            found.append(largest(last - room, 0))
        return found

    @property
    def places(self) -> list[Any]:
        """How many windows there are."""
        return [
            (before + size + after + more - (k - 1) * d - 1) // s + 1
            for (before, after), size, more, k, d, s in zip(
                self.pads, self.sizes, self.beyond, self.kernel, self.dilations, self.strides
            )
        ]


# ---- convolutions ------------------------------------------------------------------------------------------------


@onnx_op("Conv", quantized=(0, 1), may_grow=True)
def conv(node: Node, x: Any, weight: Any, bias: Any = None) -> Any:
    if isinstance(x, Dequantized) and isinstance(weight, Dequantized):
        from dovetail.onnx.quantized import real_conv

        if (made := real_conv(node, x, weight)) is not None:
            return made if bias is None else made + dt.reshape(bias, (-1, *(1,) * (x.ndim - 2)))
    x, weight = arrays_of((x, weight))
    g = Geometry(node, x.shape[2:], [int(k) for k in weight.shape[2:]])
    return convolution(g, x, weight, bias, node.get("group", 1))


def convolution(g: Geometry, x: Any, weight: Any, bias: Any, groups: int) -> Any:
    if g.n in _CONV:
        padding = [before for before, _ in g.pads] if g.symmetric else g.pads
        return _CONV[g.n](x, weight, bias, g.strides, padding, g.dilations, groups)
    x = padded(x, [(0, 0), (0, 0), *g.pads])
    windows = _op("sliding_window")(x, g.kernel, stride=g.strides, dilation=g.dilations)
    places, taps = windows.shape[2 : g.n + 2], prod(g.kernel)
    n, c, o = x.shape[0], x.shape[1] // groups, weight.shape[0]
    windows = dt.reshape(windows, (n, groups, c, prod(places), taps))
    windows = dt.reshape(dt.permute_dims(windows, (0, 1, 2, 4, 3)), (n, groups, c * taps, prod(places)))
    made = dt.matmul(dt.reshape(weight, (groups, o // groups, c * taps)), windows)
    made = dt.reshape(made, (n, o, *places))
    return made if bias is None else made + dt.reshape(bias, (-1, *(1,) * g.n))


@onnx_op("ConvTranspose", may_grow=True)
def conv_transpose(node: Node, x: Any, weight: Any, bias: Any = None) -> Any:
    n = x.ndim - 2
    if n not in _TRANSPOSED:
        raise NotImplementedError(f"ConvTranspose of {n} spatial axes; export the model with 1 to 3")
    g = Geometry(node.like("Conv", {k: v for k, v in node.attributes.items() if k != "auto_pad"}), x.shape[2:],
                 [int(k) for k in weight.shape[2:]])  # fmt: skip
    more = list(node.get("output_padding") or [0] * n)
    full = [s * (m - 1) + (k - 1) * d + 1 for s, m, k, d in zip(g.strides, g.sizes, g.kernel, g.dilations)]
    pads = _transposed_pads(node, g, full, more)
    made = _TRANSPOSED[n](x, weight, bias, g.strides, 0, 0, node.get("group", 1), g.dilations)
    crop = [(0, 0), (0, 0), *((-before, behind - after) for (before, after), behind in zip(pads, more))]
    if all(type(v) is int and v == 0 for pair in crop for v in pair):
        return made
    if bias is None or all(behind == 0 for behind in more):
        return padded(made, crop)
    made = padded(_TRANSPOSED[n](x, weight, None, g.strides, 0, 0, node.get("group", 1), g.dilations), crop)
    return made + dt.reshape(bias, (-1, *(1,) * n))


def _transposed_pads(node: Node, g: Geometry, full: list[Any], more: list[int]) -> Pairs:
    auto, wanted = node.get("auto_pad", "NOTSET"), node.get("output_shape")
    if wanted is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [m * s for m, s in zip(g.sizes, g.strides)]
    if wanted is None:
        return g.pads
    pads = []
    for size, behind, m in zip(full, more, list(wanted)[-g.n :]):
        total = size + behind - m
        half = total // 2
        pads.append((half, total - half) if auto == "SAME_UPPER" else (total - half, half))
    return pads


@onnx_op("DeformConv")
def deform_conv(node: Node, x: Any, weight: Any, offset: Any, bias: Any = None, mask: Any = None) -> Any:
    """Taps of each window at places of their own: x is sampled there, and a product joins the taps."""
    kernel = list(node.get("kernel_shape") or [int(k) for k in weight.shape[2:]])
    if len(kernel) != 2:
        raise NotImplementedError(f"DeformConv of {len(kernel)} spatial axes; export the model with 2")
    g = Geometry(node, x.shape[2:], kernel)
    groups, shares = node.get("group", 1), node.get("offset_group", 1)
    (n, c), (h, w), taps = x.shape[:2], g.places, prod(kernel)
    offset = dt.reshape(offset, (n, shares, taps, 2, h, w))
    rows = dt.reshape(dt.arange(h), (h, 1)) * g.strides[0] - g.pads[0][0]
    columns = dt.reshape(dt.arange(w), (1, w)) * g.strides[1] - g.pads[1][0]
    tap_rows = constant(np.repeat(np.arange(kernel[0]) * g.dilations[0], kernel[1]).reshape(-1, 1, 1))
    tap_columns = constant(np.tile(np.arange(kernel[1]) * g.dilations[1], kernel[0]).reshape(-1, 1, 1))
    y = offset[:, :, :, 0] + dt.astype(rows + tap_rows, offset.dtype)
    z = offset[:, :, :, 1] + dt.astype(columns + tap_columns, offset.dtype)
    sampled = _sampled(dt.reshape(x, (n * shares, c // shares, *x.shape[2:])), y, z, n * shares)
    sampled = dt.reshape(sampled, (n, shares, c // shares, taps, h * w))
    if mask is not None:
        sampled = sampled * dt.reshape(mask, (n, shares, 1, taps, h * w))
    columns_ = dt.reshape(sampled, (n, groups, c // groups * taps, h * w))
    o = weight.shape[0]
    made = dt.matmul(dt.reshape(weight, (groups, o // groups, c // groups * taps)), columns_)
    made = dt.reshape(made, (n, o, h, w))
    return made if bias is None else made + dt.reshape(bias, (-1, 1, 1))


def _sampled(x: Any, y: Any, z: Any, n: Any) -> Any:
    """Images x (n, C, H, W) at rows y and columns z, bilinear, 0 beyond the image: (n, C, points)."""
    h, w = x.shape[2:]
    y, z = dt.reshape(y, (n, -1)), dt.reshape(z, (n, -1))
    flat = dt.reshape(x, (n, x.shape[1], h * w))
    taps = []
    for row, column in product((0.0, 1.0), repeat=2):
        top, left = dt.floor(y), dt.floor(z)
        weight = (y - top if row else 1.0 - (y - top)) * (z - left if column else 1.0 - (z - left))
        i, j = top + row, left + column
        inside = dt.logical_and(dt.logical_and(i >= 0, i <= h - 1), dt.logical_and(j >= 0, j <= w - 1))
        place = dt.astype(dt.clip(i, 0, h - 1) * w + dt.clip(j, 0, w - 1), "int64")
        found = dt.take_along_axis(flat, dt.expand_dims(place, axis=1), axis=2)
        taps.append(found * dt.expand_dims(dt.where(inside, weight, 0.0), axis=1))
    return fold(dt.add, taps)


# ---- pools -------------------------------------------------------------------------------------------------------


def _fits(g: Geometry) -> bool:
    """Whether the padding is at most half of a window, as nn's pools want it."""
    return all(isinstance(p, int) and 0 <= p <= k // 2 for pair, k in zip(g.pads, g.kernel) for p in pair)


def _least(x: Any) -> Any:
    return -math.inf if is_float(x) else int(dt.iinfo(x.dtype).min)


@onnx_op("MaxPool")
def max_pool(node: Node, x: Any) -> Any:
    g = Geometry(node, x.shape[2:], list(node.get("kernel_shape")))
    wants = node.wants(1)
    if g.n in _MAX_POOL and _fits(g):
        made = _MAX_POOL[g.n](x, g.kernel, g.strides, g.pads, g.dilations, g.ceil, wants)
        return (made[0], _overall(node, x, made[1])) if wants else made
    y = padded(
        x, [(0, 0), (0, 0), *((b, a + more) for (b, a), more in zip(g.pads, g.beyond))], "constant", _least(x)
    )
    windows = _op("sliding_window")(y, g.kernel, stride=g.strides, dilation=g.dilations)
    windows = dt.reshape(windows, (*windows.shape[: g.n + 2], prod(g.kernel)))
    if not wants:
        return dt.max(windows, axis=-1)
    return dt.max(windows, axis=-1), _overall(node, x, _positions(g, dt.argmax(windows, axis=-1)))


def _positions(g: Geometry, tap: Any) -> Any:
    """The place in the spatial axes, as one, of a tap of each window."""
    place = None
    for i in range(g.n):
        below = prod(g.kernel[i + 1 :])
        here = dt.remainder(dt.floor_divide(tap, below), g.kernel[i]) * g.dilations[i]
        first = dt.arange(tap.shape[2 + i]) * g.strides[i] - g.pads[i][0]
        here = here + dt.reshape(first, (-1, *(1,) * (g.n - 1 - i)))
        place = here if place is None else place * g.sizes[i] + here
    return place


def _overall(node: Node, x: Any, place: Any) -> Any:
    """Places in all of x, from those in its spatial axes; column-major ones with storage_order."""
    sizes = x.shape[2:]
    if node.get("storage_order", 0):
        left, found, step = place, None, prod(sizes)
        for i in range(len(sizes)):
            step = prod(sizes[i + 1 :])
            here = dt.floor_divide(left, step)
            left = left - here * step
            here = here * prod(sizes[:i])
            found = here if found is None else found + here
        place = found
    images = dt.reshape(dt.arange(x.shape[0] * x.shape[1]), (*x.shape[:2], *(1,) * len(sizes)))
    return place + images * prod(sizes)


def _counts(g: Geometry, include: bool, dtype: Any) -> Any:
    """How many elements of each window are x's, or x's and the padding's."""
    made = None
    for i in range(g.n):
        (before, after), n = g.pads[i], g.sizes[i]
        low, high = (-before, n + after) if include else (0, n)
        first = dt.arange(g.places[i]) * g.strides[i] - before
        taps = dt.reshape(first, (-1, 1)) + dt.arange(g.kernel[i]) * g.dilations[i]
        inside = dt.logical_and(taps >= low, taps < high)
        count = dt.sum(dt.astype(inside, dtype), axis=1)
        count = dt.reshape(count, (-1, *(1,) * (g.n - 1 - i)))
        made = count if made is None else made * count
    return made


def _summed(g: Geometry, x: Any) -> Any:
    """The sum of each window."""
    y = padded(x, [(0, 0), (0, 0), *((b, a + more) for (b, a), more in zip(g.pads, g.beyond))])
    windows = _op("sliding_window")(y, g.kernel, stride=g.strides, dilation=g.dilations)
    return dt.sum(windows, axis=tuple(range(g.n + 2, 2 * g.n + 2)))


@onnx_op("AveragePool")
def average_pool(node: Node, x: Any) -> Any:
    g = Geometry(node, x.shape[2:], list(node.get("kernel_shape")))
    include = bool(node.get("count_include_pad", 0))
    if g.n in _AVG_POOL and _fits(g) and all(d == 1 for d in g.dilations):
        return _AVG_POOL[g.n](x, g.kernel, g.strides, g.pads, g.ceil, include)
    return _summed(g, x) / _counts(g, include, x.dtype)


@onnx_op("LpPool")
def lp_pool(node: Node, x: Any) -> Any:
    kernel = node.get("kernel_shape") or [1] * (x.ndim - 2)
    g, p = Geometry(node, x.shape[2:], list(kernel)), float(node.get("p", 2))
    return dt.pow(_summed(g, dt.pow(dt.abs(x), p)), 1.0 / p)


@onnx_op("GlobalAveragePool")
def global_average_pool(node: Node, x: Any) -> Any:
    return dt.mean(x, axis=tuple(range(2, x.ndim)), keepdims=True)


@onnx_op("GlobalMaxPool")
def global_max_pool(node: Node, x: Any) -> Any:
    return dt.max(x, axis=tuple(range(2, x.ndim)), keepdims=True)


@onnx_op("GlobalLpPool")
def global_lp_pool(node: Node, x: Any) -> Any:
    return dt.linalg.vector_norm(x, axis=tuple(range(2, x.ndim)), keepdims=True, ord=float(node.get("p", 2)))


@onnx_op("MaxUnpool", numbers=(2,), may_grow=True)
def max_unpool(node: Node, x: Any, indices: Any, shape: Any = None) -> Any:
    kernel = node.get("kernel_shape")
    n = len(kernel)
    strides, pads = node.get("strides") or [1] * n, node.get("pads") or [0] * 2 * n
    own = [(m - 1) * s + k - pads[i] - pads[i + n]
           for i, (m, s, k) in enumerate(zip(x.shape[2:], strides, kernel))]  # fmt: skip
    sizes = (*x.shape[:2], *own)
    flat = dt.zeros((prod(sizes),), dtype=x.dtype)
    made = dt.reshape(dt.scatter(flat, dt.reshape(indices, (-1,)), dt.reshape(x, (-1,)), axis=0), sizes)
    if shape is None:
        return made
    return padded(made, [(0, wanted - have) for wanted, have in zip(integers(shape), sizes)])


@onnx_op("Col2Im", numbers=(1, 2), may_grow=True)
def col_to_image(node: Node, x: Any, image: Any, block: Any) -> Any:
    sizes, kernel = integers(image), integers(block)
    g = Geometry(node, tuple(sizes), kernel)
    n, c = x.shape[0], x.shape[1] // prod(kernel)
    full = [m + before + after for m, (before, after) in zip(sizes, g.pads)]
    columns = dt.reshape(x, (n, c, prod(kernel), *g.places))
    spread = []
    for tap, at in enumerate(product(*map(range, kernel))):
        part = dt.zeros((n, c, *full), dtype=x.dtype)
        key = tuple(slice(a * d, a * d + (m - 1) * s + 1, s)
                    for a, d, m, s in zip(at, g.dilations, g.places, g.strides))  # fmt: skip
        part[(*whole(2), *key)] = columns[:, :, tap]
        spread.append(part)
    made = fold(dt.add, spread)
    return made[(*whole(2), *(slice(before, before + m) for (before, _), m in zip(g.pads, sizes)))]
