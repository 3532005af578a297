"""The compiler: groups of nodes have the bits of the same nodes one by one."""

import threading

import numpy as np
import pytest
from hand_made import DETERMINISTIC, ROUND_EACH, TYPED, Group, Value
from harness import BOOL, FLOATS, INTEGERS, KernelError, bfloat16, float16, float32, float64

EACH = TYPED | ROUND_EACH | DETERMINISTIC
names = {"ids": lambda d: d.name}
rng = np.random.default_rng(19)


def draw(shape, dtype, random=rng) -> np.ndarray:
    dtype = np.dtype(dtype)
    if dtype == BOOL:
        return np.asarray(random.random(shape) < 0.5)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return random.integers(info.min, info.max, shape, dtype, endpoint=True)
    x = np.asarray(random.normal(0, 2, shape))
    part = x[-1:] if x.ndim > 1 else x[..., :0] if x.ndim and random.random() < 0.7 else x  # most rows stay finite
    special = random.random(part.shape)
    for i, value in enumerate((np.nan, np.inf, -np.inf, 0.0, -0.0)):
        part[(special > i * 0.01) & (special < (i + 1) * 0.01)] = value
    return x.astype(dtype)


def assert_equal_bits(got, expected) -> None:
    assert len(got) == len(expected)
    for i, (a, b) in enumerate(zip(got, expected, strict=True)):
        assert a.shape == b.shape and a.dtype == b.dtype
        nan = np.isnan(a) & np.isnan(b) if a.dtype.kind in "fV" else np.zeros(a.shape, bool)
        u = np.dtype(f"u{a.dtype.itemsize}")
        differ = (np.ascontiguousarray(a).view(u) != np.ascontiguousarray(b).view(u)) & ~nan
        assert not differ.any(), f"output {i}: {differ.sum()} of {a.size} differ, {a[differ][:3]} {b[differ][:3]}"


def check(group: Group, cpu, flags: int = EACH, **how) -> None:
    assert_equal_bits(group.run(cpu, flags, **how), group.eager(cpu))


# ---- compositions ----------------------------------------------------------------------------------------------


def softmax(g: Group, x: Value) -> Value:
    e = g.map("exp", g.map("subtract", x, g.reduce("max", x)))
    return g.map("divide", e, g.reduce("sum", e))


def layer_norm(g: Group, x: Value, w: Value, b: Value) -> Value:
    d = g.map("subtract", x, g.reduce("mean", x))
    v = g.reduce("mean", g.map("multiply", d, d))
    r = g.map("rsqrt", g.map("add", v, g.constant(np.array(1e-5).astype(x.dtype))))
    return g.map("add", g.map("multiply", g.map("multiply", d, r), w), b)


def gelu_of_linear(g: Group, x: Value, w: Value, b: Value) -> Value:
    y = g.map("add", g.map("multiply", x, w), b)
    return g.map("add", g.map("gelu", y, attrs=("none",)), x)


SHAPES = [(7, 1024), (3, 1025), (2, 3000), (40, 63), (1, 5000), (300, 7), (2, 3, 4, 50), (6, 0), (0, 6)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, **names)
@pytest.mark.parametrize("name", ["softmax", "layer_norm", "gelu"])
def test_compositions(cpu, name, dtype, shape):
    g = Group()
    x, w, b = (g.input(draw(s, dtype)) for s in (shape, shape[-1:], shape[-1:]))
    if name == "softmax":
        if 0 in shape:
            return  # the shape rule refuses a maximum of nothing
        g.output(softmax(g, x))
    else:
        y = {"layer_norm": layer_norm, "gelu": gelu_of_linear}[name](g, x, w, b)
        g.output(y)
    check(g, cpu)
    check(g, cpu, symbolic=False, strided=True)


