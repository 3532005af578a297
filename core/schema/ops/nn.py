"""Layers and losses of neural networks."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .. import dtypes as dt
from ..declare import Index, Ints, Tensor, op
from ..lazy_numpy import np
from ..samples import Sample, draw, given, indices, sample
from ._float import INF
from .activation import gelu, relu
from .logic import not_equal
from .movement import take_along_axis
from .primitives import add, astype, dot_scale, exp, log, matmul, multiply, sqrt, sum_, take, where
from .reduction import count_nonzero, finite_max, mean
from .views import expand_dims, matrix_transpose, reshape, squeeze

NN = {"space": "nn"}


# ---- linear ------------------------------------------------------------------------------------------------------


def _linear(x, weight, bias):
    y = np.matmul(x, weight.T)
    return y if bias is None else y + bias


def _linear_samples() -> Iterator[Sample]:
    yield sample("rows", draw(5, 33), draw(7, 33))
    yield sample("bias", draw(5, 33), draw(7, 33), draw(7))
    yield sample("batch", draw(2, 3, 16), draw(8, 16), draw(8))
    yield sample("vector", draw(16), draw(8, 16), draw(8))
    yield sample("no_rows", draw(0, 16), draw(8, 16))
    yield sample("mismatch", draw(5, 4), draw(7, 3), error=ValueError)
    yield sample("bias_mismatch", draw(5, 4), draw(7, 4), draw(4), error=ValueError)


def _linear_scale(x, weight, bias, like):
    size = _linear(np.abs(x), np.abs(weight), None if bias is None else np.abs(bias))
    return dot_scale(size, x.shape[-1], like)


@op(
    shape="linear",
    dtype="numeric",
    autocast="lower",
    tier="extended",
    tol=2,
    reference=_linear,
    scale=_linear_scale,
    samples=_linear_samples,
    **NN,
)
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x @ weight.T + bias, of a weight (out, in)."""
    y = matmul(x, matrix_transpose(weight))
    return y if bias is None else add(y, bias)


ACTIVATIONS = {"relu": (relu, ()), "gelu": (gelu, ("none",)), "gelu_tanh": (gelu, ("tanh",))}


def _linear_with_activation(x, weight, bias, activation):
    op, form = ACTIVATIONS[activation]
    return op.reference(_linear(x, weight, bias), *form)


def _linear_with_activation_samples() -> Iterator[Sample]:
    for name in ACTIVATIONS:
        yield sample(name, draw(5, 33), draw(7, 33), activation=name)
        yield sample(f"{name}_bias", draw(2, 3, 16), draw(8, 16), draw(8), activation=name)
        yield sample(f"{name}_any", given([INF, math.nan], 2, 1), draw(24, 1, low=1), activation=name)
    yield sample("relu_below", given([-INF], 1, 1), draw(24, 1, low=1), activation="relu")
    yield sample("vector", draw(16), draw(8, 16), draw(8), activation="gelu_tanh")
    yield sample("no_rows", draw(0, 16), draw(8, 16), activation="gelu_tanh")
    yield sample("unknown", draw(5, 4), draw(7, 4), activation="tanh", error=ValueError)
    yield sample("bias_mismatch", draw(5, 4), draw(7, 4), draw(4), activation="relu", error=ValueError)


@op(
    shape="linear",
    dtype="float",
    autocast="lower",
    half="native",  # as linear and the activation one after the other: their fp16 and bf16 kernels are faster
    tol=10,  # 2 of linear, 8 of gelu: no activation makes errors of its operand larger by much
    reference=_linear_with_activation,
    scale=lambda x, weight, bias, activation, like: _linear_scale(x, weight, bias, like),
    samples=_linear_with_activation_samples,
    **NN,
)
def linear_with_activation(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, activation: str) -> Tensor:
    """linear(x, weight, bias), then "relu", "gelu" or "gelu_tanh", which is gelu's form with a tanh.

    gelu_tanh of -inf is -0, or NaN where a library computes x * (1 + tanh(...)) / 2.
    """
    if activation not in ACTIVATIONS:
        known = ", ".join(map(repr, ACTIVATIONS))
        raise ValueError(f"[linear_with_activation] activation: expected one of {known}, got {activation!r}")
    op, form = ACTIVATIONS[activation]
    if x.dtype in dt.FLOAT8:  # there are no kernels for them
        wide = (None if a is None else astype(a, dt.float32) for a in (x, weight, bias))
        return astype(op(linear(*wide), *form), x.dtype)
    return op(linear(x, weight, bias), *form)


