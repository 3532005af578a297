"""Optimisers and losses of ONNX's training domains."""

from __future__ import annotations

from typing import Any

import dovetail as dt
from dovetail.onnx.registry import Node, onnx_op

_DOMAIN = "ai.onnx.preview.training"


def _groups(xs: tuple[Any, ...], n: int) -> list[tuple[Any, ...]]:
    """Operands come as all x, then all gradients, then all of each state; rows of those that belong together."""
    k = len(xs) // n
    return list(zip(*(xs[i * k : (i + 1) * k] for i in range(n))))


@onnx_op("Momentum", domain=_DOMAIN)
def momentum(node: Node, rate: Any, count: Any, *xs: Any) -> Any:
    alpha, beta, decay = node.get("alpha"), node.get("beta"), node.get("norm_coefficient")
    made = []
    for x, gradient, velocity in _groups(xs, 3):
        gradient = x * decay + gradient
        share = dt.where(count > 0, beta, 1.0)
        velocity = velocity * alpha + dt.astype(share, x.dtype) * gradient
        step = velocity if node.get("mode") == "standard" else gradient + velocity * alpha
        made.append((x - rate * step, velocity))
    return tuple(v for column in zip(*made) for v in column)


@onnx_op("Adagrad", domain=_DOMAIN)
def adagrad(node: Node, rate: Any, count: Any, *xs: Any) -> Any:
    rate = rate / (dt.astype(count, rate.dtype) * node.get("decay_factor", 0.0) + 1.0)
    made = []
    for x, gradient, squares in _groups(xs, 3):
        gradient = x * node.get("norm_coefficient", 0.0) + gradient
        squares = squares + gradient * gradient
        made.append((x - rate * gradient / (dt.sqrt(squares) + node.get("epsilon", 1e-6)), squares))
    return tuple(v for column in zip(*made) for v in column)


@onnx_op("Adam", domain=_DOMAIN)
def adam(node: Node, rate: Any, count: Any, *xs: Any) -> Any:
    alpha, beta, eps = node.get("alpha", 0.9), node.get("beta", 0.999), node.get("epsilon", 1e-6)
    t = dt.astype(count, rate.dtype)
    corrected = rate * dt.sqrt(1.0 - dt.pow(beta, t)) / (1.0 - dt.pow(alpha, t))
    rate = dt.where(count > 0, corrected, rate)
    made = []
    for x, gradient, mean, squares in _groups(xs, 4):
        gradient = x * node.get("norm_coefficient", 0.0) + gradient
        mean = mean * alpha + gradient * (1 - alpha)
        squares = squares * beta + gradient * gradient * (1 - beta)
        y = (x - rate * mean / (dt.sqrt(squares) + eps)) * (1 - node.get("norm_coefficient_post", 0.0))
        made.append((y, mean, squares))
    return tuple(v for column in zip(*made) for v in column)
