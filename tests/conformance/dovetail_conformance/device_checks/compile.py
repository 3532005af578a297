"""L3: what compiled functions do to the caller's arrays, whatever ops they call."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points

import numpy as np

from . import Declined, Failed, check, expect, raises
from .threads import together

SIZES = (5, 1, 64, 0, 17, 5)


def numbers(t, rng, *shape):
    host = rng.integers(-9, 9, shape).astype(t.float)
    return host, t.asarray(host)


def equal(t, x, host, what):
    got = t.numpy(x)
    expect(got.shape == host.shape, f"{what}: got the shape {got.shape}, expected {host.shape}")
    expect(np.array_equal(got, host), f"{what}: got {got.ravel()[:8]}, expected {host.ravel()[:8]}")


@check(level="L3")
def sizes(t, rng):
    """One trace serves every size, as long as Python does not look at it."""
    add, total = t.function("add"), t.function("sum")
    runs = []

    def function(x, y):
        runs.append(1)
        return add(x, y), total(add(x, y), axis=0)

    f = t.api.compile(function)
    for n in SIZES:
        (a, x), (b, y) = numbers(t, rng, n, 3), numbers(t, rng, n, 3)
        both, sums = f(x, y)
        equal(t, both, a + b, f"x + y of size {n}")
        equal(t, sums, (a + b).sum(0), f"sum of x + y of size {n}")
    expect(len(runs) == 1, f"the function was traced {len(runs)} times, expected once for all sizes")


@check(level="L3")
def guards(t, rng):
    """A size, rank, number or string that Python looked at is looked at again in every call."""
    add = t.function("add")

    def function(x, k, how):
        y = add(x, x) if x.shape[0] > 4 else x
        return add(y, k) if how == "add" else y

    f = t.api.compile(function)
    for n, k, how in [(5, 1, "add"), (3, 1, "add"), (5, 2, "add"), (5, 1, "not"), (4, 3, "add"), (9, 2, "not")]:
        host, x = numbers(t, rng, n)
        expected = host + host if n > 4 else host
        equal(t, f(x, k, how), expected + k if how == "add" else expected, f"size {n}, {k}, {how!r}")
    ranks = t.api.compile(lambda x: add(x, x.ndim))
    for shape in ((2,), (2, 3), (), (1, 1, 2), (2,)):
        host, x = numbers(t, rng, *shape)
        equal(t, ranks(x), host + len(shape), f"an array of {len(shape)} axes")
    dtypes = t.api.compile(lambda x: t.function("copy")(x) if x.dtype == host.dtype.name else None)
    host, x = numbers(t, rng, 3)
    equal(t, dtypes(x), host, "an array of the first dtype")
    other = t.api.asarray(np.zeros(3, np.int64), device=t.device)
    expect(dtypes(other) is None, "an array of another dtype ran the program of the first")


@check(level="L3")
def floats(t, rng):
    """A float is another number in each call of one program."""
    add = t.function("add")
    f = t.api.compile(lambda x, k: add(x, k))
    host, x = numbers(t, rng, 6)
    for k in (0.5, -2.0, 1024.0, 0.0, 0.5):
        equal(t, f(x, k), host + t.float(k), f"x + {k}")


@check(level="L3")
def captured(t, rng):
    """Writes to a captured array, and another array in its place, are seen."""
    add = t.function("add")
    host, w = numbers(t, rng, 4)
    held = {"w": w}
    f = t.api.compile(lambda x: add(x, held["w"]))
    other, x = numbers(t, rng, 4)
    equal(t, f(x), other + host, "the first call")
    held["w"][0] = 7.0
    host[0] = 7
    equal(t, f(x), other + host, "after a write to the captured array")
    host, held["w"] = numbers(t, rng, 4)
    equal(t, f(x), other + host, "with another array in its place")


@check(level="L3")
def watched(t, rng):
    """Plain values, lengths and functions that the code names are looked at in every call."""
    add = t.function("add")
    held = {"k": 1.0, "more": [], "on": True, "act": t.function("copy")}

    def function(x):
        x = held["act"](add(x, held["k"]) if held["on"] else x)
        for y in held["more"]:
            x = add(x, y)
        return x

    f = t.api.compile(function)
    host, x = numbers(t, rng, 4)
    more, y = numbers(t, rng, 4)
    equal(t, f(x), host + t.float(1), "the first call")
    held["k"] = 2.0
    equal(t, f(x), host + t.float(2), "with another number")
    held["more"].append(y)
    equal(t, f(x), host + t.float(2) + more, "with a longer list")
    held["on"] = False
    equal(t, f(x), host + more, "with another bool")
    held["act"] = lambda x: add(x, x)
    equal(t, f(x), 2 * host + more, "with another function")
    held["more"].clear()
    equal(t, f(x), 2 * host, "with an empty list")


def in_place(x, y):
    x += 1.0
    return x + y


@check(level="L3")
def written(t, rng):
    """Writes to arguments reach the caller's arrays, and nobody else's."""

    def function(x, y):
        x[1:] = y
        x += 1.0
        return x

    f = t.api.compile(function)
    for n in (4, 7, 4):
        host, x = numbers(t, rng, n)
        y_host, y = numbers(t, rng, n - 1)
        kept = x[:]
        expect(f(x, y) is x, "the array that the function returns is not the caller's")
        equal(t, x, np.concatenate([host[:1], y_host]) + t.float(1), "the written argument")
        equal(t, kept, host, "an array that shared its elements")
        equal(t, y, y_host, "the argument that is only read")
    twice = t.api.compile(in_place)
    (host, x), (y_host, y) = numbers(t, rng, 3), numbers(t, rng, 3)
    equal(t, twice(x, y), host + 1 + y_host, "x += 1; x + y")
    equal(t, twice(x, x), 2 * (host + 2), "x += 1; x + x, of one array twice")


@check(level="L3")
def donated(t, rng):
    """The value of a donated array ends with the call; results never lie in memory that somebody still has."""
    add = t.function("add")
    f = t.api.compile(lambda x, y: add(add(x, y), 1.0), donate=("x",))
    host, x = numbers(t, rng, 1000)
    shared = x[:]
    y_host, y = numbers(t, rng, 1000)
    expected = host
    for _ in range(3):
        before, x = x, f(x, y)
        expected = expected + y_host + t.float(1)
        equal(t, x, expected, "the result")
        raises(RuntimeError, lambda before=before: add(before, y), "the use of a donated array")
    equal(t, shared, host, "an array that shared the donated one's elements")
    equal(t, y, y_host, "the argument that is not donated")


@check(level="L3")
def autocast(t, rng):
    """A program is right for the dtype that dovetail.autocast() had when it was traced, and for no other."""
    matmul, total = t.function("matmul"), t.function("sum")

    def function(x, y):
        z = matmul(x, y)
        return z, total(z, axis=0)

    f = t.api.compile(function)
    (_, x), (_, y) = numbers(t, rng, 4, 5), numbers(t, rng, 5, 3)
    for dtype in (None, "bfloat16", "float16", None, "float16", "bfloat16"):
        scope = t.api.autocast(dtype, enabled=dtype is not None)
        with scope:
            try:
                expected = function(x, y)
            except NotImplementedError:  # the device has no such dtype: a compiled call says so, too
                raises(NotImplementedError, lambda: f(x, y), f"autocast to {dtype}")
                continue
            got = f(x, y)
        for part, eager in zip(got, expected, strict=True):
            expect(part.dtype == eager.dtype, f"autocast to {dtype}: got {part.dtype}, expected {eager.dtype}")
            equal(t, t.api.astype(part, t.float), t.numpy(t.api.astype(eager, t.float)), f"autocast to {dtype}")


@check(level="L3")
def groups(t, rng):
    """Chains of elementwise ops and sums along rows, which a device's compiler may make one launch of."""
    add, total = t.function("add"), t.function("sum")

    def function(x, y, row, k):
        z = add(add(x, y), row)
        sums = total(z, axis=-1, keepdims=True)
        return add(z, k), add(add(z, sums), y), add(sums, sums)

    f = t.api.compile(function)
    for n in (6, *SIZES, 300):
        for m in (33, 1, n):
            (a, x), (b, y), (c, row) = numbers(t, rng, m, n), numbers(t, rng, n, m), numbers(t, rng, n)
            k = float(rng.integers(-9, 9))
            got = f(x, t.api.permute_dims(y, (1, 0)), row, k)
            z = a + b.T + c
            sums = z.sum(-1, keepdims=True)
            for part, host in zip(got, (z + t.float(k), z + sums + b.T, 2 * sums), strict=True):
                equal(t, part, host, f"a chain of adds and sums of {m} rows of {n}")


