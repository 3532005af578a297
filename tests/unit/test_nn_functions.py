"""dovetail.nn's functions that are written in Python, against NumPy: windows, sizes, layers and networks.

test_nn_torch.py compares all of them with torch where that is installed; test_nn_errors.py has errors and traces.
"""

from __future__ import annotations

import itertools
import math

import dovetail as dt
import numpy as np
import pytest

nn = dt.nn
SHAPES = {1: (2, 3, 11), 2: (2, 3, 9, 8), 3: (1, 2, 6, 7, 5)}


def draw(*shape, seed=0, dtype="float32"):
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(dtype)


def close(got, expected, tol=1e-5):
    expected = np.asarray(expected)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.numpy(), expected, tol, tol)


# ---- padding -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
@pytest.mark.parametrize("width", [1, (2, 0), ((1, 2), (0, 3)), ((7, 9), (11, 8)), (0, 0)])
def test_pad_repeats_elements_as_numpy_does(mode, width):
    x = np.arange(12, dtype="int32").reshape(3, 4)
    got = dt.pad(dt.asarray(x), width, mode)
    assert got.dtype == dt.int32 and got.tolist() == np.pad(x, width, mode).tolist()


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_pad_of_one_element(mode):
    assert dt.pad(dt.asarray([5]), 3, mode).tolist() == [5] * 7


def test_nn_pad_counts_from_the_last_axis_and_crops():
    x = draw(2, 3, 4)
    close(nn.pad(dt.asarray(x), (1, 2, 0, 1), value=7.0), np.pad(x, ((0, 0), (0, 1), (1, 2)), constant_values=7))
    close(nn.pad(dt.asarray(x), (-1, 2), "circular"), np.pad(x[..., 1:], ((0, 0), (0, 0), (0, 2)), "wrap"))
    close(
        nn.pad(dt.asarray(x), (0, -1, 1, -1), "replicate"), np.pad(x[:, :2, :3], ((0, 0), (1, 0), (0, 0)), "edge")
    )
    close(nn.pad(dt.asarray(x), (np.int64(1), np.int64(2))), np.pad(x, ((0, 0), (0, 0), (1, 2))))


