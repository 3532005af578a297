"""The runtime against the interpreter."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from dovetail.schema import dtypes as dt

from .document import expect, load_document
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
    with np.errstate(invalid="ignore"):
        g, w = got.astype(wide), want.astype(wide)
    finite = np.isfinite(w)
    if not np.array_equal(g[~finite], w[~finite], equal_nan=True) or not np.isfinite(g[finite]).all():
        return np.inf
    largest = np.abs(w[finite]).max(initial=0.0)
    part = dt.PART.get(d, d)
    return float(np.abs(g[finite] - w[finite]).max(initial=0.0) / (part.eps * max(largest, part.tiny)))


def run_on(device: str, program: Any, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the runtime returns for a .dvt file, or for a document or text without arrays."""
    import dovetail
    from dovetail import _core

    if isinstance(program, dict) or str(program).lstrip().startswith("{"):
        made = _core.program_from_text(program if isinstance(program, str) else json.dumps(program))
    else:
        made = _core.load_program(Path(program))
    arrays = [dovetail.asarray(x, device=device) for x in inputs]
    return [x.numpy() for x in made.run(device, arrays)]


def check_program(
    program: Any,
    inputs: Sequence[np.ndarray],
    device: str | None = None,
    *,
    run: Callable[[Sequence[np.ndarray]], Sequence[Any]] | None = None,
    tensors: dict[str, np.ndarray] | None = None,
    rounding: str = "last",
    tol: float = 64.0,
) -> list[Comparison]:
    """Compares the outputs of a program with the interpreter's: those on a device, or those that `run` returns.

    `program`: a document, its text, or the path of a .dvt file.
    """
    loaded = load_document(program, tensors)
    with np.errstate(invalid="ignore"):  # NaNs in another dtype
        want = interpret(loaded.document, inputs, loaded.tensors, rounding=rounding)
    if run is None:
        expect(device is not None, "expected a device, or a function that runs the program")
        made: Sequence[Any] = run_on(str(device), program, inputs)
    else:
        made = run(inputs)
    got = [np.asarray(x) for x in made]
    expect(len(got) == len(want), f"{len(got)} outputs: expected {len(want)}")
    return [
        Comparison(f"output {i}", w.dtype.name, w.shape, _error(g, w), 0.0 if w.dtype.kind in "biu" else tol)
        for i, (g, w) in enumerate(zip(got, want, strict=True))
    ]
