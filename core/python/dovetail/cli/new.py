"""dovetail new: a project for a device or a kernel pack, which builds, is discovered and passes."""

from __future__ import annotations

import keyword
import re
import shlex
from pathlib import Path
from typing import Any

import click

from dovetail.cli.app import PACKAGE

KINDS = {
    "simulated": "queues and memory of its own, as most accelerators have, simulated by worker threads",
    "host-memory": "kernels that run on the host and are done when they return",
    "python": "a prototype in Python, kernel by kernel",
}


@click.command("new", short_help="A project for a new device or kernel pack.")
@click.argument("name", required=False)
@click.option("--kind", type=click.Choice(list(KINDS)), help="What the device is like. Default: simulated.")
@click.option("--vendor", metavar="TEXT", help="Who makes it. Default: the name.")
@click.option("--compiler", is_flag=True, help="With a compiler: groups of ops become one launch. Not for python.")
@click.option("--pack", "pack_name", metavar="NAME", help="A kernel pack instead of a device.")
@click.option("--for", "device", metavar="BACKEND", help="The backend that the pack's kernels are for.")
@click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path), default=Path(), help="Where. Default: here."
)
@click.option("--defaults", is_flag=True, help="Ask nothing.")
def command(
    name: str | None,
    kind: str | None,
    vendor: str | None,
    compiler: bool,
    pack_name: str | None,
    device: str | None,
    output: Path,
    defaults: bool,
) -> None:
    """Writes ./NAME: sources, tests, a workflow for CI and a README with the next steps.

    \b
    dovetail new acme && pip install ./acme && dovetail conform --device acme --quick
    dovetail new --pack acme-fast --for cpu && pip install ./acme-fast
    """
    if (name is None) == (pack_name is None):
        raise click.UsageError("expected the name of a device, or --pack NAME --for BACKEND")
    if (pack_name is None) != (device is None):
        raise click.UsageError("--pack and --for go together: --pack acme-fast --for cpu")
    if pack_name and kind:
        raise click.UsageError("--kind is for devices: leave it out with --pack")
    given = pack_name or name or ""
    module = _module(given)
    if device and _module(device) == module:
        raise click.UsageError(f"--pack {given}: expected another name than the backend's, as '{given}-fast'")
    _no_wheel_of_that_name(module)
    if not defaults and click.get_text_stream("stdin").isatty():
        if not pack_name and kind is None:
            for choice, what in KINDS.items():
                click.echo(f"  {choice:12} {what}")
            kind = click.prompt("What is the device like?", type=click.Choice(list(KINDS)), default="simulated")
        vendor = vendor or click.prompt("Who makes it?", default=given)
    if compiler and (pack_name or kind == "python"):
        raise click.UsageError("--compiler is for devices in C++: leave it out with --pack and --kind python")
    at = output / given
    if at.exists() and (not at.is_dir() or any(at.iterdir())):
        raise click.UsageError(f"{at} is there already: choose another name, another --output, or remove it")
    if not re.fullmatch(r"[\w .,&()+-]{1,40}", vendor or given):
        raise click.UsageError(f"--vendor {vendor!r}: expected at most 40 letters, digits, spaces and .,&()+-")
    answers = {"name": module, "vendor": vendor or given, "device": _module(device or "cpu"), "compiler": compiler}
    _copy("pack" if pack_name else kind or "simulated", at, answers)
    _say_how_to_go_on(at, module, answers["device"] if pack_name else None)


def _module(name: str) -> str:
    """The name as a Python module's. Raises a usage error where the device protocol or Python would refuse it."""
    module = name.replace("-", "_")
    if not re.fullmatch("[a-z][a-z0-9_]{0,40}", module) or keyword.iskeyword(module):
        raise click.UsageError(f"{name!r} cannot be a name: expected lower-case letters, digits and -, as 'acme'")
    return module


def _no_wheel_of_that_name(module: str) -> None:
    """Refuses a name whose wheel is installed: pip would replace that device, or dovetail-conformance."""
    from importlib.metadata import PackageNotFoundError, version

    wheel = f"dovetail-{module.replace('_', '-')}"
    try:
        installed = version(wheel)
    except PackageNotFoundError:
        return
    raise click.UsageError(
        f"{wheel} {installed} is installed, and the project's wheel would replace it: choose another name, "
        f"or pip uninstall {wheel}"
    )


def _copy(kind: str, at: Path, answers: dict[str, Any]) -> None:
    try:
        from copier import run_copy
    except ImportError:
        raise click.ClickException(
            "`dovetail new` needs the package copier: pip install 'dovetail-runtime[new]' brings it"
        ) from None
    run_copy(str(PACKAGE / "templates" / kind), at, data=answers, defaults=True, quiet=True)


def _say_how_to_go_on(at: Path, module: str, device: str | None) -> None:
    files = sorted(path.relative_to(at) for path in at.rglob("*") if path.is_file())
    click.echo(f"{at}: {len(files)} files. Now:\n")
    click.echo(f"  pip install {shlex.quote(str(at) if at.is_absolute() else f'./{at}')}")
    if device:
        click.echo("  dovetail devices")
        click.echo(f'  dovetail conform --device {device} -k "{module} or hardswish"')
    else:
        click.echo(f"  dovetail conform --device {module} --quick")
        click.echo(f"  dovetail ops --device {module} --todo")
    click.echo(f"\n{at / 'README.md'} has the next steps.")
