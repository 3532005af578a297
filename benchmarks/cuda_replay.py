"""MiniLM's forward as one graph, against the sum of its kernels' times: cuda.py runs it.

Kernels are timed one by one by CUPTI, through torch.profiler, which sees all of a process: events around each would
add what lies between kernels, and that is what is to be measured. It looks at the forward op by op: kernels of a
graph that was made before it may not see. The replay is timed without it, by events.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path

import cuda_timing
import dovetail as dt
import numpy as np
from cuda_timing import Aim, Bench, medians
from dovetail_conformance.device_checks.table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "minilm"))

OF_KERNELS = Aim(1.2, at_most=True)
CALLS = 10


def captured(own: Table, stream: dt.Stream, work: Callable[[], dt.Array]) -> tuple[int, dt.Array]:
    """The graph and its output. Run once before, to initialise everything."""
    handle = dt._core.stream_handle(stream)
    work()
    stream.synchronize()
    own.call("capture_begin", handle)
    y = work()
    return own.captured(handle), y


def seconds_of_kernels(bench: Bench, forward: Callable[[], dt.Array]) -> float:
    """Kernels of one forward, including copies and fills."""
    profiler, gpu = bench.torch.profiler, bench.torch.autograd.DeviceType.CUDA
    with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(CALLS):
            forward()
        bench.device.synchronize()
    times = [event.time_range.elapsed_us() for event in profile.events() if event.device_type == gpu]
    if not times:
        raise RuntimeError("torch.profiler has seen no kernel: is CUPTI there, and may it be used?")
    return sum(times) * 1e-6 / CALLS


def measure(bench: Bench, sentences: int, tokens: int) -> None:
    from model import MiniLM

    model, stream = MiniLM(bench.device), dt.Stream(bench.device)
    own = Table(types.SimpleNamespace(api=dt, device=bench.device))
    ids = dt.asarray(np.random.default_rng(0).integers(0, 30000, (sentences, tokens)))
    mask = dt.asarray(np.ones((sentences, tokens), np.int64))

    def forward() -> dt.Array:
        return model.embed(ids, mask)

    expected = forward().numpy()
    with stream:
        graph, y = captured(own, stream, forward)
        handle = dt._core.stream_handle(stream)

        def replay() -> None:
            own.call("capture_replay", graph, handle)

        eager, replayed = medians(
            bench,
            lambda: bench.time(forward, CALLS),
            lambda: bench.time_past(own, handle, replay, CALLS),
        )
        np.testing.assert_allclose(y.numpy(), expected, atol=1e-5)
        printed, figure = f"replay {1e6 * replayed:.0f} us, eager {1e6 * eager:.0f} us", None
        if bench.torch:
            kernels = seconds_of_kernels(bench, forward)
            figure = replayed / kernels
            printed += f"; kernels alone {1e6 * kernels:.0f} us: {figure:.2f} of them"
    bench.line(f"MiniLM {sentences} x {tokens}", printed, figure, OF_KERNELS)
    own.close()


def main() -> None:
    bench = cuda_timing.opened(cuda_timing.parser(__doc__).parse_args())
    measure(bench, bench.choose(8, 1), bench.choose(128, 4))


if __name__ == "__main__":
    main()
