"""The domain ai.onnx.ml: encoders, scalers, linear models. Support vectors are in svm.py, trees in trees.py."""

from __future__ import annotations

from typing import Any

import numpy as np

import dovetail as dt
from dovetail import nn
from dovetail.onnx.registry import ML, Node, onnx_op
from dovetail.onnx.values import constant, expect_known, is_float, is_strings


def f32(x: Any) -> Any:
    return x if x.dtype.name in ("float32", "float64") else dt.astype(x, "float32")


def _vector(values: Any) -> Any:
    return constant(np.asarray(values, np.float32))


@onnx_op("Binarizer", domain=ML)
def binarizer(node: Node, x: Any) -> Any:
    return dt.astype(x > node.get("threshold", 0.0), x.dtype)


@onnx_op("Scaler", domain=ML)
def scaler(node: Node, x: Any) -> Any:
    return (f32(x) - _vector(node.get("offset", [0.0]))) * _vector(node.get("scale", [1.0]))


@onnx_op("Normalizer", domain=ML)
def normalizer(node: Node, x: Any) -> Any:
    x = f32(x)
    order = {"MAX": float("inf"), "L1": 1.0, "L2": 2.0}[node.get("norm", "MAX")]
    norm = dt.max(x, axis=-1, keepdims=True) if node.get("norm", "MAX") == "MAX" else \
        dt.linalg.vector_norm(x, axis=-1, keepdims=True, ord=order)  # fmt: skip
    return dt.where(norm == 0, x, x / dt.where(norm == 0, 1.0, norm))


@onnx_op("Imputer", domain=ML)
def imputer(node: Node, x: Any) -> Any:
    if is_float(x):
        new, old = node.get("imputed_value_floats"), node.get("replaced_value_float", 0.0)
        missing = dt.isnan(x) if old != old else x == old
        return dt.where(missing, _vector(new), x)
    new, old = node.get("imputed_value_int64s"), node.get("replaced_value_int64", 0)
    return dt.where(x == old, constant(np.asarray(new, np.int64)), x)


@onnx_op("FeatureVectorizer", domain=ML)
def feature_vectorizer(node: Node, *xs: Any) -> Any:
    rows = [f32(x) if x.ndim == 2 else dt.reshape(f32(x), (-1, 1)) for x in xs]
    sizes = node.get("inputdimensions") or [x.shape[1] for x in rows]
    return dt.concat([x[:, :n] for x, n in zip(rows, sizes)], axis=1)


# ---- encoders ----------------------------------------------------------------------------------------------------

_KINDS = {"strings": object, "int64s": np.int64, "floats": np.float32}
_DEFAULTS = {
    "strings": ("default_string", "_Unused"),
    "int64s": ("default_int64", -1),
    "floats": ("default_float", -0.0),
}


def _table(node: Node, which: str) -> Any:
    """The keys or values of a LabelEncoder."""
    if (t := node.get(f"{which}_tensor")) is not None:
        return node.importer.source.array(t).reshape(-1)
    for kind, dtype in _KINDS.items():
        if (found := node.get(f"{which}_{kind}")) is not None:
            return np.array(found, dtype=dtype)
    raise ValueError(f"got no {which}, expected one of {', '.join(f'{which}_{k}' for k in _KINDS)}")


@onnx_op("LabelEncoder", domain=ML, since=2)
def label_encoder(node: Node, x: Any) -> Any:
    expect_known(x, "it looks its elements up in a table")
    keys, values = _table(node, "keys"), _table(node, "values")
    if (t := node.get("default_tensor")) is not None:
        default = node.importer.source.array(t).reshape(-1)[0]
    else:
        kind = next(
            k
            for k, dtype in _KINDS.items()
            if values.dtype == dtype or (k == "floats" and values.dtype.kind == "f")
        )
        default = node.get(*_DEFAULTS[kind])
    return _looked_up(x, keys, values, default)


def _looked_up(x: Any, keys: Any, values: Any, default: Any) -> Any:
    table = dict(zip(keys.tolist(), values.tolist()))
    rows = x if is_strings(x) else np.asarray(x)
    nan = next((v for k, v in table.items() if k != k), default)
    found = [nan if k != k else table.get(k, default) for k in rows.reshape(-1).tolist()]
    return constant(np.array(found, dtype=values.dtype).reshape(rows.shape))


