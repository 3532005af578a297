"""How ops are declared, whether those of the schema are valid, and the generated files."""

from __future__ import annotations

import ast
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from numpy_tracer import Machine, Traced, dt, oracle, registry, schema

Tensor, Mask, Index, Raw, Ints, DType, Scalar = (
    getattr(schema, name) for name in ("Tensor", "Mask", "Index", "Raw", "Ints", "DType", "Scalar")
)
declare = sys.modules[f"{schema.__name__}.declare"]
rules = __import__(f"{schema.__name__}.rules", fromlist=["rules"])
samples = sys.modules[f"{schema.__name__}.samples"]
FOLDER = Path(__file__).resolve().parents[2] / "core" / "schema"
BUILTIN = [o for o in registry.values() if o.__module__.startswith(schema.__name__ + ".ops.")]
builtin = pytest.mark.parametrize("op", [pytest.param(o, id=o.name) for o in BUILTIN])

MUST = """
copy astype full iota take scatter where add subtract multiply divide quotient maximum minimum equal less
bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift floor sqrt exp log sin sum max matmul
""".split()
EXTENDED = """
expm1 log1p tanh cos erf erfc gelu pow atan2 remainder min prod mean any all argmax argmin cumulative_sum
cumulative_prod sort argsort top_k take_along_axis softmax log_softmax layer_norm rms_norm linear
scaled_dot_product_attention scaled_dot_product_attention_with_logsumexp conv2d max_pool2d avg_pool2d random_bits
rotary_embedding quantize dequantize matmul_integer concat stack embedding dynamic_slice dynamic_update_slice
group_norm batch_norm_train dropout gelu_grad silu_grad softmax_grad log_softmax_grad layer_norm_grad rms_norm_grad
batch_norm_train_grad cross_entropy_grad conv_grad_input conv_grad_weight max_pool_grad avg_pool_grad
scaled_dot_product_attention_grad
""".split()


@pytest.fixture
def op(monkeypatch):
    """The decorator; the test's declarations are removed afterwards."""
    monkeypatch.setattr(declare, "registry", dict(registry))
    return schema.op


# ---- declaring ---------------------------------------------------------------------------------------------------


def test_a_declaration_describes_each_parameter(op):
    @op(shape="broadcast", dtype="promote", tol=3, space="nn", name="acme.swirl", version=2, since={"turns": 2})
    def swirl(
        x: Tensor, keep: Mask, at: Index, bits: Raw, extra: Tensor | None = None, /, size: Ints = 1, *,
        scale: float | None = None, turns: int = 2, fast: bool = True, mode: str = "in", fill: Scalar = 0,
        dtype: DType | None = None,
    ) -> Tensor:  # fmt: skip
        """Turns x.

        More of it.
        """
        return x

    kinds = {p.name: p.kind for p in swirl.params}
    assert " ".join(f"{name}:{kind}" for name, kind in kinds.items()) == (
        "x:value keep:mask at:index bits:raw extra:value size:i64s scale:f64 turns:i64 fast:boolean mode:str "
        "fill:scalar dtype:dtype"
    )
    by_name = {p.name: p for p in swirl.params}
    assert [p.name for p in swirl.params if p.optional] == ["extra", "scale", "dtype"]
    assert by_name["extra"].positional_only and not by_name["size"].positional_only
    assert not by_name["size"].keyword_only and by_name["scale"].keyword_only
    assert by_name["turns"].default == 2 and by_name["turns"].since == 2 and by_name["size"].since == 1
    assert by_name["x"].default is declare.REQUIRED
    assert swirl.spec[:5] == ("acme.swirl", 2, "nn", "broadcast", "promote")
    assert (swirl.spec.doc, swirl.spec.tol, swirl.name) == ("Turns x.", 3.0, "acme.swirl")
    assert [p.name for p in swirl.operands] == ["x", "keep", "at", "bits", "extra"]
    assert declare.registry["acme.swirl"] is swirl and "acme.swirl" not in registry


def test_annotations_may_be_objects(op):
    def joined(parts, axis=None):
        """Joins."""
        return parts

    joined.__annotations__ = {"parts": Sequence[Tensor], "axis": int | None}
    params = op(shape="concat", dtype="promote")(joined).params
    assert [(p.kind, p.variadic, p.optional) for p in params] == [("value", True, False), ("i64", False, True)]


