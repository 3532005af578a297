"""dovetail conform: the command line of the suite.

Exit codes: 0 level met (of a selection: all passed), 1 not met, 2 usage, 3 device unavailable, 130 Ctrl-C.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

TIMEOUT = 60.0


@click.command("conform", short_help="What a device really does: the conformance suite.")
@click.option("--device", "-d", required=True, metavar="NAME", help="The device, as `dovetail devices` shows it.")
@click.option("--level", type=click.Choice(["L0", "L1", "L2"]),
              help="L0: the device itself. L1: and the must-pass ops in f32, i32, i64 and bool. "
                   "L2: and every op, in every declared dtype.  [default: L1; with -k all]")  # fmt: skip
@click.option(
    "--quick", is_flag=True, help="Fewer layouts and no slow checks: under a minute. Claims nothing above L1."
)
@click.option("-k", "expression", metavar="EXPR",
              help="Only cases whose id matches, as in pytest: 'matmul and not T', '*[f32,*'.")  # fmt: skip
@click.option("--case", "cases", metavar="ID", multiple=True, help="Only this very case. May be repeated.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of all inputs.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=TIMEOUT, show_default=True,
              help="Seconds for one case.")  # fmt: skip
@click.option("-n", "workers", type=click.IntRange(1), metavar="WORKERS",
              help="Worker processes.  [default: one per processor, 8 at most]")  # fmt: skip
@click.option("--json", "json_file", metavar="FILE",
              type=click.Path(dir_okay=False, writable=True, allow_dash=True, path_type=Path),
              help="Write all results there; - prints them, and all else to the error output.")  # fmt: skip
@click.option("--package", metavar="FILE", type=click.Path(dir_okay=False, writable=True, path_type=Path),
              help="Write the submission package there: a .tgz for `dovetail verify`.")  # fmt: skip
@click.option("--submitter", metavar="WHO", default="", help="Who the package says that it is from.")
@click.option("--list", "list_only", is_flag=True, help="Print the ids of the cases instead of running them.")
@click.option("--api", default="dovetail", hidden=True)
@click.pass_context
def conform(ctx: click.Context, **options: Any) -> None:
    """Tests a device and says the level that it reaches.

    Each case runs in a worker process: a crash or a hang costs that case alone. Every failure comes with the
    command that replays it. Exit codes: 0 level met, 1 not met, 2 usage, 3 device unavailable.
    """
    from .running.session import Session, UsageError

    try:
        session = Session(**options)
    except UsageError as error:
        raise click.UsageError(str(error), ctx) from error
    ctx.exit(session.run())


@click.command("verify", short_help="Does a submission package hold, and what does it show?")
@click.argument("package", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def verify(ctx: click.Context, package: Path, as_json: bool) -> None:
    """Checks a package of `dovetail conform --package` and says the level that it shows.

    Takes neither the device nor its backend. A hash proves that nothing was changed, not that the run was honest.
    Exit codes: 0 it holds, 1 it does not.
    """
    from .submission.show import show

    ctx.exit(show(package, as_json))
