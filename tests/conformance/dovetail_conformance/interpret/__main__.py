"""python -m dovetail_conformance.interpret m.dvt [--seed 0] [--size batch=2]: the outputs for seeded inputs."""

from __future__ import annotations

import click
import numpy as np

from . import BadProgram, GuardFailed, interpret, load_document, seeded_inputs


@click.command()
@click.argument("program", type=click.Path(exists=True, dir_okay=False))
@click.option("--seed", default=0, show_default=True, help="Of the random inputs.")
@click.option("--size", "sizes", multiple=True, metavar="NAME=N", help="A named size; others are drawn.")
@click.option("--rounding", type=click.Choice(["each", "last"]), default="each", show_default=True)
def main(program: str, seed: int, sizes: tuple[str, ...], rounding: str) -> None:
    """Runs PROGRAM, a .dvt or .json file, in NumPy."""
    try:
        loaded = load_document(program)
        named = {name: int(n) for name, _, n in (s.partition("=") for s in sizes)}
        inputs = seeded_inputs(loaded.document, seed, named)
        outputs = interpret(loaded.document, inputs, loaded.tensors, rounding=rounding)
    except (BadProgram, GuardFailed) as e:
        raise click.ClickException(str(e)) from None
    with np.printoptions(threshold=20, precision=8):
        for kind, arrays in (("input", inputs), ("output", outputs)):
            for i, x in enumerate(arrays):
                click.echo(f"{kind} {i}: {x.dtype.name} {list(x.shape)}\n{x}")


if __name__ == "__main__":
    main()
