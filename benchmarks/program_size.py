"""Programs of many nodes: python benchmarks/program_size.py [--device sim] [--nodes 10000 40000]

CPU time of this thread in microseconds a node: to record a program, to write it as text, to read that, for the
first run of its sizes (binding, plans, run) and for a later one. The last line has the ratios of the largest
program to the smallest: 1 where the time is linear in the number of nodes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
from dovetail import _core

STEPS = ("record", "write", "read", "first run", "run")


def chain(nodes: int) -> Any:
    """x + size * k for k in 1, -1, 2, -2, ...: a number, a guard and a constant for each node."""
    b = _core.ProgramBuilder()
    x = y = b.input("float32", [None], "x", [3])
    size = b.number("size", False, x, 0, None)
    for k in range(nodes):
        literal = b.number("integer", False, -1, -1, k // 2 + 1 if k % 2 == 0 else -(k // 2) - 1)
        number = b.number("multiply", False, size, literal, None)
        b.guard("not_equal", number, b.number("integer", False, -1, -1, 10 * nodes + k))
        y = b.call("add", [y, (3.0, number)], {}, [])
    return b.finish([y])


def timed(times: list[float], run: Callable[[], Any]) -> Any:
    start = time.thread_time()
    result = run()
    times.append(time.thread_time() - start)
    return result


def measure(nodes: int, device: str) -> list[float]:
    times: list[float] = []
    program = timed(times, lambda: chain(nodes))
    text = timed(times, program.text)
    again = timed(times, lambda: _core.program_from_text(text))
    x = dt.asarray(np.arange(5, dtype=np.float32), device=device)
    for _ in range(2):
        (y,) = timed(times, lambda: [r.numpy() for r in again.run(device, [x])])
        np.testing.assert_array_equal(y, x.numpy())
    return [t / nodes * 1e6 for t in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="sim:0")
    parser.add_argument("--nodes", type=int, nargs="+", default=[10_000, 20_000, 40_000])
    options = parser.parse_args()
    print(f"{'nodes':>8}" + "".join(f"{step:>12}" for step in STEPS) + "  us a node")
    all_times = []
    for nodes in options.nodes:
        all_times.append(measure(nodes, options.device))
        print(f"{nodes:>8}" + "".join(f"{t:>12.2f}" for t in all_times[-1]))
    ratios = [last / first for first, last in zip(all_times[0], all_times[-1], strict=True)]
    print(f"{'ratio':>8}" + "".join(f"{r:>12.2f}" for r in ratios))


if __name__ == "__main__":
    main()
