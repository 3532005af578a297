"""cond, while_loop, scan, and loops whose rounds follow from sizes: eager, exported, from text; against NumPy."""

import json
import re
from collections import Counter

import dovetail as dt
import numpy as np
import pytest
from compiled_calls import leaves
from dovetail import _core, _trace

DEVICES = [d.name for d in dt.devices() if d.index == 0]
on_devices = pytest.mark.parametrize("device", DEVICES)
SEED = 20261125


@pytest.fixture
def rng():
    print("seed", SEED)
    return np.random.default_rng(SEED)


def arrays(values, device):
    return [dt.asarray(v, device=device) for v in values]


def three_ways(fn, *values, device):
    """The leaves of fn's result: eager; exported; exported, written as text and read again."""
    given = arrays(values, device)
    eager = leaves(fn(*given))
    program = dt.export(fn, *given)
    text = program.text()
    again = _core.program_from_text(text)
    assert again.text() == text
    for made in (leaves(program(*given)), again.run(None, given)):
        for a, b in zip(made, eager, strict=True):
            assert (a.dtype, a.shape, a.numpy().tobytes()) == (b.dtype, b.shape, b.numpy().tobytes())
    return program, [x.numpy() for x in eager]


def control_nodes(program):
    """How often each control op occurs, in programs within the program, too."""
    found = Counter()

    def count(p):
        found.update(n["op"] for n in p["nodes"] if "out" in n)
        for part in p.get("programs", []):
            count(part)

    count(json.loads(program.text()))
    return dict(found)


# ---- loops -------------------------------------------------------------------------------------------------------


@pytest.fixture
def no_trace(monkeypatch):
    def refused(name, *_):
        raise AssertionError(f"{name} was traced")

    monkeypatch.setattr(_trace, "run_decomposition", refused)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 16, 37, 1000])
def test_ops_with_rounds_are_shipped_for_every_size(n, rng, no_trace):
    x = rng.integers(-50, 50, (3, n)).astype(np.int32)
    a = dt.asarray(x, device="sim")
    np.testing.assert_array_equal(dt.argsort(a, axis=1).numpy(), np.argsort(x, 1, kind="stable"))
    np.testing.assert_array_equal(dt.cumulative_sum(a, axis=1).numpy(), np.cumsum(x, 1))
    np.testing.assert_array_equal(dt.cumulative_prod(a, axis=1).numpy(), np.cumprod(x.astype(np.int64), 1))
    np.testing.assert_array_equal(dt.prod(a, axis=1).numpy(), np.prod(x.astype(np.int64), 1))
    if n:
        places = rng.integers(0, n, 2 * n)
        updates = rng.integers(-9, 9, (3, 2 * n)).astype(np.int32)
        want = x.copy()
        np.add.at(want, (slice(None), places), updates)
        got = dt.scatter(a, dt.asarray(places, device="sim"), dt.asarray(updates, device="sim"), axis=1, mode="add")
        np.testing.assert_array_equal(got.numpy(), want)


LOOP = {
    "dovetail": 1,
    "inputs": [{"dtype": "float32", "shape": [None]}],
    "numbers": [["size", 0, 0], ["bit_length", 0]],
    "programs": [
        {  # the first half, plus the round; the size of the other input as a number of the node
            "inputs": [{}],
            "numbers": [["size", 0, 0], 2, ["floor_divide", 0, 1], ["attribute", 0], ["attribute", 1, 0]],
            "nodes": [
                {"op": "slice", "in": [0], "at": {"start": [0], "stop": [{"number": 2}], "step": [1]}},
                {"op": "add", "in": [1, {"number": 3, "dtype": "float32"}]},
                {"op": "add", "in": [2, {"number": 4, "dtype": "float32"}]},
            ],
            "outputs": [3],
        }
    ],
    "nodes": [
        {
            "op": "loop",
            "in": [0],
            "out": 1,
            "at": {"count": {"number": 1}, "numbers": [{"number": 0}], "body": {"program": 0}},
        }
    ],
    "outputs": [1],
}


def changed(at, value, document=LOOP):
    """A copy of a program with another value at a path."""
    made = json.loads(json.dumps(document))
    place = made
    for key in at[:-1]:
        place = place[key]
    place[at[-1]] = value
    return made


