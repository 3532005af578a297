"""Normalisation over groups of channels and over a batch in training, and dropout."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .. import dtypes as dt
from ..declare import Raw, Tensor, op
from ..lazy_numpy import np
from ..samples import Sample, draw, sample
from .nn import affine, channel, layer_norm
from .primitives import add, less, multiply, sqrt, where
from .random import CARRY, KEY, philox_words, uniform
from .reduction import mean
from .views import reshape


def per_channel(v: Tensor, ndim: int) -> Tensor:
    """A vector over axis 1 of arrays of ndim axes."""
    return reshape(v, (v.shape[0], *(1,) * (ndim - 2)))


def _scaled(y: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    y = y if weight is None else multiply(y, per_channel(weight, y.ndim))
    return y if bias is None else add(y, per_channel(bias, y.ndim))


def _magnitudes(*values):
    return (None if v is None else np.abs(v) for v in values)


# ---- group_norm --------------------------------------------------------------------------------------------------


def _group_norm(x, weight, bias, num_groups, eps):
    if not x.size:
        return x
    rows = np.reshape(x, (x.shape[0], num_groups, -1))
    d = rows - np.mean(rows, -1, keepdims=True)
    y = d / np.sqrt(np.mean(d * d, -1, keepdims=True) + eps)
    return affine(np.reshape(y, x.shape), channel(weight, x), channel(bias, x))


def _group_norm_scale(x, weight, bias, num_groups, eps):
    """As of layer_norm: the largest result of a group before the bias is added; a far mean costs its digits."""
    if not x.size:
        return np.zeros(x.shape)
    rows = np.reshape(x, (x.shape[0], num_groups, -1))
    y, d = _group_norm(x, None, None, num_groups, eps), np.sqrt(np.var(rows, -1, keepdims=True) + eps)
    size = (
        np.max(np.abs(np.reshape(y, rows.shape)), -1, keepdims=True) + np.abs(np.mean(rows, -1, keepdims=True)) / d
    )
    size = np.reshape(size + 0 * rows, x.shape)
    return affine(size, *_magnitudes(channel(weight, x), channel(bias, x)))


def _group_norm_samples() -> Iterator[Sample]:
    x = draw(2, 6, 5, 3)
    yield sample("images", x, 3)
    yield sample("affine", x, 2, draw(6), draw(6))
    yield sample("weight", x, 6, draw(6))
    yield sample("one_group", x, 1, None, draw(6), eps=0.125)
    yield sample("rows", draw(3, 8), 2)
    yield sample("far_mean", draw(3, 4, 100, low=49, high=51), 2)
    yield sample("no_batch", draw(0, 4, 3), 2)
    yield sample("uneven", x, 4, error=ValueError)
    yield sample("no_groups", x, 0, error=ValueError)
    yield sample("mismatch", x, 2, draw(5), error=ValueError)


NORM = {"dtype": "float", "autocast": "float32", "space": "nn"}


@op(
    shape="group_norm",
    tier="extended",
    tol=5,
    reference=_group_norm,
    scale=_group_norm_scale,
    samples=_group_norm_samples,
    **NORM,
)
def group_norm(
    x: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """x with mean 0 and variance 1 over each of num_groups groups of channels, axis 1, and all axes behind it.

    Then times weight plus bias, vectors over the channels.
    """
    size = math.prod(x.shape[1:]) // num_groups
    y = layer_norm(reshape(x, (x.shape[0] * num_groups, size)), (size,), eps=eps)
    return _scaled(reshape(y, x.shape), weight, bias)


# ---- batch_norm in training --------------------------------------------------------------------------------------


def _over_batch(x):
    return tuple(a for a in range(x.ndim) if a != 1)


def _batch_norm_train(x, weight, bias, eps):
    axes = _over_batch(x)
    if not math.prod(x.shape[a] for a in axes):
        return x, np.full(x.shape[1], np.nan), np.full(x.shape[1], np.nan)
    m, v = np.mean(x, axes, keepdims=True), np.var(x, axes, keepdims=True)
    y = affine((x - m) / np.sqrt(v + eps), channel(weight, x), channel(bias, x))
    return y, np.reshape(m, -1), np.reshape(v, -1)


def _batch_norm_train_scale(x, weight, bias, eps, like):
    """Of the variance: the mean's error counts with its square, also where all elements are equal."""
    axes = _over_batch(x)
    if not x.size:
        return 0.0, 0.0, 0.0
    y, m, v = _batch_norm_train(x, None, None, eps)
    size = np.max(np.abs(y), axes, keepdims=True) + np.abs(channel(m, x)) / np.sqrt(channel(v, x) + eps)
    scale = affine(size + 0 * x, *_magnitudes(channel(weight, x), channel(bias, x)))
    rounding = (dt.float32 if like.itemsize == 2 else like).eps
    return scale, np.mean(np.abs(x), axes), v + np.abs(m) * np.sqrt(v) + rounding * m * m


