"""Reductions, softmax and its like, cumulative sums, the largest elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import dovetail as dt
from dovetail import nn
from dovetail.onnx.registry import Node, onnx_op
from dovetail.onnx.values import integer, integers, is_float, prod


def axes_of(node: Node, x: Any, axes: Any) -> tuple[int, ...] | None:
    """The axes of a reduction, as an attribute or an operand; None: all of them."""
    given = integers(axes) if axes is not None else node.get("axes")
    return tuple(a % x.ndim for a in given) if given else None


def _sum(x: Any, **how: Any) -> Any:
    return dt.sum(x, dtype=x.dtype, **how)


def _prod(x: Any, **how: Any) -> Any:
    return dt.prod(x, dtype=x.dtype, **how)


def _sum_square(x: Any, **how: Any) -> Any:
    return _sum(dt.square(x), **how)


def _l1(x: Any, **how: Any) -> Any:
    return _sum(dt.abs(x), **how)


def _l2(x: Any, **how: Any) -> Any:
    if is_float(x):
        return dt.sqrt(_sum(dt.square(x), **how))
    return dt.sqrt(_sum(dt.square(dt.astype(x, "float64")), **how))


def _log_sum(x: Any, **how: Any) -> Any:
    return dt.log(_sum(x if is_float(x) else dt.astype(x, "float64"), **how))


def _log_sum_exp(x: Any, **how: Any) -> Any:
    return dt.logsumexp(x if is_float(x) else dt.astype(x, "float64"), **how)


def _mean(x: Any, **how: Any) -> Any:
    return dt.mean(x if is_float(x) else dt.astype(x, "float64"), **how)


def _extreme(function: Callable[..., Any], largest: bool) -> Callable[..., Any]:
    """max or min; of nothing the least, or the greatest, of the dtype."""

    def run(x: Any, axis: Any, keepdims: bool) -> Any:
        if x.dtype == "bool":
            return dt.astype(run(dt.astype(x, "uint8"), axis, keepdims), "bool")
        axes = range(x.ndim) if axis is None else axis
        if any(type(x.shape[a]) is int and x.shape[a] == 0 for a in axes):
            shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes]
            return dt.full(tuple(shape), _of_nothing(x, largest), dtype=x.dtype)
        return function(x, axis=axis, keepdims=keepdims)

    return run


def _of_nothing(x: Any, largest: bool) -> Any:
    if is_float(x):
        return -math.inf if largest else math.inf
    limits = dt.iinfo(x.dtype)
    return limits.min if largest else limits.max


_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "ReduceL1": _l1, "ReduceL2": _l2, "ReduceLogSum": _log_sum, "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _extreme(dt.max, True), "ReduceMean": _mean, "ReduceMin": _extreme(dt.min, False),
    "ReduceProd": _prod, "ReduceSum": _sum, "ReduceSumSquare": _sum_square,
}  # fmt: skip
_OF_ONE: dict[str, Callable[[Any], Any]] = {
    "ReduceL1": dt.abs, "ReduceL2": dt.abs, "ReduceLogSum": dt.log, "ReduceSumSquare": dt.square
}  # fmt: skip


def _reduction(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def handler(node: Node, x: Any, axes: Any = None) -> Any:
        chosen = axes_of(node, x, axes)
        if chosen is None and node.get("noop_with_empty_axes", 0):
            return _OF_ONE.get(name, lambda x: x)(x)
        made = function(x, axis=chosen, keepdims=bool(node.get("keepdims", 1)))
        return made if made.dtype == x.dtype else dt.astype(made, x.dtype)

    return handler


for _name, _function in _REDUCTIONS.items():
    onnx_op(_name, numbers=(1,))(_reduction(_name, _function))


@onnx_op("ArgMax", "ArgMin")
def arg_extreme(node: Node, x: Any) -> Any:
    find = dt.argmax if node.op == "ArgMax" else dt.argmin
    axis, keepdims = node.get("axis", 0) % x.ndim, bool(node.get("keepdims", 1))
    if not node.get("select_last_index", 0):
        return find(x, axis=axis, keepdims=keepdims)
    return x.shape[axis] - 1 - find(dt.flip(x, axis=axis), axis=axis, keepdims=keepdims)


def _hardmax(x: Any, axis: int) -> Any:
    best = dt.argmax(x, axis=axis, keepdims=True)
    places = dt.reshape(dt.arange(x.shape[axis]), (-1, *(1,) * (x.ndim - 1 - axis % x.ndim)))
    return dt.astype(dt.equal(best, places), x.dtype)


_ALONG_AXIS: dict[str, Callable[..., Any]] = {
    "Softmax": nn.softmax,
    "LogSoftmax": nn.log_softmax,
    "Hardmax": _hardmax,
}


@onnx_op(*_ALONG_AXIS, since=13)
def along_axis(node: Node, x: Any) -> Any:
    return _ALONG_AXIS[node.op](x, axis=node.get("axis", -1))


@onnx_op(*_ALONG_AXIS, since=1)
def of_rows(node: Node, x: Any) -> Any:
    """Before opset 13: all axes from `axis` on are one."""
    axis = node.get("axis", 1) % max(x.ndim, 1)
    rows = dt.reshape(x, (prod(x.shape[:axis]), prod(x.shape[axis:])))
    return dt.reshape(_ALONG_AXIS[node.op](rows, axis=-1), x.shape)


@onnx_op("CumSum", "CumProd", numbers=(1,))
def cumulative(node: Node, x: Any, axis: Any) -> Any:
    a = integer(axis) % x.ndim
    run = dt.cumulative_sum if node.op == "CumSum" else dt.cumulative_prod
    reverse, exclusive = bool(node.get("reverse", 0)), bool(node.get("exclusive", 0))
    if reverse:
        x = dt.flip(x, axis=a)
    made = run(x, axis=a, dtype=x.dtype, include_initial=exclusive)
    if exclusive:
        made = made[(*(slice(None),) * a, slice(0, x.shape[a]))]
    return dt.flip(made, axis=a) if reverse else made


@onnx_op("TopK", numbers=(1,))
def top_k(node: Node, x: Any, k: Any = None) -> Any:
    count = integer(k) if k is not None else node.get("k")
    return dt.top_k(x, count, axis=node.get("axis", -1), mode="largest" if node.get("largest", 1) else "smallest")


@onnx_op("LpNormalization")
def lp_normalization(node: Node, x: Any) -> Any:
    axis, p = node.get("axis", -1), node.get("p", 2)
    norm = dt.linalg.vector_norm(x, axis=axis, keepdims=True, ord=float(p))
    return dt.where(norm == 0, 0, x / norm)


@onnx_op("MeanVarianceNormalization")
def mean_variance(node: Node, x: Any) -> Any:
    axes = tuple(node.get("axes", [0, 2, 3]))
    return (x - dt.mean(x, axis=axes, keepdims=True)) / (dt.std(x, axis=axes, keepdims=True) + 1e-9)
