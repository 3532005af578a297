"""Recurrent networks against PyTorch's: python benchmarks/recurrent.py [--threads 1 2] [--seconds 0.5] [name ...]

Milliseconds of a call of one layer, the least of many, the two taking turns; `ratio` is ours over PyTorch's. L:
length of the sequence, N: batch, I: inputs, H: hidden. Names choose cases by their beginning.
"""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
from turns import least, main

SIZES = ((50, 1, 64, 128), (50, 16, 128, 256), (20, 32, 256, 512))  # L, N, I, H


def measure(names: list[str], seconds: float, threads: int) -> None:
    import dovetail as dt
    import torch
    from dovetail import nn

    torch.set_num_threads(threads)
    rng = np.random.default_rng(0)
    print(f"{'ms, threads: ' + str(threads):34}{'ours':>9}{'torch':>9}{'ratio':>8}")
    for kind, (length, batch, inputs, hidden) in product(("lstm", "gru"), SIZES):
        name = f"{kind} L={length} N={batch} I={inputs} H={hidden}"
        if names and not name.startswith(tuple(names)):
            continue
        theirs = getattr(torch.nn, kind.upper())(inputs, hidden)
        params = [dt.asarray(p.detach().numpy()) for p in theirs.parameters()]
        x, h = rng.standard_normal((length, batch, inputs), dtype=np.float32), dt.zeros((1, batch, hidden))
        given = dt.asarray(x), (h, h) if kind == "lstm" else h, params
        with torch.no_grad():
            times = least([partial(getattr(nn, kind), *given), partial(theirs, torch.asarray(x))], seconds)
        print(f"{name:34}{times[0] * 1e3:9.3f}{times[1] * 1e3:9.3f}{times[0] / times[1]:8.2f}", flush=True)


if __name__ == "__main__":
    main(__doc__, measure)
