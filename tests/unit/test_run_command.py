"""dovetail run: inputs, results, comparisons, and that nothing runs elsewhere unless it is allowed."""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import dovetail as dt
import numpy as np
import pytest
from click.testing import CliRunner
from dovetail import _core
from dovetail.cli.app import dovetail as command
from dovetail.cli.output import fail
from dovetail.cli.run import _file_names
from dovetail.prototype import PythonDevice, kernel

SEED = int(os.environ.get("DOVETAIL_SEED", "20261128"))
print(f"DOVETAIL_SEED={SEED}")
RNG = np.random.default_rng(SEED)
W = RNG.standard_normal((4, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def fallback():
    """The command sets it for its process."""
    before = dt.fallback()
    yield
    dt.fallback(before)


def run(*args: object, code: int = 0) -> str:
    result = CliRunner().invoke(command, ["run", *map(str, args)], prog_name="dovetail")
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def saved(tmp_path) -> Path:
    w = dt.asarray(W, device="cpu:0")
    spec = dt.spec(("b", 4), "float32")
    dt.export(lambda x, n: (x @ w + n, dt.argmax(x, axis=1)), spec, dt.spec((), "int64")).save(tmp_path / "m.dvt")
    return tmp_path / "m.dvt"


def test_files_in_and_out(saved, tmp_path):
    x = RNG.standard_normal((5, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", x), np.save(tmp_path / "n.npy", np.int64(3))
    text = run(saved, "--device", "cpu", "--input", f"x={tmp_path}/x.npy", "--input", f"n={tmp_path}/n.npy",
               "--save-outputs", tmp_path / "out")  # fmt: skip
    assert "output0" in text and "(5, 3)" in text and "ms on cpu:0" in text
    np.testing.assert_allclose(np.load(tmp_path / "out/output0.npy"), x @ W + 3, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(np.load(tmp_path / "out/output1.npy"), x.argmax(1))


def test_random_inputs_are_the_same_for_one_seed(saved):
    runs = [json.loads(run(saved, "--random", "b=2", "--seed", s, "--json"))["results"] for s in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    assert [r["shape"] for r in runs[0]] == [[2, 3], [2]] and [r["dtype"] for r in runs[0]] == ["float32", "int64"]


def test_comparison_with_another_device(saved):
    assert "equal enough" in run(saved, "--device", "sim", "--random", "b=3", "--compare", "cpu")
    text = run(saved, "--device", "sim", "--random", "b=3", "--compare", "cpu", "--tolerance", "-1", code=1)
    assert "DIFFERENT" in text and "results differ from those of cpu" in text


def test_what_is_wrong_with_the_arguments(saved, tmp_path):
    assert "input 'x' is missing: give --input x=file.npy, or --random b=8" in run(saved, code=1)
    assert "input 'x' has open sizes, of which these are missing: b=8" in run(saved, "--random", "", code=1)
    assert "expected name=size" in run(saved, "--random", "b", code=2)
    assert "expected name=file.npy" in run(saved, "--input", "x", code=2)
    assert "there is no input 'y': expected one of x, n" in run(saved, "--input", "y=y.npy", code=1)
    assert "cannot be read" in run(saved, "--input", f"x={tmp_path}/gone.npy", "--random", "b=1", code=1)
    assert "onnxruntime: it runs .onnx files" in run(saved, "--random", "b=1", "--compare", "onnxruntime", code=2)
    assert run(saved, "--device", "nosuch", code=3)
    (tmp_path / "bad.dvt").write_bytes(b"no")
    assert "[bad.dvt] not a safetensors file" in run(tmp_path / "bad.dvt", code=1)
    np.save(tmp_path / "x.npy", np.ones((2, 5), np.float32))
    assert "[m.dvt] [program] x" in run(saved, "--input", f"x={tmp_path}/x.npy", "--random", "b=1", code=1)
    assert "--random: no input has an open size 'B': expected some of b" in run(
        saved, "--random", "b=1,B=2", code=2
    )
    assert "expected name=size" in run(saved, "--random", "b=\u00b2", code=2)
    assert "two sizes of 'b': 1 and 2" in run(saved, "--random", "b=1,b=2", code=2)
    assert "(99999999999999, 4) cannot be made" in run(saved, "--random", "b=99999999999999", code=1)
    assert "--seed" in run(saved, "--random", "b=1", "--seed", "-1", code=2)
    np.savez(tmp_path / "x.npz", x=np.ones(1))
    assert "is an archive of arrays" in run(saved, "--input", f"x={tmp_path}/x.npz", "--random", "b=1", code=1)
    (tmp_path / "x.npy").write_bytes(b"")
    assert "x.npy cannot be read" in run(saved, "--input", f"x={tmp_path}/x.npy", "--random", "b=1", code=1)


def test_a_result_of_bfloat16_is_an_input_again(tmp_path):
    dt.export(lambda x: x * 2, dt.spec((None, 3), "bfloat16")).save(tmp_path / "b.dvt")
    run(tmp_path / "b.dvt", "--random", "x.0=4", "--save-outputs", tmp_path / "once")
    given = f"x={tmp_path}/once/output0.npy"
    run(tmp_path / "b.dvt", "--input", given, "--save-outputs", tmp_path / "twice")
    once, twice = (np.load(tmp_path / f / "output0.npy").view(np.uint16) for f in ("once", "twice"))
    values = [(bits.astype(np.uint32) << 16).view(np.float32) for bits in (once, twice)]  # bfloat16's are the upper
    np.testing.assert_array_equal(values[1], values[0] * 2)


def test_each_result_has_a_file_of_its_own():
    assert _file_names(["a/b", "a_b", "A_b", "..", "", "y"]) == ["a_b", "a_b_1", "A_b_2", "output", "output_1", "y"]
    assert len(set(_file_names(["n" * 300, "n" * 301]))) == 2


def test_errors_move_no_cursor(capsys):
    with pytest.raises(SystemExit):
        fail("[m.onnx] a\x1b[2J\u202e\nb")
    assert capsys.readouterr().err == "Error: [m.onnx] a\\x1b[2J\\u202e\nb\n"


def test_ctrl_c_ends_with_130(saved, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("dovetail.cli.models.arrays_of", stop)
    assert "stopped by Ctrl-C" in run(saved, "--random", "b=1", code=130)


class Poor(PythonDevice):
    """It adds, and cannot do anything else."""

    name = "poor"

    @kernel("add", "float32")
    def add(self, x1, x2, out):
        out.numpy()[...] = x1.numpy() + x2.numpy()


@pytest.fixture(scope="module")
def poor() -> str:
    dt.load_backend(Poor)
    return "poor:0"


@pytest.fixture
def of_exp(tmp_path) -> Path:
    """A program with two nodes that the poor device cannot run."""
    b = _core.ProgramBuilder()
    x = b.input("float32", ["n"], "x")
    total = b.call("add", [x, x], {}, [])
    b.at("user.py:7")
    b.finish([b.call("log", [b.call("exp", [total], {}, [])], {}, [])]).save(tmp_path / "e.dvt")
    return tmp_path / "e.dvt"


def test_nothing_runs_on_the_cpu_unless_it_is_allowed(of_exp, poor):
    text = run(of_exp, "--device", poor, "--random", "n=4", code=1)
    assert "[e.dvt] poor:0 cannot run the model by itself: [exp]" in text and "--list-missing" in text
    assert run(of_exp, "--device", "cpu", "--random", "n=4")
    with pytest.warns(UserWarning, match="exp"):
        assert "(4,)" in run(of_exp, "--device", poor, "--random", "n=4", "--fallback", "warn")
    data = json.loads(run(of_exp, "--device", poor, "--random", "n=4", "--fallback", "allow", "--json"))
    assert {f["op"] for f in data["fallbacks"]} == {"exp", "log"}


def test_list_missing(of_exp, saved, poor):
    lines = run(of_exp, "--device", poor, "--list-missing", code=1).splitlines()
    assert len(lines) == 3 and "exp(" in lines[1] and "user.py:7" in lines[1] and "log(" in lines[2]
    assert len(json.loads(run(of_exp, "--device", poor, "--list-missing", "--json", code=1))) == 2
    assert "cpu:0 runs all" in run(saved, "--device", "cpu", "--list-missing")


def test_onnx_without_the_extra(tmp_path, monkeypatch):
    """The error names the package and the command that installs it."""
    monkeypatch.setitem(sys.modules, "dovetail.onnx", None)
    (tmp_path / "m.onnx").write_bytes(b"")
    assert 'python -m pip install "dovetail-runtime[onnx]"' in run(tmp_path / "m.onnx", "--random", "", code=1)


class Model(NamedTuple):
    """As dovetail.onnx.load returns it."""

    inputs: tuple
    program: dt.Program

    def __call__(self, **arrays):
        return {"logits": self.program(arrays["x"])}


@pytest.fixture
def onnx(monkeypatch, tmp_path) -> Path:
    """A .onnx file, with a module that reads it."""

    class Port(NamedTuple):
        name: str
        dtype: str
        shape: tuple
        optional: bool = False

    class Report(NamedTuple):
        ok: bool

        def __str__(self) -> str:
            return "m.onnx: 1 problem"

    ports = (Port("x", "float32", ("b", 3)), Port("length", "int64", (), True))
    program = dt.export(lambda x: x * 2, dt.spec(("b", 3), "float32"))
    module = SimpleNamespace(
        load=lambda path, device: Model(ports, program), check=lambda path, device: Report(False)
    )
    monkeypatch.setitem(sys.modules, "dovetail.onnx", module)
    monkeypatch.setattr(dt, "onnx", module, raising=False)
    (tmp_path / "m.onnx").write_bytes(b"")
    return tmp_path / "m.onnx"


def test_an_onnx_model(onnx, tmp_path):
    data = json.loads(run(onnx, "--random", "b=2", "--save-outputs", tmp_path / "out", "--json"))
    assert [r["name"] for r in data["results"]] == ["logits"] and data["results"][0]["shape"] == [2, 3]
    assert np.load(tmp_path / "out/logits.npy").shape == (2, 3)
    assert "1 problem" in run(onnx, "--list-missing", code=1)
