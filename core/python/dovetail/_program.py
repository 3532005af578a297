"""Program: a traced function or a loaded file, called like the function that it was."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from dovetail import _core
from dovetail import _pytree as pytree
from dovetail._core import Array, Device
from dovetail._trace import Tracer, recording_graph

__all__ = ["Port", "Program", "from_exported", "load"]


class Port(NamedTuple):
    """An input or output of a program: its name, dtype, and sizes: integers, names, or None for any size."""

    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None


class Program:
    """A graph of ops, made by dovetail.export or dovetail.load. print() shows its nodes.

    A call takes what the exported function took and returns what it returned. It runs on the device of its arrays.
    """

    __slots__ = ("_arguments", "_core", "_device", "_names", "_results", "name")

    def __init__(
        self,
        core: Any,
        name: str,
        names: tuple[str, ...],
        arguments: tuple[pytree.Tree, ...],
        results: pytree.Tree,
    ):
        self._core, self.name, self._names = core, name, names
        self._arguments, self._results = arguments, results
        self._device: Device | None = None  # where arrays of the host go; None: the default device

    def __call__(self, *args: Any, device: Device | str | None = None) -> Any:
        """Runs the program on the arguments: arrays of one device, NumPy arrays are brought there.

        device: where to run; None: where the arrays are, or the default device. Raises TypeError or ValueError,
        with the argument's name, for arguments that the program was not made for. In a function that is being
        traced the program's nodes become nodes of the trace.
        """
        if len(args) != len(self._names):
            raise TypeError(
                f"[program] {self.name} got {len(args)} arguments, expected {len(self._names)}: "
                f"({', '.join(self._names)})"
            )
        leaves: dict[int, tuple[Any, str]] = {}
        for x, tree, path in zip(args, self._arguments, self._names, strict=True):
            leaves.update((place, (value, where)) for place, value, where in pytree.leaves_like(tree, x, path))
        given = [leaves[i] for i in range(len(leaves))]
        graph = recording_graph(x for x, _ in given)
        if graph is not None:
            graph.expect_device("program", device)
            outputs = graph.inline(self._core, [_input(x, path, graph.device) for x, path in given])
        else:
            home = _home(given, device, self._device)
            outputs = self._core.run(home, [_input(x, path, home) for x, path in given])
        return pytree.rebuilt(self._results, outputs)

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Name, dtype and shape of the arrays among the arguments, in their order."""
        return tuple(Port(name, dtype, tuple(shape)) for name, dtype, shape in self._core.inputs)

    def text(self) -> str:
        """The program as JSON, its canonical form. Constants' elements are not in it."""
        return self._core.text()

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        portable: bool = False,
        weights: Sequence[str] = (),
    ) -> None:
        """Writes a .dvt file: a safetensors file of the constants, with the program in its metadata.

        portable: with the decompositions of the ops that it calls. A process without Python can then run it on
        devices that have no kernel for such a call, also where its library brings no decomposition for the dtypes.
        weights: names of safetensors files in the folder of `path`, as "model.safetensors". Constants that one of
        them has, bit for bit, are not written again: the program's file names the file, the tensor and its SHA-256,
        and must stay next to it.

        Raises OSError, such as FileNotFoundError and PermissionError, where the file cannot be written, ValueError
        where one of `weights` cannot be read or lies outside of the folder.
        """
        names = [os.fspath(name) for name in weights]
        self._core.save(os.fspath(path), portable, names)

    def __repr__(self) -> str:
        from dovetail._program_text import listing

        return listing(self)


def _home(given: list[tuple[Any, str]], device: Any, own: Device | None) -> Device:
    from dovetail import _devices

    target = None if device is None else _devices.device(device)
    first = ""
    for x, path in given:
        if type(x) is not Array:
            continue
        if target is None:
            target, first = x.device, path
        elif x.device != target:
            what = f"{first} is on" if first else "device is"
            raise ValueError(
                f"[program] {path} is on {x.device}, but {what} {target}: expected arrays of one device; "
                ".to_device() brings them over"
            )
    return (own or _devices.device(None)) if target is None else target


def _input(x: Any, path: str, home: Device | None) -> Any:
    if type(x) is Array or isinstance(x, Tracer):
        return x
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(x, numpy.ndarray):
        raise TypeError(f"[program] {path}: got {type(x).__name__}, expected an array")
    from dovetail._creation import asarray

    return asarray(x, device=home)


def load(path: str | os.PathLike[str], device: Device | str | None = None, *, trust_code: bool = False) -> Program:
    """The program of a .dvt file, as Program.save wrote it, or of a folder that `dovetail build` made.

    device: where the program is to run. Kernels are then looked up now: NotImplementedError names an op that the
    device cannot run, instead of the first call. A folder is for devices of one backend; None: the default device.
    trust_code: run the machine code that the folder has. Without it the device makes its own, as dovetail.compile
    does. Trust a folder as you trust a program.

    The files' tensors are mapped, not read, also those in files of weights that the program names: replace such a
    file by renaming a new one over it. If it is truncated while the program is in use, the process ends by the
    signal SIGBUS. The hash of the program is checked, those of the tensors by `dovetail show --verify`.

    Raises FileNotFoundError where there is no such file, ValueError for a file that is no program, needs an op or a
    version of one that this version does not have, names a file outside of its folder, or was built for another
    backend.
    """
    name = os.fspath(path)
    home = None
    if device is not None or os.path.isdir(name):
        from dovetail import _devices

        home = _devices.device(device)
        core = _core.open_artefact(name, home, trust_code)
    else:
        core = _core.load_program(name)
    made = _of_core(core, os.path.basename(name.rstrip("/")))
    made._device = home
    return made


def from_exported(model: Any, /) -> Program:
    """The Program of a model that torch.export.export() has made, for any device and without torch from then on.

    dovetail_torch.from_exported has the details. Raises ImportError where dovetail-torch is not installed.
    """
    try:
        from dovetail_torch.compile import from_exported as imported
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("dovetail_torch", "torch"):
            raise
        raise ImportError(
            f"[from_exported] there is no {error.name}: pip install dovetail-torch", name=error.name
        ) from None
    return imported(model)


def _of_core(core: Any, name: str) -> Program:
    """As its signature has it."""
    if not core.signature:
        inputs = tuple(pytree.Leaf(i) for i in range(len(core.inputs)))
        leaves = tuple(pytree.Leaf(i) for i in range(len(core.outputs)))
        results = leaves[0] if len(leaves) == 1 else pytree.Node("tuple", tuple(range(len(leaves))), leaves, tuple)
        names = tuple(port[0] or f"input {i}" for i, port in enumerate(core.inputs))
        return Program(core, name, names, inputs, results)
    signature = json.loads(core.signature)
    arguments = pytree.read(signature["arguments"])
    if not isinstance(arguments, pytree.Node):
        raise ValueError("[load] signature: expected a tuple of arguments")
    names = tuple(signature.get("names") or (f"args[{i}]" for i in range(len(arguments.parts))))
    results = pytree.read(signature["results"])
    return Program(core, signature.get("function") or name, names, arguments.parts, results)
