"""Activations of neural networks."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .. import dtypes as dt
from ..declare import Tensor, op
from ..lazy_numpy import np
from ..samples import Sample, draw, sample
from ._float import flipped, magnitude
from .arithmetic import clip
from .exponential import expm1, log1p, tanh
from .primitives import ROUNDED, divide, exp, maximum, minimum, multiply, where
from .special import normal_gate

NN = {"shape": "same", "space": "nn"}


@op(**NN, dtype="same_real", reference=lambda x: np.maximum(x, 0))
def relu(x: Tensor) -> Tensor:
    """max(x, 0); NaN stays."""
    return maximum(x, 0)


@op(**NN, dtype="same_real", reference=lambda x: np.clip(x, 0, 6))
def relu6(x: Tensor) -> Tensor:
    """min(max(x, 0), 6); NaN stays."""
    return clip(x, 0, 6)


@op(**NN, dtype="float", tol=1.5, reference=lambda x, negative_slope: np.where(x < 0, x * negative_slope, x))
def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x, times negative_slope below 0."""
    return where(x < 0.0, x * negative_slope, x)


def _elu(x, alpha, scale=1.0):
    return scale * np.where(x > 0, x, alpha * np.expm1(np.where(x > 0, 0, x)))


@op(**NN, dtype="float", tol=6, reference=_elu)
def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x, but alpha * (exp(x) - 1) below 0."""
    below = expm1(x)
    return where(x > 0.0, x, below if alpha == 1.0 else below * alpha)


SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


@op(**NN, dtype="float", tol=6, reference=lambda x: _elu(x, SELU_ALPHA, SELU_SCALE))
def selu(x: Tensor) -> Tensor:
    """elu with the alpha and the scale that keep mean 0 and variance 1."""
    return where(x > 0.0, x * SELU_SCALE, expm1(x) * (SELU_ALPHA * SELU_SCALE))


def _sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def _gated(x, z):
    """x * sigmoid(z), and -0 where x is -inf."""
    return np.where(x == -np.inf, -0.0, x * _sigmoid(z))


@op(**NN, dtype="float", tol=4, reference=_sigmoid)
def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), accurate in its lower tail."""
    e = exp(flipped(magnitude(x)))
    return where(x < 0.0, e, 1.0) / (1.0 + e)


def _softplus(x, beta=1.0):
    return np.logaddexp(x * beta, 0) / beta


def _softplus_samples() -> Iterator[Sample]:
    yield sample("beta", draw(1000, low=None), beta=2.0)
    yield sample("negative_beta", draw(1000), beta=-1.0)


