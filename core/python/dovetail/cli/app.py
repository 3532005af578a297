"""The commands, and how wheels add theirs.

Exit codes: 0 ok, 1 failed, 2 usage, 3 device unavailable, 130 Ctrl-C.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import click

import dovetail as dovetail_package
from dovetail.cli.output import INTERRUPTED, fail
from dovetail.entry_points.settings import VARIABLES

PACKAGE = Path(str(dovetail_package.__file__)).parent
GROUP = "dovetail.cli"
COMMAND_NAMES = ("devices", "env", "ops", "bench", "profile", "new", "show", "run", "build")
# The module of each command. It is imported when the command is called, and for its line of help.
COMMANDS = {name: f"dovetail.cli.{name}" for name in COMMAND_NAMES}
# Commands of other wheels, which the help lists even where they are not installed.
ELSEWHERE = {"conform": "dovetail-conformance", "fuzz-compile": "dovetail-conformance"}


class Commands(click.Group):
    """Our own commands, then those that wheels bring in the entry-point group dovetail.cli."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*COMMANDS, *ELSEWHERE, *(point.name for point in _entry_points())})

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands like click, but one that cannot be loaded with its error."""
        lines = []
        for name in self.list_commands(ctx):
            try:
                command = self.get_command(ctx, name)
            except click.ClickException as error:
                lines.append((name, error.message))
            else:
                lines.append((name, command.get_short_help_str(80) if command else ""))
        with formatter.section("Commands"):
            formatter.write_dl(lines)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in COMMANDS:
            command: click.Command = importlib.import_module(COMMANDS[name]).command
            return command
        for point in _entry_points():
            if point.name == name:
                return _foreign(name, point)
        return _absent(name, ELSEWHERE[name]) if name in ELSEWHERE else None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # click would end with 1
            fail("stopped by Ctrl-C", INTERRUPTED)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None:
            from dovetail.entry_points.backend import did_you_mean

            ctx.fail(f"there is no command {args[0]!r}{did_you_mean(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


def _entry_points() -> Any:
    import importlib_metadata

    return importlib_metadata.entry_points(group=GROUP)


def _foreign(name: str, point: Any) -> click.Command:
    try:
        found = point.load()
    except Exception as error:
        raise click.ClickException(
            f"command {name!r} of {point.dist.name} {point.dist.version} cannot be loaded: "
            f"{type(error).__name__}: {error}"
        ) from error
    if isinstance(found, click.Command):
        return found

    @click.command(name, add_help_option=False, context_settings={"ignore_unknown_options": True})
    @click.argument("args", nargs=-1, type=click.UNPROCESSED)
    @click.pass_context
    def hand_over(ctx: click.Context, args: tuple[str, ...]) -> None:
        ctx.exit(found(list(args)))

    hand_over.short_help = (found.__doc__ or "").strip().partition("\n")[0]
    return hand_over


def _absent(name: str, wheel: str) -> click.Command:
    settings = {"ignore_unknown_options": True}

    @click.command(name, short_help=f"Not installed: pip install {wheel}", context_settings=settings)
    @click.argument("args", nargs=-1, type=click.UNPROCESSED)
    def explain(args: tuple[str, ...]) -> None:
        raise click.UsageError(f"`dovetail {name}` is in a wheel of its own: pip install {wheel}")

    return explain


def _answer(text: Any) -> Any:
    def callback(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted and not ctx.resilient_parsing:
            click.echo(text())
            ctx.exit()

    return callback


def _flag(name: str, text: Any, help: str) -> Any:
    return click.option(name, is_flag=True, is_eager=True, expose_value=False, callback=_answer(text), help=help)


def _version() -> str:
    from dovetail import __version__

    return f"dovetail {__version__}"


def _environment() -> str:
    width = max(map(len, VARIABLES))
    return "\n".join(["\b", "Environment:", *(f"  {form:{width}}  {what}" for form, what in VARIABLES.items())])


@click.group(
    cls=Commands,
    epilog=_environment(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@_flag("--version", _version, "Print the version.")
@_flag("--include-dir", lambda: PACKAGE / "include", "Print the folder of dovetail/abi.h and the other headers.")
@_flag("--cmake-dir", lambda: PACKAGE / "cmake", "Print the folder of dovetail-config.cmake.")
def dovetail() -> None:
    """Dovetail: one operator set on any device.

    Every command that reports takes --json. Exit codes: 0 ok, 1 failed, 2 usage, 3 device unavailable, 130 Ctrl-C.
    """
