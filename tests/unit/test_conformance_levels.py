import pytest
from dovetail.schema import dtypes as dt
from dovetail.schema.samples import Draw, Sample
from dovetail_conformance.cases import Case
from dovetail_conformance.cases.samples import SampleCase
from dovetail_conformance.levels import standing as levels
from dovetail_conformance.levels.must_pass import must_pass
from dovetail_conformance.reporting import live
from dovetail_conformance.results import BAD, Result, Status

CASES = [
    Case("device.memory[a]", "L0"),
    Case("device.streams[b]", "L0"),
    Case("add[f32,a]", "L1", "add", dt.float32),
    Case("add[i8,a]", "L2", "add", dt.int8),
]


def standing(*statuses, wanted="L1", cases=CASES):
    results = {c.id: Result(c.id, Status(s)) for c, s in zip(cases, statuses) if s}
    return levels.standing(cases, results, wanted)


def test_a_level_holds_when_all_its_cases_pass():
    assert standing("pass", "pass", "pass") == ("L1", None, 0, 0, 0)
    assert standing("pass", "pass", wanted="L0").level == "L0"


def test_cases_beyond_the_level_do_not_count():
    assert standing("pass", "pass", "pass", "fail").level == "L1"


def test_a_feature_may_be_missing_but_not_an_op():
    assert standing("pass", "unsupported", "pass").level == "L1"
    assert standing("pass", "pass", "unsupported")[:2] == ("L0", "L1")


@pytest.mark.parametrize("status", ["fail", "crash", "timeout", "fallback", "waived"])
def test_anything_else_breaks_it(status):
    assert standing("pass", "pass", status) == ("L0", "L1", 1, 0, 1)
    assert standing("pass", status, "pass") == (None, "L0", 1, 0, 2)


@pytest.mark.parametrize("status", ["not-run", ""])
def test_what_was_not_run_does_not_count(status):
    assert standing("pass", "pass", status) == ("L0", "L1", 0, 1, 1)


def test_no_cases_no_level():
    assert standing(cases=[])[:2] == (None, "L0")
    assert standing("pass", cases=CASES[:1]) == ("L0", "L1", 0, 0, 0)


def test_closing_lines():
    printed = lambda *s: levels.closing_line(standing(*s), lambda level: f"{level}'s")  # noqa: E731
    assert printed("pass", "pass", "pass") == "level L1 (L1's)"
    assert printed("pass", "pass", "fail") == "level L0 (L0's); L1 not met: 1 of 1 cases did not pass"
    assert printed("crash", "", "pass") == "no level; L0 not met: 1 of 2 cases did not pass, 1 of 2 were not run"


def test_coverage_counts_ops_of_the_list():
    listed = must_pass().ops
    native = {"add", "matmul", "nextafter"}  # the last one is not in the list
    text = levels.coverage("L1", native.__contains__, {"softmax", "add"})
    assert text == "f32, i32, i64, bool; 2 native, 1 decomposed"
    assert "softmax" in listed and "add" in listed


def test_waivers_and_missing_dtypes_prevent_l1_but_not_l2():
    assert standing("pass", "pass", "pass", "waived", wanted="L2").level == "L2"
    assert standing("pass", "pass", "pass", "unsupported", wanted="L2").level == "L2"  # i8: not part of L1
    l1_dtype = [*CASES[:3], Case("erf[f32,a]", "L2", "erf", dt.float32)]
    assert standing("pass", "pass", "pass", "unsupported", wanted="L2", cases=l1_dtype)[:3] == ("L1", "L2", 1)
    assert standing("pass", "pass", "pass", "waived", wanted="L2", cases=l1_dtype).level == "L2"


