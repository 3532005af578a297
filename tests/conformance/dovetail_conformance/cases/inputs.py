"""The arguments of a call: values from the schema's samples, and how they lie in the device's memory."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from dovetail.schema import Op
from dovetail.schema import dtypes as dt
from dovetail.schema.declare import REQUIRED
from dovetail.schema.dtypes import DType
from dovetail.schema.samples import Draw, Sample

# Layouts of operands other than dense and row-major.
LAYOUTS = ("strided", "offset", "T")
PRODUCT_LAYOUTS = ("NT", "TN", "TT", "strided", "offset")  # of two matrices: T is a transposed one


def generator(seed: int, case_id: str) -> np.random.Generator:
    """Random numbers of one case: the same on every machine, whichever cases run before."""
    digest = hashlib.sha256(case_id.encode()).digest()
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)]
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *words])))


def has_one_operand(op: Op) -> bool:
    """Whether it is elementwise, with one array and no other required argument."""
    required = [p for p in op.params if p.default is REQUIRED]
    return op.spec.shape == "same" and [p.kind for p in required] == ["value"] == [p.kind for p in op.operands]


def draws(sample: Sample) -> Iterator[Draw]:
    """The arrays of a call, in order."""
    for a in (*sample.args, *sample.kwargs.values()):
        for item in a if isinstance(a, list) else (a,):
            if isinstance(item, Draw):
                yield item


# The dtypes of indices and masks, which every device takes.
EVERYWHERE = frozenset({dt.int64, dt.bool_})


def named_in(sample: Sample) -> frozenset[DType]:
    """The dtypes that the call itself names: of operands that are not of the case's dtype, and attributes."""
    operands = {dt.float32 if d.wide else d.dtype for d in draws(sample) if d.wide or d.dtype} - EVERYWHERE
    return frozenset(operands | {a for a in (*sample.args, *sample.kwargs.values()) if isinstance(a, DType)})


def layouts(sample: Sample, shape_rule: str) -> tuple[str, ...]:
    """The layouts that make a difference to this call."""
    shapes = [d.shape for d in draws(sample)]
    if sample.error or not any(math.prod(s) > 1 for s in shapes):
        return ()
    matrices = [len(s) >= 2 for s in shapes[:2]]
    if shape_rule == "matmul" and all(matrices):
        return PRODUCT_LAYOUTS
    return LAYOUTS if any(len(s) >= 2 for s in shapes) else LAYOUTS[:2]


def lay_out(args: tuple, kwargs: dict[str, Any], layout: str, place: Callable[[np.ndarray, str], Any]) -> tuple:
    """The arguments with each array put on the device by place(array, how), how being one of place_as."""
    count = 0

    def one(a: Any) -> Any:
        nonlocal count
        if isinstance(a, list):
            return [one(x) for x in a]
        if not isinstance(a, np.ndarray):
            return a
        how = layout
        if layout in ("NT", "TN", "TT"):
            how = {"N": "", "T": "T"}[layout[count]] if count < 2 else ""
        count += 1
        return place(a, how)

    return tuple(one(a) for a in args), {k: one(a) for k, a in kwargs.items()}


def _junk(shape: tuple[int, ...], like: np.ndarray) -> np.ndarray:
    """Fill the gaps of a strided array with junk, so that reads of them show."""
    return np.full(shape, 0xB5, np.uint8).repeat(like.dtype.itemsize, axis=-1).view(like.dtype)


def place_as(a: np.ndarray, how: str, asarray: Callable[[np.ndarray], Any], function: Callable[[str], Any]) -> Any:
    """`a` on the device: dense (""), every second element of something larger (strided), every second row (rows),
    one element behind the beginning of a buffer (offset), column by column (T; F for all axes backwards), or its
    first row repeated with stride 0 (repeated: all must be equal), or its first column (columns: likewise).
    function(name) gives the op of that name.
    """
    if a.dtype.kind == "b":
        junk = lambda shape: np.ones(shape, np.bool_)  # noqa: E731  other bytes are no bool
    else:
        junk = lambda shape: _junk(shape, a)  # noqa: E731
    if how in ("T", "F") and a.ndim >= 2:
        axes = tuple(reversed(range(a.ndim))) if how == "F" else (*range(a.ndim - 2), a.ndim - 1, a.ndim - 2)
        return function("permute_dims")(asarray(np.ascontiguousarray(a.transpose(axes))), axes)
    if not a.ndim or not a.size:
        return asarray(a)
    if how == "strided":
        large = junk((*a.shape[:-1], 2 * a.shape[-1] + 1))
        large[..., 1::2] = a
        return asarray(large)[..., 1::2]
    if how == "rows":
        large = junk((2 * a.shape[0], *a.shape[1:]))
        large[::2] = a
        return asarray(large)[::2]
    if how == "offset":
        large = junk((a.shape[0] + 1, *a.shape[1:]))
        large[1:] = a
        return asarray(large)[1:]
    if how in ("repeated", "columns"):
        return function("broadcast_to")(asarray(a[:1] if how == "repeated" else a[..., :1]), a.shape)
    return asarray(a)
