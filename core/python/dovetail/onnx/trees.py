"""Ensembles of decision trees: all trees take one step at once, as many as the deepest one has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import dovetail as dt
from dovetail.onnx.ml import labels_of, transformed
from dovetail.onnx.registry import ML, Node, onnx_op
from dovetail.onnx.values import constant, is_float

_COMPARE: dict[int, Callable[[Any, Any], Any]] = {
    0: dt.less_equal, 1: dt.less, 2: dt.greater_equal, 3: dt.greater, 4: dt.equal, 5: dt.not_equal
}  # fmt: skip
_MEMBER, _LEAF = 6, 7
_MODES = {
    "BRANCH_LEQ": 0,
    "BRANCH_LT": 1,
    "BRANCH_GTE": 2,
    "BRANCH_GT": 3,
    "BRANCH_EQ": 4,
    "BRANCH_NEQ": 5,
    "LEAF": 7,
}
_POST = {0: "NONE", 1: "SOFTMAX", 2: "LOGISTIC", 3: "SOFTMAX_ZERO", 4: "PROBIT"}
_AGGREGATES = {"AVERAGE": dt.mean, "SUM": dt.sum, "MIN": dt.min, "MAX": dt.max}
_MOST = 1 << 26  # weights of leaves and targets


class _Trees(NamedTuple):
    """Nodes of all trees in one table; a leaf is its own successor."""

    roots: Any
    features: Any
    modes: Any
    splits: Any
    yes: Any
    no: Any
    missing: Any  # whether NaN goes to `yes`
    weights: Any  # (nodes, targets)
    members: list[Any]  # of nodes with BRANCH_MEMBER, in their order

    def checked(self) -> _Trees:
        """Raises ValueError where a table does not fit."""
        n = len(self.features)
        if any(len(v) != n for v in (self.modes, self.splits, self.yes, self.no, self.missing)):
            raise ValueError("the attributes of its nodes differ in length; export the model again")
        for ids in (self.yes, self.no, self.roots):
            if len(ids) and (ids.min() < 0 or ids.max() >= n):
                raise ValueError(f"it names node {ids.max()} of {n}; export the model again")
        return self

    def depth(self) -> int:
        """The most splits on a way from a root. Raises ValueError for a circle."""
        depth, level = 0, np.unique(self.roots)
        while len(level := level[self.modes[level] != _LEAF]):
            level = np.unique(np.concatenate([self.yes[level], self.no[level]]))
            depth += 1
            if depth > len(self.features):
                raise ValueError("its nodes form a circle; export the model again")
        return depth

    def leaves(self, x: Any) -> Any:
        """The weights (rows, trees, targets) of the leaves that the rows of x reach."""
        yes, no, features, splits, modes, missing = (
            constant(v) for v in (self.yes, self.no, self.features, self.splits, self.modes, self.missing)
        )
        at = dt.broadcast_to(constant(self.roots), (x.shape[0], len(self.roots)))
        present = sorted(set(self.modes.tolist()) - {_LEAF})
        for _ in range(self.depth()):
            value = dt.take_along_axis(x, dt.take(features, at, axis=0), axis=1)
            split, mode = dt.take(splits, at, axis=0), dt.take(modes, at, axis=0)
            holds = dt.zeros(at.shape, dtype="bool")
            for m in present:
                here = self._is_member(at, value) if m == _MEMBER else _COMPARE[m](value, split)
                holds = dt.where(mode == m, here, holds)
            if self.missing.any():
                holds = dt.logical_or(holds, dt.logical_and(dt.isnan(value), dt.take(missing, at, axis=0)))
            at = dt.where(holds, dt.take(yes, at, axis=0), dt.take(no, at, axis=0))
        return dt.take(constant(self.weights), at, axis=0)

    def _is_member(self, at: Any, value: Any) -> Any:
        found = dt.zeros(at.shape, dtype="bool")
        for i, members in zip(np.flatnonzero(self.modes == _MEMBER), self.members):
            known = constant(members[~np.isnan(members)])
            inside = dt.any(dt.equal(dt.expand_dims(value, axis=-1), known), axis=-1)
            found = dt.where(at == int(i), inside, found)
        return found


def _weights(rows: int, targets: int, dtype: Any) -> Any:
    if targets < 1 or rows * targets > _MOST:
        raise ValueError(f"{rows} nodes and {targets} targets, expected at most {_MOST} weights in all")
    return np.zeros((rows, targets), dtype)


# ---- ai.onnx.ml 5 ------------------------------------------------------------------------------------------------


def _joint(node: Node) -> _Trees:
    """The trees of a TreeEnsemble: its leaves are a list of their own, which comes behind the nodes here."""
    source = node.importer.source

    def ints(name: str) -> Any:
        return np.asarray(node.get(name, []), np.int64)

    splits, leaf_weights = source.array(node.get("nodes_splits")), source.array(node.get("leaf_weights"))
    features, targets = ints("nodes_featureids"), ints("leaf_targetids")
    n, k = len(features), len(leaf_weights)
    own = np.arange(n, n + k)
    weights = _weights(n + k, int(node.get("n_targets")), leaf_weights.dtype)
    weights[own, targets] = leaf_weights
    missing = ints("nodes_missing_value_tracks_true")
    missing = missing if len(missing) else np.zeros(n, np.int64)
    modes = source.array(node.get("nodes_modes")).astype(np.int64)
    return _Trees(
        ints("tree_roots"), np.concatenate([features, np.zeros(k, np.int64)]), np.concatenate([modes, [_LEAF] * k]),
        np.concatenate([splits, np.zeros(k, splits.dtype)]),
        np.concatenate([ints("nodes_truenodeids") + ints("nodes_trueleafs") * n, own]),
        np.concatenate([ints("nodes_falsenodeids") + ints("nodes_falseleafs") * n, own]),
        np.concatenate([missing, np.zeros(k, np.int64)]).astype(bool), weights, _members(node),
    ).checked()  # fmt: skip


def _members(node: Node) -> list[Any]:
    """Of each node with BRANCH_MEMBER its set: the attribute has them one after the other, NaN between."""
    t = node.get("membership_values")
    if t is None:
        return []
    flat = node.importer.source.array(t)
    ends = np.flatnonzero(np.isnan(flat))
    return np.split(flat, ends)[: len(ends)]


@onnx_op("TreeEnsemble", domain=ML)
def tree_ensemble(node: Node, x: Any) -> Any:
    how = {0: dt.mean, 1: dt.sum, 2: dt.min, 3: dt.max}[node.get("aggregate_function", 1)]
    return transformed(_POST[node.get("post_transform", 0)], how(_joint(node).leaves(x), axis=1))


# ---- before ------------------------------------------------------------------------------------------------------


def _listed(node: Node, kind: str, targets: int) -> _Trees:
    """The trees of a TreeEnsembleRegressor (kind "target") or TreeEnsembleClassifier ("class")."""

    def ints(name: str) -> Any:
        return np.asarray(node.get(name, []), np.int64)

    def floats(name: str) -> Any:
        t = node.get(f"{name}_as_tensor")
        return node.importer.source.array(t) if t is not None else np.asarray(node.get(name, []), np.float32)

    pairs = list(zip(ints("nodes_treeids").tolist(), ints("nodes_nodeids").tolist()))
    place = {pair: i for i, pair in enumerate(pairs)}
    modes = np.array([_MODES[m] for m in node.get("nodes_modes")], np.int64)
    own = np.arange(len(pairs))

    def successors(name: str) -> Any:
        ids = ints(name).tolist()
        return np.array([i if modes[i] == _LEAF else place[pairs[i][0], ids[i]] for i in own], np.int64)

    values = floats(f"{kind}_weights")
    weights = _weights(len(pairs), targets, values.dtype)
    rows = [place[pair] for pair in zip(ints(f"{kind}_treeids").tolist(), ints(f"{kind}_nodeids").tolist())]
    np.add.at(weights, (np.array(rows, np.int64), ints(f"{kind}_ids")), values)
    first: dict[int, int] = {}
    for i, (tree, _) in enumerate(pairs):
        first.setdefault(tree, i)
    missing = ints("nodes_missing_value_tracks_true")
    return _Trees(
        np.array(list(first.values()), np.int64), ints("nodes_featureids"), modes, floats("nodes_values"),
        successors("nodes_truenodeids"), successors("nodes_falsenodeids"),
        (missing if len(missing) else np.zeros(len(pairs), np.int64)).astype(bool), weights, [],
    ).checked()  # fmt: skip


def _base(node: Node, made: Any) -> Any:
    t = node.get("base_values_as_tensor")
    base = node.importer.source.array(t) if t is not None else node.get("base_values")
    return made if base is None else made + constant(np.asarray(base, made.dtype.name))


def _rows(x: Any) -> Any:
    return x if is_float(x) else dt.astype(x, "float32")


@onnx_op("TreeEnsembleRegressor", domain=ML)
def tree_regressor(node: Node, x: Any) -> Any:
    leaves = _listed(node, "target", int(node.get("n_targets", 1))).leaves(_rows(x))
    made = _base(node, _AGGREGATES[node.get("aggregate_function", "SUM")](leaves, axis=1))
    return dt.astype(transformed(node.get("post_transform", "NONE"), made), "float32")


@onnx_op("TreeEnsembleClassifier", domain=ML)
def tree_classifier(node: Node, x: Any) -> Any:
    labels = node.get("classlabels_strings") or node.get("classlabels_int64s")
    post = node.get("post_transform", "NONE")
    scores = _base(node, dt.sum(_listed(node, "class", len(labels)).leaves(_rows(x)), axis=1))
    scores = dt.astype(scores, "float32")
    if len(set(node.get("class_ids"))) == 1:  # of two classes, the scores of one
        second = scores[:, :1]
        scores = dt.concat([-second if post not in ("NONE", "PROBIT") else 1.0 - second, second], axis=1)
        labels = labels if len(labels) == 2 else [0, *labels]
    scores = transformed(post, scores)
    return labels_of(labels, dt.argmax(scores, axis=-1)), scores
