"""The plots of the report, as SVG that takes its colours from the page's style sheet.

matplotlib is imported when a plot is drawn, which is when a report is written.
"""

from __future__ import annotations

import io
import math
import re
from typing import TYPE_CHECKING, Any

from .summary import DTYPES, Cell, Json, quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# matplotlib needs colours, not variables: each first colour is replaced by the second.
INK, MUTED, LINE, BAD = "#010101", "#020202", "#030303", "#040404"
SERIES = tuple(f"#0505{i:02x}" for i in range(6))
VARIABLES = {INK: "--ink", MUTED: "--muted", LINE: "--line", BAD: "--bad"} | {
    colour: f"--series-{i}" for i, colour in enumerate(SERIES)
}
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "p", "h", "d")
STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "dovetail", "font.family": "sans-serif", "font.size": 8.5,
    "text.parse_math": False, "text.color": INK, "axes.labelcolor": MUTED, "axes.edgecolor": LINE,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True,
    "grid.color": LINE, "grid.linewidth": 0.6, "xtick.color": LINE, "ytick.color": LINE,
    "xtick.labelcolor": MUTED, "ytick.labelcolor": MUTED, "xtick.major.size": 0, "ytick.major.size": 0,
    "xtick.minor.size": 0, "ytick.minor.size": 0, "legend.frameon": False, "legend.labelcolor": INK,
    "legend.handletextpad": 0.2, "legend.columnspacing": 1.2, "axes.labelsize": 8.5,
}  # fmt: skip


def _look(dtypes: list[str]) -> dict[str, tuple[str, str]]:
    """A marker and a colour for each dtype: they differ without the colour too."""
    ordered = sorted(dtypes, key=lambda d: (DTYPES.index(d) if d in DTYPES else len(DTYPES), d))
    return {d: (MARKERS[i % len(MARKERS)], SERIES[i % len(SERIES)]) for i, d in enumerate(ordered)}


def _svg(figure: Figure, name: str) -> str:
    """The figure as an element of the page: its ids are its own, its colours the page's."""
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", text)
    text = re.sub(r"#0[1-5]0[0-9a-f]{3}", lambda m: f"var({VARIABLES[m[0]]})" if m[0] in VARIABLES else m[0], text)
    text = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", text)  # the family is the page's
    width, height = (math.ceil(72 * inches) for inches in figure.get_size_inches())
    return re.sub(r"<svg [^>]*>", _opening(width, height), text, count=1)


def _opening(width: int, height: int) -> str:
    """Shrinks a little on a small screen, then scrolls; never grows."""
    style = f"max-width: {1.3 * width:.0f}px; min-width: min({1.3 * width:.0f}px, 52rem)"
    return f'<svg viewBox="0 0 {width} {height}" style="{style}" aria-hidden="true">'


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def tolerance(found: dict[str, dict[str, Cell]]) -> str | None:
    """How much of its tolerance every op uses at worst, dtype by dtype; the tightest first."""
    used = {op: {dtype: w for dtype, cell in by_dtype.items() if (w := cell.worst())}
            for op, by_dtype in found.items()}  # fmt: skip
    ops = sorted((op for op in used if used[op]), key=lambda op: -max(used[op].values()))
    if not ops:
        return None
    from matplotlib import rc_context

    look = _look(list({dtype for op in ops for dtype in used[op]}))
    with rc_context(STYLE):
        figure, axes = _figure(max(4.0, 0.155 * len(ops) + 1.0), 4.2)
        axes.vlines(range(len(ops)), 0, [min(1.25, max(used[op].values())) for op in ops], color=LINE, linewidth=1)
        for series, (dtype, (marker, colour)) in enumerate(look.items()):
            aside = 0.6 * (series / max(1, len(look) - 1) - 0.5)  # equal errors stay apart
            points = [(i + aside, used[op][dtype]) for i, op in enumerate(ops) if dtype in used[op]]
            inside = [min(1.25, y) for _, y in points]
            axes.scatter([x for x, _ in points], inside, s=15, marker=marker, color=colour, linewidths=0,
                         label=dtype, zorder=3, clip_on=False)  # fmt: skip
        beyond = [i for i, op in enumerate(ops) if max(used[op].values()) > 1]
        axes.scatter(beyond, [1.25] * len(beyond), s=46, marker="o", facecolors="none", edgecolors=BAD,
                     linewidths=1.2, zorder=4, clip_on=False)  # fmt: skip
        axes.axhline(1, color=BAD, linewidth=1, linestyle=(0, (4, 2)))
        axes.set(xlim=(-0.8, len(ops) - 0.2), ylim=(0, 1.27), ylabel="worst error / tolerance")
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
        axes.set_xticks(range(len(ops)), ops, rotation=90, fontsize=7)
        axes.grid(visible=False, axis="x")
        figure.legend(loc="outside upper left", ncols=len(look), markerscale=1.3)
        return _svg(figure, "tolerance")


