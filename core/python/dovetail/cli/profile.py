"""dovetail profile: runs a Python program and writes a trace of what it does on devices."""

from __future__ import annotations

import runpy
import sys
import traceback
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from dovetail.cli.output import INTERRUPTED, fail, json_option, print_json

FILE = "dovetail-profile.json"


@click.command(
    "profile",
    short_help="Run a Python program and write a trace of its ops, kernels, copies and memory.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("--output", "-o", "path", type=click.Path(), default=FILE, show_default=True, help="The trace.")
@click.option("--module", "-m", "as_module", is_flag=True, help="PROGRAM is a module, as in python -m.")
@json_option
@click.argument("program")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def command(path: str, as_module: bool, as_json: bool, program: str, args: tuple[str, ...]) -> None:
    """Runs PROGRAM with its arguments, prints a table of ops, and writes a trace.

    ui.perfetto.dev and chrome://tracing open the trace. It is also written where the program fails or is stopped by
    Ctrl-C. The exit code is the program's.
    """
    import dovetail

    if not as_module and not Path(program).exists():
        raise click.UsageError(f"there is no file {program!r}; for a module add -m")
    if as_module and not _is_module(program):
        raise click.UsageError(f"there is no module {program!r}")
    recorder = dovetail.profile(path)
    try:
        recorder.__enter__()
    except OSError as error:
        raise click.UsageError(f"{error.strerror}: {error.filename}") from None
    code, error = 0, None
    try:
        _run(program, args, as_module)
    except SystemExit as end:
        code, error = _exit_code(end.code), None
    except KeyboardInterrupt as stop:
        code, error = INTERRUPTED, stop
    except BaseException as failure:
        code, error = 1, failure
        traceback.print_exception(type(failure), failure, _own_frames(failure.__traceback__))
    try:
        recorder.__exit__(type(error) if error else None, error, None)
    except KeyboardInterrupt:
        code = INTERRUPTED
    summary = recorder.summary()
    if as_json:
        print_json(
            {"trace": path, "seconds": summary.seconds, "ops": summary.rows, "peak_bytes": summary.peak_bytes}
        )
    else:
        click.echo(summary)
        click.echo(f"trace: {path}; open it in ui.perfetto.dev or chrome://tracing")
    if code == INTERRUPTED:
        fail("stopped by Ctrl-C; the trace has what was recorded until then", INTERRUPTED)
    if code:
        raise SystemExit(code)


def _is_module(name: str) -> bool:
    """Whether its first part is found: only importing that would tell more."""
    first = name.partition(".")[0]
    return PathFinder.find_spec(first, ["", *sys.path]) is not None or find_spec(first) is not None


def _run(program: str, args: tuple[str, ...], as_module: bool) -> None:
    argv, path = sys.argv, list(sys.path)
    sys.argv = [program, *args]
    sys.path.insert(0, "" if as_module else str(Path(program).resolve().parent))
    try:
        if as_module:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(program, run_name="__main__")
    finally:
        sys.argv, sys.path[:] = argv, path


def _exit_code(code: Any) -> int:
    if code is None or isinstance(code, int):
        return code or 0
    click.echo(code, err=True)
    return 1


def _own_frames(trace: Any) -> Any:
    """The traceback without the frames of this command and of runpy."""
    hidden = (__file__, runpy.__file__, "<frozen runpy>")
    while trace is not None and trace.tb_next is not None and trace.tb_frame.f_code.co_filename in hidden:
        trace = trace.tb_next
    return trace
