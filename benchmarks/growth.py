"""How the time of an op grows with its operands: nanoseconds per element, over five decades of sizes.

    python benchmarks/growth.py [OP ...] [--against torch,numpy] [--threads 1] [--sizes 100 1000 ...]
                                [--seconds 0.1] [--svg growth.svg] [--json growth.json]

Contenders take turns as in `dovetail bench --against`. A matrix of s * s elements is square; of a matrix product
the time is that per multiplication. Where an element takes over 1.5 times as long as at both sizes before, a step
is printed: one is due where operands leave a cache; any other is a cliff. The picture has a curve for each
contender, both axes logarithmic.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dovetail.cli.comparison import plot
from dovetail.cli.comparison.measure import Contest
from dovetail.cli.comparison.points import Point
from dovetail.cli.comparison.processes import OURS

SIZES = [round(100 * 10 ** (i / 3)) for i in range(16)]
STEP = 1.5
Row = dict[str, Any]  # op, size, and by contender: ns per element


def flat(op: str, **fields: Any) -> Callable[[int], Point]:
    return lambda n: Point(op, "float32", (n,), **fields)


def square(op: str, **fields: Any) -> Callable[[int], Point]:
    return lambda n: Point(op, "float32", (math.isqrt(n), math.isqrt(n)), **fields)


OPS = {
    "add": flat("add"),
    "exp": flat("exp"),
    "gelu": flat("gelu"),
    "sum": flat("sum", axis=0),
    "max": square("max", axis=1),
    "softmax": square("softmax"),
    "layer_norm": square("layer_norm"),
    "transpose": square("transpose", perm=(1, 0)),
    "sort": flat("sort", axis=0),
    "matmul": square("matmul"),
}


def work(point: Point) -> int:
    """What the time is divided by: elements, or multiplications."""
    return math.prod(point.shape) * (point.shape[0] if point.op == "matmul" else 1)


def measure(ops: Sequence[str], sizes: Sequence[int], contest: Contest, seconds: float) -> list[Row]:
    rows = []
    for op in ops:
        for size in sizes:
            point = OPS[op](size)
            found = contest.measure(point, seconds)
            if error := found["errors"].get(OURS):
                raise SystemExit(f"{op} of {point.label}: {error}")
            times = {name: t["min"] / work(point) * 1e9 for name, t in found["times"].items()}
            rows.append({"op": op, "size": math.prod(point.shape), "ns": times})
            print(
                f"{op:12}{rows[-1]['size']:>10}" + "".join(f"  {n} {t:9.4f} ns" for n, t in times.items()),
                flush=True,
            )
    return rows


def curves(rows: Sequence[Row], op: str) -> dict[str, list[tuple[int, float]]]:
    """By contender: sizes and ns per element."""
    found: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        for name, ns in row["ns"].items():
            if row["op"] == op:
                found.setdefault(name, []).append((row["size"], ns))
    return found


def steps(curve: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Sizes at which an element takes over STEP times as long as at both sizes before, and how many times."""
    found = []
    for i in range(1, len(curve)):
        growth = curve[i][1] / max(ns for _, ns in curve[max(0, i - 2) : i])
        if growth > STEP:
            found.append((curve[i][0], growth))
    return found


# ---- the picture: a panel for each op ----------------------------------------------------------------------------

WIDE, HIGH, LEFT, TOP = 420, 200, 60, 60  # of a panel, and of what is around it


def svg(rows: Sequence[Row]) -> str:
    ops = list(dict.fromkeys(row["op"] for row in rows))
    contenders = list(dict.fromkeys(name for row in rows for name in row["ns"]))
    colours = {name: plot.COLOURS[i % len(plot.COLOURS)] for i, name in enumerate(contenders)}
    width, height = 2 * (LEFT + WIDE) + LEFT, TOP + (len(ops) + 1) // 2 * (HIGH + TOP)
    size = f'width="{width}" height="{height}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}">']
    parts.append(f'<style>{plot.STYLE}</style><rect {size} fill="#fff"/>')
    parts.append(plot.label(LEFT, 24, "nanoseconds per element, by number of elements", "title"))
    for i, name in enumerate(contenders):
        parts.append(f'<circle cx="{LEFT + 4 + 110 * i}" cy="38" r="4" fill="{colours[name]}"/>')
        parts.append(plot.label(LEFT + 13 + 110 * i, 42, name))
    for i, op in enumerate(ops):
        parts += panel(op, curves(rows, op), colours, LEFT + i % 2 * (LEFT + WIDE), TOP + i // 2 * (HIGH + TOP))
    return "\n".join([*parts, "</svg>"]) + "\n"


def decades(values: Sequence[float]) -> tuple[int, int]:
    low = math.floor(math.log10(min(values)))
    return low, max(low + 1, math.ceil(math.log10(max(values))))


def panel(
    op: str,
    lines: Mapping[str, Sequence[tuple[int, float]]],
    colours: Mapping[str, str],
    left: float,
    top: float,
) -> list[str]:
    points = [point for line in lines.values() for point in line]
    (x0, x1), (y0, y1) = (decades([point[axis] for point in points]) for axis in (0, 1))

    def x(value: float) -> float:
        return left + WIDE * (math.log10(value) - x0) / (x1 - x0)

    def y(value: float) -> float:
        return top + HIGH - HIGH * (math.log10(value) - y0) / (y1 - y0)

    parts = [plot.label(left + WIDE / 2, top - 6, op, anchor="middle")]
    for at in range(x0, x1 + 1):
        parts.append(line_of([(x(10**at), top), (x(10**at), top + HIGH)], 'class="grid"'))
        parts.append(plot.label(x(10**at), top + HIGH + 14, f"1e{at}", "quiet", "middle"))
    for at in range(y0, y1 + 1):
        parts.append(line_of([(left, y(10.0**at)), (left + WIDE, y(10.0**at))], 'class="grid"'))
        parts.append(plot.label(left - 6, y(10.0**at) + 4, f"{10.0**at:g}", "quiet", "end"))
    for name, line in lines.items():
        style = f'fill="none" stroke="{colours[name]}" stroke-width="1.8"'
        parts.append(line_of([(x(n), y(ns)) for n, ns in line], style))
    return parts


def line_of(points: Sequence[tuple[float, float]], style: str) -> str:
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{places}" {style}/>'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", nargs="*", metavar="OP", help=f"of {', '.join(OPS)}; without, all")
    parser.add_argument("--against", default="", help="torch, numpy or onnxruntime, with commas between them")
    parser.add_argument("--device")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of elements, ascending")
    parser.add_argument("--seconds", type=float, default=0.1, help="for each contender at each size")
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if unknown := [op for op in options.ops if op not in OPS]:
        parser.error(f"there is no growth of {unknown[0]!r}; choose from {', '.join(OPS)}")
    contest = Contest([n for n in options.against.split(",") if n], options.threads, options.device)
    try:
        rows = measure(options.ops or list(OPS), options.sizes, contest, options.seconds)
    finally:
        contest.close()
    for op in dict.fromkeys(row["op"] for row in rows):
        for size, growth in steps(curves(rows, op)[OURS]):
            print(f"{op}: a step at {size} elements, an element takes {growth:.2f} times as long")
    if options.svg:
        options.svg.write_text(svg(rows), "utf-8")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
