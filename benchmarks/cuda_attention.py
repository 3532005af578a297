"""Attention's engines against cuDNN called directly, and its gradient against torch's: bfloat16, heads of 128,
4k to 16k tokens; cuda.py runs it.

What an engine costs over cuDNN is the time of one call on an idle device, from before it is enqueued until its
kernel has ended, by events; TFLOP/s are those of calls in a row. torch's backward is that of its FlashAttention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import cuda_timing
import dovetail as dt
import numpy as np
from cuda_direct import Direct
from cuda_timing import Aim, Bench, medians
from dovetail import nn

ENGINES = "cudnn", "flash"
OVER_CUDNN_US = Aim(3.0, at_most=True)
OWN_OF_CUDNN, OWN_FLOOR = Aim(0.8), Aim(0.5)
GRADIENT_OF_TORCH = Aim(1 / 1.1)
HEADS, SIZE, TOKENS = 16, 128, 1 << 14  # total over all sequences
CALLS = 5


class Problem:
    def __init__(self, bench: Bench, length: int, causal: bool, direct: Direct | None):
        batch, heads = (1, 2) if bench.tiny else (TOKENS // length, HEADS)
        self.shape = batch, heads, length, SIZE
        self.causal = causal
        self.name = f"SDPA {length}, {'causal' if causal else 'full'}"
        self.flop = 4 * batch * heads * length**2 * SIZE / (2 if causal else 1)
        self.operands = [dt.astype(dt.random.normal(self.shape), dt.bfloat16) for _ in range(3)]
        self.out = dt.empty(self.shape, dtype=dt.bfloat16)
        self.direct = direct and direct.attention(*self.operands, self.out, causal=causal)

    def call(self) -> dt.Array:
        return nn.scaled_dot_product_attention(*self.operands, is_causal=self.causal)

    def is_served_by(self, engine: str) -> bool:
        return engine in nn.sdpa_engines(*self.operands, is_causal=self.causal)

    def tflops(self, seconds: float) -> float:
        return self.flop / seconds * 1e-12

    def gradient(self) -> Callable[[], tuple[dt.Array, ...]]:
        """Computes it for a gradient of ones."""
        out, total = nn.scaled_dot_product_attention_with_logsumexp(*self.operands, is_causal=self.causal)
        given = (*self.operands, out, total, dt.ones_like(out))
        return lambda: nn.scaled_dot_product_attention_grad(*given, is_causal=self.causal)

    def gradient_of_torch(self, bench: Bench) -> Callable[[], tuple[Any, ...]]:
        torch = bench.torch
        operands = [bench.shared(x).requires_grad_() for x in self.operands]
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
            out = torch.nn.functional.scaled_dot_product_attention(*operands, is_causal=self.causal)
        given = torch.ones_like(out)
        return lambda: torch.autograd.grad(out, operands, given, retain_graph=True)


def assert_same_attention(ours: dt.Array, theirs: dt.Array) -> None:
    here, there = (dt.astype(x[-1, -1, -64:], dt.float32).numpy() for x in (ours, theirs))
    np.testing.assert_allclose(here, there, rtol=0.05, atol=0.05 * np.abs(there).max())


def one_call(bench: Bench, problem: Problem) -> float:
    """Seconds from before it is enqueued, on an idle device."""
    first, last = (dt.Event(bench.device, timing=True) for _ in range(2))
    dt.synchronize(bench.device)
    first.record()
    problem.call()
    last.record()
    last.synchronize()
    return first.elapsed_ns(last) * 1e-9


def against_direct(bench: Bench, p: Problem, engine: str) -> None:
    in_a_row, of_direct = medians(bench, lambda: bench.time(p.call, CALLS), lambda: p.direct.time(CALLS))
    assert_same_attention(p.call(), p.out)
    printed = f"{p.tflops(in_a_row):.0f} TFLOP/s; cuDNN called directly {p.tflops(of_direct):.0f}; "
    if engine == "cudnn":
        ours, theirs = medians(bench, lambda: one_call(bench, p), lambda: p.direct.time(1, busy=False), rounds=101)
        over = 1e6 * (ours - theirs)
        bench.line(f"{p.name}, {engine}", printed + f"one call {over:+.1f} us", over, OVER_CUDNN_US)
    else:
        ratio = of_direct / in_a_row
        floor = f"floor {OWN_FLOOR.bound:g} {OWN_FLOOR.verdict(ratio)}"
        bench.line(f"{p.name}, {engine}", printed + f"{ratio:.2f} of it, {floor}", ratio, OWN_OF_CUDNN)


def measure(bench: Bench, p: Problem) -> None:
    for engine in ENGINES:
        if not p.is_served_by(engine):
            print(f"{p.name}, {engine}: not measured, as this engine does not serve the call here")
            continue
        with nn.sdpa_engine(engine):
            if p.direct:
                against_direct(bench, p, engine)
            else:
                seconds = bench.time(p.call, CALLS)
                bench.line(f"{p.name}, {engine}", f"{p.tflops(seconds):.3g} TFLOP/s")
    if p.direct:
        p.direct.close()


def measure_gradient(bench: Bench, p: Problem) -> None:
    ours, flop = p.gradient(), 2.5 * p.flop  # five products of matrices, the forward call's are two
    name = f"{p.name}, gradient"
    if not bench.torch:
        bench.line(name, f"{flop / bench.time(ours, CALLS) * 1e-12:.3g} TFLOP/s")
        return
    torchs = p.gradient_of_torch(bench)
    seconds, of_torch = medians(bench, lambda: bench.time(ours, CALLS), lambda: bench.time_torch(torchs, CALLS))
    for here, there in zip(ours(), torchs(), strict=True):
        assert_same_attention(here, dt.from_dlpack(there))
    tflops, ratio = (flop / s * 1e-12 for s in (seconds, of_torch)), of_torch / seconds
    printed = "{:.0f} TFLOP/s; torch {:.0f}, ".format(*tflops) + f"{ratio:.2f} of its speed"
    bench.line(name, printed, ratio, GRADIENT_OF_TORCH)


def problems(bench: Bench, direct: Direct | None) -> Iterator[Problem]:
    for length in (64,) if bench.tiny else (1 << 12, 1 << 13, 1 << 14):
        for causal in (True, False):
            yield Problem(bench, length, causal, direct)


def main() -> None:
    bench = cuda_timing.opened(cuda_timing.parser(__doc__).parse_args())
    for problem in problems(bench, Direct() if bench.torch else None):
        measure(bench, problem)
        measure_gradient(bench, problem)


if __name__ == "__main__":
    main()
