"""`dovetail show --html`: one page without scripts, which asks the network for nothing.

Every name of the file is escaped, and what turns the direction of text or has no shape is spelled out. A content
security policy allows the page's own style sheet and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from html import escape

import dovetail
from dovetail.cli.output import human_bytes, printable
from dovetail.cli.program_graph import MOST_NODES, Box, svg
from dovetail.cli.program_view import WAYS, View, summary, ways_of_op

STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --soft: #5a6169; --paper: #fff; --line: #d5d9de; --edge: #8a929b;
  --kernel: #d3f0dc; --decomposition: #fbe7b5; --core: #e6e9ed; --control: #dfe4fb; --missing: #f9d0d0;
  --port: #cfe6fb; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #a3abb4; --paper: #16181b; --line: #383d43;
  --edge: #6f7780; --kernel: #17452a; --decomposition: #54420f; --core: #2c3138; --control: #2b3360;
  --missing: #661f1f; --port: #14395a; } }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { margin: .3rem 0; color: var(--soft); overflow-wrap: anywhere; }
td, svg text { font-family: ui-monospace, monospace; font-size: 13px; }
.scroll { overflow: auto; border: 1px solid var(--line); border-radius: 6px; }
.graph { max-height: 75vh; text-align: center; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: start; padding: .3rem .7rem; vertical-align: top; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
td.n { text-align: end; white-space: nowrap; } th { font-weight: 600; white-space: nowrap; }
tr:target td { outline: 2px solid var(--edge); }
.kernel { background: var(--kernel); } .decomposition { background: var(--decomposition); }
.core { background: var(--core); } .control { background: var(--control); } .missing { background: var(--missing); }
span { padding: .1rem .5rem; border-radius: 4px; color: var(--ink); margin-inline-end: .3rem; white-space: nowrap; }
svg rect { fill: var(--core); stroke: var(--edge); }
svg text { fill: var(--ink); text-anchor: middle; unicode-bidi: isolate; }
svg path { fill: none; stroke: var(--edge); stroke-width: 1.2; } svg a { text-decoration: none; }
svg .kernel rect { fill: var(--kernel); } svg .decomposition rect { fill: var(--decomposition); }
svg .control rect { fill: var(--control); } svg .missing rect { fill: var(--missing); }
svg .port rect { fill: var(--port); }
ul { margin: .3rem 0; padding-inline-start: 1.2rem; }
footer { margin-top: 2rem; color: var(--soft); font-size: 13px; }
"""


def render(view: View) -> str:
    """The page."""
    style = STYLE.strip()
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    sections = [_graph(view), *_missing(view), _ports(view), _ops(view), _nodes(view), _constants(view)]
    policy = f"default-src 'none'; style-src 'sha256-{allowed}'"
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        '<head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{_text(view.path.name)}</title>",
        f"<style>{style}</style></head>",
        "<body>",
        f"<h1>{_name(view.path.name)}</h1>",
        f"<p>program {_name(view.program.name)}: {_text(summary(view))}</p>",
        *sections,
        f"<footer>dovetail {_text(dovetail.__version__)}</footer>",
        "</body>",
        "</html>",
        "",
    ]
    return "\n".join(parts)


def _text(text: str) -> str:
    return escape(printable(text))


def _name(text: str) -> str:
    """A name of the file: its own direction, which ends with it."""
    return f"<bdi>{_text(text)}</bdi>"


def _table(heads: Sequence[str], rows: Iterable[str]) -> str:
    head = "".join(f"<th>{_text(h)}</th>" for h in heads)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _row(*cells: str, id: str = "") -> str:
    """A row of cells that are HTML; those of numbers begin with "#"."""
    tds = "".join(f'<td class="n">{c[1:]}</td>' if c.startswith("#") else f"<td>{c}</td>" for c in cells)
    return f'<tr id="{id}">{tds}</tr>' if id else f"<tr>{tds}</tr>"


# ---- sections ----------------------------------------------------------------------------------------------------


