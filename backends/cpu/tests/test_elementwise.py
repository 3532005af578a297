"""Arithmetic, comparison, logic, bits, rounding, division: every type, every layout of operands."""

from __future__ import annotations

import harness
import numpy as np
import pytest
from harness import BOOL, COMPLEX, FLOATS, INTEGERS, SIGNED, Scalar, bfloat16, float16, float32

REAL = (*INTEGERS, *FLOATS)
HALVES = (float16, bfloat16)
SPECIAL = [0.0, 1, 0.5, 1.5, 2, 2.5, 3, 20, 88.7, 104, 200, 1e-45, 1e-40, 1.1754944e-38, 1e30, 3.4028235e38]
SPECIAL += [8388607.5, 16777217.0, 2147483648.0, np.inf, 65504.0, 6e-8, 0.1]
SPECIAL = np.array([*SPECIAL, *(-np.array(SPECIAL)), np.nan])


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def values(dtype: np.dtype, n: int, seed: int = 0) -> np.ndarray:
    """Edges of the type first, then random numbers."""
    rng = np.random.default_rng(seed)
    if dtype == BOOL:
        return rng.integers(0, 2, n).astype(bool)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        edges = np.array([info.min, info.max, 0, 1, info.max - 1, info.min + 1, 2, 3, 7], dtype)
        edges = np.concatenate([edges, np.array([-1, -2, -3, -7], dtype)]) if info.min else edges
        wild, tame = rng.integers(info.min, info.max, n, dtype, True), rng.integers(0, 70, n).astype(dtype)
        x = np.where(rng.integers(0, 2, n) > 0, wild, tame)
        return np.concatenate([rng.permutation(edges), x])[:n]
    x = np.concatenate([rng.permutation(SPECIAL), rng.normal(size=n) * 10.0 ** rng.integers(-3, 4, n)])[:n]
    return x.astype(dtype)


def same(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Equal, including the signs of zeros; any NaN equals any other."""
    if got.dtype not in FLOATS:
        return got == want
    g, w = got.astype("f8"), want.astype("f8")
    return ((g == w) & (np.signbit(g) == np.signbit(w))) | (np.isnan(g) & np.isnan(w))


def check(got: np.ndarray, want: np.ndarray, *ins: np.ndarray, loose_zero: bool = False) -> None:
    assert got.dtype == want.dtype and got.shape == want.shape
    good = same(got, want) | (loose_zero & (got == 0) & (want == 0))
    if not good.all():
        i = np.unravel_index(np.argmin(good), good.shape)
        operands = [np.broadcast_to(a, good.shape)[i] for a in ins]
        raise AssertionError(f"at {i} of {good.shape}: {operands} gave {got[i]}, expected {want[i]}")


def wide(f):
    """The function; for fp16 and bf16 computed in float64 and rounded."""

    def call(*ins):
        if ins[0].dtype not in HALVES:
            return f(*ins)
        r = f(*(a.astype("f8") for a in ins))
        return r if r.dtype == BOOL else r.astype(ins[0].dtype)

    return call


def truncated(a, b):
    """Truncating division of integers: by zero 0, overflow wraps."""
    safe = np.where(b == 0, b.dtype.type(1), b)
    q = a // safe
    q = q + ((q * safe != a) & ((a < 0) != (safe < 0))).astype(a.dtype)
    return np.where(b == 0, a.dtype.type(0), q).astype(a.dtype)


def shift_left(a, b):
    bits = 8 * a.dtype.itemsize
    legal = (b >= 0) & (b < bits)
    u = a.view(f"u{a.dtype.itemsize}")
    return np.where(legal, u << np.where(legal, b, 0).astype(u.dtype), 0).astype(u.dtype).view(a.dtype)


def shift_right(a, b):
    bits = 8 * a.dtype.itemsize
    legal = (b >= 0) & (b < bits)
    beyond = np.where(a < 0, -1, 0) if a.dtype in SIGNED else np.zeros_like(a)
    return np.where(legal, a >> np.where(legal, b, 0).astype(a.dtype), beyond).astype(a.dtype)


def remainder(a, b):
    """The schema's remainder: fmod, then y added if the signs differ."""
    if a.dtype not in FLOATS:
        return np.remainder(a, b)
    x, y = a.astype("f8"), b.astype("f8")
    r = np.fmod(x, y)
    r = np.where(r == 0, np.copysign(0.0, y), np.where((r < 0) != (y < 0), r + y, r))
    return r.astype(a.dtype)


def floor_divide(a, b):
    if a.dtype not in FLOATS:
        return np.floor_divide(a, b)
    if a.dtype in HALVES:
        return np.floor(a.astype("f4") / b.astype("f4")).astype(a.dtype)
    return np.floor(a / b)


def power(a, b):
    good = a ** np.where(b < 0, b.dtype.type(0), b)
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 != 0, -1, 1), 0))
    return np.where(b < 0, inverse.astype(a.dtype), good)


