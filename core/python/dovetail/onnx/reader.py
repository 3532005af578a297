"""Files of models: their versions, their tensors, and the data that they keep in other files of their folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto, TensorProto, numpy_helper

from dovetail.onnx.registry import same_domain, shown
from dovetail.onnx.values import DTYPES, STRING, Unsupported, constant

__all__ = ["NEWEST", "Source", "read"]

NEWEST = {
    "": 28,
    "ai.onnx.ml": 5,
    "ai.onnx.preview.training": 1,
    "ai.onnx.preview": 1,
}  # opsets that this version knows
_PLAIN = """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"""
_BYTES = {name: np.dtype(name).itemsize for name in _PLAIN.split()}


class Source:
    """A model with the folder that it may read, and its name for messages."""

    def __init__(self, model: ModelProto, path: str | None):
        self.model, self.path = model, path
        self.name = shown(os.path.basename(path)) if path else "model"
        self.folder = os.path.dirname(os.path.abspath(path)) if path else None
        self.opsets = {same_domain(o.domain): o.version for o in model.opset_import} or {"": 1}
        self.functions = {(same_domain(f.domain), f.name, f.overload): f for f in model.functions}
        for domain, newest in NEWEST.items():
            if self.opsets.get(domain, 1) > newest:
                raise ValueError(
                    f"[{self.name}] opset {self.opsets[domain]} of {domain or 'ai.onnx'} is newer than {newest}, "
                    f"which this version knows; pip install -U dovetail-runtime, or export with opset {newest}"
                )

    @contextmanager
    def named(self) -> Iterator[None]:
        """Errors of an import that do not name the model do so."""
        try:
            yield
        except (ValueError, TypeError, IndexError, MemoryError, RuntimeError) as error:
            text = str(error)
            if isinstance(error, UnicodeError):  # its text is made of attributes
                raise ValueError(f"[{self.name}] {text}") from None
            if not text.startswith(f"[{self.name}]"):
                error.args = (f"[{self.name}] {text}",)
            raise

    # ---- tensors

    def array(self, t: TensorProto) -> np.ndarray:
        """A tensor as NumPy has it; strings as objects. Raises ValueError for one whose data does not fit."""
        what = f"[{self.name}] tensor {t.name!r}"
        if any(d < 0 for d in t.dims):
            raise ValueError(
                f"{what}: got the shape {tuple(t.dims)}, expected sizes of at least 0; export it again"
            )
        if t.data_type == STRING:
            return self._strings(t, what)
        if t.data_type not in DTYPES:
            raise Unsupported(f"{what}: its dtype {t.data_type} is not one of dovetail's; cast it when exporting")
        try:
            if t.data_location == TensorProto.EXTERNAL:
                return self._external(t, what)
            return numpy_helper.to_array(t)
        except (ValueError, TypeError, IndexError, KeyError) as error:
            if str(error).startswith("["):
                raise
            raise ValueError(f"{what} of shape {tuple(t.dims)}: {error}; export it again") from None

    def constant(self, t: TensorProto) -> Any:
        """A tensor as an array on the importer's device."""
        return constant(self.array(t))

    def _strings(self, t: TensorProto, what: str) -> np.ndarray:
        if t.data_location == TensorProto.EXTERNAL:
            raise ValueError(f"{what}: strings in external data are not allowed by ONNX; export it again")
        try:
            flat = np.array([s.decode("utf-8") for s in t.string_data] or [""][:0], dtype=object)
            return flat.reshape(tuple(t.dims))
        except (UnicodeDecodeError, ValueError) as error:
            raise ValueError(f"{what} of strings: {error}; export it again") from None

    # ---- external data

    def _external(self, t: TensorProto, what: str) -> np.ndarray:
        given = {entry.key: entry.value for entry in t.external_data}
        path = self._inside(given.get("location", ""), what)
        size = os.path.getsize(path)
        try:
            offset = int(given.get("offset") or 0)
            length = int(given["length"]) if given.get("length") else size - offset
        except ValueError:
            raise ValueError(
                f"{what}: offset and length of external data: got {given}, expected integers"
            ) from None
        if offset < 0 or length < 0 or offset + length > size:
            raise ValueError(
                f"{what}: external data from byte {offset} to {offset + length}, but {given['location']!r} has "
                f"{size} bytes; copy the whole file"
            )
        name = DTYPES[t.data_type]
        if name in _BYTES:
            count = 1
            for d in t.dims:
                count *= d
            if count * _BYTES[name] != length:
                raise ValueError(
                    f"{what}: external data has {length} bytes, expected {count * _BYTES[name]} for {name} of "
                    f"shape {tuple(t.dims)}; export it again"
                )
            if not count:
                return np.empty(tuple(t.dims), name)
            little = np.dtype(name).newbyteorder("<")
            data = np.memmap(path, dtype=little, mode="r", offset=offset, shape=(count,))
            return np.asarray(data).reshape(tuple(t.dims))
        with open(path, "rb") as file:
            file.seek(offset)
            raw = file.read(length)
        return numpy_helper.to_array(TensorProto(data_type=t.data_type, dims=t.dims, raw_data=raw))

    def _inside(self, location: str, what: str) -> str:
        """The path of external data within the model's folder; symbolic links may not leave it, but for the caches
        of Hugging Face, where the model and its data are links to files of one folder."""
        if self.path is None or self.folder is None:
            raise ValueError(
                f"{what}: external data {location!r} of a model that is no file; load it from its path"
            )
        parts = location.replace("\\", "/").split("/")
        if not location or os.path.isabs(location) or ".." in parts or "\0" in location:
            raise ValueError(
                f"[{self.name}] external data {location!r} leaves the model's folder; put it next to the model"
            )
        path = os.path.join(self.folder, *parts)
        real, root = os.path.realpath(path), os.path.realpath(self.folder)
        siblings = os.path.dirname(os.path.realpath(self.path))
        if not real.startswith(root.rstrip(os.sep) + os.sep) and os.path.dirname(real) != siblings:
            raise ValueError(
                f"[{self.name}] external data {location!r} is a link that leaves the model's folder; put the file "
                "itself there"
            )
        if not os.path.isfile(real):
            raise FileNotFoundError(
                f"[{self.name}] external data {location!r} is not in {self.folder}; copy it there with the model"
            )
        return real


def read(model: Any) -> Source:
    """A path, the bytes of a file or a ModelProto as a Source. Raises ValueError for what is no model."""
    path = None
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        with open(path, "rb") as file:
            model = file.read()
    if isinstance(model, (bytes, bytearray, memoryview)):
        name = shown(os.path.basename(path)) if path else "model"
        try:
            model = ModelProto.FromString(bytes(model))
        except DecodeError:
            raise ValueError(f"[{name}] not an ONNX model: it is no protobuf; export it again") from None
        if not model.HasField("graph") or not model.opset_import:
            raise ValueError(f"[{name}] not an ONNX model: it has no graph or no opset; export it again")
    if not isinstance(model, onnx.ModelProto):
        raise TypeError(f"[onnx] got {type(model).__name__}, expected a path, bytes or an onnx.ModelProto")
    return Source(model, path)
