"""Philox4x32-10 and what Dovetail's random ops make of its words.

From the paper alone (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011), so that it
shares no mistake with the schema's reference, decompositions and kernels. A unit test holds it to the authors'
vectors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from dovetail.schema.dtypes import DType, float64

ROUNDS = 10
MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
WEYL = (0x9E3779B9, 0xBB67AE85)  # added to the key in each round: the golden ratio, sqrt(3) - 1
HALF, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
SIGNIFICANT = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}  # bits of a uniform number


def philox4x32(counters: np.ndarray, key: tuple[int, int], rounds: int = ROUNDS) -> np.ndarray:
    """The blocks of n counters, both of shape (n, 4) and uint32."""
    x = counters.astype(np.uint64)
    k0, k1 = key
    for _ in range(rounds):
        first, second = MULTIPLIERS[0] * x[:, 0], MULTIPLIERS[1] * x[:, 2]
        x = np.stack(
            [
                (second >> HALF) ^ x[:, 1] ^ np.uint64(k0),
                second & LOW,
                (first >> HALF) ^ x[:, 3] ^ np.uint64(k1),
                first & LOW,
            ],
            axis=1,
        )
        k0, k1 = (k0 + WEYL[0]) % 2**32, (k1 + WEYL[1]) % 2**32
    return x.astype(np.uint32)


class Key(NamedTuple):
    """The seed and offset of a draw."""

    seed: int  # 64 bits: Philox's key
    offset: int = 0  # 64 bits, the lower half of the first block's counter; the upper half is 0

    def operand(self) -> np.ndarray:
        return np.array([self.seed % 2**32, self.seed >> 32, self.offset % 2**32, self.offset >> 32], np.uint32)

    def after(self, words: int) -> Key:
        """The offset of the next draw: a draw takes whole blocks."""
        return Key(self.seed, (self.offset + -(-words // 4)) % 2**64)


def words(key: Key, n: int) -> np.ndarray:
    """Words 0 .. n - 1 of a draw."""
    blocks = -(-n // 4)
    position = np.arange(blocks, dtype=np.uint64) + np.uint64(key.offset)  # wraps at 2**64
    counters = np.zeros((blocks, 4), np.uint64)
    counters[:, 0], counters[:, 1] = position & LOW, position >> HALF
    return philox4x32(counters, (key.seed % 2**32, key.seed >> 32)).reshape(-1)[:n]


def uniform(key: Key, n: int, d: DType) -> np.ndarray:
    """In [0, 1), as float64: exact in `d`, whose significand gets the leading bits of a word, or of two."""
    bits = SIGNIFICANT[d.name]
    if d is float64:
        pairs = words(key, 2 * n).astype(np.uint64).reshape(n, 2)
        return np.ldexp((pairs[:, 1] << HALF | pairs[:, 0]) >> np.uint64(64 - bits), -bits)
    return np.ldexp((words(key, n) >> np.uint32(32 - bits)).astype(np.float64), -bits)


def integers(key: Key, n: int, low: int, high: int) -> np.ndarray:
    """In [low, high), as Python integers: a word is a fraction of 2**32 of the range."""
    return words(key, n).astype(object) * (high - low) // 2**32 + low


def normal(key: Key, n: int, wide: Any = np.float64) -> tuple[np.ndarray, np.ndarray]:
    """By Box and Muller, in the precision `wide`: the values, and the radius that each was made from."""
    top = (words(key, n + n % 2) >> np.uint32(8)).astype(wide).reshape(-1, 2)
    u1, u2 = (top[:, 0] + 1) / 2**24, top[:, 1] / 2**24  # u1 in (0, 1]
    radius = np.sqrt(-2 * np.log(u1))
    angle = 8 * np.arctan(wide(1)) * u2
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return pairs.reshape(-1)[:n], radius.repeat(2)[:n]
