"""Runs from options to exit code and files, with scripted workers: resuming, shards, waivers, errors."""

import errno
import json
import os
import shutil

import jsonschema
import pytest
from conformance_small_run import DESCRIPTION
from dovetail_conformance.reporting import document, html, write_report
from dovetail_conformance.results import Result, Status
from dovetail_conformance.running import journal, session
from dovetail_conformance.running.merge import merge
from dovetail_conformance.running.options import Options, UsageError
from dovetail_conformance.running.pool import DeviceUnavailable
from dovetail_conformance.running.session import Session
from dovetail_conformance.running.shard import Shard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

TIMES = ("started", "seconds")
SELECTION = "(add or erf) and values"  # cases of L1 and L2


class Workers:
    """Replaces a Pool: every case has one result, which `statuses` may change; after `last` of them it stops."""

    def __init__(self):
        self.description = json.loads(json.dumps(DESCRIPTION))
        self.statuses = {}  # by id: status
        self.last, self.how = None, KeyboardInterrupt()
        self.asked = []

    def __call__(self, config, note=None):
        return self

    def __enter__(self):
        self.asked = []
        return self

    def __exit__(self, *_):
        pass

    def open(self):
        return json.loads(json.dumps(self.description))

    def running(self):
        return []

    def run(self, ids):
        for id in ids:
            if len(self.asked) == self.last:
                raise self.how
            self.asked.append(id)
            status = Status(self.statuses.get(id, "pass"))
            yield Result(id, status, 0.25, "" if status == "pass" else "why", {"ulp": len(id) / 8, "tol": 1.0})


@pytest.fixture
def workers(monkeypatch):
    monkeypatch.setattr(html, "render", lambda *_: "<html>")
    scripted = Workers()
    monkeypatch.setattr(session, "Pool", scripted)
    return scripted


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(folder=None, **options):
    """The exit code and the content of results.json."""
    code = Session(Options(**{"device": "x", "report": folder} | options)).run()
    return code, read(folder) if folder else None


def read(folder):
    content = json.loads((folder / "results.json").read_text())
    jsonschema.validate(content, document.schema(), jsonschema.Draft202012Validator)
    return content


def without_times(content, *but):
    return content | {"run": {k: v for k, v in content["run"].items() if k not in (*TIMES, *but)}}


# ---- the report -------------------------------------------------------------------------------------------------


def test_a_run_of_a_whole_level_writes_a_report(here, workers, capsys):
    code, _ = run(level="L0")
    assert code == 0
    assert {p.name for p in (here / "dovetail-report").iterdir()} == {*write_report.FILES, write_report.PAGE}
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "report: dovetail-report/index.html",
        "level L0 (the device itself)",
    ]
    content = read(here / "dovetail-report")
    assert content["level"]["reached"] == "L0" and content["run"]["complete"]


@pytest.mark.parametrize(
    "options",
    [{"level": "L0", "quick": True}, {"expression": "add"}, {"cases": ("add[f32,values]",)},
     {"level": "L0", "no_report": True}],
)  # fmt: skip
def test_others_do_not(here, workers, options):
    assert run(**options)[0] == 0
    assert not list(here.iterdir())


def test_a_report_that_is_asked_for_is_always_written(here, workers):
    _, content = run(here / "a" / "b", cases=("add[f32,values]",))
    assert [c["id"] for c in content["cases"]] == ["add[f32,values]"] and content["level"]["reached"] is None


def test_exclusive_options(here, workers):
    for options in ({"report": here, "no_report": True}, {"quick": True, "level": "L2"}):
        with pytest.raises(UsageError):
            run(**options)


def test_no_report_can_be_written(here, workers):
    (here / "file").write_text("")
    with pytest.raises(UsageError, match="--no-report"):
        run(here / "file" / "r", level="L0")
    assert not workers.asked


def test_a_full_disk_costs_the_report_not_the_results(here, workers, capsys, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "there")

    monkeypatch.setattr(write_report, "write", full)
    assert run(level="L0")[0] == 4
    printed = capsys.readouterr().out.splitlines()
    assert "Error: the report could not be written: there: No space left on device" in printed
    assert printed[-1] == "level L0 (the device itself)" and not any(line.startswith("report:") for line in printed)
    monkeypatch.undo()
    assert len(journal.read(here / "dovetail-report").results) == len(workers.asked)  # --resume writes it anew