@pytest.mark.parametrize("dtype", [float16, bfloat16], **names)
def test_one_rounding_where_none_is_asked_for_each(cpu, dtype):
    shape = (9, 1500)
    arrays = [draw(s, dtype) for s in (shape, shape[-1:], shape[-1:])]
    narrow, wide = Group(), Group()
    for g, type_ in ((narrow, dtype), (wide, float32)):
        x, w, b = (g.input(a.astype(type_)) for a in arrays)
        g.output(gelu_of_linear(g, x, w, b), softmax(g, x))
    expected = [cpu.run("astype", y, out=dtype, attrs=(dtype,)) for y in wide.eager(cpu)]
    got = narrow.run(cpu, TYPED)
    assert_equal_bits(got, expected)
    assert any((a.view("u2") != b.view("u2")).any() for a, b in zip(got, narrow.eager(cpu), strict=True))


@pytest.mark.parametrize("flags", [TYPED, EACH])
def test_astype_rounds_always(cpu, flags):
    g = Group()
    x = g.input(draw((3, 700), float32))
    half = g.map("astype", x, dtype=bfloat16, attrs=(bfloat16,))
    g.output(g.map("astype", half, dtype=float32, attrs=(np.dtype(float32),)))
    check(g, cpu, flags)


def test_results_of_rows(cpu):
    for keepdims in (True, False):
        for shape in ((11, 1024), (4, 5, 70), (33, 2000), (2000, 3), (50,)):
            g = Group()
            x, bias = (
                g.input(draw(shape, float32)),
                g.input(draw((*shape[:-1], 1)[: len(shape) - 1 + keepdims], float32)),
            )
            s = g.reduce("sum", g.map("exp", g.map("minimum", x, g.constant(np.float32(3)))), keepdims)
            g.output(
                g.map("add", g.map("log", s), bias), g.reduce("max", x, keepdims), g.reduce("min", x, not keepdims)
            )
            check(g, cpu)
            check(g, cpu, strided=True)


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min", "any", "all", "mean"])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, BOOL], **names)
def test_reductions(cpu, op, dtype):
    if (dtype == BOOL and op in ("sum", "prod")) or (dtype not in FLOATS and op == "mean"):
        return
    for shape in ((5, 1000), (5, 2500), (40, 33), (17, 10000), (6, 0)):
        if shape[-1] == 0 and op in ("max", "min"):
            continue
        g = Group()
        x = g.input(draw(shape, dtype))
        y = g.map("maximum", x, x)
        g.output(g.reduce(op, y), y)
        check(g, cpu)


def test_reductions_that_kernels_join_in_another_order_are_refused(cpu):
    def group(x: np.ndarray) -> Group:
        g = Group()
        g.output(g.reduce("sum", g.input(x)), g.map("exp", g.input(x)))
        return g

    with pytest.raises(KernelError, match="few rows of many terms"):
        group(draw((3, 50000), float32)).run(cpu)
    check(group(draw((16, 9000), float32)), cpu)
    with pytest.raises(KernelError, match="not contiguous"):
        group(draw((65, 8), float32).T).run(cpu, EACH)
    check(group(draw((8, 130), float32)[:, ::2]), cpu)


# ---- totals of columns -----------------------------------------------------------------------------------------

TOTALS = [(5, 1000), (1000, 5), (40, 33), (3, 17, 64), (16, 1025), (17, 3000), (300, 500), (2000, 200), (40, 5000)]


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min", "any", "all", "mean"])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, BOOL], **names)
def test_totals_of_columns(cpu, op, dtype):
    if (dtype == BOOL and op in ("sum", "prod")) or (dtype not in FLOATS and op == "mean"):
        return
    for i, shape in enumerate(TOTALS):
        g = Group()
        x, w = g.input(draw(shape, dtype)), g.input(draw(shape[-1:], dtype))
        y = g.map("maximum", x, w)
        g.output(g.reduce(op, y, i % 2 > 0, leading=True), g.reduce("max", x, leading=True), y)
        check(g, cpu)
        if i % 3 == 0:
            check(g, cpu, symbolic=False, strided=True)


def test_totals_with_values_of_rows_and_threads(cpu):
    g = Group()
    x, w, r = (g.input(draw(s, float32)) for s in ((700, 300), (300,), (700, 1)))
    d = g.map("multiply", g.map("subtract", x, g.map("exp", r)), w)
    y = g.map("gelu", d, attrs=("none",))
    g.output(g.reduce("sum", d, False, leading=True), g.reduce("mean", y, leading=True))
    threads = cpu.threads
    try:
        for cpu.threads in (1, 2, 7):
            check(g, cpu)
    finally:
        cpu.threads = threads


