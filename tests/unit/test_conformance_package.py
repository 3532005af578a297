"""Submission packages: a genuine one is valid, and one with any change is not."""

import base64
import copy
import hashlib
import io
import json
import subprocess
import sys
import tarfile
from datetime import date
from importlib.metadata import version
from pathlib import Path

import dovetail
import pytest
from click.testing import CliRunner
from conformance_packages import assembled, checked, compressed, made, of_groups, refused, wheels
from conformance_small_run import RUN
from dovetail.schema import dtypes as dt
from dovetail.schema import registry
from dovetail_conformance.cases import all_cases
from dovetail_conformance.cli import conform, verify
from dovetail_conformance.judging import oracle
from dovetail_conformance.levels.waivers import Waiver
from dovetail_conformance.results import Status
from dovetail_conformance.running.plan import plan
from dovetail_conformance.submission import Refused, archive, derived, statement
from dovetail_conformance.submission import verify as verifier
from dovetail_conformance.submission.contradictions import contradiction
from dovetail_conformance.submission.wheels import HOW, SUITE, WHEEL, digest, installed


@pytest.fixture(scope="module")
def genuine():
    return assembled(made())


# ---- a genuine one ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "statuses", "reached"),
    [
        ("L0", None, "L0"),
        ("L0", {"device.streams": Status.UNSUPPORTED}, "L0"),
        ("L1", {"add": Status.FAIL, "sum": Status.CRASH, "matmul": Status.TIMEOUT, "exp": Status.FALLBACK}, "L0"),
        ("L1", None, "L1"),
    ],
)
def test_a_genuine_package_is_valid(tmp_path, level, statuses, reached):
    found = checked(tmp_path, assembled(made(level, statuses)))
    assert found.statement["level"] == reached and found.statement["submitter"] == "Acme"
    assert found.sha256 == hashlib.sha256((tmp_path / "p.tgz").read_bytes()).hexdigest()


def test_the_same_content_gives_the_same_bytes(genuine):
    assert assembled(made()) == genuine


def test_sha256sum_reads_the_manifest(genuine):
    with tarfile.open(fileobj=io.BytesIO(genuine)) as tar:
        found = {m.name: tar.extractfile(m).read() for m in tar}
        owners = {(m.uid, m.gid, m.uname, m.gname, m.mode) for m in tar}
    lines = dict(reversed(line.split("  ")) for line in found.pop("MANIFEST").decode().splitlines())
    assert lines == {name: hashlib.sha256(content).hexdigest() for name, content in found.items()}
    assert owners == {(0, 0, "", "", 0o644)}


def test_the_command_prints_the_statement(tmp_path, genuine):
    (tmp_path / "p.tgz").write_bytes(genuine)
    result = CliRunner().invoke(verify, [str(tmp_path / "p.tgz")])
    assert result.exit_code == 0, result.stderr
    first, *rest = result.stdout.splitlines()
    assert first.endswith("p.tgz holds: level L0 (the device itself)")
    lines = dict(line.split(maxsplit=1) for line in rest)
    assert lines["by"] == "Acme" and lines["device"].startswith("x:0 (X), x 1.2") and len(lines["package"]) == 64
    shown = json.loads(CliRunner().invoke(verify, [str(tmp_path / "p.tgz"), "--json"]).stdout)
    assert shown["statement"]["level"] == "L0" and shown["sha256"] == lines["package"]


def test_the_command_refuses_in_one_line(tmp_path, genuine):
    (tmp_path / "p.tgz").write_bytes(genuine[:-9])
    result = CliRunner().invoke(verify, [str(tmp_path / "p.tgz")])
    assert (result.exit_code, result.stdout) == (1, "") and len(result.stderr.splitlines()) == 1
    assert "truncated" in result.stderr


def test_control_characters_do_not_reach_the_terminal(tmp_path):
    content = made()
    content["device"]["properties"]["name"] = "\x1b[2J\x1b[32mGood\n"
    (tmp_path / "p.tgz").write_bytes(assembled(content))
    result = CliRunner().invoke(verify, [str(tmp_path / "p.tgz")])
    assert result.exit_code == 0 and "\x1b" not in result.stdout and "Good" in result.stdout


# ---- content: somebody edits a member and renews the manifest -------------------------------------------------


def edited(genuine, name, edit):
    found, mtime = archive.unpack(genuine)
    found[name] = edit(found[name])
    return archive.pack(found, mtime)


