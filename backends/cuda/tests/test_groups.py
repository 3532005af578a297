"""Groups as kernels of text. The emulated driver runs them by a fake NVRTC, behind which is a C++ compiler: results
have the bits of the same nodes one by one. The real NVRTC compiles the same texts to machine code, which nothing
here can run.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import nvrtc
import pytest
from cuda_programs import EMULATED, NVIDIA, ON_GPU, PROGRAMS, needs_gpu, python, run

HELPERS = Path(__file__).resolve().parents[3] / "tests/unit"
ORDERS = ["forward", "backward", "shuffled:1"]
GROUPS = EMULATED | {"DOVETAIL_CUDA_LIBS": str(PROGRAMS / "fake/nvrtc")}
PRELUDE = f"""
import os, random, sys, warnings
sys.path.insert(0, {str(HELPERS)!r})
import dovetail as dt, numpy as np
from random_groups import EXACT, SIZES, function, operands, run
from trace_events import names

dt.set_default_device("cuda")

def host(x):
    return np.asarray(dt.astype(x, dt.float64))
def same(got, expected, what=None):
    assert got.dtype == expected.dtype, what
    np.testing.assert_array_equal(host(got), host(expected), err_msg=str(what))
def made(*shape, seed=0, dtype="float32"):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return dt.astype(dt.asarray(values), dtype)
def launches(f, *args):
    with dt.profile() as p:
        f(*args)
    return names(p.events, "kernel")
def texts():
    return sum(name.endswith(".cu") for name in os.listdir(os.environ["FAKE_NVRTC_LOG"]))
"""


def program(code: str, **variables: str) -> str:
    """On the emulated driver, unless the variables say otherwise."""
    return python(PRELUDE + code, **GROUPS | variables)


@pytest.fixture
def variables(machine: dict[str, str]) -> dict[str, str]:
    """On a GPU, if there is one, the real NVRTC."""
    return GROUPS if machine == EMULATED else machine


@pytest.fixture
def log(tmp_path: Path) -> dict[str, str]:
    """The variable that makes the fake NVRTC keep the texts."""
    return {"FAKE_NVRTC_LOG": str(tmp_path)}


# ---- results ---------------------------------------------------------------------------------------------------

RANDOM = """
for seed in range(first, first + 5):
    rng = random.Random(seed)
    source = function(rng, EXACT, ["max", "min"])
    dtype = rng.choice(["float32", "float64", "float16", "bfloat16"])
    numerics = "wide" if dtype in ("float32", "float64") else "eager"
    args = operands(rng, "cuda", dtype, *rng.choice(SIZES))
    print(source, dtype, args[0].shape)
    for got, expected in zip(run(source, *args, compile=numerics), run(source, *args, xp=dt), strict=True):
        same(got, expected)
"""
OPS = """
unary = "exp expm1 log log1p exp2 log2 log10 sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
unary += "floor ceil trunc round sign abs negative square reciprocal isnan isinf isfinite logical_not relu sigmoid "
unary += "silu mish selu logsigmoid hardsigmoid hardswish leaky_relu elu softplus gelu erf erfc"
binary = "add subtract multiply divide maximum minimum pow floor_divide remainder hypot logaddexp atan2 copysign "
binary += "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor"
named = lambda name: getattr(dt, name, None) or getattr(dt.nn, name)
calls = [(named(name), 1) for name in unary.split()] + [(named(name), 2) for name in binary.split()]
x = np.linspace(-4, 4, 77).reshape(7, 11)
y = np.roll(x, 5)
y[y == 0] = 1
for dtype in ("float32", "float64"):
    args = [dt.asarray(a.astype(dtype)) for a in (x, y)]
    for first in range(0, len(calls), 23):
        some = calls[first : first + 23]
        f = dt.compile(lambda *args: [op(*args[:count]) for op, count in some])
        # One group, without its first node, which saves nothing there, and with nodes that abs and negative are.
        assert len(launches(f, *args)) <= 4
        for (op, _), got, expected in zip(some, f(*args), f.__wrapped__(*args), strict=True):
            same(got, expected, op)
"""
INTEGERS = """
rng = np.random.default_rng(5)
for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    values = rng.integers(least, most, (2, 7, 40), dtype=dtype, endpoint=True)
    values[0, 0, :4], values[1, 0, :4] = [least, least, 7, most], [most, 0, 0, 3]
    if least < 0:
        values[1, 0, 0] = -1
    x, y = map(dt.asarray, values)

    @dt.compile
    def f(x, y):
        shifts = dt.bitwise_and(y, 7)
        return [
            x + y, x - y, x * y, x // y, x % y, dt.pow(x, shifts), dt.maximum(x, y), dt.sign(x),
            dt.bitwise_left_shift(x, shifts), dt.bitwise_right_shift(x, shifts), dt.abs(x),
            dt.negative(x), x < y, dt.sum(x + y, axis=-1),
            dt.prod(x * y, axis=-1), dt.max(x - y, axis=-1), dt.min(x - y, axis=-1), dt.any(x > y, axis=-1),
        ]
    for i, (got, expected) in enumerate(zip(f(x, y), f.__wrapped__(x, y), strict=True)):
        same(got, expected, (dtype, i))
