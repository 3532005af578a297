"""The parts of a loaded model: steps, variants of their programs, and what these are made for."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import onnx

from dovetail._core import Array
from dovetail._function_trace import trace_sizes
from dovetail._program import Program
from dovetail.onnx.importer import names_used
from dovetail.onnx.values import DTYPES, STRING, Dequantized, Map, Sizes, is_traced

__all__ = [
    "BROKEN_GUARD", "Cut", "Input", "Step", "Variant", "has_pinned_sizes", "input_of", "is_host", "is_small",
    "key_of", "kind_of", "kind_of_spec", "names_chosen_sizes", "needed_nodes", "result_of", "unknown_type",
]  # fmt: skip

BROKEN_GUARD = "it was made for"  # in what a Program raises for sizes that break its guards
_MOST_GUARDED = 4096  # bytes of an input whose values a program may be made for


class Input(NamedTuple):
    """An input of a model: its name, dtype, and sizes: integers, names, or None; shape None: any number of axes."""

    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None
    optional: bool = False


class Variant(NamedTuple):
    kinds: tuple[Any, ...]
    values: dict[str, tuple[Any, ...]]  # value guards: of inputs by name
    program: Program
    names: tuple[str, ...]  # of its arguments
    outputs: tuple[str, ...]
    host: dict[str, Any]  # results that no program computes: strings, absent optionals


class Cut(Exception):
    """A trace came to a node that no program can hold."""

    def __init__(self, index: int, why: str, needs: tuple[str, ...] = ()):
        super().__init__(why)
        self.index, self.why, self.needs = index, why, needs


class Step:
    """Nodes first to last of the main graph. why: they run eagerly; None: by programs."""

    def __init__(self, first: int, last: int, why: str | None = None):
        self.first, self.last, self.why = first, last, why
        self.variants: list[Variant] = []
        self.guarded: set[str] = set()  # inputs whose values decide about shapes


def names_chosen_sizes(message: str) -> bool:
    """Whether an error is about sizes that the trace has chosen, as nothing was known of them."""
    chosen = {str(n) for n in islice(trace_sizes(), 64)}
    return bool(chosen & set(re.findall(r"\d+", message)))


def needed_nodes(nodes: list[onnx.NodeProto], outputs: list[str]) -> list[tuple[int, onnx.NodeProto]]:
    """The nodes on which an output depends, with their numbers."""
    wanted, kept = set(outputs), []
    for i, node in reversed([*enumerate(nodes)]):
        if wanted & set(node.output):
            kept.append((i, node))
            wanted |= names_used(node)
    return kept[::-1]


def input_of(port: onnx.ValueInfoProto, optional: bool) -> Input:
    which = port.type.WhichOneof("value")
    if which != "tensor_type":
        return Input(port.name, (which or "unknown").removesuffix("_type"), None, optional)
    tensor = port.type.tensor_type
    dtype = "string" if tensor.elem_type == STRING else DTYPES.get(tensor.elem_type, "unknown")
    if not tensor.HasField("shape"):
        return Input(port.name, dtype, None, optional)
    return Input(port.name, dtype, tuple(map(_size, tensor.shape.dim)), optional)


def unknown_type(name: str, kind: onnx.TypeProto) -> str:
    """Why an input whose type is no tensor's with a shape is none of a program."""
    if kind.WhichOneof("value") == "map_type":
        return f"input {name!r} is a map, which is on the host; make the tensor of it before, and export the rest"
    return f"the type of input {name!r} is known when it is called; export it with a tensor's shape"


def _size(dim: Any) -> int | str | None:
    if dim.WhichOneof("value") == "dim_value":
        return dim.dim_value if dim.dim_value >= 0 else None
    return dim.dim_param if dim.dim_param.isidentifier() else None


def result_of(value: Any) -> Any:
    if isinstance(value, (Sizes, Dequantized)):
        return value.array()
    return list(map(result_of, value)) if isinstance(value, list) else value


def kind_of(value: Any) -> Any:
    """What programs are made for, besides sizes."""
    if isinstance(value, list):
        return ("sequence", *map(kind_of, value))
    if value is None or isinstance(value, (np.ndarray, Map)):
        return type(value).__name__
    return value.dtype.name, value.ndim


def kind_of_spec(spec: Any) -> Any:
    return spec.dtype.name, len(spec.shape)


def key_of(value: Any) -> tuple[Any, ...]:
    """The elements of a small array, bit by bit."""
    x = np.asarray(value)
    return x.shape, x.dtype.name, x.tobytes()


def is_small(value: Any) -> bool:
    return isinstance(value, Array) and not is_traced(value) and value.nbytes <= _MOST_GUARDED


def is_host(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(is_host, value))
    return value is None or isinstance(value, (np.ndarray, Map))


def has_pinned_sizes(program: Program) -> bool:
    """Whether guards fix sizes that the trace has chosen, as nothing was known of them: others are tried."""
    for factor in (48, 77):
        known: dict[Any, int] = {}
        shapes = [
            [
                n if isinstance(n, int) else known.setdefault(n or (i, axis), factor * (3 + 2 * len(known)))
                for axis, n in enumerate(port.shape or ())
            ]
            for i, port in enumerate(program.inputs)
        ]
        try:
            program._core.types(shapes)
        except ValueError as error:
            if known and BROKEN_GUARD in str(error):
                continue
        return False
    return True
