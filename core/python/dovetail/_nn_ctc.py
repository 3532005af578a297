"""The loss of connectionist temporal classification."""

from __future__ import annotations

import math

from dovetail import _core
from dovetail._array import expect_array
from dovetail._control import scan
from dovetail._core import Array
from dovetail._nn_common import counting, expect_float, one_of, reduced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Lengths = Array | Sequence[int]

__all__ = ["ctc_loss"]

_op = _core.op_function


def ctc_loss(
    log_probs: Array,
    targets: Array,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Array:
    """The negative logarithm of the probability of targets, over all alignments with the steps of log_probs.

    log_probs: (T, N, C), logarithms of the probabilities of C classes, one of them `blank`; or (T, C), of one
    sequence. targets: integers (N, S), or all sequences one after the other in a vector. input_lengths and
    target_lengths: N integers, or one. reduction: "mean" divides each loss by its target's length first.
    zero_infinity: a target that no alignment fits counts 0, else it is infinite. Raises ValueError where shapes do
    not match. Graves et al., Connectionist temporal classification, 2006.
    """
    what = "ctc_loss"
    expect_array(what, log_probs, "log_probs")
    expect_array(what, targets, "targets")
    expect_float(what, log_probs)
    one_of(what, "reduction", reduction, "none", "mean", "sum")
    single = log_probs.ndim == 2
    if single:
        log_probs = _op("expand_dims")(log_probs, axis=1)
    fits = log_probs.ndim == 3 and log_probs.shape[0] != 0 and targets.ndim in (1, 2)
    if not fits or not 0 <= blank < log_probs.shape[2]:
        raise ValueError(
            f"[{what}] log_probs of shape {log_probs.shape}, targets of shape {targets.shape}, blank {blank}: "
            "expected (T, N, C) or (T, C) of T >= 1, (N, S) or a vector, and a class"
        )
    n = log_probs.shape[1]
    inputs, lengths = (
        _lengths(name, value, n, log_probs)
        for name, value in (("input_lengths", input_lengths), ("target_lengths", target_lengths))
    )
    labels = _op("astype")(targets, "int64")
    if labels.ndim == 1:
        labels = _rows(labels, lengths)
    if labels.shape[0] != n:
        raise ValueError(f"[{what}] targets: got shape {targets.shape}, expected {n} rows")
    losses = -_likelihood(log_probs, labels, inputs, lengths, blank)
    if zero_infinity:
        losses = _op("where")(losses == math.inf, 0.0, losses)
    if reduction == "mean":
        losses = losses / _op("astype")(_op("maximum")(lengths, 1), losses.dtype)
    return reduced(what, _op("squeeze")(losses, 0) if single else losses, reduction)


def _lengths(name: str, value: Lengths, n: int, log_probs: Array) -> Array:
    """N integers on the device of log_probs."""
    if not hasattr(value, "dtype"):
        from dovetail._creation import asarray

        value = asarray(value, device=log_probs.device)
    if value.ndim > 1 or (value.ndim and value.shape[0] != n) or "integer" not in value.dtype.kind:
        raise ValueError(f"[ctc_loss] {name}: got {value.dtype} of shape {value.shape}, expected {n} integers")
    return _op("broadcast_to")(_op("astype")(value, "int64"), (n,))


def _rows(labels: Array, lengths: Array) -> Array:
    """Sequences that lie one after the other as rows, each of the length of all."""
    size = labels.shape[0]
    begins = _op("cumulative_sum")(lengths) - lengths
    place = _op("expand_dims")(begins, axis=1) + counting(size, "int64", labels.device)
    return _op("take")(labels, _op("minimum")(place, size - 1), axis=0) if size else place


def _likelihood(log_probs: Array, labels: Array, inputs: Array, lengths: Array, blank: int) -> Array:
    """The logarithm of each target's probability: the sums of Graves et al., section 4.1, in logarithms."""
    n, size = labels.shape
    device, places = labels.device, 2 * size + 1
    lane = counting(places, "int64", device)
    label = lane % 2 == 1
    known = counting(size, "int64", device) < _op("expand_dims")(lengths, axis=1)
    padded = _op("pad")(_op("where")(known, labels, blank), (0, 0, 0, 1), constant_values=blank)
    states = _op("where")(label, _op("take")(padded, lane // 2, axis=1), blank)  # blanks around the labels

    two_before = _op("pad")(states, (0, 0, 2, 0), constant_values=blank)[:, :places]
    skips = label & (states != two_before)  # of the blank between two labels
    each_step = _op("broadcast_to")(states, (log_probs.shape[0], n, places))
    emitted = _op("take_along_axis")(log_probs, each_step, axis=2)
    begins = _op("where")(lane < 2, emitted[0], -math.inf)

    def moved(alpha: Array, by: int) -> Array:
        return _op("pad")(alpha, (0, 0, by, 0), constant_values=-math.inf)[:, :places]

    def step(carry: tuple[Array, Array], now: Array) -> tuple[tuple[Array, Array], None]:
        alpha, at = carry
        both = _op("logaddexp")(alpha, moved(alpha, 1))
        both = _op("logaddexp")(both, _op("where")(skips, moved(alpha, 2), -math.inf))
        running = _op("expand_dims")(at < inputs, axis=1)
        return (_op("where")(running, both + now, alpha), at + 1), None

    first = _op("full")((), 1, dtype="int64", device=device)
    (alpha, _), _ = scan(step, (begins, first), emitted[1:])
    last = _op("expand_dims")(2 * lengths, axis=1)
    ends = _op("logaddexp")(
        _op("take_along_axis")(alpha, last, axis=1),
        _op("where")(last == 0, -math.inf, _op("take_along_axis")(alpha, _op("maximum")(last - 1, 0), axis=1)),
    )
    return _op("squeeze")(ends, 1)
