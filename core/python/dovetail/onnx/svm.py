"""Support vector machines of the domain ai.onnx.ml."""

from __future__ import annotations

from typing import Any

import numpy as np

import dovetail as dt
from dovetail import nn
from dovetail.onnx.ml import f32, labels_of, transformed
from dovetail.onnx.registry import ML, Node, onnx_op
from dovetail.onnx.values import constant


@onnx_op("SVMRegressor", domain=ML)
def svm_regressor(node: Node, x: Any) -> Any:
    x = f32(x)
    coefficients, rho = np.asarray(node.get("coefficients"), np.float32), node.get("rho", [0.0])
    n = node.get("n_supports", 0)
    if n:
        vectors = np.asarray(node.get("support_vectors"), np.float32).reshape(n, -1)
        kernel = _kernel(node, x, constant(vectors))
    else:
        kernel = x
    made = dt.matmul(kernel, constant(coefficients.reshape(-1, 1))) + float(rho[0])
    return dt.where(made > 0, 1.0, -1.0) if node.get("one_class", 0) else made


def _kernel(node: Node, x: Any, vectors: Any) -> Any:
    gamma, coef, degree = (*(node.get("kernel_params") or [0.0, 0.0, 3.0]),)
    kind = node.get("kernel_type", "LINEAR")
    if kind == "RBF":
        squares = dt.sum(dt.square(x[:, None, :] - vectors[None, :, :]), axis=-1)
        return dt.exp(squares * -gamma)
    product = dt.matmul(x, dt.matrix_transpose(vectors))
    if kind == "POLY":
        return dt.pow(product * gamma + coef, degree)
    return dt.tanh(product * gamma + coef) if kind == "SIGMOID" else product


@onnx_op("SVMClassifier", domain=ML)
def svm_classifier(node: Node, x: Any) -> Any:
    """Labels (N,), and scores: of each class where there are probabilities or no support vectors, else of each pair
    of classes, of which the first gets a vote where the score is positive and the other one where it is not.
    """
    x, rho = f32(x), np.asarray(node.get("rho", [0.0]), np.float32)
    labels = node.get("classlabels_strings") or node.get("classlabels_ints") or [0]
    counts, flat = node.get("vectors_per_class") or [], np.asarray(node.get("coefficients"), np.float32)
    n, n_vectors = len(labels), sum(counts)
    if not n_vectors:
        scores = votes = nn.linear(x, constant(flat.reshape(n, -1))) + float(rho[0])
    else:
        vectors = np.asarray(node.get("support_vectors"), np.float32).reshape(n_vectors, -1)
        kernel = _kernel(node, x, constant(vectors))
        pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
        scores = dt.matmul(kernel, constant(_of_pairs(flat.reshape(-1, n_vectors), counts, pairs)))
        scores = scores + constant(rho[: len(pairs)])
        ends = np.array([[i == k for k in range(n)] for i, _ in pairs], np.float32)
        others = np.array([[j == k for k in range(n)] for _, j in pairs], np.float32)
        first = dt.astype(scores > 0, x.dtype)
        votes = dt.matmul(first, constant(ends)) + dt.matmul(1.0 - first, constant(others))
    if n_vectors and node.get("prob_a"):
        scores = _probabilities(scores, pairs, n, node.get("prob_a"), node.get("prob_b"))
    best = dt.argmax(votes, axis=-1)
    if not n_vectors and n == 2 and len(rho) == 1 and flat.min() >= 0:  # as onnxruntime and onnx.reference have it
        best = dt.where(dt.max(votes, axis=-1) >= 0.5, 1, best)
    if scores.shape[-1] == 1:
        scores = dt.concat([-scores, scores], axis=-1)
    return labels_of(labels, best), transformed(node.get("post_transform", "NONE"), scores)


def _of_pairs(coefficients: np.ndarray, counts: list[int], pairs: list[tuple[int, int]]) -> np.ndarray:
    """What each support vector adds to the score of each pair of classes, (vectors, pairs). Row j - 1 of the
    coefficients of class i's vectors is for the pair (i, j), row i of those of class j's too.
    """
    made = np.zeros((sum(counts), len(pairs)), np.float32)
    starts = np.cumsum([0, *counts])
    for p, (i, j) in enumerate(pairs):
        made[starts[i] : starts[i + 1], p] = coefficients[j - 1, starts[i] : starts[i + 1]]
        made[starts[j] : starts[j + 1], p] = coefficients[i, starts[j] : starts[j + 1]]
    return made


def _probabilities(scores: Any, pairs: list[tuple[int, int]], n: int, a: list[float], b: list[float]) -> Any:
    """Of each class, from the probabilities of pairs, which are sigmoids of their scores: the second method of Wu,
    Lin and Weng, "Probability estimates for multi-class classification by pairwise coupling", 2004, with the
    bounds of libsvm for the error and the number of steps. A row whose error is small enough no longer changes.
    """
    slope, shift = (constant(np.asarray(v, np.float32)) for v in (a, b))
    of_first = dt.clip(nn.sigmoid(-(scores * slope + shift)), 1e-7, 1 - 1e-7)
    place = {pair: p for p, pair in enumerate(pairs)}

    def against(i: int, j: int) -> Any:
        """The probability of class i among i and j, (N,)."""
        return of_first[:, place[i, j]] if i < j else 1.0 - of_first[:, place[j, i]]

    rows = []
    for i in range(n):
        squares = sum(against(j, i) ** 2 for j in range(n) if j != i)
        rows.append(dt.stack([squares if j == i else -against(j, i) * against(i, j) for j in range(n)], axis=-1))
    q = dt.stack(rows, axis=-2)  # (N, n, n)

    def step(state: tuple[Any, ...], _: Any) -> tuple[tuple[Any, ...], Any]:
        p, done = state
        products = dt.squeeze(dt.matmul(q, dt.expand_dims(p, axis=-1)), axis=-1)
        total = dt.sum(p * products, axis=-1, keepdims=True)
        done = dt.logical_or(done, dt.max(dt.abs(products - total), axis=-1, keepdims=True) < 0.005 / n)
        new = p
        for t in range(n):
            own = q[:, t, t : t + 1]
            change = (total - products[:, t : t + 1]) / own
            scale = 1.0 / (1.0 + change)
            total = (total + change * (change * own + 2.0 * products[:, t : t + 1])) * scale * scale
            products = (products + change * q[:, t, :]) * scale
            new = dt.concat([new[:, :t], new[:, t : t + 1] + change, new[:, t + 1 :]], axis=-1) * scale
        return (dt.where(done, p, new), done), None

    start = scores[:, :1] * 0.0
    first = (dt.concat([start + 1.0 / n] * n, axis=-1), start > 1.0)
    (p, _), _ = dt.scan(step, first, dt.arange(max(100, n)))
    return p
