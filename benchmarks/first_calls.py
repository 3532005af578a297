"""First calls at a new shape and calls at many shapes, against the repeated call in the same run.

    python benchmarks/first_calls.py [--device cpu]

An op that runs as its decomposition binds it to each new shape. The aims: the first call at a shape costs at most
twice the repeated call, and a call at one of 1,100 shapes in turn at most twice what it costs at one of 10. Medians
over shapes, in microseconds, of the least time of several rounds for repeated calls. On a device with queues the
times also have the wake of its thread: compare them on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable

import dovetail as dt

AIM = 2.0
FEW, MANY = 10, 1_100
Call = Callable[[], dt.Array]


def shapes(most: int = 128) -> list[tuple[int, ...]]:
    """MANY shapes with four axes and nearly as many elements, the kernels' work being the same for all."""
    factors = range(1, most + 1)
    found = []
    for a, b, c in itertools.product(factors, repeat=3):
        if a * b * c > most:
            continue
        d = most // (a * b * c)
        if a * b * c * d > most * 3 // 4:
            found.append((a, b, c, d))
    return found[:: len(found) // MANY][:MANY]


def calls(device: dt.Device) -> dict[str, list[Call]]:
    """By op a call for each shape; no two have the same."""

    def ones(*shape: int) -> dt.Array:
        return dt.ones(shape, dtype=dt.float32, device=device)

    names = "softplus", "hardswish", "var", "concat", "rotary_embedding"
    made: dict[str, list[Call]] = {name: [] for name in names}
    for shape in shapes():
        x, pairs, angles = ones(*shape), ones(*shape, 2), ones(shape[-1], 1)
        made["softplus"].append(lambda x=x: dt.nn.softplus(x))
        made["hardswish"].append(lambda x=x: dt.nn.hardswish(x))
        made["var"].append(lambda x=x: dt.var(x, axis=1))
        made["concat"].append(lambda x=x: dt.concat([x, x], axis=1))
        made["rotary_embedding"].append(lambda x=pairs, a=angles: dt.nn.rotary_embedding(x, a, a))
    return made


def seconds(device: dt.Device, *calls: Call) -> float:
    """Of one of these calls, on a device that is awake and has little else to do."""
    device.synchronize()
    dt.ones((), device=device)
    begin = time.perf_counter()
    for call in calls:
        call()
    return (time.perf_counter() - begin) / len(calls)


def first_and_repeated(device: dt.Device, calls: list[Call]) -> tuple[float, float]:
    calls[0]()  # finds the decomposition and the plans
    first, repeated = [], []
    for call in calls[1:]:
        first.append(seconds(device, call))
        repeated.append(min(seconds(device, call) for _ in range(7)))
    return statistics.median(first) * 1e6, statistics.median(repeated) * 1e6


def in_turn(device: dt.Device, calls: list[Call], rounds: int) -> float:
    """The time of one of these calls, each called once a round."""
    blocks = [calls[i : i + FEW] for i in range(0, len(calls), FEW)]
    least = [float("inf")] * len(blocks)
    for _ in range(rounds):
        for i, block in enumerate(blocks):
            least[i] = min(least[i], seconds(device, *block))
    return statistics.median(least) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    device = dt.device(options.device)
    by_op = calls(device)
    head = ["first", "again", "ratio", f"{MANY} shapes", f"{FEW} shapes", "ratio"]
    print(f"{'us, ' + options.device:18} " + " ".join(f"{text:>11}" for text in head))
    for name, each in by_op.items():
        first, repeated = first_and_repeated(device, each)
        few, many = in_turn(device, each[:: MANY // FEW], 500), in_turn(device, each, 10)
        figures = [first, repeated, first / repeated, many, few, many / few]
        print(f"{name:18} " + " ".join(f"{figure:11.2f}" for figure in figures))
    print(f"aim: both ratios at most {AIM}")


if __name__ == "__main__":
    main()