@check(level="L3")
def groups_in_place(t, rng):
    """Results of a group may lie where operands end that it has read, and only there."""
    add, total = t.function("add"), t.function("sum")

    def function(x, y):
        more = add(x, y)
        return more, add(x, more), add(add(x, total(x, axis=-1, keepdims=True)), y)

    f = t.api.compile(function, donate=("x", "y"))
    for n in (6, *SIZES, 3000):
        (a, x), (b, y) = numbers(t, rng, 3, n), numbers(t, rng, 3, n)
        for part, host in zip(f(x, y), (a + b, a + a + b, a + a.sum(-1, keepdims=True) + b), strict=True):
            equal(t, part, host, f"of donated arrays of 3 rows of {n}")

    def with_row(x, row):
        more = add(add(x, x), x)
        return more, add(more, add(row, row))

    f = t.api.compile(with_row)
    for m in (3, 1):  # of one row `more` has the shape of row + row, which is read after `more` is written
        for n in (6, *SIZES, 3000):
            (a, x), (b, row) = numbers(t, rng, m, n), numbers(t, rng, 1, n)
            for part, host in zip(f(x, row), (3 * a, 3 * a + 2 * b), strict=True):
                equal(t, part, host, f"of {m} rows of {n} and one of them")


@check(level="L3")
def capture(t, rng):
    """Calls that repeat, which the runtime captures where the device can: arrays, elements and numbers change."""
    with t.nothing_kept():  # while calls are checked nothing is captured
        repeat(t, rng)