def rounding(f):
    return lambda x: wide(f)(x) if x.dtype in FLOATS else x


BINARY = {
    "add": (wide(np.add), REAL),
    "subtract": (wide(np.subtract), REAL),
    "multiply": (wide(np.multiply), REAL),
    "divide": (wide(np.divide), FLOATS),
    "maximum": (np.maximum, (BOOL, *REAL)),
    "minimum": (np.minimum, (BOOL, *REAL)),
    "equal": (np.equal, (BOOL, *REAL, *COMPLEX)),
    "not_equal": (np.not_equal, (BOOL, *REAL, *COMPLEX)),
    "less": (np.less, (BOOL, *REAL)),
    "less_equal": (np.less_equal, (BOOL, *REAL)),
    "greater": (np.greater, (BOOL, *REAL)),
    "greater_equal": (np.greater_equal, (BOOL, *REAL)),
    "logical_and": (np.logical_and, (BOOL,)),
    "logical_or": (np.logical_or, (BOOL,)),
    "logical_xor": (np.logical_xor, (BOOL,)),
    "bitwise_and": (np.bitwise_and, (BOOL, *INTEGERS)),
    "bitwise_or": (np.bitwise_or, (BOOL, *INTEGERS)),
    "bitwise_xor": (np.bitwise_xor, (BOOL, *INTEGERS)),
    "bitwise_left_shift": (shift_left, INTEGERS),
    "bitwise_right_shift": (shift_right, INTEGERS),
    "quotient": (truncated, INTEGERS),
    "floor_divide": (floor_divide, REAL),
    "remainder": (remainder, REAL),
    "pow": (power, INTEGERS),
}
UNARY = {
    "negative": (np.negative, REAL),
    "abs": (np.abs, REAL),
    "square": (wide(np.square), REAL),
    "sign": (wide(np.sign), REAL),
    "relu": (lambda x: np.where((x > 0) | (x != x), x, x.dtype.type(0)), REAL),
    "reciprocal": (wide(lambda x: 1 / x), FLOATS),
    "floor": (rounding(np.floor), REAL),
    "ceil": (rounding(np.ceil), REAL),
    "trunc": (rounding(np.trunc), REAL),
    "round": (rounding(np.rint), REAL),
    "bitwise_invert": (np.invert, (BOOL, *INTEGERS)),
    "logical_not": (np.logical_not, (BOOL,)),
    "isnan": (wide(np.isnan), FLOATS),
    "isinf": (wide(np.isinf), FLOATS),
    "isfinite": (wide(np.isfinite), FLOATS),
    "signbit": (lambda x: np.signbit(x.astype("f8")), FLOATS),
}
TO_BOOL = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
TO_BOOL |= {"isnan", "isinf", "isfinite", "signbit"}
# The sign of a zero result is unspecified.
LOOSE = {"maximum", "minimum", "sign"}


def result(op: str, dtype: np.dtype) -> np.dtype:
    return BOOL if op in TO_BOOL else dtype