@pytest.mark.parametrize(("part", "key"), [("run", "started"), ("level", "text")])
def test_a_long_text_does_not_fill_the_terminal(tmp_path, genuine, part, key):
    def lengthened(text):
        document = json.loads(text)
        document[part][key] = "x" * 1_000_000
        return json.dumps(document).encode()

    (tmp_path / "p.tgz").write_bytes(edited(genuine, "results.json", lengthened))
    result = CliRunner().invoke(verify, [str(tmp_path / "p.tgz")])
    assert result.exit_code == 1 and "xxx" in result.stderr
    assert len(result.stderr) < 1100 and len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", archive.MEMBERS)
def test_a_changed_member_is_not_the_one_in_the_manifest(tmp_path, genuine, name):
    found, mtime = archive.unpack(genuine)
    right = archive.manifest(found)
    found[name] += b" "
    tar = archive._tar({**found, archive.MANIFEST: right}, mtime)
    refused(tmp_path, compressed(tar), f"{name} was changed")


RESULT_EDITS = {
    "level": (lambda d: d["level"].update(reached="L1"), "its results amount to"),
    "claim": (lambda d: d["level"].update(text="level L2 (everything)"), "its results amount to"),
    "asked": (lambda d: d["level"].update(asked="L1"), "its results amount to"),
    "run level": (lambda d: d["run"].update(level="L1"), "partial: .* cases of L1 are missing"),
    "a case dropped": (lambda d: d["cases"].pop(3), "partial: 1 of "),
    "a case twice": (lambda d: d["cases"].append(d["cases"][3]), "is there twice"),
    "another case": (lambda d: d["cases"][3].update(id="device.memory[none]"), "partial"),
    "a case too many": (lambda d: d["cases"].append(d["cases"][3] | {"id": "add[f32,a]"}), "not of L0"),
    "order": (lambda d: d["cases"].reverse(), "order"),
    "failed": (lambda d: d["cases"][3].update(status="fail", message="no"), "does not say|counts|amount"),
    "crashed silently": (lambda d: d["cases"][3].update(status="crash"), "without saying why"),
    "not run": (lambda d: d["cases"][3].update(status="not-run"), "was not run"),
    "waived": (lambda d: d["cases"][3].update(status="waived", message="known"), "."),
    "passed with a message": (lambda d: d["cases"][3].update(message="wrong"), "message is that of a failure"),
    "passed with a replay": (lambda d: d["cases"][3].update(replay="dovetail"), "of a failure"),
    "passed with wrong ones": (lambda d: d["cases"][3].update(wrong=1), "1 wrong elements"),
    "passed, too far off": (lambda d: d["cases"][3].update(tol=1.0, ulp=1.5), "1.5 ulp where 1 are allowed"),
    "negative time": (lambda d: d["cases"][3].update(seconds=-1), "malformed.*seconds"),
    "unknown status": (lambda d: d["cases"][3].update(status="fine"), "malformed.*status"),
    "unknown field": (lambda d: d["cases"][3].update(extra=1), "malformed"),
    "case level": (lambda d: d["cases"][3].update(level="P"), "does not say"),
    "counts": (lambda d: d["counts"].update({"pass": 999}), "counts is not what"),
    "counts of nothing": (lambda d: d["counts"].update(fail=0), "counts is not what"),
    "edges": (lambda d: d["error_edges"].reverse(), "malformed"),
    "undeclared": (lambda d: d["undeclared"].append({"op": "add", "dtype": "f32", "message": ""}), "undeclared"),
    "a waiver": (lambda d: d["waivers"].append({"case": "add*"}), "malformed.*waivers"),
    "quick": (lambda d: d["run"].update(quick=True), "made with --quick"),
    "selection": (lambda d: d["run"].update(expression="add"), "made with -k"),
    "one case": (lambda d: d["run"].update(cases=["add[f32,a]"]), "made with --case"),
    "shard": (lambda d: d["run"].update(shard="1/2"), "made with --shard"),
    "stopped": (lambda d: d["run"].update(complete=False, stopped_by="Ctrl-C"), "stopped by Ctrl-C"),
    "stopped by another": (lambda d: d["run"].update(stopped_by="Ctrl-C"), "stopped by Ctrl-C"),
    "list": (lambda d: d["run"]["must_pass"].update(version=99), "must-pass list is version 99"),
    "list's hash": (lambda d: d["run"]["must_pass"].update(sha256="1" * 64), "must-pass list"),
    "cases' hash": (lambda d: d["run"].update(cases_sha256="1" * 64), "cases_sha256"),
    "suite": (lambda d: d["run"].update(suite="9.9"), "pip install dovetail-runtime==.* dovetail-conformance==9.9"),
    "core": (lambda d: d.update(dovetail="9.8"), "pip install dovetail-runtime==9.8"),
    "future": (lambda d: d["run"].update(started="2999-01-01T00:00:00+00:00"), "future"),
    "no zone": (lambda d: d["run"].update(started="2026-01-01T00:00:00"), "with its zone"),
    "no date": (lambda d: d["run"].update(started="yesterday"), "with its zone"),
    "schema version": (lambda d: d.update(schema_version=99), "schema version 99"),
    "schema": (lambda d: d.update(schema="mine"), "malformed"),
    "an op that is none": (lambda d: d["native"].append("no_such_op"), "'no_such_op', which is no op"),
    "an op twice": (lambda d: d["native"].append("add"), "names an op twice"),
    "a kernel without its op": (lambda d: d["kernels"].update(sub=["f32"]), "'sub', which native does not name"),
    "a dtype that is none": (lambda d: d["kernels"].update(add=["f33"]), "'f33', which is no dtype"),
    "a dtype twice": (lambda d: d["kernels"].update(add=["f32", "f32"]), "names a dtype twice"),
    "kernels of numbers": (lambda d: d["kernels"].update(add=[1]), "malformed.*kernels"),
    "text of any length": (lambda d: d["backend"].update(build_info="x" * 5000), "malformed.*build_info"),
    "an ABI that is none": (lambda d: d["backend"].update(abi="any"), "malformed.*abi"),
    "another's device": (lambda d: d["device"].update(name="y:0"), "no device of the backend 'x'"),
    "another architecture": (lambda d: d["device"]["properties"].update(arch="y"), "its properties name 'y'"),
    "memory as text": (lambda d: d["device"]["properties"].update(mem_total="all"), "malformed.*mem_total"),
    "negative memory": (lambda d: d["device"]["properties"].update(mem_total=-1), "malformed.*mem_total"),
    "more free than all": (
        lambda d: d["device"]["properties"].update(mem_total=1, mem_free=2),
        "more than mem_total",
    ),
    "odd alignment": (lambda d: d["device"]["properties"].update(alloc_align=96), "expected a power of two"),
    "an unknown capability": (lambda d: d["device"]["properties"].update(caps=["all"]), "malformed.*caps"),
    "a peak of no dtype": (
        lambda d: d["device"]["properties"].update(peaks={"f33": 1.0}),
        "'f33', which is no dtype",
    ),
    "a tree of properties": (lambda d: d["device"]["properties"].update(more={"a": [1]}), "malformed.*properties"),
    "a name of any length": (lambda d: d["device"]["properties"].update(name="x" * 300), "malformed.*name"),
    "a pack without a version": (lambda d: d["packs"].append("fast"), "expected a name and a version"),
    "nothing": (lambda d: d.clear(), "malformed"),
}