def test_a_decomposition_needs_more_than_a_docstring(op):
    @op(shape="same", dtype="same", tier="must")
    def primitive(x: Tensor) -> Tensor:
        """Copies x."""

    @op(shape="same", dtype="same")
    def composite(x: Tensor) -> Tensor:
        """Copies x."""
        return x

    assert primitive.decomposition is None and not primitive.spec.has_decomposition and primitive.spec.must
    assert composite.decomposition and composite.spec.has_decomposition


def _no_annotation(x): "Doc."  # fmt: skip


def _unknown(x: list): "Doc."  # fmt: skip


def _star(*x: Tensor): "Doc."  # fmt: skip


def _late(x: Sequence[Tensor], y: Tensor): "Doc."  # fmt: skip


def _optional(x: Tensor | None): "Doc."  # fmt: skip


def _operand_default(x: Tensor = 1): "Doc."  # fmt: skip


def _none(x: Tensor, n: int = None): "Doc."  # fmt: skip # noqa: RUF013


def _dtype_default(x: Tensor, d: DType = dt.int8): "Doc."  # fmt: skip


def _no_doc(x: Tensor): pass  # fmt: skip


def add(x: Tensor): "Doc."  # fmt: skip


@pytest.mark.parametrize(
    ("fn", "error", "message"),
    [
        (_no_annotation, TypeError, "no annotation"),
        (_unknown, TypeError, "x has no kind: expected one of Tensor"),
        (_star, TypeError, "Sequence"),
        (_late, TypeError, "only the last operand"),
        (_optional, TypeError, "Tensor | None = None"),
        (_operand_default, TypeError, "without a default"),
        (_none, TypeError, "needs `| None`"),
        (_dtype_default, TypeError, "default of a DType"),
        (_no_doc, ValueError, "docstring"),
        (add, ValueError, "declared twice"),
    ],
)
def test_unsound_declarations(op, fn, error, message):
    with pytest.raises(error, match=message.replace("|", r"\|")):
        op(shape="same", dtype="same", tier="must")(fn)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tier": "should"}, "tier: expected 'must'"),
        ({"traits": ("sets",)}, "traits: expected some of set_slice, converts, identity_on_ints, integer_exponent"),
        ({"half": "float64"}, "half: expected 'float32'"),
        ({}, "has no decomposition"),
    ],
)
def test_unsound_options(op, given, message):
    def swirl(x: Tensor) -> Tensor:
        """Turns."""

    with pytest.raises(ValueError, match=message):
        op(shape="same", dtype="same", **given)(swirl)


def test_a_primitive_has_no_decomposition(op):
    def swirl(x: Tensor) -> Tensor:
        """Turns."""
        return x

    with pytest.raises(ValueError, match="has a decomposition"):
        op(shape="same", dtype="same", tier="must")(swirl)


def test_a_primitive_of_a_newer_version_has_a_decomposition_for_its_new_attributes(op):
    @op(shape="same", dtype="same", tier="must", version=2, since={"turns": 2})
    def swirl(x: Tensor, turns: int = 0) -> Tensor:
        """Turns."""
        return x

    assert swirl.spec.must and swirl.spec.has_decomposition
    with pytest.raises(schema.Unsupported, match="needs a kernel"):
        registry["scatter"].trace(Recorder(), 1, 2, 3)


def test_an_op_of_a_test_runs_over_the_others(op):
    @op(shape="broadcast", dtype="float", reference=lambda x, y, k: (x - y) * k)
    def drift(x: Tensor, y: Tensor, k: float = 2.0) -> Tensor:
        """(x - y) * k."""
        return (x - y) * k

    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(3, np.float32)
    np.testing.assert_array_equal(Machine().run(drift, x, y, k=3.0), drift.expected(x, y, k=3.0))
    assert "mismatch" in {s.id for s in drift.cases()}


# ---- calling -----------------------------------------------------------------------------------------------------


class Recorder:
    def __init__(self):
        self.calls = []

    def __dovetail_op__(self, op, *args, **kwargs):
        self.calls.append((op.name, args, kwargs))
        return self


