"""Tables and JSON: coloured on a terminal, plain text elsewhere."""

from __future__ import annotations

import itertools
import json
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any, NoReturn

import click

UNAVAILABLE, INTERRUPTED = 3, 130
LINE_SECONDS = 30  # between two lines of progress, where there is no terminal
device_option = click.option(
    "--device",
    "-d",
    "device_name",
    metavar="NAME",
    help="As `dovetail devices` lists it. Default: the default device.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

# The colour of a cell, on a terminal only.
Style = Callable[[str], str]


def fail(message: str, code: int = 1) -> NoReturn:
    click.echo("\n".join(map(printable, f"Error: {message}".split("\n"))), err=True)  # names in it are of a file
    raise SystemExit(code)


def printable(text: str) -> str:
    """Text of a file for a terminal or a page: what moves the cursor or turns the direction is spelled out."""
    return "".join(c if not unicodedata.category(c).startswith("C") else _escaped(c) for c in text)


def _escaped(c: str) -> str:
    code = ord(c)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


def print_json(data: Any) -> None:
    click.echo(json.dumps(data, indent=2, default=str))


def is_terminal() -> bool:
    return sys.stdout.isatty()


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    spare: Sequence[str] = (),
    style: Style | None = None,
) -> None:
    """`right`: columns that are aligned to the right. `spare`: columns that a narrow terminal leaves out, and that
    a line below the table then lists. `style`: a rich style for a cell's text, or "".

    A column with nothing in it is left out.
    """
    columns, rows = _part([i == 0 or any(row[i] for row in rows) for i in range(len(columns))], columns, rows)
    if is_terminal():
        _print_rich(columns, rows, right, spare, style)
        return
    widths = _widths(columns, rows)
    for row in [columns, *rows]:
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, cell, width in zip(columns, row, widths)
        ]
        click.echo("  ".join(cells).rstrip())


def _part(kept: Sequence[bool], columns: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list, list]:
    return list(itertools.compress(columns, kept)), [list(itertools.compress(row, kept)) for row in rows]


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]


def _print_rich(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[str],
    spare: Sequence[str],
    style: Style | None,
) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()

    def is_narrow() -> bool:
        return sum(_widths(columns, rows)) + 3 * len(columns) > console.width

    left_out = [c for c in columns if c in spare] if is_narrow() else []
    columns, rows = _part([c not in left_out for c in columns], columns, rows)
    widths, narrow = _widths(columns, rows), is_narrow()
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=not narrow)
    table.padding = (0, 0) if narrow else (0, 1)
    for column, width in zip(columns, widths):
        # Short cells are not wrapped on a narrow terminal: a table of marks would break into letters.
        side = "right" if column in right else "left"
        table.add_column(column, justify=side, overflow="fold", min_width=width if width < 8 else None)
    for row in rows:
        table.add_row(*(Text(cell, style=style(cell) if style else "") for cell in row))
    console.print(table)
    if left_out:
        click.echo(f"not shown, as the terminal is narrow: {', '.join(left_out)}")


@contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """Yields a function that shows the next step, and about how long the rest takes.

    On a terminal the line disappears at the end; elsewhere there is one on stderr every half minute.
    """
    count, begin = itertools.count(), monotonic()

    def line(text: str) -> str:
        done, spent = next(count), monotonic() - begin
        left = f", {_rounded(spent / done * (total - done))} left" if done and spent > 5 else ""
        return f"{done} of {total} measured{left}, now {text}"

    if not sys.stderr.isatty():
        shown = begin

        def show(text: str) -> None:
            nonlocal shown
            made = line(text)
            if monotonic() - shown >= LINE_SECONDS:
                click.echo(made, err=True)
                shown = monotonic()

        yield show
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield lambda text: status.update(line(text))


def _rounded(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


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
