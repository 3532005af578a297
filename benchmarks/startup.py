"""Time of import and first use: python benchmarks/startup.py

Milliseconds, the median and the best of several fresh processes. Import: over an empty interpreter; aim 15. First
use: finding the backends, opening the CPU device and adding two arrays, after the import; aim 100 where this
machine has seen the library, 300 where it has not. Three backends are installed: the CPU's, and two that are made
for this.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import dovetail

PLUGIN = Path(__file__).parents[1] / "tests/packaging/plugin.c"
FIRST_USE = """
import time
import dovetail as dt
start = time.perf_counter()
x = dt.ones((4, 4), device="cpu")
(x + x)[0, 0].item()
print((time.perf_counter() - start) * 1e3)
"""


def process_ms(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return (time.perf_counter() - start) * 1e3


def first_use_ms(cache: str) -> float:
    run = subprocess.run(
        [sys.executable, "-c", FIRST_USE],
        env=os.environ | {"XDG_CACHE_HOME": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(run.stdout)


def install_backend(name: str, folder: Path) -> None:
    """Write a wheel's files into a folder for PYTHONPATH."""
    package, info = folder / f"dovetail_{name}", folder / f"dovetail_{name}-1.0.dist-info"
    package.mkdir(), info.mkdir()
    library = package / f"libdovetail_{name}.so"
    include = Path(dovetail.__file__).parent / "include"
    command = ["cc", "-O1", "-fPIC", "-shared", f"-I{include}", f'-DNAME="{name}"', str(PLUGIN), "-o", str(library)]
    subprocess.run(command, check=True)
    (package / "__init__.py").write_text(
        f"import types\nbackend = types.SimpleNamespace(library={str(library)!r})\n"
    )
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: dovetail-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[dovetail.backends]\n{name} = dovetail_{name}:backend\n")


def report(what: str, times: list[float], aim: float) -> None:
    print(f"{what:28} median {statistics.median(times):6.1f}   best {min(times):6.1f}   aim {aim:g} ms")


def main(runs: int = 15) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("acme", "zeta"):
            install_backend(name, Path(folder))
        os.environ["PYTHONPATH"] = folder
        names = "import dovetail; print(*(d.backend for d in dovetail.devices()))"
        found = subprocess.run([sys.executable, "-c", names], capture_output=True, text=True, check=True).stdout
        print("backends:", found.strip())
        measure(runs)


def measure(runs: int) -> None:
    empty, imported = [], []
    for _ in range(runs):
        empty.append(process_ms("pass"))
        imported.append(process_ms("import dovetail"))
    bare = statistics.median(empty)
    report("import dovetail", [t - bare for t in imported], 15)
    with tempfile.TemporaryDirectory() as cache:
        unseen = []
        for i in range(runs):
            unseen.append(first_use_ms(os.path.join(cache, str(i))))
        report("first use, library unseen", unseen, 300)
        report("first use, library seen", [first_use_ms(os.path.join(cache, "0")) for _ in range(runs)], 100)


if __name__ == "__main__":
    main()
