"""Joining, picking, rotating and scattering against NumPy: python benchmarks/indexing.py [--device cpu]

Milliseconds of a call: the first one of its shapes in this process, and the best of several more; NumPy's best; and
the ratio of the two best. PyTorch's best is added where it is installed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]


def milliseconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e3


def best(run: Callable[[], Any], repeats: int = 30) -> float:
    return min(milliseconds(run) for _ in range(repeats))


def rotated(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    a, b = x[..., : cos.shape[-1]], x[..., cos.shape[-1] :]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def torch_rotated(x: Any, cos: Any, sin: Any) -> Any:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def added(x: np.ndarray, places: np.ndarray, updates: np.ndarray) -> np.ndarray:
    out = x.copy()
    np.add.at(out, places, updates)
    return out


def cases() -> list[tuple[str, list[np.ndarray], Callable, Callable, Callable]]:
    rng = np.random.default_rng(0)

    def floats(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    places = rng.integers(0, 30_000, 100_000)
    return [
        ("concat (1,12,512,64)+(1,12,1,64)", [floats(1, 12, 512, 64), floats(1, 12, 1, 64)],
         lambda *x: dt.concat(x, axis=2), lambda *x: np.concatenate(x, 2), lambda *x: torch.cat(x, 2)),
        ("embedding (30522,384) by 4096", [floats(30522, 384), rng.integers(0, 30522, 4096)],
         lambda w, i: dt.nn.embedding(i, w), lambda w, i: w[i], lambda w, i: w[i]),
        ("rotary (1,12,512,64)", [floats(1, 12, 512, 64), floats(512, 32), floats(512, 32)],
         dt.nn.rotary_embedding, rotated, torch_rotated),
        ("scatter add 100k rows of 64", [floats(30_000, 64), places, floats(100_000, 64)],
         lambda x, i, u: dt.scatter(x, i, u, mode="add"), added, lambda x, i, u: x.index_add(0, i, u)),
        ("scatter add, sorted", [floats(30_000, 64), np.sort(places), floats(100_000, 64)],
         lambda x, i, u: dt.scatter(x, i, u, mode="add"), added, lambda x, i, u: x.index_add(0, i, u)),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    print(f"{'ms, ' + device:36} {'first':>8} {'best':>8} {'numpy':>8}  ratio" + (" torch, ratio" if torch else ""))
    for name, given, ours, theirs, torchs in cases():
        arrays = [dt.asarray(a, device=device) for a in given]

        def run(ours: Callable = ours, arrays: list = arrays) -> None:
            ours(*arrays)
            dt.synchronize(device)

        first, mine, peer = milliseconds(run), best(run), best(lambda f=theirs, a=given: f(*a))
        line = f"{name:36} {first:8.3f} {mine:8.3f} {peer:8.3f}  {mine / peer:5.2f}"
        if torch:
            tensors = [torch.from_numpy(a) for a in given]
            other = best(lambda f=torchs, t=tensors: f(*t))
            line += f" {other:8.3f} {mine / other:5.2f}"
        print(line)


if __name__ == "__main__":
    main()
