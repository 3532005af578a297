"""Random functions whose nodes are groups, for the tests of compilers that print them as text."""

from __future__ import annotations

import dovetail as dt
import numpy as np

EXACT = (
    "{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "xp.maximum({a}, {b})", "xp.minimum({a}, {b})",
    "xp.where({a} < {b}, {b}, {c})", "xp.floor({a})", "xp.exp({a})", "xp.sin({a})", "xp.sqrt({a} * {a})", "{a} * k",
)  # fmt: skip
SMOOTH = (
    "{a} + {b}", "{a} - {b}", "xp.sin({a} * {b})", "{a} / (1.5 + xp.abs({b}))", "xp.maximum({a}, {b})",
    "xp.where({a} < {b}, {b}, {a})", "xp.tanh({a})", "xp.exp(-xp.abs({a}))", "xp.sqrt(1 + {a} * {a})", "{a} * k",
)  # fmt: skip


def function(rng, forms, reductions):
    """The source of f(xp, x, y, w, r, k): values of all elements, and of rows, which meet both."""
    lines, whole, rows = ["def f(xp, x, y, w, r, k):"], ["x", "y", "w"], ["r"]
    for i in range(rng.randint(3, 14)):
        pick = rng.random()
        if pick < 0.2:
            value, to = f"xp.{rng.choice(reductions)}({rng.choice(whole)} + x, axis=-1, keepdims=True)", rows
        else:
            of_rows = pick < 0.3
            pool, to = (rows, rows) if of_rows else (whole + rows, whole)
            a, b, c = (rng.choice(pool) for _ in range(3))
            value = rng.choice(forms).format(a=a if of_rows else rng.choice(whole), b=b, c=c)
        lines.append(f"    v{i} = {value}")
        to.append(f"v{i}")
    results = ", ".join({rng.choice(whole + rows) for _ in range(2)} | {whole[-1], f"v{i}"})
    return "\n".join([*lines, f"    return ({results}, x)"])


def run(source, *args, compile=None, donate=False, xp=np):
    """The results of a function's source on the arguments: by calls of xp, or compiled with these numerics, perhaps
    with copies of x, w and r that the call may take."""
    scope = {}
    exec(source, scope)
    f = scope["f"]
    if compile is None:
        return f(xp, *args)[:-1]
    compiled = dt.compile(
        lambda x, y, w, r, k: f(dt, x, y, w, r, k)[:-1], numerics=compile, donate=("x", "w", "r") if donate else ()
    )
    if donate:
        x, y, w, r, k = args
        args = (*(dt.asarray(a, copy=True) if a is not y else y for a in (x, y, w, r)), k)
    return compiled(*args)


def operands(rng, device, dtype, rows, columns):
    seed = rng.randrange(2**32)
    arrays = [np.random.default_rng(seed + i).standard_normal(s) for i, s in
              enumerate([(rows, columns), (columns, rows), (columns,), (rows, 1)])]  # fmt: skip
    x, y, w, r = (dt.astype(dt.asarray(a.astype(np.float32), device=device), dtype) for a in arrays)
    return x, dt.permute_dims(y, (1, 0)), w, r, rng.choice([0.5, -1.25, 3.0])


SIZES = [(1, 1), (2, 1), (3, 2), (5, 7), (4, 33), (2, 64), (3, 300), (2, 517)]
