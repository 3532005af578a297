"""Eager PyTorch on Dovetail's CPU device next to torch's own CPU: CPU time, in turns, the least of many.

python benchmarks/torch_bridge.py [--seconds 0.5]

The last column is what dovetail-torch takes for each unit of torch's time. Small operators show the cost of a
call: most of it is torch's dispatcher and its inference of shapes, which both pay. torch gives each of our
devices a thread for gradients and computes the CPU's in the calling thread; the last row has both in that one.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ["DOVETAIL_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
os.environ["DOVETAIL_TORCH_DEVICES"] = "cpu:0"
os.environ.setdefault("DOVETAIL_TORCH_FALLBACK", "allow")

import dovetail_torch
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "bridges/torch/tests"))
from eager_models import Gpt, ResNet, generate


def operators(device: str) -> dict[str, Callable[[], object]]:
    x, y = torch.ones(4, 4).to(device), torch.ones(4, 4).to(device)
    return {
        "add (functional)": lambda: x + y,
        "mul (functional)": lambda: x * y,
        "relu (functional)": lambda: torch.relu(x),
        "exp (functional)": lambda: torch.exp(x),
        "mm (functional)": lambda: torch.mm(x, y),
        "sum (functional)": lambda: x.sum(0),
        "erf (structured)": lambda: torch.erf(x),
        "maximum (functional)": lambda: torch.maximum(x, y),
        "x * 2.0": lambda: x * 2.0,
        "add_ (structured)": lambda: x.add_(y),
        "empty": lambda: torch.empty(4, 4, device=device),
        "lgamma (falls back)": lambda: torch.lgamma(y),
    }


def models(device: str) -> dict[str, Callable[[], object]]:
    torch.manual_seed(1)
    gpt, wide = Gpt().eval(), Gpt(dim=256, layers=4, heads=8).eval()
    resnet, mlp = ResNet(width=64, classes=1000).eval(), torch.nn.Sequential()
    mlp.extend([torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)])
    gpt, wide, resnet, mlp = (dovetail_torch.to(m, device) for m in (gpt, wide, resnet, mlp))
    short, long = torch.randint(0, 100, (2, 8)).to(device), torch.randint(0, 100, (1, 64)).to(device)
    image, rows = torch.randn(1, 3, 224, 224).to(device), torch.randn(32, 64).to(device)

    def without_gradients(run: Callable[[], object]) -> Callable[[], object]:
        return lambda: torch.no_grad()(run)()

    def train() -> None:
        mlp.zero_grad()
        mlp(rows).square().mean().backward()

    def in_one_thread() -> None:
        with torch.autograd.set_multithreading_enabled(False):
            train()

    return {
        "GPT d=32": without_gradients(lambda: gpt(short)),
        "GPT d=32, 8 tokens": without_gradients(lambda: generate(gpt, short, 8)),
        "GPT d=256, 64 tokens": without_gradients(lambda: wide(long)),
        "ResNet-18, 224x224": without_gradients(lambda: resnet(image)),
        "MLP, forward and backward": train,
        "the same in one thread": in_one_thread,
    }


def cpu_times(contenders: list[Callable[[], object]], seconds: float, calls: int) -> list[float]:
    """The least CPU time of one call of each; of the process, as backward passes have their own threads."""
    for run in contenders:
        for _ in range(3):
            run()
    best, end = [float("inf")] * len(contenders), time.perf_counter() + seconds
    while time.perf_counter() < end:
        for i, run in enumerate(contenders):
            begin = time.process_time()
            for _ in range(calls):
                run()
            best[i] = min(best[i], (time.process_time() - begin) / calls)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.5, help="for each line")
    options = parser.parse_args()
    dovetail_torch._autoload()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}; microseconds of CPU time on one thread")
    for made, calls, factor in ((operators, 200, 1), (models, 1, 4)):
        ours, theirs = made("dovetail:0"), made("cpu")
        for name in ours:
            a, b = cpu_times([theirs[name], ours[name]], factor * options.seconds, calls)
            print(f"{name:28} torch {a * 1e6:10.2f}   dovetail {b * 1e6:10.2f}   {b / a:5.2f}", flush=True)


if __name__ == "__main__":
    main()
