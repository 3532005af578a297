"""limit.py PLATFORM ARCHITECTURE LIBRARY...: hides from the linker what a platform tag's systems need not have.

Symbols of a newer version than auditwheel's policy allows stop being the default of their names, and the newest of
the allowed versions becomes it: exp is then exp@GLIBC_2.2.5 and no longer exp@@GLIBC_2.29. A name without an older
version is undefined. The libraries are changed in place; programs that run with them see no difference.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from elftools.elf.elffile import ELFFile

HIDDEN = 0x8000  # the bit of an entry of .gnu.version: not what a reference without a version gets


class Definition(NamedTuple):
    at: int  # of its entry of .gnu.version, in the file
    entry: int
    name: str
    family: str  # GLIBC
    version: str  # 2.29


def definitions(elf: ELFFile) -> Iterator[Definition]:
    versions = {v["vd_ndx"]: next(aux).name for v, aux in elf.get_section_by_name(".gnu.version_d").iter_versions()}
    table = elf.get_section_by_name(".gnu.version")
    for number, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
        entry = table.get_symbol(number)["ndx"]
        if symbol["st_shndx"] != "SHN_UNDEF" and isinstance(entry, int):  # words: of no version
            family, _, version = versions[entry & ~HIDDEN].partition("_")
            at = table["sh_offset"] + number * table["sh_entsize"]
            yield Definition(at, entry, symbol.name, family, version)


def limit(library: Path, policy: dict[str, list[str]]) -> None:
    allowed = defaultdict(list)
    newer = []
    with library.open("r+b") as file:
        for definition in definitions(ELFFile(file)):
            if definition.version in policy.get(definition.family, ()):
                allowed[definition.name].append(definition)
            elif definition.family in policy and not definition.entry & HIDDEN:
                newer.append(definition)
        for definition in newer:
            changes = [(definition.at, definition.entry | HIDDEN)]
            if older := allowed[definition.name]:
                best = max(older, key=lambda d: [int(part) for part in d.version.split(".")])
                changes.append((best.at, best.entry & ~HIDDEN))
            for at, entry in changes:
                file.seek(at)
                file.write(entry.to_bytes(2, "little"))


if __name__ == "__main__":
    platform, architecture, *libraries = sys.argv[1:]
    policies = json.loads((files("auditwheel.policy") / "manylinux-policy.json").read_text())
    (policy,) = [p["symbol_versions"][architecture] for p in policies if p["name"] == platform]
    for library in libraries:
        limit(Path(library), policy)
