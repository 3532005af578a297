"""Passes over compiled programs: simpler calls of equal bits, and calls of constants."""

import re

import dovetail as dt
import numpy as np
import pytest

SPECIAL = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-42, 3e38, 0.1]
DTYPES = ["float32", "float16", "bfloat16", "float64", "int32", "uint8", "bool"]
DEVICES = ["cpu:0", "sim:0"]


def array(dtype, device="cpu:0"):
    values = np.array(SPECIAL * 3).reshape(5, 6)
    if dtype in ("int32", "uint8", "bool"):
        values = np.nan_to_num(values, posinf=7, neginf=3)
    with np.errstate(all="ignore"):
        return dt.astype(dt.asarray(np.clip(values, 0 if dtype == "uint8" else None, None), device=device), dtype)


def parts(x):
    return x if isinstance(x, tuple) else (x,)


def bits(x):
    x = np.asarray(dt.astype(x, dt.float64) if dt.isdtype(x.dtype, "real floating") else x)
    return np.isnan(x), np.where(np.isnan(x), 0, x), np.signbit(x) & ~np.isnan(x)


def same(got, expected):
    for a, b in zip(parts(got), parts(expected), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        for one, other in zip(bits(a), bits(b), strict=True):
            assert np.array_equal(one, other)


def program(f, *args):
    """The calls of the program that runs: "exp(x)"; values are v, constant arrays w."""
    calls = re.findall(r"^  v\d+ = (.*?\))  ", dt.compile(f).explain(*args) + "  ", flags=re.MULTILINE)
    return [re.sub(r"\b([vw])\d+", r"\1", call) for call in calls]


def after(x):
    return dt.exp(x)  # so that what comes before is a value, and not the result


SIMPLER = {
    "x * 1": (lambda x: x * 1, "float32", []),
    "1 * x": (lambda x: 1.0 * x, "bfloat16", []),
    "x / 1": (lambda x: x / 1, "float16", []),
    "x - 0": (lambda x: x - 0.0, "float32", []),
    "x + -0": (lambda x: x + -0.0, "float32", []),
    "integers + 0": (lambda x: 0 + x, "int32", []),
    "integers * 1": (lambda x: x * 1, "uint8", []),
    "minus twice": (lambda x: dt.negative(-x), "float32", []),
    "inverted twice": (lambda x: ~(~x), "int32", []),
    "abs twice": (lambda x: abs(abs(x)), "float32", ["abs(x)"]),
    "floor of floor": (lambda x: dt.floor(dt.floor(x)), "float64", ["floor(x)"]),
    "a cast there and back": (lambda x: dt.astype(dt.astype(x, "float32"), "bfloat16"), "bfloat16", []),
    "a cast by way of a wider dtype": (
        lambda x: dt.astype(dt.astype(x, "float64"), "float16"), "float32", ["astype(x, dtype=float16)"],
    ),
    "transposed twice": (lambda x: x.T.T, "float32", []),
    "axes in order": (lambda x: dt.permute_dims(x, (0, -1)), "float32", []),
    "a rotation three times": (
        lambda x: dt.permute_dims(dt.permute_dims(dt.expand_dims(x, axis=0), (1, 2, 0)), (1, 2, 0)), "float32",
        ["expand_dims(x)", "permute_dims(v, axes=(2, 0, 1))"],
    ),
    "a matrix transposed, and its axes": (
        lambda x: dt.permute_dims(dt.matrix_transpose(dt.expand_dims(x, axis=0)), (0, 2, 1)), "float32",
        ["expand_dims(x)"],
    ),
    "axes, and the matrix transposed": (
        lambda x: dt.matrix_transpose(dt.permute_dims(dt.expand_dims(x, axis=0), (1, 2, 0))), "float32",
        ["expand_dims(x)", "permute_dims(v, axes=(1, 0, 2))"],
    ),
    "one shape after another": (
        lambda x: dt.reshape(dt.reshape(dt.reshape(x, (-1,)), (6, 5)), (2, -1, 3)), "float32",
        ["reshape(x, shape=(6, 5))", "reshape(v, shape=(2, -1, 3))"],
    ),
    "a shape by way of parts of it": (
        lambda x: dt.reshape(dt.reshape(x, (-1, 2)), (-1, 2, 3)), "float32", ["reshape(x, shape=(-1, 2, 3))"],
    ),
    "broadcast in steps": (
        lambda x: dt.broadcast_to(dt.broadcast_to(dt.max(x, axis=0), (6,)), (4, 6)), "float32",
        ["max(x, axis=(0,))", "broadcast_to(v, shape=(4, 6))"],
    ),
    "where it holds": (lambda x: dt.where(True, x, 0.0), "float32", []),
    "where it does not hold": (lambda x: dt.where(False, 1, x), "int32", []),
}  # fmt: skip
STAY = {
    "floats + 0": (lambda x: x + 0.0, "float32"),  # -0 + 0 is 0
    "0 - x": (lambda x: 0.0 - x, "float32"),
    "x - -0": (lambda x: x - -0.0, "float32"),
    "x / -1": (lambda x: x / -1.0, "float32"),
    "bool * 1": (lambda x: x * 1, "bool"),  # an integer
    "integers / 1": (lambda x: x / 1, "int32"),  # a float
    "integers * 1.0": (lambda x: x * 1.0, "int32"),
    "a cast by way of a narrower dtype": (lambda x: dt.astype(dt.astype(x, "float16"), "float32"), "float32"),
    "a cast by way of another one of 16 bits": (
        lambda x: dt.astype(dt.astype(x, "float16"), "bfloat16"),
        "bfloat16",
    ),
    "a cast by way of integers": (lambda x: dt.astype(dt.astype(x, "float64"), "int32"), "uint8"),
    "where it holds, of another dtype": (lambda x: dt.where(True, x, 0.5), "int32"),
    "where it holds, of a shape that must fit": (lambda x: dt.where(True, x, dt.abs(x)), "float32"),
    "a cast of an integer that is too long": (lambda x: dt.astype(dt.astype(x, "float32"), "float64"), "int32"),
}


@pytest.mark.parametrize("case", SIMPLER)
def test_what_becomes_simpler(case):
    f, dtype, expected = SIMPLER[case]
    assert program(f, array(dtype)) == expected
    assert len(program(lambda x: after(f(x)), array("float32" if dtype == "uint8" else dtype))) <= len(expected) + 2


@pytest.mark.parametrize("case", STAY)
def test_what_stays(case):
    f, dtype = STAY[case]
    x = array(dtype)
    assert program(f, x)
    same(dt.compile(f, numerics="eager")(x), f(x))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("passes", ["", "-algebra", "-fold", "-algebra,-fold"])
def test_the_bits_are_those_of_eager_calls(device, passes, monkeypatch):
    if passes:
        monkeypatch.setenv("DOVETAIL_PASSES", passes)
    for f, dtype, _ in SIMPLER.values():
        x = array(dtype, device)
        same(dt.compile(f, numerics="eager")(x), f(x))


def test_passes_are_switched_off(monkeypatch):
    x = array("float32")

    def f(x):
        return x * 1.0 + dt.arange(6) * 2.0

    assert program(f, x) == ["add(x, w)"]
    monkeypatch.setenv("DOVETAIL_PASSES", "-algebra")
    assert program(f, x) == ["multiply(x, 1.0)", "add(v, w)"]
    monkeypatch.setenv("DOVETAIL_PASSES", "-algebra,-fold,-open")
    assert len(program(f, x)) == 5


# ---- constants ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
def test_calls_of_constants_run_once(device):
    def f(x):
        mask = dt.tril(dt.ones((6, 6), device=x.device)) - 1.0
        weights = dt.exp(dt.asarray([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], device=x.device))
        return x @ mask * weights

    x = array("float32", device)
    assert program(f, x) == ["matmul(x, w)", "multiply(v, w)"]
    same(dt.compile(f, numerics="eager")(x), f(x))


def test_equal_calls_of_constants_are_one():
    def f(x):
        for _ in range(3):
            x = x @ (dt.tril(dt.ones((6, 6), device=x.device)) - 1.0)
        return x

    x = array("float32")
    text = dt.compile(f).explain(x)
    assert text.count("is constant") == 1 and text.count("matmul(") == 3
    same(dt.compile(f, numerics="eager")(x), f(x))
    assert program(lambda x: x * 2.5 + x * 2.5, x) == ["multiply(x, 2.5)", "add(v, v)"]


@pytest.mark.parametrize("device", DEVICES)
def test_a_permutation_that_loops_read_keeps_its_order(device):
    """Rounds read the columns of a weight that is stored by columns; once folded, they would read its rows."""

    def f(x, outside=False):
        w = dt.permute_dims(dt.tril(dt.ones((6, 6), device=x.device)) - 0.5, (1, 0))
        y = dt.scan(lambda c, row: (row + dt.nn.linear(c, w), c), x[0], x)[1]
        return y @ w if outside else y

    x = dt.asarray(np.random.default_rng(3).standard_normal((5, 6)), dtype=dt.float32, device=device)
    assert program(f, x)[0] == "permute_dims(w, axes=(1, 0))"
    assert not any("permute" in call for call in program(lambda x: f(x, outside=True), x))
    same(dt.compile(f, numerics="eager")(x), f(x))


def test_a_program_holds_few_constants():
    """Beyond 16 MB in all calls of constants stay calls."""

    def f(x):
        for k in range(24):
            x = x + dt.sum(dt.full((512, 500), float(k), device=x.device) * x[0, 0])
        return x

    x = dt.ones((2, 2), device="cpu")
    before = dt.memory.stats("cpu")["in_use"]
    g = dt.compile(f)
    g(x)
    text = g.explain(x)
    assert text.count("is constant") == 16 and text.count("= full(") == 8
    assert dt.memory.stats("cpu")["in_use"] - before < 20e6


def test_large_results_are_computed_in_each_call():
    def f(x):
        return dt.sum(dt.ones((600, 600), device=x.device)) * x  # 1.4 MB

    x = array("float32")
    assert any(call.startswith(("ones", "full")) for call in program(f, x))
    same(dt.compile(f, numerics="eager")(x), f(x))


def test_numbers_of_the_call_are_no_constants():
    f = dt.compile(lambda x, n, s: x * n + dt.full((6,), s, device=x.device))
    for n, s in ((1, 1.0), (1.0, 2.0), (2.0, 0.0), (1.0, -0.0)):
        x = array("float32")
        same(f(x, n, s), x * n + s)


def test_an_error_stays_one():
    def f(x):
        dt.reshape(dt.ones((6,)), (4,))
        return x

    x = array("float32")
    for g in (f, dt.compile(f)):
        with pytest.raises(ValueError, match="reshape"):
            g(x)

    def g(x, y):
        x + y  # no value, and an error where the sizes do not fit
        return x

    compiled = dt.compile(g)
    compiled(x, x)
    with pytest.raises(ValueError, match="add"):
        compiled(x, dt.ones((5, 4)))


REFUSING = {  # a function, sizes of the trace, and others, which only the first view refuses
    "another number of elements": (lambda x: dt.reshape(dt.reshape(x, (6, 5)), (2, -1, 3)), (5, 6), (6, 6)),
    "elements for the second one": (lambda x: dt.reshape(dt.reshape(x, (6, 5)), (-1, 3)), (5, 6), (3, 3)),
    "an odd number": (lambda x: dt.reshape(dt.reshape(x, (-1, 2)), (-1,)), (5, 6), (5, 5)),
    "an axis that is not one": (lambda x: dt.broadcast_to(dt.broadcast_to(x, (1, 6)), (4, 6)), (1, 6), (4, 6)),
}


@pytest.mark.parametrize("case", REFUSING)
def test_what_only_the_first_view_refuses(case):
    f, shape, other = REFUSING[case]
    compiled = dt.compile(f)
    for g in (f, compiled):
        same(g(dt.ones(shape)), f(dt.ones(shape)))
        with pytest.raises(ValueError):
            g(dt.ones(other))


def test_a_view_that_others_use_is_made_once():
    def f(x):
        y = dt.reshape(x.T, (-1, 2))
        return dt.reshape(y, (-1, 2, 3)), y

    assert program(f, array("float32"))[-1] == "reshape(v, shape=(-1, 2, 3))"
    assert len(program(lambda x: f(x)[0], array("float32"))) == 2


def test_a_result_that_is_an_operand_keeps_its_value():
    f = dt.compile(lambda x: (x * 1.0, dt.negative(-x)))
    for _ in range(3):
        x = array("int32")
        x = dt.astype(x, "float32")
        kept = np.asarray(x).copy()
        a, b = f(x)
        x[0] = 100.0
        a[1] = 50.0
        assert np.asarray(b).tolist() == kept.tolist()
        assert np.asarray(a)[0].tolist() == kept[0].tolist() and np.asarray(x)[1].tolist() == kept[1].tolist()
    donating = dt.compile(lambda x: x * 1.0, donate=("x",))
    assert np.asarray(donating(array("float32"))).shape == (5, 6)


def test_programs_of_many_nodes():
    """40,000 nodes: a pass that looks at pairs of them would not end."""

    def chain(x):
        for k in range(8000):
            x = dt.abs(dt.negative(-x) * 1.0 + float(k % 7)) * 0.5
        return x

    x = dt.asarray([0.1, -2.0], device="cpu")
    f = dt.compile(dt.export(chain, x))
    f.warmup(x)
    assert len(program(f, x)) == 24_000
    same(f(x), chain(x))
