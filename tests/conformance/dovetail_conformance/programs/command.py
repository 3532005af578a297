"""dovetail fuzz-compile: random programs, compiled and eager. Exit codes as those of dovetail conform."""

from __future__ import annotations

import time
from itertools import count

import click


@click.command("fuzz-compile", short_help="Random programs: compiled functions against eager calls.")
@click.option("--device", "-d", metavar="NAME", required=True, help="The device, as `dovetail devices` shows it.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the first program.")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), help="For how long.  [default: 1]")
@click.option("--programs", type=click.IntRange(1), help="How many at most.")
def fuzz_compile(device: str, seed: int, minutes: float | None, programs: int | None) -> None:
    """Makes random programs and compares what compiled functions do with eager calls: the bits of the results, of
    the arguments and of captured arrays, for two shapes. A program that differs is made smaller and printed.

    Exit codes: 0 no program differs, 1 one does, 2 usage, 3 device unavailable.
    """
    from ..running.target import Target, Unavailable
    from .run import check

    try:
        target = Target(device)
    except Unavailable as error:
        click.echo(f"device unavailable: {error}", err=True)
        raise SystemExit(3) from error
    end = time.monotonic() + 60 * (minutes or (1 if programs is None else float("inf")))
    done = 0
    for done, s in enumerate(count(seed), 1):
        if report := check(target, s):
            click.echo(f"program {s} differs: {report}")
            raise SystemExit(1)
        if done == programs or time.monotonic() > end:
            break
    click.echo(f"{done} programs on {target.name}, seeds {seed} to {seed + done - 1}: no differences")
