"""C programs in Wine: the interface, and saved programs and calls of every op with the bits that Linux gets."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

SEED = int(os.environ.get("DOVETAIL_TEST_SEED", "20261128"))
CALLS = 2  # of each op and dtype


class Linux(NamedTuple):
    """The same programs on this machine, with the same kernels: without oneDNN and OpenBLAS, at the same level."""

    programs: Path
    device: Path

    def run(self, name: str, *arguments: object, level: str) -> subprocess.CompletedProcess:
        variables = {"DOVETAIL_NUM_THREADS": "1", "DOVETAIL_CPU_CAPABILITY": level}
        return subprocess.run(
            [self.programs / name, "cpu:0", self.device, *arguments], env=os.environ | variables, timeout=300,
            capture_output=True, text=True, check=False,
        )  # fmt: skip


@pytest.fixture(scope="module")
def linux(tmp_path_factory) -> Linux:
    from c_programs import compiled

    cpu = pytest.importorskip("dovetail_cpu")
    folder = tmp_path_factory.mktemp("linux")
    for name in ("first", "run_program", "every_op"):
        compiled(name, folder)
    return Linux(folder, Path(shutil.copy(cpu.backend.library, folder)))


@pytest.fixture(scope="module", params=["default", "avx2"])
def level(request, built, wine, linux) -> str:
    """An instruction set level that both systems have kernels for, and this machine the instructions."""
    here = linux.run("first", level=request.param)
    there = wine.run(built.programs / "first.exe", "cpu:0", built.cpu, DOVETAIL_CPU_CAPABILITY=request.param)
    for system, ended in (("Linux", here), ("Windows", there)):
        if ended.returncode:
            pytest.skip(f"the CPU device for {system} is not built for {request.param}, or this processor lacks it")
        assert ended.stdout.split() == ["1.5", "2.5", "3.5", "4.5", "5.5", "6.5"], system
    return request.param


# ---- the interface -----------------------------------------------------------------------------------------------


def test_the_first_program(wine, built, deployed):
    """Deployed as a product is: the program, the runtime, its probe, and a folder of plugins, with any letters."""
    shutil.copy(built.cpu, deployed / "plugins")
    (deployed / "plugins/notes.txt").write_text("no plugin")
    out = wine.ok(deployed / "first.exe", "cpu:0", deployed / "plugins")
    assert out.split() == ["1.5", "2.5", "3.5", "4.5", "5.5", "6.5"]


@pytest.mark.parametrize("name", ["everything", "programs", "threads"])
def test_every_function(wine, built, name):
    """The programs that test the interface on Linux, unchanged, with all threads that there are."""
    out = wine.ok(built.programs / f"{name}.exe", "cpu:0", built.cpu, DOVETAIL_NUM_THREADS="4")
    assert out.split() == ["ok"]


# ---- saved programs ----------------------------------------------------------------------------------------------


def agree(wine, built, linux, level, folder: Path, program: Path, inputs: list[np.ndarray], n_outputs: int) -> None:
    """Runs the saved program on both systems and compares the bytes of every output."""
    files = [folder / f"in {i}.npy" for i in range(len(inputs))]
    for file, array in zip(files, inputs, strict=True):
        np.save(file, array)
    here, there = ([folder / f"{name} {i}.npy" for i in range(n_outputs)] for name in ("linux", "windows"))
    ended = linux.run("run_program", program, *files, *here, level=level)
    assert ended.returncode == 0, ended.stderr
    run = built.programs / "run_program.exe"
    assert wine.ok(run, "cpu:0", built.cpu, program, *files, *there, DOVETAIL_CPU_CAPABILITY=level).split() == [
        "ok"
    ]
    for ours, theirs in zip(here, there, strict=True):
        a, b = np.load(ours), np.load(theirs)
        assert a.dtype == b.dtype and a.shape == b.shape
        apart = np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0)
        assert a.tobytes() == b.tobytes(), f"{apart:.3g} apart, largest {np.abs(a).max():.3g}, seed {SEED}"


def small_network(x, table, w, kernel, scale, bias):
    """Convolution, pooling, normalisation, attention and look-up: the usual parts of a network."""
    import dovetail as dt
    from dovetail import nn

    y = nn.relu(nn.conv2d(x, kernel, padding=1))
    y = nn.max_pool2d(y, 2)
    rows = dt.reshape(y, (y.shape[0], y.shape[1], -1))
    y = nn.layer_norm(dt.matmul(rows, w), (24,), scale, bias)
    attended = nn.scaled_dot_product_attention(y[:, None], y[:, None], y[:, None])[:, 0]
    ids = dt.argmax(attended, axis=-1)
    return nn.softmax(nn.gelu(attended) + dt.take(table, ids, axis=0)), dt.sum(dt.exp(dt.tanh(y)), axis=-1), ids


def test_a_network(wine, built, linux, level, tmp_path):
    import dovetail as dt

    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    shapes = {"table": (24, 24), "w": (64, 24), "kernel": (6, 3, 3, 3), "scale": (24,), "bias": (24,)}
    parts = {name: dt.asarray(rng.standard_normal(shape, np.float32)) for name, shape in shapes.items()}
    x = rng.standard_normal((3, 3, 16, 16), np.float32)
    program = dt.export(lambda x: small_network(x, **parts), dt.asarray(x), dynamic={"x": {0: "n"}})
    file = tmp_path / "network \u65e5\u672c.dvt"
    program.save(file)
    for n in (1, 3):
        agree(wine, built, linux, level, tmp_path, file, [x[:n]], 3)


def test_a_language_model(wine, built, linux, level, tmp_path):
    """MiniLM's layers at several sizes, mapped from a file with 7 MB of weights."""
    import dovetail as dt
    from test_export_minilm import inputs, model_on, weights

    ids, mask = (dt.asarray(x, device="cpu:0") for x in inputs(2, 16))
    sizes = {0: "b", 1: "t"}
    program = dt.export(model_on("cpu:0", weights()).embed, ids, mask, dynamic={"ids": sizes, "mask": sizes})
    file = tmp_path / "minilm.dvt"
    program.save(file)
    for size in ((1, 5), (2, 16), (8, 128)):
        agree(wine, built, linux, level, tmp_path, file, list(inputs(*size)), 1)


