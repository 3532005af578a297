"""Whole runs on a fake device over NumPy: worker processes, statuses, the command's exit codes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner
from dovetail_conformance.cli import conform as conform_command
from dovetail_conformance.reporting.document import schema
from dovetail_conformance.results import Status
from dovetail_conformance.running.pool import Config, DeviceUnavailable, Pool, run

FAKE = Path(__file__).parent / "conformance_fake"
IDS = [
    "add[f32,vectors]",
    "add[f32,values]",
    "multiply[f32,vectors]",
    "multiply[f32,values]",
    "multiply[i32,values]",
    "add[i32,values]",
]


@pytest.fixture(autouse=True)
def fake_in_workers(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FAKE), *filter(None, [os.environ.get("PYTHONPATH")])]))


def statuses(ids=IDS, workers=1, timeout=60.0, device="fake"):
    config = Config(device, 0, workers, timeout, "fake_dovetail")
    return {r.id: r for r in run(config, ids)}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_good_device_passes(workers):
    results = statuses(workers=workers)
    assert sorted(results) == sorted(IDS)
    assert {r.status for r in results.values()} == {Status.PASS}
    assert all("tol" in r.measured for r in results.values())


@pytest.mark.parametrize(
    ("fault", "status", "expected"),
    [
        ("last", "fail", "elements wrong"),
        ("crash", "crash", "SIGSEGV"),
        ("exit", "crash", "exit code 7"),
        ("fallback", "fallback", "ran on another device"),
        ("unsupported", "fail", "not supported"),
        ("scribble", "fail", "operand 0"),
        ("dtype", "fail", "dtype float64"),
    ],
)
def test_a_fault_costs_the_cases_of_its_op_alone(monkeypatch, fault, status, expected):
    monkeypatch.setenv("FAKE_FAULT", f"{fault}:multiply")
    results = statuses(workers=2)
    assert len(results) == len(IDS)
    for id, result in results.items():
        if id.startswith("multiply"):
            assert result.status == status and expected in result.message, result
            assert result.message.splitlines()[-1].startswith("in multiply(x1="), result
        else:
            assert result.status is Status.PASS, result


def test_lost_nan_is_found_where_there_is_one(monkeypatch):
    monkeypatch.setenv("FAKE_FAULT", "nan:multiply")
    results = statuses()
    bad = [id for id, r in results.items() if r.bad]
    assert bad == ["multiply[f32,vectors]", "multiply[f32,values]"]
    measured = results[bad[1]].measured
    assert measured["expected"] == "nan" and measured["ulp"] is None and len(measured["index"]) == 1


def test_a_hang_costs_its_time_limit(monkeypatch):
    monkeypatch.setenv("FAKE_FAULT", "hang:multiply")
    begin = time.monotonic()
    results = statuses(["add[f32,vectors]", "multiply[f32,vectors]", "add[i32,values]"], timeout=5.0)
    assert [results[i].status.value for i in sorted(results)] == ["pass", "pass", "timeout"]
    assert time.monotonic() - begin < 30


def test_a_child_of_a_crashed_device_does_not_keep_the_run_waiting(monkeypatch):
    monkeypatch.setenv("FAKE_FAULT", "orphan:multiply")
    begin = time.monotonic()
    results = statuses(["multiply[f32,vectors]", "add[f32,vectors]"])
    assert [results[i].status.value for i in sorted(results)] == ["pass", "crash"]
    assert time.monotonic() - begin < 30


def test_bytes_that_a_device_writes_into_the_pipe_are_ignored(monkeypatch):
    monkeypatch.setenv("FAKE_FAULT", "chatter:multiply")
    monkeypatch.setenv("FAKE_ANSWERS", "3")
    assert {r.status for r in statuses(timeout=20.0).values()} == {Status.PASS}


def test_modules_of_the_folder_do_not_take_the_place_of_others(monkeypatch, tmp_path):
    (tmp_path / "queue.py").write_text("raise SystemExit('another queue')")
    monkeypatch.chdir(tmp_path)
    assert {r.status for r in statuses().values()} == {Status.PASS}


@pytest.mark.parametrize(("fault", "expected"), [("absent", "did you mean 'fake:0'"), ("open", "SIGSEGV")])
def test_a_device_that_cannot_be_used(monkeypatch, fault, expected):
    monkeypatch.setenv("FAKE_FAULT", fault + ":")
    with pytest.raises(DeviceUnavailable, match=expected):
        statuses()


def test_a_device_that_is_lost_costs_one_case(monkeypatch):
    """The cases after it run in a new process, which opens the device again."""
    monkeypatch.setenv("FAKE_FAULT", "lost:multiply")
    results = statuses(workers=1)
    bad = {id: r for id, r in results.items() if r.status is not Status.PASS}
    assert sorted(bad) == sorted(id for id in IDS if id.startswith("multiply"))
    assert all(r.status is Status.FAIL and "was lost" in r.message for r in bad.values())


def test_a_device_for_one_process_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("FAKE_FAULT", "once:")
    monkeypatch.setenv("FAKE_LOCK", str(tmp_path / "lock"))
    notes = []
    config = Config("fake", 0, 2, 60.0, "fake_dovetail")
    with Pool(config) as first, Pool(config._replace(workers=1)) as second:
        first.open()
        with pytest.raises(DeviceUnavailable, match="another process has the device"):
            second.open()
    with Pool(config, notes.append) as pool:
        pool.open()
        pool._start()
        while not notes:
            pool._step()
        results = list(pool.run(IDS))
    assert {r.status for r in results} == {Status.PASS} and len(results) == len(IDS)
    assert notes[0] == "a worker has no device, 1 go on: another process has the device"


# ---- the command ------------------------------------------------------------------------------------------------


def command(*args, fault=""):
    code = "import sys; from dovetail_conformance.cli import conform; conform(prog_name='dovetail conform')"
    environment = os.environ | {"FAKE_FAULT": fault, "COLUMNS": "200"}
    return subprocess.Popen(
        [sys.executable, "-c", code, "--device", "fake", "--api", "fake_dovetail", *args],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip


def conform(*args, fault=""):
    process = command(*args, fault=fault)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def test_command_passes(tmp_path):
    code, out, err = conform("-k", "add[f32,v", "--json", str(tmp_path / "r.json"))
    assert (code, err) == (0, ""), (out, err)
    assert "seed 0" in out and "fake:0 (Fake), fake 1.2" in out
    assert out.splitlines()[-1] == "no level is claimed for a selection of cases"
    content = json.loads((tmp_path / "r.json").read_text())
    assert content["run"]["seed"] == 0 and content["level"]["reached"] is None
    assert {c["status"] for c in content["cases"]} == {"pass"} and content["run"]["complete"]


def test_command_fails_and_its_replay_too():
    code, out, _ = conform("-k", "add", "-n", "1", fault="last:add")
    assert code == 1 and "not right: add (" in out
    failed = [line.split()[1] for line in out.splitlines() if line.startswith("FAIL")]
    assert failed and out.count("dovetail conform --device fake --case") == len(failed)
    code, out, _ = conform("--case", failed[0], "--seed", "0", fault="last:add")
    assert code == 1 and "1 failed in" in out
    code, out, _ = conform("--case", failed[0], "--seed", "0")
    assert code == 0 and "1 passed in" in out


def test_command_is_the_same_for_the_same_seed():
    first, second, other = (
        [
            line
            for line in conform("-k", "add[f32,values]", "--seed", seed, fault="last:add")[1].splitlines()
            if "got" in line
        ]
        for seed in ("3", "3", "4")
    )
    assert first == second != other and first


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--case", "ad[f32,vectors]"), "did you mean 'add[f32,vectors]'"),
        (("-k", "nothing_like_it"), "matches no case of L2: see --list"),
        (("-k", "dvt.add["), "matches no case of L2: did you mean 'add'?"),
        (("--level", "L1", "-k", "nextafter[f32"), "add --level L2"),
        (("-k", "add and"), "a word is missing"),
        (("--level", "L7"), "L7"),
        (("--seed", "-1"), "seed"),
    ],
)
def test_command_usage(args, expected):
    result = CliRunner().invoke(conform_command, ["--device", "fake", *args])
    assert result.exit_code == 2 and expected in result.stderr


def test_command_lists_cases():
    result = CliRunner().invoke(conform_command, ["--device", "fake", "--list", "-k", "add[f32,v"])
    listed = result.stdout.split()
    assert result.exit_code == 0 and listed and all("add[f32,v" in id for id in listed)


def test_command_without_its_device():
    code, out, err = conform("-k", "add", fault="absent:")
    assert code == 3 and "did you mean 'fake:0'" in err and not out


def test_command_interrupted(tmp_path):
    process = command(
        "-k", "multiply", "-n", "2", "--timeout", "50", "--json", str(tmp_path / "r.json"), fault="hang:multiply"
    )
    line = process.stdout.readline()
    assert "seed 0" in line, line
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130 and "stopped by Ctrl-C" in out and "not run" in out
    content = json.loads((tmp_path / "r.json").read_text())
    assert content["run"]["stopped_by"] == "Ctrl-C" and content["counts"]["not-run"] > 0


def test_ctrl_c_again_and_again_still_gives_a_report(tmp_path):
    process = command(
        "-k", "multiply", "-n", "2", "--timeout", "50", "--report", str(tmp_path), fault="hang:multiply"
    )
    assert "seed 0" in process.stdout.readline()
    for _ in range(40):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    out, error = process.communicate(timeout=60)
    assert process.returncode == 130 and "stopped by Ctrl-C" in out and "Aborted" not in error, (out, error)
    assert json.loads((tmp_path / "results.json").read_text())["run"]["stopped_by"] == "Ctrl-C"


def test_results_to_standard_output():
    code, out, err = conform("-k", "add[f32,v", "--json", "-")
    assert code == 0, err
    assert {c["status"] for c in json.loads(out)["cases"]} == {"pass"}
    assert err.splitlines()[-1] == "no level is claimed for a selection of cases"


def test_results_into_no_folder_are_refused_before_the_run(tmp_path):
    code, out, err = conform("-k", "add[f32,v", "--json", str(tmp_path / "none" / "r.json"))
    assert (code, out) == (2, "") and "there is no folder" in err


# ---- interrupted runs -----------------------------------------------------------------------------------------


def test_nothing_is_lost_when_the_runner_is_killed(tmp_path):
    options = ("-k", "add[f32,v or multiply[f32,v", "-n", "1", "--timeout", "50", "--report", str(tmp_path))
    process = command(*options, fault="hang:multiply")
    journal = tmp_path / "journal.jsonl"
    deadline = time.monotonic() + 200
    while not (journal.exists() and journal.read_bytes().count(b"\n") > 5):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    process.kill()
    process.communicate()
    kept = journal.read_bytes().count(b"\n") - 1
    code, out, err = conform(*options, "--resume", str(tmp_path))
    assert code == 0, (out, err)
    assert f"({kept} of them already run)" in out.splitlines()[0] and not journal.exists()
    resumed = json.loads((tmp_path / "results.json").read_text())
    assert resumed["counts"] == {"pass": len(resumed["cases"])} and resumed["run"]["complete"]


def test_a_real_document_is_as_published(tmp_path):
    conform("-k", "erf[f16,values] or multiply[f32,v", "--json", str(tmp_path / "r.json"), fault="last:multiply")
    content = json.loads((tmp_path / "r.json").read_text())
    jsonschema.validate(content, schema(), jsonschema.Draft202012Validator)
    assert content["counts"]["fail"] > 1 and any("errors" in c for c in content["cases"])
    assert content["kernels"]["multiply"] == ["f32"]


def test_a_reader_that_goes_away_ends_the_run(tmp_path):
    process = command(
        "-k", "add[f32,v or add[i32,v", "-n", "1", "--json", str(tmp_path / "r.json"), fault="last:add"
    )
    assert process.stdout.readline()
    process.stdout.close()
    error = process.stderr.read()
    assert process.wait(200) == 1 and "Traceback" not in error and "Exception" not in error, error
    content = json.loads((tmp_path / "r.json").read_text())
    assert content["run"]["stopped_by"] == "the output was closed" and content["counts"]["not-run"]


def test_a_full_disk_is_reported_with_the_results():
    code, out, _ = conform("-k", "add[f32,v", "--json", "/dev/full")
    assert code == 4 and "Error: /dev/full could not be written: No space left on device" in out
    assert "passed in" in out


def test_the_replay_of_a_profile_names_it():
    code, out, _ = conform("-k", "add[f16,v", "--profile", "inference", fault="last:add")
    assert code == 1 and "--seed 0 --profile inference" in out
