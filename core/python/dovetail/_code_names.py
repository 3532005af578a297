"""The names that a function's code looks up."""

from __future__ import annotations

import dis
from functools import lru_cache
from types import CodeType
from typing import NamedTuple

__all__ = ["SUPER", "names_of"]

SUPER = "super()."  # in front of attributes of functions in which it is called

_OF_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")


class CodeNames(NamedTuple):
    """What code, and the code within it, names."""

    globals: frozenset[str]  # that it reads
    read: frozenset[str]  # attributes; strings in it may name others, as for getattr()
    written: frozenset[str]  # attributes
    imported: frozenset[str]  # modules, with dots in front where they are relative


@lru_cache(maxsize=4096)
def names_of(code: CodeType) -> CodeNames:
    names = _names(code)
    of = {
        kind: frozenset(name for k, name in names if k == kind)
        for kind in ("global", "read", "written", "imported")
    }
    hidden = [SUPER + name for name in of["read"]] if "super" in of["global"] else []
    return CodeNames(
        of["global"], of["read"].union(hidden, _strings(code.co_consts)), of["written"], of["imported"]
    )


def _names(code: CodeType) -> set[tuple[str, str]]:
    names = set()
    before: list[object] = [0, 0]  # what the last two instructions have to do with
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            level = before[0] if isinstance(before[0], int) else 0
            names.add(("imported", "." * level + instruction.argval))
        elif instruction.opcode in dis.hasname and isinstance(instruction.argval, str):
            name, op = instruction.argval, instruction.opname
            names.add(("global" if op in _OF_GLOBALS else "written" if op == "STORE_ATTR" else "read", name))
        before = [before[1], instruction.argval]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names


def _strings(constants: tuple[object, ...]) -> frozenset[str]:
    found: set[str] = set()
    for x in constants:
        if isinstance(x, str):
            found.add(x)
        elif isinstance(x, (tuple, frozenset)):
            found |= _strings(tuple(x))
        elif isinstance(x, CodeType):
            found |= _strings(x.co_consts)
    return frozenset(found)
