"""Reading images at any places: grid_sample, and affine_grid, which makes the places."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from dovetail import _core
from dovetail._core import Array
from dovetail._nn_common import counting, expect_float, expect_rank, one_of, rounded, working
from dovetail._nn_resize import cubic_weights

__all__ = ["affine_grid", "grid_sample"]

_op = _core.op_function


def affine_grid(theta: Array, size: Sequence[int], align_corners: bool = False) -> Array:
    """The grid of an affine map, for grid_sample: theta (N, 2, 3) and size (N, C, H, W) give (N, H, W, 2).

    theta (N, 3, 4) and size (N, C, D, H, W) give (N, D, H, W, 3). Raises ValueError for other shapes.
    """
    expect_rank("affine_grid", theta, 3)
    n = len(size) - 2
    if n not in (2, 3) or theta.shape != (size[0], n, n + 1):
        raise ValueError(f"[affine_grid] theta of shape {theta.shape}: got size {tuple(size)}, expected (N, 2, 3) "
                         "and (N, C, H, W), or (N, 3, 4) and (N, C, D, H, W)")  # fmt: skip
    places = size[2:]
    columns = []
    for i in reversed(range(n)):  # x comes first
        m = places[i]
        at = counting(m, theta.dtype, theta.device)
        if align_corners:
            at = at * (2.0 / (m - 1)) - 1.0 if m > 1 else at * 0.0
        else:
            at = (at * 2.0 + 1.0) / m - 1.0
        shape = [1] * n
        shape[i] = m
        columns.append(_op("broadcast_to")(_op("reshape")(at, shape), places))
    columns.append(_op("full")(tuple(places), 1, dtype=theta.dtype, device=theta.device))
    points = _op("reshape")(_op("stack")(columns, axis=-1), (prod(places), n + 1))
    grid = _op("matmul")(points, _op("matrix_transpose")(theta))
    return _op("reshape")(grid, (size[0], *places, n))


def grid_sample(
    x: Array, grid: Array, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
) -> Array:
    """x (N, C, H, W) at the places of a grid (N, h, w, 2), as (N, C, h, w); or with a depth, and a grid of three.

    Places are (x, y) or (x, y, z) from -1 to 1: the centres of the corner elements with align_corners, else their
    outer edges; NaN counts as -1. mode: "bilinear" (also of volumes), "nearest" or, for images, "bicubic".
    padding_mode: what is beyond: "zeros", the "border", or the "reflection". Raises TypeError where x is no float,
    ValueError where shapes do not match.
    """
    expect_rank("grid_sample", x, 4, 5)
    expect_rank("grid_sample", grid, x.ndim)
    expect_float("grid_sample", x)
    one_of("grid_sample", "mode", mode, "bilinear", "nearest", "bicubic")
    one_of("grid_sample", "padding_mode", padding_mode, "zeros", "border", "reflection")
    n = x.ndim - 2
    if grid.shape[0] != x.shape[0] or grid.shape[-1] != n or (mode == "bicubic" and n == 3):
        raise ValueError(
            f"[grid_sample] x of shape {x.shape}, grid of shape {grid.shape}: expected as many in the batch, {n} "
            "numbers on grid's last axis, and images for 'bicubic'"
        )
    wide = working(x)
    grid = _op("astype")(grid, wide.dtype)
    grid = _op("where")(_op("isnan")(grid), -1.0, grid)
    sampler = _Sampler(wide, padding_mode, align_corners)
    points = [_op("reshape")(grid[..., n - 1 - i], (x.shape[0], -1)) for i in range(n)]
    points = [_unnormalised(p, m, align_corners) for p, m in zip(points, x.shape[2:], strict=True)]
    out = getattr(sampler, mode)(points)
    return rounded(_op("reshape")(out, (*x.shape[:2], *grid.shape[1:-1])), x)


def _unnormalised(place: Array, m: int, align_corners: bool) -> Array:
    return (place + 1.0) * ((m - 1) / 2) if align_corners else ((place + 1.0) * m - 1.0) / 2.0


class _Sampler:
    def __init__(self, x: Array, padding_mode: str, align_corners: bool):
        self.sizes = x.shape[2:]
        self.flat = _op("reshape")(x, (*x.shape[:2], prod(self.sizes)))
        self.padding_mode, self.align_corners = padding_mode, align_corners

    def inside(self, place: Array, m: int) -> Array:
        """The place within x that stands for one beyond. With zeros it stays out, but an integer can hold it."""
        if self.padding_mode == "zeros":
            return _op("clip")(place, -4.0, m + 3.0)
        if self.padding_mode == "reflection":
            place = self._reflected(place, m)
        return _op("clip")(place, 0.0, m - 1.0)

    def _reflected(self, place: Array, m: int) -> Array:
        low, span = (0.0, m - 1.0) if self.align_corners else (-0.5, m * 1.0)
        if span == 0:
            return place * 0.0
        place = _op("remainder")(_op("abs")(place - low), 2.0 * span)
        return _op("minimum")(place, 2.0 * span - place) + low

    def at(self, places: list[Array]) -> Array:
        """The elements (N, C, points) at whole places; 0 beyond x."""
        index = beyond = None
        for place, m in zip(places, self.sizes, strict=True):
            out = (place < 0.0) | (place > m - 1.0)
            whole = _op("astype")(_op("clip")(place, 0.0, m - 1.0), "int64")
            index = whole if index is None else index * m + whole
            beyond = out if beyond is None else beyond | out
        found = _op("take_along_axis")(self.flat, _op("expand_dims")(index, axis=1), axis=-1)
        if self.padding_mode != "zeros":
            return found
        return _op("where")(_op("expand_dims")(beyond, axis=1), 0.0, found)

    def nearest(self, points: list[Array]) -> Array:
        inside = [self.inside(p, m) for p, m in zip(points, self.sizes, strict=True)]
        return self.at([_op("round")(p) for p in inside])

    def bilinear(self, points: list[Array]) -> Array:
        inside = [self.inside(p, m) for p, m in zip(points, self.sizes, strict=True)]
        low = [_op("floor")(p) for p in inside]
        weights = [(1.0 - (p - f), p - f) for p, f in zip(inside, low, strict=True)]
        return self._sum([[(f, w[0]), (f + 1.0, w[1])] for f, w in zip(low, weights, strict=True)])

    def bicubic(self, points: list[Array]) -> Array:
        points = [_op("clip")(p, -1e9, 1e9) for p in points]
        low = [_op("floor")(p) for p in points]
        taps = []
        for p, f, m in zip(points, low, self.sizes, strict=True):
            weights = cubic_weights(p - f)
            taps.append([(self.inside(f + (k - 1.0), m), weights[k]) for k in range(4)])
        return self._sum(taps)

    def _sum(self, taps: list[list[tuple[Array, Array]]]) -> Array:
        """The sum over all combinations of a tap (place, weight) of each axis."""
        total = None
        for combination in product(*taps):
            weight = combination[0][1]
            for _, w in combination[1:]:
                weight = weight * w
            part = self.at([place for place, _ in combination]) * _op("expand_dims")(weight, axis=1)
            total = part if total is None else total + part
        return total
