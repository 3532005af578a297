"""dovetail env: versions, machine and settings, for a bug report."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

import click

from dovetail.cli import machine, runtime
from dovetail.cli.devices import print_trouble
from dovetail.cli.output import heading, human_bytes, json_option, print_json

_PREFIXES = ("DOVETAIL_", "OMP_", "OPENBLAS_", "MKL_", "DNNL_", "ONEDNN_", "ONEAPI_", "LD_", "PYTHON", "MALLOC_")
_SUFFIXES = ("_VISIBLE_DEVICES", "_SELECTOR")
_PACKAGES = ("numpy", "ml-dtypes", "importlib-metadata", "click", "rich")
_VENDORS = ("dovetail", "nvidia-", "intel-", "dpcpp-")  # prefixes of the packages that devices need


@click.command("env", short_help="Versions, machine and settings, for a bug report.")
@json_option
def command(as_json: bool) -> None:
    """Prints versions, the machine, every backend with its library and engines, and the relevant variables."""
    data = collect()
    if as_json:
        print_json(data)
    else:
        _print(data)


def collect() -> dict[str, Any]:
    from dovetail import __version__, _core, entry_points

    backends = runtime.backends()
    for backend in backends:
        if backend.get("devices"):
            backend["engines"] = runtime.engines(backend["devices"][0])
    major, minor, draft = _core.abi_version()
    return {
        "dovetail": {
            "version": __version__,
            "abi": f"{major}.{minor}" + (f" draft {draft}" if draft else ""),
            "module": _core.__file__,
            "threads": _core.num_threads(),
        },
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "executable": sys.executable,
            "packages": _packages(),
        },
        "system": machine.system(),
        "cpu": machine.cpu(),
        "backends": backends,
        "devices": runtime.devices(),
        "problems": list(entry_points.problems()),
        "environment": {
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith(_PREFIXES) or name.endswith(_SUFFIXES)
        },
    }


def _packages() -> dict[str, str]:
    import importlib_metadata

    found = {}
    for dist in importlib_metadata.distributions():
        name = (dist.name or "").lower().replace("_", "-")
        if name in _PACKAGES or name.startswith(_VENDORS):
            found.setdefault(name, dist.version)
    return dict(sorted(found.items()))


def _line(label: str, value: object) -> None:
    if value not in (None, "", [], {}):
        click.echo(f"  {label + ':':13}{value}")


def _print(data: dict[str, Any]) -> None:
    from dovetail import entry_points

    dovetail, python, system, cpu = data["dovetail"], data["python"], data["system"], data["cpu"]
    heading("dovetail")
    _line("version", dovetail["version"])
    _line("protocol", dovetail["abi"])
    _line("module", dovetail["module"])
    _line("threads", dovetail["threads"])
    heading("python")
    _line("version", f"{python['implementation']} {python['version']}")
    _line("executable", python["executable"])
    _line("packages", ", ".join(f"{name} {version}" for name, version in python["packages"].items()))
    heading("system")
    _line("os", system["os"])
    _line("kernel", f"{system['kernel']} {system['machine']}, {system['libc']}")
    _line("memory", human_bytes(system["memory"]))
    _line("gpu drivers", ", ".join(f"{name} {version}" for name, version in system["gpu_drivers"].items()))
    heading("cpu")
    quota = f", limited to {cpu['quota']:g}" if cpu["quota"] else ""
    _line("model", cpu["model"])
    _line("cpus", f"{cpu['usable']} usable of {cpu['logical']}{quota}")
    x86 = cpu["level"].startswith("x86-64")
    _line("level", cpu["level"] if x86 else None)  # elsewhere it is the architecture, which is printed above
    _line("features", " ".join(cpu["features"]))
    if x86:
        _line("amx", " ".join(cpu["amx"]) or "no")
        _line("avx512_fp16", "yes" if cpu["avx512_fp16"] else "no")
    heading("backends")
    for backend in data["backends"]:
        _print_backend(backend)
    if not data["backends"]:
        click.echo(f"  {entry_points.why_none()}")
    for problem in data["problems"]:
        click.echo(f"  {problem}")
    heading("environment")
    for name, value in data["environment"].items():
        click.echo(f"  {name}={value}")
    if not data["environment"]:
        click.echo("  no variable that matters is set")


def _print_backend(backend: dict[str, Any]) -> None:
    if backend["status"] != "ready":
        print_trouble(backend, "  ")
        return
    click.echo(f"  {backend['name']} {backend['version']}: {', '.join(backend['devices']) or 'no device found'}")
    if not backend["devices"]:
        _line("  why", backend["hint"])
    _line("  from", backend["distribution"] or backend["origin"])
    _line("  library", backend["library"])
    _line("  protocol", backend["abi"])
    _line("  build", backend["build_info"])
    engines = backend.get("engines", {})
    by_engine = ", ".join(f"{n} {engine}" for engine, n in sorted(engines.items()))
    _line("  kernels", f"{backend['n_kernels']}{by_engine and f' ({by_engine})'}")
    _line("  opened in", f"{backend['seconds'] * 1e3:.0f} ms")