def test_a_disk_that_fills_during_the_run(here, workers, capsys, monkeypatch):
    """The journal ends, the run continues."""
    written = []

    def line(self, content):
        written.append(content)
        if len(written) == 10:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(journal.Journal, "_line", line)
    assert run(level="L0")[0] == 0
    printed = capsys.readouterr().out
    assert printed.count("No space left on device") == 1 and "level L0" in printed and len(written) == 10


# ---- how runs end -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "code", "expected", "by"),
    [
        (KeyboardInterrupt(), 130, "stopped by Ctrl-C", "Ctrl-C"),
        (
            DeviceUnavailable("it fell off the bus"),
            3,
            "lost on the way: it fell off the bus",
            "it fell off the bus",
        ),
    ],
)
def test_a_run_that_is_stopped(here, workers, capsys, how, code, expected, by):
    workers.last, workers.how = 5, how
    assert run(level="L0")[0] == code
    content = read(here / "dovetail-report")
    assert content["counts"]["pass"] == 5 and content["counts"]["not-run"] == len(content["cases"]) - 5
    assert content["run"]["stopped_by"] == by and not content["run"]["complete"]
    printed = capsys.readouterr().out
    assert expected in printed and "--resume dovetail-report" in printed and "no level; L0 not met" in printed


def test_a_device_that_never_comes_up(here, workers, capsys, monkeypatch):
    def absent():
        raise DeviceUnavailable("there is no device 'x'")

    monkeypatch.setattr(workers, "open", absent)
    assert run(level="L0")[0] == 3
    assert capsys.readouterr() == ("", "Error: there is no device 'x'\n")
    assert not (here / "dovetail-report").exists()


def test_a_device_that_never_comes_up_leaves_an_earlier_report(here, workers, monkeypatch):
    run(level="L0")
    before = sorted(p.name for p in (here / "dovetail-report").iterdir())

    def absent():
        raise DeviceUnavailable("there is no device 'x'")

    monkeypatch.setattr(workers, "open", absent)
    assert run(level="L0")[0] == 3
    assert before and sorted(p.name for p in (here / "dovetail-report").iterdir()) == before


# ---- resuming ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@given(st.integers(0, 80), st.booleans(), st.dictionaries(st.integers(0, 80), st.sampled_from([*Status])))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_run_cut_anywhere_and_resumed_is_the_uninterrupted_one(reports, workers, cut, killed, statuses):
    options = {"expression": SELECTION, "waivers": reports / "waivers.toml"}
    options["waivers"].write_text('[[waiver]]\ncase = "erf[*"\nreason = "known"\n')
    ids = [c.id for c in Session(Options(device="x", **options)).plan.cases]
    workers.statuses = {ids[n % len(ids)]: s for n, s in statuses.items() if s not in ("waived", "not-run")}
    shutil.rmtree(reports / "whole", ignore_errors=True)
    shutil.rmtree(reports / "cut", ignore_errors=True)
    code, whole = run(reports / "whole", **options)
    workers.last = cut
    if killed:  # the runner wrote nothing at its end: only the journal exists
        workers.how = SystemExit()
        with pytest.raises(SystemExit) if cut < len(ids) else pytest.raises(AssertionError):
            run(reports / "cut", **options)
            raise AssertionError("the run was not cut")
    else:
        workers.how = KeyboardInterrupt()
        run(reports / "cut", **options)
    workers.last = None
    again, resumed = run(reports / "cut", resume=reports / "cut", **options)
    assert workers.asked == ids[cut:]
    assert (again, without_times(resumed)) == (code, without_times(whole))
    assert not (reports / "cut" / journal.NAME).exists()


def test_two_runs_do_not_share_a_folder(here, workers):
    other = journal.Journal()
    assert other.open(here, {"seconds": 0}, {}) is None
    with pytest.raises(UsageError, match="another run writes its report"):
        run(here, level="L0")
    other.close()  # as when its process has died
    assert run(here, level="L0")[0] == 0


def test_a_part_without_cases_is_refused(here, workers):
    with pytest.raises(UsageError, match="make fewer"):
        run(here / "r", level="L0", shard=Shard(1, 1_000_000))


