"""First calls at a new shape and calls at many shapes, against the repeated call in the same run.

    python benchmarks/first_calls.py [--device cpu]

An op that runs as its decomposition binds it to each new shape. The aims: the first call at a shape costs at most
twice the repeated call, and a call at one of 1,100 shapes in turn at most twice what it costs at one of 10. Medians
over shapes, in microseconds, of the least time of several rounds for repeated calls. Another op reads the operand
just before its first call: where it has left the processor's caches, the first call of a mere kernel is twice as
slow, too. `add` is such a kernel, which binds nothing, for comparison. On a device with queues the times also have
the wake of its thread: compare them on a machine that does nothing else.
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
Op = Callable[[dt.Array], dt.Array]


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


def ops(device: dt.Device) -> dict[str, Op]:
    """By name; each takes one operand."""
    return {
        "add": lambda x: x + x,
        "softplus": dt.nn.softplus,
        "hardswish": dt.nn.hardswish,
        "var": lambda x: dt.var(x, axis=1),
        "concat": lambda x: dt.concat([x, x], axis=1),
        "rotary_embedding": rotary_embedding(device),
    }


def rotary_embedding(device: dt.Device) -> Op:
    angles = {n: dt.ones((n, 1), dtype=dt.float32, device=device) for n in {shape[-1] for shape in shapes()}}

    def of_pairs(x: dt.Array) -> dt.Array:
        angle = angles[x.shape[-2]]
        return dt.nn.rotary_embedding(x, angle, angle)

    return of_pairs


def operands(name: str, device: dt.Device) -> list[dt.Array]:
    pair = (2,) if name == "rotary_embedding" else ()
    return [dt.ones(shape + pair, dtype=dt.float32, device=device) for shape in shapes()]


def seconds(op: Op, *of: dt.Array) -> float:
    """The time of one of these calls."""
    begin = time.perf_counter()
    for x in of:
        op(x)
    return (time.perf_counter() - begin) / len(of)


def awake(x: dt.Array) -> dt.Array:
    """`x`, read a moment ago on a device that has little else to do."""
    x.device.synchronize()
    dt.abs(x)
    return x


def first_and_repeated(op: Op, of: list[dt.Array]) -> tuple[float, float]:
    op(of[0])  # finds the decomposition and the plans
    first, repeated = [], []
    for x in of[1:]:
        first.append(seconds(op, awake(x)))
        repeated.append(min(seconds(op, awake(x)) for _ in range(7)))
    return statistics.median(first) * 1e6, statistics.median(repeated) * 1e6


def in_turn(op: Op, of: list[dt.Array], rounds: int) -> float:
    """The time of one of these calls, each called once a round."""
    blocks = [of[i : i + FEW] for i in range(0, len(of), FEW)]
    least = [float("inf")] * len(blocks)
    for _ in range(rounds):
        for i, block in enumerate(blocks):
            awake(block[0])
            least[i] = min(least[i], seconds(op, *block))
    return statistics.median(least) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    device = dt.device(options.device)
    head = ["first", "again", "ratio", f"{MANY} shapes", f"{FEW} shapes", "ratio"]
    print(f"{'us, ' + options.device:18} " + " ".join(f"{text:>11}" for text in head))
    for name, op in ops(device).items():
        of = operands(name, device)
        first, repeated = first_and_repeated(op, of)
        few, many = in_turn(op, of[:: MANY // FEW], 500), in_turn(op, of, 10)
        figures = [first, repeated, first / repeated, many, few, many / few]
        print(f"{name:18} " + " ".join(f"{figure:11.2f}" for figure in figures))
    print(f"aim: both ratios at most {AIM}")


if __name__ == "__main__":
    main()
