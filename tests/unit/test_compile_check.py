"""f.check(): the groups of a compiled function beside their nodes."""

import math

import broken_compilers
import dovetail as dt
import numpy as np
import pytest
from dovetail._compile_check import check_of


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """The device "meta", whose compiler has the fault that DOVETAIL_BROKEN names."""
    library, wrapped = broken_compilers.build(tmp_path_factory)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOVETAIL_WRAPPED", str(wrapped))
        return dt.load_backend(str(library))[0]


def operands(device, *shape, dtype=dt.float32):
    random = np.random.default_rng(shape)
    return [dt.astype(dt.asarray(random.standard_normal(shape), device=device), dtype) for _ in range(2)]


@dt.compile
def step(x, y):
    z = dt.exp(x * y) + x
    total = dt.sum(z, axis=-1, keepdims=True)
    z = z @ dt.permute_dims(z, (1, 0))
    return dt.exp(z) - z * 0.5, total


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64])
def test_equal_groups(dtype):
    checked = step.check(*operands("sim:0", 5, 70, dtype=dtype))
    assert checked.first is None and checked.ulp == 0.0
    assert {r.group for r in checked.results} == {"multiply+exp+add+sum", "exp+multiply+subtract"}
    assert "all groups (2) have the bits of their nodes" in str(checked)


def test_the_first_group_that_differs(broken, monkeypatch):
    """One whose second operand is taken for the first. What comes after it computes with the right values."""
    x, y = operands(broken, 8, 67)
    assert step.check(x, y).first is None
    monkeypatch.setenv("DOVETAIL_BROKEN", "dropped_operand")
    checked = step.check(x, y)
    first = checked.first
    line = step.__wrapped__.__code__.co_firstlineno + 2
    assert first.group == "multiply+exp+add+sum" and first.where.endswith(f"test_compile_check.py:{line}")
    assert first.different > 500 and first.ulp > 1000 and first.shape == (8, 67)
    z = np.exp(np.asarray(x, float) * np.asarray(y, float)) + np.asarray(x)
    assert first.by_nodes == pytest.approx(z[first.index], rel=1e-5) != first.by_group
    later = [r for r in checked.results if r.group == "exp+multiply+subtract"]
    assert [r.different for r in later] == [0]
    text = str(checked)
    assert f"of 2 groups the first that differs is {first}" in text and f"test_compile_check.py:{line}" in text


def test_narrow_floats():
    """A group rounds once by default, and after each op with numerics="eager"."""
    x, y = operands("sim:0", 9, 100, dtype=dt.bfloat16)
    wide = step.check(x, y)
    assert wide.results[0].different > 0 and wide.ulp > 0 and "round less" in str(wide)
    exact = dt.compile(step.__wrapped__, numerics="eager").check(x, y)
    assert exact.first is None and len(exact.results) == len(wide.results)


def test_it_changes_nothing():
    generator = dt.random.Generator(3)

    class Model:
        def __init__(self):
            self.w = dt.ones((4,), device="sim:0")

    model = Model()

    @dt.compile(donate=("x",))
    def f(model, x):
        model.w += 1.0
        return dt.exp(x * model.w) + generator.normal((4,), device="sim:0")

    x = dt.ones((4,), device="sim:0")
    state = generator.state
    for _ in range(3):
        assert f.check(model, x).first is None
    assert generator.state == state
    assert np.asarray(model.w).tolist() == [1.0] * 4 and np.asarray(x).tolist() == [1.0] * 4
    f(model, x)
    assert np.asarray(model.w).tolist() == [2.0] * 4 and generator.state != state


def test_what_it_refuses():
    x, _ = operands("sim:0", 2, 2)
    with pytest.raises(TypeError, match=r"check\(\) computes with elements: expected arrays, got a spec"):
        step.check(x, dt.spec((2, 2), dt.float32))
    with pytest.raises(TypeError, match="misses the argument 'y'"):
        step.check(x)
    with pytest.raises(TypeError, match="float"):
        dt.compile(lambda x: float(x.sum())).check(x)
    assert "no nodes run as a group" in str(dt.compile(lambda x: x @ x).check(x))


@pytest.mark.parametrize(
    "dtype, one, other, different, ulp",
    [
        ("float32", [1.0, 2.0, np.nan], [1.0, np.nextafter(np.float32(2), np.float32(3)), np.nan], 1, 1.0),
        ("float64", [0.0, 5.0], [-0.0, 5.0], 1, 0.0),
        ("float32", [np.nan, 1.0], [1.0, 1.0], 1, math.inf),
        ("float32", [np.inf, 1.0], [np.inf, 1.0], 0, 0.0),
        ("float16", [1.0], [1.0 + 3 * 2.0**-10], 1, 3.0),
        ("complex64", [1 + 1j, 2], [1 + 1j, 2 + 2j], 1, 2.0**23),
        ("int8", [-128, 5], [127, 5], 1, 255.0),
        ("uint64", [2**64 - 1], [1], 1, float(2**64 - 2)),
        ("bool", [True, False], [True, True], 1, 1.0),
    ],
)
def test_units_in_the_last_place(dtype, one, other, different, ulp):
    a, b = (np.asarray(v, dtype) for v in (one, other))
    told = (dtype, a.shape, "f.py:1", a.tobytes(), b.tobytes())
    [result] = check_of("f", True, [([0, 1], "add+exp", [told])]).results
    assert (result.different, result.ulp) == (different, ulp)


def test_the_report_has_groups():
    def chain_of_report(x):
        return dt.exp(x) * 2.0 + x

    f = dt.compile(chain_of_report)
    x, _ = operands("sim:0", 3, 5)
    f(x)
    report = dt.compile_report()
    at = report.index("chain_of_report: 1 trace")
    assert "trace 1 on sim:0: groups 1, nodes by themselves 0, made in" in report[at : at + 300]
    assert "    exp+multiply+add, at " in report[at : at + 400]


def test_the_report_has_each_way_to_run_a_trace_once():
    def sum_of_report(x, y):
        return dt.exp(x) * 2.0 + y

    f = dt.compile(sum_of_report)
    for a, b in ((3, 3), (3, 1), (4, 4)):
        f(dt.ones((a, 4), device="sim:0"), dt.ones((b, 4), device="sim:0"))
    report = dt.compile_report()
    mine = report[report.index("sum_of_report: 1 trace") :].splitlines()
    assert mine[1].startswith("  trace 1 on sim:0 for 2 sets of sizes: groups 1") and "trace 1" not in mine[3]


def test_why_nothing_is_a_group():
    """The device's reasons are told where it claims no node at all, too."""
    x, _ = operands("sim:0", 3, 3)
    assert "one by one: exp: no other node has the same index space and is connected" in dt.compile(
        lambda x: dt.exp(x) @ x
    ).explain(x)
