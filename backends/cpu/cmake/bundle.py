"""Copies a library under a name of our own, its SONAME changed and its threads taken away.

python bundle.py SOURCE TARGET --serial libdovetail_serial.so --rename omp_ GOMP_

Two reasons: several wheels of PyPI install a libdnnl.so.3 and overwrite each other's, and a SONAME that is already
in the process would win over our file.
"""

import argparse
import shutil
import stat
import subprocess
import sys
from pathlib import Path

PREFIX = "dovetail_"


def undefined_symbols(nm: str, library: Path) -> list[str]:
    """The functions that the library imports from others."""
    out = subprocess.run([nm, "-D", "--undefined-only", str(library)], check=True, capture_output=True, text=True)
    return [line.split()[-1].split("@")[0] for line in out.stdout.splitlines() if line.strip()]


def defined_symbols(nm: str, library: Path) -> set[str]:
    out = subprocess.run([nm, "-D", "--defined-only", str(library)], check=True, capture_output=True, text=True)
    return {line.split()[-1].split("@")[0] for line in out.stdout.splitlines() if line.strip()}


def bundle(args: argparse.Namespace) -> None:
    """Writes args.target."""
    target: Path = args.target
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".partial")
    shutil.copyfile(args.source.resolve(), partial)
    partial.chmod(partial.stat().st_mode | stat.S_IWUSR | stat.S_IXUSR)
    if args.strip:
        subprocess.run([args.strip, "--strip-unneeded", str(partial)], check=True)

    renamed = [s for s in undefined_symbols(args.nm, partial) if s.startswith(tuple(args.rename))]
    missing = sorted({PREFIX + s for s in renamed} - defined_symbols(args.nm, args.serial))
    if missing:
        sys.exit(
            f"bundle.py: {args.source} needs {', '.join(missing)}: expected them in {args.serial.name}; "
            "extend src/bundled/serial.c, or build without this library (-DDOVETAIL_CPU_ONEDNN=OFF)"
        )
    names = partial.with_name(partial.name + ".names")
    names.write_text("".join(f"{s} {PREFIX}{s}\n" for s in renamed))

    needed = subprocess.run(
        [args.patchelf, "--print-needed", str(partial)], check=True, capture_output=True, text=True
    )
    openmp = [n for n in needed.stdout.split() if n.startswith(("libgomp.", "libomp.", "libiomp5."))]
    edit = [args.patchelf, "--set-soname", target.name, "--set-rpath", "$ORIGIN"]
    edit += ["--rename-dynamic-symbols", str(names)]
    # Replaces the OpenMP runtime, so that the versions of its symbols are renamed too.
    for name in openmp:
        edit += ["--replace-needed", name, args.serial.name]
    if not openmp:
        edit += ["--add-needed", args.serial.name]
    subprocess.run([*edit, str(partial)], check=True)
    if not openmp:  # the C library's versions stay, because its own symbols need them
        clear = [option for s in renamed for option in ("--clear-symbol-version", PREFIX + s)]
        subprocess.run([args.patchelf, *clear, str(partial)], check=True)
    names.unlink()
    partial.replace(target)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--serial", type=Path, required=True, help="libdovetail_serial.so")
    parser.add_argument("--rename", nargs="+", required=True, help="prefixes of the functions it shall find there")
    parser.add_argument("--patchelf", default="patchelf")
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--strip", default="")
    bundle(parser.parse_args())