def test_totals_that_kernels_join_in_another_order_are_refused(cpu):
    def group(x: np.ndarray) -> Group:
        g = Group()
        x = g.input(x)
        g.output(g.reduce("sum", x, leading=True), g.map("exp", x))
        return g

    check(group(draw((30, 20, 10), float32)), cpu)
    for x in (draw((20, 30, 10), float32).transpose(1, 0, 2), draw((30, 20), float32)[:, ::2]):
        with pytest.raises(KernelError, match="strided input"):
            group(x).run(cpu, EACH)
    for shape in ((0, 5), (9, 0)):
        g = Group()
        x = g.map("exp", g.input(draw(shape, float32)))
        g.output(g.reduce("sum", x, leading=True), x)
        with pytest.raises(KernelError, match="less than two columns, or of no rows"):
            g.run(cpu, EACH)


# ---- random groups ---------------------------------------------------------------------------------------------

UNARY = {
    "f": "abs ceil cos erf exp expm1 floor log1p negative reciprocal relu round sigmoid sign silu sqrt tanh trunc",
    "i": "abs bitwise_invert negative relu sign square",
    "u": "bitwise_invert relu square",
    "b": "logical_not",
}
BINARY = {
    "f": "add divide floor_divide maximum minimum multiply pow remainder subtract",
    "i": "add bitwise_and bitwise_or bitwise_xor maximum minimum multiply subtract bitwise_left_shift",
    "u": "add bitwise_and bitwise_xor bitwise_right_shift maximum minimum multiply subtract",
    "b": "logical_and logical_or logical_xor",
}
COMPARE = "equal not_equal less less_equal greater greater_equal"


class RandomGroup(Group):
    """A group of random nodes over one index space; broadcast and strided operands, one dtype and bool."""

    def __init__(self, seed: int):
        super().__init__()
        self.random = np.random.default_rng(seed)
        self.dtype = np.dtype(self.pick([float32, float32, float64, float16, bfloat16, *INTEGERS]))
        self.kind = "f" if self.dtype in FLOATS else self.dtype.kind
        axes = self.random.integers(1, 5)
        last = self.pick([1, 2, 3, 7, 16, 63, 64, 65, 255, 511, 512, 513, 1023, 1024, 1025, 2047, 3000, 9001])
        outer = [int(self.pick([1, 2, 3, 5, 8])) for _ in range(axes - 1)]
        self.shape = (*outer, int(last))
        self.pool = [self.operand() for _ in range(self.random.integers(1, 4))]
        self.masks: list[Value] = []
        for _ in range(self.random.integers(2, 15)):
            self.add()
        made = [n[2] for n in self.nodes]
        self.output(made[-1], *(v for v in made[:-1] if self.random.random() < 0.2))

    def pick(self, choices):
        return choices[self.random.integers(len(choices))]

    def operand(self, shape=None) -> Value:
        shape = shape or self.shape
        how = self.random.integers(6)
        if how == 1:
            shape = tuple(1 if self.random.random() < 0.5 else n for n in shape)
        if how == 2:
            shape = shape[self.random.integers(len(shape) + 1) :]
        if how == 3:  # reversed axes
            return self.input(draw(shape[::-1], self.dtype, self.random).transpose(range(len(shape))[::-1]))
        if how == 4:  # gaps
            return self.input(draw((*shape[:-1], 3 * shape[-1]), self.dtype, self.random)[..., ::3])
        x = draw(shape, self.dtype, self.random)
        if not shape and self.random.random() < 0.5:
            return self.constant(x)
        return self.input(x, host_scalar=not shape)

    def operands(self, n: int) -> list[Value]:
        """At least one of the whole index space, the others values made before or new ones."""
        found = [v for v in self.pool if v.shape == self.shape]
        chosen = [self.pick(found) if found else self.input(draw(self.shape, self.dtype, self.random))]
        while len(chosen) < n:
            chosen.append(self.pick(self.pool) if self.random.random() < 0.7 else self.operand())
        self.random.shuffle(chosen)
        return chosen

    def add(self) -> None:
        choice = self.random.random()
        rows = [v for v in self.pool if v.shape == (*self.shape[:-1], 1)]
        if choice < 0.15 and self.shape[-1] != 1:
            ops = ["sum", "max", "min"] if self.dtype != BOOL else ["max"]
            self.pool.append(self.reduce(self.pick(ops), self.operands(1)[0]))
        elif choice < 0.25 and rows:
            self.pool.append(self.map(self.pick(UNARY[self.kind].split()), self.pick(rows)))
        elif choice < 0.35:
            self.masks.append(self.map(self.pick(COMPARE.split()), *self.operands(2), dtype=BOOL))
        elif choice < 0.45 and self.masks:
            self.pool.append(self.map("where", self.pick(self.masks), *self.operands(2)))
        elif choice < 0.65:
            self.pool.append(self.map(self.pick(UNARY[self.kind].split()), *self.operands(1)))
        elif choice < 0.7:
            x, low, high = self.operands(3)
            absent = self.random.integers(3)
            low, high = (None if absent == 1 else low), (None if absent == 2 else high)
            if x.shape == self.shape:
                self.pool.append(self.map("clip", x, low, high, dtype=self.dtype))
        else:
            self.pool.append(self.map(self.pick(BINARY[self.kind].split()), *self.operands(2)))