def test_l2_lists_further_complete_dtypes():
    cases = [
        Case(f"{op}[{d.brief},a]", "L2", op, d) for d in (dt.float16, dt.int8, dt.float64) for op in ("add", "erf")
    ]
    printed = ["pass", "waived", "pass", "unsupported", "pass", "fail"]
    results = {c.id: Result(c.id, Status(s)) for c, s in zip(cases, printed)}
    assert levels.further_dtypes([*CASES[:3], *cases], results) == ["f16"]
    assert levels.further_dtypes(cases, {}) == []
    text = levels.coverage("L2", {"add"}.__contains__, {"softmax"}, ["f16"], 1)
    assert text == "f32, i32, i64, bool, f16; 1 native, 1 decomposed; 1 waived"
    assert (
        levels.coverage("L1", {"add"}.__contains__, (), ["f16"], 1) == "f32, i32, i64, bool; 1 native, 0 decomposed"
    )


def mixed(id, d, *others, level="L2"):
    """A case whose call names further dtypes."""
    sample = Sample("a", tuple(Draw((3,), dtype=other) for other in others), {})
    return SampleCase(id, level, id.partition("[")[0], d, sample=sample)


def test_a_call_that_names_a_missing_dtype_costs_no_level():
    """L2 can be reached without float64, even by cases listed under another dtype."""
    cases = [*CASES[:3], mixed("scaled_linear[f32,a]", dt.float32, dt.int8, dt.float64)]
    assert standing("pass", "pass", "pass", "unsupported", wanted="L2", cases=cases).level == "L2"
    assert standing("pass", "pass", "pass", "fail", wanted="L2", cases=cases).level == "L1"
    alone = [*CASES[:3], mixed("linear[f32,a]", dt.float32, dt.int64)]  # indices are everywhere
    assert standing("pass", "pass", "pass", "unsupported", wanted="L2", cases=alone).level == "L1"
    at_l1 = [*CASES[:2], mixed("add[f32,a]", dt.float32, dt.float64, level="L1")]
    assert standing("pass", "pass", "unsupported", cases=at_l1).level == "L0"


def test_a_dtype_is_complete_whatever_its_calls_with_missing_dtypes_return():
    both = mixed("cast[f16,b]", dt.float16, dt.float64)
    cases = [mixed("add[f16,a]", dt.float16), mixed("add[f64,a]", dt.float64), both]
    printed = lambda *statuses: levels.further_dtypes(  # noqa: E731
        cases, {c.id: Result(c.id, Status(s)) for c, s in zip(cases, statuses)}
    )
    assert printed("pass", "pass", "pass") == ["f16", "f64"]
    assert printed("pass", "unsupported", "unsupported") == ["f16"]
    assert printed("pass", "pass", "unsupported") == []


def test_failures_have_replay_commands():
    result = Result("add[f32,a]", Status.CRASH, 0.5, "signal SIGSEGV\nline two")
    lines = live.failure(result, live.Replay("cpu", 7))
    assert lines[0].split() == ["CRASH", "add[f32,a]"]
    assert [x.strip() for x in lines[1:]] == [
        "signal SIGSEGV",
        "line two",
        "dovetail conform --device cpu --case 'add[f32,a]' --seed 7",
    ]
    assert live.Replay("cpu", 0, 2.5).command("x").endswith(" --timeout 2.5")


def test_counts_and_culprits():
    results = [
        Result("add[a]", Status.FAIL),
        Result("add[b]", Status.PASS),
        Result("mul[a]", Status.TIMEOUT),
        Result("add[c]", Status.CRASH),
    ]
    assert live.by_group(results) == [("add", 2), ("mul", 1)]
    assert live.by_group(results, ["mul", "add"]) == [("mul", 1), ("add", 2)]
    results += [Result("pow[a]", Status.FAIL)] * 3 + [Result("device.copies[a]", Status.FAIL)]
    assert [group for group, _ in live.by_group(results, ["mul", "add"])] == ["device.copies", "mul", "add", "pow"]
    from collections import Counter

    assert live.counted(Counter(r.status for r in results)) == "1 passed, 5 failed, 1 crashed, 1 timed out"
    assert live.counted(Counter()) == "nothing ran"


def test_every_status_is_judged():
    assert {s for s in Status if s not in BAD} == {Status.PASS, Status.UNSUPPORTED, Status.WAIVED, Status.NOT_RUN}
