"""dovetail.compile: numbers among the arguments, sizes, and what Python does with them."""

import collections
import functools
import json
import math
import numbers
import pickle
import random
import struct
import warnings
from decimal import Decimal
from fractions import Fraction

import dovetail as dt
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def array(*values, dtype="float64"):
    return dt.asarray(list(values), dtype=dtype)


def traces(f) -> int:
    return len(f._state.traces)


def exact(x):
    if isinstance(x, tuple):
        return tuple(map(exact, x))
    if isinstance(x, dt.Array):
        return x.dtype.name, x.shape, np.asarray(x).tobytes()
    if isinstance(x, complex):
        return "complex", struct.pack("<dd", x.real, x.imag)
    return type(x).__name__, struct.pack("<d", x) if isinstance(x, float) else x


def agrees(f, *calls, most=8):
    """The compiled function does what f does in each call: bits, types, errors. Returns the number of traces."""
    g = dt.compile(f)
    for args in calls:
        got = []
        for function in (f, g):
            try:
                got.append(exact(function(*args)))
            except (ArithmeticError, TypeError, ValueError, LookupError, AttributeError) as e:
                got.append((type(e), str(e)))
        assert got[1] == got[0], args
    assert traces(g) <= most
    return traces(g)


x = array(1.0, 2.0, 3.0)

# ---- what takes only numbers of Python ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "compute",
    [
        lambda x, n: x * json.loads(json.dumps({"n": n}))["n"],
        lambda x, n: x * float(Decimal(n)),
        lambda x, n: x * pickle.loads(pickle.dumps(n)),
        lambda x, n: x * type(n)(3),
        lambda x, n: x * len(collections.deque([1, 2], maxlen=n)),
        lambda x, n: x * random.Random(n).random(),
        lambda x, n: x * float(np.random.default_rng(n).random()),
        lambda x, n: x + dt.random.Generator(n).normal((3,)),
        lambda x, n: dt.tensordot(x, x, axes=n),
    ],
)
def test_code_that_takes_only_ints_of_python(compute):
    calls = [(x, n, s) for n, s in ((1, 0.5), (0, 0.25), (1, 0.125), (2, 2.0), (0, 1.0))]
    traces_of_two = agrees(lambda x, n, s: compute(x, n) * s, *(c for c in calls if c[1] < 2))
    assert traces_of_two == 2  # s stays a number of the program
    agrees(lambda x, n, s: compute(x, n) * s, *calls)


@functools.singledispatch
def dispatched(n, x):
    return x


@dispatched.register
def _(n: int, x):
    return x + n


@dispatched.register
def _(n: float, x):
    return x * n


def matched(n, x):
    match n:
        case float():
            return x * n
        case int():
            return x + n
    return x


@pytest.mark.parametrize(
    "f",
    [
        lambda n, x: x * n if isinstance(n, float) else x + n if isinstance(n, (int, np.integer)) else x,
        lambda n, x: x * n if isinstance(n, numbers.Real) else x,
        lambda n, x: x * n if np.isscalar(n) else x,
        lambda n, x: x * n if isinstance(n, np.generic) else x,
        lambda n, x: x * n if isinstance(x.shape[0], int) else x,
        dispatched,
        matched,
    ],
)
def test_numbers_are_those_of_python_to_isinstance(f):
    compiled = dt.compile(f)
    for n in (2.5, 3.5, 2, 3, 4, np.float32(1.5), np.float32(2.5), np.float64(1.5), np.int64(2), np.int64(3)):
        assert exact(compiled(n, x)) == exact(f(n, x))


def test_code_that_takes_only_floats_of_python():
    def f(x, n, s):
        return x[:n] * json.loads(json.dumps([s]))[0]

    calls = [(x, n, s) for n, s in ((3, 0.5), (3, 0.25), (2, 0.5), (2, 0.5))]
    assert agrees(f, *calls) == 3
    g = dt.compile(f)
    g(x, 3, 0.5), g(x, 3, 0.25)
    assert "argument s is 0.25, and was 0.5" in g.explain(x, 3, 0.25)
    assert "note: ints and floats among the arguments are guards by their values" in g.explain(x, 3, 0.5)
    assert "Object of type float is not JSON serializable" in g.explain(x, 3, 0.5)


def test_an_error_of_the_function_makes_no_guards_of_numbers():
    def f(x, n, s):
        return dt.reshape(x, (2, n)) * s

    y = dt.arange(8.0)
    calls = ((2, 1, 0.5), (2, 5, 2.0), (2, 1, 3.0), (4, 2, 4.0), (6, 3, 5.0), (6, 7, 5.0), (8, 4, 6.0))
    assert agrees(f, *[(y[:k], n, s) for k, n, s in calls]) == 2


# ---- text and hashes ---------------------------------------------------------------------------------------------


