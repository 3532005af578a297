"""dovetail.nn's functions that are written in Python: in compiled functions of any sizes, and their errors."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest

nn = dt.nn
RNG = np.random.default_rng(0)


def draw(*shape, dtype="float32"):
    return dt.asarray(RNG.uniform(-1, 1, shape).astype(dtype))


IMAGES, ROWS, SEQUENCES = (
    [(2, 4, 8, 10), (2, 4, 12, 15), (2, 4, 16, 9)],
    [(3, 8), (6, 8), (2, 8)],
    [(5, 2, 8), (7, 3, 8)],
)


def weights(gates):
    return [draw(gates * 4, 8), draw(gates * 4, 4), draw(gates * 4), draw(gates * 4)]


W, ROW, TABLE, THETA = draw(4, 4, 3, 3), dt.abs(draw(8)), draw(8, 3), draw(2, 2, 3)
PLACES, KEY, BILINEAR = dt.abs(draw(2, 4, 2)), dt.random.Generator(5).key((2,)), draw(3, 8, 8)
LSTM, GRU = weights(4), weights(3) * 2


def zeros(x, layers=1):
    return dt.zeros((layers, x.shape[1], 4))


TRACED = {
    "conv_same": (lambda x: nn.conv2d(x, W, padding="same"), IMAGES),
    "conv_sides": (lambda x: nn.conv2d(x, W, padding=((1, 0), (2, 1))), IMAGES),
    "conv_transpose": (lambda x: nn.conv_transpose2d(x, W, stride=2, padding=1), IMAGES),
    "max_pool": (lambda x: nn.max_pool2d(x, 3, 2, 1, 1, True, True), IMAGES),
    "avg_pool": (lambda x: nn.avg_pool2d(x, 3, 2, 1, True, False), IMAGES),
    "adaptive_avg_pool": (lambda x: nn.adaptive_avg_pool2d(x, 3), IMAGES),
    "adaptive_max_pool": (lambda x: nn.adaptive_max_pool2d(x, 3, True), IMAGES),
    "nearest": (lambda x: nn.interpolate(x, scale_factor=2), IMAGES),
    "bilinear": (lambda x: nn.interpolate(x, scale_factor=2, mode="bilinear"), IMAGES),
    "bicubic": (lambda x: nn.interpolate(x, scale_factor=0.75, mode="bicubic"), IMAGES),
    "antialias": (lambda x: nn.interpolate(x, (4, 5), mode="bicubic", antialias=True), IMAGES),
    "unfold": (lambda x: nn.unfold(x, 3, 1, 1, 2), IMAGES),
    "grid_sample": (lambda x: nn.grid_sample(x, nn.affine_grid(THETA, x.shape)), IMAGES),
    "pad": (lambda x: nn.pad(x, (1, 2, 3, 1), "reflect"), IMAGES),
    "batch_norm": (lambda x: nn.batch_norm(x, ROW[:4], ROW[4:], training=True), IMAGES),
    "instance_norm": (lambda x: nn.instance_norm(x), IMAGES),
    "local_response_norm": (lambda x: nn.local_response_norm(x, 3, 0.1), IMAGES),
    "max_unpool": (lambda x: nn.max_unpool2d(*nn.max_pool2d(x, 2, return_indices=True), 2), IMAGES[:1]),
    "fractional": (lambda x: nn.fractional_max_pool2d(x, 2, 3, samples=PLACES), IMAGES),
    "rrelu": (lambda x: nn.rrelu(x), IMAGES),
    "dropout": (lambda x: nn.dropout2d(x, key=KEY), IMAGES),
    "alpha_dropout": (lambda x: nn.alpha_dropout(x, 0.25, True, key=KEY), IMAGES),
    "gumbel_softmax": (lambda x: nn.gumbel_softmax(x, hard=True, key=KEY), ROWS),
    "pdist": (nn.pdist, ROWS),
    "bilinear_form": (lambda x: nn.bilinear(x, x * 2, BILINEAR.astype(x.dtype)), ROWS),
    "multilabel_margin": (lambda x: nn.multilabel_margin_loss(x, dt.argsort(x, axis=1) - 3), ROWS),
    "prelu": (lambda x: nn.prelu(x, ROW[:4]), IMAGES),
    "glu": (lambda x: nn.glu(x, 1), IMAGES),
    "normalize": (lambda x: nn.normalize(x), IMAGES),
    "pixel_shuffle": (lambda x: nn.pixel_shuffle(x, 2), IMAGES),
    "cross_entropy": (lambda x: nn.cross_entropy(x, nn.softmax(x), ROW, label_smoothing=0.125), ROWS),
    "nll_loss": (lambda x: nn.nll_loss(x, dt.argmax(x, axis=1), ROW), ROWS),
    "triplet": (lambda x: nn.triplet_margin_loss(x, x * 2, x - 1), ROWS),
    "embedding_bag": (lambda x: nn.embedding_bag((dt.abs(x) * 5).astype("int64"), TABLE, mode="max"), ROWS),
    "lstm": (lambda x: nn.lstm(x, (zeros(x), zeros(x)), LSTM), SEQUENCES),
    "gru": (lambda x: nn.gru(x, zeros(x, 2), GRU, bidirectional=True), SEQUENCES),
}

# Those with further operands of float32, which results are promoted to.
OF_FLOAT32 = ("conv_same", "conv_sides", "conv_transpose", "cross_entropy", "embedding_bag", "grid_sample", "gru")
OF_FLOAT32 += ("lstm", "nll_loss", "prelu")


@pytest.mark.parametrize("case", TRACED)
def test_a_compiled_function_gives_what_the_eager_one_does(case):
    function, shapes = TRACED[case]
    compiled = dt.compile(function)
    for shape in shapes:
        x = draw(*shape)
        expected, got = function(x), compiled(x)
        for mine, other in zip(*((v if isinstance(v, tuple) else (v,)) for v in (got, expected)), strict=True):
            np.testing.assert_allclose(mine.numpy(), other.numpy(), 1e-5, 1e-5)


def test_compiled_dropout_draws_anew():
    compiled, x = dt.compile(lambda x: nn.dropout(x)), dt.ones((50,))
    dt.random.seed(5)
    first, second = compiled(x).tolist(), compiled(x).tolist()
    dt.random.seed(5)
    assert first != second and [nn.dropout(x).tolist(), nn.dropout(x).tolist()] == [first, second]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("case", [c for c in TRACED if c not in OF_FLOAT32])
def test_results_keep_the_dtype(case, dtype):
    """Within the rounding of what goes in: sums of float16 and bfloat16 are taken in float32."""
    function, shapes = TRACED[case]
    x = draw(*shapes[0]).astype(dtype)
    got, expected = function(x), function(x.astype("float32"))
    got, expected = (v[0] if isinstance(v, tuple) else v for v in (got, expected))
    assert got.dtype == dtype or case == "batch_norm"
    eps = {"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-5}[dtype]
    np.testing.assert_allclose(got.astype("float32").numpy(), expected.numpy(), eps, eps)


V, M, I3, I4 = dt.ones((4,)), dt.ones((2, 3)), dt.ones((1, 2, 8)), dt.ones((1, 2, 8, 8))
WHOLE = dt.ones((1, 2, 8), dtype="int32")
ERRORS = [
    (lambda: nn.pad(M, (1,)), r"\[pad\] pad: got 1 integers, expected pairs"),
    (lambda: nn.pad(M, (1, 1), "mirror"), r"\[pad\] mode: got 'mirror', expected 'constant', 'replicate'"),
    (lambda: nn.pad(M, (-2, -2)), r"\[pad\] pad: got .* too few elements"),
    (lambda: nn.pad(M, (1, 1), "reflect", 1.0), r"\[pad\] value: got 1.0 with mode 'reflect'"),
    (lambda: nn.pad(dt.ones((2, 0)), (1, 1), "reflect"), r"\[pad\] axis 1 of shape \(2, 0\) is empty"),
    (lambda: dt.pad(M, 1, "mirror"), r"\[pad\] mode: got 'mirror', expected 'constant', 'edge'"),
    (lambda: dt.pad(M, 1, "edge", constant_values=2), r"\[pad\] constant_values with mode 'edge'"),
    (lambda: nn.conv1d(I3, I3, stride=2, padding="same"), r"\[conv1d\] padding='same' with stride 2"),
    (lambda: nn.conv1d(I3, I3, padding="full"), r"\[conv1d\] padding: got 'full', expected 'same' or 'valid'"),
    (lambda: nn.conv1d(I3, I3, padding=((1, 2), (1, 2))), r"\[conv1d\] padding: got .* for 1 axes"),
    (lambda: nn.max_pool1d(M, 2, return_indices=True), r"\[max_pool1d\] x: got shape \(2, 3\), expected 3 axes"),
    (
        lambda: nn.max_pool1d(I3, 2, padding=2, ceil_mode=True),
        r"\[max_pool1d\] padding: got \(2, 2\), expected 0 to 1",
    ),
    (lambda: nn.avg_pool2d(I4, 2, divisor_override=0), r"\[avg_pool2d\] divisor_override: got 0"),
    (lambda: nn.adaptive_avg_pool1d(I3, 0), r"\[adaptive_avg_pool1d\] output_size 0"),
    (
        lambda: nn.adaptive_avg_pool2d(I4, (1, 2, 3)),
        r"\[adaptive_avg_pool2d\] output_size: got 3 integers, expected 1 or 2",
    ),
    (lambda: nn.interpolate(I3), r"\[interpolate\] size, scale_factor: expected one of them"),
    (
        lambda: nn.interpolate(I3, 4, mode="bilinear"),
        r"\[interpolate\] mode 'bilinear' of x of shape .* expected 4 axes",
    ),
    (lambda: nn.interpolate(I3, 4, align_corners=True), r"\[interpolate\] align_corners with mode 'nearest'"),
    (lambda: nn.interpolate(I3, 4, mode="linear", antialias=True), r"\[interpolate\] antialias with mode 'linear'"),
    (lambda: nn.interpolate(I3, scale_factor=0.01), r"\[interpolate\] scale_factor 0.01 leaves nothing"),
    (lambda: nn.fold(I3, 4, 3), r"\[fold\] x: got shape \(1, 2, 8\), expected"),
    (
        lambda: nn.grid_sample(I4, dt.ones((1, 2, 2, 3))),
        r"\[grid_sample\] x of shape .* expected as many in the batch",
    ),
    (lambda: nn.grid_sample(I4, dt.ones((1, 2, 2, 2)), "linear"), r"\[grid_sample\] mode: got 'linear'"),
    (lambda: nn.affine_grid(I3, (1, 2, 3, 4)), r"\[affine_grid\] theta of shape"),
    (lambda: nn.batch_norm(I4, None, None), r"\[batch_norm\] running_mean and running_var: got None"),
    (lambda: nn.batch_norm(dt.ones((1, 2)), None, None, training=True), r"\[batch_norm\] .* one value per channel"),
    (lambda: nn.instance_norm(M), r"\[instance_norm\] x: got shape \(2, 3\), expected 3 axes"),
    (lambda: nn.prelu(M, V), r"\[prelu\] weight of shape \(4,\) for x of shape \(2, 3\)"),
    (lambda: nn.glu(M), r"\[glu\] axis 1 of shape \(2, 3\): got 3 elements, expected an even number"),
    (lambda: nn.dropout(M, 1.5), r"\[dropout\] p: got 1.5"),
    (lambda: nn.pixel_shuffle(I4, 2), r"\[pixel_shuffle\] x of shape"),
    (lambda: nn.pixel_unshuffle(I4, 3), r"\[pixel_unshuffle\] x of shape"),
    (lambda: nn.channel_shuffle(I4, 3), r"\[channel_shuffle\] x of shape"),
    (lambda: nn.embedding_bag(dt.zeros((4,), dtype="int64"), M), r"\[embedding_bag\] x of shape \(4,\)"),
    (
        lambda: nn.embedding_bag(dt.zeros((1, 2), dtype="int64"), M, mode="min"),
        r"\[embedding_bag\] mode: got 'min'",
    ),
    (lambda: nn.mse_loss(M, V), r"\[mse_loss\] target: got shape \(4,\), expected x's \(2, 3\)"),
    (
        lambda: nn.l1_loss(M, M, reduction="max"),
        r"\[l1_loss\] reduction: got 'max', expected 'none', 'mean' or 'sum'",
    ),
    (lambda: nn.huber_loss(M, M, delta=0), r"\[huber_loss\] delta: got 0"),
    (lambda: nn.nll_loss(M, V.astype("int64")), r"\[nll_loss\] target of shape \(4,\) for x of shape \(2, 3\)"),
    (lambda: nn.cross_entropy(M, V), r"\[cross_entropy\] target of probabilities: got shape"),
    (lambda: nn.lstm(I3, (M, M), []), r"\[lstm\] params: got 0 arrays, expected 4 for each of 1 layers"),
    (
        lambda: nn.gru(dt.ones((5, 2, 8)), dt.zeros((2, 2, 4)), weights(3)),
        r"\[gru\] hx: got .*, expected \(1, 2, 4\)",
    ),
    (
        lambda: nn.gru(dt.ones((5, 2, 6)), dt.zeros((1, 2, 4)), weights(3)),
        r"\[gru\] params: got w_ih of shape \(12, 8\) in layer 0, expected \(12, 6\)",
    ),
    (
        lambda: nn.gru(dt.ones((5, 2, 8)), dt.zeros((1, 2, 4)), [*weights(3)[:3], V]),
        r"\[gru\] params: got b_hh of shape \(4,\) in layer 0, expected \(12,\)",
    ),
]


@pytest.mark.parametrize("i", range(len(ERRORS)))
def test_errors_name_the_function_and_what_it_expects(i):
    call, message = ERRORS[i]
    with pytest.raises(ValueError, match=message):
        call()


def test_integers_are_no_averages():
    for call in (
        lambda: nn.interpolate(WHOLE, 4, mode="linear"),
        lambda: nn.adaptive_avg_pool1d(WHOLE, 2),
        lambda: nn.normalize(WHOLE),
    ):
        with pytest.raises(TypeError, match="expected a real floating-point dtype; astype it"):
            call()
