"""Groups of nodes run as one by the device's compiler, with the bits of eager calls where numerics="eager"."""

import json
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import dovetail as dt
import numpy as np
import pytest
from compiled_calls import leaves
from trace_events import names

DEVICE = "cpu:0"  # of the test
FLOATS = dt.float32, dt.float64, dt.float16, dt.bfloat16
SHAPES = [
    (),
    (1,),
    (7,),
    (0,),
    (3, 0),
    (0, 3),
    (5, 33),
    (1, 33),
    (33, 1),
    (2, 3, 4),
    (4, 1, 17),
    (3, 2, 1),
    (3, 1500),
    (2, 2, 1025),
]
UNARY = dt.negative, dt.abs, dt.exp, dt.square, dt.tanh, dt.nn.gelu, dt.floor, dt.sqrt, dt.nn.silu, dt.sign
BINARY = dt.add, dt.multiply, dt.subtract, dt.divide, dt.maximum, dt.minimum
REDUCTIONS = dt.sum, dt.mean, dt.max


@pytest.fixture(autouse=True, params=["cpu:0", "sim:0"])
def home(request, monkeypatch):
    monkeypatch.setitem(globals(), "DEVICE", request.param)


def same(got, expected):
    """Bit by bit; the sign of NaN depends on the order of operands."""
    got, expected = (list(x) if isinstance(x, tuple) else [x] for x in (got, expected))
    for a, b in zip(got, expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if dt.isdtype(a.dtype, "real floating"):
            x, y = (np.asarray(dt.astype(v, dt.float64)) for v in (a, b))
            assert np.all((np.isnan(x) & np.isnan(y)) | ((x == y) & (np.signbit(x) == np.signbit(y))))
        else:
            assert np.array_equal(np.asarray(a), np.asarray(b))


def operand(random, shape, dtype):
    """Values with zeros of both signs, infinities and NaN; sometimes of other strides than row-major."""
    values = random.standard_normal(shape) * 4
    if values.size:
        special = random.choice([0.0, -0.0, np.inf, -np.inf, np.nan], size=values.shape)
        values = np.where(random.random(values.shape) < 0.03, special, values)
    x = dt.astype(dt.asarray(values, device=DEVICE), dtype)
    kind = random.integers(4)
    if kind == 1 and x.ndim > 1:
        return dt.permute_dims(dt.permute_dims(x, range(x.ndim)[::-1]) + 0, range(x.ndim)[::-1])
    if kind == 2 and x.ndim and x.shape[-1]:
        return dt.concat([x, x], axis=-1)[..., : x.shape[-1]]
    if kind == 3 and x.ndim:
        return dt.repeat(x, 2, axis=-1)[..., ::2]
    return x


def program(random):
    """Random nodes over a few operands: each a function of what is there, in an order that any call repeats."""
    steps = []
    for _ in range(int(random.integers(2, 12))):
        kind = random.choice(["unary", "binary", "binary", "scalar", "reduce", "where", "cast"])
        steps.append(
            (kind, int(random.integers(1 << 30)), int(random.integers(1 << 30)), int(random.integers(1 << 30)))
        )
    results = sorted({int(random.integers(1, 4)) for _ in range(2)})

    def run(*operands, factor=1.5):
        known = list(operands)
        for kind, a, b, c in steps:
            x, y = known[a % len(known)], known[b % len(known)]
            if kind == "unary":
                known.append(UNARY[c % len(UNARY)](x))
            elif kind == "scalar":
                known.append(x * factor if c % 2 else 2.0 - x)
            elif kind == "reduce" and x.ndim and (x.shape[-1] or c % 3 < 2):
                known.append(REDUCTIONS[c % 3](x, axis=-1, keepdims=True))
            elif kind == "where":
                known.append(dt.where(x > y, x, y))
            elif kind == "cast":
                known.append(dt.astype(dt.astype(x, dt.int32 if c % 2 else dt.float32), x.dtype))
            else:
                known.append(BINARY[c % len(BINARY)](x, y))
        return tuple(known[-n] for n in results)

    return run


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize("seed", range(4))
def test_random_groups_have_the_bits_of_eager_calls(seed, dtype):
    for case in range(30):
        number = seed * 1000 + case
        random = np.random.default_rng(number)
        f = program(random)
        g = dt.compile(f, numerics="eager")
        for _ in range(3):
            shape = SHAPES[int(random.integers(len(SHAPES)))]
            others = [
                shape,
                tuple(n if random.random() < 0.7 else 1 for n in shape),
                shape[int(random.integers(len(shape) + 1)) :],
            ]
            operands = [operand(random, s, dtype) for s in others]
            factor = float(random.standard_normal())
            with np.errstate(all="ignore"):
                try:
                    expected = f(*operands, factor=factor)
                except (ValueError, TypeError) as error:
                    with pytest.raises(type(error)):
                        g(*operands, factor=factor)
                    continue
                got = g(*operands, factor=factor)
            print("case", number, others, factor)
            same(got, expected)


@pytest.mark.parametrize("dtype", [dt.int32, dt.int8, dt.uint16, dt.int64, dt.bool], ids=lambda d: d.name)
def test_integers_and_bools(dtype):
    random = np.random.default_rng(3)
    x, y = (
        dt.asarray(random.integers(0, 2 if dtype == dt.bool else 100, (9, 130)), dtype=dtype, device=DEVICE)
        for _ in range(2)
    )

    def f(x, y):
        if dtype == dt.bool:
            return x & ~y, dt.any(x ^ y, axis=-1)
        z = x * y + 3
        return z, dt.where(z > x, z, y), dt.max(z, axis=-1), dt.sum(z - y, axis=-1, keepdims=True), z == y

    same(dt.compile(f)(x, y), f(x, y))


def test_a_group_is_one_launch_with_the_users_line(tmp_path):
    x, w = dt.ones((64, 100), device=DEVICE), dt.ones((100,), device=DEVICE)

    @dt.compile
    def f(x, w, s):
        return dt.exp(x * w + s) - x

    for s in (0.5, 0.25, -0.0):  # a float is a scalar of the group, not another group
        same(f(x, w, s), f.__wrapped__(x, w, s))
    with dt.profile(str(tmp_path / "t.json")):
        f(x, w, 1.0)
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    groups = [e for e in events if e.get("name") == "multiply+add+exp+subtract"]
    assert any("test_compile_groups.py" in json.dumps(e) for e in groups)
    assert not [e for e in events if e.get("name") in ("multiply", "add", "exp", "subtract")]


HOLDING = {
    "scan": lambda f, c, xs: dt.scan(lambda c, x: (f(c, x),) * 2, c, xs),
    "scan of strided rows": lambda f, c, xs: dt.scan(lambda c, x: (f(c, x[:, 0]), f(x[:, 1], c)), c, xs),
    "while_loop": lambda f, c, xs: dt.while_loop(lambda c: dt.max(c) < 5.0, lambda c: f(c, xs[0]), c),
    "cond": lambda f, c, xs: dt.cond(dt.sum(c) > 0, f, lambda c, x: f(x, c), c, xs[1]),
}


@pytest.mark.parametrize("name", HOLDING)
def test_the_programs_that_control_ops_hold_run_in_groups(name):
    def f(c, x):
        return dt.sqrt(c) * 3.0 + dt.abs(x)

    random = np.random.default_rng(5)
    for n in (256, 5, 1, 256):  # rows of 5 floats are not aligned as memory of their own is
        c = dt.asarray(random.random(n, np.float32), device=DEVICE)
        xs = dt.asarray(random.random((7, n, 2) if "strided" in name else (7, n), np.float32), device=DEVICE)
        compiled = dt.compile(lambda c, xs: HOLDING[name](f, c, xs), numerics="eager")
        expected = HOLDING[name](f, c, xs)
        for _ in range(2):
            for got, wanted in zip(leaves(compiled(c, xs)), leaves(expected), strict=True):
                same(got, wanted)
        with dt.profile() as p:
            compiled(c, xs)
        kernels = names(p.events, "kernel")
        assert any(k.startswith("sqrt+multiply+") for k in kernels) and "sqrt" not in kernels, kernels
        if name == "scan" and n == 256:  # all rows are computed where they stay, but for the carry's own
            assert kernels.count("copy") <= 1, kernels


def test_a_value_lives_until_the_last_step_that_uses_it():
    """A step that the program has behind a group may run before it."""

    def f(a, b):
        c = dt.astype(a, dt.float64)
        return dt.exp(c - dt.maximum(c, b)) + b, c * 2.0

    a, b = dt.asarray(3.0, dtype=dt.float32, device=DEVICE), dt.asarray([1.0, 5.0], dtype=dt.float64, device=DEVICE)
    same(dt.compile(f)(a, b), f(a, b))
    x, y = (dt.asarray(v, dtype=dt.float16, device=DEVICE) for v in (165.9, [-88.7, 0.5, 165.9]))
    same(dt.compile(dt.logaddexp, numerics="eager")(x, y), dt.logaddexp(x, y))


def test_sizes_to_one_and_back_and_a_view_between():
    @dt.compile
    def f(x, y):
        z = x * y + 1.0
        return dt.reshape(z, (-1,)) * 2.0 - 1.0, dt.sum(dt.exp(z), axis=-1)

    for shapes in (
        ((4, 5), (4, 5)),
        ((1, 5), (4, 5)),
        ((4, 1), (1, 5)),
        ((1, 1), (1, 1)),
        ((9, 2000), (2000,)),
        ((4, 5), (4, 5)),
    ):
        x, y = (
            dt.asarray(np.random.default_rng(1).standard_normal(s), dtype=dt.float32, device=DEVICE) for s in shapes
        )
        same(f(x, y), f.__wrapped__(x, y))


# Functions of x (n, 12) and y (n, 3) whose views are read by one group, and how often anything else runs.
VIEWS = {
    "gates": (lambda x, y: dt.tanh(x[:, 3:6]) * y + dt.exp(x[:, :3]), 0),
    "a slice of a slice": (lambda x, y: dt.exp(x[1:, 2:8][:, 1:4]) + dt.abs(y[1:]), 0),
    "steps": (lambda x, y: dt.exp(x[:, ::4]) * y[::1], 0),
    "a permutation": (lambda x, y: dt.exp(dt.permute_dims(x, (1, 0))) * 2.0, 0),
    "a reshape": (lambda x, y: dt.exp(dt.reshape(x, (-1, 4, 3))) + y[:, None], 0),
    "a broadcast": (lambda x, y: dt.exp(dt.broadcast_to(x[0, :3], y.shape)) + y, 0),
    "of a product": (lambda x, y: dt.tanh((x @ x.T)[:, :1]) * y - 1.0, 1),
    "of sums": (lambda x, y: dt.sqrt(dt.abs(dt.cumulative_sum(x, axis=1)[:, :3])) * y, 1),
    "of an operand": (lambda x, y: dt.exp(x + 1.0) * dt.repeat(x[:, :1], 12, axis=1), 0),
}


@pytest.mark.parametrize("case", VIEWS)
@pytest.mark.parametrize("dtype", [dt.float32, dt.bfloat16], ids=lambda d: d.name)
def test_views_in_front_of_a_group_are_read_where_they_are(case, dtype):
    f, others = VIEWS[case]
    compiled = dt.compile(f, numerics="eager")
    random = np.random.default_rng(7)
    for n in (4, 40, 2):
        x, y = (dt.astype(dt.asarray(random.standard_normal((n, m)), device=DEVICE), dtype) for m in (12, 3))
        for _ in range(2):
            same(compiled(x, y), f(x, y))
        wide = dt.concat([x, x], axis=1)[:, :12]  # not row-major: the views are made
        same(compiled(wide, y), f(wide, y))
        assert dt.compile(f, numerics="eager", donate=("x", "y"))(x + 0, y + 0).shape == f(x, y).shape
    if dtype is dt.float32 and DEVICE == "cpu:0":  # sim runs tanh and others by their decompositions
        with dt.profile() as p:
            compiled(x, y)
        kernels = names(p.events, "kernel")
        assert len(kernels) == others + 1 and "slice" not in kernels, kernels


def test_memory_that_a_view_reads_is_not_taken_for_a_result():
    """Rows of x are read after the first one has been replaced, were x's memory the result's."""

    def f(a, b):
        x = a @ b  # ends with the group
        return dt.exp(x) * 0.5 + x[:1, :]

    def g(a, b):
        x = a @ b
        return dt.exp(x) * 0.5 + dt.abs(x[:, :1])

    random = np.random.default_rng(9)
    for n in (8, 700):
        a, b = (dt.asarray(random.standard_normal(s), dtype=dt.float32, device=DEVICE) for s in ((n, 12), (12, 12)))
        for h in (f, g):
            same(dt.compile(h, numerics="eager")(a, b), h(a, b))


def test_a_view_that_others_use_is_still_made():
    def f(x):
        y = x[:, :3]
        return dt.exp(y) * 2.0 + 1.0, y, dt.cumulative_sum(y, axis=1)

    x = dt.asarray(np.random.default_rng(2).standard_normal((5, 7)), dtype=dt.float32, device=DEVICE)
    same(dt.compile(f, numerics="eager")(x), f(x))


@pytest.mark.parametrize("dtype", [dt.bfloat16, dt.float16], ids=lambda d: d.name)
def test_narrow_floats_round_once_by_default(dtype):
    def f(x, w):
        y = x * w + 0.5
        return y * dt.tanh(y) + x

    random = np.random.default_rng(5)
    x, w = (dt.astype(dt.asarray(random.standard_normal(s), device=DEVICE), dtype) for s in ((200, 300), (300,)))
    wide = [np.asarray(dt.astype(a, dt.float64)) for a in (x, w)]
    y = wide[0] * wide[1] + 0.5
    exact = y * np.tanh(y) + wide[0]
    error = [np.abs(np.asarray(dt.astype(g(x, w), dt.float64)) - exact).mean() for g in (dt.compile(f), f)]
    assert error[0] <= 1.1 * error[1]
    assert error[0] < 0.8 * error[1]  # a decomposition of tanh rounds its result


def test_threads_share_a_group():
    @dt.compile
    def f(x):
        return dt.exp(x * 2.0) / (1.0 + x * x)

    arrays = [dt.full((50, n), n / 100, device=DEVICE) for n in (3, 700, 3000)]
    expected = [f.__wrapped__(x) for x in arrays]
    with ThreadPoolExecutor(6) as pool:
        for got, e in zip(pool.map(f, arrays * 20), expected * 20, strict=True):
            same(got, e)


BODIES = """
import sys, hashlib
import dovetail as dt, numpy as np
x = dt.asarray(np.random.default_rng(0).standard_normal((130, 517)), dtype=dt.{dtype}, device="{device}")
y = dt.asarray(np.random.default_rng(1).standard_normal((130, 1)), dtype=dt.{dtype}, device="{device}")
nn = dt.nn
for f in (nn.softplus, nn.hardswish, nn.mish, dt.expm1, dt.log1p, dt.sinh, nn.elu, nn.selu, nn.log_softmax):
    print(f.__name__, hashlib.sha256(np.asarray(f(x)).tobytes()).hexdigest())
for f in (dt.logaddexp, dt.hypot, dt.copysign, dt.atan2, dt.nextafter):
    print(f.__name__, hashlib.sha256(np.asarray(f(x, y)).tobytes()).hexdigest())
print(hashlib.sha256(np.asarray(dt.var(x, axis=-1)).tobytes()).hexdigest())
"""


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_decompositions_of_large_arrays_keep_their_bits(dtype, monkeypatch):
    printed = []
    for passes in ("", "-fuse,-open,-cast,-cse"):
        monkeypatch.setenv("DOVETAIL_PASSES", passes)
        program = BODIES.format(dtype=dtype, device=DEVICE)
        printed.append(
            subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        )
    assert printed[0] == printed[1] and len(printed[0].splitlines()) == 15


def test_what_refuses_runs_by_itself():
    """A reduction of few rows of many terms: the kernel joins terms in another order."""

    @dt.compile(numerics="eager")
    def f(x):
        return dt.sum(x * 2.0 + 1.0, axis=-1)

    x = dt.asarray(np.random.default_rng(2).standard_normal((2, 200_001)), dtype=dt.float32, device=DEVICE)
    same(f(x), f.__wrapped__(x))
    assert math.isfinite(float(f(x)[0]))


def test_values_of_rows_without_elements():
    """A group whose index space is empty may have results with one value a row."""
    x = dt.asarray(np.linspace(-1, 1, 16, dtype=np.float32).reshape(16, 1), device=DEVICE)
    empty = dt.zeros((16, 0), dtype="float32", device=DEVICE)

    def f(x, y):
        z = dt.exp(x) * 2.0
        return z, z + y

    same(dt.compile(f, numerics="eager")(x, empty), f(x, empty))
