"""Decompositions against the oracles: ordinary and special values, every dtype, down to the must-have
primitives."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from numpy_tracer import Machine, Traced, check, dt, oracle, registry, schema, signs_differ, ulps
from program_samples import samples_of

REQUIRED = sys.modules[f"{schema.__name__}.declare"].REQUIRED
special_values = sys.modules[f"{schema.__name__}.samples"].special_values
DECOMPOSITIONS = [o for o in registry.values() if o.decomposition and o.__module__.startswith(schema.__name__)]
ELEMENTWISE = [
    o
    for o in DECOMPOSITIONS
    if o.spec.shape in ("same", "broadcast") and o.spec.dtype != "logical" and dt.float32 in o.dtypes
    if all(p.default is not REQUIRED for p in o.attributes)
]
UNARY = [o for o in ELEMENTWISE if len(o.operands) == 1]
BINARY = [o for o in ELEMENTWISE if len(o.operands) == 2]
TESTED = (dt.float32, dt.float64, dt.int32, dt.int64, dt.uint8, dt.bool_, dt.float16, dt.bfloat16, dt.uint32)


def names(ops):
    return [pytest.param(o, id=o.name) for o in ops]


def run(op, *args, slop=0):
    return Machine(slop).run(op, *args)


def grid(d):
    """Every pair of special values, NaN included."""
    s = np.concatenate([special_values(d), np.array([np.nan], d.numpy)])
    return [v.ravel().copy() for v in np.meshgrid(s, s)]


def unary_values(d, n=8000):
    """Random bits, values around turning points, multiples of pi/2 and the next numbers, every exponent."""
    rng = np.random.default_rng(1)
    word = np.dtype(f"i{d.itemsize}")
    turns = (np.arange(1, 2001) * (np.pi / 2)).astype(d.numpy).view(word)
    points = np.array([1, -1, 2, 0.5, -0.5, 20, 88.72, -103.9, 709.7, -745.0], d.numpy).view(word)
    return np.concatenate(
        [
            special_values(d),
            np.array([np.nan], d.numpy),
            rng.integers(0, 2 ** (d.bits - 1), n).astype(word).view(d.numpy),
            -rng.integers(0, 2 ** (d.bits - 1), n).astype(word).view(d.numpy),
            (points[:, None] + np.arange(-500, 500, dtype=word)).ravel().view(d.numpy),
            *((turns + k).view(d.numpy) for k in (-1, 0, 1)),
            *(rng.uniform(-w, w, n).astype(d.numpy) for w in (1, 12, 110)),
        ]
    )


def binary_values(d, n=4000):
    rng = np.random.default_rng(2)
    old = np.seterr(over="ignore")
    top = np.log10(d.max)
    a = (10.0 ** rng.uniform(-top, top, n) * rng.choice([-1, 1], n)).astype(d.numpy)
    near = (a * 10.0 ** rng.uniform(-3, 3, n)).astype(d.numpy)
    base = np.abs(a)
    power = (
        rng.uniform(-1070 if d is dt.float64 else -150, 1020 if d is dt.float64 else 128, n) / np.log2(base)
    ).astype(d.numpy)
    close = (1 + rng.uniform(-1e-3, 1e-3, n)).astype(d.numpy)
    small = [rng.uniform(-100, 100, n).astype(d.numpy) for _ in range(2)]
    whole = [rng.integers(-40, 40, n).astype(d.numpy) for _ in range(2)]
    np.seterr(**old)
    pairs = [grid(d), (a, near), (base, power), (close, (power * 1000).astype(d.numpy)), small, whole]
    return [np.concatenate(v) for v in zip(*pairs, strict=True)]


# ---- values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [dt.float32, dt.float64], ids=lambda d: d.brief)
@pytest.mark.parametrize("op", names(UNARY))
def test_unary(op, d):
    x = unary_values(d)
    check(op, (x,), {})
    check(op, (x,), {}, machine=Machine(slop=1), what="with exp, log and sin up to 1 ulp off")


@pytest.mark.parametrize("d", [dt.float32, dt.float64], ids=lambda d: d.brief)
@pytest.mark.parametrize("op", names(BINARY))
def test_binary(op, d):
    args = tuple(binary_values(d))
    check(op, args, {})
    check(op, args, {}, machine=Machine(slop=1), what="with exp, log and sin up to 1 ulp off")


EITHER_ZERO = ("relu", "relu6", "gelu_grad", "silu_grad")  # by a maximum, or where a derivative vanishes
SIGNED = [o for o in UNARY + BINARY if o.spec.dtype not in ("compare", "predicate") and o.name not in EITHER_ZERO]


@pytest.mark.parametrize("op", names(SIGNED))
def test_zeros_have_the_right_sign(op):
    x = grid(dt.float32) if len(op.operands) == 2 else [unary_values(dt.float32)]
    wrong = signs_differ(run(op, *x), oracle.expected(op, tuple(x), {}))
    assert not wrong.any(), f"{op.name}{tuple(v[wrong][0] for v in x)}"


@pytest.mark.parametrize("d", dt.HALVES, ids=lambda d: d.brief)
@pytest.mark.parametrize("op", names(UNARY))
def test_every_float16(op, d):
    """Computed in float32 and rounded once: all 65536 inputs."""
    x = np.arange(2**16, dtype=np.uint16).view(d.numpy)
    with np.errstate(all="ignore"):
        got = run(op, x)
        want = np.asarray(oracle.expected(op, (x,), {}))
    if got.dtype == bool:
        assert (got == want).all()
    else:
        error = ulps(got, want, oracle.scale(op, (x,), {}), d)
        assert error.max() <= 0.501, f"{op.name}({x[np.argmax(error)]})"


@pytest.mark.parametrize("d", dt.HALVES, ids=lambda d: d.brief)
@pytest.mark.parametrize("op", names(BINARY))
def test_pairs_of_float16(op, d):
    check(op, tuple(grid(d)), {})


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "quotient"])
@pytest.mark.parametrize("d", [dt.int8, dt.uint8], ids=lambda d: d.brief)
def test_every_pair_of_bytes(name, d):
    every = np.arange(256).astype(np.uint8).view(d.numpy)
    a, b = (v.ravel() for v in np.meshgrid(every, every))
    check(registry[name], (a, b), {})


# ---- samples -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", names(o for o in registry.values() if o.spec.shape != "control"))
def test_samples(op):
    """Samples of the conformance suite, on the machine with the must-have primitives."""
    rng, cases = np.random.default_rng(3), 0
    for s, d in samples_of(op, TESTED):
        args, kwargs = s.make(rng, d)
        if s.error is None:
            check(op, args, kwargs, what=f"{s.id} {d}", machine=Machine(slop=1))
        elif s.error is IndexError:
            with pytest.raises(IndexError):
                Machine().run(op, *args, **kwargs)
        cases += 1
    assert cases, "it has no sample for any of the tested dtypes"


# ---- what decompositions are made of -----------------------------------------------------------------------------


def first_call(op):
    """Call the op through its decomposition."""
    rng = np.random.default_rng(4)
    d = next(d for d in TESTED if d in op.dtypes)
    for s in op.cases():
        if s.error is None and (s.dtypes is None or d in s.dtypes):
            return s.make(rng, d)
    raise AssertionError(f"[{op.name}] has no sample for {d}")


def test_decompositions_end_in_must_have_primitives_without_a_cycle():
    edges = set()
    for op in DECOMPOSITIONS:
        machine = (
            Machine()
        )  # refuses an op that calls itself, and any op that has no decomposition and is not must-have
        args, kwargs = first_call(op)
        machine.run(op, *args, **kwargs)
        assert all(registry[name].tier == "must" for name in machine.launches)
        edges |= machine.edges
    order, left = [], {name for edge in edges for name in edge}
    while left:  # over all decompositions together
        ends = {n for n in left if not any(a == n and b in left and b != n for a, b in edges)}
        assert ends, f"a cycle among {sorted(left)}"
        order, left = [*order, *sorted(ends)], left - ends


LAUNCHES = {
    "abs": 1, "negative": 1, "greater": 1, "not_equal": 2, "less_equal": 3, "isnan": 2, "isfinite": 2,
    "sign": 7, "clip": 2, "ceil": 3, "trunc": 5, "round": 8, "nextafter": 24, "expm1": 10, "log1p": 9,
    "log2": 19, "cos": 15, "tan": 19, "asin": 24, "acos": 25, "atan": 29, "atan2": 43, "sinh": 24, "cosh": 11,
    "tanh": 17, "asinh": 24, "acosh": 20, "atanh": 17, "hypot": 22, "logaddexp": 26, "pow": 150,
    "remainder": 108, "sigmoid": 7, "softplus": 14, "silu": 11, "gelu": 43, "erf": 59, "erfc": 40, "exp2": 16,
    "rsqrt": 2, "elu": 14,
}  # fmt: skip


@pytest.mark.parametrize("name", LAUNCHES)
def test_launches(name):
    """No decomposition takes more launches than were measured."""
    machine = Machine()
    x = np.linspace(0.1, 0.9, 5, dtype=np.float32)
    machine.run(registry[name], *[x] * (3 if name == "clip" else len(registry[name].operands)))
    assert sum(machine.launches.values()) <= LAUNCHES[name], machine.launches


def test_softmax_layer_norm_and_attention_stay_small():
    def launches(name, *args, **kwargs):
        machine = Machine()
        machine.run(registry[name], *args, **kwargs)
        return sum(machine.launches.values())

    x = np.ones((2, 4, 8, 16), np.float32)
    assert launches("softmax", x) <= 8
    assert launches("layer_norm", x, 16, x[0, 0, 0], x[0, 0, 0]) <= 12
    assert launches("scaled_dot_product_attention", x, x, x, is_causal=True) <= 17
    assert launches("conv2d", x, np.ones((4, 4, 3, 3), np.float32), padding=1) <= 28
    assert launches("random_bits", np.zeros(4, np.uint32), (100,)) <= 100


# ---- particular promises -----------------------------------------------------------------------------------------


def test_ops_without_a_decomposition():
    """A decomposition that refuses a dtype names the expected ones."""
    with pytest.raises(schema.Unsupported, match="got int64, expected a floating one"):
        Machine().run(registry["linspace"], 0.0, 1.0, 5, dtype=dt.int64)


def test_launches_of_float64_remainder():
    machine = Machine()
    machine.run(registry["remainder"], np.array([5.5, 1e300]), np.array([2.0, 3e-300]))
    assert sum(machine.launches.values()) <= 520, machine.launches


def test_decompositions_never_read_values():
    with pytest.raises(TypeError, match="value"):
        bool(Traced(Machine(), np.ones(3)))


def test_philox_is_that_of_the_paper():
    known = np.array([0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8], np.uint32)
    np.testing.assert_array_equal(run(registry["random_bits"], np.zeros(4, np.uint32), (4,)), known)
    ones = np.full(4, 0xFFFFFFFF, np.uint32)
    moved = run(registry["random_bits"], ones, (8,))  # the offset is at its end: the next block is number 0
    first = run(registry["random_bits"], np.array([2**32 - 1, 2**32 - 1, 0, 0], np.uint32), (4,))
    np.testing.assert_array_equal(moved[4:], first)


def test_random_numbers_of_another_shape_are_the_same():
    key = np.array([1, 2, 3, 4], np.uint32)
    for name, more in (("uniform", (dt.float32,)), ("uniform", (dt.float64,)), ("integers", (0, 6, dt.int64))):
        flat = run(registry[name], key, (24,), *more)
        np.testing.assert_array_equal(run(registry[name], key, (4, 6), *more).ravel(), flat)
        assert flat.min() >= 0 and flat.max() < 6
    x = run(registry["normal"], key, (20001,), dt.float32)
    assert abs(x.mean()) < 0.03 and abs(x.std() - 1) < 0.02


def test_small_integer_powers_are_exact():
    a, b = (v.ravel().astype(np.float32) for v in np.meshgrid(np.arange(-15, 16), np.arange(0, 6)))
    np.testing.assert_array_equal(run(registry["pow"], a, b), a.astype(np.float64) ** b)


def test_exp2_and_log2_are_exact_at_powers_of_two():
    n = np.arange(-149, 128).astype(np.float32)
    np.testing.assert_array_equal(run(registry["exp2"], n), np.exp2(n.astype(np.float64)))
    np.testing.assert_array_equal(run(registry["log2"], np.exp2(n.astype(np.float64)).astype(np.float32)), n)


def test_sorting_keeps_the_order_of_equals_and_puts_nan_last():
    x = np.array([1.0, np.nan, -0.0, 0.0, -np.inf, 1.0, np.nan, 0.0], np.float32)
    up = run(registry["argsort"], x)
    assert up.tolist() == [4, 2, 3, 7, 0, 5, 1, 6]
    machine = Machine()
    assert machine.run(registry["argsort"], x, descending=True).tolist() == [0, 5, 2, 3, 7, 4, 1, 6]


def test_a_masked_row_of_attention_is_zero():
    q = np.ones((2, 3, 4), np.float32)
    mask = np.array([[True, False], [False, False], [True, True]])
    out = Machine().run(registry["scaled_dot_product_attention"], q, q[:, :2], q[:, :2], mask)
    assert (out[:, 1] == 0).all() and (out[:, 0] == 1).all()


# ---- do these tests see anything? ----------------------------------------------------------------------------


def naive_logaddexp(x1, x2):
    m = registry["maximum"](x1, x2)
    return m + registry["log"](registry["exp"](x1 - m) + registry["exp"](x2 - m))


def naive_tanh(x):
    e = registry["exp"](x * 2.0)
    return (e - 1.0) / (e + 1.0)


def signless_ceil(x):
    return registry["floor"](x + 1.0 - 2.0**-20)


@pytest.mark.parametrize(
    ("name", "decomposition", "args"),
    [
        ("logaddexp", naive_logaddexp, lambda: grid(dt.float32)),
        ("tanh", naive_tanh, lambda: [unary_values(dt.float32)]),
        ("ceil", signless_ceil, lambda: [unary_values(dt.float32)]),
    ],
)
def test_an_obvious_but_wrong_decomposition_fails(monkeypatch, name, decomposition, args):
    monkeypatch.setattr(registry[name], "decomposition", decomposition)
    with pytest.raises(AssertionError, match=rf"\[{name}\]"):
        check(registry[name], tuple(args()), {})
