"""ctc_loss, against the sum over all alignments in float64."""

from __future__ import annotations

import itertools
import math

import dovetail as dt
import numpy as np
import pytest

nn = dt.nn
T, C = 5, 3
RNG = np.random.default_rng(0)
SCORES = RNG.uniform(-2, 2, (T, 4, C))
LOG_PROBS = (SCORES - np.log(np.exp(SCORES).sum(-1, keepdims=True))).astype("float32")


def labels_of(path, blank):
    """The labels that an alignment stands for."""
    return tuple(label for label, _ in itertools.groupby(path) if label != blank)


def loss(log_probs, target, blank):
    """-log of the probability of a target, of log_probs (T, C)."""
    paths = itertools.product(range(C), repeat=len(log_probs))
    fitting = [p for p in paths if labels_of(p, blank) == tuple(target)]
    wide = log_probs.astype("float64")
    total = sum(math.exp(sum(wide[t, label] for t, label in enumerate(path))) for path in fitting)
    return -math.log(total) if total else math.inf


@pytest.mark.parametrize("blank", [0, 2])
@pytest.mark.parametrize("steps", [(5, 5, 5, 5), (5, 4, 2, 1)])
def test_loss_is_that_of_all_alignments(blank, steps):
    a, b = (c for c in range(C) if c != blank)
    targets, lengths = np.array([[a, b, a], [a, a, 9], [b, 9, 9], [9, 9, 9]]), (3, 2, 1, 0)
    expected = [loss(LOG_PROBS[: steps[i], i], targets[i, : lengths[i]], blank) for i in range(4)]
    given = dt.asarray(LOG_PROBS), dt.asarray(targets), steps, lengths, blank
    got = nn.ctc_loss(*given, reduction="none").numpy()
    np.testing.assert_allclose(got, expected, 1e-5)
    np.testing.assert_allclose(nn.ctc_loss(*given, reduction="sum").numpy(), sum(expected), 1e-5)
    finite = np.where(np.isinf(expected), 0, expected)
    mean = (finite / np.maximum(lengths, 1)).mean()
    np.testing.assert_allclose(nn.ctc_loss(*given, zero_infinity=True).numpy(), mean, 1e-5)
    # one after the other, and lengths as arrays
    joined = dt.asarray(np.concatenate([row[:n] for row, n in zip(targets, lengths, strict=True)]))
    arrays = dt.asarray(np.array(steps)), dt.asarray(np.array(lengths))
    np.testing.assert_array_equal(nn.ctc_loss(given[0], joined, *arrays, blank, "none").numpy(), got)
    # one sequence
    single = nn.ctc_loss(dt.asarray(LOG_PROBS[:, 0]), dt.asarray(targets[:1]), steps[0], lengths[0], blank, "none")
    np.testing.assert_array_equal(single.numpy(), got[0])


def test_a_target_that_no_alignment_fits_is_infinite_or_0():
    given = dt.asarray(LOG_PROBS[:2, :1]), dt.asarray([[1, 1]]), (2,), (2,)  # a blank must part equal labels
    assert nn.ctc_loss(*given, reduction="none").tolist() == [math.inf]
    assert nn.ctc_loss(*given, reduction="none", zero_infinity=True).tolist() == [0.0]


def test_a_compiled_function_takes_other_numbers_of_steps():
    targets, lengths = dt.asarray([[1, 2], [2, 2], [1, 1], [2, 1]]), dt.asarray([2, 2, 2, 1])
    compiled = dt.compile(lambda x, n: nn.ctc_loss(x, targets, n, lengths, reduction="none"))
    for steps in (5, 3, 4):
        x, n = dt.asarray(LOG_PROBS[:steps]), dt.asarray([steps, steps, steps, 2])
        expected = nn.ctc_loss(x, targets, n, lengths, reduction="none")
        np.testing.assert_allclose(compiled(x, n).numpy(), expected.numpy(), 1e-6)


def test_what_it_refuses():
    x, targets = dt.asarray(LOG_PROBS), dt.asarray([[1], [1], [2], [2]])
    for arguments, message in (
        ((x, targets, (5,) * 3, (1,) * 4), r"input_lengths: got int64 of shape \(3,\), expected 4 integers"),
        ((x, targets, (5,) * 4, (1.0,) * 4), "target_lengths: got float32"),
        ((x, targets[:2], (5,) * 4, (1,) * 4), r"targets: got shape \(2, 1\), expected 4 rows"),
        ((x, targets, (5,) * 4, (1,) * 4, 3), "blank 3: expected"),
        ((x[:0], targets, (5,) * 4, (1,) * 4), r"log_probs of shape \(0, 4, 3\)"),
    ):
        with pytest.raises(ValueError, match=message):
            nn.ctc_loss(*arguments)
