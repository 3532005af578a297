"""The families that call ops beyond the schema's samples, against a fake device and its faults."""

import os
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from dovetail.schema import dtypes as dt
from dovetail.schema import registry
from dovetail_conformance.cases import Outcome, all_cases, cases_of
from dovetail_conformance.cases.choices import Seeded
from dovetail_conformance.cases.errors import mistakes
from dovetail_conformance.cases.legal import RULES, Drawing, partners_of
from dovetail_conformance.cases.operand import LAYOUTS, Call, Operand, Shared
from dovetail_conformance.cases.special import every_exponent, grid, neighbours, special
from dovetail_conformance.judging import oracle
from dovetail_conformance.results import Status
from dovetail_conformance.running.pool import Config, run

FAKE = Path(__file__).parent / "conformance_fake"


@pytest.fixture(autouse=True)
def fake_in_workers(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FAKE), *filter(None, [os.environ.get("PYTHONPATH")])]))


def results(*ids, seed=0):
    return {r.id: r for r in run(Config("fake", seed, 1, 60.0, "fake_dovetail"), ids)}


# ---- property cases ----------------------------------------------------------------------------------------------


def test_every_shape_rule_has_legal_calls():
    assert {op.spec.shape for op in registry.values()} <= {*RULES, "control"}  # those hold programs


def test_drawn_calls_promote_to_the_cases_dtype():
    op, rng = registry["conv2d"], np.random.default_rng(5)
    mixed = 0
    for _ in range(300):
        call = Drawing(Seeded(rng), op, dt.float32, partners_of(op, dt.float32), dt.NOT_COMPLEX).call()
        operands = [x for x in call.host.values() if isinstance(x, np.ndarray)]
        assert oracle.promoted(operands) is dt.float32
        others = [x for x in operands if dt.of(x) is not dt.float32]
        assert len(others) <= 1  # int16 and uint64, say, do not promote to each other
        mixed += len(others)
    assert mixed > 20


def test_a_good_device_passes_and_its_errors_are_counted():
    got = results(
        "multiply[f32,property]", "multiply[i32,property]", "matmul[f32,property]", "concat[f32,property]"
    )
    assert {r.status for r in got.values()} == {Status.PASS}, got
    measured = got["multiply[f32,property]"].measured
    assert measured["ulp"] <= measured["tol"] and len(measured["errors"]) == 10 and sum(measured["errors"]) > 500
    assert "errors" not in got["multiply[i32,property]"].measured


@pytest.mark.parametrize("fault", ["last", "nan", "strides", "size", "scribble", "dtype", "alias"])
def test_a_fault_is_found_and_shrunk(monkeypatch, fault):
    monkeypatch.setenv("FAKE_FAULT", f"{fault}:multiply")
    got = results("add[f32,property]", "multiply[f32,property]")
    assert got["add[f32,property]"].status is Status.PASS
    wrong = got["multiply[f32,property]"]
    assert wrong.status is Status.FAIL and "; in multiply(x1=f32(" in wrong.message, wrong
    if fault == "last":  # nothing simpler fails
        assert "in multiply(x1=f32() whole" in wrong.message, wrong


def test_a_fault_that_does_not_recur_is_reported(monkeypatch):
    good, bad = Outcome(Status.PASS, "", {"tol": 0.0, "ulp": 0.0}), Outcome(Status.FAIL, "off once")
    outcomes = chain([good, good, bad], repeat(good))
    monkeypatch.setattr("dovetail_conformance.cases.property._Search.judged", lambda *_: next(outcomes))
    outcome = cases_of("multiply")["multiply[f32,property]"].run(SimpleNamespace(has_row=lambda *_: True), 0)
    assert outcome.status is Status.FAIL and outcome.message.startswith("off once; in multiply(x1=f32("), outcome


def test_packed_operands_are_used(monkeypatch):
    monkeypatch.setenv("FAKE_FAULT", "packed:multiply")
    wrong = results("multiply[f32,property]")["multiply[f32,property]"]
    assert wrong.status is Status.FAIL and "called again, with packed operands: " in wrong.message, wrong


