"""Links an ELF object into a flat, position-independent image: no loader has anything to resolve."""

import hashlib
import struct
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["LinkError", "link"]

MAGIC, VERSION, PAGE, HEADER = b"DVTCODE\0", 1, 4096, 72
X86_64, AARCH64 = 62, 183
PROGBITS, SYMTAB, RELA, NOBITS = 1, 2, 4, 8  # kinds of sections
WRITE, ALLOC, EXECUTE = 1, 2, 4  # flags of sections


class LinkError(Exception):
    """The object needs what an image cannot have."""


class Section(NamedTuple):
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int


class Symbol(NamedTuple):
    name: str
    section: int
    value: int


class Elf:
    """The parts of a relocatable ELF object, 64 bits, little-endian."""

    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01":
            raise LinkError("the object is no ELF of 64 bits, little-endian")
        self.data = data
        (self.machine,) = struct.unpack_from("<H", data, 18)
        (table,) = struct.unpack_from("<Q", data, 40)
        _, count, names = struct.unpack_from("<HHH", data, 58)
        rows = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * i) for i in range(count)]
        at = rows[names][4]
        self.sections = [Section(self._text(at + r[0]), *r[1:3], *r[4:9]) for r in rows]
        symbols = next((s for s in self.sections if s.kind == SYMTAB), None)
        self.symbols: list[Symbol] = []
        if symbols:
            texts = self.sections[symbols.link].offset
            for i in range(symbols.size // 24):
                name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, symbols.offset + 24 * i)
                self.symbols.append(Symbol(self._text(texts + name), section, value))

    def _text(self, at: int) -> str:
        return self.data[at : self.data.index(0, at)].decode(errors="replace")

    def is_loaded(self, section: Section) -> bool:
        """Whether the section is code or constants; tables for unwinding are not taken."""
        return section.kind == PROGBITS and bool(section.flags & ALLOC) and section.name != ".eh_frame"


def link(obj: bytes, functions: Sequence[str], features: str) -> bytes:
    """An image with these functions, in their order, that says which features of the processor its code needs.

    Raises LinkError for a symbol that the object does not define, for data that can be written, and for unknown
    relocations.
    """
    elf = Elf(obj)
    named = features.encode()
    image = bytearray(HEADER + 8 * len(functions)) + named
    image += bytes(-len(image) % 64)
    code = len(image)
    places = _place(elf, image)
    for section in elf.sections:
        if section.kind == RELA and section.info in places:
            for at in range(section.offset, section.offset + section.size, 24):
                _relocate(elf, image, places, places[section.info], *struct.unpack_from("<QQq", obj, at))
    for i, function in enumerate(functions):
        struct.pack_into("<Q", image, HEADER + 8 * i, _function(elf, places, function))
    struct.pack_into(
        "<8sIIIIIIQ", image, 0, MAGIC, VERSION, elf.machine, PAGE, len(functions), len(named), code, len(image)
    )
    image[40:HEADER] = hashlib.sha256(image[:40] + image[HEADER:]).digest()
    return bytes(image)


def _place(elf: Elf, image: bytearray) -> dict[int, int]:
    """Appends the sections; returns the place of each by its number."""
    places = {}
    for i, section in enumerate(elf.sections):
        if not section.size or not section.flags & ALLOC:
            continue
        if section.flags & WRITE or section.kind == NOBITS:
            raise LinkError(f"the object has data that can be written, in {section.name}")
        if elf.is_loaded(section):
            if section.align > PAGE:
                raise LinkError(f"{section.name} is aligned to {section.align} bytes: expected at most {PAGE}")
            image += bytes(-len(image) % max(section.align, 1))
            places[i] = len(image)
            image += elf.data[section.offset : section.offset + section.size]
    return places


def _function(elf: Elf, places: dict[int, int], name: str) -> int:
    for symbol in elf.symbols:
        if symbol.name == name and symbol.section in places:
            if not elf.sections[symbol.section].flags & EXECUTE:
                raise LinkError(f"{name!r} is no function")
            return places[symbol.section] + symbol.value
    raise LinkError(f"the object has no function {name!r}")


def _relocate(
    elf: Elf, image: bytearray, places: dict[int, int], section: int, offset: int, info: int, addend: int
) -> None:
    kind, symbol = info & 0xFFFFFFFF, elf.symbols[info >> 32]
    if symbol.section not in places:
        raise LinkError(f"undefined symbol {symbol.name!r}")
    place, target = section + offset, places[symbol.section] + symbol.value + addend
    apply = RELOCATIONS.get((elf.machine, kind))
    if apply is None:
        raise LinkError(f"relocation {kind} of machine {elf.machine}, at {symbol.name!r}, is not supported")
    (word,) = struct.unpack_from("<I", image, place)
    struct.pack_into("<I", image, place, apply(word, place, target) & 0xFFFFFFFF)


def _relative(word: int, place: int, target: int) -> int:
    return target - place


def _page(word: int, place: int, target: int) -> int:
    pages = (target >> 12) - (place >> 12)
    return word & 0x9F00001F | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5


def _branch(word: int, place: int, target: int) -> int:
    return word & 0xFC000000 | (target - place) >> 2 & 0x3FFFFFF


class _Low:
    """The low 12 bits of an address, in units of what is loaded."""

    def __init__(self, shift: int) -> None:
        self.shift = shift

    def __call__(self, word: int, place: int, target: int) -> int:
        low = target & 0xFFF
        if low & ((1 << self.shift) - 1):
            raise LinkError(f"a constant at {target} is not aligned to {1 << self.shift} bytes")
        return word & ~(0xFFF << 10) | (low >> self.shift) << 10


RELOCATIONS = {
    (X86_64, 2): _relative,  # PC32
    (X86_64, 4): _relative,  # PLT32
    (AARCH64, 261): _relative,  # PREL32
    (AARCH64, 275): _page,  # ADR_PREL_PG_HI21
    (AARCH64, 277): _Low(0),  # ADD_ABS_LO12_NC
    (AARCH64, 278): _Low(0),  # LDST8_ABS_LO12_NC
    (AARCH64, 282): _branch,  # JUMP26
    (AARCH64, 283): _branch,  # CALL26
    (AARCH64, 284): _Low(1),  # LDST16_ABS_LO12_NC
    (AARCH64, 285): _Low(2),  # LDST32_ABS_LO12_NC
    (AARCH64, 286): _Low(3),  # LDST64_ABS_LO12_NC
    (AARCH64, 299): _Low(4),  # LDST128_ABS_LO12_NC
}