def _graph(view: View) -> str:
    key = "".join(f'<span class="{way}">{way}</span>' for way in WAYS if way in _ways_of(view))
    device = next(iter(view.ways), None)
    on = f"<p class=key>on {_name(device)}: {key}</p>" if device else "<p>no device was asked</p>"
    if len(view.rows) > MOST_NODES:
        return f"<h2>Graph</h2><p>it is not drawn, as it has more than {MOST_NODES:,} nodes</p>"
    drawn = svg(list(_boxes(view, device)))
    return f'<h2>Graph</h2>{on}<div class="scroll graph" tabindex="0">{drawn}</div>'


def _ways_of(view: View) -> set[str]:
    first = next(iter(view.ways.values()), ())
    return {way.how for way in first}


def _boxes(view: View, device: str | None) -> Iterator[Box]:
    """The inputs, the nodes, the outputs."""
    home: dict[int, int] = {}  # of each value, the box that makes it
    names = view.listing.names
    for i, name in enumerate(names):
        home[i] = i
        yield Box(_short(name), printable(f"{name}: {view.listing.type_of(i)}"), "port", "inputs", ())
    ways = view.ways[device] if device else None
    for i, row in enumerate(view.rows):
        home |= dict.fromkeys(row.results, len(names) + i)
        title = "\n".join(filter(None, [row.call, row.types, row.where, ways[i].text() if ways else ""]))
        kind = ways[i].how if ways else "core"
        yield Box(_short(row.op), printable(title), kind, f"n{i}", tuple(home[v] for v in row.operands))
    for k, output in enumerate(view.listing.json["outputs"]):
        if isinstance(output, int):
            yield Box(f"result {k}", printable(view.listing.type_of(output)), "port", "", (home[output],))


def _short(name: str) -> str:
    name = printable(name)
    return name if len(name) <= 28 else name[:27] + "\u2026"


def _missing(view: View) -> Iterator[str]:
    for device, nodes in view.missing().items():
        if nodes:
            items = "".join(f"<li>{_name(row.call)}: {_text(why)}</li>" for row, why in nodes)
            yield f"<h2>{_name(device)} cannot run {len(nodes)} of {len(view.rows)} nodes</h2><ul>{items}</ul>"
    for device, why in view.unknown.items():
        yield f"<p>{_name(device)}: {_text(why)}</p>"


def _ports(view: View) -> str:
    rows = [_row(_name(name), _name(view.listing.type_of(i))) for i, name in enumerate(view.listing.names)]
    guards = "".join(f"<li>{_name(guard)}</li>" for guard in view.listing.guards())
    made_for = f"<p>It is made for sizes for which these hold:</p><ul>{guards}</ul>" if guards else ""
    return f'<h2 id="inputs">Inputs</h2>{_table(["input", "dtype and sizes"], rows)}{made_for}'


def _ops(view: View) -> str:
    rows = [
        _row(_name(op), f"#{len(places)}", *(_text(ways_of_op(ways, places)) for ways in view.ways.values()))
        for op, places in view.ops().items()
    ]
    return f"<h2>Ops</h2>{_table(['op', 'calls', *view.ways], rows)}"


def _nodes(view: View) -> str:
    rows = []
    for i, row in enumerate(view.rows):
        ways = (ways[i] for ways in view.ways.values())
        cells = (f'<span class="{w.how}">{_text(w.text())}</span>' for w in ways)
        rows.append(_row(_name(row.call), _name(row.types), _name(row.where), *cells, id=f"n{i}"))
    return f"<h2>Nodes</h2>{_table(['call', 'result', 'line', *view.ways], rows)}"


def _constants(view: View) -> str:
    if not view.tensors:
        return ""
    rows = [
        _row(_name(t.name), _name(f"{t.dtype}[{', '.join(map(str, t.shape))}]"), f"#{human_bytes(t.bytes)}",
             _name(t.file))
        for t in view.tensors
    ]  # fmt: skip
    return f"<h2>Constants</h2>{_table(['constant', 'dtype and sizes', 'bytes', 'file'], rows)}"
