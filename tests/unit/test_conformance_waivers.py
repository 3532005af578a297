"""waivers.toml: parsing, errors, waived cases and reports."""

from datetime import date

import pytest
from dovetail.schema import dtypes as dt
from dovetail_conformance.cases import Case
from dovetail_conformance.ids import glob
from dovetail_conformance.levels import waivers
from dovetail_conformance.levels.waivers import BadWaivers, Waiver, Waivers
from dovetail_conformance.results import BAD, Result, Status
from hypothesis import given
from hypothesis import strategies as st

TODAY = date(2026, 6, 1)
CASES = {
    c.id: c
    for c in [
        Case("device.memory[a]", "L0"),
        Case("add[f32,a]", "L1", "add", dt.float32),
        Case("add[f16,a]", "L2", "add", dt.float16),
        Case("erf[f16,a]", "L2", "erf", dt.float16),
        Case("erf[f16,b,layout=T]", "L2", "erf", dt.float16),
        Case("erf[bf16,a]", "L2", "erf", dt.bfloat16),
    ]
}


def read(tmp_path, text):
    (tmp_path / "w.toml").write_text(text)
    return waivers.read(tmp_path / "w.toml", CASES)


def applied(*listed, version="1.2", backend="acme", **statuses):
    """Apply a file of these waivers to cases, by default all failed: the waived cases and the report."""
    of = Waivers(listed, backend, version, TODAY)
    results = {}
    for id, case in CASES.items():
        status = Status(statuses.get("of_" + id.partition("[")[0], "fail"))
        results[id] = of.apply(case, Result(id, status, 0.5, "why"))
    return (
        [id for id, r in results.items() if r.status is Status.WAIVED],
        of.report(CASES.values(), results),
        results,
    )


# ---- the file ---------------------------------------------------------------------------------------------------


def test_a_whole_entry(tmp_path):
    (found,) = read(
        tmp_path,
        """
        # known
        [[waiver]]
        case = "erf[f16,*]"
        device = "acme*"
        versions = ">=1.2,<1.4"
        reason = "8 bits"
        url = "https://acme.example/12"
        expires = 2026-12-31
        """,
    )
    assert found == Waiver(
        "erf[f16,*]", "8 bits", "acme*", ">=1.2,<1.4", "https://acme.example/12", date(2026, 12, 31)
    )
    assert found.as_dict()["expires"] == "2026-12-31"


def test_a_day_may_be_a_text_and_no_file_may_be_empty(tmp_path):
    (found,) = read(tmp_path, '[[waiver]]\ncase = "erf[*"\nreason = "r"\nexpires = "2026-12-31"\n')
    assert found.expires == date(2026, 12, 31)
    assert read(tmp_path, "# none\n") == []


