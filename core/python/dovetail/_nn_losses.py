"""Losses, named as in torch.nn.functional. reduction is "mean", "sum" or "none" everywhere."""

from __future__ import annotations

import math

from dovetail import _core
from dovetail._array import expect_array
from dovetail._core import Array
from dovetail._nn_common import along, counting, expect_rank, one_of, reduced
from dovetail._nn_layers import cosine_similarity, pairwise_distance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy",
    "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "linear_cross_entropy",
    "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "nll_loss", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]  # fmt: skip

_op = _core.op_function


def _difference(what: str, x: Array, target: Array) -> Array:
    expect_array(what, x)
    expect_array(what, target, "target")
    if x.shape != target.shape:
        raise ValueError(f"[{what}] target: got shape {target.shape}, expected x's {x.shape}")
    return x - target


def mse_loss(x: Array, target: Array, *, reduction: str = "mean") -> Array:
    """(x - target) ** 2. Raises ValueError where shapes differ."""
    return reduced("mse_loss", _op("square")(_difference("mse_loss", x, target)), reduction)


def l1_loss(x: Array, target: Array, *, reduction: str = "mean") -> Array:
    """abs(x - target). Raises ValueError where shapes differ."""
    return reduced("l1_loss", _op("abs")(_difference("l1_loss", x, target)), reduction)


def smooth_l1_loss(x: Array, target: Array, *, reduction: str = "mean", beta: float = 1.0) -> Array:
    """d ** 2 / (2 beta) where d = abs(x - target) is below beta, else d - beta / 2."""
    if beta < 0:
        raise ValueError(f"[smooth_l1_loss] beta: got {beta}, expected at least 0")
    if beta == 0:
        return l1_loss(x, target, reduction=reduction)
    d = _op("abs")(_difference("smooth_l1_loss", x, target))
    losses = _op("where")(d < beta, d * d * (0.5 / beta), d - 0.5 * beta)
    return reduced("smooth_l1_loss", losses, reduction)


def huber_loss(x: Array, target: Array, *, reduction: str = "mean", delta: float = 1.0) -> Array:
    """d ** 2 / 2 where d = abs(x - target) is below delta, else delta * (d - delta / 2)."""
    if delta <= 0:
        raise ValueError(f"[huber_loss] delta: got {delta}, expected more than 0")
    d = _op("abs")(_difference("huber_loss", x, target))
    losses = _op("where")(d < delta, d * d * 0.5, (d - 0.5 * delta) * delta)
    return reduced("huber_loss", losses, reduction)


# ---- probabilities -----------------------------------------------------------------------------------------------


def binary_cross_entropy(x: Array, target: Array, weight: Array | None = None, *, reduction: str = "mean") -> Array:
    """-(target * log(x) + (1 - target) * log(1 - x)) * weight, of probabilities x; logarithms are -100 at least."""
    _difference("binary_cross_entropy", x, target)
    yes, no = (_op("maximum")(v, -100.0) for v in (_op("log")(x), _op("log1p")(-x)))
    losses = (target - 1.0) * no - target * yes
    return reduced("binary_cross_entropy", losses if weight is None else losses * weight, reduction)


def binary_cross_entropy_with_logits(
    x: Array,
    target: Array,
    weight: Array | None = None,
    *,
    reduction: str = "mean",
    pos_weight: Array | None = None,
) -> Array:
    """binary_cross_entropy of sigmoid(x), right at any size; pos_weight is a factor of the loss of target 1."""
    _difference("binary_cross_entropy_with_logits", x, target)
    tail = _op("softplus")(-x)
    if pos_weight is not None:
        tail = tail * ((pos_weight - 1.0) * target + 1.0)
    losses = (1.0 - target) * x + tail
    losses = losses if weight is None else losses * weight
    return reduced("binary_cross_entropy_with_logits", losses, reduction)


def kl_div(x: Array, target: Array, *, reduction: str = "mean", log_target: bool = False) -> Array:
    """target * (log(target) - x), of log-probabilities x; log_target: target has logarithms, too.

    reduction: "batchmean" divides the sum by x's first size, as the Kullback-Leibler divergence is defined.
    """
    _difference("kl_div", x, target)
    if log_target:
        losses = _op("exp")(target) * (target - x)
    else:
        zero = target == 0.0
        losses = _op("where")(zero, 0.0, target * _op("log")(_op("where")(zero, 1.0, target))) - target * x
    if reduction == "batchmean":
        total = _op("sum")(losses)
        return total / x.shape[0] if x.ndim else total
    return reduced("kl_div", losses, reduction)


