"""Plugins and programs that were built for earlier runtimes: see kept/README.md."""

import ctypes
import json
import lzma
import os
import platform
import subprocess
import sys
from pathlib import Path

import dovetail
import pytest

KEPT = Path(__file__).parent / "kept"
VERSIONS = sorted(folder.name for folder in KEPT.iterdir() if folder.is_dir())

pytestmark = pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="they were built for Linux on x86-64"
)


@pytest.fixture(params=VERSIONS)
def kept(request, tmp_path: Path) -> Path:
    for packed in (KEPT / request.param).glob("*.xz"):
        file = tmp_path / packed.stem
        file.write_bytes(lzma.decompress(packed.read_bytes()))
        file.chmod(0o755)
    return tmp_path


def run(*words: object, **variables: str) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("DOVETAIL_BACKEND")}
    ended = subprocess.run(
        list(map(str, words)),
        env=environment | {"DOVETAIL_BACKEND_AUTOLOAD": "0"} | variables,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_small_plugins(kept: Path) -> None:
    program = """
import sys
import dovetail as dt
for name in "minimal", "queue":
    dt.load_backend(f"{sys.argv[1]}/{name}.so")
x = dt.asarray([1.0, 2.0, 3.5], device="queue")
assert [float(v) for v in (x + x).to_device("minimal")] == [2.0, 4.0, 7.0]
y = dt.take(x, dt.asarray([0, 7], device="queue"))
try:
    x.device.synchronize()
except IndexError as error:
    print(error)
"""
    assert run(sys.executable, "-c", program, kept) == "[take] index 7 is out of range: the axis has 3 elements\n"


def test_a_whole_device(kept: Path) -> None:
    results = kept / "results.json"
    options = ["--device", "sim:0", "--level", "L1", "--quick", "--shard", "1/5", "--no-report", "--json", results]
    run(sys.executable, "-m", "dovetail", "conform", *options, DOVETAIL_BACKEND_PATH=str(kept / "sim.so"))
    ended = json.loads(results.read_text("utf-8"))
    assert ended["counts"] == {"pass": len(ended["cases"])} and len(ended["cases"]) > 500


@pytest.mark.parametrize("version", VERSIONS)
def test_no_function_is_gone(version: str) -> None:
    library = ctypes.CDLL(str(Path(dovetail.__file__).parent / "libdovetail.so"))
    names = (KEPT / version / "functions.txt").read_text("utf-8").split()
    assert len(names) >= 96 and [name for name in names if not hasattr(library, name)] == []


@pytest.mark.parametrize("name", ["everything", "programs"])
def test_programs_in_c(kept: Path, name: str) -> None:
    folder = Path(dovetail.__file__).parent
    assert run(kept / name, "sim:0", kept / "sim.so", LD_LIBRARY_PATH=str(folder)) == "ok\n"
