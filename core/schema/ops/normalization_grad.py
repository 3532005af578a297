"""Gradients of softmax, of normalisations and of cross_entropy.

Throughout, `grad` is the gradient of some loss by the forward op's result; results are those by its operands. Means
and roots are computed again from x: that is cheaper than two more results of the forward op.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from .. import dtypes as dt
from ..declare import Index, Ints, Tensor, op
from ..lazy_numpy import np
from ..samples import Sample, draw, given, indices, sample
from ._float import const
from .logic import not_equal
from .nn import _last_axes, _softmax, channel, softmax
from .normalization import _over_batch, per_channel
from .primitives import astype, dot_slack, exp, multiply, sqrt, sum_, where
from .reduction import count_nonzero, mean
from .scatter import put_along_axis
from .views import expand_dims

OP = {"dtype": "floats", "autocast": "float32", "space": "nn", "tier": "extended"}


# ---- softmax -----------------------------------------------------------------------------------------------------


def _softmax_grad(y, grad, axis):
    return y * (grad - np.sum(y * grad, axis, keepdims=True))


def _softmax_grad_scale(y, grad, axis):
    terms = np.sum(np.abs(y * grad), axis, keepdims=True) * dot_slack(y.shape[axis])
    return np.abs(y) * (np.abs(grad) + terms)


def _log_softmax_grad(y, grad, axis):
    return grad - np.exp(y) * np.sum(grad, axis, keepdims=True)


def _log_softmax_grad_scale(y, grad, axis):
    terms = np.sum(np.abs(grad), axis, keepdims=True) * dot_slack(y.shape[axis])
    return np.abs(grad) + np.exp(y) * np.maximum(1, np.abs(y) / 2) * terms


def _rows_samples() -> Iterator[Sample]:
    for name, shape, axis in (("rows", (4, 33), -1), ("axis0", (33, 4), 0), ("middle", (2, 17, 3), 1)):
        yield sample(name, draw(*shape, low=-3, high=0), draw(*shape), axis=axis)
    yield sample("wide", draw(3, 1000, low=-8, high=0), draw(3, 1000))
    yield sample("one", draw(4, 1), draw(4, 1))
    yield sample("empty", draw(0, 4), draw(0, 4))
    yield sample("no_terms", draw(4, 0), draw(4, 0))
    yield sample("mismatch", draw(3, 4), draw(4), error=ValueError)
    yield sample("bad_axis", draw(3), draw(3), axis=1, error=ValueError)


ROWS = OP | {"shape": "along_axis", "tol": 4, "samples": _rows_samples}


@op(**ROWS, reference=_softmax_grad, scale=_softmax_grad_scale)
def softmax_grad(y: Tensor, grad: Tensor, axis: int = -1) -> Tensor:
    """y * (grad - sum(y * grad)) along axis, of softmax's result y."""
    return y * (grad - sum_(y * grad, axis=(axis,), keepdims=True))


@op(**ROWS, reference=_log_softmax_grad, scale=_log_softmax_grad_scale)
def log_softmax_grad(y: Tensor, grad: Tensor, axis: int = -1) -> Tensor:
    """grad - exp(y) * sum(grad) along axis, of log_softmax's result y."""
    return grad - exp(y) * sum_(grad, axis=(axis,), keepdims=True)


# ---- normalisation -----------------------------------------------------------------------------------------------


def _normalized(x, axes, eps, centred=True):
    """x normalised over axes, what it was divided by, and how much larger than that the mean was."""
    m = np.mean(x, axes, keepdims=True) if centred else 0
    deviation = np.sqrt(np.mean((x - m) ** 2, axes, keepdims=True) + eps)
    return (x - m) / deviation, deviation, np.abs(m) / deviation


def _norm_grad(x, g, axes, eps, centred=True):
    """The gradient by x of what is normalised over axes, of the gradient g by that."""
    y, deviation, _ = _normalized(x, axes, eps, centred)
    along = g - y * np.mean(g * y, axes, keepdims=True)
    return (along - (np.mean(g, axes, keepdims=True) if centred else 0)) / deviation