def test_a_submitter_needs_a_package(here):
    with pytest.raises(UsageError, match="--package"):
        Options(device="cpu", submitter="Acme")


def test_the_last_line_of_a_journal_may_be_cut(here, workers):
    workers.last, workers.how = 7, SystemExit()
    with pytest.raises(SystemExit):
        run(here / "r", level="L0")
    whole = (here / "r" / journal.NAME).read_bytes()
    for end in (len(whole) - 1, len(whole) - 20):
        (here / "r" / journal.NAME).write_bytes(whole[:end])
        assert len(journal.read(here / "r").results) == 6
    (here / "r" / journal.NAME).write_bytes(whole[:-60] + b"\n" + whole[-60:])
    with pytest.raises(UsageError, match="is not the results of a run"):
        journal.read(here / "r")


def test_results_json_can_be_resumed_without_its_folder(here, workers):
    workers.last = 4
    run(here / "r", level="L0")
    workers.last = None
    run(here / "other", level="L0", resume=here / "r" / "results.json")
    assert len(workers.asked) == len(read(here / "other")["cases"]) - 4
    run(None, level="L0", resume=here / "r")  # goes on where it was
    assert read(here / "r")["run"]["complete"] and not (here / "dovetail-report").exists()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"seed": 1}, "seed was 0 there and is 1 here: give --seed 0 again"),
        ({"timeout": 5.0}, "timeout was 60.0 there and is 5.0 here: give --timeout 60 again"),
        ({"quick": True}, "quick was False there and is True here: leave --quick out"),
        ({"level": "L1"}, "level was 'L0' there and is 'L1' here: give --level L0 again"),
        ({"expression": "device"}, "expression was None there and is 'device' here: leave -k out"),
        ({"shard": Shard(1, 2)}, "shard was None there and is '1/2' here: leave --shard out"),
        ({"profile": "inference"}, "profile was None there and is 'inference' here: leave --profile out"),
    ],
)
def test_another_run_is_not_resumed(here, workers, change, expected):
    workers.last = 4
    run(here / "r", level="L0")
    with pytest.raises(UsageError) as caught:
        run(here / "r", **{"level": "L0", "resume": here / "r"} | change)
    assert expected in str(caught.value) and workers.asked == workers.asked[:4]


@pytest.mark.parametrize(
    ("part", "key", "value", "expected"),
    [
        ("device", "arch", "other", "arch was '' there and is 'other' here"),
        ("backend", "version", "1.3", "backend was x 1.2 1.0 there and is x 1.3 1.0 here"),
        (None, "packs", ["p 1"], "packs was [] there and is ['p 1'] here"),
    ],
)
def test_another_device_is_not_resumed(here, workers, part, key, value, expected):
    workers.last = 4
    run(here / "r", level="L0")
    before = (here / "r" / "results.json").read_text()
    (workers.description[part] if part else workers.description)[key] = value
    with pytest.raises(UsageError) as caught:
        run(here / "r", level="L0", resume=here / "r")
    assert expected in str(caught.value) and "begin anew" in str(caught.value)
    assert (here / "r" / "results.json").read_text() == before and not workers.asked


def test_runs_that_cannot_be_resumed(here, workers):
    (here / "f.json").write_text('{"schema": "other"}')
    (here / "bytes").write_bytes(b"\xff\xfe\0")
    head = {"schema": journal.SCHEMA, "run": {"seconds": 0}, "description": {}}
    (here / "short.jsonl").write_text(json.dumps(head) + "\n")
    (here / "short.json").write_text(
        json.dumps({"schema": document.SCHEMA, "schema_version": document.SCHEMA_VERSION})
    )
    for path in ("bytes", "short.jsonl", "short.json"):
        with pytest.raises(UsageError, match="is not the results of a run"):
            run(level="L0", resume=here / path)
    with pytest.raises(UsageError, match=r"--baseline: .* is malformed"):
        run(level="L0", baseline=here / "short.json")
    for path, expected in (
        ("none", "No such file"),
        ("f.json", "is not the results of a run"),
        (".", "No such file"),
    ):
        with pytest.raises(UsageError, match=expected):
            run(level="L0", resume=here / path)