"""
CONVERSIONS = """
types = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
types += ["float16", "bfloat16", "float32", "float64"]
numbers = np.float64([0, -0.0, 1, -1.5, 2.7, 255.5, -129, 1e5, -7e4, 3e9, 1e-6, 65519, 65520, np.inf, np.nan])
for source in types:
    x = dt.astype(dt.asarray(numbers), source)
    f = dt.compile(lambda x: [dt.astype(x, t) for t in types if t != source])
    for got, expected in zip(f(x), f.__wrapped__(x), strict=True):
        same(got, expected, (source, got.dtype))
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> Path:
    """The folder of the texts of random groups whose results were right, in a folder for each order of threads."""
    folder = tmp_path_factory.mktemp("texts")
    for i, order in enumerate(ORDERS):
        variables = {"FAKE_NVRTC_LOG": str(folder / order), "DOVETAIL_CUDA_EMULATED_ORDER": order}
        program(f"first = {5 * i}\n{RANDOM}", **variables)
    return folder


def test_random_groups_have_the_bits_of_their_nodes(printed):
    """In several orders of threads: without a barrier a group has other results in one of them."""
    assert len(list(printed.glob("*/*.cu"))) >= 15


@needs_gpu
def test_random_groups_on_a_gpu():
    python(f"{PRELUDE}\nfirst = 0\n{RANDOM}", **ON_GPU)


@pytest.mark.parametrize("code", [OPS, INTEGERS, CONVERSIONS], ids=["floats", "integers", "conversions"])
def test_every_op_has_the_bits_of_its_kernel(code, variables):
    python(PRELUDE + code, **variables)


def test_sums_are_near_to_float64(variables):
    """Compositions that are one launch, of halves too: at most as inexact as their nodes one by one."""
    python(
        PRELUDE
        + """
def share(xp, x, w):  # a little different from what the runtime knows as softmax and layer_norm
    e = xp.exp(x * 0.5 - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True) * w
def scaled(xp, x, w):
    d = x - xp.mean(x, axis=-1, keepdims=True)
    return d / (xp.sqrt(xp.mean(d * d, axis=-1, keepdims=True)) + 0.1) * w
for f in (share, scaled):
    for dtype in ("float32", "float16", "bfloat16"):
        compiled = dt.compile(lambda *args: f(dt, *args))
        for rows, columns in ((64, 257), (3, 1000), (5, 33), (1, 33), (4, 1), (0, 7)):
            x, w = dt.permute_dims(made(columns, rows, dtype=dtype), (1, 0)), made(columns, seed=1, dtype=dtype)
            if rows:
                assert len(launches(compiled, x, w)) == 1 < len(launches(f, dt, x, w))
            got, eager, expected = compiled(x, w), f(dt, x, w), f(np, host(x), host(w))
            assert got.shape == expected.shape
            if rows * columns > 1000:  # chance decides about few elements
                errors = [np.abs(host(y) - expected).mean() for y in (got, eager)]
                assert errors[0] <= 1.1 * errors[1], (f, dtype, errors)
""",
        **variables,
    )


# ---- what is compiled, and when --------------------------------------------------------------------------------


def test_a_text_is_compiled_once_for_all_sizes_numbers_and_functions(log):
    program(
        """
f = dt.compile(lambda x, k: dt.exp(x * k) + 2.5)
g = dt.compile(lambda x, k: dt.exp(x * k) + 7.5)
for shape in ((40,), (40,), (6, 7), (3, 4, 5)):
    for k in (0.5, -1.0, float("inf")):
        for h in (f, g):
            same(h(made(*shape), k), h.__wrapped__(made(*shape), k))
assert texts() == 1, texts()
x = dt.permute_dims(made(6, 7), (1, 0))[::2]
same(f(x, 0.5), f.__wrapped__(x, 0.5))
assert texts() == 2  # of two axes, that is
""",
        **log,
    )


def test_groups_are_captured(variables):
    python(
        PRELUDE
        + """
def function(x, w, k):
    for _ in range(3):
        x = dt.exp(dt.tanh(x @ w) * k) - k
    return x
f = dt.compile(function)
x, w = made(5, 8), made(8, 8, seed=1)
for k in (0.5, 0.25):
    for _ in range(8):
        same(f(x, w, k), function(x, w, k))
    assert "captured: 6 launches in one replay" in f.explain(x, w, k), f.explain(x, w, k)
    x[0] = 3.0  # another value in the same place
    same(f(x, w, k), function(x, w, k))
""",
        **variables,
    )


