"""Random ops against Philox as judging/philox.py has it: bits, integers and uniform numbers to the last bit, normal
ones within their tolerance; and statistics, which would see what an oracle with the same mistake does not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from dovetail.schema import Op, registry
from dovetail.schema import dtypes as dt
from dovetail.schema.dtypes import DType

from ..judging import histogram, oracle, philox, randomness
from ..judging.compare import Verdict, compare
from ..judging.philox import Key
from ..levels.must_pass import level_of
from ..results import Status
from ..running.target import Target
from . import Case, Outcome
from .inputs import generator

OPS = ("random_bits", "integers", "uniform", "normal")
WORD, LONG = 2**32, 2**64
# The paper's first vector: block 0 of key 0. In its others the counter's upper half is not 0, as in every draw.
KNOWN_ANSWER = (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
# Blocks of seed 0 with the rarest words: u1 of 1 (radius 0) and of 2**-24 (the largest one) in one of their pairs.
RADIUS_ZERO, RADIUS_LARGEST = (2330056, 18082804), (14883995, 17758991)
STATISTICAL = 1 << 17  # numbers of a statistical test
LAGS = (1, 2, 3, 4, 8, 16, 32, 64)  # of serial correlation


class Draw(NamedTuple):
    """One call of a random op."""

    key: Key
    shape: tuple[int, ...]
    low: int = 0  # of integers
    high: int = 100

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"seed {self.key.seed:#x}, offset {self.key.offset:#x}, shape {self.shape}"


def run(target: Target, op: str, d: DType, draw: Draw) -> np.ndarray:
    """The device's answer, as it is."""
    attributes = () if op == "random_bits" else (d,)
    if op == "integers":
        attributes = (draw.low, draw.high, d)
    key = target.asarray(draw.key.operand())
    return target.numpy(target.call(op, (key, draw.shape, *attributes), {}))


def judge(got: np.ndarray, op: str, d: DType, draw: Draw) -> Verdict:
    key, n = draw.key, draw.size
    tol, scale = 0.0, 0.0
    if op == "random_bits":
        expected = philox.words(key, n)
    elif op == "integers":
        expected = philox.integers(key, n, draw.low, draw.high)
    elif op == "uniform":
        expected = philox.uniform(key, n, d)
    else:
        expected, scale = philox.normal(key, n, np.longdouble if d is dt.float64 else np.float64)
        tol, scale = oracle.tolerance(registry[op], d), scale.reshape(draw.shape)
    return compare(got, expected.reshape(draw.shape), d, tol, scale, signed_zeros=False)


@dataclass(slots=True, kw_only=True)
class DrawCase(Case):
    """Draws that must be right, each by itself."""

    draws: Callable[[np.random.Generator, DType], Iterable[Draw]]

    def run(self, target: Target, seed: int) -> Outcome:
        assert self.dtype
        worst, errors = 0.0, np.zeros(len(histogram.EDGES) + 1, np.int64)
        for draw in self.draws(generator(seed, self.id), self.dtype):
            try:
                got = run(target, self.op, self.dtype, draw)
            except NotImplementedError as error:
                return self.refused(target, error)
            verdict = judge(got, self.op, self.dtype, draw)
            if not verdict.ok:
                return Outcome(Status.FAIL, f"{draw}: {verdict.message}")
            worst = max(worst, verdict.ulp)
            errors += 0 if verdict.errors is None else verdict.errors
        tol = oracle.tolerance(registry[self.op], self.dtype) if self.op == "normal" else 0.0
        measured: dict[str, Any] = {"tol": tol, "ulp": round(worst, 4)}
        return Outcome(Status.PASS, "", measured | ({"errors": errors.tolist()} if errors.any() else {}))