def _embedding_samples() -> Iterator[Sample]:
    yield sample("tokens", indices(2, 5, size=30)._replace(low=0), draw(30, 8))
    yield sample("beyond", given([30], dtype=dt.int64), draw(30, 8), error=IndexError)


@op(
    shape="embedding",
    dtype="same",
    tier="extended",
    half="native",
    dtypes=dt.REAL,
    samples=_embedding_samples,
    reference=lambda x, weight: weight[x],
    **NN,
)
def embedding(x: Index, weight: Tensor) -> Tensor:
    """The rows of weight that x names."""
    return take(weight, x, axis=0)


# ---- softmax -----------------------------------------------------------------------------------------------------


def _softmax(x, axis):
    m = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    e = np.exp(x - np.where(np.isinf(m), 0, m))
    return e / np.sum(e, axis=axis, keepdims=True)


def _log_softmax(x, axis):
    m = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    d = x - np.where(np.isinf(m), 0, m)
    return d - np.log(np.sum(np.exp(d), axis=axis, keepdims=True))


def _largest(values, axis):
    """The largest magnitude along axis: what cancels against what."""
    a = np.abs(values)
    return np.max(np.where(np.isfinite(a), a, 0), axis=axis, keepdims=True, initial=0) + np.zeros_like(a)


def _axis_samples() -> Iterator[Sample]:
    yield sample("rows", draw(4, 33))
    yield sample("wide", draw(3, 1000, low=-40, high=40))
    yield sample("axis0", draw(33, 4), axis=0)
    yield sample("middle", draw(2, 17, 3), axis=1)
    yield sample("one", draw(4, 1))
    yield sample("masked", given([0.0, -INF, 1.0, -INF, -INF, 2.0], 2, 3), only=dt.FLOATS)
    yield sample("large", draw(4, 9, low=60000, high=60000.5), only=(dt.float32, dt.float64))
    yield sample("empty", draw(0, 4))
    yield sample("bad_axis", draw(3), axis=1, error=ValueError)


