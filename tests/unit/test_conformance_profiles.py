"""Profiles: L1 for devices of other dtypes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from dovetail.entry_points import import_ops
from dovetail.schema import registry
from dovetail.schema.dtypes import by_name
from dovetail_conformance.cases import all_cases, choose_profile
from dovetail_conformance.cli import conform
from dovetail_conformance.levels import must_pass as lists
from dovetail_conformance.levels import standing as levels
from dovetail_conformance.levels.must_pass import must_pass, profiles
from dovetail_conformance.results import Result, Status

DEVICE = Path(__file__).parent / "conformance_inference_device.py"


@pytest.fixture
def inference():
    import_ops()
    choose_profile("inference")
    yield
    choose_profile(None)


def test_every_list_has_its_hash():
    for file, listed in lists._lists():
        assert listed.hash() == listed.sha256, file


def test_a_changed_list_is_refused(monkeypatch):
    file, listed = lists._lists()[-1]
    smaller = listed._replace(ops={op: d for op, d in listed.ops.items() if op != "relu"})
    monkeypatch.setattr(lists, "_lists", lambda: [(file, smaller)])
    with pytest.raises(ValueError, match=r"profiles\.toml was changed"):
        lists._checked.__wrapped__()


@pytest.mark.parametrize("name", list(profiles()))
def test_a_profile_requires_a_subset_of_l1(name):
    profile, plain = profiles()[name], lists._checked()[None]
    import_ops()
    for op, dtypes in profile.ops.items():
        kinds = {by_name[d].kind for d in plain.ops[op]}
        assert {by_name[d].kind for d in dtypes} <= kinds and {*dtypes} <= {*profile.dtypes}, op
        assert all(by_name[d] in registry[op].dtypes for d in dtypes), op
    must = {op.name for op in registry.values() if op.tier == "must"}
    assert must <= set(profile.ops)


def test_levels_are_the_profiles(inference):
    by_id = {id: case.level for id, case in all_cases().items()}
    assert by_id["add[f16,vectors]"] == by_id["add[i8,vectors]"] == "L1"
    assert {by_id[id] for id in ("add[f32,vectors]", "add[i64,vectors]", "tan[f16,values]")} == {"L2"}
    assert by_id["astype[f16,to_i8]"] == "L1" and by_id["astype[f16,to_f32]"] == "L2"
    assert must_pass().float is by_name["f16"]


def test_required_cases_of_the_profile_cannot_be_unsupported(inference):
    cases = [c for c in all_cases().values() if c.id in ("add[f16,vectors]", "add[f32,vectors]")]
    missing = {c.id: Result(c.id, Status.UNSUPPORTED) for c in cases}
    assert {c.dtype.brief: levels.holds(c, missing[c.id]) for c in cases} == {"f16": False, "f32": True}


def test_choosing_none_brings_the_plain_levels_back():
    import_ops()
    choose_profile("inference")
    choose_profile(None)
    assert all_cases()["add[f32,vectors]"].level == "L1" and must_pass().profile is None


def test_profiles_are_listed_and_wrong_names_refused():
    listed = CliRunner().invoke(conform, ["--list-profiles"])
    assert listed.exit_code == 0 and listed.stdout.startswith("inference  f16, i8, i32, bool  ")
    wrong = CliRunner().invoke(conform, ["--device", "x", "--profile", "inferense"])
    assert wrong.exit_code == 2 and "did you mean 'inference'" in wrong.stderr
    wrong = CliRunner().invoke(conform, ["--device", "x", "--profile", "zzz"])
    assert wrong.exit_code == 2 and "there are: inference" in wrong.stderr


def on_the_device(*args):
    environment = {
        "DOVETAIL_BACKEND_PATH": str(DEVICE),
        "DOVETAIL_BACKENDS": DEVICE.stem,
        "OPENBLAS_NUM_THREADS": "1",  # the workers suffice
    }
    command = [sys.executable, "-m", "dovetail", "conform", "--device", "inference", "--quick", "-n", "2", *args]
    ended = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=600)
    return ended.returncode, ended.stdout.splitlines(), ended.stderr


def test_a_device_of_float16_and_int8_reaches_its_l1_and_no_other():
    code, printed, error = on_the_device("--profile", "inference")
    assert code == 0, "\n".join([*printed[-40:], error])
    assert printed[-1].startswith("level L1 (profile inference: f16, i8, i32, bool; ")
    code, printed, _ = on_the_device("-k", "device.threads or add")
    assert code == 1 and any("float32 is not supported" in line for line in printed)
    assert any("dovetail conform --device inference --case" in line for line in printed)