def _batch_norm_train_samples() -> Iterator[Sample]:
    yield sample("images", draw(2, 5, 4, 3))
    yield sample("affine", draw(2, 5, 4, 3), draw(5), draw(5))
    yield sample("rows", draw(7, 5), draw(5), eps=0.5)
    yield sample("volumes", draw(2, 3, 2, 3, 4), None, draw(3))
    yield sample("mismatch", draw(3, 4), draw(5), error=ValueError)
    yield sample("vector", draw(3), error=ValueError)


@op(
    shape="batch_norm_train",
    n_out=3,
    tier="extended",
    tol=8,
    reference=_batch_norm_train,
    scale=_batch_norm_train_scale,
    samples=_batch_norm_train_samples,
    **NORM,
)
def batch_norm_train(
    x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    """x with mean 0 and variance 1 over all axes but the channels, axis 1, times weight plus bias; mean; variance.

    The mean and the variance, divided by the number of elements, are vectors over the channels of at least float32.
    """
    axes = (0, *range(2, x.ndim))
    m = mean(x, axis=axes, keepdims=True)
    d = x - m
    v = mean(d * d, axis=axes, keepdims=True)
    channels = (x.shape[1],)
    return _scaled(d / sqrt(v + eps), weight, bias), reshape(m, channels), reshape(v, channels)


# ---- dropout -----------------------------------------------------------------------------------------------------


def _dropout(x, key, p):
    drawn = (philox_words(key, x.size) >> np.uint32(8)).astype(np.float64) * 2.0**-24
    return np.where(drawn.reshape(x.shape) < p, 0, x / (1 - p if p < 1 else 1))


def _dropout_samples() -> Iterator[Sample]:
    yield sample("half", draw(40, 30), KEY)
    yield sample("few", draw(40, 30), CARRY, p=0.125)
    yield sample("any_value", draw(1000, low=None), KEY, p=0.5)
    yield sample("none", draw(3, 4), KEY, p=0.0)
    yield sample("all", draw(3, 4), KEY, p=1.0)
    yield sample("scalar", draw(), KEY)
    yield sample("empty", draw(0, 3), KEY)
    yield sample("beyond_one", draw(3), KEY, p=1.5, error=ValueError)
    yield sample("key_of_floats", draw(3), draw(4), error=TypeError)


@op(
    shape="dropout",
    dtype="float",
    tier="extended",
    tol=2,
    reference=_dropout,
    samples=_dropout_samples,
    space="nn",
    private=True,
)
def dropout(x: Tensor, key: Raw, *, p: float = 0.5) -> Tensor:
    """x / (1 - p), but 0 with probability p: where uniform(key, x.shape, float32) is below p."""
    kept = x if p == 0.0 or p == 1.0 else x * (1.0 / (1.0 - p))
    return where(less(uniform(key, x.shape, dt.float32), p), 0.0, kept)
