"""How a kernel's row names an op, and what the call that reaches the kernel holds."""

from __future__ import annotations

from typing import Any, NamedTuple

from .declare import Op, Param
from .rules import NORMALISED

# The kinds of dvt_attr (abi.h) that a parameter of each kind arrives as.
KINDS = {
    "i64": "I64",
    "f64": "F64",
    "boolean": "BOOL",
    "str": "STR",
    "i64s": "I64S",
    "dtype": "DTYPE",
    "scalar": "NUMBER",  # BOOL, I64, U64, F64 or F64S
    "program": "PROGRAM",
}
# The dtypes that operands of these kinds are cast to; the op's dtype rule decides those of the other kinds.
CASTS = {"mask": "bool", "index": "i64", "raw": "as given"}


class Attribute(NamedTuple):
    name: str
    kind: str  # of dvt_attr: "I64", "F64 or NONE"
    normalised: str  # "counted from 0": what the shape rule makes of it, or ""

    def __str__(self) -> str:
        return f"{self.name} {self.kind}" + f" ({self.normalised})" * bool(self.normalised)


class Signature(NamedTuple):
    row: str  # "dvt.softmax": what dvt::Row names, whatever namespace the function is in
    inputs: tuple[str, ...]  # "x", "bias?" which may be a NULL entry, "arrays..." repeated, "indices: i64" cast
    outputs: int
    attributes: tuple[Attribute, ...]

    def as_dict(self) -> dict[str, Any]:
        return self._asdict() | {"attributes": [a._asdict() for a in self.attributes]}

    def __str__(self) -> str:
        text = f"{self.row}({', '.join(self.inputs)})"
        text += f" -> {self.outputs} outputs" if self.outputs > 1 else ""
        listed = (f"{i} {attribute}" for i, attribute in enumerate(self.attributes))
        return f"{text} attr: {', '.join(listed)}" if self.attributes else text


def signature(op: Op) -> Signature | None:
    """None for an op that the core serves itself: it looks no row up."""
    if op.spec.view or op.core:
        return None
    row = op.name if "." in op.name else f"dvt.{op.name}"
    words = NORMALISED.get(op.spec.shape, {})
    attributes = tuple(_attribute(p, words.get(p.name, "")) for p in op.attributes)
    return Signature(row, tuple(map(_input, op.operands)), op.spec.n_out, attributes)


def _input(p: Param) -> str:
    name = p.name + ("?" if p.optional else "...") * (p.optional or p.variadic)
    return f"{name}: {CASTS[p.kind]}" if p.kind in CASTS else name


def _attribute(p: Param, normalised: str) -> Attribute:
    may_be_none = p.optional and (not normalised or "none: " in normalised)
    return Attribute(p.name, KINDS[p.kind] + (" or NONE" if may_be_none else ""), normalised)
