"""Rows of a kernel table from text: `kernel(op, "float32 any32 float32,int64->float32")`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from dovetail import _core
from dovetail._core import DType

STRIDED, HOST_SCALAR, OPTIONAL, VARIADIC, ALIAS = 1, 2, 4, 8, 16  # DVT_O_* of abi.h
OPERANDS = ("value", "mask", "index", "raw")

Element = DType | int  # int: any dtype of this many bits, 0 for all


class Rows(NamedTuple):
    op: dict[str, Any]
    version: int
    operands: list[list[tuple[Element, int]]]  # of each row: dtype and flags

    def check_signature(self, function: Callable[..., Any], what: str) -> None:
        """Raises TypeError where the function cannot take the calls that the op makes."""
        given, names = _arguments(self.op, self.version)
        signature = inspect.signature(function)
        try:
            signature.bind(None, *given, **dict.fromkeys(names))
        except TypeError as error:
            expected = ", ".join(["self", *given, *(["*", *names] if names else [])])
            raise TypeError(
                f"[{self.op['name']}] {what} is called with ({expected}) and takes {signature}: {error}"
            ) from None


def _arguments(op: dict[str, Any], version: int) -> tuple[list[str], list[str]]:
    """Names of the operands and of the attributes that a kernel for this version of the op is called with."""
    inputs, attributes = ([p["name"] for p in some if p["since"] <= version] for some in split(op))
    outs = ["out"] if op["n_out"] == 1 else [f"out{i + 1}" for i in range(op["n_out"])]
    return inputs + outs, attributes


def _takes(function: Callable[..., Any], op: dict[str, Any], version: int) -> bool:
    given, names = _arguments(op, version)
    try:
        inspect.signature(function).bind(None, *given, **dict.fromkeys(names))
    except TypeError:
        return False
    return True


def split(op: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Operands and attributes of an op's description."""
    params = op["params"]
    return [p for p in params if p["kind"] in OPERANDS], [p for p in params if p["kind"] not in OPERANDS]


def rows_of(
    op: str, dtypes: str, options: dict[str, Any], what: str, functions: Sequence[Callable[..., Any]] = ()
) -> Rows:
    """Raises ValueError or TypeError if the text is invalid for the op, or if a function cannot take its calls."""
    found = _core.describe_op(op)
    words = dtypes.split()
    if not words:
        raise ValueError(f"[{op}] {what} has no dtypes: expected some, as 'float32 int64'")
    version = _version(found, words, functions) if options["version"] is None else options["version"]
    if not 1 <= version <= found["version"]:
        raise ValueError(f"[{op}] {what} is for version {version} of the op: expected 1 to {found['version']}")
    found["params"] = [p for p in found["params"] if p["kind"] not in OPERANDS or p["since"] <= version]
    flags = list(_flags(found, options))
    rows = Rows(found, version, [list(zip(_elements(found, word, what), flags, strict=True)) for word in words])
    for function in functions:
        rows.check_signature(function, what)
    return rows


def _version(op: dict[str, Any], words: list[str], functions: Sequence[Callable[..., Any]]) -> int:
    """The newest version of the op whose operands are as many as the inputs that the rows name and whose attributes
    the functions take: an op may have got more of both after they were written.
    """
    named = {word.partition("->")[0].count(",") + 1 for word in words if "->" in word}
    versions = range(op["version"], 0, -1)
    fitting = [v for v in versions if named in (set(), {sum(p["since"] <= v for p in split(op)[0])})]
    taken = (v for v in fitting if all(_takes(function, op, v) for function in functions))
    return next(taken, (fitting or [op["version"]])[0])


def _flags(op: dict[str, Any], options: dict[str, Any]) -> Iterator[int]:
    inputs, _ = split(op)
    for p in inputs:
        flags = STRIDED if options["strided"] or op["name"] == "copy" else 0
        flags |= HOST_SCALAR if options["scalars"] and p["kind"] == "value" else 0
        flags |= ALIAS if options["alias"] and p["kind"] == "value" else 0
        yield flags | (OPTIONAL if p["optional"] else 0) | (VARIADIC if p["variadic"] else 0)
    yield from [0] * op["n_out"]


def _elements(op: dict[str, Any], word: str, what: str) -> list[Element]:
    inputs, attributes = split(op)
    if "->" in word:
        before, _, after = word.partition("->")
        sides = [[_element(name, what) for name in side.split(",") if name] for side in (before, after)]
        if (len(sides[0]), len(sides[1])) != (len(inputs), op["n_out"]):
            raise ValueError(
                f"[{op['name']}] {what}: {word!r} has {len(sides[0])} inputs and {len(sides[1])} outputs: "
                f"expected {len(inputs)} and {op['n_out']}"
            )
        return sides[0] + sides[1]
    if inputs and any(p["kind"] == "dtype" and p["default"] is ... for p in attributes):
        raise ValueError(f"[{op['name']}] {what}: {word!r} names one dtype: expected two, as '{word}->float32'")
    element = _element(word, what)
    return _by_rule(op, element, what) if isinstance(element, DType) else _of_any(op, element)


def _element(name: str, what: str) -> Element:
    if name.startswith("any") and name[3:] in ("", "8", "16", "32", "64", "128"):
        return int(name[3:] or 0)
    try:
        return _core.to_dtype(name)
    except TypeError as error:
        raise ValueError(f"{what}: {error}, any, or any with a number of bits") from None


def _by_rule(op: dict[str, Any], dtype: DType, what: str) -> list[Element]:
    operands: list[DType] = []
    for given in (False, True):  # a dtype attribute may lead to this dtype: sum(x, dtype=int32)
        operands = _row_dtypes(op, dtype, given)
        if dtype in operands:
            return operands
    computes = ", ".join(d.name for d in dict.fromkeys(operands))
    raise ValueError(f"[{op['name']}] {what} for {dtype} would never be called: the op has {computes} then")


def _row_dtypes(op: dict[str, Any], dtype: DType, given: bool) -> list[DType]:
    inputs, outputs = _core.row_dtypes(op["name"], dtype, given)
    return [*inputs[: len(split(op)[0])], *outputs]  # a row of an older version lacks the newest operands


def _of_any(op: dict[str, Any], bits: int) -> list[Element]:
    """The row of one dtype that the op takes, with that dtype made any. Float first: its comparisons are bool."""
    fits = [d for d in _core.dtypes.values() if bits in (0, 8 * d.itemsize)]
    for dtype in sorted(fits, key=lambda d: d.kind != "real floating"):
        try:
            operands = _row_dtypes(op, dtype, not split(op)[0])
        except TypeError:
            continue
        if dtype in operands:
            return [bits if d == dtype else d for d in operands]
    raise ValueError(f"[{op['name']}] takes no dtype of {bits} bits")
