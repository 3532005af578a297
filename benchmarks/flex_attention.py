"""flex_attention against scaled_dot_product_attention: python benchmarks/flex_attention.py [--threads 1 2] [name]

Milliseconds of a call in float32, the least of many, the two taking turns; `ratio` is flex_attention's over that of
the other, which is causal where the mask is, and else sees all keys. Names choose cases by their beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from turns import least, main

SIZES = ((1, 8, 1024, 64), (1, 8, 4096, 64))  # batch, heads, queries and keys, size
DOCUMENTS, WINDOW = 8, 256


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def window(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx <= WINDOW)


def soft_cap(s, b, h, q_idx, kv_idx):
    import dovetail as dt

    return 20.0 * dt.tanh(s / 20.0)


def cases(heads: int, length: int) -> Iterator[tuple[str, Any, Any, bool]]:
    """(name, score_mod, mask_mod, whether the reference is causal)."""
    import dovetail as dt

    slopes = dt.asarray(2.0 ** -np.arange(1, heads + 1, dtype=np.float32))
    documents = dt.asarray(np.arange(length) * DOCUMENTS // length)

    def alibi(s, b, h, q_idx, kv_idx):
        return s + slopes[h] * (kv_idx - q_idx)

    def document(b, h, q_idx, kv_idx):
        return (documents[q_idx] == documents[kv_idx]) & (q_idx >= kv_idx)

    def prefix(b, h, q_idx, kv_idx):
        return (kv_idx < length // 8) | (q_idx >= kv_idx)

    yield "full", None, None, False
    yield "causal", None, causal, True
    yield "alibi causal", alibi, causal, True
    yield "soft cap causal", soft_cap, causal, True
    yield "prefix", None, prefix, False
    yield f"window {WINDOW}", None, window, False
    yield f"alibi window {WINDOW}", alibi, window, False
    yield f"document {DOCUMENTS}", None, document, False


def contenders(operands: Any, score_mod: Any, mask_mod: Any, is_causal: bool) -> list[Callable[[], Any]]:
    from dovetail import nn

    length = operands[0].shape[2]
    mask = mask_mod and nn.create_block_mask(mask_mod, None, None, length, length)
    return [
        lambda: nn.flex_attention(*operands, score_mod, mask).numpy(),
        lambda: nn.scaled_dot_product_attention(*operands, is_causal=is_causal).numpy(),
    ]


def measure(names: list[str], seconds: float, threads: int) -> None:
    import dovetail as dt

    rng = np.random.default_rng(0)
    print(f"{'ms, threads: ' + str(threads):34}{'flex':>9}{'sdpa':>9}{'ratio':>8}")
    for size in SIZES:
        operands = [dt.asarray(rng.standard_normal(size, dtype=np.float32)) for _ in range(3)]
        for name, *case in cases(size[1], size[2]):
            if names and not name.startswith(tuple(names)):
                continue
            times = least(contenders(operands, *case), seconds)
            label = f"{name} {'x'.join(map(str, size))}"
            print(f"{label:34}{times[0] * 1e3:9.3f}{times[1] * 1e3:9.3f}{times[0] / times[1]:8.2f}", flush=True)


if __name__ == "__main__":
    main(__doc__, measure)