def test_resuming_a_complete_run(here, workers, capsys):
    first = run(here / "r", level="L0")
    capsys.readouterr()
    assert run(here / "r", level="L0", resume=here / "r")[0] == first[0] and not workers.asked
    assert "nothing is left to run of" in capsys.readouterr().out


def test_unsupported_cases_that_cost_a_level_are_listed_by_id(here, workers, capsys):
    """At the end of a run, and when they are run alone: with the reason, the command, and an exit code."""
    of_f64 = "scaled_linear[f32,vector]"  # names a dtype that a device may lack
    workers.statuses = {
        "nextafter[f32,values]": "unsupported",
        of_f64: "unsupported",
        "erf[f16,values]": "unsupported",
    }
    for options in (
        {"level": "L2", "no_report": True},
        {"expression": "nextafter"},
        {"cases": ("nextafter[f32,values]",)},
    ):
        assert run(**options)[0] == 1
        printed = capsys.readouterr().out
        assert printed.count("unsupported, and L2 asks for it: ") == 1
        assert "unsupported, and L2 asks for it: nextafter[f32,values]: why" in printed
        assert "--case 'nextafter[f32,values]'" in printed
    assert run(cases=(of_f64,))[0] == 0
    assert f"unsupported, which no level forbids: {of_f64}: why" in capsys.readouterr().out


def test_what_costs_a_level_can_be_waived(here, workers):
    (here / "w.toml").write_text('[[waiver]]\ncase = "nextafter[f32,values]"\nreason = "no row yet"\n')
    workers.statuses = {"nextafter[f32,values]": "unsupported"}
    code, content = run(here / "r", expression="nextafter[f32", waivers=here / "w.toml", level="L2")
    waived = next(c for c in content["cases"] if c["id"] == "nextafter[f32,values]")
    assert (code, waived["status"], waived["outcome"]) == (0, "waived", "unsupported")


# ---- shards -----------------------------------------------------------------------------------------------------


@given(st.sets(st.text(max_size=12)), st.integers(1, 9))
def test_every_id_is_in_one_shard(ids, n):
    parts = [{id for id in ids if Shard(i, n).has(id)} for i in range(1, n + 1)]
    assert sum(map(len, parts)) == len(ids) and set().union(*parts) == ids


def test_shards_are_balanced_and_never_change():
    ids = [f"op{i % 7}[f32,sample{i}]" for i in range(3000)]
    sizes = [sum(Shard(i, 3).has(id) for id in ids) for i in (1, 2, 3)]
    assert all(900 < size < 1100 for size in sizes)
    assert [i for i in range(20) if Shard(2, 5).has(f"add[f32,s{i}]")] == [9, 13]


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "1/0", "-1/2", "1/2/3", ""])
def test_invalid_shards(text):
    with pytest.raises(ValueError, match="expected I/N"):
        Shard.parse(text)


@given(st.integers(1, 4), st.dictionaries(st.integers(0, 80), st.sampled_from([*Status])))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_shards_together_are_the_whole(reports, workers, n, statuses):
    ids = [c.id for c in Session(Options(device="x", level="L0", no_report=True)).plan.cases]
    workers.statuses = {ids[k % len(ids)]: s for k, s in statuses.items() if s not in ("waived", "not-run")}
    code, whole = run(reports / "whole", level="L0")
    folders = []
    for i in range(1, n + 1):
        folders.append(reports / f"shard-{i}")
        run(folders[-1], level="L0", shard=Shard(i, n))
    assert merge(Options(device=None, report=reports / "merged"), folders[::-1]) == code
    merged = read(reports / "merged")
    replays = json.loads(json.dumps(whole).replace("--device x ", "--device x:0 "))
    assert without_times(merged, "workers") == without_times(replays, "workers")


def test_a_shard_claims_no_level_and_names_the_merge_command(here, workers, capsys):
    for i in (1, 2):
        assert run(level="L0", shard=Shard(i, 2))[0] == 0
        assert "no level is claimed for shard" in capsys.readouterr().out.splitlines()[-1]
    shards = sorted((here / "dovetail-report").iterdir())
    assert [s.name for s in shards] == ["shard-1-of-2", "shard-2-of-2"]
    assert read(shards[0])["level"]["reached"] is None
    assert merge(Options(device=None), shards) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "level L0 (the device itself)"
    assert read(here / "dovetail-report")["level"]["reached"] == "L0"


