"""Programs that run groups of a device whose compiler takes text, against the same nodes one by one: for the tests
that backends share. Each follows the prelude."""

from __future__ import annotations

from pathlib import Path

PRELUDE = f"""
import os, random, sys, warnings
sys.path.insert(0, {str(Path(__file__).resolve().parent)!r})
import dovetail as dt, numpy as np
from random_groups import EXACT, SIZES, function, operands, run
from trace_events import names

dt.set_default_device(name)

def host(x):
    return np.asarray(dt.astype(x, dt.float64))
def same(got, expected, what=None):
    assert got.dtype == expected.dtype, what
    np.testing.assert_array_equal(host(got), host(expected), err_msg=str(what))
def made(*shape, seed=0, dtype="float32"):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return dt.astype(dt.asarray(values), dtype)
def launches(f, *args):
    with dt.profile() as p:
        f(*args)
    return names(p.events, "kernel")
"""


def prelude(device: str) -> str:
    return f"name = {device!r}{PRELUDE}"


# Random functions have the bits of their nodes: five of them, from number `first` on.
RANDOM = """
for seed in range(first, first + 5):
    rng = random.Random(seed)
    source = function(rng, EXACT, ["max", "min"])
    dtype = rng.choice(["float32", "float64", "float16", "bfloat16"])
    numerics = "wide" if dtype in ("float32", "float64") else "eager"
    args = operands(rng, name, dtype, *rng.choice(SIZES))
    print(source, dtype, args[0].shape)
    for got, expected in zip(run(source, *args, compile=numerics), run(source, *args, xp=dt), strict=True):
        same(got, expected)
"""
# So has each op, of floats, of integers, and between types.
OPS = """
unary = "exp expm1 log log1p exp2 log2 log10 sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
unary += "floor ceil trunc round sign abs negative square reciprocal isnan isinf isfinite logical_not relu sigmoid "
unary += "silu mish selu logsigmoid hardsigmoid hardswish leaky_relu elu softplus gelu erf erfc"
binary = "add subtract multiply divide maximum minimum pow floor_divide remainder hypot logaddexp atan2 copysign "
binary += "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor"
named = lambda name: getattr(dt, name, None) or getattr(dt.nn, name)
calls = [(named(name), 1) for name in unary.split()] + [(named(name), 2) for name in binary.split()]
x = np.linspace(-4, 4, 77).reshape(7, 11)
y = np.roll(x, 5)
y[y == 0] = 1
for dtype in ("float32", "float64"):
    args = [dt.asarray(a.astype(dtype)) for a in (x, y)]
    for first in range(0, len(calls), 23):
        some = calls[first : first + 23]
        f = dt.compile(lambda *args: [op(*args[:count]) for op, count in some])
        # One group, without its first node, which saves nothing there, and with nodes that abs and negative are.
        assert len(launches(f, *args)) <= 4
        for (op, _), got, expected in zip(some, f(*args), f.__wrapped__(*args), strict=True):
            same(got, expected, op)
"""
INTEGERS = """
rng = np.random.default_rng(5)
for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    values = rng.integers(least, most, (2, 7, 40), dtype=dtype, endpoint=True)
    values[0, 0, :4], values[1, 0, :4] = [least, least, 7, most], [most, 0, 0, 3]
    if least < 0:
        values[1, 0, 0] = -1
    x, y = map(dt.asarray, values)

    @dt.compile
    def f(x, y):
        shifts = dt.bitwise_and(y, 7)
        return [
            x + y, x - y, x * y, x // y, x % y, dt.pow(x, shifts), dt.maximum(x, y), dt.sign(x),
            dt.bitwise_left_shift(x, shifts), dt.bitwise_right_shift(x, shifts), dt.abs(x),
            dt.negative(x), x < y, dt.sum(x + y, axis=-1),
            dt.prod(x * y, axis=-1), dt.max(x - y, axis=-1), dt.min(x - y, axis=-1), dt.any(x > y, axis=-1),
        ]
    for i, (got, expected) in enumerate(zip(f(x, y), f.__wrapped__(x, y), strict=True)):
        same(got, expected, (dtype, i))
"""
CONVERSIONS = """
types = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
types += ["float16", "bfloat16", "float32", "float64"]
numbers = np.float64([0, -0.0, 1, -1.5, 2.7, 255.5, -129, 1e5, -7e4, 3e9, 1e-6, 65519, 65520, np.inf, np.nan])
for source in types:
    x = dt.astype(dt.asarray(numbers), source)
    f = dt.compile(lambda x: [dt.astype(x, t) for t in types if t != source])
    for got, expected in zip(f(x), f.__wrapped__(x), strict=True):
        same(got, expected, (source, got.dtype))
"""
# Compositions that are one launch, of halves too: at most as inexact as their nodes one by one.
SUMS = """
def share(xp, x, w):  # a little different from what the runtime knows as softmax and layer_norm
    e = xp.exp(x * 0.5 - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True) * w
def scaled(xp, x, w):
    d = x - xp.mean(x, axis=-1, keepdims=True)
    return d / (xp.sqrt(xp.mean(d * d, axis=-1, keepdims=True)) + 0.1) * w
for f in (share, scaled):
    for dtype in ("float32", "float16", "bfloat16"):
        compiled = dt.compile(lambda *args: f(dt, *args))
        for rows, columns in ((64, 257), (3, 1000), (5, 33), (1, 33), (4, 1), (0, 7)):
            x, w = dt.permute_dims(made(columns, rows, dtype=dtype), (1, 0)), made(columns, seed=1, dtype=dtype)
            if rows:
                assert len(launches(compiled, x, w)) == 1 < len(launches(f, dt, x, w))
            got, eager, expected = compiled(x, w), f(dt, x, w), f(np, host(x), host(w))
            assert got.shape == expected.shape
            if rows * columns > 1000:  # chance decides about few elements
                errors = [np.abs(host(y) - expected).mean() for y in (got, eager)]
                assert errors[0] <= 1.1 * errors[1], (f, dtype, errors)
"""
# Rows without elements, whose results have some: they are written nonetheless.
EMPTY_ROWS = """
def function(w, x):
    y = dt.sin(x)
    return dt.tanh(w * 2.0), y, dt.where(dt.astype(y, dt.bool), w * 0.5, 0.0), dt.sum(y, axis=1)
f = dt.compile(function, numerics="eager")
for rows, columns in ((5, 3), (5, 0), (0, 3), (5, 0), (2, 0)):
    w, x = made(rows, 1), made(rows, columns, seed=1)
    for got, expected in zip(f(w, x), function(w, x), strict=True):
        same(got, expected, (rows, columns))
"""
CAPTURED = """
def function(x, w, k):
    for _ in range(3):
        x = dt.exp(dt.tanh(x @ w) * k) - k
    return x
f = dt.compile(function)
x, w = made(5, 8), made(8, 8, seed=1)
for k in (0.5, 0.25):
    for _ in range(8):
        same(f(x, w, k), function(x, w, k))
    assert "captured: 6 launches in one replay" in f.explain(x, w, k), f.explain(x, w, k)
    x[0] = 3.0  # another value in the same place
    same(f(x, w, k), function(x, w, k))
"""
# One text serves functions, sizes and numbers; texts(), of the backend's tests, says how many were compiled.
ONE_TEXT = """
f = dt.compile(lambda x, k: dt.exp(x * k) + 2.5)
g = dt.compile(lambda x, k: dt.exp(x * k) + 7.5)
for shape in ((40,), (40,), (6, 7), (3, 4, 5), (1,), (0,)):
    for k in (0.5, -1.0, float("inf")):
        for h in (f, g):
            same(h(made(*shape), k), h.__wrapped__(made(*shape), k))
assert texts() == 1, texts()
x = dt.permute_dims(made(6, 7), (1, 0))[::2]
same(f(x, 0.5), f.__wrapped__(x, 0.5))
assert texts() == 2  # of two axes, that is
"""
# The text for operands in other orders is refused, once; that of the usual order runs.
REFUSED_FORM = """
f = dt.compile(lambda x, y: dt.exp(x) + y)
x, y = made(6, 7), made(6, 7, seed=1)
other = dt.permute_dims(made(7, 6), (1, 0))
same(f(x, y), f.__wrapped__(x, y))
for _ in range(3):
    same(f(other, y), f.__wrapped__(other, y))
assert launches(f, other, y) == ["exp", "add"]
assert launches(f, x, y) == ["exp+add"]
assert texts() == 2, texts()
"""