def test_text_of_a_size_pins_it_and_names_the_line():
    def f(x):
        return x * {"2": 10, "3": 100}.get(f"{x.shape[0]}", 0) + len(str(x.shape)) + len(repr(x.shape[0] * 50))

    assert agrees(f, (array(1, 2),), (array(1, 2, 3),), (array(1),), (array(*range(12)),), (array(1, 2),)) == 4
    g = dt.compile(f)
    g(array(1, 2)), g(array(1, 2, 3))
    assert "test_compile_numbers.py" in g._state.reasons[0]
    assert "which makes text of it" in g._state.reasons[0]
    assert "which makes text of it" in g.explain(array(1, 2))


def test_printing_an_array_pins_nothing():
    def f(x):
        print(x)
        return x + 1

    g = dt.compile(f)
    g(array(1, 2)), g(array(1, 2, 3))
    assert traces(g) == 1


def test_text_of_a_float_pins_it():
    agrees(lambda x, s: x * len(f"{s:.3g}"), (x, 0.5), (x, 0.25), (x, 1e-9), (x, 0.5))


def test_the_warning_of_the_limit_says_what_to_do():
    g = dt.compile(lambda x: x * len(f"{x.shape[0]}"))
    for n in range(1, 9):
        g(dt.ones(n))
    with pytest.warns(UserWarning, match=r"which makes text of it.*making text of it") as caught:
        g(dt.ones(9))
    assert caught[0].filename == __file__


def test_a_number_as_key_pins_it():
    agrees(lambda x, n: x * {1: 5, 2: 6, 3: 7}.get(n, 0), *[(x, n) for n in (1, 2, 3, 4, 2**70, 1)])


# ---- floats ------------------------------------------------------------------------------------------------------

SPECIAL = (1.0, float("nan"), -0.0, 0.0, float("inf"), float("nan"), -1.5, 0.0)


def test_nan_compares_with_nothing():
    def f(x, s):
        return x * (1 if s == s else 2) * (3 if s != s else 5) * (7 if s < 1 else 11) * (13 if s >= 0 else 17)

    agrees(f, *[(x, s) for s in SPECIAL])
    assert agrees(lambda x, s: x * (1 if s == s else 2), *[(x, s) for s in SPECIAL]) == 2
    assert agrees(lambda x, s: x * (1 if s != s else 2), *[(x, s) for s in SPECIAL]) == 2
    assert agrees(lambda x, s: x * (2 if s > 0 else 3), *[(x, s) for s in SPECIAL]) == 3


