"""dovetail bench: how long an op takes, and its memory traffic and arithmetic per second; next to others, too."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from dovetail.cli import runtime
from dovetail.cli.output import (
    INTERRUPTED,
    device_option,
    fail,
    heading,
    print_json,
    print_table,
    progress,
)

DEFAULT = (
    "add", "multiply", "exp", "tanh", "gelu", "sum", "max", "mean", "argmax", "cumulative_sum", "sort", "softmax",
    "log_softmax", "layer_norm", "rms_norm", "matmul", "linear", "scaled_dot_product_attention", "conv2d",
    "max_pool2d", "avg_pool2d", "take",
)  # fmt: skip
_MOST_THREADS = 1024  # of DOVETAIL_NUM_THREADS
_SUFFIXES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Size(click.ParamType):
    name = "SIZE"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        text = str(value).upper()
        factor = _SUFFIXES.get(text[-1:], 1)
        digits = text[:-1] if factor > 1 else text
        if not digits.isdigit() or int(digits) < 1:
            self.fail(f"expected a number of elements as 4096, 64K or 1M, got {value!r}", param, ctx)
        return int(digits) * factor


class Seconds(click.FloatRange):
    """A finite number from 0 on: FloatRange alone lets inf and nan pass."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        seconds: float = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f"expected a finite number of seconds, such as 0.2, got {value!r}", param, ctx)
        return seconds


class Names(click.ParamType):
    """Names with commas between them."""

    name = "NAMES"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, ...]:
        names = tuple(name.strip() for name in value.split(",") if name.strip())
        if not names:
            self.fail(f"expected names with commas between them, got {value!r}", param, ctx)
        return names


class Counts(click.ParamType):
    name = "COUNTS"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, ...]:
        counts = [text.strip() for text in str(value).split(",")]
        if not all(text.isdecimal() and 0 < int(text) <= _MOST_THREADS for text in counts):
            expected = f"numbers of threads from 1 to {_MOST_THREADS}, as 1 or 1,2"
            self.fail(f"expected {expected}, got {value!r}", param, ctx)
        return tuple(map(int, counts))


@click.command("bench", short_help="Time, GB/s and GFLOP/s of ops on a device.")
@click.argument("names", metavar="[OP]...", nargs=-1)
@device_option
@click.option(
    "--dtype", "dtype_names", metavar="DTYPE", multiple=True, default=["float32"], show_default=True,
    help="May be repeated.",
)  # fmt: skip
@click.option(
    "--size", "sizes", type=Size(), multiple=True, default=["64K", "4M"], show_default=True,
    help="Elements; may be repeated.",
)  # fmt: skip
@click.option("--seconds", type=Seconds(min=0), default=0.2, show_default=True, help="Time to spend on each line.")
@click.option(
    "--against", type=Names(), multiple=True,
    help="Measure the same work in torch, numpy or onnxruntime; may be repeated, or have commas.",
)  # fmt: skip
@click.option(
    "--points", "points_file", metavar="FILE", type=click.Path(path_type=Path),
    help="With --against: a JSON list of what to measure. Default: a list of 90 points.",
)  # fmt: skip
@click.option(
    "--threads", type=Counts(), multiple=True,
    help="With --against: numbers of threads. Default: 1,2.",
)  # fmt: skip
@click.option(
    "--svg", "svg_file", metavar="FILE", type=click.Path(path_type=Path), help="With --against: draw the ratios."
)
@click.option(
    "--json", "json_file", metavar="[FILE]", is_flag=False, flag_value="-",
    help="Print JSON; with --against a FILE gets it.",
)  # fmt: skip
def command(
    names: tuple[str, ...],
    device_name: str | None,
    dtype_names: tuple[str, ...],
    sizes: tuple[int, ...],
    seconds: float,
    against: tuple[tuple[str, ...], ...],
    points_file: Path | None,
    threads: tuple[tuple[int, ...], ...],
    svg_file: Path | None,
    json_file: str | None,
) -> None:
    """Measures ops one by one: batches of calls, each with one wait for the device, operands warm.

    Prints the median batch, from which GB/s and GFLOP/s follow, the best one, and the one that 90 % of the batches
    do not exceed. Without OP, the ops that matter most. Ctrl-C ends it with what was measured until then.

    With --against, the points of a list, or those of OP among them, are measured in turns with other libraries: the
    best batch of each, the ratio of the best peer's time to ours, and the share of the machine's ceiling.
    """
    device = runtime.device(device_name)
    if peers := _flat(against):
        from dovetail.cli.comparison import command as comparison

        _expect_defaults("--against", "dtype_names", "sizes")
        counts = _flat(threads) or (1, 2)
        comparison.run(names, peers, device, counts, seconds, points_file, json_file, svg_file)
        return
    _expect_defaults("measurements without --against", "points_file", "threads", "svg_file")
    if json_file not in (None, "-"):
        names = (str(json_file), *names)  # a flag here: an OP follows it
    as_json = json_file is not None
    dtypes = [_dtype(name) for name in dtype_names]
    ops = _ops(names)
    cases = [(op, dtype, size) for op in ops for dtype in dtypes for size in sorted(set(sizes))]
    rows: list[dict[str, Any]] = []
    stopped = False
    try:
        with progress(len(cases)) as step:
            for op, dtype, size in cases:
                step(f"{op} {dtype.brief} {size}")
                rows.append(measure(device, op, dtype, size, seconds))
    except KeyboardInterrupt:
        stopped = True
    if as_json:
        print_json({"device": device.name, "complete": not stopped, "results": rows})
    else:
        _print(device, rows)
    if stopped:
        fail(f"stopped by Ctrl-C after {len(rows)} of {len(cases)}", INTERRUPTED)
    if any(row["error"] for row in rows) and names:
        raise SystemExit(1)


