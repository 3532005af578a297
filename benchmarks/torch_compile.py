"""torch.compile(backend="dovetail") beside torch's own eager mode on the CPU: CPU time of a call.

    python benchmarks/torch_compile.py [--threads 1 2] [--seconds 2] [model ...]

Times are the process's CPU time per call in microseconds, least of rounds in which the contenders take turns:
torch's eager mode, the compiled model with tensors of torch's CPU, and with those of dovetail:0, which is cpu:0.
The aims are those of a GPT of two layers of 32, at most 0.6 of eager, and of four layers of 256, at most 0.8. It
needs dovetail-torch, and torchvision for resnet18.
"""

from __future__ import annotations

import copy
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["DOVETAIL_TORCH_DEVICES"] = "cpu:0"  # before `import torch` opens the devices

import dovetail_torch
import torch
import torch.nn.functional as F
from dovetail_torch.compile import backend, report
from torch import nn
from turns import main

sys.path.insert(0, str(Path(__file__).parents[1] / "bridges/torch/tests"))
import models  # noqa: F401 - it imports torchvision, also one that is built for another torch

dovetail_torch._autoload()  # `import torch` has, where the wheel is installed

AIMS = {"gpt32": 0.6, "gpt256": 0.8}
ROUND = 0.05  # seconds


class Block(nn.Module):
    """A layer of a GPT: attention and a perceptron, each behind a norm and beside what it got."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_perceptron = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        qkv = self.qkv(self.before_attention(x)).reshape(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(F.gelu(self.up(self.before_perceptron(x))))


class GPT(nn.Module):
    def __init__(self, vocabulary: int, width: int, layers: int, heads: int, tokens: int):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(tokens, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.norm(self.blocks(x)))


def gpt32() -> tuple[nn.Module, torch.Tensor]:
    return GPT(100, 32, 2, 4, 64), torch.randint(0, 100, (1, 16))


def gpt256() -> tuple[nn.Module, torch.Tensor]:
    return GPT(1000, 256, 4, 8, 64), torch.randint(0, 1000, (1, 64))


def resnet18() -> tuple[nn.Module, torch.Tensor]:
    from torchvision.models import resnet18

    return resnet18(), torch.randn(1, 3, 224, 224)


MODELS: dict[str, Callable[[], Any]] = {"gpt32": gpt32, "gpt256": gpt256, "resnet18": resnet18}


def least(contenders: list[Callable[[], Any]], seconds: float) -> list[float]:
    """The CPU time of one call of each, in seconds."""
    counts = [max(1, int(ROUND / cpu_time(run, 3))) for run in contenders]
    best, end = [float("inf")] * len(contenders), time.perf_counter() + seconds
    while time.perf_counter() < end:
        for i, run in enumerate(contenders):
            best[i] = min(best[i], cpu_time(run, counts[i]))
    return best


def cpu_time(run: Callable[[], Any], n: int) -> float:
    start = time.process_time()
    for _ in range(n):
        run()
    return (time.process_time() - start) / n


def measure(names: list[str], seconds: float, threads: int) -> None:
    torch.set_num_threads(threads)
    print(
        f"{threads} thread{'s' * (threads > 1)}   eager  compiled  ratio  on cpu:0  ratio   aim     error  programs"
    )
    for name, make in MODELS.items():
        if names and not name.startswith(tuple(names)):
            continue
        torch.manual_seed(0)
        try:
            model, x = make()
        except (ImportError, RuntimeError) as error:
            print(f"{name:9} not measured: {error}")
            continue
        model = model.eval()
        report(reset=True)
        runs = [model, torch.compile(model, backend=backend)]
        runs.append(torch.compile(dovetail_torch.to(copy.deepcopy(model), "dovetail"), backend=backend))
        given = [x, x, x.to("dovetail")]
        with torch.no_grad():
            expected, *made = [run(x).cpu() for run, x in zip(runs, given)]
            error = max(float((got - expected).abs().max() / expected.abs().max()) for got in made)
            times = least([lambda run=run, x=x: run(x) for run, x in zip(runs, given)], seconds)
        eager, host, device = (t * 1e6 for t in times)
        compiled = report()
        programs = f"{compiled.programs}"
        programs += f", {sum(compiled.eager.values())} ops by torch" if compiled.eager else ""
        print(
            f"{name:9} {eager:8.0f} {host:9.0f} {host / eager:6.2f} {device:9.0f} {device / eager:6.2f} "
            f"{AIMS.get(name, ''):5} {error:9.1e}  {programs}"
        )


if __name__ == "__main__":
    main(__doc__, measure)
