"""dovetail show: what is in a .dvt file or a built folder, and how devices run it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from dovetail.cli import runtime
from dovetail.cli.output import fail, human_bytes, json_option, print_json, printable


@click.command("show", short_help="What is in a .dvt file: the graph, its sizes, and how devices run it.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--device", "-d", "names", multiple=True, metavar="NAME",
              help="A device to report on; may be repeated. Default: all of them.")  # fmt: skip
@click.option("--verify", is_flag=True,
              help="Read all tensors, and all files of a folder, and compare them with their hashes.")  # fmt: skip
@click.option("--html", "page", type=click.Path(path_type=Path), metavar="PAGE",
              help="Write one HTML file, which needs nothing else.")  # fmt: skip
@json_option
def command(file: Path, names: tuple[str, ...], verify: bool, page: Path | None, as_json: bool) -> None:
    """Prints the program of FILE, a .dvt file or a folder that `dovetail build` made: inputs, nodes with dtypes and
    sizes, the conditions that it is made for, and whether each device has a kernel for a node or runs its op's
    decomposition. Exits with 1 where the file is not sound.
    """
    from dovetail.cli import program_view

    program = opened(file)
    devices = [runtime.device(name).name for name in names] or [d["device"] for d in runtime.devices()]
    view = program_view.view_of(file, program, devices)
    if page:
        for used in [program_file(file), *(program_file(file).parent / t.file for t in view.tensors if t.file)]:
            if page.exists() and page.samefile(used):
                fail(f"--html {page}: the page would replace a file of the program; name another one", 2)
        from dovetail.cli.program_page import render

        try:
            page.write_text(render(view), "utf-8")
        except OSError as error:
            fail(f"{page} cannot be written: {error.strerror}")
    checked = _verified(program_file(file)) if verify else None
    files = _verified_files(file) if verify and file.is_dir() else None
    if as_json:
        print_json(program_view.data_of(view) | ({"verified": checked} if checked else {})
                   | ({"verified_files": files} if files else {}))  # fmt: skip
    else:
        for line in [f"{page}"] if page else program_view.text_of(view):
            click.echo(line)
        if checked:
            size = human_bytes(checked["bytes"]) if checked["bytes"] else "0 B"
            click.echo(f"verified: {checked['tensors']} tensors of {size}")
            if checked["without_hash"]:
                click.echo(f"not verified, as the file has no hash of them: {_names(checked['without_hash'])}")
        if files:
            click.echo(f"verified: {files['files']} files of the folder")
    if files and files["wrong"]:
        fail(f"[{file.name}] files are not those that were built: {_names(files['wrong'])}; copy the folder again, "
             "or `dovetail build` it again")  # fmt: skip
    if checked and checked["wrong"]:
        fail(
            f"[{file.name}] tensors are not those that were saved: {_names(checked['wrong'])}; copy the file again"
        )


def opened(file: Path) -> Any:
    """The program of a .dvt file or a built folder. Ends the command where it cannot be opened."""
    import dovetail

    runtime.import_ops()
    try:
        return dovetail.load(program_file(file))
    except (OSError, ValueError, RuntimeError) as error:
        fail(str(error))


def program_file(path: Path) -> Path:
    """The .dvt file: the path itself, or that of a built folder."""
    return path / "program.dvt" if path.is_dir() else path


def _verified(file: Path) -> dict[str, Any]:
    from dovetail import _core

    tensors, size, without_hash, wrong = _core.verify_program(file)
    return {"tensors": tensors, "bytes": size, "without_hash": without_hash, "wrong": wrong}


def _verified_files(folder: Path) -> dict[str, Any]:
    """Which files of a built folder are not those of its manifest; files that are missing or new are among them."""
    from dovetail.cli.build import MANIFEST, hashes

    try:
        expected = json.loads((folder / MANIFEST).read_bytes())["sha256"]
        found = hashes(folder)
    except OSError as error:
        fail(f"[{folder.name}] {error.filename} cannot be read: {error.strerror}; `dovetail build` it again")
    except (ValueError, KeyError, TypeError):
        expected = None
    if not isinstance(expected, dict):
        fail(f"[{folder.name}] {MANIFEST} has no hashes of the folder's files; `dovetail build` it again")
    wrong = sorted(name for name in {*expected, *found} if expected.get(name) != found.get(name))
    return {"files": len(found), "wrong": wrong}


def _names(names: list[str]) -> str:
    return printable(", ".join(names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