def _flat(given: tuple[tuple[Any, ...], ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(value for values in given for value in values))


def _expect_defaults(what: str, *parameters: str) -> None:
    """Raises UsageError for an option that was given, but has no meaning here."""
    ctx = click.get_current_context()
    for parameter in ctx.command.params:
        if parameter.name in parameters and ctx.get_parameter_source(parameter.name) != ParameterSource.DEFAULT:
            raise click.UsageError(f"{parameter.opts[0]} has no meaning for {what}; leave it out")


def _ops(names: tuple[str, ...]) -> list[str]:
    from dovetail.entry_points.backend import did_you_mean
    from dovetail.schema import registry
    from dovetail.schema.workloads import workloads

    known = [name for name, op in registry.items() if workloads(op)]
    for name in names:
        if name not in known:
            raise click.UsageError(f"there is no benchmark of {name!r}{did_you_mean(name, known)}")
    return list(names or DEFAULT)


def _dtype(name: str) -> Any:
    from dovetail.entry_points.backend import did_you_mean
    from dovetail.schema.dtypes import ALL, by_name

    if name in by_name:
        return by_name[name]
    raise click.UsageError(f"there is no dtype {name!r}{did_you_mean(name, [d.name for d in ALL])}")


def measure(device: Any, op: str, dtype: Any, size: int, seconds: float) -> dict[str, Any]:
    import numpy as np

    import dovetail
    from dovetail import _core, _timing
    from dovetail.schema import registry
    from dovetail.schema.workloads import Maker, workloads

    make = next(iter(workloads(registry[op]).values()))
    row = {
        "op": op,
        "dtype": dtype.brief,
        "shape": str(size),
        "seconds": None,
        "best": None,
        "p90": None,
        "error": "",
    }
    row |= {"gb_per_s": None, "gflop_per_s": None, "of_peak": None}
    function = _core.op_function(op)
    mode = dovetail.fallback("error")
    try:
        work = make(Maker(size, dtype))
        row["shape"] = work.label
        args = [dovetail.asarray(arg, device=device) if isinstance(arg, np.ndarray) else arg for arg in work.args]
        timing = _timing.measure(lambda: function(*args, **work.kwargs), device, seconds)
    except (TypeError, ValueError, RuntimeError, MemoryError) as error:
        return row | {"error": f"{type(error).__name__}: {error}"}
    finally:
        dovetail.fallback(mode)
    usual = timing.median
    row |= {"seconds": usual, "best": timing.best, "p90": timing.p90, "gb_per_s": work.bytes / usual * 1e-9}
    if work.flops:
        row["gflop_per_s"] = work.flops / usual * 1e-9
    return row | {"of_peak": _of_peak(device.properties, dtype.brief, work, usual)}


def _of_peak(properties: dict[str, Any], dtype: str, work: Any, seconds: float) -> float | None:
    """The achieved share of the limits of memory and arithmetic, if the device states them."""
    peak_bytes = properties.get("peak_bytes_per_s") or 0
    peak_flops = properties.get("peaks", {}).get(dtype) or 0
    floors = [work.bytes / peak_bytes] if peak_bytes else []
    if work.flops and peak_flops:
        floors.append(work.flops / peak_flops)
    return max(floors) / seconds if floors else None


def _print(device: Any, rows: list[dict[str, Any]]) -> None:
    heading(f"{device.name}: {device.properties.get('name', '')}")

    def number(value: float | None, digits: int) -> str:
        return "" if value is None else f"{value:.{digits}f}"

    def duration(seconds: float | None) -> str:
        if seconds is None:
            return ""
        scale, unit = (1e6, "us") if seconds < 1e-3 else (1e3, "ms")
        return f"{seconds * scale:.2f} {unit}"

    print_table(
        ["op", "dtype", "shape", "median", "best", "90 %", "GB/s", "GFLOP/s", "of peak"],
        [
            [
                row["op"],
                row["dtype"],
                row["shape"],
                duration(row["seconds"]),
                duration(row["best"]),
                duration(row["p90"]),
                number(row["gb_per_s"], 1),
                number(row["gflop_per_s"], 1),
                "" if row["of_peak"] is None else f"{row['of_peak']:.0%}",
            ]
            for row in rows
        ],
        right=["median", "best", "90 %", "GB/s", "GFLOP/s", "of peak"],
    )
    for message in dict.fromkeys(f"{row['op']} {row['dtype']}: {row['error']}" for row in rows if row["error"]):
        click.echo(message)