@pytest.mark.parametrize("block", range(10))
def test_random_groups(cpu, block):
    served = 0
    for seed in range(block * 30, block * 30 + 30):
        g = RandomGroup(seed)
        print("seed", seed, g.shape, g.dtype, [n[0] for n in g.nodes])
        try:
            got = g.run(cpu, EACH, symbolic=seed % 3 > 0, strided=seed % 4 == 0)
        except KernelError as e:
            assert "few rows" in str(e) or "contiguous" in str(e)
            continue
        served += 1
        assert_equal_bits(got, g.eager(cpu))
    assert served >= 25


# ---- threads ---------------------------------------------------------------------------------------------------


def test_bits_do_not_depend_on_threads(cpu):
    g = Group()
    x, w, b = (g.input(draw(s, float32)) for s in ((64, 3000), (3000,), (3000,)))
    g.output(layer_norm(g, x, w, b), gelu_of_linear(g, x, w, b))
    threads, results = cpu.threads, []
    try:
        for cpu.threads in (1, 2, 7):
            results.append(g.run(cpu))
    finally:
        cpu.threads = threads
    assert_equal_bits(results[0], results[1])
    assert_equal_bits(results[0], results[2])


def test_one_executable_runs_on_several_threads(cpu):
    g = Group()
    x = g.input(draw((20, 100), float32))
    g.output(softmax(g, x))
    others = [draw((20, 100), float32) for _ in range(8)]
    expected = []
    for other in others:
        g.given[x.index] = other
        expected.append(g.eager(cpu))
    wrong = []

    def work(k: int) -> None:
        for i in range(40):
            j = (i + k) % len(others)
            try:
                assert_equal_bits(exe.run([others[j]]), expected[j])
            except AssertionError as e:
                wrong.append(e)

    with g.compile(cpu, EACH) as exe:
        workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in workers:
            t.start()
        for t in workers:
            t.join()
    assert not wrong, wrong[0]


# ---- what is claimed -------------------------------------------------------------------------------------------


def test_claims(cpu):
    g = Group()
    x, c = g.input(draw((4, 9), float32)), g.input(np.ones((4, 9), np.complex64))
    y = g.map("exp", g.map("square", x))
    z = g.map("equal", c, c, dtype=BOOL)
    s = g.map("sort", y, attrs=(-1, False, True))
    g.output(y, z, s)
    claims = g.claims(cpu)
    assert [k.group for k in claims] == [1, 1, 0, 0]
    assert claims[1].gain_ns > 0 and claims[1].reason is None
    assert claims[2].reason and b"no loop" in claims[3].reason


def test_constant_arrays_are_refused(cpu):
    g = Group()
    g.output(g.map("add", g.input(draw((4, 9), float32)), g.constant(draw((9,), float32))))
    with pytest.raises(KernelError, match="constant"):
        g.run(cpu)
