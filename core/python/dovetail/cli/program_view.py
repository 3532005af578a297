"""What a program's file has, for `dovetail show`: as data, and as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dovetail._program import Program
from dovetail._program_text import Listing, Row
from dovetail.cli.output import human_bytes, printable
from dovetail.schema import dtypes

WAYS = ("kernel", "decomposition", "core", "control", "missing")  # how a device runs a node


class Tensor(NamedTuple):
    """A constant of the program."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    file: str  # the file of weights that has it; "" for the program's own


class Way(NamedTuple):
    """How one device runs a node."""

    how: str
    engine: str
    missing: str

    def text(self) -> str:
        return f"{self.how} {self.engine}".strip() if self.how == "kernel" else self.how


class View(NamedTuple):
    """A file's program: its parts, and how devices run its nodes."""

    path: Path
    program: Program
    listing: Listing
    rows: tuple[Row, ...]
    tensors: tuple[Tensor, ...]
    ways: dict[str, tuple[Way, ...]]  # by device, in the order of the nodes
    unknown: dict[str, str]  # devices for which no sizes were found: why

    @property
    def bytes(self) -> int:
        return sum(t.bytes for t in self.tensors)

    def missing(self) -> dict[str, list[tuple[Row, str]]]:
        """Of each device the nodes that it cannot run, with the reason."""
        return {
            device: [(row, way.missing) for row, way in zip(self.rows, ways, strict=True) if way.how == "missing"]
            for device, ways in self.ways.items()
        }

    def ops(self) -> dict[str, list[int]]:
        """The places of the nodes of each op, most frequent ops first."""
        found: dict[str, list[int]] = {}
        for i, row in enumerate(self.rows):
            found.setdefault(row.op, []).append(i)
        return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


def view_of(
    path: Path, program: Program, devices: Sequence[str], sizes: Sequence[Sequence[int]] | None = None
) -> View:
    """The program and how these devices run it, for inputs of these sizes or such as it takes."""
    listing = Listing(program, (), ())
    ways: dict[str, tuple[Way, ...]] = {}
    unknown: dict[str, str] = {}
    for device in devices:
        try:
            ways[device] = tuple(Way(*way) for way in program._core.ways(device, sizes))
        except (ValueError, IndexError) as why:
            unknown[device] = str(why)
    tensors = tuple(_tensor(name, entry) for name, entry in listing.json.get("tensors", {}).items())
    return View(path, program, listing, tuple(listing.rows()), tensors, ways, unknown)


def _tensor(name: str, entry: dict[str, Any]) -> Tensor:
    bits = dtypes.by_name[entry["dtype"]].bits
    shape = tuple(entry["shape"])
    return Tensor(name, entry["dtype"], shape, -(-math.prod(shape) * bits // 8), entry.get("file", ""))


# ---- text --------------------------------------------------------------------------------------------------------


def counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def summary(view: View) -> str:
    """One line: nodes, ops, constants."""
    parts = [
        counted(len(view.rows), "node"),
        counted(len(view.ops()), "op"),
        counted(len(view.tensors), "constant"),
    ]
    return ", ".join(parts) + (f" of {human_bytes(view.bytes)}" if view.bytes else "")


def text_of(view: View) -> Iterator[str]:
    """The program and how devices run its ops."""
    yield printable(f"{view.path.name}: {summary(view)}")
    for line in view.listing.lines():
        yield printable(line)
    devices = list(view.ways)
    if view.rows and devices:
        yield ""
        table = [["op", "calls", *devices]]
        table += [[op, str(len(places)), *(ways_of_op(view.ways[d], places) for d in devices)]
                  for op, places in view.ops().items()]  # fmt: skip
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        for row in table:
            yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    for device, nodes in view.missing().items():
        for row, why in nodes:
            yield printable(f"{device} cannot run {row.call}: {why}")
    for device, why in view.unknown.items():
        yield printable(f"{device}: {why}")


def ways_of_op(ways: Sequence[Way], places: Sequence[int]) -> str:
    """How a device runs the nodes of one op: "kernel onednn", or "kernel 3, decomposition 1"."""
    counts: dict[str, int] = {}
    for place in places:
        text = ways[place].text()
        counts[text] = counts.get(text, 0) + 1
    return next(iter(counts)) if len(counts) == 1 else ", ".join(f"{text} {n}" for text, n in counts.items())


def data_of(view: View) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "file": str(view.path),
        "program": view.program.name,
        "inputs": [port._asdict() for port in view.program.inputs],
        "constants": [t._asdict() for t in view.tensors],
        "guards": list(view.listing.guards()),
        "nodes": [
            {
                "op": row.op,
                "call": row.call,
                "types": row.types,
                "where": row.where,
                "devices": {device: ways[i]._asdict() for device, ways in view.ways.items()},
            }
            for i, row in enumerate(view.rows)
        ],
        "unknown": view.unknown,
    }