@onnx_op("LabelEncoder", domain=ML, since=1)
def label_encoder_1(node: Node, x: Any) -> Any:
    names = np.array(node.get("classes_strings"), dtype=object)
    return _mapped(node, x, names, np.arange(len(names)))


@onnx_op("CategoryMapper", domain=ML)
def category_mapper(node: Node, x: Any) -> Any:
    return _mapped(node, x, np.array(node.get("cats_strings"), dtype=object), np.array(node.get("cats_int64s")))


def _mapped(node: Node, x: Any, names: Any, numbers: Any) -> Any:
    expect_known(x, "it looks its elements up in a table")
    numbers = numbers.astype(np.int64)
    if is_strings(x):
        return _looked_up(x, names, numbers, node.get("default_int64", -1))
    return _looked_up(x, numbers, names, node.get("default_string", "_Unused"))


@onnx_op("OneHotEncoder", domain=ML)
def one_hot_encoder(node: Node, x: Any) -> Any:
    names, numbers = node.get("cats_strings"), node.get("cats_int64s")
    if is_strings(x):
        return constant((x[..., None] == np.array(names, dtype=object)).astype(np.float32))
    return dt.astype(
        dt.equal(dt.expand_dims(dt.astype(x, "int64"), axis=-1), constant(np.array(numbers))), "float32"
    )


# ---- linear models ----------------------------------------------------------------------------------------------


def transformed(kind: str, scores: Any) -> Any:
    """Scores as post_transform has it."""
    if kind == "SOFTMAX":
        return nn.softmax(scores, axis=-1)
    if kind == "SOFTMAX_ZERO":
        return dt.where(scores == 0, 0.0, nn.softmax(dt.where(scores == 0, -float("inf"), scores), axis=-1))
    if kind == "LOGISTIC":
        return nn.sigmoid(scores)
    if kind == "PROBIT":
        return 1.41421356 * _erf_inverse(scores * 2.0 - 1.0)
    return scores


def _erf_inverse(x: Any) -> Any:
    """By Winitzki's approximation with a = 0.147, which is ONNX's own: "A handy approximation for the error
    function and its inverse", 2008. 0 at -1 and 1.
    """
    inner = (1.0 - x) * (1.0 + x)
    log = dt.log(dt.where(inner > 0, inner, 1.0))
    half = log * 0.5 + 2.0 / (np.pi * 0.147)
    return dt.sign(x) * dt.sqrt(dt.sqrt(half * half - log / 0.147) - half)


@onnx_op("LinearRegressor", domain=ML)
def linear_regressor(node: Node, x: Any) -> Any:
    n = node.get("targets", 1)
    weight = np.asarray(node.get("coefficients"), np.float32).reshape(n, -1)
    bias = node.get("intercepts")
    made = nn.linear(f32(x), constant(weight), None if bias is None else _vector(bias))
    return transformed(node.get("post_transform", "NONE"), made)


@onnx_op("LinearClassifier", domain=ML)
def linear_classifier(node: Node, x: Any) -> Any:
    labels = node.get("classlabels_strings") or node.get("classlabels_ints")
    weight = np.asarray(node.get("coefficients"), np.float32)
    bias = np.asarray(node.get("intercepts") or [0.0], np.float32)
    weight = weight.reshape(len(bias), -1)
    scores = nn.linear(f32(x), constant(weight), constant(bias))
    if len(bias) == 1 and len(labels) == 2:
        scores = dt.concat([-scores, scores], axis=-1)
        if node.get("post_transform", "NONE") == "LOGISTIC":
            scores = nn.sigmoid(scores)
            return labels_of(labels, dt.argmax(scores, axis=-1)), scores
    best = dt.argmax(scores, axis=-1)
    return labels_of(labels, best), transformed(node.get("post_transform", "NONE"), scores)


def labels_of(labels: list[Any], best: Any) -> Any:
    if isinstance(labels[0], str):
        expect_known(best, "its labels are strings, which are on the host")
        return np.array(labels, dtype=object)[np.asarray(best)]
    return dt.take(constant(np.array(labels, np.int64)), best, axis=0)