def _norm_grad_scale(x, g, axes, eps, centred=True):
    """What cancels: the largest of a row, with a far mean's share."""
    y, deviation, far = _normalized(x, axes, eps, centred)
    g, y = np.abs(g), np.abs(y) + far
    most = [np.max(v, axes, keepdims=True, initial=0) for v in (g, y)]
    return (2 * most[0] + 2 * most[1] * np.mean(g * y, axes, keepdims=True)) / deviation + 0 * x


def _by_weight(grad, y, axes, slack):
    """The gradients by weight and bias, or their scales: sums over the axes that these do not have."""
    terms = slack if slack is None else dot_slack(math.prod(grad.shape[a] for a in axes))
    return [np.sum(v, axes) * (1 if terms is None else terms) for v in (grad * y, grad)]


def _leading(x, normalized_shape):
    return tuple(range(x.ndim - len(_last_axes(x.ndim, normalized_shape))))


def _weighted(grad, weight):
    return grad if weight is None else grad * weight


def _layer_norm_grad(x, grad, weight, normalized_shape, eps):
    axes = _last_axes(x.ndim, normalized_shape)
    y = _normalized(x, axes, eps)[0]
    by_x = _norm_grad(x, _weighted(grad, weight), axes, eps)
    return by_x, *_by_weight(grad, y, _leading(x, normalized_shape), None)


def _layer_norm_grad_scale(x, grad, weight, normalized_shape, eps):
    axes = _last_axes(x.ndim, normalized_shape)
    y, _, far = _normalized(x, axes, eps)
    size = np.max(np.abs(y), axes, keepdims=True, initial=0) + far + 0 * x
    by_x = _norm_grad_scale(x, _weighted(grad, weight), axes, eps)
    return by_x, *_by_weight(np.abs(grad), size, _leading(x, normalized_shape), True)


def _norm_grad_samples() -> Iterator[Sample]:
    yield sample("rows", draw(4, 65), draw(4, 65), 65)
    yield sample("weight", draw(4, 65), draw(4, 65), (65,), draw(65))
    yield sample("two_axes", draw(3, 4, 5), draw(3, 4, 5), (4, 5), draw(4, 5))
    yield sample("one_row", draw(17), draw(17), 17, draw(17))
    yield sample("batch", draw(2, 3, 384), draw(2, 3, 384), 384, draw(384))
    yield sample("many_rows", draw(300, 8), draw(300, 8), 8, draw(8))
    yield sample("eps", draw(4, 9, low=0, high=1e-3), draw(4, 9), 9, eps=0.125)
    yield sample("far_mean", draw(3, 100, low=99, high=101), draw(3, 100), 100)
    yield sample("no_rows", draw(0, 5), draw(0, 5), 5)
    yield sample("mismatch", draw(4, 5), draw(4, 5), 4, error=ValueError)
    yield sample("weight_mismatch", draw(4, 5), draw(4, 5), 5, draw(4), error=ValueError)
    yield sample("grad_mismatch", draw(4, 5), draw(5), 5, error=ValueError)


LAYER_NORM = OP | {"shape": "layer_norm_grad", "tol": 6, "samples": _norm_grad_samples}


def _normalize(d: Tensor, axes: Ints, eps: float) -> tuple[Tensor, Tensor]:
    """d over the root of its mean square, and that root."""
    root = sqrt(mean(d * d, axis=axes, keepdims=True) + eps)
    return d / root, root


