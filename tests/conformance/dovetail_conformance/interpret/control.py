"""Nodes with sub-programs: loop, cond, while_loop, scan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from .document import expect
from .value import Value


class Program(Protocol):
    def run(self, inputs: Operands, attributes: Any = ()) -> list[Value]: ...


Operands = list[Value | None]


def _loop(carries: Operands, at: dict[str, Any]) -> list[Value]:
    """`count` rounds; shapes and dtypes of the carries may change from one to the next."""
    for i in range(at["count"]):
        made = at["body"].run(carries, (i, at.get("numbers", ())))
        expect(len(made) == len(carries), f"[loop] the body returns {len(made)} values: expected {len(carries)}")
        carries = list(made)
    return carries  # type: ignore[return-value]


def _truth(values: list[Value], what: str) -> bool:
    sound = len(values) == 1 and values[0].dtype.kind == "b" and values[0].data.ndim == 0
    expect(sound, f"{what}: expected one 0-d bool")
    return bool(values[0].data)


def _same_types(got: list[Value], expected: Operands, what: str) -> None:
    def types(values: Operands) -> list[Any]:
        return [v and (v.dtype.name, v.data.shape) for v in values]

    expect(types(list(got)) == types(expected), f"{what} returns {types(list(got))}: expected {types(expected)}")


def _cond(operands: Operands, at: dict[str, Any]) -> list[Value]:
    pred, *rest = operands
    return at["then" if _truth([pred], "[cond] pred") else "else"].run(rest)  # type: ignore[list-item]


def _while_loop(carries: Operands, at: dict[str, Any]) -> list[Value]:
    while _truth(at["cond"].run(carries), "[while_loop] cond"):
        made = at["body"].run(carries)
        _same_types(made, carries, "[while_loop] the body")
        carries = list(made)
    return carries  # type: ignore[return-value]


def _scan(operands: Operands, at: dict[str, Any]) -> list[Value]:
    """Carries, and the ys of all rounds stacked."""
    n, length, body = at["n_carry"], at["length"], at["body"]
    carries, xs = operands[:n], operands[n:]
    for x in xs:
        expect(x is not None and x.data.shape[:1] == (length,), f"[scan] xs: expected {length} slices")
    stacked: list[list[Value]] = []
    for i in range(length):
        made = body.run([*carries, *(Value(x.data[i], x.dtype) for x in xs)])  # type: ignore[union-attr]
        _same_types(made[:n], carries, "[scan] the body")
        carries = list(made[:n])
        stacked.append(made[n:])
    if length == 0:
        return [*carries, *_no_rounds(body, carries, xs, n)]  # type: ignore[list-item]
    ys = [Value(np.stack([y.data for y in column]), column[0].dtype) for column in zip(*stacked, strict=True)]
    return [*carries, *ys]  # type: ignore[list-item]


def _no_rounds(body: Program, carries: Operands, xs: Operands, n: int) -> list[Value]:
    """The empty ys, whose types a round with zeros shows."""
    one = [Value(np.zeros(x.data.shape[1:], x.data.dtype), x.dtype) for x in xs if x is not None]
    made = body.run([*carries, *one])[n:]
    return [Value(np.empty((0, *y.data.shape), y.data.dtype), y.dtype) for y in made]


CONTROL: dict[str, Callable[[Operands, dict[str, Any]], list[Value]]] = {
    "loop": _loop,
    "cond": _cond,
    "while_loop": _while_loop,
    "scan": _scan,
}