@pytest.mark.parametrize("op", BINARY)
def test_binary_against_numpy(cpu, op):
    reference, dtypes = BINARY[op]
    for dtype in dtypes:
        n = len(SPECIAL) if dtype in FLOATS else 40
        a = values(dtype if dtype not in COMPLEX else np.dtype("f8"), n).astype(dtype)
        if dtype in COMPLEX:
            a = a + 1j * values(np.dtype("f4"), n, 3).astype(dtype) * (np.arange(n) % 2)
            a = a.astype(dtype)
        left, right = (np.ascontiguousarray(v.reshape(-1)) for v in np.meshgrid(a, a))
        got = cpu.run(op, left, right, out=result(op, dtype))
        check(got, reference(left, right), left, right, loose_zero=op in LOOSE)


@pytest.mark.parametrize("op", UNARY)
def test_unary_against_numpy(cpu, op):
    reference, dtypes = UNARY[op]
    for dtype in dtypes:
        x = np.arange(65536, dtype="u2").view(dtype) if dtype.itemsize == 2 else values(dtype, 5003)
        got = cpu.run(op, x, out=result(op, dtype))
        check(got, reference(x), x, loose_zero=op in LOOSE)


SIZES = [0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 511, 512, 513, 1025]


@pytest.mark.parametrize("dtype", (np.dtype("i1"), bfloat16, float32, np.dtype("i8")), ids=str)
def test_every_size_and_in_place(cpu, dtype):
    for n in [s for s in SIZES if s] + [70_001]:
        a, b = values(dtype, n, 1), values(dtype, n, 2)
        want = BINARY["subtract"][0](a, b)
        check(cpu.run("subtract", a, b, out=dtype), want, a, b)
        check(cpu.run("subtract", a, b, out=dtype, inplace=True), want, a, b)
        check(cpu.run("negative", a, out=dtype, inplace=True), np.negative(a), a)
        check(cpu.run("less", a, b, out=BOOL), a < b, a, b)


@pytest.mark.parametrize("dtype", (np.dtype("u1"), float16, float32, np.dtype("f8")), ids=str)
def test_every_layout(cpu, dtype):
    reference = BINARY["subtract"][0]
    full = values(dtype, 6 * 70 * 66, 1).reshape(6, 70, 66)
    other = values(dtype, 6 * 70 * 66, 2).reshape(6, 70, 66)
    views = {
        "dense": full,
        "row": np.broadcast_to(full[0, 0], full.shape),
        "column": np.broadcast_to(full[0, :, :1], full.shape),
        "outermost": np.broadcast_to(full[:, :1, :1], full.shape),
        "middle": np.broadcast_to(full[:1, :, :1], full.shape),
        "one value": np.broadcast_to(full[:1, :1, :1], full.shape),
        "host scalar": Scalar(full[0, 0, 1]),
        "transposed": full.reshape(70, 66, 6).transpose(2, 0, 1),
        "swapped": full.reshape(6, 66, 70).swapaxes(1, 2),
        "every second": np.concatenate([full, full], 2)[:, :, ::2],
        "rows of a wider one": np.concatenate([full, full], 2)[:, :, :66],
    }
    for a in views.values():
        plain = a.value if isinstance(a, Scalar) else a
        for left, right in ((a, other), (other, a)):
            ins = [x.value if isinstance(x, Scalar) else x for x in (left, right)]
            want = np.ascontiguousarray(reference(*np.broadcast_arrays(*ins)))
            check(cpu.run("subtract", left, right, out=dtype, shape=full.shape), want, *ins)
        if not isinstance(a, Scalar):
            check(cpu.run("square", a, out=dtype), np.ascontiguousarray(UNARY["square"][0](a)), plain)
    scalars = cpu.run("subtract", views["one value"], views["host scalar"], out=dtype, shape=full.shape)
    check(scalars, np.full(full.shape, reference(full[:1, 0, 0], full[:1, 0, 1])[0], dtype))
    zero_d = cpu.run("subtract", Scalar(full[0, 0, 0]), Scalar(full[0, 0, 1]), out=dtype, shape=())
    check(zero_d, reference(full[:1, 0, 0], full[:1, 0, 1]).reshape(()))