ERF = '[[waiver]]\ncase = "erf[*"\nreason = "r"\n'


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("[[waiver]\n", 1, "not a TOML file"),
        (ERF + "\n\n[[waiver]]\ncase = 'erf[bf16*'\n", 6, "reason is missing: say why"),
        ("\n[[waiver]]\nreason = 'x'\n", 2, "case is missing"),
        (ERF + "reasons = 'x'\n", 1, "did you mean 'reason'"),
        (ERF + "zzz = 'x'\n", 1, "expected case, reason"),
        ("waiver = [1]\n", 1, "begin each with"),
        ("[[waiver]]\ncase = 3\nreason = 'x'\n", 1, "expected a text"),
        ("[[waiver]]\ncase = 'erf[*'\nreason = ' '\n", 1, "expected a text"),
        (ERF + "versions = '1.2 to 1.4'\n", 1, "'>=1.2,<1.4'"),
        (ERF + "expires = 'soon'\n", 1, "2027-01-31"),
        (ERF + "expires = 2027\n", 1, "2027-01-31"),
        ("# x\n[[waivers]]\ncase = 'erf[*'\n", 2, "begin each with [[waiver]]"),
        ("version = 1\n" + ERF, 1, "'version' is not expected"),
        (ERF + "[[waiver]]\ncase = 'add[f32,*'\nreason = 'r'\n", 4, "add[f32,a] of L1, which has no waivers"),
        ("[[waiver]]\ncase = 'device.*'\nreason = 'r'\n", 1, "device.memory[a] of L0, which has no waivers"),
        (ERF + ERF, 1, "is there twice"),
    ],
)
def test_errors_in_files_have_place_and_cure(tmp_path, text, line, message):
    with pytest.raises(BadWaivers) as caught:
        read(tmp_path, text)
    assert message in str(caught.value) and str(tmp_path / "w.toml") in str(caught.value)
    assert f"line {line}" in str(caught.value) or "twice" in message


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(BadWaivers, match="No such file"):
        waivers.read(tmp_path / "none.toml", CASES)
    (tmp_path / "w.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadWaivers, match="not a TOML file"):
        waivers.read(tmp_path / "w.toml", CASES)


# ---- what they do -----------------------------------------------------------------------------------------------


def test_failing_cases_are_waived_and_keep_what_they_were():
    waived, (entry,), results = applied(Waiver("erf[f16,*]", "8 bits"))
    assert waived == entry["cases"] == ["erf[f16,a]", "erf[f16,b,layout=T]"]
    assert entry["state"] == "used" and not entry["passed"] and not entry["refused"]
    assert results["erf[f16,a]"].message == "why"
    assert results["erf[f16,a]"].measured == {"waiver": "8 bits", "outcome": "fail"}


@pytest.mark.parametrize("status", sorted(BAD))
def test_every_bad_status_is_waived(status):
    waived, _, results = applied(Waiver("erf[bf16,a]", "r"), of_erf=status)
    assert waived == ["erf[bf16,a]"] and results["erf[bf16,a]"].measured["outcome"] == status


@pytest.mark.parametrize("status", ["unsupported", "not-run"])
def test_untried_cases_are_left_alone(status):
    waived, (entry,), _ = applied(Waiver("erf[*", "r"), of_erf=status)
    assert not waived and entry["state"] == "unused"


def test_an_unexpected_pass_is_reported():
    waived, (entry,), _ = applied(Waiver("erf[bf16,*]", "r"), of_erf="pass")
    assert not waived and entry["state"] == "unexpected-pass" and entry["passed"] == ["erf[bf16,a]"]
    _, (entry,), _ = applied(Waiver("*16,a]", "r"), of_erf="pass")
    assert entry["state"] == "used" and entry["cases"] == ["add[f16,a]"]
    assert entry["passed"] == ["erf[f16,a]", "erf[bf16,a]"]


def test_l0_and_l1_are_never_waived():
    waived, (entry,), _ = applied(Waiver("*", "r"))
    assert waived == [id for id, case in CASES.items() if case.level == "L2"]
    assert entry["refused"] == ["device.memory[a]", "add[f32,a]"]


@pytest.mark.parametrize(("expires", "works"), [(None, True), (date(2026, 6, 1), True), (date(2026, 5, 31), False)])
def test_the_last_day_counts(expires, works):
    waived, (entry,), _ = applied(Waiver("erf[bf16,a]", "r", expires=expires))
    assert bool(waived) is works and entry["state"] == ("used" if works else "expired")
    assert entry["refused"] == ([] if works else ["erf[bf16,a]"])


@pytest.mark.parametrize(
    ("versions", "version", "works"),
    [
        (None, "anything", True),
        (">=1.2,<1.4", "1.2", True),
        (">=1.2,<1.4", "1.4.0", False),
        (">=1.2,<1.4", "1.3rc1", True),
        (">=1.2", "2026-Q1", False),
    ],
)
def test_versions_of_the_backend(versions, version, works):
    waived, (entry,), _ = applied(Waiver("erf[bf16,a]", "r", versions=versions), version=version)
    assert bool(waived) is works and entry["state"] == ("used" if works else "other-version")


def test_waivers_of_other_devices_are_ignored():
    mine, theirs = Waiver("erf[bf16,a]", "mine", device="ac*"), Waiver("erf[f16,a]", "theirs", device="other")
    waived, entries, _ = applied(mine, theirs)
    assert waived == ["erf[bf16,a]"] and [e["reason"] for e in entries] == ["mine"]


def test_the_first_that_matches_waives():
    _, entries, _ = applied(Waiver("erf[bf16,*", "first"), Waiver("erf*", "second"))
    assert [e["cases"] for e in entries] == [["erf[bf16,a]"], ["erf[f16,a]", "erf[f16,b,layout=T]"]]


# ---- patterns ---------------------------------------------------------------------------------------------------

PLAIN = st.text(st.sampled_from("ab[]{}()!,=.-^$+|\\ 1"), max_size=8)


@given(PLAIN, PLAIN, PLAIN)
def test_all_but_stars_and_question_marks_stand_for_themselves(a, b, c):
    assert glob(a)(a) and not glob(a)(a + "x")
    assert glob(f"{a}*{c}")(a + b + c)
    assert glob(f"{a}?{c}")(f"{a}z{c}") and not glob(f"{a}?{c}")(f"{a}zz{c}")
    assert glob(a)(b) is (a == b)
