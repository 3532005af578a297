"""Linear algebra against NumPy and PyTorch: python benchmarks/linalg.py [--threads 1 2] [--seconds 0.5] [name ...]

Milliseconds of a call, the least of many, the three taking turns: each has a LAPACK of its own. `numpy` and
`torch` are our time over theirs. Names choose cases by their beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from turns import least, main

SHAPES = ((8, 8), (64, 64), (512, 512), (1000, 4, 4), (100, 32, 32))


def cases() -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    rng = np.random.default_rng(0)
    for dtype in ("float32", "float64", "complex128"):
        for shape in SHAPES:
            x = rng.standard_normal(shape)
            if dtype.startswith("complex"):
                x = x + 1j * rng.standard_normal(shape)
            positive = x @ np.swapaxes(x, -1, -2).conj() + shape[-1] * np.eye(shape[-1])
            label = f"{dtype} {shape}"
            yield f"cholesky {label}", (positive.astype(dtype),)
            yield f"solve {label}", (positive.astype(dtype), x.astype(dtype))
            for name in ("inv", "qr", "eigh", "svd"):
                yield f"{name} {label}", ((positive if name == "eigh" else x).astype(dtype),)


def measure(names: list[str], seconds: float, threads: int) -> None:
    import dovetail as dt
    import torch

    torch.set_num_threads(threads)
    print(f"{'ms, threads: ' + str(threads):34}{'ours':>9}{'numpy':>8}{'torch':>8}")
    for name, arrays in cases():
        if names and not name.startswith(tuple(names)):
            continue
        called = name.split()[0]
        contenders = [
            partial(getattr(dt.linalg, called), *map(dt.asarray, arrays)),
            partial(getattr(np.linalg, called), *arrays),
            partial(getattr(torch.linalg, called), *map(torch.asarray, arrays)),
        ]
        mine, *others = least(contenders, seconds)
        print(f"{name:34}{mine * 1e3:9.3f}" + "".join(f"{mine / t:8.2f}" for t in others), flush=True)


if __name__ == "__main__":
    main(__doc__, measure)
