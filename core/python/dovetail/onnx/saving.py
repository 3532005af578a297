"""dovetail.onnx.save: a program as an ONNX file."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from dovetail._program import Program
from dovetail.onnx.model import Model
from dovetail.onnx.reader import NEWEST
from dovetail.onnx.values import number_of_dtype
from dovetail.onnx.writer import File, Type, Writer

__all__ = ["save"]

_OLDEST = 21  # GroupNormalization and QuantizeLinear as they are now, 4-bit dtypes
_SIZES = (24, 24, 48, 48, 7)  # for which types are found out
_TRIALS = 4000
_MOST_INSIDE = 2_000_000_000  # bytes of arrays: protobuf's files end at 2 GiB
_SMALL = 1024  # bytes that stay in the model in any case
_ALIGNMENT = 64
_DIGITS = 16


def save(program: Any, path: str | os.PathLike[str], *, opset: int = 21) -> None:
    """Writes a program, or a loaded model that is one, as an ONNX file of this opset, 21 to 28.

    Ops that ONNX has are its nodes. All others are local functions of the domain "dovetail", made of their
    decompositions, so that any ONNX runtime can run the file. Sizes with a name, or that may be any, stay so. ONNX
    has no guards: of a program that was made for some sizes, the file is right for these alone. Arrays of more than
    2 GB in all go to a file next to it, whose name is that of `path`, 16 digits and ".data"; the one of the model
    that was there before goes. A model that is there stays whole until the new one takes its place.

    Raises TypeError for what is no program, NotImplementedError for what no ONNX op can express, ValueError for
    an opset that is not known, OSError where a file cannot be written.
    """
    if not isinstance(program, Program):
        if not isinstance(program, Model):
            raise TypeError(
                f"[onnx.save] got {type(program).__name__}, expected a dovetail.Program or an onnx Model"
            )
        program = program.program
    if isinstance(opset, bool) or not isinstance(opset, int) or not _OLDEST <= opset <= NEWEST[""]:
        raise ValueError(f"[onnx.save] opset: got {opset!r}, expected {_OLDEST} to {NEWEST['']}")
    model = _model(program, opset)
    path = os.fspath(path)
    former = set(glob.glob(f"{glob.escape(path)}.{'[0-9a-f]' * _DIGITS}.data"))
    is_big = sum(len(t.raw_data) for t in model.graph.initializer) > _MOST_INSIDE
    data = {_move_out(model, path)} if is_big else set()
    unused = data - former
    try:
        with _draft(path) as draft:
            onnx.save_model(model, draft, format="protobuf")
        unused = former - data
    finally:
        for name in unused:
            os.unlink(name)


@contextlib.contextmanager
def _draft(path: str) -> Iterator[str]:
    """The name of a file that takes the place of `path` at the end. A file that is there stays whole until then."""
    draft = f"{path}.{os.getpid()}.part"
    try:
        yield draft
        os.replace(draft, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)


def _move_out(model: onnx.ModelProto, path: str) -> str:
    """Writes the arrays of a model to a file next to `path`, whose name has their hash: the model that is at `path`
    keeps its own. Returns that file's name."""
    tensors = [t for t in model.graph.initializer if len(t.raw_data) >= _SMALL]
    digest = hashlib.sha256()
    for t in tensors:
        digest.update(t.raw_data)
    data = f"{path}.{digest.hexdigest()[:_DIGITS]}.data"
    with _draft(data) as draft, open(draft, "wb") as file:
        for t in tensors:
            file.write(bytes(-file.tell() % _ALIGNMENT))
            onnx.external_data_helper.set_external_data(
                t, os.path.basename(data), offset=file.tell(), length=len(t.raw_data)
            )
            file.write(t.raw_data)
            t.ClearField("raw_data")
    return data


def _model(program: Program, opset: int) -> onnx.ModelProto:
    described = json.loads(program.text())
    tensors = _tensors(program, described)
    constants = {name: f"const_{name}" for name in described.get("tensors", {})}
    file = File(opset, constants)
    names = _input_names(program, file)
    types = _types(program, described)
    writer = Writer(file, described, types, names)
    outputs = writer.run()
    ports = []
    for i, (name, x) in enumerate(zip(outputs, described["outputs"])):
        kind = writer.type_of(x)
        made = f"output_{i}"
        writer.nodes.append(helper.make_node("Identity", [name], [made]))
        ports.append(
            helper.make_tensor_value_info(made, number_of_dtype(kind[0]), _sizes_of_output(program, i, kind))
        )
    graph = helper.make_graph(
        writer.nodes, program.name or "program",
        [helper.make_tensor_value_info(name, number_of_dtype(port.dtype), list(port.shape or ()))
         for name, port in zip(names, program.inputs)],
        ports,
        [numpy_helper.from_array(x, constants[name]) for name, x in tensors.items()],
    )  # fmt: skip
    return helper.make_model(
        graph, opset_imports=file.opsets if file.functions else file.opsets[:1],
        functions=list(file.functions.values()), producer_name="dovetail", ir_version=10 if opset < 24 else 12,
    )  # fmt: skip


