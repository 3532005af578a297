"""Calls of ops drawn from a seed, as files for every_op.c.

CALLS holds one call after another: the op's name, its operands, its attributes. RESULTS holds a status, the number
of results and an error's message for each, then the results. A text is its length and its bytes.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from dovetail.schema import Op
from dovetail.schema import dtypes as dt
from dovetail.schema.dtypes import DType
from dovetail_conformance.cases.choices import Seeded
from dovetail_conformance.cases.inputs import place_as
from dovetail_conformance.cases.legal import Drawing, partners_of
from dovetail_conformance.cases.operand import Call, Operand

ABSENT, ARRAY, BOOL, INTEGER, REAL = range(5)
NONE, I64, F64, BOOLEAN, STR, I64S, DTYPE = range(7)  # enum of abi.h
# Of DLPack.
CODES = {
    "INT": 0, "UINT": 1, "FLOAT": 2, "BFLOAT": 4, "COMPLEX": 5, "BOOL": 6,
    "F8_E4M3FN": 10, "F8_E4M3FNUZ": 11, "F8_E5M2": 12, "F8_E5M2FNUZ": 13, "F8_E8M0FNU": 14, "F4_E2M1FN": 17,
}  # fmt: skip
MOST_AXES = 6


class Ranks(Drawing):
    """Up to six axes where the suite stops at four, and more of them with one element or with none."""

    def shape(self, least: int = 0, most: int = 4, *, empty: bool = True) -> tuple[int, ...]:
        sizes = [*super().shape(least, MOST_AXES if most == 4 else most, empty=empty)]
        for i in range(len(sizes)):
            if sizes[i] and self.rarely():
                sizes[i] = 0 if empty and self.rarely() else 1
        return tuple(sizes)


def draw(op: Op, dtype: DType, rng: np.random.Generator, dtypes: list[DType]) -> Call:
    return Ranks(Seeded(rng), op, dtype, partners_of(op, dtype), dtypes).call()


# ---- writing -----------------------------------------------------------------------------------------------------


def _text(s: str) -> bytes:
    return struct.pack("<I", len(s.encode())) + s.encode()


def _dtype(d: DType) -> bytes:
    return struct.pack("<BB", CODES[d.code], d.bits)


def _array(a: np.ndarray, layout: str) -> bytes:
    views = {"permute_dims": np.transpose, "broadcast_to": np.broadcast_to}
    view = place_as(a, layout, lambda x: x, views.__getitem__)
    root = view
    while isinstance(root.base, np.ndarray):
        root = root.base
    offset = view.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    n = root.nbytes // a.itemsize
    numbers = (*view.shape, *(s // a.itemsize for s in view.strides), offset // a.itemsize if a.size else 0, n)
    head = struct.pack("<B", ARRAY) + _dtype(dt.of(a)) + struct.pack(f"<B{len(numbers)}q", view.ndim, *numbers)
    return head + root.tobytes()


def _operand(given: Any, host: Any) -> bytes:
    if given is None:
        return struct.pack("<B", ABSENT)
    if isinstance(given, Operand):
        return _array(host, given.layout)
    kind = BOOL if isinstance(given, bool) else INTEGER if isinstance(given, int) else REAL
    return struct.pack("<Bd" if kind == REAL else "<Bq", kind, given)


def _attribute(kind: str, value: Any) -> bytes:
    if value is None:
        return struct.pack("<I", NONE)
    if isinstance(value, DType):
        return struct.pack("<I", DTYPE) + _dtype(value)
    if isinstance(value, str):
        return struct.pack("<I", STR) + _text(value)
    if isinstance(value, tuple):
        return struct.pack(f"<II{len(value)}q", I64S, len(value), *value)
    if isinstance(value, bool):
        return struct.pack("<Iq", BOOLEAN, value)
    if isinstance(value, float) or kind == "f64":
        return struct.pack("<Id", F64, value)
    return struct.pack("<Iq", I64, value)


def written(call: Call) -> bytes:
    operands: list[bytes] = []
    attributes: list[bytes] = []
    for p in call.op.params:
        given, host = call.given.get(p.name), call.host.get(p.name)
        if not p.is_operand:
            if p.name in call.given:
                attributes.append(_text(p.name) + _attribute(p.kind, given))
        elif p.variadic:
            operands += [_operand(g, h) for g, h in zip(given, host, strict=True)]
        else:
            operands.append(_operand(given, host))
    parts = [_text(call.op.name)]
    for several in (operands, attributes):
        parts += [struct.pack("<I", len(several)), *several]
    return b"".join(parts)


# ---- reading -----------------------------------------------------------------------------------------------------


class Result(NamedTuple):
    status: int  # 0: the call was served
    message: str
    arrays: list[np.ndarray]


def results(file: bytes) -> Iterator[Result]:
    by_code = {(CODES[d.code], d.bits): d for d in dt.ALL}
    left = io.BytesIO(file)

    def unpack(form: str) -> tuple:
        return struct.unpack(form, left.read(struct.calcsize(form)))

    def array() -> np.ndarray:
        code, bits, ndim = unpack("<BBB")
        d, shape = by_code[code, bits], unpack(f"<{ndim}q")
        n = int(np.prod(shape, dtype=np.int64))
        return np.frombuffer(left.read(n * d.itemsize), d.numpy).reshape(shape)

    while left.tell() < len(file):
        status, n, length = unpack("<III")
        message = left.read(length).decode()
        yield Result(status, message, [array() for _ in range(n)])