# ---- convolutions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3])
def test_conv_pads_by_name_and_by_side(n):
    x, w = draw(*SHAPES[n]), draw(4, SHAPES[n][1], *(3, 2, 4)[:n], seed=1)
    conv, dilation = getattr(nn, f"conv{n}d"), (2, 1, 1)[:n]
    given = dt.asarray(x), dt.asarray(w)
    same = conv(*given, padding="same", dilation=dilation)
    assert same.shape == (x.shape[0], 4, *x.shape[2:])
    totals = [d * (k - 1) for d, k in zip(dilation, w.shape[2:], strict=True)]
    sides = [(t // 2, t - t // 2) for t in totals]
    padded = np.pad(x, ((0, 0), (0, 0), *sides))
    expected = conv(dt.asarray(padded), given[1], dilation=dilation)
    close(same, expected.numpy())
    close(conv(*given, padding=sides, dilation=dilation), expected.numpy())
    close(conv(*given, padding="valid"), conv(*given).numpy())
    close(conv(*given, padding=[(1, 1)] * n), conv(*given, padding=1).numpy())


# ---- pools -------------------------------------------------------------------------------------------------------


def window_places(n, kernel, stride, before, after, dilation, ceil):
    """Where windows begin: counted one by one, as the definition of ceil_mode has it."""
    reach, starts, at = dilation * (kernel - 1) + 1, [], -before
    while at + reach <= n + after or (ceil and at < n and at + reach < n + after + stride):
        starts.append(at)
        at += stride
    return starts


def pooled(x, kernel, stride, sides, dilation, ceil):
    """For each window: the places of x's elements in it, and how many elements and padding it has."""
    n = x.ndim - 2
    starts = [
        window_places(x.shape[2 + i], kernel, stride, *sides[i], dilation if dilation else 1, ceil)
        for i in range(n)
    ]
    shape = tuple(map(len, starts))
    for at in np.ndindex(*shape):
        begin = [starts[i][at[i]] for i in range(n)]
        taps = [[b + k * dilation for k in range(kernel)] for b in begin]
        inside = [[t for t in axis if 0 <= t < size] for axis, size in zip(taps, x.shape[2:], strict=True)]
        counted = [
            [t for t in axis if -before <= t < size + after]
            for axis, size, (before, after) in zip(taps, x.shape[2:], sides, strict=True)
        ]
        yield at, shape, [*itertools.product(*inside)], math.prod(map(len, counted))


POOLS = [
    (3, 2, 0, 1, True),
    (3, 2, 1, 1, True),
    (2, 3, 1, 1, True),
    (3, 3, 1, 1, False),
    (3, 2, ((0, 1),), 1, False),
    (3, 2, ((1, 0),), 1, True),
    (2, 2, 0, 2, True),
]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(("kernel", "stride", "padding", "dilation", "ceil"), POOLS)
def test_max_pool(n, kernel, stride, padding, dilation, ceil):
    x = draw(*SHAPES[n])
    sides = [(padding, padding)] * n if isinstance(padding, int) else [*padding] * n
    padding = padding if isinstance(padding, int) else sides
    values = indices = None
    for at, shape, inside, _ in pooled(x, kernel, stride, sides, dilation, ceil):
        if values is None:
            values = np.empty((*x.shape[:2], *shape), x.dtype)
            indices = np.empty(values.shape, "int64")
        elements = np.stack([x[(..., *place)] for place in inside], -1)
        flat = np.array([np.ravel_multi_index(place, x.shape[2:]) for place in inside])
        values[(..., *at)] = elements.max(-1)
        indices[(..., *at)] = flat[elements.argmax(-1)]
    pool = getattr(nn, f"max_pool{n}d")
    got, positions = pool(dt.asarray(x), kernel, stride, padding, dilation, ceil, True)
    close(got, values)
    close(positions, indices)
    close(pool(dt.asarray(x), kernel, stride, padding, dilation, ceil), values)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(("kernel", "stride", "padding", "dilation", "ceil"), POOLS[:-1])
@pytest.mark.parametrize("include", [True, False])
def test_avg_pool(n, kernel, stride, padding, dilation, ceil, include):
    x = draw(*SHAPES[n])
    sides = [(padding, padding)] * n if isinstance(padding, int) else [*padding] * n
    padding = padding if isinstance(padding, int) else sides
    means = totals = None
    for at, shape, inside, count in pooled(x, kernel, stride, sides, 1, ceil):
        if means is None:
            means, totals = (np.empty((*x.shape[:2], *shape), x.dtype) for _ in range(2))
        total = sum(x[(..., *place)] for place in inside)
        means[(..., *at)] = total / (count if include else len(inside))
        totals[(..., *at)] = total
    pool = getattr(nn, f"avg_pool{n}d")
    close(pool(dt.asarray(x), kernel, stride, padding, ceil, include), means)
    if n > 1:
        close(pool(dt.asarray(x), kernel, stride, padding, ceil, include, 5), totals / 5)


def test_max_pool_of_integers_and_of_nan():
    x = dt.asarray(np.array([[[-128, -128, -128, 3, -7]]], "int8"))
    values, places = nn.max_pool1d(x, 2, 2, 1, ceil_mode=True, return_indices=True)
    assert values.dtype == dt.int8 and values.tolist() == [[[-128, -128, 3]]]
    y = dt.asarray(np.array([[[1, np.nan, 2, -np.inf, 5]]], "float32"))
    values, places = nn.max_pool1d(y, 3, 2, return_indices=True)
    assert np.isnan(values.numpy()[0, 0, 0]) and places.tolist() == [[[1, 4]]]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 13])
