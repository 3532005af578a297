"""Groups as the text of C kernels: dovetail/codegen_source.hpp, on the device of source_compiler.cpp. What text and
host code do together is run here as by a device with a compiler of its own: against the kernels of the simulated
device, which computes with the same functions, against its compiler, which interprets groups, and against NumPy."""

from __future__ import annotations

import ctypes
import math
import random
import shutil
from pathlib import Path

import broken_compilers
import broken_devices
import dovetail as dt
import numpy as np
import pytest
from random_groups import EXACT, SIZES, SMOOTH, function, operands, run
from trace_events import names

SOURCE = Path(__file__).with_name("source_compiler.cpp")


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """The library, with its device."""
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    flags = ("-Wno-cast-function-type", f"-I{SOURCE.parents[2] / 'backends'}")
    path = broken_devices.build(tmp_path_factory, "source_compiler", {SOURCE: ()}, *flags)
    wrapped = broken_compilers.wrapped_beside(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOVETAIL_WRAPPED", str(wrapped))
        device = dt.load_backend(str(path))[0]
    library = ctypes.CDLL(str(path))
    library.text_of_last.restype = ctypes.c_char_p
    library.device, library.path, library.wrapped = device, path, wrapped
    return library


@pytest.fixture
def threads(text):
    """threads(n): blocks have n threads until the test ends."""
    yield text.set_threads
    text.set_threads(1)


def made(text, *shape, seed=0, dtype="float32"):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return dt.astype(dt.asarray(values, device=text.device), dtype)


def host(x):
    return np.asarray(dt.astype(x, dt.float64))


def same(a, b):
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(host(a), host(b))


def launches(f, *args):
    with dt.profile() as p:
        f(*args)
    return names(p.events, "kernel")


# ---- compositions ------------------------------------------------------------------------------------------------


def softmax(xp, x, w, b):
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def layer_norm(xp, x, w, b):
    d = x - xp.mean(x, axis=-1, keepdims=True)
    return d / xp.sqrt(xp.mean(d * d, axis=-1, keepdims=True) + 1e-5) * w + b


def product(xp, x, w, b):  # of which every order has other bits
    return xp.prod(x * w * 0.1 + 1.0, axis=-1)


def gelu_chain(xp, x, w, b):
    y = x * w + b
    return y / (xp.exp(y * -1.702) + 1.0) + x


@pytest.mark.parametrize("f", [softmax, layer_norm, gelu_chain])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_compositions_are_one_launch_and_as_exact_as_eager_calls(text, f, dtype):
    """Of operands with strides, for rows of fewer elements than lanes, and of more by one."""
    compiled, rounds = (dt.compile(lambda *args: f(dt, *args), numerics=n) for n in ("wide", "eager"))
    for rows, columns in [(5, 33), (3, 1000), (1, 33), (4, 1), (1, 1), (0, 7), (64, 257)]:
        args = [made(text, *shape, dtype=dtype) for shape in [(columns, rows), (columns,), (columns,)]]
        args[0] = dt.permute_dims(args[0], (1, 0))
        eager = f(dt, *args)
        same(rounds(*args), eager)
        if rows:
            assert len(launches(compiled, *args)) == 1 < len(launches(f, dt, *args))
        if rows * columns < 1000:  # chance decides about few elements
            continue
        expected = f(np, *map(host, args))
        errors = [np.abs(host(y) - expected).mean() for y in (compiled(*args), eager)]
        assert errors[0] <= 1.1 * errors[1]


@pytest.mark.parametrize("columns", [20, 70, 700])
def test_bits_do_not_depend_on_threads(text, threads, columns):
    """One thread has all lanes of a row, several share them, and more than a row has do several rows."""
    x, w, b = made(text, 5, columns), made(text, columns, seed=1), made(text, columns, seed=2)
    results = []
    for n in (1, 2, 16):
        threads(n)
        compiled = [dt.compile(lambda *args, f=f: f(dt, *args)) for f in (softmax, layer_norm, product)]
        results.append([f(x, w, b) for f in compiled])
    for other in results[1:]:
        for y, expected in zip(other, results[0], strict=True):
            same(y, expected)


def test_long_sums_lose_nothing(text):
    f = dt.compile(lambda x, y: dt.sum(x * y, axis=-1))
    host_x = np.random.default_rng(0).permuted(np.tile(np.float32([1e8, 1.0, -1e8, 1e-3]), (2, 5000)), axis=1)
    x = dt.asarray(host_x, device=text.device)
    np.testing.assert_allclose(host(f(x, dt.ones_like(x))), 5000 * (1 + 1e-3), rtol=1e-4)


def test_rows_that_one_block_would_do_alone_are_not_for_groups(text):
    f = dt.compile(lambda x: dt.sum(dt.exp(x * 0.5), axis=-1))
    x = made(text, 2, 70000)
    assert launches(f, x) == ["multiply", "exp", "sum"]
    same(f(x), f.__wrapped__(x))
    assert launches(f, made(text, 2, 7000)) == ["multiply+exp+sum"]


# ---- shapes ------------------------------------------------------------------------------------------------------


def test_axes_are_merged_and_texts_shared(text):
    """Dense operands have one axis, whatever their rank; a text serves all sizes."""
    f = dt.compile(lambda x, y: dt.exp(x * 0.1) + y)
    x, y = made(text, 3, 4, 5), made(text, 3, 4, 5, seed=1)
    same(f(x, y), f.__wrapped__(x, y))
    dense = text.text_of_last()
    assert b"size[1]" in dense
    x, y = made(text, 2, 7, 5), made(text, 2, 7, 5, seed=1)
    same(f(x, y), f.__wrapped__(x, y))
    assert text.text_of_last() == dense
    x = dt.permute_dims(made(text, 4, 3, 5), (1, 0, 2))  # axes 0 and 1 in another order
    y = made(text, 3, 4, 5)
    same(f(x, y), f.__wrapped__(x, y))
    assert b"size[3]" in text.text_of_last()


def test_elements_by_rows(text, threads):
    """Of rows that are as long as their lanes, longer, shorter, and of operands that are one per row or column."""
    f = dt.compile(lambda x, w, k: dt.exp(x) * k + w)
    for n in (1, 4, 32):
        threads(n)
        for rows, columns in [(4, 9), (3, 8), (9, 33), (5, 520), (40, 3), (6, 1), (2, 50)]:
            w, k = made(text, columns, seed=1), made(text, rows, 1, seed=2)
            dense, turned = made(text, rows, columns), dt.permute_dims(made(text, columns, rows), (1, 0))
            for x in (dense, turned, dt.concat([dense, dense], axis=1)[:, ::2]):
                same(f(x, w, k), f.__wrapped__(x, w, k))
    f = dt.compile(lambda x, w, k: dt.log(x) * k + w)
    f(dt.exp(dense := made(text, 9, 33)), made(text, 33), made(text, 9, 1))
    by_rows = text.text_of_last()
    assert b"+ j]" in by_rows and b"rest" not in by_rows and b"dvt_barrier();" not in by_rows
    f(dt.permute_dims(dense, (1, 0)), made(text, 9), made(text, 33, 1))
    assert b"+ j * a.stride" in text.text_of_last()


def test_broadcasting_and_strides(text):
    @dt.compile
    def f(x, w, r, s):
        return dt.exp(x * w) + r * s, dt.max(x - r, axis=-1), dt.max(x * s, axis=-1, keepdims=True)

    for shape in [(3, 4, 5), (1, 4, 5), (3, 1, 40), (2, 3, 1), (2, 5, 300)]:
        a, b, c = shape
        x = dt.permute_dims(made(text, c, a, b), (1, 2, 0))
        args = x, made(text, b, c, seed=1), made(text, a, b, 1, seed=2), made(text, seed=3)
        for got, expected in zip(f(*args), f.__wrapped__(*args), strict=True):
            same(got, expected)
        if c == 1:
            continue
        sliced = (x[:, ::2, 1:], args[1][::2, 1:], args[2][:, ::2], args[3])
        for got, expected in zip(f(*sliced), f.__wrapped__(*sliced), strict=True):
            same(got, expected)


def test_values_of_rows_are_stored_once(text, threads):
    """In groups with and without reductions."""
    threads(4)
    f = dt.compile(lambda x, r: (x * r, r + 1.0, dt.sqrt(dt.max(x, axis=-1))))
    g = dt.compile(lambda x, r: (x + dt.exp(r), dt.exp(r)))
    x, r = dt.exp(made(text, 6, 50)), made(text, 6, 1)
    for compiled in (f, g):
        for got, expected in zip(compiled(x, r), compiled.__wrapped__(x, r), strict=True):
            same(got, expected)


def test_numbers_and_constants_are_arguments(text):
    f = dt.compile(lambda x, k, n: dt.floor(x * k) + n - 2.5)
    x = made(text, 40)
    f(x, 1.5, 2)
    first = text.text_of_last()
    for k, n in [(0.5, 3), (float("inf"), -1), (float("nan"), 0)]:
        same(f(x, k, n), f.__wrapped__(x, k, n))
    g = dt.compile(lambda x, k, n: dt.floor(x * k) + n - 7.5)
    same(g(x, 2.0, 1), g.__wrapped__(x, 2.0, 1))
    assert text.text_of_last() == first


# ---- ops ---------------------------------------------------------------------------------------------------------

FLOAT_OPS = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "exp2": np.exp2, "log2": np.log2,
    "log10": np.log10, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "round": np.round, "sign": np.sign, "abs": np.abs, "negative": np.negative, "square": np.square,
    "reciprocal": np.reciprocal, "hypot": np.hypot, "logaddexp": np.logaddexp, "atan2": np.arctan2,
    "copysign": np.copysign, "pow": np.power, "floor_divide": np.floor_divide, "remainder": np.remainder,
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "maximum": np.maximum,
    "minimum": np.minimum, "equal": np.equal, "not_equal": np.not_equal, "less": np.less,
    "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "logical_not": np.logical_not, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
}  # fmt: skip
ACTIVATIONS = {
    "relu": lambda x: np.where(x < 0, 0, x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)), "mish": lambda x: x * np.tanh(np.logaddexp(x, 0)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "logsigmoid": lambda x: -np.logaddexp(-x, 0), "hardsigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hardswish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "leaky_relu": lambda x: np.where(x < 0, 0.01 * x, x), "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "softplus": lambda x: np.logaddexp(x, 0),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
}  # fmt: skip
SPECIAL = {"erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc)}


def op_named(name):
    for module in (dt, dt.nn):
        if hasattr(module, name):
            return getattr(module, name)
    raise AssertionError(name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_op_of_floats(text, dtype):
    """In one group with all the others, so that each is printed; results are those of NumPy's float64."""
    known = FLOAT_OPS | ACTIVATIONS | SPECIAL
    x = np.linspace(-4, 4, 77).astype(dtype).reshape(7, 11)
    y = np.roll(x, 5).astype(dtype)
    y[y == 0] = 1
    for first in range(0, len(known), 16):
        ops = list(known)[first : first + 16]
        count = {n: getattr(known[n], "nin", 1) for n in ops}

        @dt.compile
        def f(x, y, ops=ops, count=count):
            return [x + y, *(op_named(n)(*(x, y)[: count[n]]) for n in ops)]

        on_device = [dt.asarray(a, device=text.device) for a in (x, y)]
        assert len(launches(f, *on_device)) == 2  # of the sum, which saves nothing there, and of all the others
        wide = x.astype(np.float64), y.astype(np.float64)
        for name, got in zip(ops, f(*on_device)[1:], strict=True):
            with np.errstate(all="ignore"):
                expected = known[name](*wide[: count[name]])
            if expected.dtype != bool:
                expected = expected.astype(dtype)
            tolerance = 16 * np.finfo(dtype).eps
            np.testing.assert_allclose(np.asarray(got), expected, tolerance, tolerance, err_msg=name)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_every_op_of_integers(text, dtype):
    rng = np.random.default_rng(5)
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    values = rng.integers(least, most, (2, 7, 40), dtype=dtype, endpoint=True)
    values[0, 0, :4], values[1, 0, :4] = [least, least, 7, most], [most, 0, 0, 3]
    if least < 0:
        values[1, 0, 0] = -1
    x, y = (dt.asarray(v, device=text.device) for v in values)

    @dt.compile
    def f(x, y):
        shifts = dt.bitwise_and(y, 7)
        return [
            x + y, x - y, x * y, x // y, x % y, dt.pow(x, shifts), dt.maximum(x, y), dt.minimum(x, y),
            dt.bitwise_xor(dt.bitwise_and(x, y), dt.bitwise_or(x, 5)), dt.bitwise_left_shift(x, shifts),
            dt.bitwise_right_shift(x, shifts), dt.sign(x), dt.abs(x), dt.negative(x), dt.square(x), dt.floor(x),
            dt.clip(x, 3, 90), dt.where(x < y, x, y), x == y, x != y, x <= y, x > y, x >= y,
            dt.sum(x + y, axis=-1), dt.prod(x * y, axis=-1), dt.max(x - y, axis=-1), dt.min(x - y, axis=-1),
            dt.any(x > y, axis=-1), dt.all(x > y, axis=-1), dt.sum(x * y, axis=-1, dtype=x.dtype),
        ]  # fmt: skip

    for i, (got, expected) in enumerate(zip(f(x, y), f.__wrapped__(x, y), strict=True)):
        assert got.dtype == expected.dtype, i
        np.testing.assert_array_equal(np.asarray(got), np.asarray(expected), err_msg=str(i))


def test_conversions(text):
    """Between all types, of numbers that are not exact, beyond the range, and special."""
    types = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
    types += ["float16", "bfloat16", "float32", "float64"]
    numbers = np.float64([0, -0.0, 1, -1.5, 2.7, 255.5, -129, 1e5, -7e4, 3e9, 1e-6, 65519, 65520, np.inf, np.nan])
    numbers = np.concatenate([numbers, np.random.default_rng(2).standard_normal(40) * 1000])
    for source in types:
        x = dt.astype(dt.asarray(numbers, device=text.device), source)

        @dt.compile
        def f(x, source=source):
            return [dt.astype(x, t) for t in types if t != source]

        for got, expected in zip(f(x), f.__wrapped__(x), strict=True):
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(host(got), host(expected), err_msg=f"{source} {got.dtype}")


def test_nan_and_zeros(text):
    special = np.float32([0, -0.0, 1, np.nan, np.inf, -np.inf, -2])
    x, y = (dt.asarray(a, device=text.device) for a in np.meshgrid(special, special))
    f = dt.compile(
        lambda x, y: (
            dt.maximum(x, y), dt.minimum(x, y), dt.clip(x, -1.0, y), dt.max(x * y, axis=-1), dt.min(x + y, axis=-1),
            dt.astype(x * y, dt.bool), dt.any(x * y, axis=-1), dt.all(x * y, axis=-1), dt.nn.relu(x * y),
        )
    )  # fmt: skip
    for got, expected in zip(f(x, y), f.__wrapped__(x, y), strict=True):
        same(got, expected)


# ---- random groups -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_random_groups_have_the_bits_of_the_interpreter(text, threads, seed):
    for i in range(3):
        rng = random.Random(1000 * seed + i)
        source = function(rng, EXACT, ["max"])
        threads(rng.choice([1, 1, 4]))
        dtype, numerics = rng.choice(["float32", "float64", "float16", "bfloat16"]), rng.choice(["wide", "eager"])
        rows, columns = rng.choice(SIZES)
        print(source, dtype, numerics, (rows, columns), sep="\n")
        state = rng.getstate()
        results = []
        for device in (text.device, "sim:0"):
            rng.setstate(state)
            results.append(run(source, *operands(rng, device, dtype, rows, columns), compile=numerics, donate=True))
        for got, expected in zip(*results, strict=True):
            same(got, expected)


@pytest.mark.parametrize("seed", range(8))
def test_random_groups_are_near_to_float64(text, threads, seed):
    for i in range(3):
        rng = random.Random(1000 * seed + i)
        source = function(rng, SMOOTH, ["max", "min", "mean"])
        threads(rng.choice([1, 1, 4]))
        rows, columns = rng.choice(SIZES)
        print(source, (rows, columns), sep="\n")
        args = operands(rng, text.device, "float32", rows, columns)
        expected = run(source, *(host(a) for a in args[:-1]), args[-1])
        for got, exact in zip(run(source, *args, compile="wide"), expected, strict=True):
            np.testing.assert_allclose(host(got), exact, rtol=2e-5, atol=2e-5 * (1 + np.abs(exact).max()))


# ---- conformance -------------------------------------------------------------------------------------------------

CASES = "device.compile[groups? or nn.layer_norm[f32*compiled? or logaddexp[f32*"


def test_the_suite_passes(text, tmp_path, monkeypatch):
    monkeypatch.setenv("DOVETAIL_WRAPPED", str(text.wrapped))
    code, results, printed = broken_devices.conform(
        text.path, tmp_path / "results.json", None, "--level", "L3", "-k", CASES, device="text"
    )
    assert (code, broken_devices.bad_ones(results)) == (0, {}), printed
    assert results["counts"]["pass"] > 20
