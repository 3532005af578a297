"""Groups of elementwise nodes and row reductions as one kernel: compiled functions against eager calls.

    python benchmarks/tiles.py [--device cpu] [--threads 1 2] [--rows 64 4096] [--seconds 0.5]

Eager calls, compiled ones with the roundings of eager calls, compiled ones with one rounding a group (they may also
find a composed softmax or layer_norm and run the device's own), and numexpr where it is installed and has the
functions (float32) take turns. Times are the least of all rounds, in microseconds. `ratio`: eager over compiled.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np

try:
    import numexpr
except ImportError:
    numexpr = None

COLUMNS = 1024


def gelu_residual(x: Any, w: Any, b: Any, r: Any, m: Any) -> Any:
    return dt.nn.gelu(x * w + b) + r


def softmax(x: Any, w: Any, b: Any, r: Any, m: Any) -> Any:
    e = dt.exp(x - dt.max(x, axis=-1, keepdims=True))
    return e / dt.sum(e, axis=-1, keepdims=True)


def layer_norm(x: Any, w: Any, b: Any, r: Any, m: Any) -> Any:
    d = x - dt.mean(x, axis=-1, keepdims=True)
    return d * (1.0 / dt.sqrt(dt.mean(d * d, axis=-1, keepdims=True) + 1e-5)) * w + b


def chain_of_12(x: Any, w: Any, b: Any, r: Any, m: Any) -> Any:
    t = dt.maximum(x * w + b, x) - m
    return dt.exp(-abs(t / dt.sqrt(x * x + 1.0))) + x


NUMEXPR = {"chain_of_12": "exp(-abs((where(x * w + b > x, x * w + b, x) - m) / sqrt(x * x + 1))) + x"}


def least(functions: list[Callable[[], object]], seconds: float) -> list[float]:
    """The least time of each, in microseconds; they take turns."""
    times = [float("inf")] * len(functions)
    end = time.perf_counter() + seconds * len(functions)
    while time.perf_counter() < end:
        for i, function in enumerate(functions):
            begin = time.perf_counter()
            function()
            times[i] = min(times[i], time.perf_counter() - begin)
    return [t * 1e6 for t in times]


def measure(device: str, rows: int, dtype: str, seconds: float) -> None:
    random = np.random.default_rng(0)

    def array(*shape: int) -> dt.Array:
        return dt.astype(dt.asarray(random.normal(size=shape), device=device), getattr(dt, dtype))

    args = (array(rows, COLUMNS), array(COLUMNS), array(COLUMNS), array(rows, COLUMNS), array(rows, 1))
    for function in (gelu_residual, softmax, layer_norm, chain_of_12):
        exact, wide = dt.compile(function, numerics="eager"), dt.compile(function)
        functions = [lambda f=f: (f(*args), dt.synchronize(device)) for f in (function, exact, wide)]
        if numexpr and dtype == "float32" and function.__name__ in NUMEXPR:
            names = dict(zip("xwbrm", map(np.asarray, args), strict=True))
            functions.append(lambda text=NUMEXPR[function.__name__], n=names: numexpr.evaluate(text, n))
        for f in functions:
            f(), f()
        eager, *others = least(functions, seconds)
        text = "".join(f"{t:12.1f} {eager / t:6.2f}" for t in others[:2])
        peer = f"{others[2]:12.1f}" if len(others) > 2 else ""
        print(f"{function.__name__:14}{dtype:10}{rows:6}{eager:12.1f}{text}{peer}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rows", type=int, nargs="+", default=[64, 4096])
    parser.add_argument("--seconds", type=float, default=0.5)
    a = parser.parse_args()
    if len(a.threads) > 1:  # the number of threads is fixed when the runtime starts
        for n in a.threads:
            subprocess.run([sys.executable, *sys.argv, "--threads", str(n)], check=True)
        return
    if os.environ.get("DOVETAIL_NUM_THREADS") != str(a.threads[0]):
        os.environ.update(DOVETAIL_NUM_THREADS=str(a.threads[0]), NUMEXPR_NUM_THREADS=str(a.threads[0]))
        os.execv(sys.executable, [sys.executable, *sys.argv])
    print(f"{a.threads[0]} thread{'s' * (a.threads[0] > 1)}, rows of {COLUMNS}; microseconds")
    print(f"{'':14}{'':10}{'rows':>6}{'eager':>12}{'compiled':>12}  ratio{'one round.':>12}  ratio{'numexpr':>12}")
    for dtype in ("float32", "bfloat16"):
        for rows in a.rows:
            measure(a.device, rows, dtype, a.seconds)


if __name__ == "__main__":
    main()
