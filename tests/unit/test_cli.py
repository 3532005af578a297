"""The command line on the CPU device, in this process unless start-up itself is tested."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import dovetail
import pytest
from click.testing import CliRunner
from dovetail.cli import bench, machine, output
from dovetail.cli.app import dovetail as command
from dovetail.schema import dtypes


def run(*args, code=0):
    result = CliRunner().invoke(command, args, prog_name="dovetail")
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


def run_json(*args):
    return json.loads(run(*args, "--json"))


def test_devices():
    (cpu,) = [device for device in run_json("devices")["devices"] if device["device"] == "cpu:0"]
    assert cpu["kind"] == "cpu" and cpu["mem_total"] > 0
    text = run("devices")
    assert "cpu:0" in text and "\x1b" not in text and "─" not in text


def test_env():
    data = run_json("env")
    assert {"dovetail", "python", "system", "cpu", "backends", "environment"} <= set(data)
    (cpu,) = [b for b in data["backends"] if b["name"] == "cpu" and b["status"] == "ready"]
    assert cpu["status"] == "ready" and cpu["library"].startswith("/") and sum(cpu["engines"].values()) > 0
    assert {"amx", "avx512_fp16", "level"} <= set(data["cpu"])
    text = run("env")
    for word in ("version:", "threads:", cpu["library"], data["python"]["version"]):
        assert word in text
    for word in ("amx:", "avx512_fp16:"):
        assert (word in text) == data["cpu"]["level"].startswith("x86-64")


def test_env_shows_variables(monkeypatch):
    monkeypatch.setenv("DOVETAIL_NUM_THREADS", "1")
    monkeypatch.setenv("ACME_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("SECRET_TOKEN", "hush")
    text = run("env")
    assert "DOVETAIL_NUM_THREADS=1" in text and "ACME_VISIBLE_DEVICES=0" in text and "hush" not in text


def test_ops():
    rows = run_json("ops", "--device", "cpu")["ops"]
    ops = {row["op"]: row for row in rows if "." not in row["op"]}  # without the ops of other tests
    assert ops["add"]["dtypes"]["f32"] == "native"
    assert ops["reshape"]["dtypes"]["f32"] == "core"
    assert ops["sqrt"]["dtypes"]["i32"] == ""  # computes in floats only
    assert "none" not in {row["dtypes"]["f32"] for row in ops.values()}
    assert ops["sum"]["dtypes"]["bool"] == "native"  # by the kernel for int64, the dtype that it computes in
    beyond = {d.brief for d in dtypes.FLOAT8 + dtypes.STORED}
    assert {d for d, word in ops["ones"]["dtypes"].items() if word} == set(ops["add"]["dtypes"]) - beyond
    text = run("ops", "-k", "softmax")
    assert "nn.softmax" in text and "nn.log_softmax" in text and "matmul" not in text
    assert "no op's name contains 'zzz'" in run("ops", "-k", "zzz", code=2)


def test_signatures():
    rows = run_json("ops", "--signatures", "-k", "softmax")["signatures"]
    (row,) = (row for row in rows if row["op"] == "nn.softmax")
    assert row["row"] == "dvt.softmax" and row["inputs"] == ["x"] and row["outputs"] == 1
    assert row["attributes"] == [{"name": "axis", "kind": "I64", "normalised": "counted from 0"}]
    text = run("ops", "--signatures", "-k", "softmax")
    assert "nn.softmax dvt.softmax(x) attr: 0 axis I64 (counted from 0)" in " ".join(text.split())
    assert "no op's name contains 'zzz'" in run("ops", "--signatures", "-k", "zzz", code=2)


def test_ops_with_must_have_kernels_only():
    """Decompositions serve the ops without a kernel."""
    command_line = [sys.executable, "-m", "dovetail", "ops", "--json"]
    environment = os.environ | {"DOVETAIL_CPU_KERNELS": "must"}
    out = subprocess.run(command_line, capture_output=True, text=True, check=True, env=environment).stdout
    ops = {row["op"]: row for row in json.loads(out)["ops"]}
    assert ops["tanh"]["dtypes"]["f32"] == "decomposition" and ops["exp"]["dtypes"]["f32"] == "native"


def test_todo():
    """The op that most functions use comes first; a decomposition of one launch gains nothing."""

    def todo(**settings):  # in a process that has traced nothing yet
        command_line = [sys.executable, "-m", "dovetail", "ops", "--todo", "--json"]
        ended = subprocess.run(command_line, capture_output=True, text=True, check=True, env=os.environ | settings)
        return json.loads(ended.stdout)["todo"]

    rows = todo(DOVETAIL_CPU_KERNELS="must")
    users = [len(row["functions"]) for row in rows]
    assert users == sorted(users, reverse=True) and users[0] > 4
    by_op = {row["op"]: row for row in rows}
    assert by_op["pow"]["launches"] > 50 and by_op["log1p"]["functions"] >= ["acosh", "asinh", "atanh", "log1p"]
    assert not by_op.keys() & {"add", "exp", "ones", "reshape"}
    assert "argsort" in by_op and "argsort_middle" not in by_op
    here = {row["op"]: row["functions"] for row in todo()}
    assert here["softplus"] == ["logsigmoid", "softplus"] and "pow" not in here
    assert "softplus" in run("ops", "--todo", "-k", "softplus")
    # Of a device without float64 and int8: decompositions in other dtypes cannot run there, these in float32 can.
    narrow = {
        "DOVETAIL_BACKEND_PATH": str(Path(__file__).parent / "conformance_narrow_device.py"),
        "DOVETAIL_DEVICE": "narrow",
    }
    rows = todo(**narrow)
    assert {row["op"] for row in rows if not row["launches"]} == {"dequantize", "quantize", "scaled_linear"}
    assert len(rows[0]["functions"]) > 4


def test_ops_says_what_happens():
    rows = [row for row in run_json("ops", "--device", "cpu")["ops"] if "." not in row["op"] and not row["space"]]
    ones = dovetail.ones((2, 2), device="cpu")
    values = {d.brief: dovetail.astype(ones, d) for d in dovetail._core.dtypes.values() if d.brief[0] != "c"}
    values |= {brief: dovetail.asarray([[1j]], dtype=f"complex{brief[1:]}") for brief in ("c64", "c128")}
    seen = set()
    for row in rows:
        params = next(op["params"] for op in dovetail._core.ops() if op["name"] == row["op"])
        required = [p for p in params if p["default"] is ... and not p["optional"]]
        if any(p["kind"] != "value" or p["variadic"] for p in required):
            continue
        if row["op"].startswith(("matrix", "cumulative")):  # some shapes are invalid
            continue
        for brief, word in row["dtypes"].items():
            call = [dovetail._core.op_function(row["op"]), *[values[brief]] * len(required)]
            if word in ("native", "decomposition", "core", "f32"):
                call[0](*call[1:])
            elif word == "none":
                with pytest.raises(NotImplementedError):
                    call[0](*call[1:])
            seen.add(word)
    assert {"native", "decomposition", "core"} <= seen


def test_bench():
    rows = run_json("bench", "add", "matmul", "softmax", "--size", "4K", "--seconds", "0.01")["results"]
    assert [row["op"] for row in rows] == ["add", "matmul", "softmax"]
    assert all(row["seconds"] > 0 and row["gb_per_s"] > 0 and not row["error"] for row in rows)
    assert rows[1]["gflop_per_s"] > 0 and rows[1]["shape"] == "64x64x64"
    text = run("bench", "exp", "--dtype", "f32", "--dtype", "f16", "--size", "1K", "--seconds", "0")
    assert "f16" in text and "GB/s" in text


def test_every_default_benchmark_runs():
    rows = run_json("bench", "--size", "4K", "--seconds", "0")["results"]
    assert {row["op"]: row["error"] for row in rows if row["error"]} == {}


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        (["bench", "ad"], "no benchmark of 'ad', did you mean 'add'?"),
        (["bench", "--dtype", "flaot32"], "no dtype 'flaot32', did you mean 'float32'?"),
        (["bench", "--size", "-3"], "expected a number of elements as 4096, 64K or 1M, got '-3'"),
        (["bench", "--seconds", "inf"], "expected a finite number of seconds, such as 0.2, got 'inf'"),
        (["bench", "--seconds", "nan"], "expected a finite number of seconds, such as 0.2, got 'nan'"),
        (["dvices"], "no command 'dvices', did you mean 'devices'?"),
        (["devices", "--nonsense"], "--nonsense"),
    ],
)
def test_usage_errors(args, wanted):
    assert wanted in run(*args, code=2)


@pytest.mark.parametrize("name", ["ops", "bench"])
def test_unavailable_device(name):
    assert "did you mean 'cpu'?" in run(name, "--device", "cpy", code=3)
    assert "cpu:99" in run(name, "--device", "cpu:99", code=3)


def test_places():
    assert Path(run("--include-dir").strip(), "dovetail/abi.h").is_file()
    assert Path(run("--cmake-dir").strip(), "dovetail-config.cmake").is_file()
    assert run("--version").strip() == f"dovetail {dovetail.__version__}"


def test_as_a_module():
    command_line = [sys.executable, "-m", "dovetail", "--version"]
    assert subprocess.run(command_line, capture_output=True, text=True, check=True).stdout == run("--version")


def test_commands_of_other_wheels(monkeypatch):
    import importlib_metadata

    class Point:
        name = "greet"
        dist = type("Dist", (), {"name": "dovetail-greet", "version": "1.0"})

        def __init__(self, found):
            self.load = found

    def greet(args):
        """Greets."""
        print("hello", *args)
        return 3

    def points(group):
        return [Point(lambda: greet)]

    monkeypatch.setattr(importlib_metadata, "entry_points", points)
    assert "Greets." in run("--help")
    assert run("greet", "--quick", "-k", "x", code=3).strip() == "hello --quick -k x"
    assert "pip install dovetail-conformance" in run("conform", "--quick", code=2)

    def broken():
        raise ImportError("no greeter")

    monkeypatch.setattr(importlib_metadata, "entry_points", lambda group: [Point(broken)])
    assert "command 'greet' of dovetail-greet 1.0 cannot be loaded: ImportError: no greeter" in run("greet", code=1)


def test_levels_of_x86(monkeypatch):
    monkeypatch.setattr(machine.platform, "machine", lambda: "x86_64")
    v2 = "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"
    v3 = f"{v2} avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"
    v4 = f"{v3} avx512f avx512bw avx512cd avx512dq avx512vl"
    for level, flags in (("x86-64", "sse2"), ("x86-64-v2", v2), ("x86-64-v3", v3), ("x86-64-v4", v4)):
        found = machine.cpu(f"processor : 0\nmodel name : Acme 1\nflags : {flags}\n")
        assert (found["model"], found["level"], found["amx"]) == ("Acme 1", level, [])
    sapphire = machine.cpu(f"flags : {v4} amx_tile amx_int8 amx_bf16 avx512_fp16 avx512_bf16")
    assert sapphire["amx"] == ["amx_bf16", "amx_int8", "amx_tile"] and sapphire["avx512_fp16"]


def test_arm():
    v1 = "model name : ARMv8 Processor rev 2 (v8l)\nCPU implementer : 0x41\nCPU part : 0xd40\n"
    found = machine.cpu(v1 + "Features : fp asimd asimdhp sve bf16 i8mm")
    assert found["model"] == "implementer 0x41, part 0xd40"
    assert found["features"] == ["asimd", "asimdhp", "bf16", "i8mm", "sve"]


def table(capsys, monkeypatch, width, *args, **kwargs):
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    output.print_table(*args, **kwargs)
    return capsys.readouterr().out.splitlines()


def test_marks_stay_whole_in_a_narrow_terminal(capsys, monkeypatch):
    columns = [d.brief for d in dtypes.ALL if d not in dtypes.STORED]
    names = ["nn.scaled_dot_product_attention", "bitwise_right_shift"]
    rows = [[name, *"N" * len(columns), ""] for name in names]
    spare = ["f8e4m3fn", "f8e5m2"]
    lines = table(capsys, monkeypatch, 80, ["op", *columns, "engines"], rows, spare=spare)
    assert lines[0].split() == ["op", *(d for d in columns if d not in spare)]  # nor an empty column
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("bitwise_right_shift") for line in lines)
    assert "─ ─" not in lines[1] and len(lines) == 6  # the longest name needs two
    assert lines[-1] == "not shown, as the terminal is narrow: f8e4m3fn, f8e5m2"
    wide = table(capsys, monkeypatch, 160, ["op", *columns, "engines"], rows, spare=spare)
    assert any(names[0] in line for line in wide) and any("f8e5m2" in line for line in wide)
    assert not any("not shown" in line for line in wide)


def test_an_empty_column_is_left_out(capsys):
    output.print_table(["op", "engines"], [["add", ""]])
    assert capsys.readouterr().out == "op\nadd\n"


def test_bench_keeps_what_it_has_at_ctrl_c(monkeypatch):
    def measure(device, op, *rest):
        if op == "exp":
            raise KeyboardInterrupt
        return measured(device, op, *rest)

    measured = bench.measure
    monkeypatch.setattr(bench, "measure", measure)
    text = run("bench", "add", "exp", "--size", "1K", "--seconds", "0", code=130)
    assert "1024" in text and "stopped by Ctrl-C after 1 of 2" in text


def test_bench_of_too_much(monkeypatch):
    text = run("bench", "add", "--size", "8000000G", "--seconds", "0", code=1)
    assert "add f32: " in text and "llocate" in text


def test_help_lists_every_variable():
    source = Path(dovetail.__file__).parent
    known = set(re.findall(r"DOVETAIL_[A-Z_]+", run("--help")))
    for file in [*source.glob("*.py"), *source.glob("entry_points/*.py"), source / "libdovetail.so"]:
        used = set(re.findall(rb"DOVETAIL_[A-Z_]{4,}", file.read_bytes()))
        assert {name.decode() for name in used} <= known, file


def test_help_survives_a_broken_command(monkeypatch):
    import importlib_metadata

    def broken():
        raise ImportError("no greeter")

    dist = type("Dist", (), {"name": "dovetail-greet", "version": "1.0"})
    point = type("Point", (), {"name": "greet", "dist": dist, "load": staticmethod(broken)})
    monkeypatch.setattr(importlib_metadata, "entry_points", lambda group: [point])
    text = " ".join(run("--help").split())
    assert "cannot be loaded: ImportError: no greeter" in text and "for a bug report" in text


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        (
            {"DOVETAIL_BACKEND_AUTOLOAD": "", "DOVETAIL_DEVICE": "cpy:0"},
            "dovetail-cpy (DOVETAIL_DEVICE=cpy:0)",
        ),
        ({"DOVETAIL_BACKEND_AUTOLOAD": "0", "DOVETAIL_BACKEND_PATH": ""}, "no device: DOVETAIL_BACKEND_AUTOLOAD=0"),
    ],
)
def test_the_variable_at_fault_is_named(variables, wanted):
    command_line = [sys.executable, "-m", "dovetail", "ops"]
    done = subprocess.run(command_line, capture_output=True, text=True, check=False, env=os.environ | variables)
    assert done.returncode == 3 and wanted in done.stderr, done.stderr


def test_gpu_drivers_are_the_kernels_modules(tmp_path):
    for module, version in (("nvidia", "580.95.05\n"), ("i915", None), ("ext4", "1.0\n")):
        (tmp_path / "sys/module" / module).mkdir(parents=True)
        if version:
            (tmp_path / "sys/module" / module / "version").write_text(version)
    assert machine.gpu_drivers(tmp_path) == {"nvidia": "580.95.05", "i915": "of the kernel"}


@pytest.mark.skipif("cpu" not in {d.backend for d in dovetail.devices()}, reason="the CPU device is not installed")
def test_another_default_device_says_why():
    command_line = [sys.executable, "-m", "dovetail", "bench", "exp", "--size", "1K", "--seconds", "0"]
    done = subprocess.run(
        command_line, capture_output=True, text=True, check=False, env=os.environ | {"DOVETAIL_CPU_KERNELS": "most"}
    )
    assert done.returncode == 0 and "is quarantined: [cpu] DOVETAIL_CPU_KERNELS is not" in done.stderr, done.stderr