def test_a_call_goes_to_its_first_tracer():
    a, b = Recorder(), Recorder()
    registry["add"](a, b)
    registry["add"](1, b)
    registry["clip"](1, min=a)
    registry["concat"]([1, b], axis=1)
    assert a.calls == [("add", (a, b), {}), ("clip", (1,), {"min": a})]
    assert b.calls == [("add", (1, b), {}), ("concat", ([1, b],), {"axis": 1})]


def test_an_op_without_tracers_goes_to_the_recorder_of_the_decomposition():
    outer, inner = Recorder(), Recorder()

    def function():
        schema.recorded(inner, registry["iota"], 3, dt.int64)
        registry["zeros"].trace(inner, (2,))
        registry["full"]((), 1)

    schema.recorded(outer, function)
    assert declare.active_recorder() is None
    assert [c[0] for c in inner.calls] == ["iota", "full"] and [c[0] for c in outer.calls] == ["full"]


class Interrupted(threading.local):
    """The state of the module, where Ctrl-C comes just after it was set."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if value is not None:
            signal.raise_signal(signal.SIGINT)


def test_ctrl_c_leaves_no_recorder_behind(monkeypatch):
    monkeypatch.setattr(declare, "_local", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        schema.recorded(Recorder(), lambda: None)
    assert declare.active_recorder() is None


def test_a_call_that_nothing_can_run():
    with pytest.raises((TypeError, ValueError)):
        registry["add"]("a", "b")
    with pytest.raises(schema.Unsupported, match="needs a kernel"):
        registry["add"].trace(Recorder(), 1, 2)


def test_binding():
    bind = registry["sum"].bind
    assert bind(1, axis=2) == {"x": 1, "axis": 2, "dtype": None, "keepdims": False}
    for args, kwargs, message in (
        ((), {}, "x is missing"),
        ((1, 2), {}, "too many"),
        ((1,), {"x": 1}, "given twice"),
        ((1,), {"axes": 1}, "axes= is unknown"),
    ):
        with pytest.raises(TypeError, match=message):
            bind(*args, **kwargs)


# ---- the schema --------------------------------------------------------------------------------------------------


def test_the_inventory():
    assert {o.name for o in BUILTIN if o.tier == "must"} == set(MUST) and len(MUST) == 29
    assert {o.name for o in BUILTIN if o.tier == "extended"} == set(EXTENDED)
    assert 120 <= len(BUILTIN) <= 300


@builtin
def test_an_op_is_sound(op):
    spec = op.spec
    assert spec.shape in rules.SHAPE and spec.dtype in rules.DTYPE
    assert op.reference is not None or spec.shape == "control", "it has no oracle"
    assert spec.doc.endswith((".", "?")) and len(spec.doc) <= 120, spec.doc
    assert op.dtypes and set(op.dtypes) <= set(dt.ALL)
    assert len(op.operands) <= 8 and len(op.attributes) <= 8 and 1 <= spec.n_out <= 4
    assert spec.space in ("", "nn", "linalg", "random")
    assert spec.tol >= 0
    if op.tier == "extended":
        assert op.decomposition, "a device may lack the kernel"
    assert spec.name.isidentifier() and spec.name == spec.name.lower()


@builtin
def test_samples_are_sound(op):
    cases = list(op.cases())
    if op.spec.shape != "control":  # test_control.py runs those: they take programs
        assert any(s.error is None for s in cases), "it has no sample that works"
    names = [s.id for s in cases]
    assert len(set(names)) == len(names), "two samples have one id"
    for s in cases:
        given = op.bind(*s.args, **s.kwargs)  # each can be called as it is
        assert s.error is None or issubclass(s.error, (ValueError, TypeError, IndexError))
        d = next(d for d in op.dtypes if s.dtypes is None or d in s.dtypes)
        first, again = (s.make(np.random.default_rng(5), d) for _ in range(2))
        assert repr(first) == repr(again), "a seed gives one set of values"
        assert all(np.isscalar(v) or v is not samples.CASE for v in s.make(np.random.default_rng(0), d)[0])
        assert set(given) == {p.name for p in op.params}


def test_draws():
    rng = np.random.default_rng(6)
    for d in dt.NOT_COMPLEX:
        x = samples.draw(400, low=None).make(rng, d)
        assert x.dtype == d.numpy and x.shape == (400,)
        if d.kind == "f":
            wide = x.astype(np.float64)
            assert np.isnan(wide).any() and np.isinf(wide).any() and (wide == d.max).any()
        elif d.kind in "iu":
            assert x.min() == d.min and x.max() == d.max
        y = samples.draw(50, low=-3, high=5).make(rng, d)
        assert y.astype(float).min() >= -3 and y.astype(float).max() <= 5
    assert samples.draw(30, distinct=True).make(rng, dt.int8).size == len(
        set(samples.draw(30, distinct=True).make(rng, dt.int8).tolist())
    )
    index = samples.indices(1000, size=3).make(rng, dt.float32)
    assert index.dtype == np.int64 and set(index.tolist()) == {-3, -2, -1, 0, 1, 2}
    assert samples.mask(9).make(rng, dt.float32).dtype == bool
    assert samples.given([1, 2]).make(rng, dt.uint8).tolist() == [1, 2]


def test_dtypes():
    assert len(dt.ALL) == 25 and dt.by_name["f32"] is dt.by_name["float32"] is dt.float32
    for d in (*dt.FLOAT8, *dt.FLOATS, *dt.FLOAT8_STORED, dt.float4_e2m1fn):
        info = np.finfo(d.numpy) if d not in dt.FOREIGN else __import__("ml_dtypes").finfo(d.numpy)
        got = (d.max, d.tiny, d.eps, d.mant)
        assert got == (float(info.max), float(info.smallest_normal), float(info.eps), info.nmant)
    for d in (*dt.INTEGERS, dt.int4, dt.int2, dt.uint4, dt.uint2):
        info = np.iinfo(d.numpy) if d not in dt.FOREIGN else __import__("ml_dtypes").iinfo(d.numpy)
        assert (d.min, d.max) == (info.min, info.max)
    assert all(dt.of(np.zeros(1, d.numpy)) is d and d.itemsize == d.numpy.itemsize for d in dt.ALL)


def test_oracles_at_the_edges():
    zero, half = np.array([-0.0, -np.inf], np.float32), np.array([0.5], np.float32)
    roots = oracle.expected(registry["pow"], (zero, half), {})  # C99's, not those of the square root
    assert roots.tolist() == [0.0, np.inf] and not np.signbit(roots).any()
    assert oracle.expected(registry["pow"], (np.array([-3], np.int8), np.array([5], np.int8)), {}) == -243 + 256
    signalling = np.array([0x7CEB], np.int16)
    assert oracle.expected(registry["bitcast"], (signalling.view(np.float16), dt.int16), {}) == signalling
    small, tiny = np.full((1, 400), 2.0**-100, np.float32), np.full((400, 1), 2.0**-40, np.float32)
    units = oracle.scale(registry["matmul"], (small, tiny), {}) / dt.float32.tiny
    assert 9 < units < 11  # 400 products, each rounded to a multiple of the smallest subnormal number
    assert oracle.scale(registry["matmul"], (small, 0 * tiny), {}) == 0


def test_the_oracle_gets_the_ops_operands():
    hypot = registry["hypot"]
    x = np.array([1, 2], np.float16)
    given = {"x1": x, "x2": 0.1}
    assert oracle.computing(hypot, given) is dt.float16
    assert oracle.expected(hypot, (x, 0.1), {}).dtype == np.float64
    assert oracle.expected(registry["nextafter"], (x, x + x), {})[0] == 1 + 2.0**-10
    zero = np.array([0.0, -0.0], np.float16)
    assert np.signbit(oracle.expected(registry["nextafter"], (zero, zero[::-1]), {})).tolist() == [True, False]
    assert oracle.expected(registry["add"], (np.array([127], np.int8), np.array([1], np.int8)), {}) == -128
    sent = oracle.call(lambda x1, x2: x2, hypot, (x, 0.1), {}, None)
    assert sent == np.float16(0.1), "Python numbers are rounded to the dtype of the arrays"


# ---- import ------------------------------------------------------------------------------------------------------


def test_importing_the_schema_is_quick_and_needs_no_numpy():
    program = """