@op(
    shape="along_axis",
    dtype="float",
    autocast="float32",
    tier="extended",
    tol=5,
    reference=_softmax,
    samples=_axis_samples,
    scale=lambda x, axis: _largest(_softmax(x, axis), axis),
    **NN,
)
def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along axis, without overflow. Accurate to the largest result.

    A row of -inf alone gives NaN. A row with inf gives NaN at each inf and 0 elsewhere.
    """
    e = exp(x - finite_max(x, (axis,))) if math.prod(x.shape) else x
    return e / sum_(e, axis=(axis,), keepdims=True)


@op(
    shape="along_axis",
    dtype="float",
    autocast="float32",
    tier="extended",
    tol=4,
    reference=_log_softmax,
    samples=_axis_samples,
    scale=lambda x, axis: np.maximum(_largest(_log_softmax(x, axis), axis), 1),
    **NN,
)
def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """log(softmax(x)), without overflow or underflow; accurate to the largest result."""
    d = x - finite_max(x, (axis,)) if math.prod(x.shape) else x
    return d - log(sum_(exp(d), axis=(axis,), keepdims=True))


# ---- normalisation -----------------------------------------------------------------------------------------------


def _last_axes(ndim, normalized_shape):
    n = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    return tuple(range(ndim - n, ndim))


def affine(y, weight, bias):
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def _layer_norm(x, weight, bias, normalized_shape, eps):
    axes = _last_axes(x.ndim, normalized_shape)
    d = x - np.mean(x, axes, keepdims=True)
    return affine(d / np.sqrt(np.mean(d * d, axes, keepdims=True) + eps), weight, bias)


def _layer_norm_scale(x, weight, bias, normalized_shape, eps):
    """The largest result before the bias is added, and the bias; a far mean costs its share of digits."""
    axes = _last_axes(x.ndim, normalized_shape)
    y = _layer_norm(x, None, None, normalized_shape, eps)
    d = np.sqrt(np.var(x, axes, keepdims=True) + eps)
    size = np.max(np.abs(y), axes, keepdims=True, initial=0) + np.abs(np.mean(x, axes, keepdims=True)) / d
    return affine(size + 0 * y, None if weight is None else np.abs(weight), None if bias is None else np.abs(bias))


def _norm_samples() -> Iterator[Sample]:
    yield sample("rows", draw(4, 65), 65)
    yield sample("weight", draw(4, 65), (65,), draw(65))
    yield sample("two_axes", draw(3, 4, 5), (4, 5), draw(4, 5))
    yield sample("batch", draw(2, 3, 384), 384, draw(384))
    yield sample("eps", draw(4, 9, low=0, high=1e-3), 9, eps=0.125)
    yield sample("far_mean", draw(3, 100, low=99, high=101), 100)
    yield sample("mismatch", draw(4, 5), 4, error=ValueError)


def _layer_norm_samples() -> Iterator[Sample]:
    yield from _norm_samples()
    yield sample("bias", draw(4, 65), 65, draw(65), draw(65))
    yield sample("constant", draw(3, 9, low=2, high=2), 9)


NORM = {"shape": "layer_norm", "dtype": "float", "autocast": "float32", "tier": "extended", "tol": 4, **NN}


@op(**NORM, reference=_layer_norm, scale=_layer_norm_scale, samples=_layer_norm_samples)
def layer_norm(
    x: Tensor, normalized_shape: Ints, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """x with mean 0 and variance 1 over its last axes, which are normalized_shape, times weight plus bias."""
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    d = x - mean(x, axis=axes, keepdims=True)
    y = d / sqrt(mean(d * d, axis=axes, keepdims=True) + eps)
    y = y if weight is None else multiply(y, weight)
    return y if bias is None else add(y, bias)


def _rms_norm(x, weight, normalized_shape, eps, like):
    axes = _last_axes(x.ndim, normalized_shape)
    eps = (dt.float32 if like.itemsize == 2 else like).eps if eps is None else eps
    return affine(x / np.sqrt(np.mean(x * x, axes, keepdims=True) + eps), weight, None)


@op(**NORM, reference=_rms_norm, samples=_norm_samples)
def rms_norm(x: Tensor, normalized_shape: Ints, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """x divided by the root of its mean square over the last axes, times weight.

    eps is that of the dtype by default.
    """
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    y = x / sqrt(mean(x * x, axis=axes, keepdims=True) + eps)
    return y if weight is None else multiply(y, weight)


def channel(v, x):
    return v if v is None else np.reshape(v, (-1, *(1,) * (x.ndim - 2)))


def _batch_norm(x, running_mean, running_var, weight, bias, eps):
    m, v, weight, bias = (channel(p, x) for p in (running_mean, running_var, weight, bias))
    return affine((x - m) / np.sqrt(v + eps), weight, bias)


def _batch_norm_scale(x, running_mean, running_var, weight, bias, eps):
    weight, bias = (p if p is None else np.abs(p) for p in (weight, bias))
    return _batch_norm(np.abs(x), -np.abs(running_mean), running_var, weight, bias, eps)


def _batch_norm_samples() -> Iterator[Sample]:
    channels = draw(5), draw(5, low=0.1, high=4)
    yield sample("images", draw(2, 5, 4, 3), *channels)
    yield sample("affine", draw(2, 5, 4, 3), *channels, draw(5), draw(5))
    yield sample("rows", draw(3, 5), *channels, draw(5), eps=0.5)
    yield sample("mismatch", draw(3, 4), *channels, error=ValueError)


@op(
    shape="batch_norm",
    dtype="float",
    autocast="float32",
    tol=4,
    reference=_batch_norm,
    scale=_batch_norm_scale,
    samples=_batch_norm_samples,
    **NN,
)
def batch_norm(
    x: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias, each of these a vector over the channels, axis 1."""

    def perchannel(v: Tensor) -> Tensor:
        return reshape(v, (v.shape[0], *(1,) * (x.ndim - 2)))

    y = (x - perchannel(running_mean)) / perchannel(sqrt(running_var + eps))
    y = y if weight is None else y * perchannel(weight)
    return y if bias is None else y + perchannel(bias)


