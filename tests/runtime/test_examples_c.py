"""examples/c: built with the CMake package, run on a .dvt file and on a built folder; errors and stdout."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/c"
SEED = 20261128
RNG = np.random.default_rng(SEED)
W, B = RNG.standard_normal((4, 3)).astype(np.float32), RNG.standard_normal(3).astype(np.float32)


def run(*command: object, code: int = 0, **environment: str) -> subprocess.CompletedProcess:
    ended = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert ended.returncode == code, f"{command}\n{ended.stdout}\n{ended.stderr}"
    return ended


@pytest.fixture(scope="module")
def examples(tmp_path_factory) -> Path:
    """C11 without extensions, and warnings are errors."""
    cmake = shutil.which("cmake") or pytest.skip("cmake is not installed")
    folder = tmp_path_factory.mktemp("examples")
    cmake_dir = run(sys.executable, "-m", "dovetail", "--cmake-dir").stdout.strip()
    run(cmake, "-S", EXAMPLES, "-B", folder, f"-Ddovetail_DIR={cmake_dir}", "-DCMAKE_C_FLAGS=-Werror")
    run(cmake, "--build", folder)
    return folder


@pytest.fixture(scope="module", params=["cpu", "sim"])
def device(request) -> tuple[str, str]:
    try:
        package = importlib.import_module(f"dovetail_{request.param}")
    except ImportError:
        pytest.skip(f"dovetail-{request.param} is not installed")
    return f"{request.param}:0", package.backend.library


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    import dovetail as dt

    print(f"seed {SEED}")
    w, b = dt.asarray(W, device="cpu:0"), dt.asarray(B, device="cpu:0")
    path = tmp_path_factory.mktemp("model") / "model.dvt"
    dt.export(lambda x: dt.tanh(x @ w + b), dt.spec(("rows", 4), "float32")).save(path)
    return path


@pytest.fixture(scope="module")
def built(model, device) -> Path:
    folder = model.parent / f"{device[0].partition(':')[0]}.aot"
    run(
        sys.executable,
        "-m",
        "dovetail",
        "build",
        model,
        "--device",
        device[0],
        "--out",
        folder,
        "--sizes",
        "rows=8",
    )
    return folder


def given(rows: int) -> np.ndarray:
    """As example.h fills them."""
    return (np.arange(rows)[:, None] + np.arange(4) / 8).astype(np.float32)


def expected(rows: int) -> np.ndarray:
    return np.tanh(given(rows).astype(np.float64) @ W + B)


def table(text: str) -> np.ndarray:
    return np.array([[float(n) for n in line.split()] for line in text.splitlines()]).reshape(-1, 3)


@pytest.mark.parametrize("name", ["infer", "memory"])
@pytest.mark.parametrize("trust", ["0", "1"])
def test_a_file_and_a_folder(examples, device, model, built, name, trust):
    for path in (model, built):
        for rows in (1, 5):
            ended = run(examples / name, *device, path, rows, EXAMPLE_TRUST_CODE=trust)
            np.testing.assert_allclose(table(ended.stdout), expected(rows), rtol=1e-4, atol=1e-5)


def test_what_a_program_takes_and_gives(examples, device, model):
    assert run(examples / "infer", *device, model, 2).stderr == "input x(rows, 4)\noutput (any, 3)\n"


def test_threads_share_a_program(examples, device, built):
    lines = run(examples / "threads", *device, built, 6, EXAMPLE_TRUST_CODE="1").stdout.splitlines()
    assert len(lines) == 6
    for n, line in enumerate(lines, 1):
        assert line.startswith(f"{n} rows: ")
        assert float(line.partition(": ")[2]) == pytest.approx(expected(n).sum(), rel=1e-4, abs=1e-4)


def test_errors_name_the_cause_and_standard_output_is_the_callers(examples, device, model, built, tmp_path):
    (tmp_path / "bad.dvt").write_bytes(model.read_bytes()[:300])
    broken = shutil.copytree(built, tmp_path / "broken.aot")
    (broken / "manifest.json").write_text('{"dovetail_artefact": 9}')
    for path, text in (
        ("gone.dvt", "no such file"),
        (tmp_path / "bad.dvt", "[bad.dvt] "),
        (broken, "[broken.aot] manifest.json: it is of format 9, this dovetail reads format 1; pip install -U"),
    ):
        ended = run(examples / "infer", *device, path, 1, code=1)
        assert text in ended.stderr and ended.stdout == "" and len(ended.stderr.splitlines()) == 1
    ended = run(examples / "infer", "nosuch:0", device[1], model, 1, code=1)
    assert "there is no device nosuch:0" in ended.stderr and ended.stdout == ""


def test_no_python_is_in_the_process(examples, device, model):
    """What the program needs, and what it opens."""
    needed = run("ldd", examples / "infer").stdout
    assert "libdovetail.so" in needed and "python" not in needed.replace(sys.prefix, "").partition("libdovetail")[0]
    strace = shutil.which("strace") or pytest.skip("strace is not installed")
    ended = run(strace, "-f", "-e", "trace=openat,execve", examples / "infer", *device, model, 1)
    opened = [line for line in ended.stderr.splitlines() if "libpython" in line and "ENOENT" not in line]
    assert opened == []