def nll_loss(
    x: Array, target: Array, weight: Array | None = None, *, ignore_index: int = -100, reduction: str = "mean"
) -> Array:
    """-x[target] * weight[target], of log-probabilities x (N, C, ...) or (C,) and classes target (N, ...) or ().

    Targets equal to ignore_index count for nothing; "mean" divides by the weights of the others. Raises IndexError
    for a class that x has not, ValueError where shapes do not match.
    """
    expect_array("nll_loss", x)
    expect_array("nll_loss", target, "target")
    axis = _class_axis("nll_loss", x, target)
    one_of("nll_loss", "reduction", reduction, "none", "mean", "sum")
    losses, weights = _picked(x, target, weight, axis, ignore_index)
    return _weighted(losses, weights, reduction)


def _class_axis(what: str, x: Array, target: Array) -> int:
    axis = 1 if x.ndim > 1 else 0
    if x.ndim == 0 or target.shape != (*x.shape[:axis], *x.shape[axis + 1 :]):
        raise ValueError(f"[{what}] target of shape {target.shape} for x of shape {x.shape}: expected x's without "
                         "the classes")  # fmt: skip
    return axis


def _picked(x: Array, target: Array, weight: Array | None, axis: int, ignore_index: int) -> tuple[Array, Array]:
    """-x of the target class times its weight, and the weights; both 0 where the target is ignored."""
    keep = target != ignore_index
    classes = _op("where")(keep, target, 0)
    found = _op("take_along_axis")(x, _op("expand_dims")(classes, axis=axis), axis=axis)
    weights = _op("astype")(keep, x.dtype)
    if weight is not None:
        weights = weights * _op("take")(weight, classes, axis=0)
    losses = -_op("squeeze")(found, axis)
    losses = losses if weight is None else losses * weights
    return _op("where")(keep, losses, 0.0), weights


def _weighted(losses: Array, weights: Array, reduction: str) -> Array:
    if reduction == "none":
        return losses
    total = _op("sum")(losses)
    return total if reduction == "sum" else total / _op("sum")(weights)


def cross_entropy(
    x: Array,
    target: Array,
    weight: Array | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Array:
    """The negative log-likelihood of target under softmax(x), over axis 1 (axis 0 of a vector).

    target: classes, integers of x's shape without the class axis; those equal to ignore_index count for nothing. Or
    probabilities of all classes, floats of x's shape. weight: a factor for each class. label_smoothing: this share
    of the target is spread over all classes. reduction: "mean" divides by the targets' weights, of probabilities by
    the number of rows. Raises IndexError for a class that x has not, ValueError where shapes do not match.
    """
    expect_array("cross_entropy", x)
    soft = hasattr(target, "dtype") and getattr(target.dtype, "kind", "") == "real floating"
    if weight is None and not soft:
        return _op("cross_entropy")(
            x, target, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing
        )
    one_of("cross_entropy", "reduction", reduction, "none", "mean", "sum")
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"[cross_entropy] label_smoothing: got {label_smoothing}, expected 0 to 1")
    if soft:
        return _soft_cross_entropy(x, target, weight, reduction, label_smoothing)
    axis = _class_axis("cross_entropy", x, target)
    logp = _op("log_softmax")(x, axis=axis)
    losses, weights = _picked(logp, target, weight, axis, ignore_index)
    if label_smoothing:
        spread = -_op("mean")(logp * along(weight, axis, x.ndim), axis=axis)
        spread = _op("where")(target != ignore_index, spread, 0.0)
        losses = losses * (1.0 - label_smoothing) + spread * label_smoothing
    return _weighted(losses, weights, reduction)


