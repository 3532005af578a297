"""Attention's engines against cuDNN called directly: bfloat16, heads of 128, 4k to 16k tokens; cuda.py runs it.

What an engine costs over cuDNN is the time of one call on an idle device, from before it is enqueued until its
kernel has ended, by events; TFLOP/s are those of calls in a row.
"""

from __future__ import annotations

from collections.abc import Iterator

import cuda_timing
import dovetail as dt
import numpy as np
from cuda_direct import Direct
from cuda_timing import Aim, Bench, medians
from dovetail import nn

ENGINES = "cudnn", "flash"
OVER_CUDNN_US = Aim(3.0, at_most=True)
OWN_OF_CUDNN, OWN_FLOOR = Aim(0.8), Aim(0.5)
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


def problems(bench: Bench, direct: Direct | None) -> Iterator[Problem]:
    for length in (64,) if bench.tiny else (1 << 12, 1 << 13, 1 << 14):
        for causal in (True, False):
            yield Problem(bench, length, causal, direct)


def main() -> None:
    bench = cuda_timing.opened(cuda_timing.parser(__doc__).parse_args())
    for problem in problems(bench, Direct() if bench.torch else None):
        measure(bench, problem)


if __name__ == "__main__":
    main()
