"""Random arrays: known answers, reproducibility, ranges, moments, threads."""

import pickle
import threading

import dovetail as dt
import numpy as np
import pytest
from dovetail.random import Generator, _philox

WORD = 2**32 - 1


def reference_bits(seed, offset, n):
    words = []
    for i in range(offset, offset + (n + 3) // 4):
        words += _philox((i & WORD, i >> 32, 0, 0), (seed & WORD, seed >> 32))
    return np.array(words[:n], dtype="uint32")


def test_known_answers_of_philox():
    """From the test vectors of its authors' Random123."""
    assert _philox((0, 0, 0, 0), (0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    assert _philox((WORD,) * 4, (WORD,) * 2) == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
    counter, key = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)
    assert _philox(counter, key) == (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)


@pytest.mark.parametrize(("seed", "offset"), [(0, 0), (2**64 - 1, 5), (12345, 2**32 - 2)])
@pytest.mark.parametrize("n", [0, 1, 7, 1000])
def test_bits(seed, offset, n):
    g = Generator(seed)
    g.state = seed, offset
    x = g.bits(n)
    assert x.dtype == "uint32" and g.state == (seed, offset + (n + 3) // 4)
    np.testing.assert_array_equal(x.numpy(), reference_bits(seed, offset, n))


def test_uniform_is_specified_to_the_bit():
    words = reference_bits(7, 0, 64)
    halves = words.astype("uint64")
    expected = {
        "float32": (words >> 8) * np.float64(2.0**-24),
        "float16": (words >> 21) * np.float64(2.0**-11),
        "bfloat16": (words >> 24) * np.float64(2.0**-8),
        "float64": (((halves[1::2] << np.uint64(32)) | halves[0::2]) >> np.uint64(11)) * 2.0**-53,
    }
    for dtype, values in expected.items():
        x = Generator(7).uniform(len(values), dtype=dtype)
        assert x.dtype == dtype
        np.testing.assert_array_equal(x.numpy().astype("float64"), values)


def test_integers_are_specified_to_the_bit():
    words = reference_bits(7, 0, 64).astype("uint64")
    for low, high, dtype in ((0, 10, "int64"), (-5, 2**20, "int32"), (0, 2**32, "uint32"), (-128, 128, "int8")):
        expected = low + (words * np.uint64(high - low) >> np.uint64(32)).astype("int64")
        x = Generator(7).integers(low, high, 64, dtype=dtype)
        assert x.dtype == dtype
        np.testing.assert_array_equal(x.numpy().astype("int64"), expected)
    assert Generator(7).integers(10, shape=64).tolist() == Generator(7).integers(0, 10, 64).tolist()


def test_normal():
    words = reference_bits(3, 0, 64).astype("float64")
    u1, u2 = (np.floor(words[0::2] / 256) + 1) * 2.0**-24, np.floor(words[1::2] / 256) * 2.0**-24
    r = np.sqrt(-2 * np.log(u1))
    expected = np.stack([r * np.cos(2 * np.pi * u2), r * np.sin(2 * np.pi * u2)], axis=1).ravel()
    np.testing.assert_allclose(Generator(3).normal(64).numpy(), expected, rtol=1e-4, atol=1e-6)
    assert Generator(3).normal(5).tolist() == Generator(3).normal(64)[:5].tolist()


def test_moments():
    g = Generator(1)
    u, n = g.uniform(100_000).numpy(), g.normal((100, 1000), mean=3, std=2).numpy()
    assert abs(u.mean() - 0.5) < 0.005 and u.min() >= 0 and u.max() < 1
    assert abs(n.mean() - 3) < 0.05 and abs(n.std() - 2) < 0.05
    v = g.uniform(1000, low=-2, high=5).numpy()
    assert v.min() >= -2 and v.max() <= 5 and v.min() < -1.5 and v.max() > 4.5


def test_seeds_repeat_and_draws_differ():
    dt.random.seed(5)
    a, b = dt.random.uniform((2, 3)), dt.random.uniform((2, 3))
    dt.random.seed(5)
    assert a.tolist() == dt.random.uniform((2, 3)).tolist() and a.tolist() != b.tolist()
    state = dt.random.default_generator().state
    c = dt.random.normal(3)
    dt.random.default_generator().state = state
    assert c.tolist() == dt.random.normal(3).tolist()


def test_permutation():
    p = Generator(1).permutation(100)
    assert sorted(p.tolist()) == list(range(100)) and p.tolist() != list(range(100))
    x = dt.reshape(dt.arange(12), (4, 3))
    shuffled = Generator(1).permutation(x)
    assert sorted(shuffled.tolist()) == x.tolist()
    assert sorted(Generator(1).permutation(x, axis=1)[0].tolist()) == [0, 1, 2]


def test_split():
    g = Generator(1)
    a, b = g.split(2)
    c = g.split(1)[0]
    seeds = {x.state[0] for x in (g, a, b, c)}
    assert len(seeds) == 4
    assert [x.state for x in Generator(1).split(2)] == [a.state, b.state]
    state = g.state
    for n in (2**40, 2**20 + 1, -1):
        with pytest.raises(ValueError, match=rf"\[random.split\] n: expected 0 to 2\^20 generators, got {n}; bits"):
            g.split(n)
    with pytest.raises(TypeError, match=r"\[random.split\] n: expected an integer, got 1.5"):
        g.split(1.5)
    assert g.state == state and g.split(0) == []


def test_pickle_and_repr():
    g = Generator(1)
    g.bits(9)
    assert pickle.loads(pickle.dumps(g)).state == g.state == (1, 3)
    assert repr(g) == "Generator(seed=1, offset=3)"
    assert Generator().state[0] != Generator().state[0]


def test_threads_never_draw_the_same():
    g = Generator(1)
    draws = []

    def draw():
        draws.extend(g.bits(4).numpy().tobytes() for _ in range(100))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(set(draws)) == 400 and g.state[1] == 400


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g: g.uniform(-1), ValueError, "at least 0"),
        (lambda g: g.uniform(1.5), TypeError, "shape"),
        (lambda g: g.uniform(2, dtype="int32"), TypeError, "int32"),
        (lambda g: g.normal(2, std=-1), ValueError, "std"),
        (lambda g: g.integers(5, 5), ValueError, "low to high"),
        (lambda g: g.integers(0, 2**33), ValueError, "2\\^32"),
        (lambda g: g.integers(0, 300, dtype="int8"), ValueError, "int8"),
        (lambda g: g.integers(0, 3, dtype="float32"), TypeError, "float32"),
        (lambda g: g.seed(-1), ValueError, "seed"),
        (lambda g: g.seed(1.5), TypeError, "seed"),
        (lambda g: g.uniform(2, device="nowhere:0"), ValueError, "nowhere"),
    ],
)
def test_bad_input(call, error, message):
    g = Generator(1)
    with pytest.raises(error, match=message):
        call(g)
    assert g.bits(1).tolist() is not None
