"""The libraries for Windows: no instruction that needs more alignment than the stack has, and what they export."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

OBJDUMP = "x86_64-w64-mingw32-objdump"
# They need 32 or 64 bytes, where the stack has 16. Its address may be in any register, so there must be none.
# vmovntdq may be there: no compiler stores so by itself, and strided_copy.hpp, which does, looks at the address.
ALIGNED = re.compile(r"\bv(?:mova(?:ps|pd)|movdqa(?:32|64)?|movnt(?:ps|pd|dqa))\s+.*[yz]mm")
API = Path(__file__).parents[2] / "core/include/dovetail/runtime.h"


def output_of(*command: object) -> str:
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True, timeout=300).stdout


@pytest.fixture(scope="module", autouse=True)
def objdump() -> None:
    if not shutil.which(OBJDUMP):
        pytest.skip(f"{OBJDUMP} is not installed: Debian's binutils-mingw-w64-x86-64 has it")


def aligned(listing: str) -> list[str]:
    return [line.strip() for line in listing.splitlines() if ALIGNED.search(line)]


def test_no_vector_is_expected_to_be_aligned_on_the_stack(built):
    """GCC bug 54412. Wine, or luck, may hide what faults on Windows."""
    for library in (built.core / "libdovetail.dll", built.core / "dovetail-probe.exe", built.cpu):
        listing = output_of(OBJDUMP, "-d", "-M", "intel", "--no-show-raw-insn", library)
        assert len(listing) > 1_000_000
        assert not (found := aligned(listing)), (library.name, len(found), found[:5])
    spills = re.findall(r"vmovup[sd]\s+YMMWORD PTR \[r[sb]p", listing)
    assert len(spills) > 100, "the CPU device spills vectors; has the listing another form?"


def test_the_check_finds_such_accesses(tmp_path):
    """Without the option of the toolchain file, which some compilers pass by themselves."""
    source = tmp_path / "spill.s"
    source.write_text(
        "vmovaps %ymm0, 32(%rsp)\nvmovdqa 64(%rcx), %ymm1\nvmovdqa64 %zmm1, (%rbp)\nvmovntps %ymm0, (%rax)\n"
    )
    found = {}
    for name, options in {"aligned": [], "unaligned": ["-muse-unaligned-vector-move"]}.items():
        assembled = tmp_path / f"{name}.o"
        output_of("x86_64-w64-mingw32-as", *options, source, "-o", assembled)
        found[name] = len(aligned(output_of(OBJDUMP, "-d", "-M", "intel", assembled)))
    assert found == {"aligned": 4, "unaligned": 1}, found


def exports(library: Path) -> set[str]:
    listing = output_of(OBJDUMP, "-p", library)
    table = listing.partition("[Ordinal/Name Pointer] Table")[2].partition("\n\n")[0]
    return set(re.findall(r"^\s*\[\s*\d+\]\s+(?:\+base\[\s*\d+\]\s+[0-9a-f]+\s+)?(\w+)$", table, re.MULTILINE))


def test_only_the_interfaces_are_exported(built):
    declared = set(re.findall(r"^DVT_EXPORT [^(]*?\b(dvr_\w+)\(", API.read_text(), re.MULTILINE))
    assert exports(built.core / "libdovetail.dll") == declared
    assert exports(built.cpu) == {"dvt_probe_v1", "dvt_backend_v1"}


def test_nothing_but_the_system_is_needed(built):
    """The compiler's libraries are inside: a product deploys three files."""
    system = {"advapi32.dll", "kernel32.dll", "msvcrt.dll", "ntdll.dll", "shell32.dll", "user32.dll"}
    system |= {"api-ms-win-crt-math-l1-1-0.dll"}  # of the universal C runtime, a part of Windows 10
    for library in (built.core / "libdovetail.dll", built.core / "dovetail-probe.exe", built.cpu):
        needed = {name.lower() for name in re.findall(r"DLL Name: (\S+)", output_of(OBJDUMP, "-p", library))}
        assert needed <= system, (library.name, needed - system)
