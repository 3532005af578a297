"""Boxes and regions: NonMaxSuppression, RoiAlign, MaxRoiPool, GridSample."""

from __future__ import annotations

from typing import Any

import numpy as np

import dovetail as dt
from dovetail import nn
from dovetail.onnx.elementwise import fold
from dovetail.onnx.registry import Node, onnx_op
from dovetail.onnx.values import constant, elements, expect_known, integer, integers, scalar

_SAMPLING = {"linear": "bilinear", "bilinear": "bilinear", "nearest": "nearest", "cubic": "bicubic",
             "bicubic": "bicubic"}  # fmt: skip


@onnx_op("GridSample")
def grid_sample(node: Node, x: Any, grid: Any) -> Any:
    mode, padding = _SAMPLING[node.get("mode", "linear")], node.get("padding_mode", "zeros")
    align = bool(node.get("align_corners", 0))
    if x.ndim in (4, 5) and not (x.ndim == 5 and mode == "bicubic"):
        return dt.astype(nn.grid_sample(x, grid, mode, padding, align), x.dtype)
    raise NotImplementedError(f"GridSample {mode} of {x.ndim - 2} spatial axes; export it with images or volumes")


@onnx_op("NonMaxSuppression", numbers=(2, 3, 4))
def non_max_suppression(
    node: Node, boxes: Any, scores: Any, most: Any = None, overlap: Any = None, threshold: Any = None
) -> Any:
    """Of each batch and class the boxes that overlap none of a higher score: rows (batch, class, box)."""
    expect_known(boxes, "the size of its result depends on elements")
    expect_known(scores, "the size of its result depends on elements")
    limit = int(integer(most)) if most is not None and most.size else 0
    share = float(scalar(overlap)) if overlap is not None and overlap.size else 0.0
    least = float(scalar(threshold)) if threshold is not None and threshold.size else None
    corners = _corners(node, boxes)
    found: list[tuple[int, int, int]] = []
    for b, c in np.ndindex(*(int(n) for n in scores.shape[:2])) if limit > 0 else ():
        chosen = scores[b, c]
        places = None
        if least is not None:
            places = dt.nonzero(chosen > least)[0]
            chosen = dt.take(chosen, places, axis=0)
        kept = nn.nms(corners[b] if places is None else dt.take(corners[b], places, axis=0), chosen, share)[:limit]
        kept = kept if places is None else dt.take(places, kept, axis=0)
        found += [(b, c, i) for i in elements(kept)]
    return constant(np.array(found, np.int64).reshape(-1, 3))


def _corners(node: Node, boxes: Any) -> Any:
    """Boxes (batch, n, 4) as x1, y1, x2, y2 with the smaller ones first."""
    a, b, c, d = (boxes[..., i] for i in range(4))
    if node.get("center_point_box", 0):
        return dt.stack([a - c / 2, b - d / 2, a + c / 2, b + d / 2], axis=-1)
    return dt.stack([dt.minimum(b, d), dt.minimum(a, c), dt.maximum(b, d), dt.maximum(a, c)], axis=-1)


# ---- regions -----------------------------------------------------------------------------------------------------


@onnx_op("RoiAlign")
def roi_align(node: Node, x: Any, rois: Any, batch: Any) -> Any:
    expect_known(rois, "the number of its samples depends on the regions")
    expect_known(batch, "the number of its samples depends on the regions")
    height, width = node.get("output_height", 1), node.get("output_width", 1)
    scale, ratio = node.get("spatial_scale", 1.0), node.get("sampling_ratio", 0)
    half = node.get("coordinate_transformation_mode", "half_pixel" if node.opset >= 16 else "output_half_pixel")
    shift = 0.5 if half == "half_pixel" else 0.0
    made = []
    for (x1, y1, x2, y2), b in zip(np.asarray(rois).astype(np.float64) * scale - shift, elements(batch)):
        least = 0.0 if shift else 1.0
        high, wide = max(y2 - y1, least) / height, max(x2 - x1, least) / width
        rows = _samples(y1, high, height, ratio)
        columns = _samples(x1, wide, width, ratio)
        made.append(_region(x[int(b)], rows, columns, height, width, node.get("mode", "avg")))
    if not made:
        return dt.zeros((0, x.shape[1], height, width), dtype=x.dtype)
    return dt.stack(made, axis=0)


def _samples(start: float, size: float, parts: int, ratio: int) -> Any:
    """Places of samples in each part."""
    n = ratio if ratio > 0 else max(int(np.ceil(size)), 1)
    return (start + (np.arange(parts)[:, None] + (np.arange(n) + 0.5) / n) * size).reshape(-1)


def _taps(places: Any, n: int) -> tuple[Any, Any]:
    """Of each place its two neighbours and their weights, as (2, places); 0 beyond the image."""
    inside = (places >= -1) & (places <= n)
    place = np.clip(places, 0, None)
    low = np.minimum(place.astype(np.int64), n - 1)
    place = np.where(low >= n - 1, n - 1, place)
    high = np.minimum(low + 1, n - 1)
    share = place - low
    return np.stack([low, high]), np.stack([(1 - share) * inside, share * inside])


def _region(image: Any, rows: Any, columns: Any, height: int, width: int, mode: str) -> Any:
    """A region of an image (C, H, W), from bilinear samples at rows and columns."""
    (at_rows, row_weights), (at_columns, column_weights) = (
        _taps(rows, int(image.shape[1])), _taps(columns, int(image.shape[2]))
    )  # fmt: skip
    corners = []
    for r in range(2):
        line = dt.take(image, constant(at_rows[r]), axis=1)
        for c in range(2):
            weight = constant((row_weights[r][:, None] * column_weights[c][None, :]).astype(image.dtype.name))
            corners.append(dt.take(line, constant(at_columns[c]), axis=2) * weight)
    shape = (image.shape[0], height, len(rows) // height, width, len(columns) // width)
    if mode == "avg":
        return dt.mean(dt.reshape(fold(dt.add, corners), shape), axis=(2, 4))
    return dt.max(dt.reshape(fold(dt.maximum, corners), shape), axis=(2, 4))


@onnx_op("MaxRoiPool")
def max_roi_pool(node: Node, x: Any, rois: Any) -> Any:
    expect_known(rois, "the regions decide which elements it takes")
    height, width = node.get("pooled_shape")
    scale, (h, w) = node.get("spatial_scale", 1.0), (int(n) for n in x.shape[2:])
    made = []
    for b, *ends in np.asarray(rois).tolist():
        x1, y1, x2, y2 = (int(np.floor(v * scale + 0.5)) for v in ends)
        high, wide = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
        parts = []
        for i, j in np.ndindex(height, width):
            top, bottom = (min(max(v + y1, 0), h) for v in (i * high // height, -(-(i + 1) * high // height)))
            left, right = (min(max(v + x1, 0), w) for v in (j * wide // width, -(-(j + 1) * wide // width)))
            region = x[int(b), :, top:bottom, left:right]
            empty = bottom <= top or right <= left
            parts.append(dt.zeros((x.shape[1],), dtype=x.dtype) if empty else dt.max(region, axis=(1, 2)))
        made.append(dt.reshape(dt.stack(parts, axis=1), (x.shape[1], height, width)))
    return dt.stack(made, axis=0)


@onnx_op("AffineGrid", numbers=(1,))
def affine_grid(node: Node, theta: Any, size: Any) -> Any:
    return nn.affine_grid(theta, tuple(integers(size)), bool(node.get("align_corners", 0)))
