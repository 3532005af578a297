"""dovetail.nn next to torch.nn.functional, where torch is installed: the same arguments, results and dtypes."""

from __future__ import annotations

import itertools

import dovetail as dt
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
F, nn = torch.nn.functional, dt.nn
RNG = np.random.default_rng(0)


def draw(*shape, low=-2.0, high=2.0):
    return RNG.uniform(low, high, shape).astype("float32")


X = {1: draw(2, 3, 11), 2: draw(2, 3, 9, 8), 3: draw(2, 3, 6, 7, 5)}
CASES: list = []


def case(name, mine, theirs, *arrays, tol=2e-5):
    CASES.append(pytest.param(mine, theirs, arrays, tol, id=f"{len(CASES)}-{name}"))


def same(name, *arrays, args=(), tol=2e-5, **how):
    """The function of this name of both, with the same arguments."""
    case(
        name,
        lambda *a: getattr(nn, name)(*a, *args, **how),
        lambda *a: getattr(F, name)(*a, *args, **how),
        *arrays,
        tol=tol,
    )


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# ---- windows -----------------------------------------------------------------------------------------------------

for n, ceil, padding, (k, s) in itertools.product(
    (1, 2, 3), (False, True), (0, 1), ((3, 2), (2, None), (3, 3), (2, 3))
):
    same(f"max_pool{n}d", X[n], args=(k, s, padding, 1, ceil))
    same(f"max_pool{n}d", X[n], args=(k, s, padding, 1, ceil, True))
    same(f"avg_pool{n}d", X[n], args=(k, s, padding, ceil, True))
    same(f"avg_pool{n}d", X[n], args=(k, s, padding, ceil, False))
    if n > 1:
        same(f"avg_pool{n}d", X[n], args=(k, s, padding, ceil, True, 5))
same("max_pool2d", X[2], args=(3, 2, 1, 2, True, True))
for n in X:
    for size in (1, 2, 3, 4, 5, 7, 13):
        same(f"adaptive_avg_pool{n}d", X[n], args=(size,))
        same(f"adaptive_max_pool{n}d", X[n], args=(size, True))
    same(f"lp_pool{n}d", X[n], args=(2, 3, 2))
    kernel = (3, 2, 4)[:n]
    same(f"conv{n}d", X[n], draw(4, 3, *kernel), draw(4), args=(2, 1))
    for padding in ("same", "valid"):
        same(f"conv{n}d", X[n], draw(4, 3, *kernel), draw(4), args=(1, padding, (2, 1, 1)[:n]))
    same(f"conv_transpose{n}d", X[n], draw(3, 4, *kernel), draw(4), args=(2, 1, 1, 1, 2))
for how in ((3, 1, 0, 1), ((2, 3), 2, 1, 2), ((2, 3), (1, 2), (1, 0), (2, 3))):
    same("unfold", X[2], args=how)
    same("fold", F.unfold(torch.from_numpy(X[2]), *how).numpy(), args=((9, 8), *how))

for n, x in X.items():
    found = getattr(F, f"max_pool{n}d")(torch.from_numpy(x), 2, return_indices=True)
    same(f"max_unpool{n}d", *(a.numpy() for a in found), args=(2, None, 0, x.shape[2:]))
    found = getattr(F, f"max_pool{n}d")(torch.from_numpy(draw(2, 3, *(8, 6, 4)[:n])), 2, return_indices=True)
    same(f"max_unpool{n}d", *(a.numpy() for a in found), args=(2,))
for n, size in itertools.product((2, 3), (1, 2, 3)):
    how = {"output_size": size, "return_indices": True}
    case(
        "fractional_max_pool",
        lambda x, s, n=n, how=how: getattr(nn, f"fractional_max_pool{n}d")(x, 2, **how, samples=s),
        lambda x, s, n=n, how=how: getattr(F, f"fractional_max_pool{n}d")(x, 2, **how, _random_samples=s),
        X[n],
        draw(2, 3, n, low=0, high=1),
    )

# ---- sizes and places --------------------------------------------------------------------------------------------

MODES = [("nearest", 1), ("nearest", 2), ("nearest", 3), ("nearest-exact", 2), ("linear", 1), ("bilinear", 2)]
MODES += [("bicubic", 2), ("trilinear", 3), ("area", 1), ("area", 2), ("area", 3)]
for mode, n in MODES:
    corners = (None, False, True) if "linear" in mode or "cubic" in mode else (None,)
    for size, align in itertools.product((1, 4, 5, 13, 16), corners):
        same("interpolate", X[n], args=(size,), mode=mode, align_corners=align)
    for factor, recompute in itertools.product((2, 2.0, 0.5, 1.7, 0.6, 3), (None, True)):
        same("interpolate", X[n], scale_factor=factor, mode=mode, recompute_scale_factor=recompute)
for mode, size, align in itertools.product(("bilinear", "bicubic"), (3, (4, 13), 20), (False, True)):
    same("interpolate", X[2], args=(size,), mode=mode, align_corners=align, antialias=True)
    same("interpolate", draw(1, 2, 40, 30), scale_factor=0.4, mode=mode, antialias=True)