@dataclass(slots=True, kw_only=True)
class StatisticsCase(Case):
    """Many numbers of one draw look random."""

    def run(self, target: Target, seed: int) -> Outcome:
        assert self.dtype
        d, rng = self.dtype, generator(seed, self.id)
        draw = Draw(_any_key(rng), (STATISTICAL,))
        try:
            got = run(target, self.op, d, draw)
        except NotImplementedError as error:
            return self.refused(target, error)
        wrong = next(filter(None, _STATISTICS[self.op](got, d)), "")
        return Outcome(Status.FAIL, f"{draw}: {wrong}") if wrong else Outcome(Status.PASS)


def cases(op: Op) -> Iterator[Case]:
    if op.name not in OPS:
        return
    for d in op.dtypes:
        level = level_of(op.name, d)
        for plan in _PLANS[op.name]:
            id = f"{op.name}[{d.brief},{plan.__name__.strip('_')}]"
            yield DrawCase(id, level, op.name, d, draws=plan, quick=plan is not _many)
        yield StatisticsCase(f"{op.name}[{d.brief},statistics]", level, op.name, d, quick=d.itemsize == 4)


# ---- draws ----------------------------------------------------------------------------------------------------


def _any_key(rng: np.random.Generator) -> Key:
    seed, offset = (int(x) for x in rng.integers(0, LONG, 2, dtype=np.uint64))
    return Key(seed, offset)


def _known_answer(rng: np.random.Generator, d: DType) -> Iterator[Draw]:
    assert philox.words(Key(0), 4).tolist() == list(KNOWN_ANSWER)
    yield Draw(Key(0), (4,))