def test_shards_that_cannot_be_merged(here, workers):
    for i, n, seed in ((1, 2, 0), (2, 2, 0), (2, 2, 1), (3, 3, 0)):
        run(here / f"{i}of{n}s{seed}", level="L0", shard=Shard(i, n), seed=seed)
    run(here / "whole", level="L0")
    for names, expected in {
        "": "name the folders",
        "1of2s0": "shard 2/2 is missing: run it with --shard 2/2",
        "1of2s0 1of2s0": "are both shard 1/2",
        "1of2s0 3of3s0": "shards of /2 and /3",
        "1of2s0 2of2s1": "seed was 1 there and is 0 here",
        "whole": "was not a shard",
        "none": "No such file",
    }.items():
        with pytest.raises(UsageError, match=expected):
            merge(Options(device=None), [here / name for name in names.split()])
    assert not (here / "dovetail-report").exists()


def test_a_merge_of_stopped_shards_does_not_reach_the_level(here, workers, capsys):
    run(here / "1", level="L0", shard=Shard(1, 2))
    workers.last = 2
    run(here / "2", level="L0", shard=Shard(2, 2))
    assert merge(Options(device=None), [here / "1", here / "2"]) == 1
    assert "were not run" in capsys.readouterr().out.splitlines()[-1]
    content = read(here / "dovetail-report")
    assert not content["run"]["complete"] and content["run"]["stopped_by"] == "Ctrl-C"


# ---- waivers ----------------------------------------------------------------------------------------------------

WAIVERS = """
[[waiver]]
case = "erf[f16,*"
reason = "the table has 8 bits"
[[waiver]]
case = "*[*,values]"
reason = "reaches L1"
expires = 9999-12-31
[[waiver]]
case = "erf[bf16,*"
reason = "old"
expires = 2020-01-01
[[waiver]]
case = "erf[f64,*"
reason = "other"
versions = "<1.0"
[[waiver]]
case = "erf[f64,*"
reason = "somebody else"
device = "y"
"""


def test_waivers_of_the_folder_are_read_and_reported(here, workers, capsys):
    (here / "waivers.toml").write_text(WAIVERS)
    workers.statuses = {"erf[f16,values]": "crash", "erf[bf16,odd]": "fail", "add[f32,values]": "fail"}
    code, content = run(here / "r", expression="erf or add[f32,values]")
    assert code == 1
    by_id = {c["id"]: c for c in content["cases"]}
    waived = by_id["erf[f16,values]"]
    assert (waived["status"], waived["outcome"]) == ("waived", "crash")
    assert waived["waiver"] == "the table has 8 bits" and waived["message"] == "why" and "replay" not in waived
    assert by_id["erf[bf16,odd]"]["status"] == by_id["add[f32,values]"]["status"] == "fail"
    assert [w["state"] for w in content["waivers"]] == ["used", "unexpected-pass", "expired", "other-version"]
    printed = capsys.readouterr().out
    assert "1 waived" in printed and "not right: erf (1), add (1)" in printed.replace(
        "add (1), erf (1)", "erf (1), add (1)"
    )
    assert "waiver erf[bf16,* expired on 2020-01-01" in printed
    assert "waiver erf[f64,* is for versions <1.0, not 1.2" in printed
    assert "waiver erf[f16,*: " in printed and "passed unexpectedly" in printed
    assert "waiver *[*,values] does not reach L0 and L1: not waived: add[f32,values]" in printed


def test_a_waived_case_is_no_reason_to_fail(here, workers):
    (here / "w.toml").write_text(WAIVERS)
    workers.statuses = {"erf[f16,values]": "fail"}
    assert run(expression="erf[f16", waivers=here / "w.toml")[0] == 0
    assert run(expression="erf[f16")[0] == 1


def test_wrong_waivers_stop_the_run_before_it_begins(here, workers):
    (here / "waivers.toml").write_text('[[waiver]]\ncase = "add[f32,v*"\nreason = "r"\n')
    with pytest.raises(UsageError, match=r"waivers.toml, line 1: 'add\[f32,v\*' stands for add\[f32"):
        run(level="L0")
    assert not workers.asked and not (here / "dovetail-report").exists()