def repeat(t, rng):
    matmul, add = t.function("matmul"), t.function("add")
    held = {}

    def function(x, k):
        for _ in range(6):
            x = matmul(x, held["w"])
        return add(x, k), x

    def order():
        host = np.eye(4, dtype=t.float)[rng.permutation(4)]  # whose products are exact in any dtype
        return host, t.asarray(host)

    f = t.api.compile(function)
    kept, k = [], 1.0
    host, x = numbers(t, rng, 3, 4)
    w_host, held["w"] = order()
    for change in ("nothing", "elements", "weight", "input", "number", "each input", "size", "nothing"):
        for i in range(6):
            if (i == 0 and change == "input") or change == "each input":
                host, x = numbers(t, rng, 3, 4)
            if i == 0 and change == "size":
                host, x = numbers(t, rng, 5, 4)
            if i == 0 and change == "weight":
                w_host, held["w"] = order()
            if change == "elements":
                w_host, new = order()
                held["w"][:] = new
            if i == 0 and change == "number":
                k = 2.0
            chain = host @ np.linalg.matrix_power(w_host, 6)
            kept.append((f"call {i} with {change} changed", (x, *f(x, k)), (host, chain + t.float(k), chain)))
    for what, results, hosts in kept:
        for got, expected in zip(results, hosts, strict=True):
            equal(t, got, expected, what)


@check(level="L3")
def threads(t, rng):
    """Calls of one function from many threads, which trace it, bind it and run it at the same time."""
    add, total = t.function("add"), t.function("sum")
    f = t.api.compile(lambda x, k: total(add(x, k), axis=0))
    arrays = {n: numbers(t, rng, n, 2) for n in range(1, 12)}

    def work(i):
        for round in range(20):
            n, k = (i + round) % 11 + 1, float(round % 3)
            host, x = arrays[n]
            equal(t, f(x, k), (host + t.float(k)).sum(0), f"size {n} in thread {i}")

    together(work)


_WITHOUT_TOOLS = """
import sys
import dovetail as dt, numpy as np
name, dtype = sys.argv[1:]
try:
    dt.asarray([1.0], device=name)
except (ValueError, RuntimeError):
    sys.exit(77)
f = dt.compile(lambda x, y: (x + y) * x + y)
for n in (5, 3000):
    host = (np.arange(n) % 7).astype(dtype)
    x = dt.asarray(host, device=name)
    for _ in range(3):
        assert np.array_equal(f(x, x).numpy(), 2 * host * host + host), f"a call of {n} elements is wrong"
"""


@check(level="L3")
def lost_tools(t, rng):
    """A compiler whose toolchains do not answer goes on without them. In a process of its own."""
    names = {"llvm"} | {point.name for point in entry_points(group="dovetail.toolchains")}
    run = subprocess.run(
        [sys.executable, "-c", _WITHOUT_TOOLS, t.name, np.dtype(t.float).name],
        env=os.environ
        | {"DOVETAIL_COMPILE_WAIT": "1", "DOVETAIL_TOOLCHAINS": ":".join(f"{name}=/bin/false" for name in names)},
        capture_output=True,
        text=True,
        timeout=50,
    )
    if run.returncode == 77:
        raise Declined("a second process cannot open the device")
    if run.returncode:
        raise Failed(f"without toolchains a process ended with {run.returncode}: {run.stderr.strip()[-300:]}")