@pytest.mark.parametrize("what", RESULT_EDITS)
def test_edited_results_with_the_manifest_made_anew(tmp_path, genuine, what):
    edit, expected = RESULT_EDITS[what]

    def change(text):
        content = json.loads(text)
        edit(content)
        return json.dumps(content, indent=1).encode() + b"\n"

    refused(tmp_path, edited(genuine, "results.json", change), expected)


def test_a_level_that_is_not_reached(tmp_path, genuine):
    content = made("L0", {"device.errors": Status.FAIL})
    assert content["level"]["reached"] is None
    refused(
        tmp_path, edited(genuine, "results.json", lambda _: json.dumps(content).encode()), "no level is reached"
    )


TALKED_AWAY = {
    "passed": (lambda c: c.update(status="pass"), "message is that of a failure"),
    "passed, without its message": (
        lambda c: (c.pop("message"), c.pop("replay"), c.update(status="pass")),
        "counts is not",
    ),
    "unsupported": (lambda c: (c.pop("replay"), c.update(status="unsupported")), "counts is not"),
    "waived": (lambda c: (c.pop("replay"), c.update(status="waived", waiver="known")), "."),
}


@pytest.mark.parametrize("what", TALKED_AWAY)
def test_a_failure_cannot_be_hidden_in_one_place(tmp_path, what):
    """The manifest, the statement and the log are renewed: counts and level still show it."""
    content = made("L0", {"device.streams": Status.UNSUPPORTED})
    cases = [c for c in content["cases"] if c["id"].startswith("device.errors")]
    failed = made("L0", {"device.streams": Status.UNSUPPORTED, "device.errors": Status.FAIL})
    content["counts"] = failed["counts"]  # the run's real counts
    edit, expected = TALKED_AWAY[what]
    for case, as_run in zip(
        cases, [c for c in failed["cases"] if c["id"].startswith("device.errors")], strict=True
    ):
        case.update(as_run)
        edit(case)
    refused(tmp_path, assembled(content), expected)


