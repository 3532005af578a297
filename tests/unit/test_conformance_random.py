"""The suite's own Philox, its statistical tests, and the cases that find a device with another generator."""

import numpy as np
import pytest
from dovetail.schema import dtypes as dt
from dovetail.schema import registry
from dovetail.schema.ops import random as schema
from dovetail_conformance.cases import cases_of, random_numbers
from dovetail_conformance.judging import oracle, philox, randomness
from dovetail_conformance.judging.philox import Key
from dovetail_conformance.results import Status

WORD = 2**32 - 1


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((WORD,) * 4, (WORD,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_matches_its_authors_vectors(counter, key, expected):
    """kat_vectors of Random123, which came with the paper."""
    assert philox.philox4x32(np.array([counter], np.uint32), key).tolist() == [list(expected)]


def test_words_are_blocks_of_successive_counters():
    key = Key(0x9ABCDEF012345678, 2**32 - 2)
    counters = np.array([[WORD - 1, 0, 0, 0], [WORD, 0, 0, 0], [0, 1, 0, 0]])
    blocks = philox.philox4x32(counters, (0x12345678, 0x9ABCDEF0))
    assert philox.words(key, 10).tolist() == blocks.reshape(-1)[:10].tolist()
    assert philox.words(Key(3, 2**64 - 1), 8)[4:].tolist() == philox.words(Key(3, 0), 4).tolist()
    assert key.after(5) == (key.seed, 2**32) and Key(1, 2**64 - 1).after(1).offset == 0
    assert key.operand().tolist() == [0x12345678, 0x9ABCDEF0, WORD - 1, 0]


def test_the_schema_agrees():
    """Two implementations of one definition."""
    for key in (Key(0), Key(2**64 - 1, 2**64 - 2), Key(12345 << 20, 2**32 - 1)):
        operand = key.operand()
        assert (schema.philox_words(operand, 41) == philox.words(key, 41)).all()
        assert (schema._integers(operand, (41,), -7, 2**31, dt.int64) == philox.integers(key, 41, -7, 2**31)).all()
        for d in dt.FLOATS:
            assert (schema._uniform(operand, (41,), d) == philox.uniform(key, 41, d)).all()
        np.testing.assert_allclose(
            schema._normal(operand, (41,), dt.float32), philox.normal(key, 41)[0], atol=1e-12
        )


def test_the_rarest_blocks_are_what_they_are_called():
    radii = {"zero": random_numbers.RADIUS_ZERO, "largest": random_numbers.RADIUS_LARGEST}
    for name, offsets in radii.items():
        for offset in offsets:
            radius = philox.normal(Key(0, offset), 4)[1]
            assert radius.min() == 0 if name == "zero" else radius.max() == np.sqrt(48 * np.log(2))


# ---- the cases --------------------------------------------------------------------------------------------------


class NumPyTarget:
    """A device whose ops are the schema's references, so that a test can break it through the schema."""

    def asarray(self, a):
        return a

    numpy = asarray

    def call(self, op, args, kwargs):
        answer = oracle.answers(registry[op], args, kwargs)[0]
        return np.asarray(answer.value).astype(answer.dtype.numpy)


def outcomes(op, brief, seed=0):
    cases = [c for c in cases_of(op).values() if type(c).__module__ == random_numbers.__name__]
    chosen = [c for c in cases if c.dtype.brief == brief]
    return {c.id.partition(",")[2][:-1]: c.run(NumPyTarget(), seed) for c in chosen}


@pytest.mark.parametrize(
    ("op", "brief"),
    [("random_bits", "u32"), ("integers", "i8"), ("integers", "u64"), ("uniform", "f64"), ("uniform", "bf16"),
     ("normal", "f32"), ("normal", "f16")],
)  # fmt: skip
def test_a_right_device_passes(op, brief):
    found = outcomes(op, brief)
    assert {"keys", "sizes", "many", "statistics"} <= set(found)
    assert {name: o.message for name, o in found.items() if o.status is not Status.PASS} == {}


def _weyl(words):
    return lambda monkeypatch: monkeypatch.setattr(schema, "WEYL", words)


def _words(change):
    return lambda monkeypatch: monkeypatch.setattr(schema, "philox_words", change(schema.philox_words))


FAULTS = {
    "key schedule, one bit": _weyl((0x9E3779B9, 0xBB67AE84)),
    "key schedule, its highest bit": _weyl((0x1E3779B9, 0xBB67AE85)),
    "multiplier, one bit": lambda m: m.setattr(schema, "MULTIPLIERS", (0xD2511F53, 0xCD9E8D55)),
    "words swapped": _words(lambda f: lambda key, n: f(key, n + 4)[np.arange(n) ^ 1]),
    "counter begins at 1": _words(lambda f: lambda key, n: f(key + np.uint32([0, 0, 1, 0]), n)),
    "counter does not carry": _words(
        lambda f: (
            lambda key, n: np.concatenate(
                [f(np.uint32([*key[:2], (int(key[2]) + i) % 2**32, key[3]]), 4) for i in range(-(-n // 4))]
                or [key[:0]]
            )[:n]
        )
    ),
    "seed of 32 bits": _words(lambda f: lambda key, n: f(key * np.uint32([1, 0, 1, 1]), n)),
    "offset of 32 bits": _words(lambda f: lambda key, n: f(key * np.uint32([1, 1, 1, 0]), n)),
    "only full blocks": _words(lambda f: lambda key, n: np.append(f(key, n // 4 * 4), np.uint32([7] * (n % 4)))),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("op", "brief"), [("random_bits", "u32"), ("uniform", "f32"), ("normal", "f64")])
def test_another_generator_is_found(monkeypatch, fault, op, brief):
    FAULTS[fault](monkeypatch)
    cases = [c for c in cases_of(op).values() if isinstance(c, random_numbers.DrawCase) and c.dtype.brief == brief]
    found = {c.id: c.run(NumPyTarget(), 0) for c in cases if c.quick}
    bad = [o.message for o in found.values() if o.status is Status.FAIL]
    assert bad and all("seed 0x" in message and "offset 0x" in message for message in bad)


def test_integers_that_round_are_found(monkeypatch):
    """Modulo instead of the upper word of the product."""

    def reference(key, shape, low, high, dtype):
        return schema.philox_words(key, shape[0]).astype(object) % (high - low) + low

    monkeypatch.setattr(registry["integers"], "reference", reference)
    case = cases_of("integers")["integers[i32,ranges]"]
    assert case.run(NumPyTarget(), 0).status is Status.FAIL


# ---- statistics -------------------------------------------------------------------------------------------------

N = random_numbers.STATISTICAL
BIASED = {
    "a bit that is 1 too often": lambda r: r.integers(0, 2**32, N) | ((r.random(N) < 0.06) << 17).astype(np.int64),
    "a bit that stays": lambda r: r.integers(0, 2**32, N) & ~np.int64(1 << 3),
    "numbers twice in a row": lambda r: r.integers(0, 2**32, N // 2).repeat(2),
    "a short period": lambda r: np.tile(r.integers(0, 2**32, 64), N // 64),
    "a counter": lambda r: np.arange(N) * (2**32 // N),
    "too even": lambda r: r.permutation(N) * (2**32 // N),
}


@pytest.mark.parametrize("what", BIASED)
def test_statistics_see_a_biased_generator(what):
    words = BIASED[what](np.random.default_rng(1)).astype(np.uint32)
    assert next(filter(None, random_numbers._statistics_of_bits(words, dt.uint32)), "")


def test_statistics_see_a_wrong_distribution():
    rng = np.random.default_rng(2)
    normal = rng.standard_normal(N)
    wrong = {
        "wide": normal * 1.05,
        "shifted": normal + 0.05,
        "uniform": (rng.random(N) - 0.5) * np.sqrt(12),
        "pairs with one sign": np.repeat(np.sign(normal[::2]), 2) * np.abs(normal),
        "pairs of one size": np.repeat(normal[::2], 2) * rng.choice([-1, 1], N),
    }
    for what, x in wrong.items():
        assert any(random_numbers._statistics_of_normal(x, dt.float32)), what
    assert any(random_numbers._statistics_of_uniform(rng.random(N) ** 1.05, dt.float64))
    assert any(random_numbers._statistics_of_uniform(rng.random(N) + 0.1, dt.float64))
    assert any(random_numbers._statistics_of_integers(rng.integers(0, 99, N), dt.int64))


def test_statistics_raise_no_false_alarm():
    for seed in range(12):
        rng = np.random.Generator(np.random.PCG64(seed))
        checks = (
            random_numbers._statistics_of_bits(rng.integers(0, 2**32, N, dtype=np.uint32), dt.uint32),
            random_numbers._statistics_of_uniform(rng.random(N), dt.float64),
            random_numbers._statistics_of_uniform(rng.integers(0, 256, N) / 256, dt.bfloat16),
            random_numbers._statistics_of_integers(rng.integers(0, 100, N), dt.int64),
            random_numbers._statistics_of_normal(rng.standard_normal(N).astype(dt.bfloat16.numpy), dt.bfloat16),
        )
        assert not [wrong for check in checks for wrong in check if wrong]


def test_inequalities_are_what_they_claim():
    """At a false alarm rate of at most 1 %, at most 4 of 400 fair samples are refused: the bounds are true
    bounds."""
    rng = np.random.default_rng(3)
    refused = {"mean": 0, "distribution": 0, "evenly": 0, "apart": 0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(randomness, "ALARM", 0.01)
        for _ in range(400):
            u = rng.random(3200)
            refused["mean"] += bool(randomness.mean(u, 0.5, 0, 1))
            refused["distribution"] += bool(randomness.distribution(u, lambda x: x, lambda x: x))
            refused["evenly"] += bool(randomness.evenly((u * 16).astype(int), 16))
            refused["apart"] += bool(randomness.apart(2 * u - 1, 1))
    assert max(refused.values()) <= 12 and refused["distribution"] + refused["mean"] > 0
    with pytest.raises(ValueError, match="too few"):
        randomness.evenly(np.zeros(100, int), 2)