def test_many_axes_and_threads(cpu):
    x = values(float32, 3**9, 5).reshape((3,) * 9)
    y = x.transpose(8, 1, 6, 3, 4, 5, 2, 7, 0)
    check(cpu.run("add", x, y, out=float32), x + y)
    big = values(float32, 300_007, 6)
    check(cpu.run("multiply", big, big[::-1].copy(), out=float32), wide(np.multiply)(big, big[::-1]))
    rows = values(float32, 500 * 301, 7).reshape(500, 301)
    check(cpu.run("add", rows, np.broadcast_to(rows[3], rows.shape), out=float32), wide(np.add)(rows, rows[3]))
    narrow = values(float32, 3 * 50_000, 8).reshape(50_000, 3)
    check(
        cpu.run("add", narrow, np.broadcast_to(narrow[3], narrow.shape), out=float32),
        wide(np.add)(narrow, narrow[3]),
    )


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_clip(cpu, dtype):
    x = values(dtype, 1003, 1)
    low, high = values(dtype, 1003, 2), values(dtype, 1003, 3)
    a, b = Scalar(np.array(1).astype(dtype)), Scalar(np.array(20).astype(dtype))

    def want(x, low, high):
        x = x if low is None else np.maximum(x, low)
        return x if high is None else np.minimum(x, high)

    plain = {id(None): None, id(a): a.value, id(b): b.value, id(low): low, id(high): high}
    for lo, hi in [(low, high), (a, b), (None, b), (a, None), (None, high), (low, None), (None, None), (low, b)]:
        expected = want(x, plain[id(lo)], plain[id(hi)]).astype(dtype)
        for inplace in (False, True):
            got = cpu.run("clip", x, lo, hi, out=dtype, shape=x.shape, inplace=inplace)
            check(got, expected, x, loose_zero=True)
    if dtype in FLOATS:
        nan = Scalar(np.array(np.nan).astype(dtype))
        for lo, hi in ((nan, b), (a, nan), (nan, nan)):
            assert np.isnan(cpu.run("clip", x, lo, hi, out=dtype, shape=x.shape).astype("f8")).all()
    grid = x[:999].reshape(27, 37)
    got = cpu.run("clip", grid.T, np.broadcast_to(grid[0, :27], (37, 27)), b, out=dtype, shape=(37, 27))
    check(got, np.ascontiguousarray(want(grid.T, grid[0, :27], b.value)), loose_zero=True)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_remainder_of_far_apart_numbers(cpu, dtype):
    rng = np.random.default_rng(9)
    info = harness.ml_dtypes.finfo(dtype)
    low, high = np.log2(float(info.smallest_subnormal)) + 1, np.log2(float(info.max))
    a, b = (np.exp2(rng.uniform(low, high, 4000)) * rng.choice([-1, 1], 4000) for _ in "ab")
    a, b = a.astype(dtype), b.astype(dtype)
    check(cpu.run("remainder", a, b, out=dtype), remainder(a, b), a, b)
    # Of multiples, and of what is next to them: their quotients are rounded to whole numbers.
    a = (b * rng.integers(-500, 500, b.size).astype(dtype)).astype(dtype)
    for next_to in (a, np.nextafter(a, dtype.type(0)), np.nextafter(a, dtype.type(np.inf))):
        check(cpu.run("remainder", next_to, b, out=dtype), remainder(next_to, b), next_to, b)


def test_must_have_rows_only(cpu):
    """DOVETAIL_CPU_KERNELS=must leaves exactly the primitives, with all their types."""
    level = cpu.table.build_info.decode().split("kernels ")[1].split(";")[0]
    must = harness.fresh(level, DOVETAIL_CPU_KERNELS="must")
    wanted = """copy astype full iota take scatter where add subtract multiply divide quotient maximum minimum
        equal less bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift floor sqrt exp log sin
        sum max matmul"""
    present = [op for op in wanted.split() if op in cpu.by_op]
    assert sorted(must.by_op) == sorted(present)
    for op, rows in must.by_op.items():
        assert len(rows) == len(cpu.by_op[op])
