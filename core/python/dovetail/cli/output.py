"""Tables and JSON: coloured on a terminal, plain text elsewhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import click

UNAVAILABLE = 3
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

# Colours that cells may be given; on a terminal only.
Style = Callable[[str], str]


def fail(message: str, code: int = 1) -> NoReturn:
    click.echo(f"dovetail: {message}", err=True)
    raise SystemExit(code)


def print_json(data: Any) -> None:
    click.echo(json.dumps(data, indent=2, default=str))


def is_terminal() -> bool:
    return sys.stdout.isatty()


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = (), style: Style | None = None
) -> None:
    """`right`: columns that are aligned to the right. `style`: a rich style for a cell's text, or ""."""
    if is_terminal():
        _print_rich(columns, rows, right, style)
        return
    widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]
    for row in [columns, *rows]:
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, cell, width in zip(columns, row, widths)
        ]
        click.echo("  ".join(cells).rstrip())


def _print_rich(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str], style: Style | None
) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, style=style(cell) if style else "") for cell in row))
    Console().print(table)


def heading(text: str) -> None:
    click.secho(text, bold=True)


def human_bytes(count: float | None) -> str:
    if not count:
        return "?"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if count >= 10 or unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
