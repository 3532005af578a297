"""What `dovetail bench --against` checks, runs and prints."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dovetail.cli.comparison import ceilings, figures, kinds, load, points
from dovetail.cli.comparison.measure import Comparison
from dovetail.cli.comparison.peers import PEERS
from dovetail.cli.comparison.processes import OURS, WorkerError
from dovetail.cli.output import INTERRUPTED, fail, heading, print_table, progress
from dovetail.entry_points.backend import did_you_mean

PRINTED = "-"  # as the file of --json


def run(
    names: tuple[str, ...],
    peers: Sequence[str],
    device: Any,
    threads: Sequence[int],
    seconds: float,
    points_file: Path | None,
    json_file: str | None,
    svg_file: Path | None,
) -> None:
    expect_peers(peers)
    try:
        chosen = points.select(points.read(points_file or points.DEFAULT), names)
    except points.PointError as error:
        raise click.UsageError(str(error)) from error
    _expect_no_op(json_file)
    _warn_of_many(threads)
    for option, file in (("--json", None if json_file == PRINTED else json_file), ("--svg", svg_file)):
        if file is not None:
            _expect_writable(option, Path(file))
    comparison = Comparison(chosen, peers, device.name, seconds)
    stopped_by = ""
    try:
        with _interrupted_by_sigterm(), progress(comparison.steps(threads)) as step:
            for n in threads:
                comparison.run(n, step)
    except KeyboardInterrupt as interrupt:
        stopped_by = str(interrupt) or "Ctrl-C"
    except WorkerError as error:
        fail(str(error))
    done, total = len(comparison.measured), len(chosen) * len(threads)
    if not done:  # files of an earlier run stay
        fail(f"stopped by {stopped_by} after 0 of {total} points: nothing is written", INTERRUPTED)
    report = comparison.as_dict(threads, not stopped_by)
    if json_file != PRINTED:
        show(report)
    _write(report, json_file, svg_file)
    if stopped_by:
        fail(f"stopped by {stopped_by} after {done} of {total} points", INTERRUPTED)
    if any(OURS in row["errors"] for row in report["points"]):
        raise SystemExit(1)


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """What `timeout` or a closing session ends keeps what it has measured, as after Ctrl-C."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt("SIGTERM")

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def expect_peers(peers: Sequence[str]) -> None:
    """Raises UsageError for a peer that is unknown or not installed."""
    for name in peers:
        if name not in PEERS:
            raise click.UsageError(f"there is no peer {name!r}{did_you_mean(name, list(PEERS))}")
        missing = [module for module in PEERS[name] if importlib.util.find_spec(module) is None]
        if missing:
            raise click.UsageError(
                f"{' and '.join(missing)} cannot be imported, which --against {name} needs: "
                "pip install 'dovetail-runtime[bench]'"
            )


def _expect_no_op(json_file: str | None) -> None:
    """Raises UsageError for `--json exp`, which would measure all and write a file of that name."""
    if json_file is not None and kinds.kind(json_file):
        raise click.UsageError(
            f"--json takes a FILE here, and {json_file} is an op: name ops before --json, or a file of that name "
            f"as .{os.sep}{json_file}"
        )


def _warn_of_many(threads: Sequence[int]) -> None:
    most, there = max(threads), len(load.processors())
    if most > there:
        click.echo(
            f"warning: {most} threads take turns on {there} processor{'s'[: there > 1]}; "
            f"--threads {there} has one for each",
            err=True,
        )


def _expect_writable(option: str, file: Path) -> None:
    """Raises UsageError for a file that could not be written when all is measured.

    Does not open it: the reader of a pipe would take its closing for the end.
    """
    if file.is_dir():
        cause = "it is a folder"
    elif not file.parent.is_dir():
        cause = f"there is no folder {file.parent}"
    elif not os.access(file if file.exists() else file.parent, os.W_OK):
        cause = "no permission"
    else:
        return
    raise click.UsageError(f"{option}: {file} cannot be written: {cause}; name another file")


def _write(report: dict[str, Any], json_file: str | None, svg_file: Path | None) -> None:
    text = json.dumps(report, indent=1)
    try:
        if json_file == PRINTED:
            click.echo(text)
        elif json_file is not None:
            Path(json_file).write_text(text + "\n", "utf-8")
        if svg_file is not None:
            from dovetail.cli.comparison.plot import svg

            svg_file.write_text(svg(report), "utf-8")
    except OSError as error:
        fail(f"{error.filename} cannot be written: {error.strerror}")


def show(report: dict[str, Any]) -> None:
    peers = [name for name in report["contenders"] if name != OURS]
    heading(f"{report['device']} next to " + ", ".join(f"{p} {report['contenders'][p]}" for p in peers))
    rows = report["points"]
    contenders = [OURS, *peers]
    numbers = ["threads", *contenders, "ratio", "ceiling"]
    print_table(
        ["op", "dtype", "shape", *numbers, "remarks"],
        [
            [
                row["op"],
                row["dtype"],
                row["label"],
                str(row["threads"]),
                *(duration(row["times"].get(name)) for name in contenders),
                "" if row["ratio"] is None else f"{row['ratio']:.2f}",
                "" if row["ceiling_percent"] is None else f"{row['ceiling_percent']:.0f} %",
                remarks(row),
            ]
            for row in rows
        ],
        right=numbers,
        spare=peers,
    )
    for threads, limits in report["ceilings"].items():
        click.echo(ceilings_line(threads, limits))
    for threads, summary in report["summary"].items():
        if summary["compared"] and (threads == "all" or summary["points"] < report["summary"]["all"]["points"]):
            click.echo(summary_line(threads, summary))
    for row in rows:
        for name, error in row["errors"].items():
            click.echo(f"{row['op']} {row['dtype']} {row['label']}, {row['threads']} threads, {name}: {error}")


def duration(times: dict[str, float] | None) -> str:
    if times is None:
        return ""
    seconds = times["min"]
    scale, unit = next(
        (s, u) for s, u, most in ((1e9, "ns", 1e-6), (1e6, "us", 1e-3), (1e3, "ms", 1e9)) if seconds < most
    )
    return f"{seconds * scale:.{0 if unit == 'ns' else 2}f} {unit}"


def remarks(row: dict[str, Any]) -> str:
    found = [f"{name} differs" for name in row["differs"]] + [f"{name} failed" for name in row["errors"]]
    return ", ".join([*found, *(["loaded"] if row["loaded"] else [])])


def ceilings_line(threads: str, limits: dict[str, Any]) -> str:
    """Of the levels; the sizes between them are in the JSON file."""
    levels = [(level, m) for level, m in limits["memory"].items() if level in ceilings.LEVELS]
    memory = [f"{level} {m['copy_gb_per_s']:.0f} GB/s" for level, m in levels]
    products = [f"{dtype} {rate:.0f}" for dtype, rate in limits["gflop_per_s"].items()]
    ending = f"; products {', '.join(products)} GFLOP/s" if products else ""
    return f"ceilings, threads {threads}: copies {', '.join(memory)}{ending}"


def summary_line(threads: str, summary: dict[str, Any]) -> str:
    which = "all" if threads == "all" else f"threads {threads}"
    text = (
        f"{which}: geometric mean {summary['geometric_mean']:.2f} of {summary['compared']} ratios (capped at "
        f"{figures.CAP:g}), {summary['behind']} below {figures.BEHIND:g}, the least {summary['worst']:.2f}"
    )
    return text + (f", {summary['loaded']} of {summary['points']} under load" if summary["loaded"] else "")
