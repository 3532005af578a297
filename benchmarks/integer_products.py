"""Products of bytes, and with a wider dtype, against PyTorch: python benchmarks/integer_products.py

Milliseconds, the least of many, all taking turns of a few calls each: PyTorch's threads keep spinning after a call.
`torch` is torch._int_mm of int8 or, for bfloat16, torch.mm(out_dtype=float32) where PyTorch has it on a CPU and
else torch.mm in bfloat16; `float32` is torch.mm in that. `ratio` is the time of `torch` over ours. x2.T: x2 is the
transpose of a row-major matrix, as nn.Linear has it. Names choose cases by their beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from turns import least, main

SIZES = ((512, 512, 512), (1024, 1024, 1024), (1, 4096, 4096))


def cases(m: int, k: int, n: int, turned: bool) -> Iterator[tuple[str, list[Callable[[], Any]]]]:
    """Ours and PyTorch's calls of one size."""
    import dovetail as dt
    import torch

    rng = np.random.default_rng(0)
    x, y = (
        rng.integers(-128, 127, shape, np.int8, endpoint=True) for shape in ((m, k), (n, k) if turned else (k, n))
    )
    a, b = torch.tensor(x), torch.tensor(y).T if turned else torch.tensor(y)
    floats = a.float(), b.float().T.contiguous().T if turned else b.float()
    halves = tuple(t.bfloat16() for t in floats)

    def ours(values: np.ndarray, dtype: Any) -> Any:
        made = dt.asarray(values, dtype=dtype)
        return dt.matrix_transpose(made) if turned and values is y else made

    def mm() -> Any:
        return torch.mm(*floats)

    s1, s2, u1 = ours(x, dt.int8), ours(y, dt.int8), ours(x.view(np.uint8), dt.uint8)
    zero1, zero2 = dt.asarray(np.full(m, 7), dtype=dt.uint8), dt.asarray(np.full(n, 3), dtype=dt.int8)
    h1, h2 = ours(x, dt.bfloat16), ours(y, dt.bfloat16)
    assert (dt.matmul_integer(s1, s2).numpy() == torch._int_mm(a, b).numpy()).all()
    peers = [lambda: torch._int_mm(a, b), mm]
    yield "int8, int8", [lambda: dt.matmul_integer(s1, s2), *peers]
    yield "uint8, int8", [lambda: dt.matmul_integer(u1, s2), *peers]
    yield "uint8, int8, zero points", [lambda: dt.matmul_integer(u1, s2, zero1, zero2), *peers]

    def wide() -> Any:
        return torch.mm(*halves, out_dtype=torch.float32)

    try:
        wide()
        peer = wide
    except (NotImplementedError, RuntimeError, TypeError):
        peer = lambda: torch.mm(*halves)  # noqa: E731
    yield "bfloat16 to float32", [lambda: dt.matmul(h1, h2, dtype=dt.float32), peer, mm]


def measure(names: list[str], seconds: float, threads: int) -> None:
    import torch

    torch.set_num_threads(threads)
    print(f"{'ms, threads: ' + str(threads):42} {'ours':>8} {'torch':>8} {'float32':>8} {'ratio':>6}")
    for size in SIZES:
        for turned in (False, True):
            for name, contenders in cases(*size, turned):
                label = f"{'x'.join(map(str, size))}{' x2.T' if turned else ''} {name}"
                if names and not label.startswith(tuple(names)):
                    continue
                times = least(contenders, seconds)
                text = " ".join(f"{t * 1e3:8.3f}" for t in times)
                print(f"{label:42} {text} {times[1] / times[0]:6.2f}", flush=True)


if __name__ == "__main__":
    main(__doc__, measure)
