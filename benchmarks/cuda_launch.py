"""The time to enqueue one op on small operands, against torch eager: cuda.py runs it. It is time of the host: the
wait for the queued work is outside.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import cuda_timing
import dovetail as dt
from cuda_timing import Aim, Bench, Work, medians
from dovetail import nn

OF_TORCH = Aim(1.0, at_most=True)
CALLS = 100
CASES = {  # name: shape of each operand, ours, torch's
    "floor": ([(256,)], dt.floor, lambda t: t.floor),
    "add": ([(256,), (256,)], dt.add, lambda t: t.add),
    "sum over an axis": ([(16, 16)], lambda x: dt.sum(x, axis=1), lambda t: lambda x: t.sum(x, 1)),
    "softmax": ([(16, 16)], lambda x: nn.softmax(x, axis=-1), lambda t: lambda x: t.softmax(x, -1)),
    "layer_norm": (
        [(16, 16), (16,), (16,)],
        lambda x, w, b: nn.layer_norm(x, (16,), w, b),
        lambda t: lambda x, w, b: t.nn.functional.layer_norm(x, (16,), w, b),
    ),
    "matmul": ([(16, 16), (16, 16)], dt.matmul, lambda t: t.matmul),
    "linear": ([(16, 16), (16, 16), (16,)], nn.linear, lambda t: t.nn.functional.linear),
}


def enqueue(work: Work, synchronize: Callable[[], object]) -> float:
    """Seconds for one call; the queues hold more than CALLS of them."""
    synchronize()
    start = time.perf_counter()
    for _ in range(CALLS):
        work()
    seconds = (time.perf_counter() - start) / CALLS
    synchronize()
    return seconds


def measure(bench: Bench, name: str) -> None:
    shapes, ours, torchs = CASES[name]
    operands = [dt.random.normal(shape) for shape in shapes]
    samplers = [lambda: enqueue(lambda: ours(*operands), bench.device.synchronize)]
    if bench.torch:
        function, tensors = torchs(bench.torch), [bench.shared(x) for x in operands]
        samplers.append(lambda: enqueue(lambda: function(*tensors), bench.torch.cuda.synchronize))
    microseconds = [1e6 * seconds for seconds in medians(bench, *samplers, rounds=30)]
    printed, figure = f"{microseconds[0]:.2f} us", None
    if bench.torch:
        figure = microseconds[0] / microseconds[1]
        printed += f"; torch {microseconds[1]:.2f} us: {figure:.2f} of it"
    bench.line(f"enqueue {name}", printed, figure, OF_TORCH)


def main() -> None:
    bench = cuda_timing.opened(cuda_timing.parser(__doc__).parse_args())
    for name in CASES:
        measure(bench, name)


if __name__ == "__main__":
    main()
