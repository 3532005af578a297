"""dovetail build: a program for one device, with weights as the device's kernels read them, and machine code."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import json
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dovetail.cli import models, runtime
from dovetail.cli.output import device_option, fail, human_bytes, json_option, print_json

FORMAT = 1  # "dovetail_artefact" of manifest.json
TRIED = (16, 24, 120, 1, 2, 3, 4, 8, 12, 32, 64, 128, 256)  # sizes, where none are named
RUNS = 3  # after which kernels have packed the weights that they pack
MANIFEST, PROGRAM, CODE = "manifest.json", "program.dvt", "code"
TARGETS = ("x86_64", "aarch64")


@click.command("build", short_help="Build a program for one device: folded, packed, with machine code.")
@click.argument("model", type=click.Path(path_type=Path, exists=True))
@device_option
@click.option("--out", "-o", "folder", type=click.Path(path_type=Path), required=True, help="The folder to write.")
@click.option("--sizes", multiple=True, metavar="NAME=SIZE,...",
              help="Sizes of the inputs to prepare for, as b=1,t=16; repeat it. All sizes run.")  # fmt: skip
@click.option("--numerics", type=click.Choice(["wide", "eager"]), default="wide", show_default=True,
              help="As for dovetail.compile: eager has the bits of eager calls.")  # fmt: skip
@click.option("--target", type=click.Choice(TARGETS), help="The processor that it is for. Default: this one.")
@click.option("--no-code", is_flag=True, help="Leave out machine code.")
@json_option
def command(
    model: Path, device_name: str | None, folder: Path, sizes: tuple[str, ...], numerics: str, target: str | None,
    no_code: bool, as_json: bool,
) -> None:  # fmt: skip
    """Writes a folder for MODEL, a .dvt file or an ONNX model that is one program: the program with its constants
    folded, its weights in the layouts of the device's kernels, machine code for groups of its ops, and a manifest.
    `dovetail.load` and `dvr_program_open` open it. Nothing in it is needed for right results: what another
    processor cannot use is made anew there.
    """
    os.environ["DOVETAIL_COMPILE_WAIT"] = "1"  # machine code is there when a run has ended
    import dovetail

    device = runtime.device(device_name)
    dovetail.fallback("error")
    begin = time.perf_counter()
    opened = models.model_on(model, device)
    if opened.program is None:
        fail(f"[{model.name}] is no single program, so it cannot be built; dovetail run runs it")
    shapes = [_shapes(opened, models.sizes_of(text, "--sizes")) for text in sizes] or [_found(opened)]
    is_own = target in (None, _machine())
    try:
        manifest = _build(opened, device, folder, shapes, numerics, target or _machine(), is_own, not no_code)
    except (OSError, ValueError, RuntimeError, IndexError, MemoryError) as error:
        fail(f"[build] {error}")
    seconds = time.perf_counter() - begin
    if as_json:
        print_json(manifest | {"folder": str(folder), "seconds": seconds})
        return
    packs = manifest["packs"]
    click.echo(
        f"{folder}: {human_bytes(_size(folder))} for {manifest['backend']} on {manifest['target']}, {seconds:.1f} s"
    )
    size = f" of {human_bytes(packs['bytes'])}" if packs["bytes"] else ""
    click.echo(f"  {packs['count']} packed weights{size}, {len(manifest['code'])} kernels")
    for note in manifest["notes"]:
        click.echo(f"  {note}")


def _build(
    model: models.Model, device: Any, folder: Path, shapes: Sequence[Any], numerics: str, target: str, is_own: bool,
    with_code: bool,
) -> dict[str, Any]:  # fmt: skip
    """Writes the folder, whole or not at all, and returns its manifest."""
    from dovetail import _core

    folder = folder.resolve()  # a link stays, and the folder that it names is replaced
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.exists() and not (folder / MANIFEST).is_file():
        raise ValueError(f"{folder} is there, and is no folder that `dovetail build` made; name another one")
    _core.record_images()
    draft = Path(tempfile.mkdtemp(prefix=_hidden(folder), dir=folder.parent))
    try:
        program = model.program._core.lowered(device, shapes[0], True, numerics == "eager")
        program.save(draft / PROGRAM, True)
        manifest = _manifest(device, shapes, numerics, target)
        if is_own:
            _run(program, device, shapes)
            packs, size = program.write_packs(device, draft)
            manifest["packs"] = {"count": packs, "bytes": size}
            if with_code:
                (draft / CODE).mkdir()
                _core.write_code(draft)
                manifest["code"] = sorted(p.name for p in (draft / CODE).iterdir())
            manifest["notes"] = [] if manifest["code"] or not with_code else [_why_no_code()]
        else:
            manifest["notes"] = [
                f"no packed weights and no machine code: they are made on {target}; run dovetail build there"
            ]
        manifest["sha256"] = hashes(draft)
        draft.chmod(0o755)
        (draft / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")
        _replace(folder, draft)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return manifest


def hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of a folder and its subfolders but the manifest, by its path with slashes."""
    found = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p != folder / MANIFEST):
        with path.open("rb") as file:
            found[path.relative_to(folder).as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _replace(folder: Path, draft: Path) -> None:
    """Puts the draft in the folder's place. The one that was there is moved away whole, never emptied in place:
    an interrupt leaves one of the two, and builds at the same time each leave a whole folder."""
    with tempfile.TemporaryDirectory(prefix=_hidden(folder), dir=folder.parent, ignore_cleanup_errors=True) as away:
        for attempt in itertools.count():
            former = Path(away, str(attempt))
            try:
                with contextlib.suppress(FileNotFoundError):
                    folder.rename(former)
                draft.rename(folder)
                return
            except OSError as error:  # another build has put its own there meanwhile
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            finally:
                if former.exists() and not folder.exists():
                    with contextlib.suppress(OSError):  # another build was faster
                        former.rename(folder)


def _hidden(folder: Path) -> str:
    """How names of what is only there during a build begin."""
    return f".{folder.name[:50]}."


def _manifest(device: Any, shapes: Sequence[Any], numerics: str, target: str) -> dict[str, Any]:
    import dovetail

    backend = next((b for b in runtime.backends() if b["name"] == device.backend), {})
    return {
        "dovetail_artefact": FORMAT,
        "producer": f"dovetail {dovetail.__version__}",
        "backend": device.backend,
        "backend_version": backend.get("version", ""),
        "arch": device.arch,
        "target": target,
        "numerics": numerics,
        "sizes": [list(map(list, of_inputs)) for of_inputs in shapes],
        "packs": {"count": 0, "bytes": 0},
        "code": [],
        "sha256": {},
        "notes": [],
    }


def _run(program: Any, device: Any, shapes: Sequence[Any]) -> None:
    """A few times for each of the sizes, on zeros: kernels pack what they pack, compilers make their code."""
    import dovetail

    dtypes = [port[1] for port in program.inputs]
    for of_inputs in shapes:
        program.prepare(device, of_inputs)
        given = [dovetail.zeros(tuple(s), dtype=d, device=device) for s, d in zip(of_inputs, dtypes, strict=True)]
        for _ in range(RUNS):
            for result in program.run(device, given):
                result.numpy()


def _shapes(model: models.Model, sizes: dict[str, int]) -> list[list[int]]:
    """The shapes of the inputs for sizes by name. Ends the command for a name that no input has."""
    models.expect_sizes(model, sizes, "--sizes")
    return [list(models.shape_of(port, sizes)) for port in model.inputs]


def _found(model: models.Model) -> list[list[int]]:
    """Sizes that the program takes."""
    for n in TRIED:
        sizes = {name: n for port in model.inputs for name in models.names_of(port)}
        shapes = _shapes(model, sizes)
        with contextlib.suppress(ValueError, IndexError, TypeError):
            model.program._core.types(shapes)
            return shapes
    return fail("no sizes were found that the program takes: give --sizes name=size,...")


def _machine() -> str:
    return os.uname().machine


def _why_no_code() -> str:
    from dovetail import _core

    tools, _ = _core.toolchains()
    failures = [why for tool in tools for why in tool["failures"]]
    return f"no machine code: {failures[0] if failures else 'the compiler of the device asked for none'}"


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
