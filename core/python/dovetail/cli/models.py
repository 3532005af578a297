"""Models that the commands run: .dvt files, folders of `dovetail build`, ONNX files."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dovetail.cli import runtime
from dovetail.cli.output import fail
from dovetail.cli.show import opened, program_file


class Model(NamedTuple):
    """A model, called with arrays by name."""

    path: Path
    inputs: tuple[Any, ...]  # of .name, .dtype, .shape
    run: Callable[[dict[str, Any]], dict[str, Any]]
    program: Any  # dovetail.Program; None where the model is no single one


def is_onnx(path: Path) -> bool:
    return path.suffix == ".onnx"


def model_on(path: Path, device: Any, trust_code: bool = False) -> Model:
    """The model, to run on a device. Ends the command where it cannot be opened."""
    if is_onnx(path):
        return _onnx(path, device)
    if path.is_dir():
        import dovetail

        runtime.import_ops()
        try:
            return _of_program(path, dovetail.load(path, device=device, trust_code=trust_code), device)
        except (OSError, ValueError, RuntimeError) as error:
            fail(str(error))
    return _of_program(program_file(path), opened(path), device)


def _of_program(path: Path, program: Any, device: Any) -> Model:
    ports = tuple(p._replace(name=p.name or f"input{i}") for i, p in enumerate(program.inputs))

    def run(arrays: dict[str, Any]) -> dict[str, Any]:
        results = program._core.run(device, [arrays[port.name] for port in ports])
        return {f"output{i}": x for i, x in enumerate(results)}

    return Model(path, ports, run, program)


def onnx_module() -> Any:
    """dovetail.onnx. Ends the command where the extra is not installed."""
    try:
        import dovetail.onnx as module
    except ImportError as error:
        cure = 'python -m pip install "dovetail-runtime[onnx]"'
        fail(
            f"a .onnx file needs the package onnx, and {error}; {cure}"
            if "pip install" not in str(error)
            else str(error)
        )
    return module


def _onnx(path: Path, device: Any) -> Model:
    module = onnx_module()
    try:
        model = module.load(str(path), device=device)
    except (OSError, ValueError, TypeError, RuntimeError) as error:  # NotImplementedError is a RuntimeError
        fail(str(error))
    try:
        program = model.program
    except ValueError:
        program = None
    ports = tuple(port for port in model.inputs if not getattr(port, "optional", False))
    return Model(path, ports, lambda arrays: model(**arrays), program)


# ---- inputs ------------------------------------------------------------------------------------------------------


def arrays_of(
    model: Model, given: dict[str, Path], sizes: dict[str, int], random: bool, seed: int
) -> dict[str, Any]:
    """NumPy arrays for all inputs: those of files, and random ones of these sizes by name."""
    import numpy as np

    names = [port.name for port in model.inputs]
    for name in given:
        if name not in names:
            fail(f"there is no input {name!r}: expected one of {', '.join(names)}")
    expect_sizes(model, sizes, "--random")
    rng = np.random.default_rng(seed)
    arrays = {}
    for port in model.inputs:
        if port.dtype in ("map", "sequence", "optional"):
            fail(f"input {port.name!r} is a {port.dtype}, which no .npy file holds: call the model in Python")
        if port.name in given:
            arrays[port.name] = _read(given[port.name], port.dtype)
        elif random:
            try:
                arrays[port.name] = _random(rng, port, sizes)
            except (MemoryError, ValueError) as error:
                fail(f"--random: input {port.name!r} of shape {shape_of(port, sizes)} cannot be made: {error}")
        else:
            fail(
                f"input {port.name!r} is missing: give --input {port.name}=file.npy, or --random {_sizes_of(port)}"
            )
    return arrays


def _read(path: Path, dtype: str) -> Any:
    """The array of a .npy file. What NumPy saves as bytes without a meaning, as bfloat16, has the input's dtype."""
    import numpy as np

    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError, SyntaxError, MemoryError) as error:
        fail(f"{path} cannot be read: {error}")
    if not isinstance(array, np.ndarray):
        fail(f"{path} is an archive of arrays: expected one array, as numpy.save writes it")
    meant = np.dtype(_numpy_dtype(dtype)) if dtype in _dtype_names() else array.dtype
    is_bytes = array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize == meant.itemsize
    return array.view(meant) if is_bytes else array


def names_of(port: Any) -> list[str]:
    """Of each open size the name by which options give it: its own, or that of the input and the axis."""
    return [n if isinstance(n, str) else f"{port.name}.{axis}" for axis, n in enumerate(port.shape or ())
            if not isinstance(n, int)]  # fmt: skip


def shape_of(port: Any, sizes: dict[str, int]) -> tuple[int, ...]:
    """The shape of an input for sizes by name. Ends the command where one is missing."""
    missing = [name for name in names_of(port) if name not in sizes]
    if missing:
        fail(
            f"input {port.name!r} has open sizes, of which these are missing: {','.join(f'{n}=8' for n in missing)}"
        )
    names = iter(names_of(port))
    return tuple(n if isinstance(n, int) else sizes[next(names)] for n in port.shape or ())


def _sizes_of(port: Any) -> str:
    return ",".join(f"{name}=8" for name in dict.fromkeys(names_of(port)))


def _random(rng: Any, port: Any, sizes: dict[str, int]) -> Any:
    """Normal floats, integers from 0 to 9, bools."""
    import numpy as np

    shape = shape_of(port, sizes)
    if port.dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if "int" in port.dtype:
        most = 2 ** (int(port.dtype.removeprefix("u").removeprefix("int")) - 1)
        return rng.integers(0, min(10, most), shape).astype(_numpy_dtype(port.dtype))
    values = rng.standard_normal(shape)
    return (values + 1j * rng.standard_normal(shape) if "complex" in port.dtype else values).astype(
        np.dtype(_numpy_dtype(port.dtype))
    )


def expect_sizes(model: Model, sizes: dict[str, int], option: str) -> None:
    """Ends the command for a size of a name that no input has."""
    names = list(dict.fromkeys(name for port in model.inputs for name in names_of(port)))
    for name in sizes:
        if name not in names:
            fail(f"{option}: no input has an open size {name!r}: expected some of {', '.join(names) or 'none'}", 2)


def _dtype_names() -> Any:
    from dovetail.schema import dtypes

    return dtypes.by_name


def _numpy_dtype(name: str) -> Any:
    from dovetail.schema import dtypes

    return dtypes.by_name[name].numpy


def sizes_of(text: str, option: str = "--random") -> dict[str, int]:
    """b=1,t=16. Ends the command where it is something else."""
    sizes = {}
    for part in filter(None, text.split(",")):
        name, _, number = part.partition("=")
        if not name or not re.fullmatch("[0-9]{1,18}", number):
            fail(f"{option}: expected name=size with commas between them, as b=1,t=16, got {part[:80]!r}", 2)
        if sizes.get(name, int(number)) != int(number):
            fail(f"{option}: two sizes of {name!r}: {sizes[name]} and {number}; name it once", 2)
        sizes[name] = int(number)
    return sizes


def named_files(pairs: Sequence[str]) -> dict[str, Path]:
    """ids=ids.npy for each --input."""
    files = {}
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not equals or not name or not path:
            fail(f"--input: expected name=file.npy, got {pair!r}", 2)
        files[name] = Path(path)
    return files