def test_threads_round_alike(wine, built, tmp_path):
    """The main thread rounds long double, which functions of float64 use, to 53 bits, and others to 64."""
    import dovetail as dt
    from dovetail import nn

    x = np.random.default_rng(SEED).standard_normal(1 << 17) * 8
    program = dt.export(lambda x: (nn.gelu(x), dt.exp(x), dt.sin(x * 1e9), dt.exp2(x)), dt.asarray(x))
    program.save(tmp_path / "functions.dvt")
    np.save(tmp_path / "x.npy", x)
    got = {}
    for threads in ("1", "4"):
        files = [tmp_path / f"{threads} {i}.npy" for i in range(4)]
        given = ("cpu:0", built.cpu, tmp_path / "functions.dvt", tmp_path / "x.npy", *files)
        assert wine.ok(built.programs / "run_program.exe", *given, DOVETAIL_NUM_THREADS=threads).split() == ["ok"]
        got[threads] = [np.load(file).tobytes() for file in files]
    assert got["1"] == got["4"], f"seed {SEED}"


# ---- every op ----------------------------------------------------------------------------------------------------


def differences(calls, ours, theirs) -> tuple[Counter[str], list[str]]:
    """How many results of each op differ in bits, and what is wrong about those that do.

    Float64 alone may differ: its functions are those of the C library, which is another one in Windows. There the
    oracle decides.
    """
    from test_every_op import wrong

    apart, mistakes = Counter(), []
    for (op, dtype, call), a, b in zip(calls, ours, theirs, strict=True):
        if (a.status, a.message) != (b.status, b.message) or len(a.arrays) != len(b.arrays):
            mistakes.append(f"{call}: {a.status} {a.message!r} and {b.status} {b.message!r}")
            continue
        for x, y in zip(a.arrays, b.arrays, strict=True):
            if x.dtype != y.dtype or x.shape != y.shape:
                mistakes.append(f"{call}: {x.dtype}{x.shape} and {y.dtype}{y.shape}")
            elif x.tobytes() != y.tobytes():
                apart[op.name] += 1
                if x.dtype != np.float64:
                    mistakes.append(f"{call}: {x.dtype} differs")
                elif not op.reference:
                    if not np.allclose(x, y, rtol=1e-15, atol=0, equal_nan=True):
                        mistakes.append(f"{call}: more than rounding apart")
                elif why := wrong(call, dtype, b):
                    mistakes.append(f"{call}: {why}")
    return apart, mistakes


def test_every_op(wine, built, linux, level, tmp_path, capfd):
    """Drawn calls of all ops and dtypes: the results, the errors' texts and their kinds are those of Linux."""
    from dovetail.schema import dtypes as dt
    from dovetail.schema import registry
    from dovetail_conformance.cases.legal import RULES
    from drawn_calls import draw, results, written

    ops = [o for o in registry.values() if o.__module__.startswith("dovetail.schema.") and o.spec.shape in RULES]
    calls = [
        (op, d, draw(op, d, np.random.default_rng([SEED, i, j, k]), list(dt.NOT_COMPLEX)))
        for i, op in enumerate(ops)
        for j, d in enumerate(op.dtypes)
        for k in range(CALLS)
    ]
    asked, here, there = (tmp_path / name for name in ("calls", "linux", "windows"))
    asked.write_bytes(b"".join(written(call) for _, _, call in calls))
    ended = linux.run("every_op", asked, here, level=level)
    assert ended.returncode == 0, ended.stderr
    wine.ok(built.programs / "every_op.exe", "cpu:0", built.cpu, asked, there, DOVETAIL_CPU_CAPABILITY=level)
    ours, theirs = (list(results(file.read_bytes())) for file in (here, there))
    assert len(ours) == len(theirs) == len(calls)
    apart, mistakes = differences(calls, ours, theirs)
    served = sum(result.status == 0 for result in ours)
    with capfd.disabled():
        print(f"\n{level}, seed {SEED}: {served} of {len(calls)} calls of {len(ops)} ops served")
        print(f"other bits, in float64: {dict(apart)}")
    assert served > 0.9 * len(calls)
    assert apart.total() < 0.02 * len(calls)
    assert not mistakes, f"seed {SEED}, {len(mistakes)}:\n" + "\n".join(mistakes[:40])
