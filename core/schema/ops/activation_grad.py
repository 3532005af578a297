"""Gradients of activations that are more than a few ops: those of the others are compositions.

Throughout, `grad` is the gradient of some loss by the forward op's result; results are those by its operands.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from .. import dtypes as dt
from ..declare import Tensor, op
from ..lazy_numpy import np
from ..samples import Sample, draw, sample
from ._float import magnitude
from .activation import TANH_CUBIC, TANH_LINEAR, _sigmoid, _tanh_argument
from .primitives import exp, maximum, minimum, multiply, where
from .special import normal_cdf_slope

NN = {"shape": "broadcast", "dtype": "float", "space": "nn", "domain": ((), (-64.0, 64.0))}


def _normal_parts(x):
    """Phi(x) and x * phi(x) of the normal distribution."""
    x = np.clip(x, -60, 60)
    below = 0.5 * np.vectorize(math.erfc, otypes=[np.float64])(-x / math.sqrt(2))
    return below, x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _gated_parts(x, z, slope):
    """sigmoid(z) and x times its derivative, of a z that has this slope."""
    s, rest = _sigmoid(z), _sigmoid(-z)
    return s, np.where(s * rest == 0, 0, x * slope * s * rest)


def _gelu_parts(x, approximate):
    if approximate == "none":
        return _normal_parts(x)
    x = np.clip(x, -60, 60)
    return _gated_parts(x, _tanh_argument(x), TANH_LINEAR + 3 * TANH_CUBIC * x * x)


def _product(parts, grad, like):
    """grad times the sum of parts, which is 0 where that is too small for the dtype of the computation."""
    slope, computed = parts[0] + parts[1], dt.float32 if like.itemsize < 4 else like
    least = np.longdouble(computed.tiny) * computed.eps
    return grad * np.where(np.abs(slope) < least / 2, 0, slope)


def _scale_of(parts, grad, like):
    """The two terms may cancel; what underflows in them grad may make large."""
    return np.abs(grad) * np.maximum(np.abs(parts[0]) + np.abs(parts[1]), 4 * like.tiny)


def _gelu_grad_scale(x, grad, approximate, like):
    """Of the tanh form as of gelu: an exponential of a rounded argument."""
    size = _scale_of(_gelu_parts(x, approximate), grad, like)
    return size * np.maximum(1, np.abs(_tanh_argument(np.clip(x, -25, 25))) / 3) if approximate == "tanh" else size


def _gelu_grad_samples() -> Iterator[Sample]:
    yield sample("tanh", draw(4000, low=-12, high=12), draw(4000), approximate="tanh")
    yield sample("tanh_any", draw(500, low=None), draw(500), approximate="tanh")
    yield sample("unknown", draw(3), draw(3), approximate="other", error=ValueError)


@op(
    **NN,
    tier="extended",
    tol=10,
    reference=lambda x, grad, approximate, like: _product(_gelu_parts(x, approximate), grad, like),
    scale=_gelu_grad_scale,
    samples=_gelu_grad_samples,
)
def gelu_grad(x: Tensor, grad: Tensor, approximate: str = "none") -> Tensor:
    """grad times the derivative of gelu at x: Phi(x) + x * phi(x), or that of the form with a tanh."""
    if approximate == "none":
        return multiply(normal_cdf_slope(x), grad)
    if approximate != "tanh":
        raise ValueError(f"[gelu_grad] approximate: expected 'none' or 'tanh', got {approximate!r}")
    x = minimum(maximum(x, -25.0), 25.0)
    z = x * (TANH_LINEAR + (x * x) * TANH_CUBIC)
    return multiply(_gate_slope(x * (TANH_LINEAR + (x * x) * (3.0 * TANH_CUBIC)), z), grad)


@op(
    **NN,
    tier="extended",
    tol=10,
    reference=lambda x, grad, like: _product(_gated_parts(x, x, 1), grad, like),
    scale=lambda x, grad, like: _scale_of(_gated_parts(x, x, 1), grad, like),
)
def silu_grad(x: Tensor, grad: Tensor) -> Tensor:
    """grad times the derivative of silu at x: sigmoid(x) * (1 + x * (1 - sigmoid(x)))."""
    limit = 1600.0 if x.dtype is dt.float64 else 250.0  # beyond it exp(-abs(x)) * x is 0
    x = minimum(maximum(x, -limit), limit)
    return multiply(_gate_slope(x, x), grad)


def _gate_slope(y: Tensor, z: Tensor) -> Tensor:
    """sigmoid(z) * (1 + y * sigmoid(-z)); exp(-abs(z)) comes as two factors, as in activation.gate."""
    half = exp(magnitude(z) * -0.5)
    r = 1.0 / (1.0 + half * half)
    below = (((1.0 + y * r) * half) * half) * r
    return where(z < 0.0, below, r * (1.0 + ((y * half) * half) * r))