@on_devices
def test_one_program_loops_for_every_size(device, rng):
    program = _core.program_from_text(json.dumps(LOOP))
    assert json.loads(program.text()) == LOOP
    for n in (0, 1, 2, 3, 8, 37, 1000):
        x = want = rng.standard_normal(n).astype(np.float32)
        for i in range(n.bit_length()):
            want = want[: len(want) // 2] + np.float32(i) + np.float32(n)
        (got,) = program.run(None, arrays([x], device))
        assert got.shape == want.shape
        np.testing.assert_array_equal(got.numpy(), want)


BODY = ["programs", 0]
NODE = ["nodes", 0]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (changed([*NODE, "at", "body"], {"program": 1}), "expected 0 to 0"),
        (changed([*NODE, "at", "body"], {"program": -1}), "expected 0 to 0"),
        (changed([*NODE, "at", "body"], 0), "program"),
        (changed([*NODE, "at", "body"], None), "[loop] body: expected a program"),
        (changed([*NODE, "at"], {"count": 3}), "misses the attribute 'body'"),
        (changed([*NODE, "out"], 2), "out: expected 1"),
        (changed([*NODE, "out"], 2**40), "out: expected 1"),
        (changed([*NODE, "in"], [0, 0]), "body takes 1 arrays: expected 2"),
        (changed([*BODY, "outputs"], [3, 3]), "body gives 2 arrays: expected 1"),
        (changed([*BODY, "outputs"], [4]), "program 0: "),
        (changed([*BODY, "nodes", 0, "in"], [9]), "program 0: "),
        (changed([*BODY, "nodes", 0, "out"], 1), "out: expected none"),
        (changed(["programs"], {}), "programs"),
        (changed(["programs"], []), "expected 0 to"),
        (changed([*BODY, "tensors"], {"w": {"dtype": "float32", "shape": [1]}}), "tensors"),
    ],
)
def test_hostile_programs_are_refused(document, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        _core.program_from_text(json.dumps(document))


def nested(levels):
    inner = {"inputs": [{}], "nodes": [], "outputs": [0]}
    for _ in range(levels):
        node = {"op": "loop", "in": [0], "out": 1, "at": {"count": 1000, "body": {"program": 0}}}
        inner = {"inputs": [{}], "programs": [inner], "nodes": [node], "outputs": [1]}
    return {"dovetail": 1, **inner}


def test_programs_within_programs_have_limits():
    one = dt.ones(2)
    with pytest.raises(ValueError, match=r"expected at most 16 levels|nested too deep"):
        _core.program_from_text(json.dumps(nested(17)))
    assert _core.program_from_text(json.dumps(nested(1))).run(None, [one])[0].numpy().tolist() == [1, 1]
    with pytest.raises(ValueError, match=r"\[loop\] node 0: more than 16777216 steps"):
        _core.program_from_text(json.dumps(nested(3))).run(None, [one])
    many = changed([*NODE, "at", "count"], 2**40)
    with pytest.raises(ValueError, match=r"\[loop\] node 0: 1099511627776 rounds: expected at most 65536"):
        _core.program_from_text(json.dumps(many)).run(None, [one])


# ---- cond --------------------------------------------------------------------------------------------------------


@on_devices
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_cond(device, dtype, rng):
    offset = dt.astype(dt.asarray([1.0, 2.0, 3.0], device=device), dtype)  # captured by one branch

    def fn(x, p):
        return dt.cond(p, lambda x: {"a": x + offset, "n": x.shape[0]}, lambda x: {"a": x * 2, "n": 0}, x)

    x = dt.astype(dt.asarray(rng.standard_normal(3).astype(np.float32), device=device), dtype).numpy()
    for p in (True, False):
        program, (a, n) = three_ways_given(fn, x, np.array(p), device=device)
        assert control_nodes(program) == {"cond": 1}
        want = x.astype(np.float32) + [1, 2, 3] if p else x.astype(np.float32) * 2
        np.testing.assert_allclose(a.astype(np.float32), want, rtol=1e-2)
        assert n == (3 if p else 0)
    given = arrays([x], device)
    program = dt.export(fn, *given, dt.asarray(True, device=device))
    for p in (True, False):  # read at run time
        (a, n) = leaves(program(*given, dt.asarray(p, device=device)))
        assert int(n) == (3 if p else 0)


def three_ways_given(fn, *values, device):
    """three_ways of a function that captures arrays, which text does not hold."""
    given = arrays(values, device)
    eager, program = leaves(fn(*given)), dt.export(fn, *given)
    for a, b in zip(leaves(program(*given)), eager, strict=True):
        assert (a.dtype, a.shape, a.numpy().tobytes()) == (b.dtype, b.shape, b.numpy().tobytes())
    return program, [x.numpy() for x in eager]


@on_devices
def test_cond_reads_outer_values_and_sizes(device, rng):
    def fn(x, y):
        z = x * 2
        return dt.cond(dt.sum(x) > 0, lambda: z + y, lambda: y * x.shape[0])

    x, y = rng.random((2, 5)).astype(np.float32)
    program, (got,) = three_ways(fn, x, y, device=device)
    np.testing.assert_array_equal(got, x * 2 + y)
    _, (got,) = three_ways(fn, -x, y, device=device)
    np.testing.assert_array_equal(got, y * 5)
    (other,) = leaves(program(*arrays([-x[:3], y[:3]], device)))  # for another size
    np.testing.assert_array_equal(other.numpy(), y[:3] * 3)


# ---- while_loop --------------------------------------------------------------------------------------------------


@on_devices
def test_while_loop(device):
    def fn(a, b, step):
        return dt.while_loop(lambda c: c[1] != 0, lambda c: (c[1], c[0] % c[1] * step), (a, b))

    for a, b in ((1071, 462), (7, 0), (0, 0), (12, 18)):
        program, got = three_ways(fn, *map(np.int32, (a, b, 1)), device=device)
        assert got == [np.gcd(a, b), 0]
        assert control_nodes(program) == {"while_loop": 1}


@on_devices
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_while_loop_of_narrow_floats(device, dtype):
    def fn(x, most):
        return dt.while_loop(lambda x: dt.max(x) < most, lambda x: x * 2, x)

    x = dt.astype(dt.asarray([1.0, 3.0], device=device), dtype)
    most = dt.astype(dt.asarray(20.0, device=device), dtype)
    program = dt.export(fn, x, most)
    for got in (fn(x, most), program(x, most)):
        assert got.dtype == x.dtype and dt.astype(got, dt.float32).numpy().tolist() == [8, 24]


# ---- scan --------------------------------------------------------------------------------------------------------


@on_devices
@pytest.mark.parametrize("n", [0, 1, 7])
def test_scan(device, n, rng):
    def fn(c, xs, w):
        return dt.scan(lambda c, x: (c * w + x["a"], (c, x["b"] + 1)), c, {"a": xs[0], "b": xs[1]})

    def flat(c, a, b, w):
        return fn(c, (a, b), w)

    c, w = rng.standard_normal((2, 3)).astype(np.float32)
    a, b = rng.standard_normal((n, 3)).astype(np.float32), rng.integers(0, 9, (n, 2, 2))
    program, got = three_ways(flat, c, a, b, w, device=device)
    assert control_nodes(program) == {"scan": 1}
    kept, carry = [], c
    for x in a:
        kept.append(carry)
        carry = carry * w + x
    np.testing.assert_allclose(got[0], carry, rtol=1e-5)
    np.testing.assert_allclose(got[1], np.array(kept, np.float32).reshape(n, 3), rtol=1e-5)
    np.testing.assert_array_equal(got[2], b + 1)
    more = leaves(program(*arrays([c, np.concatenate([a, a]), np.concatenate([b, b]), w], device)))
    assert more[1].shape == (2 * n, 3)  # another length, without another trace


@on_devices
def test_scan_without_xs_and_control_within_control(device):
    def fn(x):
        def step(c, _):
            c = dt.while_loop(lambda c: dt.sum(c) < 10, lambda c: c + x, c)
            return dt.cond(dt.sum(c) > 20, lambda: (c - 19, c[0]), lambda: (c * 2, c[1]))

        return dt.scan(step, x, None, 4)

    x = np.array([1.0, 2.0], np.float32)
    program, (carry, ys) = three_ways(fn, x, device=device)
    assert control_nodes(program) == {"scan": 1, "while_loop": 1, "cond": 1}
    c, want = x, []
    for _ in range(4):
        while c.sum() < 10:
            c = c + x
        c, y = (c - 19, c[0]) if c.sum() > 20 else (c * 2, c[1])
        want.append(y)
    np.testing.assert_array_equal(carry, c)
    np.testing.assert_array_equal(ys, want)


# ---- operands ----------------------------------------------------------------------------------------------------


def write_in_while(x):
    def test(s):
        s[0][...] = 9  # not seen by the body
        return dt.max(s[1]) < 5

    def body(s):
        a, b = s
        b += a[:1]
        return b, b

    return dt.while_loop(test, body, (x, x)), x


def write_in_scan(x):
    def step(c, v):
        c += v
        v *= 2
        return c, (c, v)

    return dt.scan(step, x[0] + 1, x), x


def write_in_cond(x):
    def fn(a):
        a[:1] = 7
        return a

    return dt.cond(dt.sum(x) > 0, fn, fn, x), x


SIZES_AND_WRITES = {
    "cond": lambda x: dt.cond(dt.sum(x) > 9, lambda a: a / a.shape[0], lambda a: a + dt.zeros(a.shape), x),
    "while_loop": lambda x: dt.while_loop(lambda s: dt.sum(s) < 99, lambda s: s + s.shape[0] + 1, x[:2]),
    "scan": lambda x: dt.scan(
        lambda c, v: (c + v.shape[0] * c.shape[0], dt.arange(c.shape[0])), x[:, 0], x.T[..., None]
    ),
    "nested": lambda x: dt.scan(
        lambda c, v: (
            dt.cond(v[0] > 1, lambda c: c * c.shape[0], lambda c: c - x.shape[0], c),
            v[: v.shape[0] // 2],
        ),
        x[0, :1],
        x,
    ),
    "outer_first": lambda x: dt.scan(
        lambda c, i: (x[0] + c, (x[i], x[:, : c.shape[0] // 2], x[0] > c, x.shape[0] + c.shape[0] + i)),
        x[0],
        dt.arange(x.shape[0]),
    ),
    "write_in_while": write_in_while,
    "write_in_scan": write_in_scan,
    "write_in_cond": write_in_cond,
}


@pytest.mark.parametrize("name", SIZES_AND_WRITES)
def test_functions_follow_the_sizes_of_operands_and_may_write_to_them(name):
    fn = SIZES_AND_WRITES[name]

    def given(n):
        return dt.asarray(np.arange(1, 1 + n * n, dtype=np.float32).reshape(n, n))

    program = dt.export(fn, given(3))
    for n in (1, 3, 4):
        eager, before = leaves(fn(given(n))), given(n).numpy()
        for a, b in zip(leaves(program(given(n))), eager, strict=True):
            assert (a.shape, a.numpy().tolist()) == (b.shape, b.numpy().tolist()), n
        if name.startswith("write"):
            np.testing.assert_array_equal(eager[-1].numpy(), before)  # the caller's array keeps its value


# ---- errors ------------------------------------------------------------------------------------------------------

X = np.ones(3, np.float32)
WRONG = {
    "pred_dtype": (lambda x: dt.cond(x[0], lambda: x, lambda: x), TypeError, "pred is .*expected a bool array"),
    "pred_shape": (lambda x: dt.cond(x > 0, lambda: x, lambda: x), TypeError, "pred is .*without axes"),
    "branch_dtype": (
        lambda x: dt.cond(x[0] > 0, lambda: x, lambda: dt.astype(x, dt.int32)),
        TypeError,
        r"\[cond\] result of .* of shape \(3,\), expected .*; astype or reshape it",
    ),
    "branch_tree": (lambda x: dt.cond(x[0] > 0, lambda: x, lambda: (x, x)), TypeError, "other containers"),
    "carry_shape": (
        lambda x: dt.while_loop(lambda c: dt.sum(c) < 9, lambda c: dt.concat([c, c]), x),
        TypeError,
        r"\[while_loop\] body_fn's result of body_fn is float32 of shape \(6,\), expected float32 of shape \(3,\)",
    ),
    "while_pred": (lambda x: dt.while_loop(lambda c: c, lambda c: c, x), TypeError, "cond_fn's result is"),
    "scan_lengths": (
        lambda x: dt.scan(lambda c, x: (c, x), x, (x, x[:2])),
        ValueError,
        r"\[scan\] xs\[1\] has 2 elements, expected as many as 3 of xs\[0\]",
    ),
    "scan_length": (lambda x: dt.scan(lambda c, x: (c, x), x, x, 4), ValueError, "expected as many as length=4"),
    "scan_length_type": (lambda x: dt.scan(lambda c, x: (c, x), x, None, 2.0), TypeError, "length: got float"),
    "scan_nothing": (lambda x: dt.scan(lambda c, x: (c, x), x), ValueError, "neither xs nor length="),
    "scan_pair": (lambda x: dt.scan(lambda c, x: c, x, x), TypeError, r"expected a tuple \(carry, y\)"),
    "scan_carry": (lambda x: dt.scan(lambda c, x: (c + x, x), 0, x), TypeError, "carry of f's carry is float32"),
    "operand": (lambda x: dt.cond(x[0] > 0, lambda a: x, lambda a: x, "a"), TypeError, "got str, expected arrays"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
def test_what_does_not_fit_is_an_error(case, traced):
    fn, kind, message = WRONG[case]
    with pytest.raises(kind, match=message):
        dt.export(fn, dt.asarray(X)) if traced else fn(dt.asarray(X))


def test_control_ops_are_no_calls():
    with pytest.raises(TypeError, match=r"\[while_loop\] cond: expected a program, which only nodes"):
        _core.op_function("while_loop")([dt.asarray(X)], cond=None, body=None)