def test_the_same_seed_finds_the_same_call(monkeypatch):
    monkeypatch.setenv("FAKE_FAULT", "strides:multiply")
    first, again = (results("multiply[f32,property]")["multiply[f32,property]"] for _ in range(2))
    assert first.message == again.message


def test_a_crash_names_its_call(monkeypatch):
    monkeypatch.setenv("FAKE_FAULT", "crash:multiply")
    crashed = results("multiply[f32,property]")["multiply[f32,property]"]
    assert crashed.status is Status.CRASH and "SIGSEGV" in crashed.message
    assert crashed.message.splitlines()[-1].startswith("in multiply(x1=f32(")


def test_a_case_reports_its_call_and_the_operands_of_the_wrong_element():
    def call(id, *index):
        return cases_of(id.partition("[")[0])[id].call(0, index)

    assert call("sum[f32,last,layout=strided]") == "sum(x=f32(5, 129), axis=-1), layout strided"
    assert call("sum[f32,last]", 3) == "sum(x=f32(5, 129), axis=-1)"  # concerns no single element
    assert call("maximum[f32,grid]", 0, 40).endswith(", x2=f32(1, 41)), there of 0.0 and nan")
    assert call("concat[f32,property]") == ""  # its message names it


@pytest.mark.parametrize("layout", LAYOUTS)
def test_operands_keep_their_values_in_every_layout(layout):
    operand = Operand((3, 4, 5), dt.float32, "uniform", 7, layout)
    a = operand.host()
    assert a.shape == (3, 4, 5) and a.tobytes() == operand.host().tobytes()
    if layout == "repeated":
        assert (a == a[:1]).all()


def test_operands_that_share_memory():
    x = Operand((4, 2), dt.float32, "uniform", 1)
    call = Call(registry["add"], {"x1": x, "x2": Shared("x1", True)})
    assert np.array_equal(call.host["x1"][1:], call.host["x2"][:-1])
    assert "x2=x1 one further on" in str(call)


# ---- special values, fp16 and bf16, errors ---------------------------------------------------------------------


def test_all_special_values_are_included():
    listed = special(dt.float32)
    for x in (0.5, 1.0, 2.0, np.pi / 2, 3 * np.pi / 2, 88.722839, 2.0**-126):
        near = np.float32(x)
        for y in (near, np.nextafter(near, np.float32(9)), np.nextafter(near, np.float32(0))):
            assert y in listed and -y in listed, y
    assert np.isnan(listed).any() and np.isinf(listed).any()
    exponents = np.frexp(every_exponent(dt.float32).astype(np.float64))[1]
    assert {*range(-148, 129)} <= {*exponents.tolist()}
    assert neighbours(np.ones(1, np.float16), 1).tolist() == [1 - 2.0**-11, 1, 1 + 2.0**-10]


def test_the_grid_has_the_list_of_41_values():
    values = grid(dt.float32)
    assert values.size == 41 and np.signbit(values[values == 0]).tolist() == [False, True]
    case = cases_of("atan2")["atan2[f32,grid]"]
    x1, x2 = case.sample.make(np.random.default_rng(0), dt.float32)[0]
    assert np.broadcast_shapes(x1.shape, x2.shape) == (41, 41)


def test_integers_stay_in_the_domain():
    case = cases_of("bitwise_left_shift")["bitwise_left_shift[i32,grid]"]
    x1, x2 = case.sample.make(np.random.default_rng(0), dt.int32)[0]
    assert x2.min() == 0 and x2.max() <= 70 and x1.min() == -(2**31)


