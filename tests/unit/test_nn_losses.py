"""dovetail.nn's losses against their formulas in NumPy float64."""

from __future__ import annotations

import math

import dovetail as dt
import numpy as np
import pytest

nn = dt.nn
REDUCTIONS = {"none": lambda x: x, "mean": np.mean, "sum": np.sum}


def draw(*shape, seed=0, low=-2.0, high=2.0):
    return np.random.default_rng(seed).uniform(low, high, shape).astype("float32")


X, Y, Z = draw(4, 5), draw(4, 5, seed=1), draw(4, 5, seed=2)
P, Q = draw(4, 5, seed=3, low=0.01, high=0.99), draw(4, 5, seed=4, low=0.01, high=0.99)
SIGN = np.sign(draw(4, 5, seed=5))
WEIGHT = draw(5, seed=6, low=0.25)
VAR = draw(4, 5, seed=7, low=0.1)
COUNTS = np.random.default_rng(8).integers(0, 5, (4, 5)).astype("float32")
CLASSES, SOME = np.array([3, 0, 4, 3]), np.array([3, -100, 4, 3])


def log_softmax(x):
    return x - np.log(np.exp(x).sum(1, keepdims=True))


def norm(x, p=2.0):
    return (np.abs(x + 1e-6) ** p).sum(-1) ** (1 / p)


def cosine(a, b):
    return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))


def huber(d, at):
    d = np.abs(d)
    return np.where(d < at, d * d / 2, at * (d - at / 2))


def softplus(x):
    return np.logaddexp(x, 0)


def multi_margin(x, target, weight, p):
    out = np.zeros(len(x))
    for i, t in enumerate(target):
        gaps = [max(0, 0.5 - x[i, t] + x[i, c]) ** p for c in range(x.shape[1]) if c != t]
        out[i] = weight[t] * sum(gaps) / x.shape[1]
    return out


def stirling(t):
    above = np.maximum(t, 1)
    return np.where(t > 1, t * np.log(above) - t + 0.5 * np.log(2 * np.pi * above), 0)