def _keys(rng: np.random.Generator, d: DType) -> Iterator[Draw]:
    """Seeds with each half at its ends, and counters that carry from one word into the next, or come round."""
    for seed in (0, 1, WORD - 1, WORD, LONG - WORD, LONG - 1):
        yield Draw(Key(seed, 1), (67,))
    for offset in (0, WORD - 1, WORD - 5, WORD, 7 * WORD - 9, LONG // 2 - 3, LONG - WORD - 2, LONG - 6):
        yield Draw(Key(0x0123456789ABCDEF, offset), (67,))
    for _ in range(8):
        yield Draw(_any_key(rng), (67,))


def _sizes(rng: np.random.Generator, d: DType) -> Iterator[Draw]:
    """Blocks and vectors that are not full, and shapes that are filled row by row."""
    for n in (*range(20), 31, 33, 63, 64, 65, 127, 129, 255, 257, 1021, 4099):
        yield Draw(_any_key(rng), (n,))
    for shape in ((), (7, 5), (3, 1, 11), (2, 3, 5, 7), (4, 0), (1, 1)):
        yield Draw(_any_key(rng), shape)


def _many(rng: np.random.Generator, d: DType) -> Iterator[Draw]:
    """Enough for every thread to have its part, across a carry of the counter."""
    seed = _any_key(rng).seed
    yield Draw(Key(seed, 3 * WORD - 12_345), (300_007,))


def _continues(rng: np.random.Generator, d: DType) -> Iterator[Draw]:
    """Successive draws: each begins where the one before ended, which left a part of its last block."""
    key = Key(_any_key(rng).seed, WORD - 20)
    for n in (5, 16, 1, 30, 3, 64):
        yield Draw(key, (n,))
        key = key.after(n * (2 if d is dt.float64 else 1))


def _ranges(rng: np.random.Generator, d: DType) -> Iterator[Draw]:
    """The narrowest and the widest ranges at both ends of the dtype, as far as attributes of 64 bits go."""
    least, most = int(d.min), min(int(d.max), LONG // 2 - 2)
    widest = min(most - least + 1, WORD)
    for low, high in ((0, 1), (most, most + 1), (least, least + widest), (most + 1 - widest, most + 1),
                      (0, 2), (least, least + 3), (max(least, -50), 50), (1, 127)):  # fmt: skip
        yield Draw(_any_key(rng), (101,), low, high)


def _rare(rng: np.random.Generator, d: DType) -> Iterator[Draw]:
    for offset in (*RADIUS_ZERO, *RADIUS_LARGEST):
        yield Draw(Key(0, offset), (4,))


_EVERY = (_keys, _sizes, _many)
_PLANS = {
    "random_bits": (_known_answer, *_EVERY, _continues),
    "integers": (*_EVERY, _ranges),
    "uniform": (*_EVERY, _continues),
    "normal": (*_EVERY, _rare),
}


# ---- statistics -----------------------------------------------------------------------------------------------


def _of_uniform(u: np.ndarray, grain: float, side: int = 16) -> Iterator[str]:
    """Tests of numbers in [0, 1), multiples of `grain`, of which side**2 divides the number."""
    if not (u.min() >= 0 and u.max() < 1):
        yield f"numbers from {u.min()} to {u.max()} are not within [0, 1)"
        return
    u = u + grain / 2  # symmetric, and in no doubt which class it is of
    yield randomness.mean(u, 0.5, 0, 1)
    yield randomness.mean((u - 0.5) ** 2, (1 - grain**2) / 12, 0, 0.25)
    yield randomness.distribution(u, lambda x: x - grain / 2, lambda x: x + grain / 2)
    for lag in LAGS:
        yield randomness.apart(2 * u - 1, lag)
    yield randomness.evenly((u * side**2).astype(np.int64), side**2)
    coarse = (u * side).astype(np.int64)
    for lag in (1, 2, 4):  # pairs that do not overlap
        pairs = coarse[: coarse.size // (2 * lag) * 2 * lag].reshape(-1, 2, lag)
        yield randomness.evenly((pairs[:, 0] * side + pairs[:, 1]).reshape(-1), side**2)


def _statistics_of_bits(got: np.ndarray, d: DType) -> Iterator[str]:
    for bit in range(32):
        ones = (got >> np.uint32(bit)) & np.uint32(1)
        if wrong := randomness.mean(ones, 0.5, 0, 1):
            yield f"bit {bit}: {wrong}"
    yield from _of_uniform(got / 2.0**32, 2.0**-32)
    yield from _of_uniform((got & np.uint32(0xFFFF)) / 2.0**16, 2.0**-16)


def _statistics_of_integers(got: np.ndarray, d: DType) -> Iterator[str]:
    if got.min() < 0 or got.max() > 99:
        yield f"numbers from {got.min()} to {got.max()} are not within [0, 100)"
        return
    yield from _of_uniform(got / 100, 0.01, side=10)


def _statistics_of_uniform(got: np.ndarray, d: DType) -> Iterator[str]:
    yield from _of_uniform(got.astype(np.float64), 2.0 ** -philox.SIGNIFICANT[d.name])


def _statistics_of_normal(got: np.ndarray, d: DType) -> Iterator[str]:
    x = got.astype(np.float64)
    if not np.isfinite(x).all():
        yield "numbers are not finite"
        return
    values, at = np.unique(x, return_inverse=True)
    rounding = np.abs(values) * d.eps + 2.0**-24  # of the value, and of the words from which it is made
    below, up_to = _normal_cdf(values - rounding), _normal_cdf(values + rounding)
    yield randomness.distribution(x, lambda _: below, lambda _: up_to)
    u = _normal_cdf(values)[at]
    yield randomness.mean(u, 0.5, 0, 1)
    yield randomness.mean((u - 0.5) ** 2, 1 / 12, 0, 0.25)
    signs, magnitudes = np.sign(x), 6 * ((u - 0.5) ** 2 - 1 / 12)
    for lag in LAGS:
        yield randomness.apart(signs, lag)
        yield randomness.apart(magnitudes, lag)


def _normal_cdf(x: np.ndarray) -> np.ndarray:
    return np.array([0.5 * math.erfc(v * -math.sqrt(0.5)) for v in x.tolist()])


_STATISTICS: dict[str, Callable[[np.ndarray, DType], Iterator[str]]] = {
    "random_bits": _statistics_of_bits,
    "integers": _statistics_of_integers,
    "uniform": _statistics_of_uniform,
    "normal": _statistics_of_normal,
}
