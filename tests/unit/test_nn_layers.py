"""Layers that draw, distances and other compositions of dovetail.nn, against NumPy in float64."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest

nn = dt.nn
RNG = np.random.default_rng(0)


def draw(*shape):
    return RNG.uniform(-2, 2, shape).astype("float32")


def uniform(shape):
    """The numbers that the key below draws."""
    return dt.random.Generator(5).uniform(shape).numpy().astype("float64")


def key(shape):
    return dt.random.Generator(5).key(shape)


# ---- draws -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("p", [0.0, 0.4, 1.0])
def test_dropout_of_channels_drops_whole_ones(n, p):
    x, drawn = draw(5, 6, *(4, 3, 2)[:n]), (5, 6, *(1,) * n)
    dropout = getattr(nn, f"dropout{n}d")
    kept = x.astype("float64") / (1 - p if p < 1 else 1)
    expected = np.where(uniform(drawn) < p, 0, kept)
    np.testing.assert_allclose(dropout(dt.asarray(x), p, key=key(drawn)).numpy(), expected, 1e-6)
    np.testing.assert_array_equal(dropout(dt.asarray(x), p, training=False).numpy(), x)


@pytest.mark.parametrize("channels", [False, True])
def test_alpha_dropout_keeps_mean_and_variance(channels):
    x = RNG.standard_normal((300, 20, 50)).astype("float32")
    dropout, drawn = (nn.feature_alpha_dropout, (300, 20, 1)) if channels else (nn.alpha_dropout, x.shape)
    got = dropout(dt.asarray(x), 0.3, True, key=key(drawn)).numpy()
    assert abs(got.mean()) < 0.05
    assert abs(got.std() - 1) < 0.05
    dropped = np.broadcast_to(uniform(drawn) < 0.3, x.shape)
    (low,) = np.unique(got[dropped])
    scale, shift = np.polyfit(x[~dropped].astype("float64"), got[~dropped], 1)
    np.testing.assert_allclose(low, scale * -1.7580993408473766 + shift, 1e-4)  # selu of minus infinity
    np.testing.assert_allclose(got[~dropped], x[~dropped] * scale + shift, 1e-4, 1e-5)
    assert not dropout(dt.asarray(x), 1.0, True).numpy().any()
    np.testing.assert_array_equal(dropout(dt.asarray(x), 0.3).numpy(), x)


def test_rrelu_draws_its_slopes():
    x = draw(40, 30)
    slopes = 0.1 + uniform(x.shape) * 0.5
    got = nn.rrelu(dt.asarray(x), 0.1, 0.6, True, key=key(x.shape)).numpy()
    np.testing.assert_allclose(got, np.where(x > 0, x, x * slopes), 1e-5)
    np.testing.assert_allclose(nn.rrelu(dt.asarray(x), 0.1, 0.6).numpy(), np.where(x > 0, x, x * 0.35), 1e-6)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gumbel_softmax_is_softmax_of_moved_logits(axis):
    x = draw(4, 5, 6)
    moved = (x - np.log(-np.log1p(-np.maximum(uniform(x.shape), 2.0**-25)))) / 0.7
    e = np.exp(moved - moved.max(axis, keepdims=True))
    soft = nn.gumbel_softmax(dt.asarray(x), 0.7, axis=axis, key=key(x.shape)).numpy()
    np.testing.assert_allclose(soft, e / e.sum(axis, keepdims=True), 1e-4, 1e-6)
    hard = nn.gumbel_softmax(dt.asarray(x), 0.7, True, axis, key=key(x.shape)).numpy()
    np.testing.assert_array_equal(hard, moved == moved.max(axis, keepdims=True))


def test_gumbel_softmax_chooses_by_the_probabilities():
    p = np.float32([0.05, 0.25, 0.7])
    chosen = nn.gumbel_softmax(dt.asarray(np.tile(np.log(p), (20000, 1))), hard=True, key=key((20000, 3))).numpy()
    np.testing.assert_allclose(chosen.mean(0), p, atol=0.02)


# ---- distances and products --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 9])
@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf")])
def test_pdist(n, p):
    x = draw(n, 4)
    pairs = [(x[i] - x[j]).astype("float64") for i in range(n) for j in range(i + 1, n)]
    expected = [np.linalg.norm(d, p) for d in pairs]
    np.testing.assert_allclose(nn.pdist(dt.asarray(x), p).numpy(), expected, 1e-5)


def test_bilinear():
    x1, x2, weight, bias = draw(2, 6, 4), draw(2, 6, 3), draw(5, 4, 3), draw(5)
    wide = (a.astype("float64") for a in (x1, weight, x2))
    expected = np.einsum("abi,oij,abj->abo", *wide)
    arrays = [dt.asarray(a) for a in (x1, x2, weight, bias)]
    np.testing.assert_allclose(nn.bilinear(*arrays[:3]).numpy(), expected, 1e-5, 1e-5)
    np.testing.assert_allclose(nn.bilinear(*arrays).numpy(), expected + bias, 1e-5, 1e-5)


@pytest.mark.parametrize("shape", [(2, 7, 5), (2, 7, 3, 4), (1, 2, 2, 2, 2)])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_local_response_norm(shape, size):
    x = draw(*shape).astype("float64")
    total = np.zeros_like(x)
    for c in range(shape[1]):
        first = c - size // 2
        total[:, c] = (x[:, max(first, 0) : first + size] ** 2).sum(1)
    expected = x / (2.0 + 0.1 * total / size) ** 0.6
    got = nn.local_response_norm(dt.asarray(x.astype("float32")), size, 0.1, 0.6, 2.0).numpy()
    np.testing.assert_allclose(got, expected, 1e-5)


# ---- what they refuse --------------------------------------------------------------------------------------------

M, I3 = dt.ones((2, 3)), dt.ones((1, 2, 8))
ERRORS = [
    (lambda: nn.dropout2d(I3), r"\[dropout2d\] x: got shape \(1, 2, 8\), expected 4 axes"),
    (lambda: nn.dropout1d(I3, 1.5), r"\[dropout1d\] p: got 1.5, expected a probability"),
    (lambda: nn.feature_alpha_dropout(dt.ones((3,))), r"\[feature_alpha_dropout\] x: got shape \(3,\)"),
    (lambda: nn.rrelu(M, 0.5, 0.1), r"\[rrelu\] lower, upper: got 0.5, 0.1, expected lower <= upper"),
    (lambda: nn.gumbel_softmax(M, 0), r"\[gumbel_softmax\] tau: got 0, expected more than 0"),
    (lambda: nn.pdist(I3), r"\[pdist\] x: got shape \(1, 2, 8\), expected 2 axes"),
    (lambda: nn.pdist(M, -1.0), r"\[pdist\] p: got -1.0, expected at least 0"),
    (lambda: nn.bilinear(M, M, M), r"\[bilinear\] x1 of shape .* expected \(..., I\), \(..., J\), \(O, I, J\)"),
    (lambda: nn.local_response_norm(M, 2), r"\[local_response_norm\] x of shape \(2, 3\), size 2"),
]


@pytest.mark.parametrize("i", range(len(ERRORS)))
def test_errors_name_the_function_and_what_it_expects(i):
    call, message = ERRORS[i]
    with pytest.raises(ValueError, match=message):
        call()


def test_integers_have_no_dropout():
    with pytest.raises(TypeError, match=r"\[alpha_dropout\] x: got int64, expected a real floating-point dtype"):
        nn.alpha_dropout(dt.asarray([1]), training=True)
