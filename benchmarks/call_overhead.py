"""Time of one call, against NumPy in the same run: python benchmarks/call_overhead.py [--device cpu]

Nanoseconds per statement, net of an empty one; the best of several repeats, taken alternately. The aims are those
of the first milestone: at most 0.5, 0.25 and 0.25 times NumPy's time for the first three.
"""

from __future__ import annotations

import argparse
import timeit

import dovetail as dt
import numpy as np

STATEMENTS = [
    ("a + b", "x + y", 0.5),
    ("a @ b", "x @ y", 0.25),
    ("sum(a, axis=1, keepdims=True)", "np_sum(x, axis=1, keepdims=True)", 0.25),
    ("a * 2.0", "x * 2.0", None),
    ("c *= 1.0", "z *= 1.0", None),
    ("a[1]", "x[1]", None),
    ("a[1:3, :2]", "x[1:3, :2]", None),
    ("exp(a)", "np_exp(x)", None),
    ("where(m, a, b)", "np_where(n, x, y)", None),
    ("a.shape", "x.shape", None),
]


def nanoseconds(statements: list[str], names: dict, repeats: int = 15, number: int = 50_000) -> list[float]:
    timers = [timeit.Timer(s, "global c, z", globals=names) for s in statements]
    best = [float("inf")] * len(timers)
    for _ in range(repeats):
        for i, timer in enumerate(timers):
            best[i] = min(best[i], timer.timeit(number) / number * 1e9)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    y = np.float32(2) * x + 1
    a, b = dt.asarray(x, device=options.device), dt.asarray(y, device=options.device)
    names = {
        "a": a, "b": b, "c": a + b, "m": a > b, "sum": dt.sum, "exp": dt.exp, "where": dt.where,
        "x": x, "y": y, "z": x + y, "n": x > y, "np_sum": np.sum, "np_exp": np.exp, "np_where": np.where,
    }  # fmt: skip
    print(f"{'statement':32} {'dovetail':>9} {'numpy':>9}  ratio   aim   (ns, 4x4 float32, {options.device})")
    for ours, theirs, aim in STATEMENTS:
        mine, peer, empty = nanoseconds([ours, theirs, "a"], names)
        ratio = (mine - empty) / (peer - empty)
        print(f"{ours:32} {mine - empty:9.1f} {peer - empty:9.1f}  {ratio:5.2f}  {aim if aim else '':>4}")


if __name__ == "__main__":
    main()
