"""Random numbers: Philox4x32-10 by element index, equal on every device."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .. import dtypes as dt
from ..declare import DType, Ints, Raw, Tensor, op
from ..lazy_numpy import np
from ..samples import CASE, Sample, given, sample
from ._float import PI, flipped
from .movement import concat, stack
from .primitives import astype, iota, log, multiply, sin, sqrt, take, where
from .trigonometry import cos
from .views import permute_dims, reshape

WORD = 0xFFFFFFFF
MULTIPLIERS, WEYL = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)


def philox_words(key, n):
    """The oracle: words 0 .. n - 1 as uint32."""
    seed, offset = [int(k) for k in key[:2]], int(key[2]) | int(key[3]) << 32
    counter = (np.arange(-(-n // 4), dtype=np.uint64) + np.uint64(offset)).astype(np.uint64)
    c = [counter & np.uint64(WORD), counter >> np.uint64(32), np.zeros_like(counter), np.zeros_like(counter)]
    for _ in range(10):
        p, q = c[0] * np.uint64(MULTIPLIERS[0]), c[2] * np.uint64(MULTIPLIERS[1])
        c = [
            (q >> np.uint64(32)) ^ c[1] ^ np.uint64(seed[0]),
            q & np.uint64(WORD),
            (p >> np.uint64(32)) ^ c[3] ^ np.uint64(seed[1]),
            p & np.uint64(WORD),
        ]
        seed = [(s + w) & WORD for s, w in zip(seed, WEYL, strict=True)]
    return np.stack(c, -1).reshape(-1)[:n].astype(np.uint32)


KEY = given([0x12345678, 0x9ABCDEF0, 5, 0], dtype=dt.uint32)
CARRY = given([7, 0, WORD, 3], dtype=dt.uint32)


def _random_samples(*more) -> Iterator[Sample]:
    yield sample("vector", KEY, (1001,), *more)
    yield sample("matrix", KEY, (7, 5), *more)
    yield sample("carry", CARRY, (40,), *more)
    yield sample("scalar", KEY, (), *more)
    yield sample("empty", KEY, (0, 3), *more)


RANDOM = {"shape": "from_shape", "space": "random", "private": True, "half": "native"}


@op(
    **RANDOM,
    dtype="bits",
    tier="extended",
    samples=_random_samples,
    reference=lambda key, shape: philox_words(key, math.prod(shape)).reshape(shape),
)
def random_bits(key: Raw, shape: Ints) -> Tensor:
    """32 random bits an element: word i % 4 of Philox4x32-10 at counter offset + i // 4.

    key is a uint32 vector: seed low and high, offset low and high.
    """
    n = math.prod(shape)
    blocks = -(-n // 4)
    key = astype(key, dt.uint64)
    row = iota(2, dt.uint64)
    swap = 1 - iota(2, dt.int64)
    factor = reshape(MULTIPLIERS[0] - row * (MULTIPLIERS[0] - MULTIPLIERS[1]), (2, 1))
    # Words 0 and 2 of the counter are one array of two rows, words 1 and 3 the other.
    counter = iota(blocks, dt.uint64) + (key[2] | (key[3] << 32))
    first = reshape(row == 0, (2, 1))
    even, odd = where(first, counter & WORD, 0), where(first, counter >> 32, 0)
    weyl = row * (WEYL[1] - WEYL[0]) + WEYL[0]
    keys = (reshape(iota(10, dt.uint64), (10, 1)) * weyl + key[0:2]) & WORD
    for i in range(10):
        product = take(even * factor, swap, axis=0)
        even, odd = (product >> 32) ^ odd ^ keys[i][:, None], product & WORD
    words = permute_dims(stack([even, odd], axis=1), (2, 0, 1))
    return astype(reshape(reshape(words, -1)[:n], shape), dt.uint32)


def _uniform(key, shape, dtype):
    n = math.prod(shape)
    if dtype is dt.float64:
        w = philox_words(key, 2 * n).astype(np.uint64)
        return ((w[1::2] << np.uint64(32) | w[::2]) >> np.uint64(11)).astype(np.float64).reshape(shape) * 2.0**-53
    keep = {dt.float32: 24, dt.float16: 11, dt.bfloat16: 8}[dtype]
    return (philox_words(key, n) >> np.uint32(32 - keep)).astype(np.float64).reshape(shape) * 2.0**-keep


@op(**RANDOM, dtype="given", dtypes=dt.FLOATS, samples=lambda: _random_samples(CASE), reference=_uniform)
def uniform(key: Raw, shape: Ints, dtype: DType) -> Tensor:
    """Evenly in [0, 1): the leading bits of a word (of two for float64) times a power of two."""
    if dtype is dt.float64:
        w = astype(random_bits(key, (*shape, 2)), dt.uint64)
        return astype(((w[..., 1] << 32) | w[..., 0]) >> 11, dt.float64) * 2.0**-53
    keep = dtype.mant + 1
    x = astype(random_bits(key, shape) >> (32 - keep), dt.float32) * 2.0**-keep
    return x if dtype is dt.float32 else astype(x, dtype)


def _pairs(key, n):
    w = philox_words(key, n + n % 2).astype(np.float64)
    return np.floor(w[::2] / 256 + 1) * 2.0**-24, np.floor(w[1::2] / 256) * 2.0**-24


def _normal(key, shape, dtype):
    n = math.prod(shape)
    u1, u2 = _pairs(key, n)
    r = np.sqrt(-2 * np.log(u1))
    return np.stack([r * np.cos(2 * np.pi * u2), r * np.sin(2 * np.pi * u2)], -1).reshape(-1)[:n].reshape(shape)


def _normal_scale(key, shape, dtype):
    n = math.prod(shape)
    return np.repeat(np.sqrt(-2 * np.log(_pairs(key, n)[0])), 2)[:n].reshape(shape)


@op(
    **RANDOM,
    dtype="given",
    dtypes=dt.FLOATS,
    tol=8,
    samples=lambda: _random_samples(CASE),
    reference=_normal,
    scale=_normal_scale,
)
def normal(key: Raw, shape: Ints, dtype: DType) -> Tensor:
    """Normally, of mean 0 and variance 1: Box-Muller on pairs of words, 24 bits of each."""
    n = math.prod(shape)
    d = dt.float64 if dtype is dt.float64 else dt.float32
    w = reshape(random_bits(key, (n + n % 2,)) >> 8, (-1, 2))
    u1 = astype(w[:, 0:1] + 1, d) * 2.0**-24
    turned = multiply(astype(w[:, 1:2], d) - 2.0**23, 2 * PI * 2.0**-24)  # by half a turn: smaller, so more exact
    radius = flipped(sqrt(log(u1) * -2.0))
    x = reshape(concat([radius * cos(turned), radius * sin(turned)], axis=1), -1)
    x = reshape(x[:n], shape)
    return x if dtype is d else astype(x, dtype)


def _integers(key, shape, low, high, dtype):
    w = philox_words(key, math.prod(shape)).astype(np.uint64)
    return (((w * np.uint64(high - low)) >> np.uint64(32)).astype(np.int64) + low).reshape(shape)


def _integer_samples() -> Iterator[Sample]:
    yield from _random_samples(0, 100, CASE)
    yield sample("one_value", KEY, (9,), 3, 4, CASE)
    yield sample("widest", KEY, (100,), 0, 2**32, CASE, only=(dt.int64, dt.uint64))
    yield sample("negative", KEY, (100,), -50, 50, CASE, only=dt.SIGNED)
    yield sample("nothing", KEY, (3,), 5, 5, CASE, error=ValueError)


@op(**RANDOM, dtype="given", dtypes=dt.INTEGERS, samples=_integer_samples, reference=_integers)
def integers(key: Raw, shape: Ints, low: int, high: int, dtype: DType) -> Tensor:
    """Integers in [low, high), of at most 2**32 values: low + (word * (high - low) >> 32)."""
    if not 0 < high - low <= 2**32:
        raise ValueError(f"[integers] low, high: expected 1 to 2**32 values in [low, high), got {low} and {high}")
    x = astype((astype(random_bits(key, shape), dt.uint64) * (high - low)) >> 32, dt.int64)
    return astype(x if low == 0 else x + low, dtype)
