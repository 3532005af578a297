"""A program as it is written: JSON text, a document, or a .dvt file, which is one of safetensors."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from dovetail.schema import dtypes as dt

FORMAT = 1
MOST_HEADER = 100_000_000  # bytes, as safetensors has it
DTYPES = {
    "BOOL": dt.bool_, "I8": dt.int8, "I16": dt.int16, "I32": dt.int32, "I64": dt.int64,
    "U8": dt.uint8, "U16": dt.uint16, "U32": dt.uint32, "U64": dt.uint64,
    "F8_E4M3": dt.float8_e4m3fn, "F8_E5M2": dt.float8_e5m2, "F16": dt.float16, "BF16": dt.bfloat16,
    "F32": dt.float32, "F64": dt.float64, "C64": dt.complex64,
    "F8_E4M3FNUZ": dt.float8_e4m3fnuz, "F8_E5M2FNUZ": dt.float8_e5m2fnuz, "F8_E8M0": dt.float8_e8m0fnu,
}  # fmt: skip


class BadProgram(ValueError):
    """The text or the file is no sound program."""


class Loaded(NamedTuple):
    document: dict[str, Any]
    tensors: dict[str, np.ndarray]  # the arrays of the program, by name


def expect(holds: Any, message: str) -> None:
    if not holds:
        raise BadProgram(message)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    expect(len(made) == len(pairs), "an object has a name twice")
    return made


def parse(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as e:
        raise BadProgram(f"no JSON: {e}") from None
    expect(isinstance(document, dict), "a program: expected an object")
    found = document.get("dovetail")
    expect(found == FORMAT, f"a program of format {found}: expected {FORMAT}; pip install -U dovetail-conformance")
    return document


def without_places(document: Any) -> Any:
    """The document without lines of nodes and guards and hashes of tensors, of which a file has the hash."""
    if isinstance(document, list):
        return [without_places(x) for x in document]
    if not isinstance(document, dict):
        return document
    is_node = "op" in document and "in" in document
    is_tensor = "dtype" in document and "shape" in document
    hidden = {"where"} if is_node else {"sha256"} if is_tensor else set()
    made = {k: without_places(v) for k, v in document.items() if k not in hidden}
    if isinstance(made.get("guards"), list):
        made["guards"] = [g[:4] if isinstance(g, list) else g for g in made["guards"]]
    return made


def read_safetensors(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """The metadata and the arrays, which read the mapped file."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        expect(length <= MOST_HEADER, f"{path}: a header of {length} bytes: expected at most {MOST_HEADER}")
        header = file.read(length)
    expect(len(header) == length, f"{path}: cut off: the header ends at byte {8 + length}")
    entries = json.loads(header, object_pairs_hook=_unique)
    data = np.memmap(path, np.uint8, "r")[8 + length :]  # never empty: the header was read
    metadata = entries.pop("__metadata__", {})
    tensors = {}
    for name, entry in entries.items():
        begin, end = entry["data_offsets"]
        expect(entry["dtype"] in DTYPES, f"{path}: tensor {name} has the dtype {entry['dtype']}")
        d = DTYPES[entry["dtype"]].numpy
        size = math.prod(entry["shape"]) * d.itemsize
        expect(0 <= begin <= end <= data.size, f"{path}: cut off: tensor {name} ends at byte {8 + length + end}")
        expect(end - begin == size, f"{path}: tensor {name} has {end - begin} bytes: expected {size}")
        # A copy where the file does not align it.
        tensors[name] = np.frombuffer(data[begin:end].tobytes(), d).reshape(entry["shape"])
    return metadata, tensors


def _with_weights(path: Path, tensors: dict[str, np.ndarray], document: dict[str, Any]) -> dict[str, np.ndarray]:
    """And the arrays that the program names in other files of its folder."""
    opened: dict[str, dict[str, np.ndarray]] = {}
    made = dict(tensors)
    for name, entry in document.get("tensors", {}).items():
        if "file" not in entry:
            continue
        file = entry["file"]
        parts = file.split("/")
        expect(not {"", ".", ".."} & set(parts), f"{path}: tensor '{name}': the file {file!r} leaves its folder")
        if file not in opened:
            opened[file] = read_safetensors(path.parent / file)[1]
        expect(entry["tensor"] in opened[file], f"{path}: {file} lacks the tensor {entry['tensor']!r}")
        made[name] = opened[file][entry["tensor"]]
    return made


def _declared(tensors: dict[str, np.ndarray], document: dict[str, Any]) -> dict[str, np.ndarray]:
    """The program's arrays with the dtypes that it declares: safetensors has no name for some, and stores bytes."""
    made = {}
    for name, entry in document.get("tensors", {}).items():
        expect(name in tensors, f"the file lacks the tensor '{name}'")
        d, shape = dt.by_name[entry["dtype"]], tuple(entry["shape"])
        raw, size = (
            np.ascontiguousarray(tensors[name]).reshape(-1).view(np.uint8),
            -(-math.prod(shape) * d.bits // 8),
        )
        expect(raw.size == size, f"tensor '{name}' has {raw.size} bytes: expected {size}")
        made[name] = (_unpacked(raw, d)[: math.prod(shape)] if d in dt.PACKED else raw.view(d.numpy)).reshape(shape)
    return made


def _unpacked(raw: np.ndarray, d: dt.DType) -> np.ndarray:
    """Elements that share bytes, the first in the lowest bits."""
    codes = (raw[:, None] >> np.arange(0, 8, d.bits, dtype=np.uint8) & (2**d.bits - 1)).reshape(-1)
    if d.kind == "f":
        return codes.view(d.numpy)
    sign = 2 ** (d.bits - 1) if d.kind == "i" else 0
    return ((codes.astype(np.int8) ^ sign) - sign).astype(d.numpy)


def load_document(source: str | Path | dict[str, Any], tensors: dict[str, np.ndarray] | None = None) -> Loaded:
    """From a document, its text, or the path of a .dvt or .json file."""
    if isinstance(source, dict):
        return Loaded(source, tensors or {})
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return Loaded(parse(source), tensors or {})
    path = Path(source)
    if path.suffix == ".json":
        return Loaded(parse(path.read_text()), tensors or {})
    metadata, stored = read_safetensors(path)
    expect(metadata.get("format") == "dovetail", f"{path}: not a dovetail file")
    text = metadata["program"]
    document = parse(text)
    bare = json.dumps(without_places(document), separators=(",", ":"), ensure_ascii=False)
    sums = {hashlib.sha256(t.encode()).hexdigest() for t in (text, bare)}
    expect(metadata.get("sha256") in sums, f"{path}: the program's text was changed: its hash is another")
    return Loaded(document, _declared(_with_weights(path, stored, document), document))