for n, mode, padding, align in itertools.product(
    (2, 3), ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (False, True)
):
    if (mode, n) != ("bicubic", 3):
        grid = draw(2, *(3, 4, 5)[:n], n, low=-1.6, high=1.6)
        same("grid_sample", X[n], grid, args=(mode, padding, align), tol=1e-4)
for align in (False, True):
    same("affine_grid", draw(2, 2, 3), args=((2, 3, 4, 5), align))
    same("affine_grid", draw(2, 3, 4), args=((2, 3, 4, 5, 6), align))
for mode in ("constant", "reflect", "replicate", "circular"):
    same("pad", X[2], args=((1, 2, 3, 0), mode))
    same("pad", X[2], args=((1, -2, -1, 0), mode))
same("pad", X[2], args=((1, 2), "constant", 3.5))
same("pixel_shuffle", draw(2, 12, 3, 4), args=(2,))
same("pixel_unshuffle", draw(2, 3, 6, 4), args=(2,))
same("channel_shuffle", draw(2, 6, 4), args=(3,))

# ---- layers ------------------------------------------------------------------------------------------------------


def trained(x, mean, var, weight, bias):
    return F.batch_norm(x, mean, var, weight, bias, True, 0.3, 1e-3), mean, var


CHANNELS = draw(3), draw(3, low=0.5), draw(3), draw(3)
case("batch_norm", lambda *a: nn.batch_norm(*a, training=True, momentum=0.3, eps=1e-3), trained, X[2], *CHANNELS)
same("batch_norm", X[2], *CHANNELS)
case("instance_norm", nn.instance_norm, lambda x, w, b: F.instance_norm(x, None, None, w, b), X[2], *CHANNELS[2:])
same("group_norm", draw(2, 6, 5, 4), args=(2,))
for p in (1.0, 2.0, 3.0, float("inf")):
    same("normalize", X[2], args=(p, -1))
same("cosine_similarity", draw(4, 1, 6), draw(5, 6), args=(-1,))
same("pairwise_distance", draw(4, 6), draw(4, 6), args=(3.0,))
for x, w in ((X[2], draw(1)), (X[2], draw(3)), (draw(5), draw(1)), (draw(4, 3), draw(3))):
    same("prelu", x, w)
same("glu", X[2], args=(-1,))
same("rrelu", X[2], args=(0.1, 0.3))
for n, size in itertools.product(X, (1, 2, 3, 5)):
    same("local_response_norm", X[n], args=(size, 0.1, 0.6, 2.0))
for p in (0.0, 1.0, 2.0, 3.5, float("inf")):
    same("pdist", draw(7, 5), args=(p,))
same("bilinear", draw(2, 6, 4), draw(2, 6, 3), draw(5, 4, 3), draw(5))
same("softmin", X[2], args=(1,))
for name in ("celu", "softsign", "hardtanh", "hardshrink", "softshrink", "tanhshrink"):
    same(name, X[2])
same("threshold", X[2], args=(0.3, 9.0))
IDS, TABLE = RNG.integers(0, 7, (4, 5)), draw(7, 6)
for mode, padding in itertools.product(("sum", "mean", "max"), (None, 2, -3)):
    same("embedding_bag", IDS, TABLE, mode=mode, padding_idx=padding)
    flat = IDS.reshape(-1)
    same("embedding_bag", flat, TABLE, np.array([0, 3, 3, 9]), mode=mode, padding_idx=padding)
    ends = np.array([0, 3, 3, 9, 20])
    same("embedding_bag", flat, TABLE, ends, mode=mode, padding_idx=padding, include_last_offset=True)

# ---- losses ------------------------------------------------------------------------------------------------------

