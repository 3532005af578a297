"""Random functions of numbers: a compiled one gives the bits, types and errors of the plain one in every call."""

import math
import random
import struct
import warnings

import dovetail as dt
import numpy as np
import pytest

REALS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 3.0, 1e-40, -7.25, 1e17, 1e308, float("nan"), float("inf"), -float("inf"))
INTEGERS = (0, 1, -1, 2, 3, 7, -5, 60, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63), 2**63, -(2**70))
ERRORS = (ArithmeticError, TypeError, ValueError, AttributeError, IndexError, NotImplementedError)

BINARY = ("{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} // {}", "{} % {}", "divmod({}, {})[1]", "min({}, {})",
          "max({}, {})", "math.prod(({}, {}))", "sum(({}, {}))", "({} if {} > 1 else 2)", "{} + ({} == 3)",
          "({} and {})", "math.copysign({}, {})", "{} * (1 + {} * 0)", "({}, {})[0]")  # fmt: skip
INTEGRAL = ("{} & {}", "{} | {}", "{} ^ {}", "{} << ({} % 70)", "{} >> ({} % 70)", "{} << {} % 9 - 1",
            "pow({}, 3, 11) + {}", "{} ** ({} % 4)", "[5, 6, 7][({} + {}) % 4]")  # fmt: skip
UNARY = (
    "-{}",
    "+{}",
    "abs({})",
    "({} + 0)",
    "({} * 1)",
    "(0 - {})",
    "(0 + {})",
    "round({})",
    "round({}, 1)",
    "int({})",
    "float({})",
    "math.floor({})",
    "math.ceil({})",
    "math.trunc({})",
    "math.sqrt({})",
    "math.log({})",
    "bool({})",
    "len(str({}))",
    "len(format({}, '>4'))",
    "(hash({0}) if {0} == {0} else 0)",
    "{{1: 5, 2.5: 6}}.get({}, 7)",
    "({} / 3)",
    "({} ** 2)",
    "({} ** 0.5)",
    "({} ** -1)",
    "(2 ** ({} % 40))",
    "(1.5 ** {})",
    "({0} == {0})",
    "({0} != {0})",
    "({0} < {0})",
    "({} < 2**70)",
    "({} <= 2**53)",
    "({} * 1j).real",
    "({}).real",
    "({}).is_integer()",
    "({0} > 0 or {0} <= 0)",
)
INTEGRAL_UNARY = ("~{}", "({}).bit_length()", "range({})[0]", "({}).bit_count()")  # fmt: skip


def expression(rng, depth, kind):
    if depth == 0 or rng.random() < 0.15:
        names = {"r": ("s", "t", "2.0", "-0.0"), "i": ("n", "m", "k", "3", "1", "2**53 + 1")}[kind]
        return f"({rng.choice(names)})"
    pick = rng.random()
    if pick < 0.12:
        a, b = (expression(rng, depth - 1, kind) for _ in range(2))
        return f"tried(lambda: {a}, lambda: {b})"
    if pick < 0.45:
        forms = UNARY + (INTEGRAL_UNARY if kind == "i" else ())
        return rng.choice(forms).format(expression(rng, depth - 1, rng.choice((kind, "r", "i"))))
    forms = BINARY + (INTEGRAL * 2 if kind == "i" else ())
    other = kind if kind == "i" else rng.choice("ri")
    return f"({rng.choice(forms).format(expression(rng, depth - 1, kind), expression(rng, depth - 1, other))})"


def tried(first, second):
    try:
        return first()
    except ERRORS:
        return second()


def bits(x):
    if isinstance(x, tuple):
        return tuple(map(bits, x))
    if isinstance(x, dt.Array):
        return x.dtype.name, x.shape, np.asarray(x).tobytes()
    if isinstance(x, complex):
        return "complex", struct.pack("<dd", x.real, x.imag)
    return type(x).__name__, struct.pack("<d", x) if isinstance(x, float) else x


def outcome(f, *args):
    try:
        return bits(f(*args))
    except ERRORS as e:
        return type(e).__name__


def check(seed):
    rng = random.Random(seed)
    source = expression(rng, rng.choice((1, 2, 2, 3)), rng.choice("ri"))
    uses = rng.choice(("x * {}", "dt.full((2,), {}, dtype='float64')", "dt.asarray([{}, 1.0])", "x[:3] + {}", "0"))
    text = (
        f"def f(x, s, t, n, m):\n    k = x.shape[0]\n    value = {source}\n    return value, {uses.format('value')}"
    )
    space = {"math": math, "dt": dt, "tried": tried}
    exec(text, space)
    f, g = space["f"], dt.compile(space["f"])
    for call in range(6):
        size = rng.choice((1, 2, 3, 5))
        args = [rng.choice(REALS), rng.choice(REALS), rng.choice(INTEGERS), rng.choice(INTEGERS)]
        x = dt.asarray(np.arange(1, size + 1.0), dtype="float64")
        want, got = outcome(f, x, *args), outcome(g, x, *args)
        assert got == want, f"seed {seed}, call {call} of {source}, then {uses}: {size} {args}"


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_random_functions_of_numbers(first):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + 50):
            check(seed)
