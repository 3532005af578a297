"""Performance cases: ceilings and shares on made-up numbers, differences to a baseline, the command on the fake."""

import json
from pathlib import Path

import jsonschema
import pytest
from dovetail_conformance.cases import all_cases, performance
from dovetail_conformance.levels.standing import PERFORMANCE
from dovetail_conformance.performance.ceilings import PROBES, ceilings, is_probe, share
from dovetail_conformance.performance.working_sets import MIB, working_set
from dovetail_conformance.reporting import baseline, document
from dovetail_conformance.reporting import performance as reported
from dovetail_conformance.results import Result, Status
from test_conformance_run import conform, fake_in_workers  # noqa: F401

GIB = 1 << 30


def measured(read, written, seconds, flops=0):
    return {"time_s": seconds, "bytes": read + written, "written": written, "flops": flops}


RUN = {
    "copy[f32,perf,large]": measured(50, 50, 1.0),
    "add[f32,perf,large]": measured(100, 50, 1.25),
    "sum[f32,perf=all,large]": measured(100, 0, 0.5),
    "copy[f32,perf,small]": measured(4, 4, 0.01),
    "matmul[f32,perf=square,small]": measured(2, 1, 0.1, 1000),
    "matmul[f32,perf=batched,medium]": measured(20, 10, 0.1, 4000),
    "matmul[f16,perf=square,medium]": measured(20, 10, 0.1, 9000),
}


def test_ceilings_are_the_best_of_the_run():
    found = ceilings(RUN)
    assert found.memory["large"] == (100, 200.0, 100.0, 100.0)  # a sum read fastest, a product wrote fastest
    assert found.memory["small"] == (8, 400.0, 400.0, 800.0) and "medium" not in found.memory
    assert found.products == {"f32": 40_000.0, "f16": 90_000.0}
    figures = found.as_dict()
    assert figures["copy_gb_per_s"] == pytest.approx(100e-9) and figures["gemm_gflop_per_s"][
        "f16"
    ] == pytest.approx(9e-5)
    assert ceilings({}).as_dict() == {"copy_gb_per_s": 0.0, "gemm_gflop_per_s": {}, "memory": {}}


def test_shares_are_of_the_ceiling_that_binds():
    found = ceilings(RUN)
    assert share("exp[f32,perf,large]", measured(50, 50, 1.0, 25), found) == {"percent": 50.0, "bound": "memory"}
    assert share("max[f32,perf,large]", measured(100, 1, 1.0), found) == {"percent": 50.0, "bound": "memory"}
    conv = measured(20, 10, 0.4, 8000)
    assert share("conv2d[f32,perf,medium]", conv, found) == {"percent": 50.0, "bound": "compute"}
    # A product's ceiling does not apply to a call that is bound by memory.
    assert share("add[f16,perf,small]", measured(4, 4, 1.0, 8), found)["bound"] == "memory"
    # The nearest working set.
    assert share("exp[f32,perf,small]", measured(4, 4, 0.02), found)["percent"] == 50.0
    assert share("exp[f32,perf]", measured(4, 4, 0.02), ceilings({})) == {}


def test_no_call_that_made_the_ceilings_goes_beyond_them():
    found = ceilings(RUN)
    assert max(share(id, m, found)["percent"] for id, m in RUN.items()) == 100


def test_working_sets():
    assert working_set("small", "cpu", {"mem_total": 64 * GIB}) < working_set(
        "medium", "cpu", {"mem_total": 64 * GIB}
    )
    assert working_set("large", "gpu", {"mem_total": 64 * GIB}) == 256 * MIB
    assert working_set("large", "gpu", {"mem_total": GIB}) == 64 * MIB
    assert 64 * MIB <= working_set("large", "cpu", {"mem_total": 256 * GIB}) <= GIB


def test_every_timed_workload_exists_and_is_measured_once():
    cases = {c.id: c for c in all_cases().values() if c.level == PERFORMANCE}
    assert {c.op for c in cases.values()} == set(performance.TIMED)
    for case in cases.values():
        assert case.workload in performance.workloads(performance.registry[case.op]), case.id
        assert case.dtype in performance.registry[case.op].dtypes, case.id
    probes = {probe.format(size) for probe in PROBES for size in ("small", "medium", "large")}
    assert probes <= {id for id in cases if is_probe(id)} and "matmul[f32,perf=square,medium]" in cases


# ---- baseline ---------------------------------------------------------------------------------------------------


def run_of(times, statuses=(), device="x86", spread=0.0):
    cases = [{"id": id, "status": "pass", "time_s": t, "bytes": 8, "timer": "host", "spread": spread}
             for id, t in times.items()]  # fmt: skip
    cases += [{"id": id, "status": status} for id, status in statuses]
    return {
        "schema": document.SCHEMA,
        "schema_version": document.SCHEMA_VERSION,
        "run": {"started": "2026-01-02T03:04:05+00:00"},
        "device": {"name": "acme:0", "kind": "gpu", "arch": device, "properties": {"name": "Acme"}},
        "backend": {"name": "acme", "version": "1.0"},
        "cases": cases,
    }


