"""dovetail run: runs a saved program, a built folder or an ONNX model on a device."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from dovetail.cli import models, runtime
from dovetail.cli.output import device_option, fail, json_option, print_json, print_table, printable

TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-9, "complex128": 1e-9}  # others: 1e-4


@click.command("run", short_help="Run a .dvt file, a built folder or an ONNX model on a device.")
@click.argument("model", type=click.Path(path_type=Path, exists=True))
@device_option
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE", help="A .npy file for an input; repeat it.")
@click.option("--random", "sizes", metavar="NAME=SIZE,...",
              help="Random inputs where no file is given; sizes by name, as b=1,t=16, or \"\".")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the random inputs.")
@click.option("--compare", metavar="PEER", help="onnxruntime, or a device: compare the results with its own.")
@click.option("--tolerance", type=float, help="Largest error, relative to the largest element. Default: by dtype.")
@click.option("--save-outputs", "folder", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Write each result as a .npy file.")  # fmt: skip
@click.option("--list-missing", is_flag=True, help="Only list all nodes that the device cannot run.")
@click.option("--fallback", type=click.Choice(["error", "warn", "allow"]), default="error", show_default=True,
              help="Whether a CPU may run what the device cannot.")  # fmt: skip
@click.option("--trust-code", is_flag=True, help="Run the machine code that a built folder has.")
@json_option
def command(
    model: Path, device_name: str | None, inputs: tuple[str, ...], sizes: str | None, seed: int,
    compare: str | None, tolerance: float | None, folder: Path | None, list_missing: bool, fallback: str,
    trust_code: bool, as_json: bool,
) -> None:  # fmt: skip
    """Runs MODEL once and prints its results' dtypes, shapes and ranges, or compares them with a peer's.

    Every node runs on the device itself. What it cannot run is an error that names the node, before anything runs;
    --fallback lets a CPU of this machine take such nodes. Exits with 1 where results differ or a node is missing.
    """
    import dovetail

    device = runtime.device(device_name)
    if list_missing:
        _list_missing(model, device, as_json)
        return
    if compare == "onnxruntime" and not models.is_onnx(model):
        fail("--compare onnxruntime: it runs .onnx files; name a device to compare with", 2)
    dovetail.fallback(fallback)
    opened = models.model_on(model, device, trust_code)
    if opened.program is not None and fallback == "error":
        _expect_kernels(opened, device)
    arrays = models.arrays_of(
        opened, models.named_files(inputs), models.sizes_of(sizes or ""), sizes is not None, seed
    )
    results, seconds = _run(opened, device, arrays)
    report: dict[str, Any] = {"device": device.name, "seconds": seconds, "seed": seed,
                              "results": [_described(name, x) for name, x in results.items()]}  # fmt: skip
    if compare:
        report["compared"] = _compared(compare, model, arrays, results, tolerance)
    if folder:
        _save(folder, results)
    report["fallbacks"] = dovetail.fallback_report()
    if as_json:
        print_json(report)
    else:
        _print(report)
    if compare and not all(c["ok"] for c in report["compared"]):
        fail(f"results differ from those of {compare}")


def _expect_kernels(model: models.Model, device: Any) -> None:
    """Ends the command where a node of the program cannot run on the device."""
    try:
        missing = model.program._core.missing(device)
    except (ValueError, IndexError):  # no sizes were found: the run itself raises what is missing
        return
    if missing:
        command = f"dovetail run {model.path.name} --device {device.name}"
        fail(
            f"[{model.path.name}] {device.name} cannot run the model by itself: {missing}; "
            f"`{command} --list-missing` lists all such nodes, --fallback warn runs them on a CPU"
        )


def _run(model: models.Model, device: Any, arrays: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """The results as NumPy arrays, and how long it took, copies included."""
    import dovetail

    begin = time.perf_counter()
    try:
        given = {name: dovetail.asarray(x, device=device) for name, x in arrays.items()}
        results = {name: _numpy(x) for name, x in model.run(given).items()}
    except (ValueError, TypeError, RuntimeError, IndexError, MemoryError) as error:
        place = f"[{model.path.name}]"
        fail(str(error) if str(error).startswith(place) else f"{place} {error}")
    return results, time.perf_counter() - begin


def _numpy(x: Any) -> Any:
    import numpy as np

    return x.numpy() if hasattr(x, "numpy") else np.asarray(x)


def _described(name: str, x: Any) -> dict[str, Any]:
    import numpy as np

    found = {"name": name, "dtype": str(x.dtype), "shape": list(x.shape)}
    if x.size and x.dtype.kind not in "OUSc":
        values = x.astype(np.float64)
        finite = values[np.isfinite(values)]
        found |= {"least": float(finite.min()), "greatest": float(finite.max())} if finite.size else {}
        found["not_finite"] = int(values.size - finite.size)
    return found


def _save(folder: Path, results: dict[str, Any]) -> None:
    import numpy as np

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, x in zip(_file_names(results), results.values(), strict=True):
            np.save(folder / f"{name}.npy", x, allow_pickle=False)
    except (OSError, ValueError) as error:
        fail(f"{folder}: {error}")


def _file_names(names: Iterable[str]) -> list[str]:
    """Results' names as parts of paths, no two of them alike, where case does not count either."""
    taken: dict[str, str] = {}
    for name in names:
        plain = (re.sub(r"[^\w.-]", "_", name).lstrip(".") or "output")[:100]
        numbered = (f"{plain}_{i}" for i in itertools.count(1))
        free = next(n for n in itertools.chain([plain], numbered) if n.lower() not in taken)
        taken[free.lower()] = free
    return list(taken.values())


