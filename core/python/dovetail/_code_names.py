"""The names that a function's code looks up."""

from __future__ import annotations

import dis
from functools import lru_cache
from types import CodeType

__all__ = ["SUPER", "attributes_of", "globals_of", "imports_of", "written_by"]

SUPER = "super()."  # in front of attributes of functions in which it is called

_OF_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")


@lru_cache(maxsize=4096)
def globals_of(code: CodeType) -> frozenset[str]:
    """The globals that code, and the code within it, reads."""
    return frozenset(name for kind, name in _names(code) if kind == "global")


@lru_cache(maxsize=4096)
def attributes_of(code: CodeType) -> frozenset[str]:
    """The attributes that code, and the code within it, reads; strings in it may name others, as for getattr()."""
    read = frozenset(name for kind, name in _names(code) if kind == "read")
    hidden = (SUPER + name for name in read) if "super" in globals_of(code) else ()
    return read.union(hidden, _strings(code.co_consts))


@lru_cache(maxsize=4096)
def imports_of(code: CodeType) -> frozenset[str]:
    """The modules that code, and the code within it, imports, with dots in front where they are relative."""
    return frozenset(name for kind, name in _names(code) if kind == "imported")


@lru_cache(maxsize=4096)
def written_by(code: CodeType) -> frozenset[str]:
    """The attributes that code, and the code within it, writes."""
    return frozenset(name for kind, name in _names(code) if kind == "written")


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
