"""Writes the table of what is deployed into docs/ship_c.md, from the wheels of `make wheels`:

python docs/deployed_sizes.py [dist/release]
"""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/ship_c.md"
ARCHITECTURES = ("x86_64", "aarch64")
# Files by how their names in a wheel end, and what stands behind them.
FILES = {
    "dovetail/libdovetail.so": "the runtime; {} of these are decompositions of ops, read when one is needed",
    "dovetail/dovetail-probe": "next to the runtime",
    "dovetail_cpu/lib/libdovetail_cpu.so": "kernels for all levels of instructions",
    "dovetail_cpu/lib/libdovetail_dnnl.so": "optional: oneDNN, for large products and convolutions",
    "dovetail_cpu/lib/libdovetail_openblas.so": "optional: OpenBLAS, for large products",
}
BEGIN, END = "<!-- docs/deployed_sizes.py: begin -->\n", "<!-- docs/deployed_sizes.py: end -->\n"


def measured(folder: Path) -> dict[str, dict[str, int]]:
    """The bytes of each of FILES by architecture, without those that an architecture's wheels lack.

    Raises FileNotFoundError where the folder has no wheel of an architecture.
    """
    found: dict[str, dict[str, int]] = {}
    for architecture in ARCHITECTURES:
        wheels = sorted(folder.glob(f"dovetail_*_{architecture}.whl"))
        if not wheels:
            raise FileNotFoundError(f"{folder} has no wheels for {architecture}; run make wheels")
        members = [entry for wheel in wheels for entry in zipfile.ZipFile(wheel).infolist()]
        found[architecture] = {
            name: entry.file_size
            for name in FILES
            for entry in members
            if re.fullmatch(re.escape(name) + r"(\.\d+)*", entry.filename)
        }
    return found


def megabytes(size: int | None) -> str:
    """In MB of 1,000,000 bytes, with two digits at least."""
    return "-" if size is None else f"{size / 1e6:.1f}" if size >= 1e6 else f"{size / 1e6:.2f}"


def table(sizes: dict[str, dict[str, int]]) -> str:
    """The lines of the page between BEGIN and END."""
    decompositions = megabytes((ROOT / "core/generated/decompositions.json").stat().st_size)
    lines = [f"| file | {' | '.join(ARCHITECTURES)} | |", "| --- |" + " --- |" * (len(ARCHITECTURES) + 1)]
    for name, what in FILES.items():
        columns = " | ".join(megabytes(sizes[a].get(name)) for a in ARCHITECTURES)
        lines.append(f"| `{name.rpartition('/')[2]}` | {columns} | {what.format(decompositions)} |")
    return "\n".join(lines) + "\n"


def with_table(text: str, lines: str) -> str:
    """A page with these lines in place of its table."""
    return text[: text.index(BEGIN)] + BEGIN + lines + text[text.index(END) :]


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist/release"
    PAGE.write_text(with_table(PAGE.read_text("utf-8"), table(measured(folder))), "utf-8")


if __name__ == "__main__":
    main()