def test_adaptive_pools(n, size):
    x = draw(*SHAPES[n])
    cuts = [[(i * m // size, -(-(i + 1) * m // size)) for i in range(size)] for m in x.shape[2:]]
    means = np.empty((*x.shape[:2], *[size] * n), x.dtype)
    largest, places = np.empty_like(means), np.empty(means.shape, "int64")
    numbers = np.arange(math.prod(x.shape[2:])).reshape(x.shape[2:])
    for at in np.ndindex(*[size] * n):
        part = tuple(slice(*cuts[i][at[i]]) for i in range(n))
        flat = x[(..., *part)].reshape(*x.shape[:2], -1)
        means[(..., *at)], largest[(..., *at)] = flat.mean(-1), flat.max(-1)
        places[(..., *at)] = numbers[part].reshape(-1)[flat.argmax(-1)]
    close(getattr(nn, f"adaptive_avg_pool{n}d")(dt.asarray(x), size), means)
    values, indices = getattr(nn, f"adaptive_max_pool{n}d")(dt.asarray(x), size, True)
    close(values, largest)
    close(indices, places)
    mode = dt.asarray(x)
    close(nn.interpolate(mode, size, mode="area"), means)


def test_adaptive_pool_keeps_infinities_in_their_parts():
    x = np.array([[[1, np.inf, 2, 3, 4, 5, 6]]], "float32")
    assert nn.adaptive_avg_pool1d(dt.asarray(x), 3).tolist() == [[[np.inf, 3.0, 5.0]]]
    close(
        nn.adaptive_avg_pool2d(dt.asarray(draw(1, 2, 4, 6)), (None, 2)),
        draw(1, 2, 4, 6).reshape(1, 2, 4, 2, 3).mean(-1),
    )


def test_lp_pool():
    x = draw(2, 3, 9, 8)
    expected = np.sqrt(np.lib.stride_tricks.sliding_window_view(x * x, (3, 3), (2, 3))[:, :, ::2, ::2].sum((4, 5)))
    close(nn.lp_pool2d(dt.asarray(x), 2, 3, 2), expected)


# ---- other sizes -------------------------------------------------------------------------------------------------


def resized(x, axis, m, step, mode, align_corners=False, antialias=False):
    """One axis, element by element, in float64."""
    x, n = np.moveaxis(x.astype("float64"), axis, -1), x.shape[axis]
    out = np.empty((*x.shape[:-1], m))
    for i in range(m):
        centre = i * step if align_corners else (i + 0.5) * step - 0.5
        if mode == "linear" and not align_corners and not antialias:
            centre = max(centre, 0)
        a, reach = (-0.5 if antialias else -0.75), 2 if mode == "cubic" else 1
        width = max(step, 1) if antialias else 1
        if antialias:
            centre = (i + 0.5) * step - 0.5
        weights = {}
        for j in range(math.floor(centre - reach * width) - 1, math.ceil(centre + reach * width) + 2):
            d = abs(j - centre) / width
            if mode == "linear":
                w = max(1 - d, 0)
            else:
                w = (
                    ((a + 2) * d - (a + 3)) * d * d + 1
                    if d < 1
                    else (((d - 5) * d + 8) * d - 4) * a
                    if d < 2
                    else 0
                )
            if not antialias:
                weights[min(max(j, 0), n - 1)] = weights.get(min(max(j, 0), n - 1), 0) + w
            elif 0 <= j < n:
                weights[j] = w
        total = sum(weights.values())
        out[..., i] = sum(x[..., j] * w for j, w in weights.items()) / (total if antialias else 1)
    return np.moveaxis(out, -1, axis)


SMOOTH = {"linear": ("linear", 1), "bilinear": ("linear", 2), "trilinear": ("linear", 3), "bicubic": ("cubic", 2)}


@pytest.mark.parametrize("mode", SMOOTH)
@pytest.mark.parametrize("size", [1, 4, 7, 16])
@pytest.mark.parametrize("align_corners", [False, True])
def test_interpolate(mode, size, align_corners):
    kind, n = SMOOTH[mode]
    x = expected = draw(*SHAPES[n])
    for axis in range(2, 2 + n):
        m = x.shape[axis]
        step = ((m - 1) / (size - 1) if size > 1 else 0) if align_corners else m / size
        expected = resized(expected, axis, size, step, kind, align_corners)
    close(nn.interpolate(dt.asarray(x), size, mode=mode, align_corners=align_corners), expected, 2e-5)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(3, 4), (4, 13), (20, 5)])
def test_interpolate_with_antialias(mode, size):
    x = expected = draw(2, 3, 9, 11)
    for axis, m in zip((2, 3), size, strict=True):
        expected = resized(expected, axis, m, x.shape[axis] / m, SMOOTH[mode][0], antialias=True)
    close(nn.interpolate(dt.asarray(x), size, mode=mode, antialias=True), expected, 2e-5)


def test_interpolate_by_a_factor_goes_by_the_factor():
    x = draw(1, 2, 10)
    got = nn.interpolate(dt.asarray(x), scale_factor=1.75, mode="linear")  # 17.5 elements become 17
    close(got, resized(x, 2, 17, 1 / 1.75, "linear"))
    got = nn.interpolate(dt.asarray(x), scale_factor=1.75, mode="linear", recompute_scale_factor=True)
    close(got, resized(x, 2, 17, 10 / 17, "linear"))


@pytest.mark.parametrize("n", range(1, 40, 3))
def test_nearest_takes_exact_places(n):
    x = np.arange(n, dtype="int16").reshape(1, 1, n)
    for m in range(1, 60):
        assert nn.interpolate(dt.asarray(x), m).tolist() == [[[i * n // m for i in range(m)]]]
        exact = [[[(2 * i + 1) * n // (2 * m) for i in range(m)]]]
        assert nn.interpolate(dt.asarray(x), m, mode="nearest-exact").tolist() == exact


def test_fold_is_the_adjoint_of_unfold():
    for how in ((3, 1, 0, 1), ((2, 3), 2, 1, 2), ((2, 3), (1, 2), (1, 0), (2, 3))):
        x = draw(2, 3, 9, 8)
        columns = nn.unfold(dt.asarray(x), *how)
        weights = draw(*columns.shape, seed=1)
        back = nn.fold(dt.asarray(weights), (9, 8), *how)
        assert back.shape == x.shape
        np.testing.assert_allclose((back.numpy() * x).sum(), (columns.numpy() * weights).sum(), 1e-4)
    x = draw(1, 2, 5, 6)
    expected = np.lib.stride_tricks.sliding_window_view(x, (2, 3), (2, 3)).transpose(0, 1, 4, 5, 2, 3)
    close(nn.unfold(dt.asarray(x), (2, 3)), expected.reshape(1, 12, 16))


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (1, 2, 3, 4, 5)])
def test_grid_sample_of_the_identity_gives_the_image(shape, align_corners):
    x, n = draw(*shape), len(shape) - 2
    theta = np.tile(np.eye(n, n + 1, dtype="float32"), (shape[0], 1, 1))
    grid = nn.affine_grid(dt.asarray(theta), shape, align_corners)
    for mode in ("bilinear", "nearest", "bicubic")[: 3 if n == 2 else 2]:
        close(nn.grid_sample(dt.asarray(x), grid, mode, align_corners=align_corners), x)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_beyond_the_image(padding):
    x = np.array([10.0, 20.0, 30.0, 40.0], "float32").reshape(1, 1, 1, 4)
    places = [0.5, -0.75, 3.25, -2.0, 5.5, 0.0]  # in elements; the outer edges are at -0.5 and 3.5
    grid = np.zeros((1, 1, len(places), 2), "float32")
    grid[..., 0] = (np.array(places) + 0.5) / 2 - 1
    expected = {
        "zeros": [15.0, 2.5, 30.0, 0.0, 0.0, 10.0],
        "border": [15.0, 10.0, 40.0, 10.0, 40.0, 10.0],
        "reflection": [15.0, 10.0, 40.0, 20.0, 25.0, 10.0],  # -0.75 is -0.25, -2 is 1, 5.5 is 1.5
    }[padding]
    close(nn.grid_sample(dt.asarray(x), dt.asarray(grid), padding_mode=padding)[0, 0, 0], np.float32(expected))
    grid[...] = np.nan  # counts as -1, half an element before the first one on both axes
    assert nn.grid_sample(dt.asarray(x), dt.asarray(grid)).tolist() == [[[[2.5] * 6]]]
    assert nn.grid_sample(dt.asarray(x), dt.asarray(grid), "nearest", "border").tolist() == [[[[10.0] * 6]]]


def test_pixels_and_channels():
    x = draw(2, 12, 3, 4)
    big = nn.pixel_shuffle(dt.asarray(x), 2)
    expected = x.reshape(2, 3, 2, 2, 3, 4).transpose(0, 1, 4, 2, 5, 3).reshape(2, 3, 6, 8)
    close(big, expected)
    close(nn.pixel_unshuffle(big, 2), x)
    close(nn.channel_shuffle(dt.asarray(x), 3), x[:, [c // 3 + c % 3 * 4 for c in range(12)]])


# ---- layers ------------------------------------------------------------------------------------------------------


def test_batch_norm_in_training_moves_the_statistics():
    x, mean, var = draw(4, 3, 5), draw(3, seed=1), draw(3, seed=2) + 3
    y, new_mean, new_var = nn.batch_norm(
        dt.asarray(x), dt.asarray(mean), dt.asarray(var), training=True, momentum=0.25
    )
    close(y, (x - x.mean((0, 2), keepdims=True)) / np.sqrt(x.var((0, 2), keepdims=True) + 1e-5))
    close(new_mean, 0.75 * mean + 0.25 * x.mean((0, 2)))
    close(new_var, 0.75 * var + 0.25 * x.var((0, 2), ddof=1))
    assert nn.batch_norm(dt.asarray(x), None, None, training=True)[1:] == (None, None)
    half = dt.asarray(x).astype("float16")
    y, new_mean, _ = nn.batch_norm(half, dt.asarray(mean), dt.asarray(var), training=True)
    assert y.dtype == dt.float16 and new_mean.dtype == dt.float32


def test_norms_and_distances():
    x = draw(3, 4, 5)
    close(nn.instance_norm(dt.asarray(x)), (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5))
    close(nn.normalize(dt.asarray(x)), x / np.sqrt((x * x).sum(1, keepdims=True)))
    close(nn.normalize(dt.asarray(x), 1.0, -1), x / np.abs(x).sum(-1, keepdims=True))
    assert nn.normalize(dt.zeros((2, 3))).tolist() == [[0.0] * 3] * 2
    y = draw(4, 5, seed=1)
    cosine = (x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(0))
    close(nn.cosine_similarity(dt.asarray(x), dt.asarray(y)), cosine)
    close(nn.pairwise_distance(dt.asarray(x), dt.asarray(y)), np.sqrt(((x - y + 1e-6) ** 2).sum(-1)))


def test_activations_of_several_operands():
    x, w = draw(2, 3, 4), np.float32([0.5, -2, 0])
    close(nn.prelu(dt.asarray(x), dt.asarray(w)), np.where(x < 0, x * w[:, None], x))
    close(nn.prelu(dt.asarray(x[0, 0]), dt.asarray(w[:1])), np.where(x[0, 0] < 0, x[0, 0] * 0.5, x[0, 0]))
    close(nn.glu(dt.asarray(x)), x[..., :2] / (1 + np.exp(-x[..., 2:])))
    close(nn.softmin(dt.asarray(x)), np.exp(-x) / np.exp(-x).sum(-1, keepdims=True))


def test_dropout_draws_by_its_key():
    x, key = dt.ones((40, 50)), dt.random.Generator(7).key((40, 50))
    drawn = dt.random.Generator(7).uniform((40, 50)).numpy()
    expected = np.where(drawn < 0.25, 0, 1 / np.float32(0.75))
    close(nn.dropout(x, 0.25, key=key), expected)
    dt.random.seed(3)
    first = nn.dropout(x)
    assert first.tolist() != nn.dropout(x).tolist()
    dt.random.seed(3)
    assert first.tolist() == nn.dropout(x).tolist()
    assert nn.dropout(x, training=False).tolist() == x.tolist()


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2, -3])
def test_embedding_bag(mode, padding):
    weight, flat = draw(7, 4), np.array([1, 2, 6, 2, 2, 0, 4, 5, 2, 3])
    skipped = None if padding is None else padding % 7

    def bags(parts):
        rows = [weight[[i for i in part if i != skipped]] for part in parts]
        join = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
        return np.stack([join(r, 0) if len(r) else np.zeros(4) for r in rows])

    how = {"mode": mode, "padding_idx": padding}
    w = dt.asarray(weight)
    close(nn.embedding_bag(dt.asarray(flat.reshape(2, 5)), w, **how), bags(flat.reshape(2, 5)))
    begins = np.array([0, 3, 3, 5])
    parts = np.split(flat, begins[1:])
    close(nn.embedding_bag(dt.asarray(flat), w, dt.asarray(begins), **how), bags(parts))
    ends = dt.asarray(np.array([0, 3, 3, 5, 10]))
    close(nn.embedding_bag(dt.asarray(flat), w, ends, include_last_offset=True, **how), bags(parts))


def test_embedding_bag_with_factors():
    weight, x, factors = draw(7, 4), np.array([[1, 2], [0, 6]]), draw(2, 2, seed=1)
    got = nn.embedding_bag(*map(dt.asarray, (x, weight)), mode="sum", per_sample_weights=dt.asarray(factors))
    close(got, (weight[x] * factors[..., None]).sum(1))


# ---- networks ----------------------------------------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def stepped(kind, x, state, params):
    """One direction of one layer, step by step."""
    w_ih, w_hh, b_ih, b_hh = params
    outputs = []
    for row in x:
        a, b = row @ w_ih.T + b_ih, state[0] @ w_hh.T + b_hh
        if kind == "lstm":
            i, f, g, o = np.split(a + b, 4, -1)
            c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
            state = sigmoid(o) * np.tanh(c), c
        elif kind == "gru":
            (ar, az, an), (br, bz, bn) = np.split(a, 3, -1), np.split(b, 3, -1)
            z = sigmoid(az + bz)
            state = ((1 - z) * np.tanh(an + sigmoid(ar + br) * bn) + z * state[0],)
        else:
            state = (np.tanh(a + b) if kind == "rnn_tanh" else np.maximum(a + b, 0),)
        outputs.append(state[0])
    return np.stack(outputs), state


GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
def test_recurrent_networks(kind, bidirectional, layers):
    hidden, directions, gates = 4, 1 + bidirectional, GATES[kind]
    x = draw(5, 2, 3)
    states = [draw(layers * directions, 2, hidden, seed=7 + k) for k in range(2 if kind == "lstm" else 1)]
    params, y, last = [], x.astype("float64"), []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            at = layer * directions + direction
            width = y.shape[-1]
            own = [draw(gates * hidden, m, seed=20 + at) for m in (width, hidden)]
            own += [draw(gates * hidden, seed=30 + at + k) for k in range(2)]
            params += own
            begin = tuple(s[at] for s in states)
            out, end = stepped(kind, y[::-1] if direction else y, begin, own)
            outputs.append(out[::-1] if direction else out)
            last.append(end)
        y = np.concatenate(outputs, -1)
    finals = [np.stack([end[k] for end in last]) for k in range(len(states))]
    how = {"num_layers": layers, "bidirectional": bidirectional}
    given = [dt.asarray(p) for p in params]
    hx = tuple(map(dt.asarray, states)) if kind == "lstm" else dt.asarray(states[0])
    got = getattr(nn, kind)(dt.asarray(x), hx, given, **how)
    for mine, expected in zip(got, (y, *finals), strict=True):
        close(mine, expected, 2e-5)
    turned = getattr(nn, kind)(dt.asarray(x.swapaxes(0, 1)), hx, given, batch_first=True, **how)
    close(turned[0], y.swapaxes(0, 1), 2e-5)
    one = tuple(s[:, 0] for s in hx) if kind == "lstm" else hx[:, 0]
    alone = getattr(nn, kind)(dt.asarray(x[:, 0]), one, given, **how)
    close(alone[0], y[:, 0], 2e-5)
    close(alone[1], finals[0][:, 0], 2e-5)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_recurrent_networks_have_the_bits_of_single_calls(kind):
    """They run as compiled functions do, for sequences of any length."""
    gates, hidden = GATES[kind], 16
    params = [dt.asarray(draw(gates * hidden, *n, seed=len(n))) for n in ((8,), (hidden,), (), ())]
    h = dt.asarray(draw(1, 3, hidden))
    for length in (1, 4, 9):
        given = dt.asarray(draw(length, 3, 8, seed=length)), (h, h) if kind == "lstm" else h, params
        results = getattr(nn, kind)(*given)
        with dt.compile.off():
            for mine, expected in zip(results, getattr(nn, kind)(*given), strict=True):
                np.testing.assert_array_equal(mine.numpy(), expected.numpy())


def test_a_network_without_biases():
    x, w_ih, w_hh, h = draw(3, 2, 3), draw(4, 3, seed=1), draw(4, 4, seed=2), draw(1, 2, 4, seed=3)
    got, _ = nn.rnn_tanh(*map(dt.asarray, (x, h)), [dt.asarray(w_ih), dt.asarray(w_hh)], has_biases=False)
    close(got, stepped("rnn_tanh", x, (h[0],), (w_ih, w_hh, 0, 0))[0])
