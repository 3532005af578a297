"""Maps of the domain ai.onnx.ml: dicts on the host, which come from ZipMap or from the caller."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from dovetail.onnx.elementwise import cast_to
from dovetail.onnx.registry import ML, Node, onnx_op
from dovetail.onnx.values import DTYPES, STRING, Map, constant, expect_known, number_of_dtype

__all__ = ["map_of", "map_type_of"]

_NUMPY = {"string": object, "int64": np.int64, "float32": np.float32, "float64": np.float64}
_CASTS = {"TO_FLOAT": number_of_dtype("float32"), "TO_INT64": number_of_dtype("int64"), "TO_STRING": STRING}


# ---- arguments of a model ----------------------------------------------------------------------------------------


def map_type_of(kind: onnx.TypeProto) -> onnx.TypeProto.Map | None:
    """The map that an input is, or that the elements of a sequence are."""
    which = kind.WhichOneof("value")
    if which == "sequence_type":
        return map_type_of(kind.sequence_type.elem_type)
    return kind.map_type if which == "map_type" else None


def map_of(given: Any, kind: onnx.TypeProto.Map) -> Map:
    """A caller's dict as a map of the model's type. Raises TypeError for anything else."""
    if not isinstance(given, dict):
        raise TypeError(f"got {type(given).__name__}, expected a dict")
    values = kind.value_type.tensor_type.elem_type
    keys, dtype = _name(kind.key_type), _name(values)
    if dtype not in _NUMPY:
        raise NotImplementedError(f"maps to {dtype} are unknown to ai.onnx.ml; export it with one of {[*_NUMPY]}")
    return Map({_element(k, keys, "key"): _element(v, dtype, "value") for k, v in given.items()}, dtype)


def _name(number: int) -> str:
    return "string" if number == STRING else DTYPES.get(number, f"ONNX's dtype {number}")


def _element(x: Any, dtype: str, what: str) -> Any:
    kinds = {"string": (str,), "float32": (int, float), "float64": (int, float)}.get(dtype, (int,))
    x = x.item() if isinstance(x, (np.generic, np.ndarray)) and x.size == 1 else x
    if not isinstance(x, kinds) or isinstance(x, bool):
        raise TypeError(f"got the {what} {x!r} in a map, expected {dtype}; convert it")
    return x


# ---- ops ---------------------------------------------------------------------------------------------------------


@onnx_op("ZipMap", domain=ML)
def zip_map(node: Node, x: Any) -> Any:
    """Rows as maps by label."""
    expect_known(x, "its result are maps, which are on the host")
    labels = node.get("classlabels_strings") or node.get("classlabels_int64s")
    return ([Map(zip(labels, row), x.dtype.name) for row in np.asarray(x).tolist()],)


@onnx_op("DictVectorizer", domain=ML)
def dict_vectorizer(node: Node, x: Any) -> Any:
    """The values of a map in the order of the vocabulary, of a sequence of maps as rows."""
    words = node.get("string_vocabulary") or node.get("int64_vocabulary")
    if not words:
        raise ValueError("got no vocabulary, expected string_vocabulary or int64_vocabulary; export it again")
    if isinstance(x, list):
        return _vector([v for one in x for v in _in_order(one, words)], _dtype(x), (len(x), len(words)))
    return _vector(_in_order(x, words), x.dtype, (len(words),))


def _in_order(x: Map, words: list[Any]) -> list[Any]:
    unknown = x.keys() - set(words)
    if unknown:
        raise ValueError(
            f"the map's key {min(unknown)!r} is not in the vocabulary, as ONNX demands; remove it from the map"
        )
    return [x.get(word, _zero(x.dtype)) for word in words]


@onnx_op("CastMap", domain=ML)
def cast_map(node: Node, x: Map) -> Any:
    """The values of a map in the order of its keys, as a row: as onnxruntime has it, for ONNX names no shape."""
    form, to = node.get("map_form", "DENSE"), node.get("cast_to", "TO_FLOAT")
    if form not in ("DENSE", "SPARSE") or to not in _CASTS:
        raise ValueError(f"got map_form {form!r} and cast_to {to!r}, which ONNX does not define; export it again")
    row = [x[key] for key in sorted(x)]
    if form == "SPARSE":
        size = node.get("max_map", 1)
        outside = [key for key in x if not 0 <= key < size]
        if outside:
            raise ValueError(f"got the key {outside[0]} in a map, expected 0 to {size - 1}, by the node's max_map; "
                             "remove it from the map")  # fmt: skip
        row = [x.get(key, _zero(x.dtype)) for key in range(size)]
    return cast_to(_vector(row, x.dtype, (1, len(row))), _CASTS[to])


def _zero(dtype: str) -> Any:
    """What a missing key stands for."""
    return "0" if dtype == "string" else 0


def _dtype(maps: list[Map]) -> str:
    return maps[0].dtype if maps else "float32"


def _vector(values: list[Any], dtype: str, shape: tuple[int, ...]) -> Any:
    return constant(np.array(values, dtype=_NUMPY[dtype]).reshape(shape))
