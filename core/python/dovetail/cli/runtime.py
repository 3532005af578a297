"""The runtime's state for the commands."""

from __future__ import annotations

import warnings
from typing import Any

import click

from dovetail.cli.output import UNAVAILABLE, fail, printable


def import_ops() -> None:
    """Registers the ops of installed wheels, for commands that list all ops."""
    from dovetail import entry_points

    entry_points.import_ops()


def discover() -> None:
    """Opens the installed backends without warnings: the commands print the errors themselves."""
    from dovetail import entry_points

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", entry_points.BackendWarning)
        entry_points.discover()


def device(name: str | None) -> Any:
    """The device of that name, or the default one. Ends the command if it cannot be used.

    Prints which installed backends could not be opened if the default device might be another with them.
    """
    import dovetail
    from dovetail import entry_points

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            found = dovetail.device(name) if name else dovetail.default_device()
    except (ValueError, RuntimeError) as error:
        fail(str(error), UNAVAILABLE)
    if not name:
        for backend in entry_points.backends():
            if backend.status == "quarantined" and backend.distribution:
                click.echo(f"Warning: {printable(backend.explain())}", err=True)
    return found


def backends() -> list[dict[str, Any]]:
    """Every backend that was found, with the content of its table where it is open."""
    from dovetail import _core, entry_points

    discover()
    opened = {backend["name"]: backend for backend in _core.backends()}
    found = []
    for backend in entry_points.backends():
        known = backend.as_dict()
        if backend.status == "ready":
            known |= opened.get(backend.name, {})
        found.append(known)
    return found


def packs() -> list[dict[str, Any]]:
    """Every kernel pack that was found."""
    from dovetail import _core, entry_points

    discover()
    opened = {(b["name"], p["name"]): p for b in _core.backends() for p in b["packs"]}
    return [p.as_dict() | opened.get((p.device, p.name), {}) for p in entry_points.packs()]


def devices() -> list[dict[str, Any]]:
    from dovetail import _core

    discover()
    return [
        {"device": d.name, "backend": d.backend, "index": d.index, "kind": d.kind, "arch": d.arch} | d.properties
        for d in _core.devices()
    ]


def engines(device_name: str) -> dict[str, int]:
    """The number of kernels of each engine; kernels without an engine count as "own"."""
    from dovetail import _core

    found: dict[str, int] = {}
    for row in _core.kernel_table(device_name):
        engine = row["engine"] or "own"
        found[engine] = found.get(engine, 0) + 1
    return found
