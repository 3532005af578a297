"""Layers of networks that draw random numbers. Each takes the key of its draw, else dovetail.random's next."""

from __future__ import annotations

from dovetail import _core
from dovetail._array import expect_array, expect_axis
from dovetail._core import Array
from dovetail._nn_common import along, counting, drawn, expect_float, expect_rank, next_key, rounded, working

__all__ = [
    "alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout", "gumbel_softmax",
    "rrelu",
]  # fmt: skip

_op = _core.op_function
_SELU_LEAST = -1.7580993408473766  # selu(-inf)


def _expect_probability(what: str, x: Array, p: float) -> None:
    expect_array(what, x)
    expect_float(what, x)
    if not 0 <= p <= 1:
        raise ValueError(f"[{what}] p: got {p}, expected a probability from 0 to 1")


# ---- dropout -----------------------------------------------------------------------------------------------------


def dropout(x: Array, p: float = 0.5, training: bool = True, *, key: Array | None = None) -> Array:
    """x / (1 - p), but 0 with probability p; x itself where training is False.

    key: of the draw, as dovetail.random.key(x.shape) or a generator's key() gives it; by default the next one of
    dovetail.random. Element i is 0 where number i of uniform(x.shape) of that key is below p. Raises ValueError for
    p outside of [0, 1].
    """
    _expect_probability("dropout", x, p)
    if not training:
        return x.__copy__()
    return _op("dropout")(x, next_key(x, x.shape) if key is None else key, p=p)


def _of_channels(x: Array) -> tuple[int, ...]:
    return (*x.shape[:2], *(1,) * (x.ndim - 2))


def _dropped_channels(n: int, x: Array, p: float, training: bool, key: Array | None) -> Array:
    what = f"dropout{n}d"
    expect_rank(what, x, n + 2)
    _expect_probability(what, x, p)
    if not training:
        return x.__copy__()
    kept = x if p in (0, 1) else x * (1.0 / (1.0 - p))
    return _op("where")(drawn(x, _of_channels(x), key) < p, 0.0, kept)


def dropout1d(x: Array, p: float = 0.5, training: bool = True, *, key: Array | None = None) -> Array:
    """x (N, C, L) / (1 - p), but whole channels 0, each with probability p.

    key: of the draw of shape (N, C, 1). Raises ValueError for another number of axes, or p outside of [0, 1].
    """
    return _dropped_channels(1, x, p, training, key)


def dropout2d(x: Array, p: float = 0.5, training: bool = True, *, key: Array | None = None) -> Array:
    """x (N, C, H, W) / (1 - p), but whole channels 0, each with probability p.

    key: of the draw of shape (N, C, 1, 1). Raises ValueError for another number of axes, or p outside of [0, 1].
    """
    return _dropped_channels(2, x, p, training, key)


def dropout3d(x: Array, p: float = 0.5, training: bool = True, *, key: Array | None = None) -> Array:
    """x (N, C, D, H, W) / (1 - p), but whole channels 0, each with probability p.

    key: of the draw of shape (N, C, 1, 1, 1). Raises ValueError for another number of axes, or p outside of [0, 1].
    """
    return _dropped_channels(3, x, p, training, key)


def _alpha_dropped(x: Array, shape: tuple[int, ...], p: float, key: Array | None) -> Array:
    drop = drawn(x, shape, key) < p
    if p == 1:
        return _op("where")(drop, 0.0, x)
    scale = ((1 - p) * (1 + p * _SELU_LEAST**2)) ** -0.5
    shift = -scale * p * _SELU_LEAST
    return rounded(_op("where")(drop, _SELU_LEAST * scale + shift, working(x) * scale + shift), x)


def alpha_dropout(x: Array, p: float = 0.5, training: bool = False, *, key: Array | None = None) -> Array:
    """Dropout that keeps mean 0 and variance 1: elements become selu's least value, then all are scaled and moved.

    key: of the draw of x's shape. Raises ValueError for p outside of [0, 1]. Klambauer et al., Self-normalizing
    neural networks, 2017.
    """
    _expect_probability("alpha_dropout", x, p)
    return _alpha_dropped(x, x.shape, p, key) if training else x.__copy__()


def feature_alpha_dropout(x: Array, p: float = 0.5, training: bool = False, *, key: Array | None = None) -> Array:
    """alpha_dropout of whole channels, axis 1 of x (N, C, ...).

    key: of the draw of shape (N, C, 1, ...). Raises ValueError for fewer axes than 2, or p outside of [0, 1].
    """
    _expect_probability("feature_alpha_dropout", x, p)
    if x.ndim < 2:
        raise ValueError(f"[feature_alpha_dropout] x: got shape {x.shape}, expected (N, C, ...)")
    return _alpha_dropped(x, _of_channels(x), p, key) if training else x.__copy__()


# ---- activations -------------------------------------------------------------------------------------------------


def rrelu(
    x: Array,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    *,
    key: Array | None = None,
) -> Array:
    """x, times a number below 0: the mean of lower and upper, or in training an even draw between them.

    key: of the draw of x's shape. Raises ValueError for lower > upper. Xu et al., Empirical evaluation of rectified
    activations, 2015.
    """
    expect_array("rrelu", x)
    expect_float("rrelu", x)
    if not lower <= upper:
        raise ValueError(f"[rrelu] lower, upper: got {lower}, {upper}, expected lower <= upper")
    slope = drawn(x, x.shape, key) * (upper - lower) + lower if training else (lower + upper) / 2
    return _op("where")(x > 0, x, rounded(working(x) * slope, x))


def gumbel_softmax(
    logits: Array, tau: float = 1.0, hard: bool = False, axis: int = -1, *, key: Array | None = None
) -> Array:
    """softmax((logits + g) / tau) along axis, g drawn from the Gumbel distribution; hard: 1 at its largest, else 0.

    key: of the draw of logits' shape. Raises ValueError for tau <= 0. Jang et al., Categorical reparameterization
    with Gumbel-softmax, 2017.
    """
    what = "gumbel_softmax"
    expect_array(what, logits, "logits")
    expect_float(what, logits)
    if tau <= 0:
        raise ValueError(f"[{what}] tau: got {tau}, expected more than 0")
    axis = expect_axis(what, axis, logits.ndim)
    u = _op("maximum")(drawn(logits, logits.shape, key), 2.0**-25)  # of which the logarithms are finite
    gumbel = -_op("log")(-_op("log1p")(-u))
    y = _op("softmax")((working(logits) + gumbel) / tau, axis=axis)
    if not hard:
        return rounded(y, logits)
    place = along(counting(logits.shape[axis], "int64", logits.device), axis, logits.ndim)
    return _op("astype")(_op("argmax")(y, axis=axis, keepdims=True) == place, logits.dtype)
