"""max_unpool and fractional_max_pool, against loops of NumPy."""

from __future__ import annotations

import itertools

import dovetail as dt
import numpy as np
import pytest

nn = dt.nn
RNG = np.random.default_rng(0)
SIZES = (9, 6, 7)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(2, None, 0), (3, 3, 1), (2, 3, 0)])
def test_max_unpool_puts_values_back(n, kernel, stride, padding):
    x = RNG.uniform(0.1, 1, (2, 3, *SIZES[:n])).astype("float32")
    pooled, places = getattr(nn, f"max_pool{n}d")(dt.asarray(x), kernel, stride, padding, return_indices=True)
    got = getattr(nn, f"max_unpool{n}d")(pooled, places, kernel, stride, padding, output_size=x.shape[2:]).numpy()
    expected = np.zeros((2, 3, x[0, 0].size), "float32")
    np.put_along_axis(expected, places.numpy().reshape(2, 3, -1), pooled.numpy().reshape(2, 3, -1), 2)
    np.testing.assert_array_equal(got.reshape(expected.shape), expected)
    assert set(np.unique(got)) <= {0, *np.unique(x)}


def test_max_unpool_finds_the_size_itself():
    x = dt.reshape(dt.arange(16.0), (1, 1, 4, 4))
    back = nn.max_unpool2d(*nn.max_pool2d(x, 2, return_indices=True), 2)
    assert back.shape == x.shape
    assert [i for i, v in enumerate(dt.reshape(back, (-1,)).tolist()) if v] == [5, 7, 13, 15]


def begins(size, kernel, results, sample):
    """Graham, Fractional max-pooling, 2014, section 2: pseudorandom regions."""
    if results == 1:
        return [size - kernel]
    step = np.float32((size - kernel) / (results - 1))
    first = int(np.float32(sample) * step)
    return [int((np.float32(i) + np.float32(sample)) * step) - first for i in range(results - 1)] + [size - kernel]


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("results", [1, 2, 3, 4])
def test_fractional_max_pool_takes_the_largest_of_each_window(n, results):
    sizes, kernel = SIZES[:n], (2, 3, 2)[:n]
    x = RNG.uniform(-1, 1, (2, 3, *sizes)).astype("float32")
    samples = RNG.uniform(0, 1, (2, 3, n)).astype("float32")
    values = np.empty((2, 3, *(results,) * n), "float32")
    places = np.empty(values.shape, "int64")
    for image, channel in itertools.product(range(2), range(3)):
        drawn = samples[image, channel]
        drawn = drawn[::-1] if n == 2 else drawn
        rows = [begins(s, k, results, u) for s, k, u in zip(sizes, kernel, drawn, strict=True)]
        for at in itertools.product(range(results), repeat=n):
            window = [range(rows[i][at[i]], rows[i][at[i]] + kernel[i]) for i in range(n)]
            best = max(itertools.product(*window), key=lambda p, i=image, c=channel: x[(i, c, *p)])
            values[(image, channel, *at)] = x[(image, channel, *best)]
            places[(image, channel, *at)] = np.ravel_multi_index(best, sizes)
    pool = getattr(nn, f"fractional_max_pool{n}d")
    given = dt.asarray(x), kernel, results
    got = pool(*given, samples=dt.asarray(samples), return_indices=True)
    np.testing.assert_array_equal(got[0].numpy(), values)
    np.testing.assert_array_equal(got[1].numpy(), places)
    np.testing.assert_array_equal(pool(*given, samples=dt.asarray(samples)).numpy(), values)


def test_fractional_max_pool_draws_by_its_key():
    x = dt.asarray(RNG.uniform(-1, 1, (2, 3, 20, 30)).astype("float32"))
    of_key = nn.fractional_max_pool2d(x, 2, output_ratio=0.6, key=dt.random.Generator(3).key((2, 3, 2)))
    samples = dt.random.Generator(3).uniform((2, 3, 2))
    assert of_key.shape == (2, 3, 12, 18)
    assert dt.all(of_key == nn.fractional_max_pool2d(x, 2, (12, 18), samples=samples))
    assert not dt.all(of_key == nn.fractional_max_pool2d(x, 2, (12, 18)))


X4, AT = dt.ones((1, 2, 6, 6)), dt.zeros((1, 2, 3, 3), dtype="int64")
ERRORS = [
    (lambda: nn.max_unpool2d(X4, AT, 2), r"\[max_unpool2d\] indices: got shape \(1, 2, 3, 3\), expected x's"),
    (
        lambda: nn.max_unpool2d(X4[..., :3, :3], AT, 2, output_size=(8, 6)),
        r"\[max_unpool2d\] output_size: got \(8, 6\), expected \(6, 6\) to less than a stride",
    ),
    (lambda: nn.fractional_max_pool2d(X4, 2), r"\[fractional_max_pool2d\] output_size and output_ratio: got None"),
    (lambda: nn.fractional_max_pool2d(X4, 3, 5), r"\[fractional_max_pool2d\] x of shape .* do not fit"),
    (
        lambda: nn.fractional_max_pool2d(X4, 2, output_ratio=1.5),
        r"output_ratio: got 1.5, expected a number between",
    ),
    (
        lambda: nn.fractional_max_pool2d(X4, 2, 3, samples=dt.ones((1, 2, 3))),
        r"samples: got shape \(1, 2, 3\), expected \(1, 2, 2\)",
    ),
]


@pytest.mark.parametrize("i", range(len(ERRORS)))
def test_errors_name_the_function_and_what_it_expects(i):
    call, message = ERRORS[i]
    with pytest.raises(ValueError, match=message):
        call()


def test_an_index_beyond_the_result_is_an_index_error():
    with pytest.raises(IndexError):
        nn.max_unpool2d(X4[..., :3, :3], AT + 36, 2).numpy()