def roofline(measured: Json) -> str | None:
    """Arithmetic intensity against speed, below the ceilings of the same run."""
    points = [row for row in measured["rows"] if row.get("flops") and row.get("bytes") and row.get("gflop_per_s")]
    roofs, peaks = measured["roofs"], measured["ceilings"].get("gemm_gflop_per_s") or {}
    if not points or not roofs:
        return None
    from matplotlib import rc_context

    look = _look(list({row["dtype"] for row in points} | set(peaks)))
    intensities = [row["flops"] / row["bytes"] for row in points]
    left = min(intensities) / 2
    right = 2 * max([*intensities, *(4 * peak / min(roofs.values()) for peak in peaks.values())])
    with rc_context(STYLE):
        figure, axes = _figure(11.8, 4.8)
        for rate in roofs.values():
            end = max(peaks.values(), default=rate * right) / rate
            axes.plot([left, end], [left * rate, end * rate], color=MUTED, linewidth=1.2)
        for dtype, peak in peaks.items():
            axes.plot([peak / max(roofs.values()), right], [peak, peak], color=look[dtype][1], linewidth=1.2)
        for dtype, (marker, colour) in look.items():
            own = [(x, row["gflop_per_s"]) for x, row in zip(intensities, points) if row["dtype"] == dtype]
            axes.scatter([x for x, _ in own], [y for _, y in own], s=24, marker=marker, color=colour, linewidths=0,
                         label=dtype if own else None, zorder=3)  # fmt: skip
        _name_extremes(axes, intensities, points)
        axes.set(xscale="log", yscale="log", xlim=(left, right), xlabel="arithmetic intensity, FLOP per byte",
                 ylabel="GFLOP/s")  # fmt: skip
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:,g}")
        figure.legend(loc="outside upper left", ncols=len(look), markerscale=1.2)
        _name_ceilings(figure, axes, roofs, peaks)
        return _svg(figure, "roofline")


def _name_ceilings(figure: Figure, axes: Axes, roofs: dict[str, float], peaks: dict[str, float]) -> None:
    """The labels of slopes lie on them, those of the tops to their right, without overlap."""
    figure.draw_without_rendering()  # places are known from here on
    left, right = axes.get_xlim()
    for name, rate in roofs.items():
        x = math.sqrt(left * min(right, min(peaks.values(), default=right * rate) / rate))
        (x0, y0), (x1, y1) = axes.transData.transform([(x, x * rate), (2 * x, 2 * x * rate)])
        slope = math.degrees(math.atan2(y1 - y0, x1 - x0))
        axes.annotate(f"{name} {quantity(rate)} GB/s", (x, x * rate), (0, 5), textcoords="offset points",
                      color=MUTED, rotation=slope, rotation_mode="anchor")  # fmt: skip
    above = -math.inf
    for dtype, peak in sorted(peaks.items(), key=lambda item: item[1]):
        y = 72 / figure.dpi * axes.transData.transform((right, peak))[1]
        above = max(y - 3, above + 10)
        axes.annotate(f"matmul {dtype}: {quantity(peak)}", (right, peak), (5, above - y), color=INK,
                      textcoords="offset points", annotation_clip=False)  # fmt: skip


def _name_extremes(axes: Axes, intensities: list[float], points: list[Json]) -> None:
    """Names the best and the worst op of each intensity's decade: all names would cover each other."""
    named: dict[Any, int] = {}
    for i, x in enumerate(intensities):
        decade, speed = math.floor(math.log10(x)), points[i]["gflop_per_s"]
        for end, better in (("top", 1), ("bottom", -1)):
            at = named.get((decade, end))
            if at is None or better * speed > better * points[at]["gflop_per_s"]:
                named[decade, end] = i
    for (decade, end), i in named.items():
        if end == "bottom" and named[decade, "top"] == i:
            continue
        axes.annotate(points[i]["op"], (intensities[i], points[i]["gflop_per_s"]), (5, 3 if end == "top" else -9),
                      textcoords="offset points", color=INK, fontsize=7.5)  # fmt: skip
