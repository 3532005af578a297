"""results.json: its content, and its published JSON Schema."""

import json

import jsonschema
import pytest
from conformance_small_run import CASES, RESULTS, made
from dovetail_conformance.judging import histogram
from dovetail_conformance.reporting import document as report
from dovetail_conformance.results import Status


@pytest.fixture(scope="module")
def valid():
    jsonschema.Draft202012Validator.check_schema(report.schema())
    return jsonschema.Draft202012Validator(report.schema(), format_checker=jsonschema.FormatChecker()).validate


def test_the_document_follows_its_schema(valid):
    read = json.loads(report.as_text(made()))
    valid(read)
    assert read == made()
    assert (read["schema"], read["schema_version"]) == (report.SCHEMA, report.SCHEMA_VERSION)


@pytest.mark.parametrize(
    ("break_it", "expected"),
    [
        (lambda d: d.pop("level"), "'level' is a required property"),
        (lambda d: d["cases"][0].update(status="skipped"), "'skipped' is not one of"),
        (lambda d: d["cases"][0].update(surprise=1), "'surprise' was unexpected"),
        (lambda d: d["run"].update(shard="0/3"), "does not match"),
        (lambda d: d.update(schema_version=1), "was expected"),
    ],
)
def test_schema_refuses(valid, break_it, expected):
    content = made()
    break_it(content)
    with pytest.raises(jsonschema.ValidationError, match=expected):
        valid(content)


def test_schema_knows_every_status_and_edge():
    schema = report.schema()
    assert schema["$defs"]["status"]["enum"] == [s.value for s in Status]
    assert schema["properties"]["error_edges"]["const"] == list(histogram.EDGES)
    assert schema["properties"]["schema_version"]["const"] == report.SCHEMA_VERSION
    assert schema["$id"].endswith(f":{report.SCHEMA_VERSION}")
    bins = schema["$defs"]["case"]["properties"]["errors"]
    assert bins["minItems"] == bins["maxItems"] == len(histogram.EDGES) + 1


def test_cases_carry_what_was_measured_and_failures_their_replay():
    content = made()
    assert [c["id"] for c in content["cases"]] == [c.id for c in CASES]
    assert content["counts"] == {"fail": 1, "pass": 2, "unsupported": 1}
    by_status = {c["status"]: c for c in content["cases"]}
    assert by_status["fail"]["replay"] == "dovetail conform --device x --case 'add[f32,a]' --seed 3"
    assert by_status["fail"]["message"] == "why" and by_status["fail"]["index"] == [0]
    assert all("replay" not in c for c in content["cases"] if c["status"] != "fail")
    assert [c["level"] for c in content["cases"]] == ["L0", "L1", "L1", "L2"]


def test_results_are_read_back_as_they_were_before_waivers():
    waived = RESULTS[1]._replace(
        status=Status.WAIVED, measured={**RESULTS[1].measured, "waiver": "known", "outcome": "fail"}
    )
    content = made([RESULTS[0], waived, *RESULTS[2:]])
    assert content["cases"][1]["status"] == "waived" and content["cases"][1]["message"] == "why"
    read = report.results(json.loads(report.as_text(content)))
    assert list(read.values()) == RESULTS


def test_undeclared_is_listed_once_per_op_and_dtype():
    works = RESULTS[2]._replace(measured={"undeclared": "erf works in i8"})
    assert made([*RESULTS[:2], works, RESULTS[3]])["undeclared"] == [
        {"op": "mul", "dtype": "f32", "message": "erf works in i8"}
    ]
    assert made()["undeclared"] == []
