"""junit.xml and support.csv, and how a report is written."""

import csv
import errno
import io
import os
from xml.etree import ElementTree as xml

import pytest
from conformance_small_run import CASES, RESULTS, made
from dovetail.schema import dtypes as dt
from dovetail_conformance.cases import Case
from dovetail_conformance.reporting import html, junit, support, write_report
from dovetail_conformance.results import Result, Status

MANY = [
    (Case(f"add[f32,{s}]", "L1", "add", dt.float32), Result(f"add[f32,{s}]", s, 0.5, f"was {s}")) for s in Status
]


def test_junit_has_a_suite_per_op_and_part_with_what_went_wrong():
    root = xml.fromstring(junit.render(made()))
    assert [s.get("name") for s in root] == ["device.memory", "add", "mul", "add"]
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("4", "1", "1")
    failure = root.find(".//failure")
    assert failure.get("message") == "fail: why"
    assert failure.text.splitlines() == ["why", "dovetail conform --device x --case 'add[f32,a]' --seed 3"]
    assert [t.get("name") for t in root.iter("testcase")] == [c.id for c in CASES]


def test_junit_knows_every_status():
    results = [r._replace(measured={"waiver": "known", "outcome": "fail"}) if r.status == "waived" else r
               for _, r in MANY]  # fmt: skip
    root = xml.fromstring(junit.render(made(results, [c for c, _ in MANY])))
    found = {t.get("name")[8:-1]: [e.tag for e in t] for t in root.iter("testcase")}
    assert found == {
        "pass": [],
        "fail": ["failure"],
        "fallback": ["failure"],
        "crash": ["error"],
        "timeout": ["error"],
        "unsupported": ["skipped"],
        "waived": ["skipped"],
        "not-run": ["skipped"],
    }
    (suite,) = root
    counts = {k: suite.get(k) for k in ("tests", "failures", "errors", "skipped", "time")}
    assert counts == {"tests": "8", "failures": "2", "errors": "2", "skipped": "3", "time": "4.000000"}
    assert "waived (known): was waived" in {e.get("message") for e in root.iter("skipped")}


def test_junit_accepts_the_output_of_a_crash():
    words = RESULTS[1]._replace(message="signal\x00 \x1b[31mred\ud800 <&> ]]>")
    root = xml.fromstring(junit.render(made([RESULTS[0], words, *RESULTS[2:]])).encode())
    assert root.find(".//failure").get("message").startswith("fail: signal� �[31mred� <&> ]]>")


def rows(content):
    return list(csv.DictReader(io.StringIO(support.render(content))))


def test_support_has_a_row_per_op_and_dtype():
    assert [tuple(row.values()) for row in rows(made())] == [
        ("add", "f32", "native", "fail", "1", "0", "inf", "1"),
        ("mul", "f32", "decomposition", "pass", "1", "1", "0.3", "1"),
        ("add", "i8", "unsupported", "unsupported", "1", "0", "", ""),
    ]


def test_support_has_the_worst_outcome_of_a_cell():
    assert {*support.WORST_FIRST} == {s.value for s in Status}
    for i, status in enumerate(support.WORST_FIRST):
        left = [(c, r) for c, r in MANY if r.status in support.WORST_FIRST[i:]]
        (row,) = rows(made([r for _, r in left], [c for c, _ in left]))
        assert row["status"] == status and row["cases"] == str(len(left))


def test_views_are_the_cores():
    cases = [Case("reshape[f32,a]", "L1", "reshape", dt.float32)]
    assert rows(made([Result("reshape[f32,a]", Status.PASS)], cases))[0]["by"] == "core"


# ---- writing ----------------------------------------------------------------------------------------------------


@pytest.fixture
def no_page(monkeypatch):
    monkeypatch.setattr(html, "render", lambda *_: "<html>")


def test_other_files_stay(tmp_path, no_page):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "results.json").write_text("old")
    assert write_report.write_report(tmp_path, made()) == tmp_path / "index.html"
    assert {p.name for p in tmp_path.iterdir()} == {
        "notes.txt", "results.json", "junit.xml", "support.csv", "index.html",
    }  # fmt: skip
    assert (tmp_path / "notes.txt").read_text() == "mine" and (tmp_path / "results.json").read_text() != "old"


def test_a_full_disk_leaves_what_was_there(tmp_path, no_page, monkeypatch):
    (tmp_path / "results.json").write_text("old")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_report.write_report(tmp_path, made())
    assert [p.name for p in tmp_path.iterdir()] == ["results.json"]
    assert (tmp_path / "results.json").read_text() == "old"


def test_links_and_devices_are_written_to_not_replaced(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_report.write(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_text() == "text"
    write_report.write(tmp_path.__class__(os.devnull), "text")
    assert not os.path.isfile(os.devnull)
