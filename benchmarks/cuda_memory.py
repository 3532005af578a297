"""Ops that wait for memory, as a fraction of the bandwidth of a copy, and torch's same op: cuda.py runs it.

The bandwidth is that of the device's own copy, which is the driver's: what it reads and what it writes. Of an op
the bytes count that it must read and write at least. Operands are several times larger than the L2 cache.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import cuda_timing
import dovetail as dt
import numpy as np
from cuda_timing import Aim, Bench, medians
from dovetail import nn
from dovetail_conformance.device_checks.table import Table

OF_COPY, OF_TORCH = Aim(0.85), Aim(1.0)
CALLS = 10


@dataclass(frozen=True)
class Case:
    name: str
    ours: Callable[..., dt.Array]
    torchs: Callable[..., Any]  # torch, then its operands
    operands: tuple[dt.Array, ...] = ()
    read: int | None = None  # bytes, if not those of all operands
    aim: Aim = OF_COPY


def normal(shape: tuple[int, ...], dtype: dt.DType = dt.float32) -> dt.Array:
    return dt.astype(dt.random.normal(shape), dtype)


def flat_cases(n: int) -> Iterator[Case]:
    """Arrays of n elements of float32 or twice as many of bfloat16."""
    x, y = normal((n,)), normal((n,))
    yield Case("add f32", dt.add, lambda t, x, y: x + y, (x, y))
    yield Case("gelu f32", nn.gelu, lambda t, x: t.nn.functional.gelu(x), (x,))
    yield Case("astype f32 to bf16", lambda x: dt.astype(x, dt.bfloat16), lambda t, x: x.to(t.bfloat16), (x,))
    yield Case("sort f32, one axis", dt.sort, lambda t, x: t.sort(x).values, (x,), aim=OF_TORCH)
    yield Case("random.uniform f32", lambda: dt.random.uniform((n,)), lambda t: t.rand(n, device="cuda"))
    yield Case(
        "quantize f32 to i8",
        lambda x: dt.quantize(x, 0.05, dtype=dt.int8),
        lambda t, x: t.quantize_per_tensor(x, 0.05, 0, t.qint8),
        (x,),
    )
    q = dt.quantize(x, 0.05, dtype=dt.int8)
    yield Case("dequantize i8 to f32", lambda q: dt.dequantize(q, 0.05), lambda t, q: q * 0.05, (q,))
    x, y = normal((2 * n,), dt.bfloat16), normal((2 * n,), dt.bfloat16)
    yield Case("add bf16", dt.add, lambda t, x, y: x + y, (x, y))
    yield Case("gelu bf16", nn.gelu, lambda t, x: t.nn.functional.gelu(x), (x,))
    yield Case("astype bf16 to f32", lambda x: dt.astype(x, dt.float32), lambda t, x: x.to(t.float32), (x,))


def row_cases(rows: int, columns: int) -> Iterator[Case]:
    x, weight, bias = normal((rows, columns)), normal((columns,)), normal((columns,))
    shape = (columns,)
    yield Case("softmax f32", lambda x: nn.softmax(x, axis=-1), lambda t, x: t.softmax(x, -1), (x,))
    yield Case("log_softmax f32", lambda x: nn.log_softmax(x, axis=-1), lambda t, x: t.log_softmax(x, -1), (x,))
    yield Case(
        "layer_norm f32",
        lambda x, w, b: nn.layer_norm(x, shape, w, b),
        lambda t, x, w, b: t.nn.functional.layer_norm(x, shape, w, b),
        (x, weight, bias),
    )
    yield Case(
        "rms_norm f32",
        lambda x, w: nn.rms_norm(x, shape, w),
        lambda t, x, w: t.nn.functional.rms_norm(x, shape, w),
        (x, weight),
    )
    for i in (1, 0):
        yield Case(f"sum f32, axis {i}", lambda x, i=i: dt.sum(x, axis=i), lambda t, x, i=i: x.sum(i), (x,))
        yield Case(f"max f32, axis {i}", lambda x, i=i: dt.max(x, axis=i), lambda t, x, i=i: x.amax(i), (x,))
    yield Case("cumulative_sum f32", lambda x: dt.cumulative_sum(x, axis=1), lambda t, x: t.cumsum(x, 1), (x,))
    yield Case("sort f32, rows", dt.sort, lambda t, x: t.sort(x).values, (x,), aim=OF_TORCH)
    yield Case("transpose f32", lambda x: dt.copy(dt.matrix_transpose(x)), lambda t, x: x.T.contiguous(), (x,))


def embedding_case(words: int, width: int, tokens: int) -> Case:
    table = normal((words, width), dt.bfloat16)
    ids = dt.asarray(np.random.default_rng(0).integers(0, words, tokens))
    read = ids.nbytes + tokens * width * table.itemsize
    return Case(
        "take bf16, rows of an embedding",
        lambda table, ids: dt.take(table, ids, axis=0),
        lambda t, table, ids: t.nn.functional.embedding(ids, table),
        (table, ids),
        read=read,
    )


def rotary_case(tokens: int, heads: int, width: int) -> Case:
    def by_torch(t: Any, x: Any, cos: Any, sin: Any) -> Any:
        a, b = x.chunk(2, -1)
        return t.cat((a * cos - b * sin, b * cos + a * sin), -1)

    cos, sin = (normal((tokens, width // 2), dt.bfloat16) for _ in range(2))
    x = normal((1, heads, tokens, width), dt.bfloat16)
    return Case("rotary_embedding bf16", nn.rotary_embedding, by_torch, (x, cos, sin))


def copy_bandwidth(bench: Bench) -> float:
    """Bytes per second, read and written."""
    own, n = Table(types.SimpleNamespace(api=dt, device=bench.device)), bench.choose(1 << 30, 1 << 16)
    source, target = own.alloc(n), own.alloc(n)
    stream = dt._core.stream_handle(dt.current_stream(bench.device))
    (seconds,) = medians(
        bench, lambda: bench.time_past(own, stream, lambda: own.copy(target, source, n, stream), CALLS)
    )
    own.close()
    return 2 * n / seconds


def measure(bench: Bench, case: Case, bandwidth: float) -> None:
    read = sum(x.nbytes for x in case.operands) if case.read is None else case.read
    moved = read + case.ours(*case.operands).nbytes
    samplers = [lambda: bench.time(lambda: case.ours(*case.operands), CALLS)]
    if bench.torch:
        tensors = [bench.shared(x) for x in case.operands]
        samplers.append(lambda: bench.time_torch(lambda: case.torchs(bench.torch, *tensors), CALLS))
    seconds, *peer = medians(bench, *samplers)
    printed = f"{moved / seconds * 1e-12:.2f} TB/s, {moved / seconds / bandwidth:.2f} of copy"
    figure = moved / seconds / bandwidth
    for of_torch in peer:
        printed += f"; torch {moved / of_torch / bandwidth:.2f}, {of_torch / seconds:.2f} of its speed"
        figure = of_torch / seconds if case.aim is OF_TORCH else figure
    bench.line(case.name, printed, figure, case.aim)


def main() -> None:
    bench = cuda_timing.opened(cuda_timing.parser(__doc__).parse_args())
    bandwidth = copy_bandwidth(bench)
    bench.line("copy", f"{bandwidth * 1e-12:.2f} TB/s read and written")
    n = bench.choose(1 << 26, 1 << 10)
    rows = bench.choose(1 << 14, 8)
    for case in flat_cases(n):
        measure(bench, case, bandwidth)
    for case in row_cases(rows, n // rows):
        measure(bench, case, bandwidth)
    words, width, tokens = (64, 32, 16) if bench.tiny else (1 << 17, 1 << 12, 1 << 16)
    measure(bench, embedding_case(words, width, tokens), bandwidth)
    measure(bench, rotary_case(tokens, *((2, 16) if bench.tiny else (32, 128))), bandwidth)


if __name__ == "__main__":
    main()
