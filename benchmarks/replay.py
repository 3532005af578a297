"""A program's time per node, against the same calls made eagerly: python benchmarks/replay.py [--device cpu]

Nanoseconds per node of chains of one op on small arrays, from the difference between a long program and a short
one; the best of several repeats, taken alternately. They have the kernel's own call in them: the aim, at most
150 ns over that call, is met where the whole node takes no more. Eager calls are those of a Python loop.
"""

from __future__ import annotations

import argparse
import timeit
from collections.abc import Callable

import dovetail as dt

SHORT, LONG = 10, 210  # nodes
AIM = 150
OPS: dict[str, Callable[[dt.Array, dt.Array], dt.Array]] = {
    "x + y": lambda x, y: x + y,
    "abs(x)": lambda x, y: dt.abs(x),
    "x @ y": lambda x, y: x @ y,
    "x.T": lambda x, y: x.T,
    "hardswish(x)": lambda x, y: dt.nn.hardswish(x),
}


def chain(step: Callable[[dt.Array, dt.Array], dt.Array], nodes: int) -> Callable[[dt.Array, dt.Array], dt.Array]:
    def run(x: dt.Array, y: dt.Array) -> dt.Array:
        for _ in range(nodes):
            x = step(x, y)
        return x

    return run


def nanoseconds(calls: list[Callable[[], object]], repeats: int = 25, number: int = 100) -> list[float]:
    best = [float("inf")] * len(calls)
    for _ in range(repeats):
        for i, call in enumerate(calls):
            best[i] = min(best[i], timeit.timeit(call, number=number) / number * 1e9)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    x = dt.eye(4, dtype=dt.float32, device=options.device)
    y = dt.eye(4, dtype=dt.float32, device=options.device)
    print(f"{'ns per node, 4x4 float32, ' + options.device:32} {'program':>8} {'eager':>8}  ratio")
    for name, step in OPS.items():
        short, long = (dt.export(chain(step, n), x, y) for n in (SHORT, LONG))
        loops = [chain(step, n) for n in (SHORT, LONG)]
        timed = [lambda f=f: f(x, y).device.synchronize() for f in (short, long, *loops)]
        times = nanoseconds(timed)
        program, eager = (times[1] - times[0]) / (LONG - SHORT), (times[3] - times[2]) / (LONG - SHORT)
        print(f"{name:32} {program:8.1f} {eager:8.1f}  {program / eager:5.2f}")
    print(f"aim: at most {AIM} ns over the kernel's own call")


if __name__ == "__main__":
    main()