def test_what_does_not_compile_runs_node_by_node(log):
    """With a warning that has the compiler's words."""
    program(
        """
f = dt.compile(lambda x: dt.exp(x) + x * 2.0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    same(f(made(40)), f.__wrapped__(made(40)))
assert "refused: dvt_exp" in str(caught[0].message) and len(caught) == 1, [str(w.message) for w in caught]
assert launches(f, made(40)) == ["exp", "multiply", "add"]
assert "refused: dvt_exp" in f.explain(made(40))
""",
        FAKE_NVRTC_REFUSE="dvt_exp",
        **log,
    )


def test_a_form_that_does_not_compile_runs_node_by_node(log):
    """That of operands which lie in other orders, for example; it is tried once."""
    program(
        """
f = dt.compile(lambda x, y: dt.exp(x) + y)
x, y = made(6, 7), made(6, 7, seed=1)
other = dt.permute_dims(made(7, 6), (1, 0))
same(f(x, y), f.__wrapped__(x, y))
for _ in range(3):
    same(f(other, y), f.__wrapped__(other, y))
assert launches(f, other, y) == ["exp", "add"]
assert launches(f, x, y) == ["exp+add"]
assert texts() == 2, texts()
""",
        FAKE_NVRTC_REFUSE="size[2]",
        **log,
    )


# ---- without NVRTC ---------------------------------------------------------------------------------------------

ALONE = """
f = dt.compile(lambda x: dt.exp(x) + x)
warnings.simplefilter("error")
same(f(made(40)), f.__wrapped__(made(40)))
assert launches(f, made(40)) == ["exp", "add"]
print(f.explain(made(40)))
"""


def test_without_nvrtc_nodes_run_one_by_one(tmp_path):
    """explain() says why; nothing is printed, nothing fails."""
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", tmp_path / "libnvrtc.so.13"]
    subprocess.run(command, input="int nvrtcCreateProgram(void) { return 0; }", text=True, check=True)
    printed = program(ALONE, DOVETAIL_CUDA_LIBS=str(tmp_path))
    assert "one by one: exp: NVRTC is too old: it has no nvrtc" in printed
    assert "pip install -U 'dovetail-cuda[cu13]'" in printed


def test_a_gpu_that_nvrtc_does_not_know(tmp_path):
    printed = program(ALONE, DOVETAIL_CUDA_EMULATED_CAPABILITY="10.0")
    assert "one by one: exp: NVRTC is too old for this GPU: it has no sm_100" in printed


def test_machine_code_is_not_for_the_emulated_driver():
    printed = program(ALONE, DOVETAIL_CUDA_LIBS="")
    assert "one by one: exp: the emulated driver runs no machine code of NVRTC's" in printed


# ---- machine code ----------------------------------------------------------------------------------------------


def options_of(text: str, architecture: str, headers: Path) -> list[str]:
    """Those that the backend gave, for another GPU; NVRTC finds the backend's headers and no others."""
    given = text.splitlines()[0].removeprefix("// ").split()
    return [*(o for o in given if not o.startswith("-arch")), f"-arch={architecture}", f"-I{headers}"]


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
def test_nvrtc_compiles_the_texts(printed, architecture):
    """All of an order as one program, in which each kernel has a name of its own."""
    for folder in printed.iterdir():
        texts = [file.read_text() for file in sorted(folder.glob("*.cu"))]
        joined = "".join(re.sub(r"\b(group\(|dvt_arguments\b)", rf"t{i}_\1", text) for i, text in enumerate(texts))
        code = nvrtc.compile(joined, *options_of(texts[0], architecture, folder / "headers"))
        assert all(b".text.t%d_group" % i in code for i in range(len(texts)))


def test_nvrtc_compiles_every_function(printed):
    """Kept as functions, whether a text calls them or not."""
    folder = printed / ORDERS[0]
    options = options_of(next(folder.glob("*.cu")).read_text(), "sm_80", folder / "headers")
    functions = (folder / "headers/groups/device/functions.cuh").read_text().replace("#pragma once", "")
    code = nvrtc.compile(functions.replace("static __device__", "__device__"), *options, "-rdc=true")
    for name in ("exp_f32", "pow_i8", "gelu_tanh_f64", "convert_u64_bf16", "load_f8e5m2", "isfinite_f64"):
        assert re.search(rf"\.text\.\w*dvt_{name}".encode(), code), name


def test_products_and_sums_are_not_contracted(tmp_path, log):
    program("f = dt.compile(lambda x, y: x * y + y)\nf(made(40), made(40))", **log)
    text = (tmp_path / "0.cu").read_text()
    for architecture in ("sm_80", "sm_90a"):
        cubin = tmp_path / f"{architecture}.cubin"
        cubin.write_bytes(nvrtc.compile(text, *options_of(text, architecture, tmp_path / "headers")))
        instructions = run(NVIDIA / "cu13/bin/cuobjdump", "-sass", cubin).stdout
        assert "FMUL" in instructions and "FADD" in instructions and "FFMA" not in instructions, instructions


# ---- the suite -------------------------------------------------------------------------------------------------


def test_the_suite_of_compiled_functions(conform, variables):
    results = conform("--level", "L3", "-k", "device.compile", **variables)
    assert {case["status"] for case in results["cases"]} == {"pass"}, results["printed"]