def test_zeros_keep_their_signs():
    agrees(
        lambda x, s: (x * -s, x * (s + 0), x * (0 + s), x * (s * 1), x * (0 - s), x * (s - 0)), (x, -0.0), (x, 0.0)
    )
    agrees(lambda x, s: (-s, s + 0, s * 1, 0 - s, s - 0, s // 1, +s, s % 3, s * -1), *[(x, s) for s in SPECIAL])


def test_a_pinned_zero_has_a_sign():
    agrees(
        lambda x, s: math.copysign(1, s) * x, (x, 0.0), (x, -0.0), (x, 0.0), (x, float("nan")), (x, -float("nan"))
    )
    g = dt.compile(lambda x, s: x * float(s))
    for _ in range(3):
        g(x, float("nan"))
    assert traces(g) == 1
    assert "s is nan" in g.explain(x, float("nan"))


def test_complex_numbers_are_matched_bit_by_bit():
    agrees(
        lambda x, c: x * math.copysign(1, c.imag) * math.copysign(2, c.real),
        *[(x, c) for c in (1j, complex(0, -0.0), 0j, complex(-0.0, 0), 1j)],
    )
    assert agrees(lambda x, s: (s * 1j, s == 1j, s + (1 + 2j)), (x, 0.5), (x, -0.0)) == 2


def test_lists_of_numbers_are_arrays_as_without_a_trace():
    def f(x, s, n):
        return (
            dt.asarray([s, 1.0]),
            dt.asarray([[n, s], [True, 2]]),
            dt.asarray([n, 1]),
            dt.asarray((n,), dtype="int8"),
        )

    calls = [(x, 0.1, 3), (x, 0.2, 2**24 + 1), (x, 0.2, 4), (x, float("nan"), 2**53 + 1), (x, 0.5, -5)]
    agrees(f, *calls)
    agrees(lambda x, s: dt.asarray([s, 2**60 + 1]), (x, 0.5), (x, 1.5), most=1)
    agrees(lambda x, s: dt.asarray([s, [1]]), (x, 0.5))
    assert agrees(lambda x, n: dt.asarray(n, dtype="uint8"), *[(x, n) for n in (3, 4, 255, 256, -1, 5)]) == 2


def test_floats_of_arithmetic_need_no_further_traces():
    def f(x, s):
        return x * (s**2) + s**0.5 - 1 / s + s % 0.3 + (1 - 0.9**s) + math.prod((s, 3)) + x.shape[0] / s

    assert agrees(f, *[(x, s) for s in (0.1, 0.2, 5.0, 1e300)]) == 1


def test_errors_of_arithmetic_are_seen_by_the_function():
    def f(x, s, n):
        try:
            1 / s, n // 3 % n
        except ZeroDivisionError:
            return x * 2
        return x

    def g(x, s):
        try:
            return x * s**300
        except OverflowError:
            return x

    assert agrees(f, (x, 1.0, 1), (x, 0.5, 2), (x, 0.0, 3), (x, 2.0, 0), (x, 2.0, 5)) <= 5
    agrees(g, (x, 1.0), (x, 1e10), (x, 0.5))
    agrees(lambda x, s: (x, s**0.5, s**-1), (x, 4.0), (x, -4.0), (x, 0.0), (x, 9.0))


# ---- integers ----------------------------------------------------------------------------------------------------

INTEGERS = (3, 5, 0, -7, 2**53 + 1, 2**62, 2**63 - 1, -(2**63))


@pytest.mark.parametrize(
    "f",
    [
        lambda n: (n & 6, n | 8, n ^ 5, ~n, 3 & n, 3 | n, 3 ^ n),
        lambda n: (n >> 2, n << 1, n >> 70, 5 << n % 7),
        lambda n: (divmod(n, 4), divmod(n, -4), n.bit_length(), abs(n), -n, +n),
        lambda n: (round(n), math.trunc(n), math.floor(n), math.ceil(n), math.prod((n, 1)), n.real, n.numerator),
        lambda n: (n / 3, 3 / (n | 1), n / (2**53 + 1), n / 0.7),
        lambda n: (n < 2**70, n > -(2**70), n == 2**64, n == 2**53 + 1.0, n <= 2**63 - 1),
        lambda n: (n + 2**63, n * 3, n - 2**40, n * 2**70),
        lambda n: (n**2, n**3, pow(n, 3, 7), n ** (n % 4), n // 7, n % 7),
        lambda n: (float(n + Fraction(1, 2)), float(Fraction(1, 3) * n), n == Fraction(3)),
    ],
)
def test_integers_compute_as_those_of_python(f):
    agrees(lambda x, n: (x, f(n)), *[(x, n) for n in INTEGERS])


def test_operators_on_integers_are_symbolic():
    def f(x, n):
        m = divmod(n, 4)[0] + (n & 3) + (n | 1) + (n ^ 2) + ~n + (n >> 1) + n**2 + abs(-n) + round(n)
        return x * m, dt.zeros(m % 7), n / 3

    assert agrees(f, *[(x, n) for n in (3, 4, 5, 2**20, 77, 2**29)]) == 2


def test_what_is_not_symbolic_pins():
    agrees(lambda x, n: (math.sqrt(n), math.log(n), n**0.5), *[(x, n) for n in (3, 4, 0, -1)])
    agrees(
        lambda x, s: (s.is_integer(), s.hex(), round(s, 1), round(s), int(s)),
        (x, 2.0),
        (x, 2.25),
        (x, float("inf")),
    )
    agrees(lambda x, n: n.no_such_attribute, (x, 3), (x, 4))


def test_integers_beyond_64_bits():
    agrees(lambda x, n: (x, n + 1, n > 5), *[(x, n) for n in (1, 2, 2**63, 3, -(2**70), 2**63 - 1)])
    agrees(lambda x, n: x[:n], *[(x, n) for n in (1, 2, 2**70, -(2**70), -1)])
    agrees(lambda x: x[: 2**70], (x,), (x[:2],))
    agrees(lambda x, n: x * (2 if n * 3 < 2**64 else 5), *[(x, n) for n in (1, 2, 2**63 - 1, 3)])


# ---- numbers in functions of control ops -------------------------------------------------------------------------


def test_numbers_in_functions_of_control_ops():
    def branch(x, k, n):
        return dt.cond(dt.sum(x) > 0, lambda: x * k + n, lambda: x - k / n * x.shape[0])

    def scan(x, k, n):
        return dt.scan(lambda c, y: (c * k + y, y * n), x[0], x)

    def loop(x, k, n):
        return dt.while_loop(lambda c: dt.sum(c) < n * 10, lambda c: c + k, x)

    for f in (branch, scan, loop):
        agrees(f, (x, 0.5, 2), (x, 0.25, 3), (x[:2], 0.25, 3), (-x, 0.25, 3) if f is not loop else (x, 0.5, 2))


def test_a_draw_in_a_function_of_a_control_op_is_an_error_with_a_cure():
    g = dt.compile(lambda x: dt.cond(dt.sum(x) > 0, lambda: x * dt.random.uniform(()), lambda: x))
    with pytest.raises(TypeError, match=r"\[random\] a draw at .*test_compile_numbers.py.*draw before"):
        g(x)


def test_numbers_of_random_functions():
    def f(x, s, n):
        return (
            dt.random.normal((n,), std=s).shape,
            dt.random.integers(n, 100).shape,
            dt.random.uniform((2,), high=s).shape,
        )

    g = dt.compile(f)
    for s, n in ((0.5, 2), (0.25, 3), (1.0, 4)):
        assert g(x, s, n) == ((n,), (), (2,))
