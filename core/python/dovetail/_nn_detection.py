"""Non-maximum suppression of boxes."""

from __future__ import annotations

from dovetail import _core
from dovetail._array import expect_array, expect_elements
from dovetail._core import Array

__all__ = ["nms"]

_op = _core.op_function


def nms(boxes: Array, scores: Array, /, iou_threshold: float) -> Array:
    """The indices of the boxes to keep, by descending score: int64, as torchvision.ops.nms has them.

    boxes (n, 4): x1, y1, x2, y2 with x1 <= x2, y1 <= y2; scores (n,). Box by box, from the highest score on, those
    that overlap a kept one by more than iou_threshold, the intersection's share of the union, are dropped. Boxes of
    equal scores keep their order. Waits for the device, and needs memory for n * n elements. Raises ValueError for
    other shapes, TypeError in a trace, where the size of the result is not known.
    """
    expect_array("nms", boxes, "boxes")
    expect_array("nms", scores, "scores")
    if boxes.ndim != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise ValueError(
            f"[nms] boxes of shape {boxes.shape} and scores of shape {scores.shape}: expected (n, 4) and (n,)"
        )
    expect_elements("nms", boxes, "call it outside of the program")
    order = _op("argsort")(scores, descending=True)
    if order.size == 0:
        return order
    drops = _drops(_op("take")(boxes, order, axis=0), iou_threshold)
    return order[_kept(drops)]


def _drops(boxes: Array, threshold: float) -> Array:
    """Whether box i, where it is kept, drops the later box j: bool (n, n)."""
    boxes = boxes if "floating" in boxes.dtype.kind else _op("astype")(boxes, "float32")
    low, high = boxes[:, :2], boxes[:, 2:]
    area = _op("prod")(high - low, axis=-1)
    inner_low, inner_high = _op("maximum")(low[:, None], low), _op("minimum")(high[:, None], high)
    both = _op("prod")(_op("maximum")(inner_high - inner_low, 0.0), axis=-1)
    overlaps = both > threshold * (area[:, None] + area - both)
    number = _op("iota")(boxes.shape[0], "int64", device=boxes.device)
    return _op("logical_and")(overlaps, number[:, None] < number)


def _kept(drops: Array) -> Array:
    """Which boxes are kept: those that no kept box before them drops.

    Each round is right for one box more at least, as box 0 is kept, so that the rounds end where nothing changes.
    """
    kept = _op("full")((drops.shape[0],), True, dtype="bool", device=drops.device)
    while True:
        dropped = _op("any")(_op("logical_and")(kept[:, None], drops), axis=0)
        after = _op("logical_not")(dropped)
        if bool(_op("all")(_op("equal")(after, kept))):
            return kept
        kept = after