# Name of the function, arguments, keywords, the losses.
LOSSES = {
    "mse": ("mse_loss", (X, Y), {}, lambda x, y: (x - y) ** 2),
    "l1": ("l1_loss", (X, Y), {}, lambda x, y: np.abs(x - y)),
    "smooth_l1": ("smooth_l1_loss", (X, Y), {"beta": 0.75}, lambda x, y: huber(x - y, 0.75) / 0.75),
    "smooth_l1_0": ("smooth_l1_loss", (X, Y), {"beta": 0.0}, lambda x, y: np.abs(x - y)),
    "huber": ("huber_loss", (X, Y), {"delta": 0.75}, lambda x, y: huber(x - y, 0.75)),
    "bce": (
        "binary_cross_entropy",
        (P, Q, WEIGHT),
        {},
        lambda p, q, w: -w * (q * np.log(p) + (1 - q) * np.log1p(-p)),
    ),
    "bce_ends": (
        "binary_cross_entropy",
        (np.float32([0, 1, 1]), np.float32([1, 0, 1])),
        {},
        lambda p, q: np.array([100, 100, 0]),
    ),
    "logits": (
        "binary_cross_entropy_with_logits",
        (X * 50, Q, WEIGHT),
        {"pos_weight": Q[0]},
        lambda x, q, w: w * ((1 - q) * softplus(x) + Q[0] * q * softplus(-x)),
    ),
    "kl": (
        "kl_div",
        (X, np.where(Q < 0.2, 0, Q)),
        {},
        lambda x, q: np.where(q == 0, 0, q * (np.log(q + (q == 0)) - x)),
    ),
    "kl_log": ("kl_div", (X, Y), {"log_target": True}, lambda x, y: np.exp(y) * (y - x)),
    "gaussian": ("gaussian_nll_loss", (X, Y, VAR), {}, lambda x, y, v: 0.5 * (np.log(v) + (x - y) ** 2 / v)),
    "gaussian_full": (
        "gaussian_nll_loss",
        (X, Y, VAR[:, :1]),
        {"full": True},
        lambda x, y, v: 0.5 * (np.log(v) + (x - y) ** 2 / v + np.log(2 * np.pi)),
    ),
    "gaussian_rows": (
        "gaussian_nll_loss",
        (X, Y, VAR[:, 0] * 0),
        {"eps": 0.125},
        lambda x, y, v: 0.5 * (np.log(0.125) + (x - y) ** 2 / 0.125),
    ),
    "poisson": ("poisson_nll_loss", (X, COUNTS), {}, lambda x, t: np.exp(x) - t * x),
    "poisson_full": (
        "poisson_nll_loss",
        (P, COUNTS),
        {"log_input": False, "full": True},
        lambda p, t: p - t * np.log(p + 1e-8) + stirling(t),
    ),
    "ranking": (
        "margin_ranking_loss",
        (X, Y, SIGN),
        {"margin": 0.5},
        lambda x, y, s: np.maximum(0, 0.5 - s * (x - y)),
    ),
    "hinge": (
        "hinge_embedding_loss",
        (X, SIGN),
        {"margin": 0.5},
        lambda x, s: np.where(s == 1, x, np.maximum(0, 0.5 - x)),
    ),
    "soft_margin": ("soft_margin_loss", (X * 50, SIGN), {}, lambda x, s: softplus(-s * x)),
    "cosine": (
        "cosine_embedding_loss",
        (X, Y, SIGN[:, 0]),
        {"margin": 0.25},
        lambda x, y, s: np.where(s == 1, 1 - cosine(x, y), np.maximum(0, cosine(x, y) - 0.25)),
    ),
    "triplet": (
        "triplet_margin_loss",
        (X, Y, Z),
        {"margin": 0.5, "p": 3.0},
        lambda a, p, n: np.maximum(0, norm(a - p, 3) - norm(a - n, 3) + 0.5),
    ),
    "triplet_swap": (
        "triplet_margin_loss",
        (X, Y, Z),
        {"swap": True},
        lambda a, p, n: np.maximum(0, norm(a - p) - np.minimum(norm(a - n), norm(p - n)) + 1),
    ),
    "multi_margin": (
        "multi_margin_loss",
        (X, CLASSES),
        {"margin": 0.5, "p": 2, "weight": WEIGHT},
        lambda x, t: multi_margin(x, t, WEIGHT, 2),
    ),
    "multilabel": (
        "multilabel_soft_margin_loss",
        (X, Q),
        {},
        lambda x, q: ((1 - q) * softplus(x) + q * softplus(-x)).mean(-1),
    ),
    "soft_targets": ("cross_entropy", (X, Q), {}, lambda x, q: -(q * log_softmax(x)).sum(1)),
    "soft_targets_weighted": (
        "cross_entropy",
        (X, Q, WEIGHT),
        {"label_smoothing": 0.125},
        lambda x, q, w: -(w * (q * 0.875 + 0.025) * log_softmax(x)).sum(1),
    ),
}


def arrays(values):
    return [dt.asarray(np.array(v)) for v in values]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("case", LOSSES)
def test_loss(case, reduction):
    name, args, how, formula = LOSSES[case]
    wide = [a.astype("float64") if a.dtype.kind == "f" else a for a in args]
    given = {k: dt.asarray(np.array(v)) if isinstance(v, np.ndarray) else v for k, v in how.items()}
    got = getattr(nn, name)(*arrays(args), reduction=reduction, **given)
    expected = REDUCTIONS[reduction](formula(*wide))
    assert got.dtype == dt.float32 and got.shape == np.shape(expected)
    np.testing.assert_allclose(got.numpy(), expected, 2e-5, 1e-5)


