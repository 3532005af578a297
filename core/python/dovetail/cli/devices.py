"""dovetail devices: the devices, and the backends that cannot be used."""

from __future__ import annotations

from typing import Any

import click

from dovetail.cli import runtime
from dovetail.cli.output import UNAVAILABLE, human_bytes, json_option, print_json, print_table


@click.command("devices", short_help="The devices, and why a backend has none.")
@json_option
def command(as_json: bool) -> None:
    """Lists the devices of every installed backend, then the backends that cannot be used, with cause and cure."""
    from dovetail import entry_points

    backends = runtime.backends()
    packs = runtime.packs()
    devices = runtime.devices()
    problems = list(entry_points.problems())
    if as_json:
        print_json({"devices": devices, "backends": backends, "packs": packs, "problems": problems})
    else:
        _print(devices, backends, packs, problems)
    if not devices:
        raise SystemExit(UNAVAILABLE)


def _print(
    devices: list[dict[str, Any]],
    backends: list[dict[str, Any]],
    packs: list[dict[str, Any]],
    problems: list[str],
) -> None:
    from dovetail import entry_points

    versions = {backend["name"]: _version(backend) for backend in backends if backend["status"] == "ready"}
    rows = [
        [
            device["device"],
            device["kind"],
            device.get("name", ""),
            device["arch"],
            human_bytes(device.get("mem_total")),
            f"{device['backend']} {versions.get(device['backend'], '')}".strip(),
        ]
        for device in devices
    ]
    if rows:
        print_table(["device", "kind", "name", "arch", "memory", "backend"], rows, right=["memory"])
    else:
        why = entry_points.why_none()
        click.echo("No device can be used." if backends else f"{why[0].upper()}{why[1:]}")
    for found in [*backends, *packs]:
        if found["status"] != "ready":
            click.echo()
        print_trouble(found)
        for note in found["notes"]:
            click.echo(f"{found['name']}: {note}")
    for problem in problems:
        click.echo(problem)


def _version(backend: dict[str, Any]) -> str:
    """The backend's version, then those of its kernel packs: "1.2.0 + fast 0.0.1"."""
    return " + ".join([backend.get("version", "?"), *(f"{p['name']} {p['version']}" for p in backend["packs"])])


def print_trouble(backend: dict[str, Any], indent: str = "") -> None:
    """Prints why a backend gives no device. Prints nothing for one that does."""
    if backend["status"] == "ready":
        if not backend.get("devices", True):
            why = backend["hint"] or "it finds none of its kind on this machine"
            click.echo(f"{indent}{backend['name']}: opened, but it has no device")
            click.echo(f"{indent}  {why}")
        return
    click.secho(f"{indent}{backend['name']}: {backend['status']}", bold=True)
    for label, key in (("from", "distribution"), ("origin",) * 2, ("library",) * 2, ("cause",) * 2, ("cure",) * 2):
        first, *more = str(backend[key]).splitlines() or [""]
        if first:
            click.echo(f"{indent}  {label + ':':9}{first}")
        for line in more:
            click.echo(f"{indent}  {'':9}{line}")