A, B, C, SIGN = draw(4, 5), draw(4, 5), draw(4, 5), np.sign(draw(4, 5))
P, Q = draw(4, 5, low=0.01, high=0.99), draw(4, 5, low=0.01, high=0.99)
WEIGHT, CLASSES, COUNTS = draw(5, low=0.1), RNG.integers(0, 5, 4), RNG.integers(0, 5, (4, 5)).astype("float32")
IGNORED = np.where(np.arange(4) == 1, -100, CLASSES)
for reduction in ("mean", "sum", "none"):
    how = {"reduction": reduction}
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
        same(name, A, B, **how)
    same("smooth_l1_loss", A, B, beta=0.0, **how)
    same("binary_cross_entropy", P, Q, WEIGHT, **how)
    same("binary_cross_entropy", np.float32([0, 1]), np.float32([1, 0]), **how)
    same("binary_cross_entropy_with_logits", A * 50, Q, WEIGHT, **how)
    if reduction != "mean":
        same("kl_div", A, Q, **how)
        same("kl_div", A, B, log_target=True, **how)
    for target, smoothing in itertools.product((CLASSES, IGNORED, Q), (0.0, 0.1)):
        same("cross_entropy", A, target, label_smoothing=smoothing, **how)
        same("cross_entropy", A, target, WEIGHT, label_smoothing=smoothing, **how)
    for target in (CLASSES, IGNORED):
        same("nll_loss", A, target, **how)
        same("nll_loss", A, target, WEIGHT, **how)
    same("cross_entropy", draw(2, 5, 3, 4), RNG.integers(0, 5, (2, 3, 4)), WEIGHT, label_smoothing=0.1, **how)
    same("cross_entropy", draw(2, 5, 3, 4), draw(2, 5, 3, 4, low=0), WEIGHT, **how)
    same("cross_entropy", draw(5), np.array(3), WEIGHT, **how)
    for var in (draw(4, 5, low=0.1), draw(4, 1, low=0.1), draw(4, low=0.1)):
        same("gaussian_nll_loss", A, B, var, full=True, **how)
    for log_input, full in itertools.product((True, False), repeat=2):
        same("poisson_nll_loss", P, COUNTS, log_input=log_input, full=full, **how)
    same("margin_ranking_loss", A, B, SIGN, margin=0.3, **how)
    same("hinge_embedding_loss", A, SIGN, margin=0.4, **how)
    same("soft_margin_loss", A * 40, SIGN, **how)
    same("cosine_embedding_loss", A, B, np.ascontiguousarray(SIGN[:, 0]), margin=0.2, **how)
    for swap in (False, True):
        same("triplet_margin_loss", A, B, C, swap=swap, margin=0.8, p=3.0, **how)
        same("triplet_margin_with_distance_loss", A, B, C, swap=swap, margin=0.8, **how)
    same("multi_margin_loss", A, CLASSES, p=2, **how)
    same(
        "multilabel_margin_loss",
        A,
        np.array([[3, 0, -1, 1, 2], [1, 1, 4, -1, 0], [-1] * 5, [4, 3, 2, 1, 0]]),
        **how,
    )
    case(
        "linear_cross_entropy",
        lambda x, w, b, t, how=how: nn.linear_cross_entropy(x, w, t, linear_bias=b, label_smoothing=0.1, **how),
        lambda x, w, b, t, how=how: F.cross_entropy(F.linear(x, w, b), t, label_smoothing=0.1, **how),
        A, draw(6, 5), draw(6), CLASSES,
    )  # fmt: skip
    for blank, inputs, sizes in ((0, (8, 8, 6), (4, 2, 0)), (5, (8, 5, 7), (3, 4, 1)), (2, (2, 8, 8), (3, 4, 4))):
        given = F.log_softmax(torch.from_numpy(draw(8, 3, 6)), 2).numpy(), RNG.integers(0, 5, (3, 4))
        for classes in (given[1] + (given[1] >= blank), np.full((3, 4), 1)):
            lengths = np.array(inputs), np.array(sizes)
            same("ctc_loss", given[0], classes, *lengths, blank=blank, zero_infinity=True, **how)
            flat = np.concatenate([row[:n] for row, n in zip(classes, sizes, strict=True)])
            same("ctc_loss", given[0], flat, *lengths, blank=blank, **how)
    same("multilabel_soft_margin_loss", A, Q, WEIGHT, **how)
same("kl_div", A, Q, reduction="batchmean")


# ---- the comparison ----------------------------------------------------------------------------------------------


def expect_equal(got, expected, tol):
    got, expected = (v if isinstance(v, tuple) else (v,) for v in (got, expected))
    for mine, other in zip(got, expected, strict=True):
        mine, other = mine.numpy(), other.detach().numpy()
        assert (mine.dtype, mine.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(mine, other, tol, tol)


@pytest.mark.parametrize(("mine", "theirs", "arrays", "tol"), CASES)
def test_function(mine, theirs, arrays, tol):
    expect_equal(mine(*map(dt.asarray, arrays)), theirs(*(torch.from_numpy(a.copy()) for a in arrays)), tol)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch_first", [False, True])
def test_recurrent_network(kind, bidirectional, layers, bias, batch_first):
    how = {"bidirectional": bidirectional, "batch_first": batch_first}
    network = getattr(torch.nn, kind)(3, 4, layers, bias=bias, **how)
    states = [draw(layers * (1 + bidirectional), 2, 4) for _ in range(2 if kind == "LSTM" else 1)]
    x = draw(*((2, 5, 3) if batch_first else (5, 2, 3)))
    params = [dt.asarray(p.detach().numpy()) for p in network._flat_weights]
    given = tuple(map(torch.from_numpy, states))
    y, last = network(torch.from_numpy(x), given if kind == "LSTM" else given[0])
    hx = tuple(map(dt.asarray, states))
    function = {"LSTM": nn.lstm, "GRU": nn.gru, "RNN": nn.rnn_tanh}[kind]
    hx = hx if kind == "LSTM" else hx[0]
    got = function(dt.asarray(x), hx, params, has_biases=bias, num_layers=layers, **how)
    expect_equal(got, (y, *last) if kind == "LSTM" else (y, last), 2e-5)
