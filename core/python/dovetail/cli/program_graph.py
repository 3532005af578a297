"""A program's graph as SVG: values flow down, each node below all that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

CHARACTER, HEIGHT, GAP, ROW = 7.8, 26, 14, 60  # pixels
MOST_BULGE = 180.0  # pixels that a long edge may swing aside
MOST_NODES = 3000  # a larger graph is not drawn: it could not be read


class Box(NamedTuple):
    """An input, a node or an output of the graph."""

    label: str
    title: str  # shown where the mouse rests
    kind: str  # a class of the style sheet
    link: str  # the id of the element that describes it; "" without one
    takes: tuple[int, ...]  # the boxes that it has its values from


def svg(boxes: Sequence[Box]) -> str:
    """The drawing, with a link and a title on each box."""
    rows = _rows(boxes)
    placed = _placed(boxes, rows)
    aside = max(
        (_bulge(placed[i], to) for box, to in zip(boxes, placed, strict=True) for i in box.takes), default=0
    )
    width = max((x + w for x, _, w in placed), default=0) + aside + GAP
    height = len(rows) * ROW
    parts = [f'<svg width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}" role="img" '
             f'aria-label="the graph of {len(boxes)} inputs, nodes and outputs">']  # fmt: skip
    for box, to in zip(boxes, placed, strict=True):
        parts += [f'<path d="{_curve(placed[i], to)}"/>' for i in dict.fromkeys(box.takes)]
    for box, (x, y, w) in zip(boxes, placed, strict=True):
        shape = (
            f'<g class="{escape(box.kind)}"><title>{escape(box.title)}</title>'
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{HEIGHT}" rx="5"/>'
            f'<text x="{x + w / 2:.1f}" y="{y + 17:.1f}">{escape(box.label)}</text></g>'
        )
        parts.append(f'<a href="#{escape(box.link)}">{shape}</a>' if box.link else shape)
    parts.append("</svg>")
    return "\n".join(parts)


def _rows(boxes: Sequence[Box]) -> list[list[int]]:
    """The boxes of each row: one below the lowest of those that it takes. In each, near what it takes."""
    level: list[int] = []
    for box in boxes:
        level.append(1 + max((level[i] for i in box.takes), default=-1))
    rows: list[list[int]] = [[] for _ in range(max(level, default=-1) + 1)]
    for i, at in enumerate(level):
        rows[at].append(i)
    place: dict[int, float] = {}
    for row in rows:
        row.sort(key=lambda i: _mean([place[k] for k in boxes[i].takes], len(row) / 2))
        place |= {i: k - len(row) / 2 for k, i in enumerate(row)}
    return rows


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _placed(boxes: Sequence[Box], rows: Sequence[Sequence[int]]) -> list[tuple[float, float, float]]:
    """x, y and width of each box."""
    widths = [max(40.0, len(box.label) * CHARACTER + 18) for box in boxes]
    of_rows = [sum(widths[i] for i in row) + GAP * (len(row) + 1) for row in rows]
    middle = max(of_rows, default=0) / 2
    placed = [(0.0, 0.0, 0.0)] * len(boxes)
    for depth, (row, width) in enumerate(zip(rows, of_rows, strict=True)):
        x = middle - width / 2 + GAP
        for i in row:
            placed[i] = (x, depth * ROW + (ROW - HEIGHT) / 2, widths[i])
            x += widths[i] + GAP
    return placed


def _bulge(start: tuple[float, float, float], end: tuple[float, float, float]) -> float:
    """How far an edge swings to the right of what lies between: nothing for one to the next row."""
    passed = round((end[1] - start[1]) / ROW) - 1
    return min(24.0 + 10 * passed, MOST_BULGE) if passed > 0 else 0.0


def _curve(start: tuple[float, float, float], end: tuple[float, float, float]) -> str:
    x0, y0 = start[0] + start[2] / 2, start[1] + HEIGHT
    x1, y1 = end[0] + end[2] / 2, end[1]
    bend, aside = min((y1 - y0) / 2, 2.0 * ROW), _bulge(start, end)
    if not aside:
        return f"M{x0:.1f} {y0:.1f}C{x0:.1f} {y0 + bend:.1f} {x1:.1f} {y1 - bend:.1f} {x1:.1f} {y1:.1f}"
    side, middle = max(x0 + start[2] / 2, x1 + end[2] / 2) + aside, (y0 + y1) / 2
    return (
        f"M{x0:.1f} {y0:.1f}C{x0:.1f} {y0 + HEIGHT} {side:.1f} {y0:.1f} {side:.1f} {middle:.1f}"
        f"S{x1:.1f} {y1 - HEIGHT:.1f} {x1:.1f} {y1:.1f}"
    )