@op(**NN, dtype="float", autocast="float32", tol=5, reference=_softplus, samples=_softplus_samples)
def softplus(x: Tensor, beta: float = 1.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta, right at any size: it needs no threshold."""
    z = x if beta == 1.0 else multiply(x, beta)
    r = log1p(exp(flipped(magnitude(z))))
    r = r if beta == 1.0 else divide(r, beta)
    return r + (maximum if beta > 0 else minimum)(x, 0.0)  # not of z, which may overflow


@op(**NN, dtype="float", autocast="float32", tol=5, reference=lambda x: -_softplus(-x))
def logsigmoid(x: Tensor) -> Tensor:
    """log(sigmoid(x)), right at any size."""
    return flipped(softplus(flipped(x)))


def gate(x: Tensor, z: Tensor) -> Tensor:
    """x * sigmoid(z); exp(-abs(z)) comes as two factors, so that the subnormal tail survives."""
    half = exp(magnitude(z) * -0.5)
    return where(z < 0.0, (x * half) * half, x) / (1.0 + half * half)


def _where_vanished(x: Tensor) -> float:
    """Below it x * exp(x) is 0."""
    return -1600.0 if x.dtype is dt.float64 else -250.0


@op(**NN, dtype="float", tol=7, reference=lambda x: _gated(x, x))
def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x), also called swish; -0 at -inf."""
    return gate(maximum(x, _where_vanished(x)), x)


def _mish(x):
    e = np.exp(-np.abs(x))  # tanh(softplus(x)) = n / (n + 2), n = exp(x) * (exp(x) + 2)
    small, large = e * (e + 2), 1 + 2 * e
    return np.where(x == -np.inf, -0.0, x * np.where(x < 0, small / (small + 2), large / (large + 2 * e * e)))


@op(**NN, dtype="float", tol=7, reference=_mish)
def mish(x: Tensor) -> Tensor:
    """x * tanh(softplus(x)); -0 at -inf."""
    x = maximum(x, _where_vanished(x))
    half = exp(magnitude(x) * -0.5)
    e = half * half
    below = ((x * half) * half) * (e + 2.0) / (e * (e + 2.0) + 2.0)
    large = 1.0 + e * 2.0
    return where(x < 0.0, below, x * (large / (large + e * e * 2.0)))


@op(
    **NN,
    dtype="float",
    tol=2,
    reference=lambda x: np.clip(x / 6 + 0.5, 0, 1),
    scale=lambda x: (np.abs(x) < 4) * 1.0,
)
def hardsigmoid(x: Tensor) -> Tensor:
    """x / 6 + 1/2, within [0, 1]."""
    return clip((x + 3.0) / 6.0, 0.0, 1.0)


@op(
    **NN,
    dtype="float",
    tol=3,
    reference=lambda x: np.where(x <= -3, -0.0, x * np.clip(x / 6 + 0.5, 0, 1)),
    scale=lambda x: (np.abs(x) < 4) * 1.0,
)
def hardswish(x: Tensor) -> Tensor:
    """x * hardsigmoid(x); 0 from -3 downwards."""
    return maximum(x, -3.0) * clip((x + 3.0) / 6.0, 0.0, 1.0)


def _celu(x, alpha):
    return np.where(x > 0, x, alpha * np.expm1(np.where(x > 0, 0, x) / alpha))


def _celu_samples() -> Iterator[Sample]:
    yield sample("alpha", draw(1000, low=None), alpha=2.5)
    yield sample("zero", draw(3), alpha=0.0, error=ValueError)


@op(**NN, dtype="float", tol=6, reference=_celu, samples=_celu_samples)
def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x, but alpha * (exp(x / alpha) - 1) below 0: elu with a slope that is continuous for every alpha."""
    if alpha == 0.0:
        raise ValueError("[celu] alpha: got 0, expected another number; relu is the limit")
    return where(x > 0.0, x, expm1(x if alpha == 1.0 else x / alpha) * alpha)


@op(**NN, dtype="float", tol=2, reference=lambda x: x / (1 + np.abs(x)))
def softsign(x: Tensor) -> Tensor:
    """x / (1 + abs(x))."""
    return x / (magnitude(x) + 1.0)


def _hardtanh_samples() -> Iterator[Sample]:
    yield sample("bounds", draw(1000, low=None), min_val=-0.5, max_val=2.0)


@op(
    **NN,
    dtype="float",
    tol=ROUNDED,  # of the bounds
    reference=lambda x, min_val, max_val: np.minimum(np.maximum(x, min_val), max_val),
    samples=_hardtanh_samples,
)
def hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x within [min_val, max_val]; NaN stays."""
    return clip(x, min_val, max_val)


# ---- activations with a threshold --------------------------------------------------------------------------------


def _shrink_samples() -> Iterator[Sample]:
    yield sample("lambd", draw(1000, low=None), lambd=1.5)
    yield sample("zero", draw(9), lambd=0.0)


@op(
    **NN,
    dtype="float",
    reference=lambda x, lambd: np.where(np.abs(x) <= lambd, 0, x),
    samples=_shrink_samples,
)
def hardshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """x, but 0 within [-lambd, lambd]; NaN stays."""
    return where((x <= lambd) & (x >= -lambd), 0.0, x)


@op(
    **NN,
    dtype="float",
    tol=ROUNDED,
    reference=lambda x, lambd: np.where(np.abs(x) <= lambd, x * 0, x - np.copysign(lambd, x)),
    samples=_shrink_samples,
)
def softshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by lambd, which is not negative, and 0 within [-lambd, lambd]; NaN stays."""
    if lambd < 0.0:
        raise ValueError(f"[softshrink] lambd: got {lambd}, expected at least 0")
    return where(x > lambd, x - lambd, where(x < -lambd, x + lambd, x * 0.0))


@op(**NN, dtype="float", tol=5, reference=lambda x: x - np.tanh(x), scale=np.abs)
def tanhshrink(x: Tensor) -> Tensor:
    """x - tanh(x), accurate to the size of x."""
    return x - tanh(x)


def _threshold_samples() -> Iterator[Sample]:
    yield sample("plain", draw(4, 33), 0.5, -1.0)
    yield sample("any_value", draw(1000, low=None), 1.5, 20.0)
    yield sample("scalar", draw(), 0.0, 3.0)


@op(
    **NN,
    dtype="float",
    tol=ROUNDED,
    reference=lambda x, threshold, value: np.where(x <= threshold, value, x),
    samples=_threshold_samples,
)
def threshold(x: Tensor, threshold: float, value: float) -> Tensor:
    """x where it is above the threshold, else value; NaN stays."""
    return where(x <= threshold, value, x)


# ---- gelu --------------------------------------------------------------------------------------------------------

TANH_LINEAR, TANH_CUBIC = math.sqrt(8 / math.pi), math.sqrt(8 / math.pi) * 0.044715


def _tanh_argument(x):
    return x * (TANH_LINEAR + TANH_CUBIC * x * x)


def _gelu(x, approximate):
    if approximate == "tanh":
        return _gated(x, _tanh_argument(np.clip(x, -99, 99)))
    u = -x.astype(np.longdouble) / np.sqrt(np.longdouble(2))
    near = np.vectorize(math.erfc, otypes=[np.float64])(np.asarray(u, np.float64))
    tail, far = 0, np.maximum(u, 2)
    for k in range(100, 0, -1):  # a continued fraction: rounding u would cost the tail its digits
        tail = k / 2 / (far + tail)
    far = np.exp(-far * far) / (far + tail) / np.sqrt(np.longdouble(math.pi))
    return np.where(x == -np.inf, -0.0, 0.5 * x * np.where(u > 2, far, near))


def _gelu_scale(x, approximate, like):
    """The tanh form's lower tail is exp of a rounded argument, its error grows with that; then exp underflows."""
    if approximate != "tanh":
        return np.zeros_like(x)
    tail = np.abs(_gelu(x, approximate)) * np.maximum(1, np.abs(_tanh_argument(np.clip(x, -25, 0))) / 3)
    return np.maximum(tail, np.abs(np.clip(x, -25, 25)) * like.tiny)


def _gelu_samples() -> Iterator[Sample]:
    yield sample("tanh", draw(4000, low=-12, high=12), approximate="tanh")
    yield sample("tanh_any", draw(500, low=None), approximate="tanh")
    yield sample("unknown", draw(3), approximate="other", error=ValueError)


@op(**NN, dtype="float", tier="extended", tol=8, reference=_gelu, scale=_gelu_scale, samples=_gelu_samples)
def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x * Phi(x) of the normal distribution; approximate="tanh" for the older form with a tanh. -0 at -inf."""
    if approximate == "none":
        return normal_gate(x)
    if approximate != "tanh":
        raise ValueError(f"[gelu] approximate: expected 'none' or 'tanh', got {approximate!r}")
    x = maximum(x, -25.0)
    return gate(x, x * (TANH_LINEAR + (x * x) * TANH_CUBIC))
