"""ONNX models as programs, on any device: load, check, save, and handlers for ops of your own.

    model = dovetail.onnx.load("m.onnx", device="acme:0")
    model(ids=ids, mask=mask)["logits"]     # by name: a dict; by position: a tuple
    model.program                           # the same dovetail.Program as dovetail.export gives
    model.save("m.dvt")

Import is tracing: each node is Python over dovetail's functions, run once on arrays without elements. Where a model
is static it is one program, symbolic in its sizes. Where elements of an input decide about shapes, the program is
made for those elements and imported again for others; where the size of a result depends on elements, as of
NonZero, the model is cut into programs at that node. See docs/onnx.md.

Needs the package onnx: python -m pip install "dovetail-runtime[onnx]".
"""

from __future__ import annotations

from typing import Any

try:
    import onnx as _onnx  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "onnx":
        raise
    raise ImportError(
        '[onnx] the package onnx is not installed: python -m pip install "dovetail-runtime[onnx]"', name="onnx"
    ) from error

from dovetail import _devices
from dovetail.onnx import families
from dovetail.onnx.checking import Report, check, missing_ops
from dovetail.onnx.limits import Limits
from dovetail.onnx.model import Input, Model
from dovetail.onnx.reader import read
from dovetail.onnx.registry import Node, register
from dovetail.onnx.saving import save
from dovetail.onnx.wellformed import expect_well_formed

__all__ = ["Input", "Limits", "Model", "Node", "Report", "check", "load", "register", "save"]

families.load()


def load(
    model: Any, device: Any = None, *, values: dict[str, Any] | None = None, limits: Limits | None = None
) -> Model:
    """A model from a path, the bytes of a file, or an onnx.ModelProto.

    device: where its constants are and where it runs; None: the default device. values: inputs that become
    constants, by name, for a program that is made for them. limits: what the import may cost.

    Raises NotImplementedError that lists all ops without a handler or definition; ValueError for a file that is no
    model, an opset that is newer than this version knows, names that are there twice, external data outside of the
    model's folder, or an import beyond its limits; the message names the model, and the node where there is one.
    """
    source = read(model)
    home = _devices.device(device)
    with source.named():
        expect_well_formed(source)
        missing = missing_ops(source)
        if missing:
            raise NotImplementedError(missing)
        return Model(source, home, limits or Limits(), dict(values or {}))
