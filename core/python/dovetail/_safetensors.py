"""Arrays from and to safetensors files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from dovetail import _core, _devices
from dovetail._array import expect_elements
from dovetail._core import Array, Device

__all__ = ["load_safetensors", "save_safetensors"]

_MOST_BYTES = 100_000_000  # of an index, as of a file's header
_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"


def load_safetensors(
    path: str | os.PathLike[str],
    *,
    device: Device | str | None = None,
    names: Iterable[str] | None = None,
) -> dict[str, Array]:
    """The arrays of a safetensors file, by name, in the file's order, straight on a device.

    path: a .safetensors file; the index of one that was split, as model.safetensors.index.json; or a folder that
    has model.safetensors.index.json or model.safetensors. device: None: the default device. names: the tensors to
    load, in this order; None: all.

    Files are mapped. Where the device computes in the host's memory, aligned arrays are the file itself, which is
    read when their elements are; nothing ever writes to it. If the file is truncated while they are in use, the
    process ends. Other devices get a copy, through two pinned buffers where the device has such memory.

    Raises ValueError, with the names of file and tensor, for a file that is no safetensors file, is cut off, has
    overlapping tensors or holes, sizes that do not fit the bytes, a name twice, or a dtype that Dovetail does not
    have; and where it has no tensor of one of `names`. FileNotFoundError where there is no such file.
    """
    home = _devices.device(device)
    if isinstance(names, str):
        raise TypeError(f"[load_safetensors] names: expected a list of names, got {names!r}")
    files, homes = _open(_file_or_index(os.fspath(path)))
    arrays: dict[str, Array] = {}
    trace = _core.recorder()
    for name in homes if names is None else dict.fromkeys(names):
        if name not in homes:
            raise ValueError(
                f"[load_safetensors] {os.path.basename(path)} has no tensor {name!r}: expected one of its "
                f"{len(homes)}, as {', '.join(map(repr, list(homes)[:3])) or 'none'}"
            )
        made = arrays[name] = files[homes[name]].load(name, home)
        if trace is not None:
            trace.made(made)
    return arrays


def _file_or_index(path: str) -> str:
    if not os.path.isdir(path):
        return path
    for name in (_INDEX, _WEIGHTS):
        if os.path.isfile(inside := os.path.join(path, name)):
            return inside
    raise ValueError(f"[load_safetensors] {path} is a folder without {_INDEX} or {_WEIGHTS}: give a file's path")


def _open(path: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The files, by path, and the path of the file of each tensor."""
    if not path.endswith(".json"):
        file = _core.WeightsFile(path)
        return {path: file}, dict.fromkeys(file.names, path)
    homes = {name: os.path.join(os.path.dirname(path), file) for name, file in _read_index(path).items()}
    return {file: _core.WeightsFile(file) for file in dict.fromkeys(homes.values())}, homes


def _read_index(path: str) -> dict[str, str]:
    """The file of each tensor, by name. Every file is one of the index's folder."""
    where = f"[load_safetensors] {os.path.basename(path)}: "

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, value in pairs:
            if name in made:
                raise ValueError(f"the name {name!r} for the second time")
            made[name] = value
        return made

    try:
        if (size := os.stat(path).st_size) > _MOST_BYTES:
            raise ValueError(f"{size} bytes: expected at most {_MOST_BYTES}")
        with open(path, encoding="utf-8") as file:
            index = json.load(file, object_pairs_hook=members)
    except FileNotFoundError:
        raise FileNotFoundError(f"{where}no such file: {path}") from None
    except (OSError, RecursionError, ValueError) as why:
        raise ValueError(f"{where}{why}") from None
    shards = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(shards, dict):
        raise ValueError(f"{where}expected an object with a weight_map")
    for name, file in shards.items():
        if not isinstance(file, str) or not file.endswith(".safetensors") or os.path.basename(file) != file:
            raise ValueError(f"{where}tensor {name}: expected the name of a .safetensors file, got {file!r}")
    return shards


def save_safetensors(
    arrays: Mapping[str, Array],
    path: str | os.PathLike[str],
    *,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes arrays of any device to a safetensors file, which load_safetensors and every other reader takes.

    metadata: names and texts that go into the file's header. The file is written under another name first, so that
    who reads `path` gets the old file or the new one, whole. Arrays that share elements are written separately.

    Raises ValueError for a dtype that the format lacks, which is complex128, RuntimeError where the file cannot be
    written, TypeError for anything but arrays and strings.
    """
    if not isinstance(arrays, Mapping):
        got = type(arrays).__name__
        raise TypeError(f"[save_safetensors] arrays: expected a dict of names and arrays, got {got}")
    for name, x in arrays.items():
        _expect_text("arrays: a name", name)
        if name == "__metadata__":
            raise ValueError("[save_safetensors] arrays: '__metadata__' is no name of an array; use metadata=")
        if type(x) is not Array:
            if isinstance(x, Array):  # a tracer
                expect_elements("save_safetensors", x, "save the arrays that the function returns")
            raise TypeError(
                f"[save_safetensors] {name}: expected a dovetail array, got {type(x).__name__}: "
                "dovetail.asarray() makes an array"
            )
    for key, text in (metadata or {}).items():
        _expect_text("metadata: a name", key)
        _expect_text(f"metadata: {key}", text)
    _core.save_safetensors(os.fspath(path), dict(arrays), dict(metadata or {}))


def _expect_text(what: str, text: Any) -> None:
    if not isinstance(text, str):
        raise TypeError(f"[save_safetensors] {what}: expected a string, got {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"[save_safetensors] {what}: expected text of Unicode, got {text!r}") from None
