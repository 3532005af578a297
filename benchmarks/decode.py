"""One token of a GPT (6 layers, 384 wide, 6 heads) against torch on the same weights:

python benchmarks/decode.py [--threads 1 2] [--seconds 4]

Milliseconds per token, medians of calls in turns, with a cache of the keys and values of some tokens before. The
cache either grows by concatenation or has room for LENGTH tokens, of which each step writes one. The ratio is the
time of torch's faster way by that of ours: above 1, dovetail is faster.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from turns import main, medians

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
LENGTH = 512
BEFORE = (16, 128, 500)  # tokens in the cache


def torch_steps(ours: Any, before: int) -> dict[str, Callable[[], np.ndarray]]:
    """The same network in torch, from the same weights and inputs."""
    import torch
    import torch.nn.functional as F

    def tensor(x: Any) -> torch.Tensor:
        return torch.from_numpy(np.asarray(x).copy())

    blocks = [{name: tensor(w) for name, w in block.items()} for block in ours.blocks]
    x, cache = tensor(ours.x), [(tensor(k), tensor(v)) for k, v in ours.cache]
    heads, size = ours.heads, ours.width // ours.heads
    cos, sin = tensor(ours.cos)[before : before + 1], tensor(ours.sin)[before : before + 1]
    mask = (torch.arange(LENGTH) <= before)[None]

    def rotate(y: torch.Tensor) -> torch.Tensor:
        a, b = y.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def block(x: torch.Tensor, w: dict[str, torch.Tensor], attend: Callable[..., torch.Tensor]) -> torch.Tensor:
        y = F.linear(F.rms_norm(x, (ours.width,), w["norm1"], 1e-6), w["qkv"])
        q, k, v = y.view(1, 1, 3, heads, size).permute(2, 0, 3, 1, 4)
        y = attend(rotate(q), rotate(k), v).transpose(1, 2).reshape(1, 1, ours.width)
        x = x + F.linear(y, w["out"])
        y = F.rms_norm(x, (ours.width,), w["norm2"], 1e-6)
        return x + F.linear(F.silu(F.linear(y, w["gate"])) * F.linear(y, w["up"]), w["down"])

    def run(attend_over: Callable[..., Callable[..., torch.Tensor]]) -> np.ndarray:
        y = x
        for w, kept in zip(blocks, cache, strict=True):
            y = block(y, w, attend_over(*kept))
        return y.numpy()

    @torch.inference_mode()
    def growing() -> np.ndarray:
        def over(keys: torch.Tensor, values: torch.Tensor) -> Callable[..., torch.Tensor]:
            keys, values = keys[:, :, :before], values[:, :, :before]
            return lambda q, k, v: F.scaled_dot_product_attention(
                q, torch.cat([keys, k], 2), torch.cat([values, v], 2)
            )

        return run(over)

    @torch.inference_mode()
    def fixed() -> np.ndarray:
        def over(keys: torch.Tensor, values: torch.Tensor) -> Callable[..., torch.Tensor]:
            def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
                keys[:, :, before : before + 1], values[:, :, before : before + 1] = k, v
                return F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)

            return attend

        return run(over)

    return {"torch, growing": growing, "torch, fixed": fixed}


def our_steps(before: int) -> tuple[Any, dict[str, Callable[[], np.ndarray]]]:
    import dovetail as dt
    from networks import GrowingCache, StaticCache

    size = {"width": 384, "heads": 6, "layers": 6, "length": LENGTH}
    fixed = type("Fixed", (StaticCache,), size)("cpu")
    grows = type("Grows", (GrowingCache,), size)("cpu")
    x, _, cache = fixed.inputs()
    fixed.x, fixed.cache = x, cache
    grown = [tuple(dt.asarray(np.asarray(y)[:, :, :before]) for y in pair) for pair in cache]
    position = dt.asarray(before)
    compiled_fixed, compiled_growing = dt.compile(fixed), dt.compile(grows)
    return fixed, {
        "eager, growing": lambda: np.asarray(grows(x, grown)[0]),
        "compiled, growing": lambda: np.asarray(compiled_growing(x, grown)[0]),
        "compiled, fixed": lambda: np.asarray(compiled_fixed(x, position, cache)[0]),
    }


def measure(names: list[str], seconds: float, threads: int) -> None:
    import torch

    torch.set_num_threads(threads)
    print(f"ms per token, threads: {threads}")
    for before in BEFORE:
        model, calls = our_steps(before)
        want = calls["eager, growing"]()
        calls |= torch_steps(model, before)
        for name, call in calls.items():
            np.testing.assert_allclose(call(), want, rtol=2e-3, atol=2e-3, err_msg=name)
        found = medians(calls, seconds)
        peer = min(ms for name, ms in found.items() if name.startswith("torch"))
        ours = min(ms for name, ms in found.items() if not name.startswith("torch"))
        print(f"after {before} tokens:", *(f"{name} {ms:.2f};" for name, ms in found.items()), f"{peer / ours:.2f}")


if __name__ == "__main__":
    main(__doc__, measure)
