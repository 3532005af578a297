"""Resize and Upsample: nearest elements, or a product by a matrix of weights for each axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import dovetail as dt
from dovetail import nn
from dovetail.onnx.registry import Node, onnx_op
from dovetail.onnx.values import constant, elements, integers, is_float
from dovetail.schema.number import Number, value_of

_NN = {1: "linear", 2: "bilinear", 3: "trilinear"}


@onnx_op("Resize", since=11, numbers=(1, 2, 3), may_grow=True)
def resize(node: Node, x: Any, roi: Any = None, scales: Any = None, sizes: Any = None) -> Any:
    return _resized(_Target(node, x, roi, scales, sizes), x)


@onnx_op("Resize", since=10, numbers=(1,), may_grow=True)
def resize_10(node: Node, x: Any, scales: Any) -> Any:
    attributes = {"mode": node.get("mode", "nearest"), "coordinate_transformation_mode": "asymmetric",
                  "nearest_mode": "floor"}  # fmt: skip
    return resize(node.like("Resize", attributes, 11), x, None, scales)


@onnx_op("Upsample", numbers=(1,), may_grow=True)
def upsample(node: Node, x: Any, scales: Any = None) -> Any:
    given = scales if scales is not None else node.get("scales")
    if given is None:
        given = [1.0, 1.0, node.get("height_scale"), node.get("width_scale")]
    mode = {"bilinear": "linear"}.get(node.get("mode", "nearest"), node.get("mode", "nearest"))
    attributes = {"mode": mode, "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return resize(node.like("Resize", attributes, 11), x, None, given)


class _Target:
    """The new size of each axis, its factor, and the region of interest."""

    def __init__(self, node: Node, x: Any, roi: Any, scales: Any, sizes: Any):
        self.mode = {"cubic": "cubic", "linear": "linear"}.get(node.get("mode", "nearest"), "nearest")
        self.transform = node.get("coordinate_transformation_mode", "half_pixel")
        self.nearest = node.get("nearest_mode", "round_prefer_floor")
        self.cubic, self.exclude = node.get("cubic_coeff_a", -0.75), bool(node.get("exclude_outside", 0))
        self.antialias, self.beyond = bool(node.get("antialias", 0)), node.get("extrapolation_value", 0.0)
        axes = [a % x.ndim for a in node.get("axes") or range(x.ndim)]
        self.factors: list[Any] = [1.0] * x.ndim
        self.sizes: list[Any] = list(x.shape)
        self.regions = [(0.0, 1.0)] * x.ndim
        if scales is not None and len(elements(scales)):
            for a, factor in zip(axes, elements(scales)):
                self.factors[a] = factor
                self.sizes[a] = x.shape[a] if _is_one(factor) else math.floor(x.shape[a] * factor)
        else:
            self._by_sizes(node, x, axes, integers(sizes))
        if roi is not None and len(elements(roi)):
            ends = elements(roi)
            for i, a in enumerate(axes):
                self.regions[a] = ends[i], ends[i + len(axes)]

    def _by_sizes(self, node: Node, x: Any, axes: list[int], sizes: list[Any]) -> None:
        policy = node.get("keep_aspect_ratio_policy", "stretch")
        ratios = [m if _same(m, x.shape[a]) else m / x.shape[a] for m, a in zip(sizes, axes)]
        ratios = [1.0 if _same(m, x.shape[a]) else r for r, m, a in zip(ratios, sizes, axes)]
        if policy != "stretch":
            ratio = (min if policy == "not_larger" else max)(ratios)
            ratios = [ratio] * len(axes)
            sizes = [math.floor(x.shape[a] * ratio + 0.5) for a in axes]
        for a, m, ratio in zip(axes, sizes, ratios):
            self.sizes[a], self.factors[a] = m, ratio

    def keeps(self, x: Any, a: int) -> bool:
        """Whether axis a stays as it is."""
        cropped = self.transform == "tf_crop_and_resize" and self.regions[a] != (0.0, 1.0)
        return not cropped and _is_one(self.factors[a]) and _same(self.sizes[a], x.shape[a])


def _is_one(factor: Any) -> bool:
    return not isinstance(factor, Number) and factor == 1.0


def _same(m: Any, n: Any) -> bool:
    if isinstance(m, Number) or isinstance(n, Number):
        return isinstance(m, Number) and isinstance(n, Number) and m.entry == n.entry and m.table is n.table
    return m == n


def _resized(to: _Target, x: Any) -> Any:
    axes = [a for a in range(x.ndim) if not to.keeps(x, a)]
    if not axes:
        return x
    by_nn = _by_nn(to, x, axes)
    if by_nn is not None:
        return by_nn
    y = x if is_float(x) or to.mode == "nearest" else dt.astype(x, "float32")
    outside = None
    for a in axes:
        n, m = int(x.shape[a]), int(to.sizes[a])
        place = _places(to, a, n, m)
        if to.transform == "tf_crop_and_resize":
            out = ((place < 0) | (place > n - 1)).reshape([-1 if d == a else 1 for d in range(x.ndim)])
            outside = out if outside is None else outside | out
        if to.mode == "nearest":
            y = dt.take(y, constant(np.clip(_nearest(to, place), 0, n - 1).astype(np.int64)), axis=a)
        else:
            weights = _matrix(to, place, n, float(value_of(to.factors[a])))
            dtype = "float64" if y.dtype == "float64" else "float32"
            wide = dt.astype(dt.moveaxis(y, a, -1), dtype)
            y = dt.moveaxis(dt.matmul(wide, constant(weights.T.astype(dtype))), -1, a)
    if outside is not None:
        y = dt.where(constant(outside), to.beyond, y)
    return _rounded(y, x)


def _rounded(y: Any, x: Any) -> Any:
    if y.dtype == x.dtype:
        return y
    if not is_float(x):
        limits = dt.iinfo(x.dtype)
        y = dt.clip(dt.round(y), float(limits.min), float(limits.max))
    return dt.astype(y, x.dtype)


def _by_nn(to: _Target, x: Any, axes: list[int]) -> Any:
    """By nn.interpolate where it has the same rule: so a program keeps sizes that are not known."""
    n = x.ndim - 2
    if n not in _NN or any(a < 2 for a in axes) or to.antialias or to.exclude:
        return None
    sizes, factors = to.sizes[2:], to.factors[2:]
    if to.mode == "nearest":
        whole = all(not isinstance(f, Number) and float(f).is_integer() for f in factors)
        halves = to.transform in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric")
        exact = to.transform == "asymmetric" and to.nearest == "floor"
        if whole and (exact or (halves and to.nearest.startswith("round"))):  # no place lies between two elements
            return nn.interpolate(x, size=[m * int(f) for m, f in zip(x.shape[2:], factors)])
        return None
    if not is_float(x) or any(isinstance(v, Number) for v in factors):
        return None
    if to.transform != "half_pixel" or (to.mode == "cubic" and (n != 2 or to.cubic != -0.75)):
        return None
    if any(value_of(m) != value_of(k) * f for m, k, f in zip(sizes, x.shape[2:], factors)):
        return None  # a factor that leaves a fraction
    return nn.interpolate(x, size=list(sizes), mode="bicubic" if to.mode == "cubic" else _NN[n])


def _places(to: _Target, a: int, n: int, m: int) -> Any:
    """Where each of m elements lies among n."""
    i, factor = np.arange(m, dtype=np.float64), float(value_of(to.factors[a]))
    if to.transform == "asymmetric":
        return i / factor
    if to.transform == "align_corners":
        wide = factor * n
        return i * (n - 1) / (wide - 1) if wide > 1 else i * 0
    if to.transform == "pytorch_half_pixel":
        return (i + 0.5) / factor - 0.5 if m > 1 else i * 0
    if to.transform == "half_pixel_symmetric":
        return n / 2 * (1 - m / (factor * n)) + (i + 0.5) / factor - 0.5
    if to.transform == "tf_half_pixel_for_nn":
        return (i + 0.5) / factor
    if to.transform == "tf_crop_and_resize":
        first, last = (float(v) for v in to.regions[a])
        if m > 1:
            return first * (n - 1) + i * (last - first) * (n - 1) / (m - 1)
        return i * 0 + 0.5 * (first + last) * (n - 1)
    return (i + 0.5) / factor - 0.5


def _nearest(to: _Target, place: Any) -> Any:
    return {
        "round_prefer_floor": lambda c: np.ceil(c - 0.5), "round_prefer_ceil": lambda c: np.floor(c + 0.5),
        "floor": np.floor, "ceil": np.ceil,
    }[to.nearest](place)  # fmt: skip


def _kernel(to: _Target, d: Any) -> Any:
    d = np.abs(d)
    if to.mode == "linear":
        return np.maximum(0, 1 - d)
    a = to.cubic
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    return np.where(d <= 1, near, np.where(d < 2, a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a, 0))


def _matrix(to: _Target, places: Any, n: int, factor: float) -> Any:
    """The weights of n elements for each place."""
    shrink = min(factor, 1.0) if to.antialias else 1.0
    reach = (1 if to.mode == "linear" else 2) / shrink
    made = np.zeros((len(places), n))
    for row, place in zip(made, places):
        i = np.arange(math.floor(place - reach), math.ceil(place + reach) + 1)
        weights = _kernel(to, (i - place) * shrink)
        if to.exclude:
            weights = np.where((i < 0) | (i >= n), 0, weights)
        if to.antialias or to.exclude:
            weights = weights / weights.sum()
        np.add.at(row, np.clip(i, 0, n - 1), weights)
    return made
