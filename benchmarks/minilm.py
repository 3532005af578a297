"""MiniLM's forward against torch eager on the same weights in one run: python benchmarks/minilm.py [--device cpu]

Milliseconds per forward of batch x tokens, median of alternating runs. torch is the peer where it is installed; the
aim is a ratio of at most 1.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import dovetail as dt
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "minilm"))
from model import MiniLM

SHAPES = [(1, 16), (1, 128), (8, 128)]


def torch_forward(model: MiniLM):
    """The same network in torch eager, from the same weights."""
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(dt._core.num_threads())
    w = {name: torch.from_numpy(np.asarray(value).copy()) for name, value in model.weights.items()}
    heads, eps = model.config["num_attention_heads"], model.config["layer_norm_eps"]

    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], eps)

    def linear(x, name):
        return F.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

    @torch.inference_mode()
    def forward(ids, mask):
        batch, tokens = ids.shape
        e = "embeddings"
        x = w[f"{e}.word_embeddings.weight"][ids] + w[f"{e}.position_embeddings.weight"][:tokens]
        x = norm(x + w[f"{e}.token_type_embeddings.weight"][0], f"{e}.LayerNorm")
        attend = mask.bool()[:, None, None, :]
        for i in range(model.config["num_hidden_layers"]):
            layer = f"encoder.layer.{i}"
            q, k, v = (
                linear(x, f"{layer}.attention.self.{p}").view(batch, tokens, heads, -1).transpose(1, 2)
                for p in ("query", "key", "value")
            )
            y = F.scaled_dot_product_attention(q, k, v, attend).transpose(1, 2).reshape(batch, tokens, -1)
            x = norm(x + linear(y, f"{layer}.attention.output.dense"), f"{layer}.attention.output.LayerNorm")
            y = F.gelu(linear(x, f"{layer}.intermediate.dense"))
            x = norm(x + linear(y, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
        keep = mask[..., None].float()
        return F.normalize((x * keep).sum(1) / keep.sum(1), dim=-1)

    return forward, torch.from_numpy


def milliseconds(calls: list, seconds: float) -> list[float]:
    """Medians of alternating calls, so that a drift of the machine's speed affects all equally."""
    times: list[list[float]] = [[] for _ in calls]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            times[i].append((time.perf_counter() - start) * 1e3)
    return [statistics.median(t) for t in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=6.0, help="per shape")
    options = parser.parse_args()
    model = MiniLM(options.device)
    try:
        peer, from_numpy = torch_forward(model)
    except ImportError:
        peer = None
    print(
        f"{'batch x tokens':>14} {'dovetail':>10} {'torch':>10}  ratio"
        f"   (ms, {options.device}, {dt._core.num_threads()} threads)"
    )
    for batch, tokens in SHAPES:
        rng = np.random.default_rng(0)
        ids, mask = rng.integers(0, 30000, (batch, tokens)), np.ones((batch, tokens), np.int64)
        a, m = dt.asarray(ids, device=options.device), dt.asarray(mask, device=options.device)

        def ours(a=a, m=m):
            model.embed(a, m)
            model.device.synchronize()

        calls = [ours]
        if peer:
            t, u = from_numpy(ids), from_numpy(mask)
            np.testing.assert_allclose(model.embed(a, m).numpy(), peer(t, u).numpy(), atol=1e-4)
            calls.append(lambda t=t, u=u: peer(t, u))
        for call in calls:
            call()
        result = milliseconds(calls, options.seconds)
        theirs = f"{result[1]:10.2f}  {result[0] / result[1]:5.2f}" if peer else f"{'-':>10}"
        print(f"{f'{batch} x {tokens}':>14} {result[0]:10.2f} {theirs}")


if __name__ == "__main__":
    main()