def linear_cross_entropy(
    x: Array,
    linear_weight: Array,
    target: Array,
    *,
    linear_bias: Array | None = None,
    weight: Array | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Array:
    """cross_entropy of linear(x, linear_weight, linear_bias), x (N, E) or (E,), with the arguments of both.

    Raises what they do.
    """
    expect_rank("linear_cross_entropy", x, 1, 2)
    scores = _op("linear")(x, linear_weight, linear_bias)
    how = {"ignore_index": ignore_index, "reduction": reduction, "label_smoothing": label_smoothing}
    return cross_entropy(scores, target, weight, **how)


def _soft_cross_entropy(
    x: Array, target: Array, weight: Array | None, reduction: str, label_smoothing: float
) -> Array:
    if x.shape != target.shape or not x.ndim:
        raise ValueError(f"[cross_entropy] target of probabilities: got shape {target.shape}, expected {x.shape}")
    axis = 1 if x.ndim > 1 else 0
    if label_smoothing:
        target = target * (1.0 - label_smoothing) + label_smoothing / x.shape[axis]
    logp = _op("log_softmax")(x, axis=axis)
    logp = logp if weight is None else logp * along(weight, axis, x.ndim)
    return reduced("cross_entropy", -_op("sum")(logp * target, axis=axis), reduction)


def gaussian_nll_loss(
    x: Array, target: Array, var: Array | float, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Array:
    """(log(var) + (x - target) ** 2 / var) / 2, of variances of at least eps; full adds log(2 pi) / 2.

    var: a number, or an array of x's shape, of its shape with 1 as the last size, or without the last axis.
    """
    d = _difference("gaussian_nll_loss", x, target)
    if getattr(var, "shape", None) == x.shape[:-1] and x.ndim:
        var = _op("expand_dims")(var, axis=-1)
    elif getattr(var, "shape", ()) not in ((), x.shape, (*x.shape[:-1], 1)):
        raise ValueError(
            f"[gaussian_nll_loss] var: got shape {var.shape}, expected {x.shape}, or 1 as the last size"
        )
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError(f"[gaussian_nll_loss] var: got {var}, expected at least 0")
        var = _op("full")((), float(var), dtype=x.dtype, device=x.device)
    var = _op("maximum")(var, eps)
    losses = (_op("log")(var) + d * d / var) * 0.5
    return reduced("gaussian_nll_loss", losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


def poisson_nll_loss(
    x: Array,
    target: Array,
    *,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Array:
    """exp(x) - target * x; without log_input x - target * log(x + eps). full adds Stirling's formula above 1."""
    _difference("poisson_nll_loss", x, target)
    losses = _op("exp")(x) - target * x if log_input else x - target * _op("log")(x + eps)
    if full:
        above = target > 1.0
        t = _op("where")(above, target, 1.0)
        stirling = t * _op("log")(t) - t + _op("log")(t * (2 * math.pi)) * 0.5
        losses = losses + _op("where")(above, stirling, 0.0)
    return reduced("poisson_nll_loss", losses, reduction)


# ---- margins -----------------------------------------------------------------------------------------------------


def _positive(x: Array) -> Array:
    return _op("maximum")(x, 0.0)


def margin_ranking_loss(
    x1: Array, x2: Array, target: Array, *, margin: float = 0.0, reduction: str = "mean"
) -> Array:
    """max(0, -target * (x1 - x2) + margin): target 1 wants x1 to be larger, -1 x2."""
    return reduced("margin_ranking_loss", _positive(-target * (x1 - x2) + margin), reduction)


def hinge_embedding_loss(x: Array, target: Array, *, margin: float = 1.0, reduction: str = "mean") -> Array:
    """x where target is 1, max(0, margin - x) where it is -1."""
    expect_array("hinge_embedding_loss", x)
    losses = _op("where")(target != -1, x, 0.0) + _op("where")(target != 1, _positive(margin - x), 0.0)
    return reduced("hinge_embedding_loss", losses, reduction)


def soft_margin_loss(x: Array, target: Array, *, reduction: str = "mean") -> Array:
    """log(1 + exp(-target * x)), of targets 1 and -1; right at any size."""
    _difference("soft_margin_loss", x, target)
    return reduced("soft_margin_loss", _op("softplus")(-target * x), reduction)


def cosine_embedding_loss(
    x1: Array, x2: Array, target: Array, *, margin: float = 0.0, reduction: str = "mean"
) -> Array:
    """1 - cos where target is 1, max(0, cos - margin) where it is -1: cos of rows (N, D) or vectors (D,)."""
    expect_rank("cosine_embedding_loss", x1, 1, 2)
    cosine = cosine_similarity(x1, x2, axis=-1)
    if cosine.shape != target.shape:
        raise ValueError(f"[cosine_embedding_loss] target: got shape {target.shape}, expected {cosine.shape}")
    near, far = 1.0 - cosine, _positive(cosine - margin)
    losses = _op("where")(target == 1, near, 0.0) + _op("where")(target == -1, far, 0.0)
    return reduced("cosine_embedding_loss", losses, reduction)


def triplet_margin_loss(
    anchor: Array,
    positive: Array,
    negative: Array,
    *,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Array:
    """max(0, distance(anchor, positive) - distance(anchor, negative) + margin), by pairwise_distance.

    swap: the negative's distance is its smaller one, of those to the anchor and to the positive.
    """
    return _triplet_loss(
        "triplet_margin_loss",
        lambda a, b: pairwise_distance(a, b, p, eps),
        (anchor, positive, negative),
        margin,
        swap,
        reduction,
    )


def triplet_margin_with_distance_loss(
    anchor: Array,
    positive: Array,
    negative: Array,
    *,
    distance_function: Callable[[Array, Array], Array] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Array:
    """triplet_margin_loss by a distance of your own; by default pairwise_distance.

    distance_function(a, b) returns an array of the distances of a's rows from b's.
    """
    return _triplet_loss(
        "triplet_margin_with_distance_loss",
        distance_function or pairwise_distance,
        (anchor, positive, negative),
        margin,
        swap,
        reduction,
    )


def _triplet_loss(
    what: str,
    distance: Callable[[Array, Array], Array],
    arrays: tuple[Array, Array, Array],
    margin: float,
    swap: bool,
    reduction: str,
) -> Array:
    anchor, positive, negative = arrays
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = _op("minimum")(far, distance(positive, negative))
    return reduced(what, _positive(near - far + margin), reduction)


def multi_margin_loss(
    x: Array,
    target: Array,
    *,
    p: int = 1,
    margin: float = 1.0,
    weight: Array | None = None,
    reduction: str = "mean",
) -> Array:
    """The mean over the other classes of max(0, margin - x[target] + x) ** p, times weight[target]; x (N, C)."""
    expect_rank("multi_margin_loss", x, 1, 2)
    if p not in (1, 2):
        raise ValueError(f"[multi_margin_loss] p: got {p}, expected 1 or 2")
    axis = _class_axis("multi_margin_loss", x, target)
    classes = _op("expand_dims")(target, axis=axis)
    gaps = _positive(margin - _op("take_along_axis")(x, classes, axis=axis) + x)
    gaps = gaps if p == 1 else gaps * gaps
    if weight is not None:
        gaps = gaps * _op("expand_dims")(_op("take")(weight, target, axis=0), axis=axis)
    number = counting(x.shape[axis], "int64", x.device)
    gaps = _op("where")(number == classes, 0.0, gaps)
    return reduced("multi_margin_loss", _op("mean")(gaps, axis=axis), reduction)


def multilabel_soft_margin_loss(
    x: Array, target: Array, weight: Array | None = None, *, reduction: str = "mean"
) -> Array:
    """The mean over the last axis of binary_cross_entropy_with_logits, times weight."""
    losses = binary_cross_entropy_with_logits(x, target, weight, reduction="none")
    return reduced("multilabel_soft_margin_loss", _op("mean")(losses, axis=-1), reduction)


def multilabel_margin_loss(x: Array, target: Array, *, reduction: str = "mean") -> Array:
    """The sum of max(0, 1 - x[t] + x[c]) over a row's classes t and all others c, by the number of classes.

    x (N, C) or (C,), target of the same shape: the classes of each row come first, what follows a negative number
    counts for nothing. Raises IndexError for a class that x has not, ValueError where shapes differ.
    """
    what = "multilabel_margin_loss"
    expect_rank(what, x, 1, 2)
    expect_array(what, target, "target")
    if target.shape != x.shape:
        raise ValueError(f"[{what}] target: got shape {target.shape}, expected x's {x.shape}")
    ends = _op("cumulative_sum")(_op("astype")(target < 0, "int64"), axis=-1)
    given = _op("expand_dims")(ends == 0, axis=-1)
    classes = _op("where")(ends == 0, _op("astype")(target, "int64"), 0)
    own = _op("expand_dims")(_op("take_along_axis")(x, classes, axis=-1), axis=-1)
    hit = given & (_op("expand_dims")(classes, axis=-1) == counting(x.shape[-1], "int64", x.device))
    others = _op("logical_not")(_op("any")(hit, axis=-2, keepdims=True))
    gaps = _op("where")(given & others, _positive(1.0 - own + _op("expand_dims")(x, axis=-2)), 0.0)
    return reduced(what, _op("sum")(gaps, axis=(-2, -1)) / x.shape[-1], reduction)
