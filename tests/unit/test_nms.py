"""Non-maximum suppression against its definition."""

import dovetail as dt
import numpy as np
import pytest


def greedy(boxes, scores, threshold):
    kept = []
    for j in np.argsort(-scores, kind="stable"):
        for i in kept:
            low, high = np.maximum(boxes[i, :2], boxes[j, :2]), np.minimum(boxes[i, 2:], boxes[j, 2:])
            both = np.prod(np.maximum(high - low, 0))
            areas = [np.prod(boxes[k, 2:] - boxes[k, :2]) for k in (i, j)]
            if both > threshold * (sum(areas) - both):
                break
        else:
            kept.append(j)
    return kept


@pytest.mark.parametrize("n", [0, 1, 2, 60, 200])
@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.9])
def test_nms(n, threshold):
    rng = np.random.default_rng(n)
    corner = rng.integers(0, 20, (n, 2))
    boxes = np.concatenate([corner, corner + rng.integers(0, 12, (n, 2))], axis=1).astype("float32")
    scores = rng.integers(0, 30, n).astype("float32")
    found = dt.nn.nms(dt.asarray(boxes), dt.asarray(scores), threshold)
    assert found.dtype == "int64" and found.tolist() == greedy(boxes, scores, threshold)


def test_a_dropped_box_drops_none():
    boxes = dt.asarray([[0, 0, 10, 1], [4, 0, 14, 1], [8, 0, 18, 1], [0, 0, 10, 1]])
    assert dt.nn.nms(boxes, dt.asarray([0.9, 0.8, 0.7, 0.1]), 0.3).tolist() == [0, 2]


def test_mistakes():
    with pytest.raises(ValueError, match=r"\(3, 4\) and scores of shape \(2,\): expected \(n, 4\) and \(n,\)"):
        dt.nn.nms(dt.zeros((3, 4)), dt.zeros(2), 0.5)
    with pytest.raises(TypeError, match="outside of the program"):
        dt.compile(lambda b, s: dt.nn.nms(b, s, 0.5))(dt.zeros((3, 4)), dt.zeros(3))
