"""What a call of a compiled function costs next to the same ops called one by one, per call, on small arrays.

The first rows are guards and dispatch: functions that return an argument, so that no kernel runs.

python benchmarks/compile.py [--device cpu:0] [--repeat 5]
"""

from __future__ import annotations

import argparse
import importlib.util
import timeit
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import dovetail as dt


def nanoseconds(call: Callable[[], Any], repeat: int) -> float:
    timer = timeit.Timer(call)
    number, _ = timer.autorange()
    return 1e9 * min(timer.repeat(repeat, number)) / number


def first_of(*arrays):
    return arrays[0]


def sum_of(x, y, z, w):
    return x + y + z + w


def chain(x, k):
    for _ in range(k):
        x = x + 1.0
    return x


class Model:
    """Layers whose weights are captured: inputs of a program that calls no kernel."""

    def __init__(self, device: str, n: int):
        make = lambda: SimpleNamespace(w=dt.ones((4, 4), device=device), b=dt.ones((4,), device=device))  # noqa: E731
        self.layers, self.training = [make() for _ in range(n // 2)], True

    @dt.compile
    def __call__(self, x):
        if self.training:
            for layer in self.layers:
                layer.w.shape, layer.b.shape  # noqa: B018 - reading a size makes an input of the array
        return x


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu:0")
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    arrays = [dt.ones((4, 4), device=args.device) for _ in range(60)]
    compiled = dt.compile(first_of)
    rows: list[tuple[str, Callable[[], Any], Callable[[], Any] | None]] = [
        (f"{n} arrays, guards and dispatch", lambda given=tuple(arrays[:n]): compiled(*given), None)
        for n in (1, 4, 30, 60)
    ]
    for n in (10, 100):
        model = Model(args.device, n)
        rows.append((f"{n} captured weights", lambda call=model.__call__: call(arrays[0]), None))
    add = dt.compile(sum_of)
    rows.append(("x + y + z + w", lambda: add(*arrays[:4]), lambda: sum_of(*arrays[:4])))
    for k in (10, 100):
        f = dt.compile(chain)
        rows.append((f"{k} additions", lambda f=f, k=k: f(arrays[0], k), lambda k=k: chain(arrays[0], k)))
    print(f"{'ns per call on ' + args.device:<34}{'compiled':>10}{'eager':>10}")
    for name, call, eager in rows:
        call()
        beside = f"{nanoseconds(eager, args.repeat):10.0f}" if eager else f"{'':>10}"
        print(f"{name:<34}{nanoseconds(call, args.repeat):10.0f}{beside}")
    others(args.repeat)


def others(repeat: int) -> None:
    """The same sum in the libraries that are installed."""
    if importlib.util.find_spec("jax"):
        import jax
        import jax.numpy as jnp

        jitted, given = jax.jit(sum_of), [jnp.ones((4, 4))] * 4
        print(f"{'x + y + z + w, jax.jit':<34}{nanoseconds(lambda: jitted(*given), repeat):10.0f}")
    if importlib.util.find_spec("torch"):
        import torch

        made, tensors = torch.compile(sum_of), [torch.ones(4, 4)] * 4
        print(f"{'x + y + z + w, torch.compile':<34}{nanoseconds(lambda: made(*tensors), repeat):10.0f}")


if __name__ == "__main__":
    main()