def test_slower_and_faster_calls():
    before = run_of({"a[f32]": 1.0, "b[f32]": 1.0, "c[f32]": 1.0, "d[f32]": 1.0, "gone[f32]": 1.0})
    now = run_of({"a[f32]": 1.14, "b[f32]": 1.5, "c[f32]": 0.5, "d[f32]": 2.0, "new[f32]": 1.0})
    found = baseline.difference(before, now)
    assert [(c.id, c.ratio) for c in found.slower] == [("d[f32]", 2.0), ("b[f32]", 1.5)]
    assert [c.id for c in found.faster] == ["c[f32]"] and found.timed == 4 and found.same_device
    assert found.appeared == ("new[f32]",) and found.missing == ("gone[f32]",)
    lines = list(found.lines())
    assert "slower: d[f32] 1e+06 -> 2e+06 us, +100%" in lines[1] and "2 slower, 1 faster, 1 as fast" in lines[-1]
    assert json.loads(json.dumps(found.as_dict()))["slower"][1] == {
        "id": "b[f32]", "before_s": 1.0, "now_s": 1.5, "ratio": 1.5, "noise": 0.15}  # fmt: skip


def test_differences_within_the_spread_are_no_change():
    quiet, noisy = run_of({"a[f32]": 1.0}), run_of({"a[f32]": 1.5}, spread=0.6)
    assert baseline.difference(quiet, noisy).slower == () == baseline.difference(noisy, quiet).faster
    assert baseline.difference(quiet, run_of({"a[f32]": 1.7}, spread=0.6)).slower[0].noise == 0.6


def test_incomparable_runs_are_not_compared():
    before, now = run_of({"a[f32]": 1.0}), run_of({"a[f32]": 9.0})
    now["cases"][0]["bytes"] = 16
    assert baseline.difference(before, now)[4:7] == (0, (), ())
    other = baseline.difference(before, run_of({}, device="arm"))
    assert not other.same_device and "another device" in list(other.lines())[1]


def test_endings_that_changed():
    before = run_of({}, [("a[f32]", "pass"), ("b[f32]", "fail"), ("c[f32]", "not-run"), ("d[f32]", "pass")])
    now = run_of({}, [("a[f32]", "crash"), ("b[f32]", "pass"), ("c[f32]", "pass"), ("d[f32]", "pass")])
    assert baseline.difference(before, now).endings == (("a[f32]", "pass", "crash"), ("b[f32]", "fail", "pass"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "is not JSON: name the results.json"),
        ("[]", "does not hold results"),
        ('{"schema": "other"}', "does not hold results"),
        (json.dumps({"schema": document.SCHEMA, "schema_version": 1}), "has version 1 of the format"),
    ],
)
def test_a_bad_baseline_is_reported(tmp_path, text, expected):
    (tmp_path / "results.json").write_text(text)
    for path in (tmp_path, tmp_path / "results.json"):
        with pytest.raises(baseline.BadBaseline, match=expected):
            baseline.read(path)
    with pytest.raises(baseline.BadBaseline, match="cannot be read"):
        baseline.read(tmp_path / "none.json")


def test_lines_of_the_terminal():
    found = ceilings(RUN)
    m = RUN["copy[f32,perf,large]"] | {"gb_per_s": 1e-7, "timer": "host"}
    lines = list(reported.lines(found.as_dict(), [
        Result("copy[f32,perf,large]", Status.PASS, 1.0, "", m | share("copy[f32,perf,large]", m, found)),
        Result("sort[f32,perf,large]", Status.CRASH),
    ]))  # fmt: skip
    assert lines[0].startswith("memory, small") and lines[2].startswith("matmul: f32")
    assert lines[-1].split() == ["copy[f32,perf,large]", "1000.00", "ms", "0.00", "50", "%", "memory"]


# ---- the command ------------------------------------------------------------------------------------------------


def test_command_measures_last_and_compares(tmp_path):
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    chosen = ("--performance", "-k", "*[f32,vectors] and multiply or multiply[f32,perf,small]", "--no-report")
    code, out, err = conform(*chosen, "--json", str(first))
    assert (code, err) == (0, ""), (out, err)
    content = json.loads(first.read_text())
    jsonschema.validate(content, document.schema())
    timed = [c for c in content["cases"] if c["level"] == "P"]
    assert content["cases"][-len(timed) :] == timed and "multiply[f32,perf,small]" in [c["id"] for c in timed]
    assert all(0 < c["percent"] <= 100.01 for c in timed if is_probe(c["id"]))
    assert content["performance"]["ceilings"]["copy_gb_per_s"] > 0 and "of ceiling" in out
    for case in timed:  # ten times faster than it was
        if case["id"].startswith("multiply"):
            case["time_s"], case["spread"] = case["time_s"] / 10, 0.0
    first.write_text(json.dumps(content))
    code, out, err = conform(*chosen, "--baseline", str(first), "--json", str(second), fault="last:multiply")
    assert code == 1, (out, err)
    changes = json.loads(second.read_text())["baseline"]
    jsonschema.validate(json.loads(second.read_text()), document.schema())
    assert {"id": "multiply[f32,vectors]", "before": "pass", "now": "fail"} in changes["endings"]
    assert "since the baseline of" in out and changes["timed"] == len(timed)


def test_a_failure_of_a_measured_case_costs_no_level():
    id = "multiply[f32,perf,small]"
    code, out, _ = conform("--performance", "-k", id, fault="crash:multiply")
    assert code == 0 and f"CRASH    {id}" in out


def test_command_usage_of_baselines(tmp_path):
    (tmp_path / "other.json").write_text("{}")
    code, _, err = conform("-k", "add", "--baseline", str(tmp_path / "other.json"))
    assert code == 2 and "does not hold results" in err
    code, _, err = conform("--performance", "--shard", "1/2")
    assert code == 2 and "without --shard" in err
    code, _, err = conform("-k", "add[f32,perf,small]")
    assert code == 2 and "add --performance" in err
    assert Path(tmp_path / "other.json").read_text() == "{}"
