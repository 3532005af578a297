"""Forms of ops (core/schema/forms.py): each agrees with its op, and compiled functions that hold it call the op."""

import os
import re
import subprocess
import sys
from itertools import groupby

import dovetail as dt
import numpy as np
import pytest
from dovetail.schema.forms import FORMS

SEED = 7
CASES = [(form, shapes) for form in FORMS for shapes in form.shapes]


def operands(shapes, dtype=dt.float32, device="sim:0"):
    random = np.random.default_rng(SEED)
    return [dt.asarray(random.standard_normal(s), dtype=dtype, device=device) for s in shapes]


def ops_of(compiled, *arrays):
    """Of the program that runs, in order."""
    return re.findall(r"^  v.* = ([a-z_0-9.]+)\(", compiled.explain(*arrays), flags=re.MULTILINE)


@pytest.mark.parametrize(
    "forms", [list(of) for _, of in groupby(FORMS, lambda form: form.name)], ids=lambda forms: forms[0].name
)
def test_a_form_agrees_with_its_op_and_becomes_it(forms, monkeypatch):
    monkeypatch.setenv("DOVETAIL_PASSES", "-open")  # a device may have no kernel for the op
    for form in forms:
        for shapes in form.shapes:
            wide = operands(shapes, dt.float64)
            expected = np.asarray(form.written(*wide))
            np.testing.assert_allclose(np.asarray(form.op(*wide)), expected, rtol=1e-10, atol=1e-12)
            for device in ("cpu:0", "sim:0"):
                arrays = operands(shapes, device=device)
                compiled = dt.compile(form.written)
                np.testing.assert_allclose(np.asarray(compiled(*arrays)), expected, rtol=2e-4, atol=2e-5)
                assert len(ops_of(compiled, *arrays)) == 1


def test_operands_of_commutative_ops_in_any_order(monkeypatch):
    monkeypatch.setenv("DOVETAIL_PASSES", "-open")

    def user(x, w):
        return w * (x / dt.sqrt(1e-6 + dt.mean(x * x, axis=1, keepdims=True)))

    x, w = operands([(4, 33), (33,)])
    compiled = dt.compile(user)
    np.testing.assert_allclose(np.asarray(compiled(x, w)), np.asarray(user(x, w)), rtol=1e-6)
    assert ops_of(compiled, x, w) == ["rms_norm"]


@pytest.mark.parametrize("case", ["used elsewhere", "another axis", "an argument", "its size is used"])
def test_what_is_no_form_stays(case):
    def user(x, eps):
        mean = dt.mean(x * x, axis=0 if case == "another axis" else -1, keepdims=True)
        y = x / dt.sqrt(mean + (eps if case == "an argument" else 0.5))
        if case == "its size is used":
            y = y * float(mean.shape[0])
        return (y, mean) if case == "used elsewhere" else y

    (x,) = operands([(4, 33)])
    compiled = dt.compile(user)
    got, expected = compiled(x, 0.25), user(x, 0.25)
    for a, b in zip(got, expected, strict=True) if isinstance(got, tuple) else [(got, expected)]:
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)
    assert "rms_norm" not in ops_of(compiled, x, 0.25)


def test_eager_numerics_and_the_switch_leave_forms_alone():
    form = next(form for form in FORMS if form.name == "softmax")
    (x,) = operands([(4, 33)])
    same = dt.compile(form.written, numerics="eager")
    assert np.array_equal(np.asarray(same(x)), np.asarray(form.written(x)))
    assert "exp" in ops_of(same, x)
    program = (
        "import dovetail as dt\nfrom dovetail.schema.forms import FORMS\n"
        "form = next(form for form in FORMS if form.name == 'softmax')\n"
        "x = dt.ones((4, 33), device='sim:0')\nf = dt.compile(form.written)\nf(x)\nprint(f.explain(x))"
    )
    for passes, raised in (("-open", True), ("", False), ("-raise", False), ("-raise,cse", False)):
        env = os.environ | {"DOVETAIL_PASSES": passes}
        out = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
        assert (" = subtract(" not in out.stdout) == raised
        assert ("DOVETAIL_PASSES is ignored: expected a list" in out.stderr) == passes.endswith(",cse")


def test_random_networks_of_forms():
    print("seed", SEED)
    random = np.random.default_rng(SEED)
    rows = [form for form in FORMS if len(form.shapes[0]) == 1]
    for _ in range(20):
        chosen = [rows[i] for i in random.integers(len(rows), size=4)]

        def user(x, chosen=chosen):
            for i, form in enumerate(chosen):
                x = form.written(x) + (x if i % 2 else 0.5)
            return x

        (x,) = operands([(3, 17)])
        (wide,) = operands([(3, 17)], dt.float64)
        np.testing.assert_allclose(np.asarray(dt.compile(user)(x)), np.asarray(user(wide)), rtol=1e-3, atol=1e-4)