def _total(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    return sum_(x, axis=axes) if axes else x


def _axes_of(x: Tensor, normalized_shape: Ints) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes before the normalised ones, and these."""
    first = x.ndim - len(normalized_shape)
    return tuple(range(first)), tuple(range(first, x.ndim))


def _by_x(y: Tensor, root: Tensor, g: Tensor, axes: Ints, centred: bool) -> Tensor:
    if not math.prod(y.shape):
        return g
    along = g - y * mean(g * y, axis=axes, keepdims=True)
    return (along - mean(g, axis=axes, keepdims=True) if centred else along) / root


@op(**LAYER_NORM, n_out=3, reference=_layer_norm_grad, scale=_layer_norm_grad_scale)
def layer_norm_grad(
    x: Tensor, grad: Tensor, normalized_shape: Ints, weight: Tensor | None = None, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of layer_norm(x, normalized_shape, weight, bias, eps) by x, weight and bias.

    Those by weight and bias, of normalized_shape, are sums over the other axes, also where layer_norm had none.
    """
    others, axes = _axes_of(x, normalized_shape)
    y, root = _normalize(x - mean(x, axis=axes, keepdims=True), axes, eps)
    g = grad if weight is None else multiply(grad, weight)
    return _by_x(y, root, g, axes, True), _total(grad * y, others), _total(grad, others)


def _rms_eps(eps, like):
    return (dt.float32 if like.itemsize == 2 else like).eps if eps is None else eps


def _rms_norm_grad(x, grad, weight, normalized_shape, eps, like):
    axes, eps = _last_axes(x.ndim, normalized_shape), _rms_eps(eps, like)
    y = _normalized(x, axes, eps, False)[0]
    by_x = _norm_grad(x, _weighted(grad, weight), axes, eps, False)
    return by_x, _by_weight(grad, y, _leading(x, normalized_shape), None)[0]


def _rms_norm_grad_scale(x, grad, weight, normalized_shape, eps, like):
    axes, eps = _last_axes(x.ndim, normalized_shape), _rms_eps(eps, like)
    y = np.abs(_normalized(x, axes, eps, False)[0])
    by_x = _norm_grad_scale(x, _weighted(grad, weight), axes, eps, False)
    return by_x, _by_weight(np.abs(grad), y, _leading(x, normalized_shape), True)[0]


@op(**LAYER_NORM, n_out=2, reference=_rms_norm_grad, scale=_rms_norm_grad_scale)
def rms_norm_grad(
    x: Tensor, grad: Tensor, normalized_shape: Ints, weight: Tensor | None = None, eps: float | None = None
) -> tuple[Tensor, Tensor]:
    """The gradients of rms_norm(x, normalized_shape, weight, eps) by x and weight.

    That by weight, of normalized_shape, is a sum over the other axes, also where rms_norm had none.
    """
    others, axes = _axes_of(x, normalized_shape)
    y, root = _normalize(x, axes, eps)
    g = grad if weight is None else multiply(grad, weight)
    return _by_x(y, root, g, axes, False), _total(grad * y, others)


def _batch_norm_train_grad(x, grad, weight, eps):
    axes = _over_batch(x)
    y = _normalized(x, axes, eps)[0]
    return _norm_grad(x, _weighted(grad, channel(weight, x)), axes, eps), *_by_weight(grad, y, axes, None)


def _batch_norm_train_grad_scale(x, grad, weight, eps):
    axes = _over_batch(x)
    y, _, far = _normalized(x, axes, eps)
    size = np.max(np.abs(y), axes, keepdims=True, initial=0) + far + 0 * x
    by_x = _norm_grad_scale(x, _weighted(grad, channel(weight, x)), axes, eps)
    return by_x, *_by_weight(np.abs(grad), size, axes, True)


def _batch_norm_train_grad_samples() -> Iterator[Sample]:
    images = draw(2, 5, 4, 3), draw(2, 5, 4, 3)
    yield sample("images", *images)
    yield sample("weight", *images, draw(5))
    yield sample("rows", draw(7, 5), draw(7, 5), draw(5), eps=0.5)
    yield sample("volumes", draw(2, 3, 2, 3, 4), draw(2, 3, 2, 3, 4), draw(3))
    yield sample("no_batch", draw(0, 3, 2), draw(0, 3, 2))
    yield sample("mismatch", draw(3, 4), draw(3, 4), draw(5), error=ValueError)
    yield sample("grad_mismatch", draw(3, 4), draw(4), error=ValueError)
    yield sample("vector", draw(3), draw(3), error=ValueError)


@op(
    **OP,
    shape="batch_norm_train_grad",
    tol=8,
    n_out=3,
    reference=_batch_norm_train_grad,
    scale=_batch_norm_train_grad_scale,
    samples=_batch_norm_train_grad_samples,
)
def batch_norm_train_grad(
    x: Tensor, grad: Tensor, weight: Tensor | None = None, *, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of batch_norm_train(x, weight, bias, eps=eps) by x, weight and bias.

    grad is that by its first result. Those by weight and bias are vectors over the channels, also where
    batch_norm_train had none.
    """
    axes = (0, *range(2, x.ndim))
    y, root = _normalize(x - mean(x, axis=axes, keepdims=True), axes, eps)
    g = grad if weight is None else multiply(grad, per_channel(weight, x.ndim))
    return _by_x(y, root, g, axes, True), _total(grad * y, axes), _total(grad, axes)


# ---- cross_entropy -----------------------------------------------------------------------------------------------


def _cross_entropy_grad(x, target, grad, ignore_index, reduction, label_smoothing):
    axis = 1 if x.ndim > 1 else 0
    keep = target != ignore_index
    classes = np.reshape(np.arange(x.shape[axis]), (-1, *(1,) * (x.ndim - 1 - axis)))
    share = (classes == np.expand_dims(target, axis)) * (1 - label_smoothing) + label_smoothing / x.shape[axis]
    grad = grad / np.sum(keep) if reduction == "mean" else grad
    by_loss = np.expand_dims(np.broadcast_to(grad, target.shape), axis)
    return np.where(np.expand_dims(keep, axis), (_softmax(x, axis) - share) * by_loss, 0)


def _cross_entropy_grad_scale(x, target, grad, ignore_index, reduction, label_smoothing):
    axis = 1 if x.ndim > 1 else 0
    grad = grad / max(1, np.sum(target != ignore_index)) if reduction == "mean" else grad
    return np.expand_dims(np.broadcast_to(np.abs(grad), target.shape), axis) + 0 * x


def _cross_entropy_grad_samples() -> Iterator[Sample]:
    rows, labels = draw(6, 10), indices(6, size=10)._replace(low=0)
    pixels = draw(2, 5, 3, 4), indices(2, 3, 4, size=5)._replace(low=0), draw(2, 3, 4)
    yield sample("mean", rows, labels, draw())
    yield sample("none", rows, labels, draw(6), reduction="none")
    yield sample("sum", rows, labels, draw(), reduction="sum")
    yield sample("smooth", rows, labels, draw(), label_smoothing=0.125)
    yield sample("ignored", draw(4, 3), given([1, -100, 2, -100], dtype=dt.int64), draw())
    yield sample("all_ignored", draw(2, 3), given([-100, -100], dtype=dt.int64), draw())
    yield sample("pixels", *pixels, reduction="none")
    yield sample("one", draw(5), given([2], 1, dtype=dt.int64)._replace(shape=()), draw())
    yield sample("grad_mismatch", rows, labels, draw(6), error=ValueError)
    yield sample("unknown", rows, labels, draw(), reduction="other", error=ValueError)
    yield sample("beyond", draw(2, 3), given([0, 3], dtype=dt.int64), draw(), error=IndexError)


@op(
    **OP,
    shape="cross_entropy_grad",
    tol=6,
    reference=_cross_entropy_grad,
    scale=_cross_entropy_grad_scale,
    samples=_cross_entropy_grad_samples,
)
def cross_entropy_grad(
    x: Tensor,
    target: Index,
    grad: Tensor,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The gradient of cross_entropy(x, target, ...) by x: softmax(x) less the targets' shares, times grad.

    0 where the target is ignore_index.
    """
    axis = 1 if x.ndim > 1 else 0
    keep = not_equal(target, ignore_index)
    classes = expand_dims(where(keep, target, 0), axis=axis)
    p = softmax(x, axis)
    y = put_along_axis(p, classes, const(label_smoothing - 1.0, p), axis=axis, mode="add")
    if label_smoothing:
        y = y - label_smoothing / x.shape[axis]
    if reduction == "mean":
        grad = grad / astype(count_nonzero(keep, axis=tuple(range(keep.ndim))), x.dtype)
    if grad.ndim:
        grad = expand_dims(grad, axis=axis)
    return where(expand_dims(keep, axis=axis), multiply(y, grad), 0.0)