ADD = {"level": "L1", "status": "pass", "seconds": 0.1, "tol": 0.5, "ulp": 0.5, "errors": [5, 0, 1, *7 * [0]]}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, None),
        ({"tol": 1000.0, "ulp": 900.0}, "allows 1000 ulp where the op's tolerance is"),
        ({"ulp": 0.75}, "an error of 0.75 ulp where 0.5 are allowed"),
        ({"errors": [5, *8 * [0], 1]}, "counts of errors say another"),
        ({"errors": [6, *9 * [0]]}, "counts of errors say another"),
        ({"ulp": None}, "without saying how exactly"),
        ({"wrong": 2}, "2 wrong elements"),
        ({"got": "1"}, "'got' of a failure"),
        ({"status": "unsupported", "message": "no"}, "declares a kernel for it"),
        ({"status": "fail"}, "fail without saying why"),
        ({"status": "fail", "message": "no", "wrong": 0}, "nothing in it is wrong"),
        ({"status": "fail", "message": "no", "wrong": 1, "ulp": None}, None),
    ],
)
def test_a_case_must_be_consistent(change, expected):
    """A forger who renews everything else must also match the op's declaration."""
    case = all_cases()["add[f32,vectors]"]
    found = contradiction(case, {"id": case.id} | ADD | change, {"add": ["f32"]})
    assert (found is None) if expected is None else expected in found


@pytest.mark.parametrize(
    ("id", "dtypes", "contradicts"),
    [
        ("astype[bool,to_f64]", "bool f32", False),  # of a device without float64
        ("astype[bool,to_f64]", "bool f32 f64", True),
        ("astype[f64,to_bf16]", "f32 f64", False),
        ("matmul[f32,perf=skinny,large]", "f32", False),  # it does not fit
    ],
)
def test_a_case_is_unsupported_where_any_of_its_dtypes_is(id, dtypes, contradicts):
    case = all_cases()[id]
    entry = {"id": id, "status": "unsupported", "message": "no"}
    found = contradiction(case, entry, {case.op: dtypes.split()})
    assert found == ("is unsupported, but the device declares a kernel for it" if contradicts else None)


def test_complex_results_may_err_by_more():
    case = all_cases()["sum[c64,all]"]
    entry = {"id": case.id, "level": "L2", "status": "pass", "seconds": 0.1, "ulp": 3.0}
    entry |= {"tol": oracle.tolerance(registry["sum"], dt.complex64), "errors": [0, 0, 0, 0, 0, 1, 0, 0, 0, 0]}
    assert contradiction(case, entry, {"sum": ["c64"]}) is None
    assert "allows 60 ulp" in contradiction(case, entry | {"tol": 60.0}, {"sum": ["c64"]})


KNOWN = Waiver("nextafter[*", "rounds twice", "x", ">=1.2,<2", "https://x.example/1", date(2026, 6, 1))


@pytest.fixture(scope="module")
def waived():
    few = {"device.identity", "add", "nextafter"}
    content = made("L2", {"nextafter": Status.FAIL}, [KNOWN], few)
    return content, of_groups(plan(derived.options(content)), few)


@pytest.mark.slow
def test_waivers_hold_at_l2(tmp_path):
    content = made("L2", {"nextafter": Status.FAIL}, [KNOWN])
    assert content["counts"]["waived"] and "waived)" in content["level"]["text"]
    found = checked(tmp_path, assembled(content))
    assert found.statement["level"] == "L2" and found.statement["waivers"][0]["reason"] == "rounds twice"


def waiver(**changed):
    return lambda d: d["waivers"][0].update(changed)


