"""dovetail conform: the command line of the suite.

Exit codes: 0 level met (of a selection: all passed), 1 not met, 2 usage, 3 device unavailable, 4 met but the report
could not be written, 130 Ctrl-C.
"""

from __future__ import annotations

import math
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from .running.shard import Shard

TIMEOUT, LONGEST_TIMEOUT = 60.0, 86400.0
INTERRUPTED = 130
FILE = click.Path(dir_okay=False, path_type=Path)


class _Seconds(click.FloatRange):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if math.isnan(seconds := super().convert(value, param, ctx)):  # click finds it within every range
            self.fail(f"{value} is no time.", param, ctx)
        return seconds


def _shard(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Shard | None:
    from .running.shard import Shard

    try:
        return Shard.parse(value) if value else None
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, parameter) from error


def _list_profiles(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        from .levels.must_pass import profiles

        for name, listed in profiles().items():
            click.echo(f"{name}  {', '.join(listed.dtypes)}  {len(listed.ops)} ops  {listed.about}")
        ctx.exit()


@click.command("conform", short_help="What a device really does: the conformance suite.")
@click.argument("reports", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--device", "-d", metavar="NAME", help="The device, as `dovetail devices` shows it.")
@click.option("--level", type=click.Choice(["L0", "L1", "L2", "L3"], case_sensitive=False),
              help="L0: the device itself. L1: and the must-pass ops in f32, i32, i64 and bool. "
                   "L2: and every op, in every declared dtype. L3: and each of them within a compiled function.  "
                   "[default: L1; with -k L2]")  # fmt: skip
@click.option(
    "--quick", is_flag=True, help="Fewer layouts and no slow checks: under a minute. Claims nothing above L1."
)
@click.option("--profile", metavar="NAME", help="L1 in other dtypes, for a device that lacks its own.")
@click.option("--list-profiles", is_flag=True, expose_value=False, is_eager=True, callback=_list_profiles,
              help="Print the profiles.")  # fmt: skip
@click.option("-k", "expression", metavar="EXPR",
              help="Only cases whose id matches, as in pytest: 'matmul and not T', '*[f32,*'.")  # fmt: skip
@click.option("--case", "cases", metavar="ID", multiple=True, help="Only this very case. May be repeated.")
@click.option(
    "--shard", metavar="I/N", callback=_shard, help="Only part I of N; --merge makes a level of all parts."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of all inputs.")
@click.option("--timeout", type=_Seconds(min=0, min_open=True, max=LONGEST_TIMEOUT), default=TIMEOUT,
              show_default=True, help="Seconds for one case.")  # fmt: skip
@click.option("-n", "workers", type=click.IntRange(1), metavar="WORKERS",
              help="Worker processes.  [default: one per processor, 8 at most]")  # fmt: skip
@click.option("--waivers", type=FILE, metavar="FILE",
              help="Cases of L2 that are known to fail, and why.  [default: waivers.toml, if there]")  # fmt: skip
@click.option("--performance", is_flag=True, help="Measure speed too, after all else: no part of a level.")
@click.option("--baseline", type=click.Path(exists=True, path_type=Path), metavar="FILE|DIR",
              help="Earlier results: list what became slower, faster, or ended otherwise.")  # fmt: skip
@click.option("--report", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", is_flag=False,
              flag_value=Path("dovetail-report"),
              help="Write a report there.  [default: dovetail-report, for a whole level]")  # fmt: skip
@click.option("--no-report", is_flag=True, help="Write none.")
@click.option("--json", "json_file", metavar="FILE",
              type=click.Path(dir_okay=False, writable=True, allow_dash=True, path_type=Path),
              help="Write all results there; - prints them, and all else to the error output.")  # fmt: skip
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="FILE|DIR",
    help="Go on with a run that was stopped, from its results or report; other options as then.",
)
@click.option("--merge", is_flag=True, help="Make one report and a level of the REPORTS of all shards.")
@click.option("--package", type=FILE, metavar="FILE",
              help="Write the submission package there, a .tgz for `dovetail verify`.")  # fmt: skip
@click.option("--submitter", metavar="WHO", default="", help="The sender named in the package.")
@click.option("--list", "list_only", is_flag=True, help="Print the ids of the cases instead of running them.")
@click.option("--api", default="dovetail", hidden=True)
@click.pass_context
def conform(ctx: click.Context, **options: Any) -> None:
    """Tests a device and reports the level that it reaches.

    Each case runs in a worker process: a crash or a hang costs that case alone. Every failure comes with the
    command that replays it. Exit codes: 0 level met, 1 not met, 2 usage, 3 device unavailable, 4 met
    but no report written, 130 Ctrl-C.
    """
    from .running.options import UsageError

    try:
        code = _run(**options)
    except UsageError as error:
        raise click.UsageError(str(error), ctx) from error
    except KeyboardInterrupt:  # before the run began, or long after the first one
        click.echo("stopped by Ctrl-C: no report was written", err=True)
        code = INTERRUPTED
    if code == INTERRUPTED:  # a further one would end the process without this code
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctx.exit(code)


def _run(reports: tuple[Path, ...], merge: bool, list_only: bool, **given: Any) -> int:
    from .running.merge import merge as merged
    from .running.options import Options, UsageError
    from .running.plan import plan
    from .running.session import Session

    if reports and not merge:
        raise UsageError(f"{reports[0]} is not expected: only --merge takes reports")
    if merge:
        return merged(Options(**given), reports)
    if not given["device"]:
        raise UsageError("Missing option '--device': `dovetail devices` lists those that there are")
    options = Options(**given)
    if list_only:
        for case in plan(options).cases:
            click.echo(case.id)
        return 0
    return Session(options).run()


@click.command("verify", short_help="Does a submission package hold, and what does it show?")
@click.argument("package", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def verify(ctx: click.Context, package: Path, as_json: bool) -> None:
    """Checks a package of `dovetail conform --package` and prints the level that it proves.

    Takes neither the device nor its backend. A hash proves that nothing was changed, not that the run was honest.
    Exit codes: 0 it holds, 1 it does not.
    """
    from .submission.show import show

    ctx.exit(show(package, as_json))
