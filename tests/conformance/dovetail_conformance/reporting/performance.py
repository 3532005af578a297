"""The measured times, as lines of a table for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..results import Result


def lines(ceilings: dict[str, Any], timed: Iterable[Result]) -> Iterator[str]:
    """The ceilings, then every case that was timed."""
    for size, m in ceilings["memory"].items():
        rates = ", ".join(f"{what} {m[f'{what}_gb_per_s']:.4g}" for what in ("copy", "read", "write"))
        yield f"memory, {size} ({m['bytes'] / 2**20:.4g} MiB): {rates} GB/s"
    if products := ceilings["gemm_gflop_per_s"]:
        yield f"matmul: {', '.join(f'{dtype} {speed:.4g}' for dtype, speed in products.items())} GFLOP/s"
    rows = [_row(r) for r in timed if "time_s" in r.measured]
    if not rows:
        return
    rows = [("case", "time", "GB/s", "GFLOP/s", "of ceiling", ""), *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(6)]
    for name, *figures, bound in rows:
        text = "  ".join(figure.rjust(width) for figure, width in zip(figures, widths[1:]))
        yield f"{name:{widths[0]}}  {text}  {bound}".rstrip()


def _row(result: Result) -> tuple[str, ...]:
    m = result.measured
    compute = f"{m['gflop_per_s']:.2f}" if "gflop_per_s" in m else ""
    percent = f"{m['percent']:.0f} %" if "percent" in m else ""
    return result.id, _duration(m["time_s"]), f"{m['gb_per_s']:.2f}", compute, percent, m.get("bound", "")


def _duration(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"