import importlib.util, sys, time
start = time.process_time()
spec = importlib.util.spec_from_file_location("dovetail_schema", sys.argv[1])
module = sys.modules["dovetail_schema"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
assert "numpy" not in sys.modules and "dovetail" not in sys.modules
print(time.process_time() - start)
"""
    runs = [
        float(
            subprocess.run(
                [sys.executable, "-c", program, FOLDER / "__init__.py"], check=True, capture_output=True
            ).stdout
        )
        for _ in range(3)
    ]
    assert min(runs) < 0.3  # CPU seconds; 0.02 where it was compiled before


# ---- generated ---------------------------------------------------------------------------------------------------


def generate(*args):
    return subprocess.run(
        [sys.executable, FOLDER / "generate.py", *args], capture_output=True, text=True, cwd=FOLDER.parents[1]
    )


def test_what_is_generated_is_current():
    done = generate("--check")
    assert done.returncode == 0, done.stdout[:2000] + done.stderr


def test_a_stale_file_is_reported(tmp_path):
    assert generate("--out", tmp_path).returncode == 0
    assert generate("--check", "--out", tmp_path).returncode == 0
    path = tmp_path / "ops.inc"
    path.write_text(path.read_text().replace('"add", 1', '"add", 2'))
    done = generate("--check", "--out", tmp_path)
    assert done.returncode == 1 and '-{"add", 2' in done.stdout and "stale" in done.stderr
    assert path.read_text() != (FOLDER.parent / "generated" / "ops.inc").read_text(), "--check writes nothing"


def test_an_installed_generator_writes_nothing(tmp_path):
    """`python -m dovetail.schema.generate` must not silently leave a folder in site-packages."""
    shutil.copytree(FOLDER, tmp_path / "package" / "schema")
    command = [sys.executable, "-B", tmp_path / "package" / "schema" / "generate.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "there is no " in done.stderr and "core/schema/generate.py" in done.stderr
    assert [path.name for path in (tmp_path / "package").iterdir()] == ["schema"]


def test_stubs_have_the_signatures_of_the_declarations():
    for name, space in (("_ops.pyi", ""), ("nn.pyi", "nn"), ("linalg.pyi", "linalg")):
        tree = ast.parse((FOLDER.parent / "generated" / name).read_text())
        functions = {f.name: f for f in tree.body if isinstance(f, ast.FunctionDef)}
        written = __import__(f"{schema.__name__}.generate", fromlist=["generate"]).WRITTEN.get(space, ())
        imported = {n.name for node in tree.body if isinstance(node, ast.ImportFrom) for n in node.names}
        public = {
            o.name: o
            for o in BUILTIN
            if o.spec.space == space and not o.spec.private and o.name not in {*written, *imported}
        }
        assert functions.keys() == public.keys()
        for o in public.values():
            args = functions[o.name].args
            assert [a.arg for a in args.posonlyargs] == [p.name for p in o.params if p.positional_only]
            keywords = [p.name for p in o.params if p.keyword_only]
            assert [a.arg for a in args.kwonlyargs] == keywords + ([] if o.operands else ["device"])


def test_every_op_is_in_the_reference_and_in_the_registrations():
    reference = (FOLDER.parent / "generated" / "ops.md").read_text()
    registrations = (FOLDER.parent / "generated" / "ops.inc").read_text()
    for o in BUILTIN:
        assert f"### {o.name}(" in reference and f'{{"{o.name}", ' in registrations


def test_a_tracer_has_the_operators():
    x = Traced(Machine(), np.array([5, 6], np.int32))
    for got, want in (
        (x + 1, [6, 7]), (1 + x, [6, 7]), (x - 1, [4, 5]), (7 - x, [2, 1]), (x * x, [25, 36]), (x // 4, [1, 1]),
        (x % 4, [1, 2]), (x**2, [25, 36]), (-x, [-5, -6]), (~x, [-6, -7]), (x & 4, [4, 4]), (x | 8, [13, 14]),
        (x ^ 1, [4, 7]), (x << 1, [10, 12]), (x >> 1, [2, 3]), (x < 6, [True, False]), (x <= 5, [True, False]),
        (x > 5, [False, True]), (x >= 6, [False, True]), (x == 5, [True, False]), (x != 5, [False, True]),
        (x / 2, [2.5, 3.0]), (x[1:], [6]), (x[None, 0], [5]), (x @ x, 61),
    ):  # fmt: skip
        assert got.v.tolist() == want
