"""Strings: on the host, as NumPy's objects."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from dovetail.onnx.registry import Node, onnx_op
from dovetail.onnx.values import constant, expect_known, is_strings

_MOST = 1 << 20  # characters of a text or pattern: regular expressions may take time that grows with both


def _each(function: Any, x: Any, dtype: Any) -> Any:
    return np.array([function(v) for v in x.reshape(-1)], dtype=dtype).reshape(x.shape)


def from_strings(x: Any, name: str) -> Any:
    """Numbers from their texts, as NumPy reads them."""
    if "float" in name or name.startswith("complex"):
        wide = _each(float, x, np.float64)
        from dovetail._array import numpy_dtype

        return constant(wide.astype(numpy_dtype(name)))
    if name == "bool":
        return constant(_each(lambda v: v.strip().lower() not in ("", "0", "false"), x, bool))
    return constant(_each(lambda v: int(float(v)) if not v.strip().lstrip("+-").isdigit() else int(v), x, name))


@onnx_op("StringConcat")
def string_concat(node: Node, a: Any, b: Any) -> Any:
    a, b = np.broadcast_arrays(a, b)
    return np.array([x + y for x, y in zip(a.reshape(-1), b.reshape(-1))], dtype=object).reshape(a.shape)


@onnx_op("RegexFullMatch")
def regex_full_match(node: Node, x: Any) -> Any:
    pattern = node.get("pattern", "")
    if len(pattern) > 1000:
        raise ValueError(f"the pattern has {len(pattern)} characters, expected at most 1000")
    compiled = re.compile(pattern)
    return constant(_each(lambda v: compiled.fullmatch(v[:_MOST]) is not None, x, bool))


@onnx_op("StringNormalizer")
def string_normalizer(node: Node, x: Any) -> Any:
    stop, exact = set(node.get("stopwords") or []), node.get("is_case_sensitive", 0)
    change = {"LOWER": str.lower, "UPPER": str.upper}.get(node.get("case_change_action", "NONE"), str)
    low = {w.lower() for w in stop}
    rows = x.reshape(-1) if x.ndim == 1 else x[0]
    kept = [v for v in rows if (v not in stop if exact else v.lower() not in low)]
    made = np.array([change(v) for v in kept] or [""], dtype=object)
    return made if x.ndim == 1 else made[None]


@onnx_op("StringSplit")
def string_split(node: Node, x: Any) -> Any:
    delimiter, most = node.get("delimiter") or None, node.get("maxsplit", -1)
    rows = [v.split(delimiter, most) if v else [] for v in x.reshape(-1)]
    wide = max(map(len, rows), default=0)
    flat = [part for row in rows for part in (*row, *[""] * (wide - len(row)))]
    made = np.array(flat, dtype=object).reshape(*x.shape, wide)
    return made, constant(np.array([len(row) for row in rows], np.int64).reshape(x.shape))


@onnx_op("TfIdfVectorizer")
def tf_idf(node: Node, x: Any) -> Any:
    expect_known(x, "it looks its elements up in a table")
    grams = _grams(node)
    rows = x if is_strings(x) else np.asarray(x)
    flat = rows.ndim == 1
    rows = rows.reshape(1, -1) if flat else rows
    indexes, weights = node.get("ngram_indexes"), node.get("weights")
    counts = np.zeros((len(rows), max(indexes) + 1), np.float32)
    for out, row in zip(counts, rows):
        _count(node, list(row.tolist()), grams, out)
    weight = np.ones(counts.shape[1], np.float32)
    if weights:
        weight[list(indexes)] = weights
    mode = node.get("mode")
    made = counts if mode == "TF" else (counts > 0) * weight if mode == "IDF" else counts * weight
    return constant((made[0] if flat else made).astype(np.float32))


def _grams(node: Node) -> dict[tuple[Any, ...], int]:
    """The place in the result of each n-gram of the pool."""
    pool = node.get("pool_strings") or list(node.get("pool_int64s"))
    starts, indexes = list(node.get("ngram_counts")), list(node.get("ngram_indexes"))
    grams: dict[tuple[Any, ...], int] = {}
    for n, start in enumerate(starts, 1):
        end = starts[n] if n < len(starts) else len(pool)
        for at in range(start, end, n):
            grams[tuple(pool[at : at + n])] = indexes[len(grams)]
    return grams


def _count(node: Node, row: list[Any], grams: dict[tuple[Any, ...], int], out: Any) -> None:
    low, high, most = node.get("min_gram_length"), node.get("max_gram_length"), node.get("max_skip_count")
    for n in range(low, high + 1):
        for skip in range(most + 1) if n > 1 else (0,):
            step = skip + 1
            for start in range(len(row) - (n - 1) * step):
                gram = tuple(row[start : start + (n - 1) * step + 1 : step])
                if gram in grams:
                    out[grams[gram]] += 1


@onnx_op("ImageDecoder")
def image_decoder(node: Node, x: Any) -> Any:
    """Decodes an image file with Pillow, on the host."""
    expect_known(x, "images are decoded on the host")
    from io import BytesIO

    try:
        from PIL import Image
    except ImportError:
        raise NotImplementedError("ImageDecoder needs Pillow: python -m pip install pillow") from None
    kind = node.get("pixel_format", "RGB")
    with Image.open(BytesIO(np.asarray(x).astype(np.uint8).tobytes())) as image:
        pixels = np.array(image.convert("L" if kind == "Grayscale" else "RGB"))
    if kind == "BGR":
        pixels = pixels[..., ::-1]
    return constant(np.ascontiguousarray(pixels[..., None] if kind == "Grayscale" else pixels))
