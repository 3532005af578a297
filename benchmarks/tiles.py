"""Groups of elementwise nodes and row reductions as one kernel: compiled functions against eager calls and peers.

    python benchmarks/tiles.py [--device cpu] [--threads 1 2] [--tiers 1 2] [--rows 64 4096] [--seconds 0.5]

Eager calls, compiled ones with the roundings of eager calls, compiled ones with one rounding a group (they may also
find a composed softmax or layer_norm and run the device's own), and what is installed of torch, torch.compile,
jax.jit and numexpr (which has not all functions, and float32 alone) take turns. Times are the least of all rounds,
in microseconds; behind each is eager Dovetail's over it, above 1 where it is faster. `first`: the milliseconds of
the first call, which traces and compiles; torch keeps compiled code in a cache on disk, so clear that before
comparing.

Tier 1 is the device's own loops on tiles; tier 2, where a toolchain is installed (`pip install dovetail-cpu[jit]`),
machine code, which is waited for. Each tier is a process of its own: compare ratios to eager calls.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import product
from types import SimpleNamespace
from typing import Any

import dovetail as dt
import numpy as np

COLUMNS = 1024
Function = Callable[..., Any]


def gelu_residual(xp: Any, x: Any, w: Any, b: Any, r: Any, m: Any) -> Any:
    return xp.gelu(x * w + b) + r


def softmax(xp: Any, x: Any, w: Any, b: Any, r: Any, m: Any) -> Any:
    e = xp.exp(x - xp.max(x))
    return e / xp.sum(e)


def layer_norm(xp: Any, x: Any, w: Any, b: Any, r: Any, m: Any) -> Any:
    d = x - xp.mean(x)
    return d * (1.0 / xp.sqrt(xp.mean(d * d) + 1e-5)) * w + b


def chain_of_12(xp: Any, x: Any, w: Any, b: Any, r: Any, m: Any) -> Any:
    t = xp.maximum(x * w + b, x) - m
    return xp.exp(-abs(t / xp.sqrt(x * x + 1.0))) + x


FUNCTIONS = (gelu_residual, softmax, layer_norm, chain_of_12)
NUMEXPR = {chain_of_12: "exp(-abs((where(x * w + b > x, x * w + b, x) - m) / sqrt(x * x + 1))) + x"}


def array_api(xp: Any, gelu: Function) -> SimpleNamespace:
    """The functions in a namespace of arrays; reductions are along rows and keep the axis."""
    rows = {name: partial(getattr(xp, name), axis=-1, keepdims=True) for name in ("max", "sum", "mean")}
    return SimpleNamespace(exp=xp.exp, sqrt=xp.sqrt, maximum=xp.maximum, gelu=gelu, **rows)


# ---- who computes, and how: a function without arguments that waits for its result ------------------------------


def ours(function: Function, host: list[np.ndarray], dtype: str, device: str) -> Iterator[tuple[str, Function]]:
    args = [dt.astype(dt.asarray(x, device=device), getattr(dt, dtype)) for x in host]
    eager = partial(function, array_api(dt, dt.nn.gelu))
    exact, wide = dt.compile(eager, numerics="eager"), dt.compile(eager)
    for name, f in (("eager", eager), ("exact", exact), ("compiled", wide)):
        yield name, lambda f=f: (f(*args), dt.synchronize(device))


def torchs(function: Function, host: list[np.ndarray], dtype: str, threads: int) -> Iterator[tuple[str, Function]]:
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    args = [torch.from_numpy(x).to(getattr(torch, dtype)) for x in host]
    namespace = array_api(torch, torch.nn.functional.gelu)
    namespace.max = partial(torch.amax, dim=-1, keepdim=True)
    eager = partial(function, namespace)
    torch._dynamo.reset()
    for name, f in (("torch", eager), ("t.compile", torch.compile(lambda *args: eager(*args)))):
        yield name, lambda f=f: f(*args)


def jaxs(function: Function, host: list[np.ndarray], dtype: str) -> Iterator[tuple[str, Function]]:
    import jax
    import jax.numpy as jnp

    args = [jnp.asarray(x, getattr(jnp, dtype)) for x in host]
    f = jax.jit(partial(function, array_api(jnp, partial(jax.nn.gelu, approximate=False))))
    yield "jax.jit", lambda: f(*args).block_until_ready()


def numexprs(function: Function, host: list[np.ndarray]) -> Iterator[tuple[str, Function]]:
    import numexpr

    names = dict(zip("xwbrm", host, strict=True))
    yield "numexpr", lambda: numexpr.evaluate(NUMEXPR[function], names)


def contenders(function: Function, rows: int, dtype: str, device: str, threads: int) -> dict[str, Function]:
    random = np.random.default_rng(0)
    shapes = (rows, COLUMNS), (COLUMNS,), (COLUMNS,), (rows, COLUMNS), (rows, 1)
    host = [random.normal(size=shape).astype(np.float32) for shape in shapes]
    found = dict(ours(function, host, dtype, device))
    if find_spec("torch"):
        found |= torchs(function, host, dtype, threads)
    if find_spec("jax"):
        found |= jaxs(function, host, dtype)
    if find_spec("numexpr") and dtype == "float32" and function in NUMEXPR:
        found |= numexprs(function, host)
    return found


# ---- the table --------------------------------------------------------------------------------------------------


def first(f: Function) -> float:
    """Milliseconds of the first call."""
    begin = time.perf_counter()
    f()
    return 1e3 * (time.perf_counter() - begin)


def least(functions: list[Function], seconds: float) -> list[float]:
    """The least time of each, in microseconds; they take turns."""
    times = [float("inf")] * len(functions)
    end = time.perf_counter() + seconds * len(functions)
    while time.perf_counter() < end:
        for i, function in enumerate(functions):
            begin = time.perf_counter()
            function()
            times[i] = min(times[i], time.perf_counter() - begin)
    return [t * 1e6 for t in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--tiers", type=int, nargs="+", default=[1, 2], choices=[1, 2])
    parser.add_argument("--rows", type=int, nargs="+", default=[64, 4096])
    parser.add_argument("--seconds", type=float, default=0.5)
    a = parser.parse_args()
    if len(a.threads) * len(a.tiers) > 1:  # both are fixed when the runtime starts
        for n, tier in product(a.threads, a.tiers):
            subprocess.run([sys.executable, *sys.argv, "--threads", str(n), "--tiers", str(tier)], check=True)
        return
    n, tier = a.threads[0], a.tiers[0]
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1" if n == 1 else ""
    settings = {"DOVETAIL_NUM_THREADS": str(n), "NUMEXPR_NUM_THREADS": str(n), "XLA_FLAGS": flags}
    settings |= {"DOVETAIL_COMPILE_WAIT": "1"} if tier == 2 else {"DOVETAIL_TOOLCHAINS": "llvm=/none"}
    if any(os.environ.get(name) != value for name, value in settings.items()):
        os.environ.update(settings)
        os.execv(sys.executable, [sys.executable, *sys.argv])
    print(f"tier {tier}, {n} thread{'s' * (n > 1)}, rows of {COLUMNS}; microseconds, eager Dovetail's over them")
    for dtype in ("float32", "bfloat16"):
        for rows in a.rows:
            for function in FUNCTIONS:
                found = contenders(function, rows, dtype, a.device, n)
                firsts = [first(f) for f in found.values()]
                times = least(list(found.values()), a.seconds)
                print(f"{function.__name__} {dtype} {rows}")
                print("    " + "".join(f"{name:>18}" for name in found))
                print("    " + "".join(f"{t:11.1f} {times[0] / t:6.2f}" for t in times))
                print("    " + "".join(f"{ms:15.1f} ms" for ms in firsts) + "  first", flush=True)
    if tier == 2:
        print(str(dt.compile_report()).splitlines()[-1])


if __name__ == "__main__":
    main()
