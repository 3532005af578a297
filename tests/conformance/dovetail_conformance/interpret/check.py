"""The runtime against the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from dovetail.schema import dtypes as dt

from .document import Loaded, expect, load_document
from .dtype_rules import cast
from .interpreter import dtype_named, interpret


class Comparison(NamedTuple):
    """One output. Errors of floats are in units of eps * (the largest magnitude of the output)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    error: float  # inf: a NaN, an infinity, an integer, the shape or the dtype differs
    tol: float

    @property
    def ok(self) -> bool:
        return self.error <= self.tol


def seeded_inputs(program: Any, seed: int = 0, sizes: dict[str, int] | None = None) -> list[np.ndarray]:
    """Random arrays for the declared inputs; sizes that may vary are drawn, those of one name once."""
    rng = np.random.default_rng(seed)
    named = dict(sizes or {})
    made = []
    for i, declared in enumerate(load_document(program).document["inputs"]):
        expect("dtype" in declared, f"input {i} takes any array: pass inputs")
        shape = [
            named.setdefault(n, int(rng.integers(1, 6))) if isinstance(n, str) else n
            for n in (int(rng.integers(1, 6)) if n is None else n for n in declared["shape"])
        ]
        d = dtype_named(declared["dtype"])
        x = rng.integers(0, 2 if d.kind == "b" else 4, shape) if d.kind in "biu" else rng.normal(size=shape)
        made.append(cast(np.asarray(x), d))
    return made


def _error(got: np.ndarray, want: np.ndarray) -> float:
    if got.shape != want.shape or got.dtype != want.dtype:
        return np.inf
    d = dt.of(got)
    if d.kind not in "fc":
        return 0.0 if np.array_equal(got, want) else np.inf
    wide = np.complex128 if d.kind == "c" else np.float64
    g, w = got.astype(wide), want.astype(wide)
    finite = np.isfinite(w)
    if not np.array_equal(g[~finite], w[~finite], equal_nan=True) or not np.isfinite(g[finite]).all():
        return np.inf
    largest = np.abs(w[finite]).max(initial=0.0)
    part = dt.PART.get(d, d)
    return float(np.abs(g - w)[finite].max(initial=0.0) / (part.eps * max(largest, part.tiny)))


def check_program(
    program: Any,
    inputs: Sequence[np.ndarray],
    run: Callable[[Loaded, Sequence[np.ndarray]], Sequence[Any]],
    tensors: dict[str, np.ndarray] | None = None,
    *,
    rounding: str = "last",
    tol: float = 64.0,
) -> list[Comparison]:
    """Compares what `run` returns for a program and its inputs with the interpreter, output by output."""
    loaded = load_document(program, tensors)
    want = interpret(loaded.document, inputs, loaded.tensors, rounding=rounding)
    got = [np.asarray(x) for x in run(loaded, inputs)]
    expect(len(got) == len(want), f"{len(got)} outputs: expected {len(want)}")
    return [
        Comparison(f"output {i}", w.dtype.name, w.shape, _error(g, w), 0.0 if w.dtype.kind in "biu" else tol)
        for i, (g, w) in enumerate(zip(got, want, strict=True))
    ]
