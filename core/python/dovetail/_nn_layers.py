"""Layers of networks that are composed of ops: normalisations, activations, bags, distances."""

from __future__ import annotations

import math

from dovetail import _core
from dovetail._array import expect_array, expect_axis
from dovetail._core import Array
from dovetail._nn_common import along, counting, expect_float, expect_rank, one_of, rounded, working
from dovetail._searching import searchsorted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "batch_norm", "bilinear", "channel_shuffle", "cosine_similarity", "embedding_bag", "glu", "instance_norm",
    "local_response_norm", "normalize", "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "prelu",
    "softmin",
]  # fmt: skip

_op = _core.op_function


# ---- normalisation -----------------------------------------------------------------------------------------------


def batch_norm(
    x: Array,
    running_mean: Array | None,
    running_var: Array | None,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """(x - mean) / sqrt(var + eps) * weight + bias, each of these a vector over the channels, axis 1.

    training=True takes mean and variance from x, and returns a tuple: the result, and the running mean and variance
    moved towards them by momentum, the latter with Bessel's correction; None for those not given. Nothing is
    written in place. Raises ValueError where shapes do not match, and for a single value per channel in training.
    """
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError(
                "[batch_norm] running_mean and running_var: got None, expected arrays, or training=True"
            )
        return _op("batch_norm")(x, running_mean, running_var, weight, bias, eps=eps)
    y, mean, var = _op("batch_norm_train")(x, weight, bias, eps=eps)
    n = math.prod(x.shape) // x.shape[1] if x.shape[1] != 0 else 0
    if n == 1:
        raise ValueError(f"[batch_norm] x of shape {x.shape}: got one value per channel, expected more in training")
    unbiased = var * (n / (n - 1))
    return y, _moved(running_mean, mean, momentum), _moved(running_var, unbiased, momentum)


def _moved(running: Array | None, found: Array, momentum: float) -> Array | None:
    return None if running is None else rounded(running * (1.0 - momentum) + found * momentum, running)


def instance_norm(x: Array, weight: Array | None = None, bias: Array | None = None, *, eps: float = 1e-5) -> Array:
    """x with mean 0 and variance 1 over the axes behind each channel, axis 1, times weight plus bias.

    It is group_norm with a group for each channel. Raises ValueError where shapes do not match.
    """
    expect_array("instance_norm", x)
    if x.ndim < 3:
        raise ValueError(f"[instance_norm] x: got shape {x.shape}, expected 3 axes at least")
    return _op("group_norm")(x, x.shape[1], weight, bias, eps)


def local_response_norm(x: Array, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Array:
    """x (N, C, ...) / (k + alpha * m) ** beta, m the mean of the squares of `size` neighbouring channels.

    Of an even number of channels, one more lies before; those beyond the ends count as 0. Raises ValueError for
    fewer axes than 3. Krizhevsky et al., ImageNet classification with deep convolutional networks, 2012.
    """
    expect_array("local_response_norm", x)
    if x.ndim < 3 or size < 1:
        raise ValueError(
            f"[local_response_norm] x of shape {x.shape}, size {size}: expected (N, C, ...) and at least 1"
        )
    squares = _op("square")(working(x))
    squares = _op("pad")(squares, (0, 0, size // 2, (size - 1) // 2, *(0, 0) * (x.ndim - 2)))
    channels = _op("reshape")(squares, (x.shape[0], 1, squares.shape[1], math.prod(x.shape[2:])))
    means = _op("reshape")(_op("avg_pool2d")(channels, (size, 1), 1), x.shape)
    return rounded(working(x) / _op("pow")(means * alpha + k, beta), x)


def _norms(what: str, x: Array, p: float, axis: int, keepdims: bool) -> Array:
    axis = expect_axis(what, axis, x.ndim)
    return _op("vector_norm")(x, axis=axis, keepdims=keepdims, ord=float(p))


def normalize(x: Array, p: float = 2.0, axis: int = 1, eps: float = 1e-12) -> Array:
    """x divided by its p-norm along axis, or by eps where that is larger."""
    expect_array("normalize", x)
    expect_float("normalize", x)
    wide = working(x)
    return rounded(wide / _op("maximum")(_norms("normalize", wide, p, axis, True), eps), x)


def cosine_similarity(x1: Array, x2: Array, axis: int = 1, eps: float = 1e-8) -> Array:
    """The product of x1 and x2 along axis, broadcast, over that of their norms, each eps at least."""
    expect_array("cosine_similarity", x1, "x1")
    expect_array("cosine_similarity", x2, "x2")
    x1, x2 = _op("broadcast_to")(x1, _joint(x1, x2)), _op("broadcast_to")(x2, _joint(x1, x2))
    a, b = working(x1), working(x2)
    a, b = (v / _op("maximum")(_norms("cosine_similarity", v, 2.0, axis, True), eps) for v in (a, b))
    return rounded(_op("sum")(a * b, axis=expect_axis("cosine_similarity", axis, a.ndim)), x1)


def _joint(x1: Array, x2: Array) -> tuple[int, ...]:
    from dovetail._functions import broadcast_shapes

    return broadcast_shapes(x1.shape, x2.shape)


def pairwise_distance(x1: Array, x2: Array, p: float = 2.0, eps: float = 1e-6, keepdims: bool = False) -> Array:
    """The p-norm of x1 - x2 + eps over the last axis; the operands broadcast."""
    expect_array("pairwise_distance", x1, "x1")
    expect_array("pairwise_distance", x2, "x2")
    difference = x1 - x2
    return rounded(_norms("pairwise_distance", working(difference) + eps, p, -1, keepdims), difference)


def pdist(x: Array, p: float = 2.0) -> Array:
    """The p-norms of the differences of rows i < j of x (N, M): N (N - 1) / 2 of them, by i, then j.

    It needs memory for all differences. Raises ValueError for another number of axes, or p below 0.
    """
    expect_rank("pdist", x, 2)
    if p < 0:
        raise ValueError(f"[pdist] p: got {p}, expected at least 0")
    n = x.shape[0]
    row = counting(n, "int64", x.device)
    begins = row * (2 * n - 1 - row) // 2  # of the pairs of each row
    pair = counting(n * (n - 1) // 2, "int64", x.device)
    i = searchsorted(begins, pair, side="right") - 1
    j = pair - _op("take")(begins, i, axis=0) + i + 1
    difference = _op("take")(x, i, axis=0) - _op("take")(x, j, axis=0)
    return rounded(_norms("pdist", working(difference), p, -1, False), x)


def bilinear(x1: Array, x2: Array, weight: Array, bias: Array | None = None) -> Array:
    """x1 (..., I) weight[o] (I, J) x2 (..., J) for each o, plus bias (O,), as (..., O).

    Raises ValueError where shapes do not match.
    """
    expect_array("bilinear", x1, "x1")
    expect_array("bilinear", x2, "x2")
    expect_array("bilinear", weight, "weight")
    sizes = (x1.shape[-1], x2.shape[-1]) if x1.ndim and x1.shape[:-1] == x2.shape[:-1] else None
    if weight.ndim != 3 or weight.shape[1:] != sizes:
        raise ValueError(
            f"[bilinear] x1 of shape {x1.shape}, x2 of shape {x2.shape}, weight of shape {weight.shape}: expected "
            "(..., I), (..., J), (O, I, J)"
        )
    left = _op("matmul")(_op("reshape")(x1, (1, -1, sizes[0])), weight)
    products = _op("sum")(left * _op("reshape")(x2, (1, -1, sizes[1])), axis=-1)
    y = _op("reshape")(_op("matrix_transpose")(products), (*x1.shape[:-1], weight.shape[0]))
    return y if bias is None else y + bias


# ---- activations -------------------------------------------------------------------------------------------------


def prelu(x: Array, weight: Array) -> Array:
    """x, times weight below 0: a vector over the channels, axis 1, or one number for all."""
    expect_array("prelu", x)
    expect_array("prelu", weight, "weight")
    if weight.ndim > 1 or (weight.ndim and weight.shape[0] not in (1, x.shape[1] if x.ndim > 1 else 1)):
        raise ValueError(
            f"[prelu] weight of shape {weight.shape} for x of shape {x.shape}: expected one value, or one for each "
            "channel, x's axis 1"
        )
    if weight.ndim and x.ndim > 1:
        weight = along(weight, 1, x.ndim)
    elif weight.ndim:
        weight = _op("reshape")(weight, ())
    return _op("where")(x < 0, x * weight, x)


def glu(x: Array, axis: int = -1) -> Array:
    """The first half of x along axis, times the sigmoid of the second. Raises ValueError for an odd size."""
    expect_array("glu", x)
    axis = expect_axis("glu", axis, x.ndim)
    n = x.shape[axis]
    if n % 2:
        raise ValueError(f"[glu] axis {axis} of shape {x.shape}: got {n} elements, expected an even number")
    lead = (slice(None),) * axis
    return x[(*lead, slice(0, n // 2))] * _op("sigmoid")(x[(*lead, slice(n // 2, None))])


def softmin(x: Array, axis: int = -1) -> Array:
    """softmax(-x)."""
    expect_array("softmin", x)
    return _op("softmax")(-x, axis=axis)


# ---- channels and space ------------------------------------------------------------------------------------------


def _factor(what: str, name: str, factor: int) -> None:
    if factor < 1:
        raise ValueError(f"[{what}] {name}: got {factor}, expected at least 1")


def pixel_shuffle(x: Array, upscale_factor: int) -> Array:
    """x (..., C r^2, H, W) as (..., C, H r, W r): r^2 channels become an r by r block of each pixel."""
    expect_array("pixel_shuffle", x)
    _factor("pixel_shuffle", "upscale_factor", r := upscale_factor)
    if x.ndim < 3 or x.shape[-3] % (r * r):
        raise ValueError(f"[pixel_shuffle] x of shape {x.shape}: expected (..., C, H, W), C a multiple of {r * r}")
    lead, (c, h, w), n = x.shape[:-3], x.shape[-3:], x.ndim - 3
    blocks = _op("reshape")(x, (*lead, c // (r * r), r, r, h, w))
    blocks = _op("permute_dims")(blocks, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return _op("reshape")(blocks, (*lead, c // (r * r), h * r, w * r))


def pixel_unshuffle(x: Array, downscale_factor: int) -> Array:
    """x (..., C, H r, W r) as (..., C r^2, H, W): the reverse of pixel_shuffle."""
    expect_array("pixel_unshuffle", x)
    _factor("pixel_unshuffle", "downscale_factor", r := downscale_factor)
    if x.ndim < 3 or x.shape[-1] % r or x.shape[-2] % r:
        raise ValueError(
            f"[pixel_unshuffle] x of shape {x.shape}: expected (..., C, H, W), H and W multiples of {r}"
        )
    lead, (c, h, w), n = x.shape[:-3], x.shape[-3:], x.ndim - 3
    blocks = _op("reshape")(x, (*lead, c, h // r, r, w // r, r))
    blocks = _op("permute_dims")(blocks, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return _op("reshape")(blocks, (*lead, c * r * r, h // r, w // r))


def channel_shuffle(x: Array, groups: int) -> Array:
    """x with its channels, axis 1, dealt out: the first of each group, then the second of each, and so on."""
    expect_array("channel_shuffle", x)
    _factor("channel_shuffle", "groups", groups)
    if x.ndim < 3 or x.shape[1] % groups:
        raise ValueError(f"[channel_shuffle] x of shape {x.shape}: expected (N, C, ...), C a multiple of {groups}")
    apart = _op("reshape")(x, (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]))
    return _op("reshape")(_op("permute_dims")(apart, (0, 2, 1, *range(3, apart.ndim))), x.shape)


# ---- embedding_bag -----------------------------------------------------------------------------------------------


def embedding_bag(
    x: Array,
    weight: Array,
    offsets: Array | None = None,
    *,
    mode: str = "mean",
    per_sample_weights: Array | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Array:
    """The mean, sum or max of bags of rows of weight (n, E), as (bags, E); 0 for an empty bag.

    x: indices (bags, length); or a vector of all bags one after the other, with offsets, a vector of where each one
    begins, and with include_last_offset where the last one ends. per_sample_weights: factors like x, of mode "sum"
    alone. Indices equal to padding_idx count for nothing. Raises IndexError for an index that weight has not.
    """
    expect_array("embedding_bag", x)
    expect_array("embedding_bag", weight, "weight")
    one_of("embedding_bag", "mode", mode, "mean", "sum", "max")
    if weight.ndim != 2 or x.ndim not in (1, 2) or (x.ndim == 1) != (offsets is not None):
        raise ValueError(
            f"[embedding_bag] x of shape {x.shape}, weight of shape {weight.shape}: expected bags (B, L), or (L,) "
            "with offsets, and weight (n, E)"
        )
    if per_sample_weights is not None and (mode != "sum" or per_sample_weights.shape != x.shape):
        raise ValueError(
            f"[embedding_bag] per_sample_weights: expected mode 'sum' and shape {x.shape}, got {mode!r}"
        )
    if padding_idx is not None and padding_idx < 0:
        padding_idx += weight.shape[0]
    rows = working(_op("take")(weight, x, axis=0))
    if per_sample_weights is not None:
        rows = rows * _op("expand_dims")(per_sample_weights, axis=-1)
    member = _members(x, offsets, include_last_offset)
    if padding_idx is not None:
        member = member & (x != padding_idx)
    rows = rows if x.ndim == 2 else _op("expand_dims")(rows, axis=0)
    return rounded(_bagged(rows, _op("expand_dims")(member, axis=-1), mode), weight)


def _members(x: Array, offsets: Array | None, include_last_offset: bool) -> Array:
    """(bags, length): whether a bag has an element."""
    if offsets is None:
        return x == x
    place = counting(x.shape[0], "int64", x.device)
    begins = _op("expand_dims")(_op("astype")(offsets, "int64"), axis=1)
    bags = begins.shape[0] - (1 if include_last_offset else 0)
    ends = begins[1:] if include_last_offset else None
    if ends is None:
        end = _op("full")((1, 1), x.shape[0], dtype="int64", device=x.device)
        ends = _op("concat")([begins[1:], end], axis=0)
    return (begins[:bags] <= place) & (place < ends)


def _bagged(rows: Array, member: Array, mode: str) -> Array:
    """rows (bags or 1, length, E) over the length, where they are members (bags, length, 1)."""
    count = _op("sum")(_op("astype")(member, rows.dtype), axis=1)
    if mode == "max":
        if rows.shape[1] == 0:
            return count * _op("sum")(rows, axis=1)
        largest = _op("max")(_op("where")(member, rows, -math.inf), axis=1)
        return _op("where")(count == 0, 0.0, largest)
    total = _op("sum")(_op("where")(member, rows, 0.0), axis=1)
    return total if mode == "sum" else total / _op("maximum")(count, 1.0)
