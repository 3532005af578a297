"""dovetail ops --todo: the kernels worth writing next."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import click

from dovetail.cli.output import heading, print_table


def todo(words: dict[str, str], public: set[str], uses: dict[str, Counter[str]]) -> list[dict[str, Any]]:
    """The ops without a kernel in float32 on the device, first the one that speeds up most public functions.

    `words`: how each op runs there ("native", "decomposition", "core", "f32", "none", or "" where it has no
    float32). `uses`: the ops that each op's decomposition calls.
    Each dict has op, functions (the public functions that call it, directly or through decompositions) and launches
    (the kernels that one call of it launches now; None where it does not run at all).
    """

    @cache
    def launches(op: str) -> int:
        if words[op] == "decomposition":
            return sum(n * launches(inner) for inner, n in uses.get(op, {}).items())
        return 0 if words[op] == "core" else 1

    @cache
    def reached(op: str) -> frozenset[str]:
        """The op and every op that its decomposition calls on this device."""
        return frozenset({op}).union(*map(reached, uses.get(op, ())))

    found = []
    for op, word in words.items():
        if word not in ("decomposition", "none", "f32"):
            continue
        if word == "decomposition" and op not in public:  # a kernel for the op that calls it gains as much
            continue
        functions = sorted(f for f in public if words[f] and op in reached(f))
        runs = launches(op) if word == "decomposition" and op in uses else None
        if functions and (runs is None or runs > 1):
            found.append({"op": op, "functions": functions, "launches": runs})
    return sorted(found, key=lambda row: (-len(row["functions"]), -(row["launches"] or 1 << 30), row["op"]))


def decompositions(device: Any, names: list[str]) -> dict[str, Counter[str]]:
    """The ops that each op's decomposition calls, for its first float32 sample."""
    import dovetail
    from dovetail import _core
    from dovetail.schema import dtypes, registry

    found = {}
    with dovetail.device(device):
        for name in names:
            op = registry.get(name)  # an op of C++ has no samples
            if op is None or (call := first_sample(op, dtypes.float32)) is None:
                continue
            _, args, kwargs = call
            try:
                found[name] = Counter(_core.decomposition_ops(_core.op_function(name), *args, **kwargs))
            except NotImplementedError:  # no decomposition for these arguments
                continue
    return found


def first_sample(op: Any, dtype: Any) -> tuple[str, list[Any], dict[str, Any]] | None:
    """The op's name and the arguments of its first sample in this dtype, as arrays of the default device."""
    import numpy as np

    samples = (s for s in op.cases() if not s.error and dtype in (s.dtypes or op.dtypes))
    if (sample := next(samples, None)) is None:
        return None
    args, kwargs = sample.make(np.random.default_rng(0), dtype)
    return op.name, [*map(_to_array, args)], {k: _to_array(v) for k, v in kwargs.items()}


def _to_array(value: Any) -> Any:
    import numpy as np

    import dovetail

    if isinstance(value, np.ndarray):
        return dovetail.asarray(value)
    return type(value)(map(_to_array, value)) if isinstance(value, (list, tuple)) else value


def show(device: str, rows: list[dict[str, Any]]) -> None:
    if not rows:
        click.echo(f"{device}: every public function runs on one kernel already")
        return
    heading(f"{device}: {len(rows)} kernel{'s' if len(rows) != 1 else ''} to write, in float32")
    print_table(
        ["op", "speeds up", "launches now", "functions"],
        [
            [row["op"], str(len(row["functions"])), str(row["launches"] or "does not run"), _some(row["functions"])]
            for row in rows
        ],
        right=["speeds up", "launches now"],
    )


def _some(names: list[str], most: int = 4) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
