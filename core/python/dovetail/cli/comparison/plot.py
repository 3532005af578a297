"""The points of a comparison as one picture: SVG, written without a library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from dovetail.cli.comparison import figures
from dovetail.cli.comparison.processes import OURS

_ROW, _TOP, _LABELS, _RATIOS, _SHARES, _GAP, _EDGE = 17, 92, 330, 420, 150, 60, 24
_LEAST, _MOST = 0.25, 4.0  # of the axis of ratios; what is beyond is drawn at the edge
COLOURS = ("#1f6f8b", "#d1603d", "#6a8d3a", "#7b5ea7")  # by number of threads
STYLE = """text { font: 11px system-ui, sans-serif; fill: #222 } .title { font-size: 16px; font-weight: 600 }
.quiet { fill: #777 } .grid { stroke: #ddd } .even { stroke: #555; stroke-width: 1.5 } .stripe { fill: #f5f6f7 }"""


def svg(report: Mapping[str, Any]) -> str:
    """A line for each point: its ratio to the best peer, on a logarithmic axis, and its share of the ceiling."""
    rows = report["points"]
    names = list(dict.fromkeys(_name(row) for row in rows))
    threads = sorted({row["threads"] for row in rows})
    width, height = _LABELS + _RATIOS + _GAP + _SHARES + _EDGE, _TOP + _ROW * max(1, len(names)) + _EDGE
    size = f'width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}">',
        f'<style>{STYLE}</style><rect {size} fill="#fff"/>',
        *_heading(report, threads),
        *_axes(),
        *(_line(i, name, i % 2) for i, name in enumerate(names)),
        *_grid(height - _EDGE),
        *(mark for row in rows for mark in _marks(row, names.index(_name(row)), threads)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['op']}  {row['dtype']}  {row['label']}"


def label(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    """An element of SVG: `text` at a place, of a class of STYLE."""
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>{escape(text)}</text>'


def _x(ratio: float) -> float:
    """Of a ratio on the axis."""
    inside = min(max(ratio, _LEAST), _MOST)
    return _LABELS + _RATIOS * math.log(inside / _LEAST) / math.log(_MOST / _LEAST)


def _share_x(percent: float) -> float:
    return _LABELS + _RATIOS + _GAP + _SHARES * min(percent, 100) / 100


def _heading(report: Mapping[str, Any], threads: Sequence[int]) -> list[str]:
    peers = ", ".join(f"{name} {version}" for name, version in report["contenders"].items() if name != OURS)
    parts = [label(_EDGE, 28, f"{OURS} next to {peers}", "title")]
    x = float(_EDGE)
    for n in threads:
        summary = report["summary"][str(n)]
        mean = summary["geometric_mean"]
        found = "" if mean is None else f": mean {mean:.2f}, {summary['behind']} behind"
        text = f"{n} thread{'s'[: n > 1]}{found}"
        parts.append(f'<circle cx="{x + 4:.1f}" cy="44" r="4" fill="{_colour(n, threads)}"/>')
        parts.append(label(x + 13, 48, text))
        x += 60 + 6.2 * len(text)
    note = f"geometric mean, ratios capped at {figures.CAP:g}; behind: below {figures.BEHIND:g}; hollow: under load"
    return [*parts, label(x, 48, note, "quiet")]


def _colour(n: int, threads: Sequence[int]) -> str:
    return COLOURS[list(threads).index(n) % len(COLOURS)]


_TICKS = (0.25, 0.5, 0.9, 1.0, 2.0, 4.0)


def _axes() -> list[str]:
    beyond = {_LEAST: "≤ ", _MOST: "≥ "}
    ticks = [label(_x(r), _TOP - 8, f"{beyond.get(r, '')}{r:g}", "quiet", "middle") for r in _TICKS if r != 0.9]
    shares = [label(_share_x(p), _TOP - 8, f"{p} %", "quiet", "middle") for p in (0, 50, 100)]
    titles = [(_x(1), "time of the best peer, divided by ours"), (_share_x(50), "of the machine's ceiling")]
    return [*ticks, *shares, *(label(x, _TOP - 24, title, "", "middle") for x, title in titles)]


def _grid(bottom: float) -> list[str]:
    places = [(_x(r), "even" if r == 1 else "grid") for r in _TICKS] + [(_share_x(p), "grid") for p in (0, 50, 100)]
    return [f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}" class="{kind}"/>' for x, kind in places]


def _line(index: int, name: str, striped: int) -> str:
    y = _TOP + _ROW * index
    width = _LABELS + _RATIOS + _GAP + _SHARES
    stripe = f'<rect x="{_EDGE / 2}" y="{y}" width="{width}" height="{_ROW}" class="stripe"/>' if striped else ""
    return stripe + label(_LABELS - 14, y + _ROW - 5, name, anchor="end")


def _marks(row: Mapping[str, Any], index: int, threads: Sequence[int]) -> list[str]:
    colour, y = _colour(row["threads"], threads), _TOP + _ROW * index
    found = []
    if row["ratio"] is not None:
        fill = f'fill="#fff" stroke="{colour}" stroke-width="1.5"' if row["loaded"] else f'fill="{colour}"'
        title = f"{_name(row)}, {row['threads']} threads: {row['ratio']:.2f} of {row['best_peer']}"
        found.append(
            f'<circle cx="{_x(row["ratio"]):.1f}" cy="{y + _ROW / 2}" r="4" {fill} fill-opacity="0.85">'
            f"<title>{escape(title)}</title></circle>"
        )
    if row["ceiling_percent"] is not None:
        high = (_ROW - 5) / len(threads)
        top = y + 2.5 + high * list(threads).index(row["threads"])
        wide = _share_x(row["ceiling_percent"]) - _share_x(0)
        found.append(
            f'<rect x="{_share_x(0):.1f}" y="{top:.1f}" width="{wide:.1f}" height="{high:.1f}" fill="{colour}"/>'
        )
    return found
