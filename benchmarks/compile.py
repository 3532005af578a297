"""What a call of a compiled function costs next to the same ops called one by one, per call, on small arrays.

The first rows are guards and dispatch: functions that return an argument, so that no kernel runs. Then the same in
torch.compile, jax.jit, numexpr and ONNX Runtime, where they are installed.

python benchmarks/compile.py [--device cpu:0] [--repeat 5]
"""

from __future__ import annotations

import argparse
import timeit
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import dovetail as dt
import numpy as np


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
    print(f"{'ns per call on ' + args.device:<44}{'compiled':>10}{'eager':>10}")
    for name, call, eager in rows:
        call()
        beside = f"{nanoseconds(eager, args.repeat):10.0f}" if eager else f"{'':>10}"
        print(f"{name:<44}{nanoseconds(call, args.repeat):10.0f}{beside}")
    others(args.repeat)


def others(repeat: int) -> None:
    """The same calls in the libraries that are installed; onnxruntime and numexpr have only the sum of four."""
    functions = [("4 arrays, guards and dispatch", first_of, 4), ("60 arrays, guards and dispatch", first_of, 60)]
    for name, f, n in (*functions, ("x + y + z + w", sum_of, 4)):
        for peer, call in calls_of_peers(f, n):
            call()
            print(f"{name + ', ' + peer:<44}{nanoseconds(call, repeat):10.0f}")


def calls_of_peers(f: Callable[..., Any], n: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    if find_spec("jax"):
        import jax
        import jax.numpy as jnp

        yield "jax.jit", partial(jax.jit(f), *[jnp.ones((4, 4))] * n)
    if find_spec("torch"):
        import torch

        yield "torch.compile", partial(torch.compile(f), *[torch.ones(4, 4) for _ in range(n)])
    if f is not sum_of:
        return
    given = dict(zip("xyzw", np.ones((4, 4, 4), np.float32), strict=True))
    if find_spec("numexpr"):
        import numexpr

        yield "numexpr", partial(numexpr.evaluate, "x + y + z + w", given)
    if find_spec("onnxruntime") and find_spec("onnx"):
        import onnxruntime
        from onnx import TensorProto, helper

        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in "xyzwr"]
        graph = helper.make_graph([helper.make_node("Sum", list("xyzw"), ["r"])], "sum", values[:4], values[4:])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        yield "onnxruntime", partial(session.run, None, given)


if __name__ == "__main__":
    main()