# ---- losses ------------------------------------------------------------------------------------------------------


def _class_losses(x, target, ignore_index, label_smoothing):
    axis = 1 if x.ndim > 1 else 0
    logp, keep = _log_softmax(x, axis), target != ignore_index
    classes = np.expand_dims(np.where(keep, target, 0), axis)
    loss = -np.squeeze(np.take_along_axis(logp, classes, axis), axis)
    if label_smoothing:  # 0 * inf is no part of the loss
        loss = (1 - label_smoothing) * loss - label_smoothing * np.mean(logp, axis)
    return np.where(keep, loss, 0), keep


def _reduced(losses, n, reduction):
    return losses if reduction == "none" else np.sum(losses) / (n if reduction == "mean" else 1)


def _cross_entropy(x, target, ignore_index, reduction, label_smoothing):
    losses, keep = _class_losses(x, target, ignore_index, label_smoothing)
    return _reduced(losses, np.sum(keep), reduction)


def _cross_entropy_scale(x, target, ignore_index, reduction, label_smoothing):
    axis = 1 if x.ndim > 1 else 0
    size = np.max(np.abs(_log_softmax(x, axis)), axis=axis) + 1
    return _reduced(size, np.sum(target != ignore_index), reduction)


def _cross_entropy_samples() -> Iterator[Sample]:
    rows = draw(6, 10), indices(6, size=10)._replace(low=0)
    yield sample("mean", *rows)
    yield sample("none", *rows, reduction="none")
    yield sample("sum", *rows, reduction="sum")
    yield sample("smooth", *rows, label_smoothing=0.125)
    yield sample("ignored", draw(4, 3), given([1, -100, 2, -100], dtype=dt.int64))
    yield sample("pixels", draw(2, 5, 3, 4), indices(2, 3, 4, size=5)._replace(low=0), reduction="none")
    yield sample("one", draw(5), given([2], 1, dtype=dt.int64)._replace(shape=()))
    yield sample("unknown", *rows, reduction="other", error=ValueError)
    yield sample("beyond", draw(2, 3), given([0, 3], dtype=dt.int64), error=IndexError)


@op(
    shape="cross_entropy",
    dtype="float",
    autocast="float32",
    tol=6,
    reference=_cross_entropy,
    scale=_cross_entropy_scale,
    samples=_cross_entropy_samples,
    **NN,
)
def cross_entropy(
    x: Tensor, target: Index, *, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0
) -> Tensor:
    """The negative log-likelihood of the classes target under softmax(x), over axis 1 (axis 0 of a vector).

    Targets equal to ignore_index count for nothing. reduction: "none", "mean" or "sum".
    """
    axis = 1 if x.ndim > 1 else 0
    logp, keep = log_softmax(x, axis), not_equal(target, ignore_index)
    classes = expand_dims(where(keep, target, 0), axis=axis)
    loss = -squeeze(take_along_axis(logp, classes, axis=axis), (axis,))
    if label_smoothing:
        loss = loss * (1.0 - label_smoothing) - mean(logp, axis=(axis,)) * label_smoothing
    loss = where(keep, loss, 0.0)
    if reduction == "none":
        return loss
    everywhere = tuple(range(loss.ndim))
    total = sum_(loss, axis=everywhere)
    return total if reduction == "sum" else total / astype(count_nonzero(keep, axis=everywhere), x.dtype)