@pytest.mark.parametrize(
    "edit",
    [
        lambda d: d["waivers"].clear(),
        waiver(case="nextbefore[*"),
        waiver(case="nextafter[f32,*"),
        waiver(device="y"),
        waiver(versions=">=2"),
        waiver(reason="another"),
        waiver(expires="2025-01-01"),
        waiver(state="unused"),
        lambda d: d["waivers"][0]["cases"].pop(),
        lambda d: next(c for c in d["cases"] if c["status"] == "waived").pop("outcome"),
        lambda d: next(c for c in d["cases"] if c["status"] == "waived").update(waiver="another"),
        lambda d: d["cases"][9].update(status="waived", outcome="fail", waiver="rounds twice", message="no"),
        lambda d: d["backend"].update(version="2.0"),
        lambda d: d["run"].update(started="2026-08-01T00:00:00+00:00"),
    ],
)
def test_waivers_are_applied_again(waived, edit):
    content, whole = waived
    verifier._expect_derived(content, whole)
    lied = copy.deepcopy(content)
    edit(lied)
    with pytest.raises(Refused):
        verifier._expect_derived(lied, whole)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"a": 1, "a": 2}', "'a' is there twice"),
        (b'{"a": NaN}', "no number"),
        (b'{"a": 1e999}', "no number"),
        (b'{"a": ' + b"9" * 5000 + b"}", "cannot be read"),
        (b"[" * 100000, "cannot be read"),
        (b"\xff\xfe", "cannot be read"),
        (b"[]", "malformed"),
        (b"", "cannot be read"),
    ],
)
def test_invalid_results(tmp_path, genuine, text, expected):
    refused(tmp_path, edited(genuine, "results.json", lambda _: text), expected)


STATEMENT_EDITS = [
    ("statement.toml", b'"L0"', b'"L2"', "level is not what the results say"),
    ("statement.toml", b'"Acme"', b'"Acme\\nand all others"', "malformed"),
    ("statement.toml", b"pass = ", b"pass = 1", "cases is not what the results say"),
    ("statement.toml", b"submitter", b"submitted", "malformed"),
    ("statement.toml", b'name = "x:0"', b'name = "y:0"', "device is not what"),
    ("statement.toml", b"seed", b"extra = 1\nseed", "extra is not what"),
    ("statement.toml", b"seed", b"# all is well\nseed", "not as the suite writes it"),
    ("statement.toml", b"seed", b"= =", "not as the suite writes it"),
    ("statement.md", b"level L0", b"level L2", "statement.md does not say"),
    ("log.txt", b"level L0", b"level L2", "does not end with the level"),
    ("log.txt", b"level", b"\xff", "cannot be read"),
    ("wheels.json", b'"2.0"', b'"3.0"', "wheels is not what"),
    ("wheels.json", b"0" * 64, b"1" * 64, "not that of its files"),
    ("wheels.json", b"backend x", b"backend y", "not about what"),
    ("wheels.json", b'"installed": "wheel"', b'"installed": "sure"', "malformed"),
    ("wheels.json", b'"files"', b'"more"', "malformed"),
    ("wheels.json", b'{\n "wheels"', b'{\n "others"', "malformed"),
]


@pytest.mark.parametrize(("name", "old", "new", "expected"), STATEMENT_EDITS)
def test_edited_texts_with_the_manifest_made_anew(tmp_path, genuine, name, old, new, expected):
    def change(text):
        assert old in text
        return text.replace(old, new, 1)

    refused(tmp_path, edited(genuine, name, change), expected)


def test_log_must_have_every_failure(tmp_path):
    content = made("L1", {"add": Status.FAIL})
    refused(tmp_path, assembled(content, log=content["level"]["text"] + "\n"), r"says nothing of add\[")


def test_the_archives_time_is_the_runs(tmp_path, genuine):
    found, mtime = archive.unpack(genuine)
    refused(tmp_path, archive.pack(found, mtime + 1), "time is not that of the run")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"version": "9.9"}, "other versions than those of the run"),
        ({"installed": WHEEL, "files": {}, "sha256": digest({})}, "has no files"),
    ],
)
def test_wheels_must_fit_the_run(tmp_path, change, expected):
    content = made()
    core, *rest = wheels(content)
    refused(tmp_path, assembled(content, wheels=[core._replace(**change), *rest]), expected)


def test_a_different_suite_of_the_same_version(tmp_path, monkeypatch):
    content = made()
    core, suite, *rest = wheels(content)
    suite = suite._replace(installed=WHEEL)
    data = assembled(content, wheels=[core, suite, *rest])
    monkeypatch.setattr(verifier, "installed_suite", lambda: suite)
    checked(tmp_path, data)
    monkeypatch.setattr(verifier, "installed_suite", lambda: suite._replace(sha256="1" * 64))
    refused(tmp_path, data, "its files are others than those here")


