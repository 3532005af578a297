"""dovetail ops: how each op runs on a device, by dtype; the arguments of its kernels."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from dovetail.cli import runtime
from dovetail.cli.output import device_option, heading, json_option, print_json, print_table

# How an op runs on a device in one dtype. "": the schema does not declare it for that dtype.
MARKS = {"native": "N", "decomposition": "d", "f32": "f", "core": "c", "none": ".", "": ""}
WORDS = {"decomposition": "by decomposition", "f32": "in float32", "core": "by the core", "none": "not at all"}
LEGEND = "N native kernel   d decomposition   f computed in float32   c core, by a view or copies   . none"
READING = (
    "x? may be NULL, x... is repeated; attributes by number, with the kind of dvt_attr (I64: DVT_A_I64;\n"
    "NUMBER: BOOL, I64, U64, F64 or F64S) and, in parentheses, what the host makes of the caller's value.\n"
    "Row names begin with dvt. whatever namespace the function is in."
)
_STYLES = {"N": "green", "d": "cyan", "f": "cyan", "c": "dim", ".": "red"}


@click.command("ops", short_help="How each op runs on a device, by dtype.")
@device_option
@click.option("-k", "expression", metavar="TEXT", default="", help="Only ops whose name contains TEXT.")
@click.option("--private", is_flag=True, help="Also the ops that only decompositions use.")
@click.option("--todo", "wants_todo", is_flag=True, help="The kernels worth writing next, the best first.")
@click.option("--signatures", is_flag=True, help="How a kernel's row names each op, and what its call holds.")
@json_option
def command(
    device_name: str | None, expression: str, private: bool, wants_todo: bool, signatures: bool, as_json: bool
) -> None:
    """Shows for every op and dtype whether the device has a kernel, runs the op's decomposition, or has neither.

    With --todo: the kernels that the device lacks, first the one that speeds up most public functions.
    With --signatures: what `dvt::Row` and the kernel of each op need, on any device.
    """
    if signatures:
        _signatures(expression, private, as_json)
        return
    device = runtime.device(device_name)
    runtime.import_ops()
    if wants_todo:
        _todo(device, expression, as_json)
        return
    rows = [row for row in support(device.name) if expression in row["op"] and (private or not row["private"])]
    if not rows:
        raise click.UsageError(f"no op's name contains {expression!r}")
    if as_json:
        print_json({"device": device.name, "ops": rows})
    else:
        _print(device.name, rows)


def _todo(device: Any, expression: str, as_json: bool) -> None:
    from dovetail.cli.todo import decompositions, show, todo

    every = _declared(device.name)
    uses = decompositions(device, [row["op"] for row in every if row["dtypes"]["f32"] == "decomposition"])
    _check_decompositions(device.name, every)
    words = {row["op"]: row["dtypes"]["f32"] for row in every}
    public = {row["op"] for row in every if not row["private"]}
    found = [row for row in todo(words, public, uses) if expression in row["op"]]
    if as_json:
        print_json({"device": device.name, "todo": found})
    else:
        show(device.name, found)


def _signatures(expression: str, private: bool, as_json: bool) -> None:
    from dovetail.schema import registry
    from dovetail.schema.signature import signature

    runtime.import_ops()
    ops = [o for o in registry.values() if expression in o.name and (private or not o.spec.private)]
    found = {f"{o.spec.space}.{o.name}".lstrip("."): signature(o) for o in sorted(ops, key=lambda o: o.name)}
    if not found:
        raise click.UsageError(f"no op's name contains {expression!r}")
    if as_json:
        print_json(
            {"signatures": [{"op": name} | (s.as_dict() if s else {"row": None}) for name, s in found.items()]}
        )
        return
    print_table(
        ["op", "row(inputs) and attributes"],
        [[name, str(s or "served by the core, which looks no row up")] for name, s in found.items()],
    )
    click.echo(READING)


def support(device_name: str) -> list[dict[str, Any]]:
    """How each op runs on the device, by dtype."""
    rows = _declared(device_name)
    _check_decompositions(device_name, rows)
    return rows


def _declared(device_name: str) -> list[dict[str, Any]]:
    """As support(), but some decompositions may need kernels that the device lacks."""
    from dovetail import _core
    from dovetail.schema import registry

    table: dict[str, list[dict[str, Any]]] = {}
    for row in _core.kernel_table(device_name):
        table.setdefault(row["op"], []).append(row)
    dtypes = list(_core.dtypes.values())
    found = []
    for op in sorted(_core.ops(), key=lambda op: (op["space"], op["name"])):
        rows = table.get(op["name"], [])
        declared = registry.get(op["name"])
        meant = {dtype.name for dtype in (declared.dtypes if declared else dtypes)}
        if declared and declared.spec.of_complex:
            meant |= {"complex64", "complex128"}
        answers = _core.support(device_name, op["name"])
        found.append(
            {
                "op": op["name"],
                "space": op["space"],
                "must": op["must"],
                "private": op["private"],
                "kernels": len(rows),
                "engines": sorted({row["engine"] for row in rows if row["engine"]}),
                "dtypes": {d.brief: _cell(*answers.get(d.brief, ("", False)), d.name in meant) for d in dtypes},
            }
        )
    return found


def _check_decompositions(device_name: str, rows: list[dict[str, Any]]) -> None:
    """Marks decompositions that need a kernel which the device lacks as "none". Traces them, runs none."""
    import dovetail
    from dovetail.cli.todo import first_sample
    from dovetail.schema import dtypes, registry

    if not any(word == "none" for row in rows for word in row["dtypes"].values()):
        return
    before = dovetail.fallback("error")
    try:
        with dovetail.device(device_name):
            for row in rows:
                for brief, word in row["dtypes"].items():
                    if word not in ("decomposition", "f32") or row["op"] not in registry:
                        continue
                    if (call := first_sample(registry[row["op"]], dtypes.by_name[brief])) and _is_missing(*call):
                        row["dtypes"][brief] = "none"
    finally:
        dovetail.fallback(before)


def _is_missing(op: str, args: list[Any], kwargs: dict[str, Any]) -> bool:
    from dovetail import _core

    try:
        return bool(_core.missing_kernel(_core.op_function(op), *args, **kwargs))
    except NotImplementedError:
        return True


def _cell(word: str, cast: bool, meant: bool) -> str:
    """Shows a dtype that the op is not declared for only where a kernel of its own serves it."""
    return word if meant or (word == "native" and not cast) else ""


def _print(device: str, rows: list[dict[str, Any]]) -> None:
    from dovetail.schema.dtypes import STORED

    stored = {d.brief for d in STORED}  # with which no op computes
    dtypes = [d for d in rows[0]["dtypes"] if d not in stored and any(row["dtypes"][d] for row in rows)]
    # Each op counts once: in float32, or in the first dtype it is declared for.
    counts = Counter(next((row["dtypes"][d] for d in ("f32", *dtypes) if row["dtypes"][d]), "") for row in rows)
    printed = ", ".join(f"{counts[word]} {WORDS.get(word, word)}" for word in MARKS if word and counts[word])
    heading(f"{device}: {len(rows)} ops: {printed}")
    print_table(
        ["op", *dtypes, "engines"],
        [
            [
                f"{row['space']}.{row['op']}".lstrip("."),
                *(MARKS[row["dtypes"][dtype]] for dtype in dtypes),
                " ".join(row["engines"]),
            ]
            for row in rows
        ],
        spare=[dtype for dtype in dtypes if dtype.startswith("f8")],
        style=lambda cell: _STYLES.get(cell, ""),
    )
    click.echo(LEGEND)
    click.echo("Blank: not declared for that dtype; a call may still run, computed in another.")