@pytest.mark.parametrize("target", [CLASSES, SOME], ids=["all", "ignored"])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["even", "weighted"])
@pytest.mark.parametrize("smoothing", [0.0, 0.125])
def test_losses_of_classes(target, weight, smoothing):
    w = np.ones(5) if weight is None else weight.astype("float64")
    keep = target != -100
    classes = np.where(keep, target, 0)
    logp = log_softmax(X.astype("float64"))

    def losses(x):
        picked = -w[classes] * np.take_along_axis(x, classes[:, None], 1)[:, 0]
        return np.where(keep, picked, 0)

    smooth = (1 - smoothing) * losses(logp) - np.where(keep, smoothing * (w * logp).mean(1), 0)
    given = arrays((X, target)) + ([] if weight is None else arrays((weight,)))
    for name, how, expected in (
        ("cross_entropy", {"label_smoothing": smoothing}, smooth),
        ("nll_loss", {}, losses(X.astype("float64"))),
    ):
        function = getattr(nn, name)
        np.testing.assert_allclose(function(*given, reduction="none", **how).numpy(), expected, 2e-5, 1e-6)
        np.testing.assert_allclose(function(*given, reduction="sum", **how).numpy(), expected.sum(), 2e-5)
        mean = expected.sum() / w[classes[keep]].sum()
        np.testing.assert_allclose(function(*given, **how).numpy(), mean, 2e-5)


def test_losses_of_classes_of_pixels_and_of_one_row():
    x, target = draw(2, 5, 3, 4), np.random.default_rng(0).integers(0, 5, (2, 3, 4))
    rows = log_softmax(x.astype("float64").transpose(0, 2, 3, 1).reshape(-1, 5))
    flat = target.reshape(-1)
    expected = -WEIGHT[flat] * rows[np.arange(24), flat]
    got = nn.cross_entropy(*arrays((x, target, WEIGHT)), reduction="none")
    np.testing.assert_allclose(got.numpy(), expected.reshape(2, 3, 4), 2e-5)
    row = nn.cross_entropy(*arrays((X[0], np.array(2), WEIGHT)))
    np.testing.assert_allclose(row.numpy(), -log_softmax(X[:1].astype("float64"))[0, 2], 2e-5)


def test_batchmean_divides_by_the_batch():
    total = nn.kl_div(*arrays((X, Q)), reduction="sum").item()
    assert math.isclose(nn.kl_div(*arrays((X, Q)), reduction="batchmean").item(), total / 4, rel_tol=1e-6)


def test_a_class_beyond_is_an_index_error():
    with pytest.raises(IndexError):
        nn.nll_loss(*arrays((X, np.array([0, 5, 1, 1])))).numpy()


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_multilabel_margin_loss(reduction):
    labels = np.array([[3, 0, -1, 1, 2], [1, 1, 4, -1, 0], [-1, 2, 2, 2, 2], [4, 3, 2, 1, 0]])
    rows = []
    for x, row in zip(X.astype("float64"), labels, strict=True):
        own = row[: list(row).index(-1)] if -1 in row else row
        rows.append(sum(max(0.0, 1 - x[t] + x[c]) for t in own for c in range(5) if c not in own) / 5)
    got = nn.multilabel_margin_loss(*arrays((X, labels)), reduction=reduction)
    np.testing.assert_allclose(got.numpy(), REDUCTIONS[reduction](np.array(rows)), 1e-5)
    row = nn.multilabel_margin_loss(*arrays((X[1], labels[1])), reduction=reduction)
    np.testing.assert_allclose(row.numpy(), rows[1], 1e-5)


@pytest.mark.parametrize("swap", [False, True])
def test_triplets_by_a_distance_of_ones_own(swap):
    def city(a, b):
        return dt.sum(dt.abs(a - b), axis=-1)

    near, far, other = (np.abs(a - b).astype("float64").sum(1) for a, b in ((X, Y), (X, Z), (Y, Z)))
    expected = np.maximum(near - (np.minimum(far, other) if swap else far) + 0.5, 0)
    given = arrays((X, Y, Z))
    got = nn.triplet_margin_with_distance_loss(
        *given, distance_function=city, margin=0.5, swap=swap, reduction="none"
    )
    np.testing.assert_allclose(got.numpy(), expected, 1e-5)
    default = nn.triplet_margin_with_distance_loss(*given, swap=swap)
    assert default.item() == nn.triplet_margin_loss(*given, swap=swap).item()


def test_linear_cross_entropy_is_both():
    weight, bias = draw(6, 5, seed=9), draw(6, seed=10)
    logp = log_softmax(X.astype("float64") @ weight.T + bias)
    got = nn.linear_cross_entropy(*arrays((X, weight, CLASSES)), linear_bias=dt.asarray(bias), reduction="none")
    np.testing.assert_allclose(got.numpy(), -logp[np.arange(4), CLASSES], 1e-5)