def test_conversions_stay_within_defined_values():
    def made(op: str, id: str) -> tuple:
        case = cases_of(op)[f"{op}[{id}]"]
        return case.sample.make(np.random.default_rng(0), case.dtype)[0]

    small = np.trunc(made("astype", "f32,special_to_i8")[0].astype(np.float64))
    assert small.min() >= -128 and small.max() <= 127 and len(small) > 1000
    with np.errstate(invalid="ignore"):  # a signalling NaN
        half = made("astype", "f32,special_to_f16")[0].astype(np.float64)
    assert np.isnan(half).any() and np.isinf(half).any() and (np.abs(half[np.isfinite(half)]) > 65504).any()
    bits = made("astype", "i32,special_to_bool")[0]
    assert (bits[bits % 256 == 0] != 0).any()
    assert made("full", "i64,odd")[1] != int(float(made("full", "i64,odd")[1]))
    sizes = {d: made("iota", f"{d},longest")[0] for d in ("bf16", "f16", "f32", "i8", "i64")}
    assert sizes == {"bf16": 256, "f16": 2048, "f32": 70001, "i8": 127, "i64": 70001}


def test_float16_values_are_complete():
    cases = {id for id in all_cases() if id.endswith(",all]") and "16," in id}
    assert {"exp[f16,all]", "exp[bf16,all]", "relu[f16,all]"} <= cases and len(cases) > 80
    (x,), _ = cases_of("exp")["exp[bf16,all]"].sample.make(np.random.default_rng(0), dt.bfloat16)
    assert np.unique(x.view(np.uint16)).size == 65536


def test_lost_nan_is_found_by_every_family(monkeypatch):
    monkeypatch.setenv("FAKE_FAULT", "nan:exp")
    got = results("exp[f32,special]", "exp[f16,all]", "log[f32,special]")
    assert [r.status for r in got.values()] == [Status.FAIL, Status.FAIL, Status.PASS]


def test_mistakes_are_made_for_every_kind_of_argument():
    made = {op: {s.id: s.error for s in mistakes(registry[op])} for op in ("sum", "where", "take", "matmul", "add")}
    assert made["sum"]["bad_axis"] is ValueError and made["sum"]["axis_twice"] is ValueError
    assert made["where"]["dtype_condition"] is TypeError and made["take"]["before"] is IndexError
    assert made["matmul"]["few_axes_x1"] is ValueError and made["add"]["none_x2"] is TypeError
    assert made["add"]["no_promotion"] is TypeError and made["add"]["unknown_argument"] is TypeError


def test_a_call_that_must_be_refused_and_is_not(monkeypatch):
    monkeypatch.setenv("FAKE_FAULT", "accepts:multiply")
    got = results("multiply[f32,no_arguments]", "add[f32,no_arguments]")
    assert "was accepted, expected TypeError" in got["multiply[f32,no_arguments]"].message
    assert got["add[f32,no_arguments]"].status is Status.PASS


# ---- what kernels declare ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fault", "status"), [("flushes", Status.FAIL), ("flushes_declared", Status.PASS)])
def test_only_devices_that_declare_it_may_flush_subnormals(monkeypatch, fault, status):
    monkeypatch.setenv("FAKE_FAULT", f"{fault}:multiply")
    assert results("multiply[f32,grid]")["multiply[f32,grid]"].status is status


def test_a_tighter_promise_is_checked(monkeypatch):
    monkeypatch.setenv("FAKE_FAULT", "promises:")
    broken = results("add[f32,values]")["add[f32,values]"]
    assert broken.status is Status.FAIL and broken.measured["tol"] == 0.25


@pytest.mark.parametrize("op", ["multiply", "add"])  # the one alone, the other with
@pytest.mark.parametrize(
    ("fault", "reported"), [("modest", True), ("modest_wrong", False), ("modest_crash", False)]
)
def test_undeclared_calls_that_work_are_reported(monkeypatch, op, fault, reported):
    monkeypatch.setenv("FAKE_FAULT", f"{fault}:{op}")
    result = results(f"{op}[f32,undeclared]")[f"{op}[f32,undeclared]"]
    assert result.status is Status.PASS and ("undeclared" in result.measured) is reported, result
