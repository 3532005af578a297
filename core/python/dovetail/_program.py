"""Program: a traced function or a loaded file, called like the function that it was."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, NamedTuple

from dovetail import _core
from dovetail import _pytree as pytree
from dovetail._core import Array, Device

__all__ = ["Port", "Program", "load"]


class Port(NamedTuple):
    """An input or output of a program: its name, dtype, and sizes: integers, names, or None for any size."""

    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None


class Program:
    """A graph of ops, made by dovetail.export or dovetail.load. print() shows its nodes.

    A call takes what the exported function took and returns what it returned. It runs on the device of its arrays.
    """

    __slots__ = ("_arguments", "_core", "_names", "_results", "name")

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

    def __call__(self, *args: Any, device: Device | str | None = None) -> Any:
        """Runs the program on the arguments: arrays of one device, NumPy arrays are brought there.

        device: where to run; None: where the arrays are, or the default device. Raises TypeError or ValueError,
        with the argument's name, for arguments that the program was not made for.
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
        if (trace := _core.recorder()) is not None:
            return pytree.rebuilt(self._results, trace.inline(self._core, [x for x, _ in given]))
        home = _home(given, device)
        outputs = self._core.run(home, [_input(x, path, home) for x, path in given])
        return pytree.rebuilt(self._results, outputs)

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Name, dtype and shape of the arrays among the arguments, in their order."""
        return tuple(Port(name, dtype, tuple(shape)) for name, dtype, shape in self._core.inputs)

    def text(self) -> str:
        """The program as JSON, its canonical form. Constants' elements are not in it."""
        return self._core.text()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a .dvt file: a safetensors file of the constants, with the program in its metadata."""
        self._core.save(os.fspath(path))

    def __repr__(self) -> str:
        from dovetail._program_text import listing

        return listing(self)


def _home(given: list[tuple[Any, str]], device: Any) -> Device:
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
    return _devices.device(None) if target is None else target


def _input(x: Any, path: str, home: Device) -> Array:
    if type(x) is Array:
        return x
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(x, numpy.ndarray):
        raise TypeError(f"[program] {path}: got {type(x).__name__}, expected an array")
    from dovetail._creation import asarray

    return asarray(x, device=home)


def load(path: str | os.PathLike[str]) -> Program:
    """The program of a .dvt file, as Program.save wrote it.

    The file's tensors are mapped, not read: if the file is truncated while the program is in use, the process ends.
    Raises ValueError for a file that is no program, or needs an op that this version does not have.
    """
    core = _core.load_program(os.fspath(path))
    name = os.path.basename(os.fspath(path))
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