# ---- what is missing ---------------------------------------------------------------------------------------------


def _list_missing(path: Path, device: Any, as_json: bool) -> None:
    if models.is_onnx(path):
        try:
            report = models.onnx_module().check(str(path), device=device)
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            fail(str(error))
        click.echo(str(report))
        if not report.ok:
            raise SystemExit(1)
        return
    from dovetail.cli import program_view

    program = models.opened(path)
    view = program_view.view_of(path, program, [device.name])
    if view.unknown:
        fail(f"[{path.name}] {view.unknown[device.name]}")
    missing = view.missing()[device.name]
    if as_json:
        print_json([{"node": row.call, "where": row.where, "missing": why} for row, why in missing])
    elif missing:
        print_table(
            ["node", "line", "missing"],
            [[printable(r.call), printable(r.where), printable(why)] for r, why in missing],
        )
    else:
        click.echo(f"{device.name} runs all {len(view.rows)} nodes")
    if missing:
        raise SystemExit(1)


# ---- comparison --------------------------------------------------------------------------------------------------


def _compared(
    peer: str, path: Path, arrays: dict[str, Any], results: dict[str, Any], tolerance: float | None
) -> list[dict[str, Any]]:
    expected = (
        _of_onnxruntime(path, arrays, list(results)) if peer == "onnxruntime" else _of_device(peer, path, arrays)
    )
    return [_difference(name, x, y, tolerance) for (name, x), y in zip(results.items(), expected, strict=True)]


def _of_onnxruntime(path: Path, arrays: dict[str, Any], names: list[str]) -> list[Any]:
    try:
        import onnxruntime
    except ImportError:
        fail("--compare onnxruntime: it is not installed; python -m pip install onnxruntime")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(names, arrays)


def _of_device(name: str, path: Path, arrays: dict[str, Any]) -> list[Any]:
    """Of a built folder the program alone: neither its packed weights nor its machine code, which are compared."""
    device = runtime.device(name)
    return list(_run(models.model_on(models.program_file(path), device), device, arrays)[0].values())


def _difference(name: str, got: Any, expected: Any, tolerance: float | None) -> dict[str, Any]:
    """The largest error, relative to the largest finite element that was expected."""
    import numpy as np

    dtype = str(got.dtype)
    if got.shape != np.shape(expected):
        return {"name": name, "ok": False, "why": f"shape {got.shape}, expected {np.shape(expected)}"}
    if got.dtype.kind in "biu":
        n = int(np.count_nonzero(got != expected))
        return {"name": name, "ok": n == 0, "why": f"{n} of {got.size} elements differ" if n else "equal"}
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    x, y = got.astype(wide), np.asarray(expected).astype(wide)
    alike = (x == y) | (np.isnan(x) & np.isnan(y))
    finite = np.isfinite(x) & np.isfinite(y)
    scale = float(np.abs(y[np.isfinite(y)]).max(initial=0.0)) or 1.0
    error = float(np.abs(x[finite] - y[finite]).max(initial=0.0)) / scale
    most = TOLERANCE.get(dtype, 1e-4) if tolerance is None else tolerance
    apart = int(np.count_nonzero(~alike & ~finite))
    why = f"error {error:.2g} of the largest element, expected at most {most:.2g}"
    return {"name": name, "ok": error <= most and not apart, "error": error,
            "why": why + (f"; {apart} infinities or NaNs differ" if apart else "")}  # fmt: skip


def _print(report: dict[str, Any]) -> None:
    def range_of(x: dict[str, Any]) -> str:
        if "least" not in x:
            return ""
        odd = f", {x['not_finite']} not finite" if x["not_finite"] else ""
        return f"{x['least']:.6g} to {x['greatest']:.6g}{odd}"

    rows = [[printable(x["name"]), x["dtype"], str(tuple(x["shape"])), range_of(x)] for x in report["results"]]
    print_table(["result", "dtype", "shape", "values"], rows)
    for c in report.get("compared", ()):
        click.echo(f"{printable(c['name'])}: {'equal enough' if c['ok'] else 'DIFFERENT'}: {c['why']}")
    for f in report["fallbacks"]:
        click.echo(f"{f['op']} ran {f['calls']} times on another device than {f['device']}", err=True)
    click.echo(f"{report['seconds'] * 1e3:.1f} ms on {report['device']}, the first run's preparation included")
