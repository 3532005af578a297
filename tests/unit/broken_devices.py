"""Devices that are broken on purpose: the list of faults, a plugin with them, and a run of the suite on it. The
table in docs/conformance.md has the faults, the case that catches each and its message.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
BROKEN = ROOT / "tests/meta/broken"
OTHERS = "add[i64,v* or minimum[f64,v* or subtract[u8,v*"  # ops without faults: they must pass as well
OPTIONS = "-std=c++17 -O1 -ffp-contract=off -fPIC -fvisibility=hidden -Wall -Wextra -Werror".split()


class Fault(NamedTuple):
    name: str
    what: str
    case: str
    status: str
    printed: str

    @property
    def culprit(self) -> str:
        return self.case.partition("[")[0]

    @property
    def selection(self) -> str:
        """The op's cases in the dtype of its fault; fewer if each costs a process or seconds."""
        sample = self.case.removesuffix("]").partition(",layout=")[0]
        if self.culprit.startswith("device."):
            return f"{sample}? or device.identity[kernel_table?"  # a bracket follows, not a longer name
        few = sample + ("*" if "layout=" in self.case else "?")
        return f"{few if self.status in ('crash', 'timeout') else sample.partition(',')[0] + '*'} or {OTHERS}"


def table() -> list[Fault]:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| `(\S+)` \| (\w+) \| (.+) \|$", GUIDE, flags=re.MULTILINE)
    return [Fault(*row) for row in rows]


GUIDE = (ROOT / "docs/conformance.md").read_text("utf-8")
FAULTS = table()


def build(factory: pytest.TempPathFactory, name: str, sources: dict[Path, Iterable[str]], *flags: str) -> Path:
    """Build libmeta.so of these sources, each with its macros, once for all workers of the test run."""
    compiler = shutil.which("c++") or shutil.which("g++") or pytest.skip("needs a C++ compiler")
    folder = factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    objects = folder / name
    library = objects / "libmeta.so"
    options = [*OPTIONS, f"-I{ROOT / 'core/include'}", *flags]

    def compile(number: int, source: Path) -> Path:
        made = objects / f"{number}.o"
        macros = [f"-D{macro}" for macro in sources[source]]
        subprocess.run([compiler, *options, *macros, "-c", source, "-o", made], check=True)
        return made

    with folder.joinpath(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            objects.mkdir()
            with ThreadPoolExecutor(2) as pool:
                made = list(pool.map(compile, range(len(sources)), sources))
            linked = library.with_suffix(".linked")
            subprocess.run([compiler, "-shared", "-pthread", *made, "-ldl", "-o", linked], check=True)
            linked.rename(library)
    return library


def conform(
    library: Path, results: Path, fault: str | None, *args: str | Path, device: str = "meta"
) -> tuple[int, dict, str]:
    """Run the public command line. Return the exit code, the results and the output."""
    environment = os.environ | {"DOVETAIL_BACKEND_PATH": str(library), "DOVETAIL_BACKENDS": device}
    environment |= {"DOVETAIL_BROKEN": fault} if fault else {}
    command = [sys.executable, "-m", "dovetail", "conform", "--device", device, "--no-report", "--json", results]
    run = subprocess.run([*command, *args], capture_output=True, text=True, timeout=3600, env=environment)
    assert results.exists(), run.stdout + run.stderr
    return run.returncode, json.loads(results.read_text("utf-8")), run.stdout


def bad_ones(results: dict) -> dict[str, dict]:
    return {c["id"]: c for c in results["cases"] if c["status"] not in ("pass", "unsupported")}


def words(message: str) -> str:
    """The message's first line without the place in the code, and without numbers, which differ between processors
    and runs."""
    line = re.sub(r" \(\w+, line \d+\)$", "", message.partition("\n")[0])
    return re.sub(r"-?\b(\d[\w.+-]*|nan|inf|True|False)", "#", line)


def expect_culprit(conform, fault: Fault, *args: str) -> None:
    """`conform(fault, *args)` as above: only the culprit fails, with the message of the table."""
    code, results, printed = conform(fault.name, "-n", "1", "-k", fault.selection, *args)
    bad = bad_ones(results)
    assert (code, {id.partition("[")[0] for id in bad}) == (1, {fault.culprit}), printed
    assert results["counts"]["pass"] >= 1
    case = bad[fault.case]
    assert (case["status"], words(case["message"])) == (fault.status, words(fault.printed))
    assert f"not right: {fault.culprit} ({len(bad)})" in printed
    assert f"{fault.status.upper():8} {fault.case}" in printed and f"--case '{fault.case}'" in case["replay"]