def _input_names(program: Program, file: File) -> list[str]:
    return [file.name(port.name or f"input_{i}") for i, port in enumerate(program.inputs)]


def _types(program: Program, described: dict[str, Any]) -> list[Type]:
    """The types of all values for some sizes that the program takes."""
    error: Exception | None = None
    for shapes in _trials(program, described):
        try:
            return [(dtype, tuple(shape)) for dtype, shape in program._core.types(shapes)]
        except (ValueError, IndexError) as why:
            error = error or why
    raise ValueError(
        f"[onnx.save] no sizes were found that the program takes: {error}; export it with fixed sizes, as "
        "dovetail.spec(('batch', 16)) has them"
    )


def _trials(program: Program, described: dict[str, Any]) -> Iterator[list[list[int]]]:
    """Sizes of the inputs: different ones, equal ones, then at random those that guards and constants have."""
    numbers = described.get("numbers", [])
    fixed: dict[tuple[int, int], int] = {}
    near = {1, 2, 3, 4, 8}
    for _, a, b, *_ in described.get("guards", []):
        for size, n in ((numbers[a], numbers[b]), (numbers[b], numbers[a])):
            if isinstance(n, int) and n >= 0:
                near |= {n, n + 1}
                if isinstance(size, list) and size[0] == "size" and size[1] < len(program.inputs):
                    fixed.setdefault((size[1], size[2]), n)
    near |= {n for t in described.get("tensors", {}).values() for n in t["shape"]}
    near |= {n for node in described["nodes"] for v in node.get("at", {}).values()
             for n in (v if isinstance(v, list) else [v]) if type(n) is int and 0 < n < 1 << 16}  # fmt: skip
    draw = random.Random(0)
    choices = sorted(near)
    for trial in range(_TRIALS):
        known: dict[Any, int] = {}

        def size(n: Any, place: tuple[int, int], trial: int = trial, known: dict[Any, int] = known) -> int:
            if isinstance(n, int):
                return n
            key = n or place
            if trial % 2 == 0 and place in fixed:
                known.setdefault(key, fixed[place])
            if trial < len(_SIZES):
                return known.setdefault(key, _SIZES[trial] * (1 + len(known)))
            if trial < 24:
                return known.setdefault(key, trial)
            return known.setdefault(key, draw.choice(choices))

        yield [
            [size(n, (i, axis)) for axis, n in enumerate(port.shape or ())] for i, port in enumerate(program.inputs)
        ]


def _sizes_of_output(program: Program, i: int, kind: Type) -> list[Any]:
    """The sizes of an output that are the same in each call."""
    try:
        _, shape = program._core.outputs[i]
    except ValueError:  # the library finds no sizes that the program takes
        shape = None
    return list(shape) if shape is not None and len(shape) == len(kind[1]) else [None] * len(kind[1])


def _tensors(program: Program, described: dict[str, Any]) -> dict[str, np.ndarray]:
    """The program's arrays by name."""
    if not described.get("tensors"):
        return {}
    import tempfile

    from dovetail._safetensors import load_safetensors

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.dvt")
        program.save(path)
        loaded = load_safetensors(path)
        return {name: _array(loaded[name], tensor) for name, tensor in described["tensors"].items()}


def _array(x: Any, tensor: dict[str, Any]) -> np.ndarray:
    """An array of a file, of which some dtypes are stored as bytes."""
    from dovetail._array import numpy_dtype

    made = np.array(x)
    if x.dtype.name == tensor["dtype"]:
        return made
    if x.dtype.name == "uint8" and tensor["dtype"] in ("complex64", "complex128"):
        return made.view(tensor["dtype"]).reshape(tensor["shape"])
    if made.size == int(np.prod(tensor["shape"])):
        return made.view(numpy_dtype(tensor["dtype"])).reshape(tensor["shape"])
    raise NotImplementedError(f"[onnx.save] a constant of {tensor['dtype']}; astype it in the program")