def test_files_outside_of_wheels_are_reported(tmp_path):
    content = made()
    core, suite, backend = wheels(content)
    bare = backend._replace(installed="no wheel", name="", version="")
    found = checked(tmp_path, assembled(content, wheels=[core, suite, bare]))
    assert f"backend x: {HOW['no wheel']}" in found.notes
    assert any(SUITE in note and "development mode" in note for note in found.notes)


# ---- what is installed here -------------------------------------------------------------------------------------


def test_files_of_wheels_are_hashed_as_they_are():
    content = made()
    core, suite, backend = installed(content | {"backend": {"name": "cpu"}})
    assert (core.name, core.version) == ("dovetail-runtime", dovetail.__version__)
    assert (suite.name, suite.version) == (SUITE, version(SUITE))
    assert backend.part == "backend cpu"
    for wheel in (core, suite, backend):
        assert wheel.sha256 == digest(wheel.files) and wheel.installed in HOW
        assert (wheel.installed == WHEEL) <= bool(wheel.files)
        for name, found in wheel.files.items():
            assert not name.endswith(".pyc") and ".dist-info" not in name
            path = Path(dovetail.__file__).parents[1] / name
            assert not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() == found


def test_a_changed_wheel_is_found(tmp_path, monkeypatch):
    from dovetail_conformance.submission.wheels import _of_distribution

    info = tmp_path / "thing-1.0.dist-info"
    info.mkdir()
    (tmp_path / "thing.py").write_text("x = 1\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
    good = base64.urlsafe_b64encode(hashlib.sha256(b"x = 1\n").digest()).decode().rstrip("=")
    (info / "RECORD").write_text(f"thing.py,sha256={good},6\nthing-1.0.dist-info/METADATA,sha256={good},9\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = _of_distribution("backend thing", "thing", "thing")
    assert (found.installed, list(found.files)) == (WHEEL, ["thing.py"])
    (tmp_path / "thing.py").write_text("x = 2\n")
    assert _of_distribution("backend thing", "thing", "thing").installed == "changed"
    (tmp_path / "thing.py").unlink()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "thing.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    assert _of_distribution("backend thing", "thing", "thing").installed == "development"


# ---- making one -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--quick"], "leave --quick out"),
        (["-k", "add"], "leave -k out"),
        (["--case", "add[f32,vectors]"], "leave --case out"),
        (["--submitter", "a\nb"], "one line"),
        (["--submitter", "a" * 999], "one line"),
    ],
)
def test_only_whole_runs_are_submitted(tmp_path, args, expected):
    result = CliRunner().invoke(conform, ["--device", "fake", "--package", str(tmp_path / "p.tgz"), *args])
    assert result.exit_code == 2 and expected in result.stderr, result.output
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_an_error_before_the_run(tmp_path):
    result = CliRunner().invoke(conform, ["--device", "fake", "--package", str(tmp_path / "none" / "p.tgz")])
    assert result.exit_code == 2 and "there is no folder" in result.stderr


def test_names_in_statements():
    assert statement.bad_name("Acme GmbH & Co. KG, Köln <a@acme.example>") is None
    assert statement.bad_name("a\tb") and statement.bad_name("x" * 201)


def test_the_command_makes_the_same_run():
    run = RUN | {"level": "L2", "profile": "half", "seed": 9, "timeout": 2.5, "performance": True}
    printed = "dovetail conform --device x:0 --level L2 --seed 9 --profile half --timeout 2.5 --performance"
    assert statement.command(run, "x:0") == printed


@pytest.mark.slow
def test_a_real_run_makes_a_valid_package(tmp_path):
    """Everything that the families of cases measure and report must be in results.json, consistently."""
    file = tmp_path / "p.tgz"
    code = "from dovetail_conformance.cli import conform; conform(prog_name='dovetail conform')"
    command = [sys.executable, "-c", code, "--device", "cpu", "--level", "L1", "-n", "2", "--package", str(file)]
    done = subprocess.run([*command, "--no-report"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == f"package: {file}, for dovetail verify", done
    found = verifier.verify(file)
    assert found.statement["level"] == "L1" and found.document["cases"][-1]["status"] == "pass"
