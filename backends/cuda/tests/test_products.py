"""Products by cuBLASLt: how row-major matrices are described to it, and which calls our own kernels serve. A fake
cuBLASLt for the emulated driver computes by its manual, and logs each product: rows, columns, terms, and the layout
of both operands.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cuda_programs import EMULATED, PROGRAMS, python

PRELUDE = """
import os
import dovetail as dv, numpy as np
from dovetail import nn

dv.set_default_device("cuda")
rng = np.random.default_rng(0)
log = os.environ["FAKE_CUBLASLT_LOG"]

def draw(*shape, dtype=dv.float32):
    values = rng.integers(-4, 5, (2, *shape)).astype(np.float32)
    if dtype.kind == "complex floating":
        return dv.asarray((values[0] + 1j * values[1]).astype(dtype.name))
    return dv.astype(dv.asarray(values[0]), dtype)
def numbers(x):
    return x.numpy() if x.dtype.kind == "complex floating" else dv.astype(x, dv.float64).numpy()
def expect(got, expected, *lines):
    np.testing.assert_array_equal(numbers(got), expected)
    calls = open(log).read().splitlines()
    assert calls == list(lines), calls
    open(log, "w").close()
def product(x, y, *lines):
    expect(x @ y, numbers(x) @ numbers(y), *lines)

open(log, "w").close()
"""


@pytest.fixture
def program(tmp_path: Path):
    def program(code: str, **variables: str) -> str:
        variables |= EMULATED | {"FAKE_CUBLASLT_LOG": str(tmp_path / "log")}
        return python(PRELUDE + code, **{"DOVETAIL_CUDA_LIBS": str(PROGRAMS / "fake")} | variables)

    return program


def test_matrices_as_they_lie(program):
    program("""
for dtype in dv.float16, dv.bfloat16, dv.float32, dv.float64, dv.complex64, dv.complex128:
    x, y = draw(5, 7, dtype=dtype), draw(7, 3, dtype=dtype)
    product(x, y, "5 3 7 batch=1 nn")
    product(draw(7, 5, dtype=dtype).T, y, "5 3 7 batch=1 tn")
    product(x, draw(3, 7, dtype=dtype).T, "5 3 7 batch=1 nt")
    product(draw(7, 5, dtype=dtype).T, draw(3, 7, dtype=dtype).T, "5 3 7 batch=1 tt")
x, y = draw(9, 20)[:, 4:11], draw(20, 12)[2:9, 4:8]  # parts of larger matrices
product(x, y, "9 4 7 batch=1 nn")
product(draw(1, 7), draw(7, 1), "1 1 7 batch=1 nn")
product(draw(7), draw(7, 3), "1 3 7 batch=1 nn")
product(draw(5, 7), draw(7), "5 1 7 batch=1 nn")
""")


def test_batches(program):
    program("""
product(draw(4, 5, 7), draw(4, 7, 3), "5 3 7 batch=4 nn")
product(draw(4, 5, 7), draw(7, 3), "20 3 7 batch=1 nn")  # more rows
product(draw(5, 7), draw(4, 7, 3), "5 3 7 batch=4 nn")
product(draw(2, 3, 5, 7), draw(2, 3, 7, 3), "5 3 7 batch=6 nn")
product(draw(2, 1, 5, 7), draw(3, 7, 3), *["5 3 7 batch=3 nn"] * 2)
heads = draw(2, 9, 4, 8)  # (batch, rows, heads, columns), as projections leave them
q, k = dv.permute_dims(heads, (0, 2, 1, 3)), dv.permute_dims(draw(2, 9, 4, 8), (0, 2, 3, 1))
product(q, k, *["9 9 8 batch=4 nt"] * 2)
product(draw(100, 1, 2, 3), draw(2, 3, 2))  # a hundred calls of it are worse than a kernel of our own
""")


def test_bias(program):
    program("""
for dtype in dv.float16, dv.bfloat16, dv.float32:
    x, w, b = (draw(*shape, dtype=dtype) for shape in ((2, 6, 8), (5, 8), (5,)))
    expected = numbers(x) @ numbers(w).T
    expect(nn.linear(x, w), expected, "12 5 8 batch=1 nt")
    expect(nn.linear(x, w, b), expected + numbers(b), "12 5 8 batch=1 nt bias")
x, w, b = draw(6, 8), draw(5, 8), draw(9)[1:6]  # a bias that is not aligned is copied
expect(nn.linear(x, w, b), numbers(x) @ numbers(w).T + numbers(b), "6 5 8 batch=1 nt bias")
x, w, b = (draw(*shape, dtype=dv.float64) for shape in ((6, 8), (5, 8), (5,)))
expect(nn.linear(x, w, b), numbers(x) @ numbers(w).T + numbers(b))  # not in float64
""")


SCALED = """
E4, E5 = dv.float8_e4m3fn, dv.float8_e5m2
HALVES, WIDE = (dv.float16, dv.bfloat16), dv.float32

def scaled(x, w, x_scale, w_scale, bias, dtype, *lines):
    got = nn.scaled_linear(x, w, x_scale, w_scale, bias, dtype=dtype)
    scales = np.expand_dims(numbers(x_scale), -1) if x_scale.ndim else numbers(x_scale)
    y = numbers(x) @ numbers(w).T * scales * numbers(w_scale) + (0 if bias is None else numbers(bias))
    assert got.dtype == dtype
    expect(got, numbers(dv.asarray(y.astype(np.float64)).astype(dtype)), *lines)
powers = lambda *shape: dv.asarray(2.0 ** rng.integers(-3, 3, shape), dtype=WIDE)
"""


def test_floats_of_eight_bits(program):
    program(
        SCALED
        + """
for a, b in (E4, E4), (E4, E5), (E5, E4):
    x, w, one = draw(2, 5, 48, dtype=a), draw(16, 48, dtype=b), powers()
    for dtype in HALVES:
        scaled(x, w, one, powers(1), None, dtype, "10 16 48 batch=1 nt scaled")
        bias = draw(16, dtype=dv.float16 if dtype is dv.float16 else dv.bfloat16)
        scaled(x, w, one, one, bias, dtype, "10 16 48 batch=1 nt bias scaled")
        scaled(x, w, powers(2, 5), powers(16), bias, dtype, "10 16 48 batch=1 nt bias scaled rows")
scaled(x[0, 0], w, one, powers(16), None, dtype, "1 16 48 batch=1 nt scaled rows")  # one row has one scale
scaled(x[:, ::2], w, one, one, None, dtype, "6 16 48 batch=1 nt scaled")  # rows of it are copied
"""
    )


def test_integers_of_eight_bits(program):
    program(
        SCALED
        + """
for dtype in (*HALVES, WIDE):
    x, w, one = draw(2, 5, 36, dtype=dv.int8), draw(20, 36, dtype=dv.int8), powers()
    for bias in None, draw(20, dtype=dtype):
        scaled(x, w, one, powers(1), bias, dtype, "10 20 36 batch=1 nt integers")
        scaled(x, w, powers(2, 5), powers(20), bias, dtype, "10 20 36 batch=1 nt integers")
    scaled(x, w, powers(2, 5), one, bias, dtype, "10 20 36 batch=1 nt integers")
x, w = dv.full((300, 4096), 127, dtype=dv.int8), dv.full((8, 4096), -128, dtype=dv.int8)
scaled(x, w, one, one, None, WIDE, "300 8 4096 batch=1 nt integers")  # sums beyond what a float32 counts to
x = dv.full((4, 1 << 17), -128, dtype=dv.int8)
scaled(x, x, one, one, None, WIDE, "4 4 131072 batch=1 nt")  # and beyond what an int32 does
"""
    )


def test_floats_of_eight_bits_that_it_does_not_take(program):
    program(
        SCALED
        + """
x, w, one = draw(5, 48, dtype=E4), draw(16, 48, dtype=E4), powers()
composed = "5 16 48 batch=1 nt"  # in float32
scaled(x, w, one, one, None, WIDE, composed)  # tensor cores keep about 14 bits of a sum
scaled(x, w, powers(5), one, None, dv.bfloat16, composed)
scaled(x, w, one, one, draw(16), dv.bfloat16, composed)  # its bias would have to be bfloat16
scaled(draw(5, 48, dtype=E5), draw(16, 48, dtype=E5), one, one, None, dv.bfloat16, composed)
scaled(x.astype("int8")[:, :47], w.astype("int8")[:, :47], one, one, None, WIDE, "5 16 47 batch=1 nt")
scaled(x.astype("int8"), w, one, one, None, WIDE, composed)
scaled(x[:, :40], w[:, :40], one, one, None, dv.bfloat16, "5 16 40 batch=1 nt")
scaled(x, w[:15], one, one, None, dv.bfloat16, "5 15 48 batch=1 nt")
scaled(x, draw(48, 16, dtype=E4).T, one, one, None, dv.bfloat16, composed)
scaled(draw(3, 0, dtype=E4), draw(16, 0, dtype=E4), one, one, None, dv.bfloat16)
"""
    )


def test_floats_of_eight_bits_without_the_library_or_the_gpu(program, tmp_path):
    code = SCALED + "scaled(draw(5, 48, dtype=E4), draw(16, 48, dtype=E4), powers(), powers(), None, dv.bfloat16{})"
    program(code.format(""), DOVETAIL_CUDA_LIBS=str(tmp_path))
    program(code.format(", '5 16 48 batch=1 nt'"), FAKE_CUBLASLT_WITHOUT_FLOAT8="1")


ACTIVATIONS = """
from math import erf, pi, sqrt, tanh

FORMS = {
    "relu": lambda y: np.maximum(y, 0),
    "gelu": np.vectorize(lambda y: y / 2 * (1 + erf(y / sqrt(2)))),
    "gelu_tanh": np.vectorize(lambda y: y / 2 * (1 + tanh(sqrt(2 / pi) * (y + 0.044715 * y**3)))),
}
def activated(x, w, b, activation, *lines):
    got = nn.linear_with_activation(x, w, b, activation=activation)
    y = numbers(x) @ numbers(w).T + (0 if b is None else numbers(b))
    near = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6, "float64": 1e-14}[x.dtype.name]
    np.testing.assert_allclose(numbers(got), FORMS[activation](y), rtol=near, atol=near)
    calls = open(log).read().splitlines()
    assert calls == list(lines), calls
    open(log, "w").close()
"""


def test_activations(program):
    program(
        ACTIVATIONS
        + """
for dtype in dv.float16, dv.bfloat16, dv.float32:
    x, w, b = (draw(*shape, dtype=dtype) / 4 for shape in ((2, 6, 8), (5, 8), (5,)))
    activated(x, w, b, "relu", "12 5 8 batch=1 nt bias")  # cuBLASLt's makes 0 of NaN
    fused = " gelu" if dtype is not dv.float32 else ""  # the tanh may not be exact enough for float32
    activated(x, w, b, "gelu_tanh", "12 5 8 batch=1 nt bias" + fused)
    activated(x, w, None, "gelu_tanh", "12 5 8 batch=1 nt" + fused)
    activated(x, w, b, "gelu", "12 5 8 batch=1 nt bias")
    activated(x[0, 0], w, b, "gelu_tanh", "1 5 8 batch=1 nt bias" + fused)
    activated(x[:, ::2], w[1:3], b[1:3], "gelu_tanh", "6 2 8 batch=1 nt bias" + fused)
    activated(x, (draw(8, 5, dtype=dtype) / 4).T, b, "gelu_tanh", "12 5 8 batch=1 nn bias")  # not copied
x, w, b = (draw(*shape, dtype=dv.float64) for shape in ((6, 8), (5, 8), (5,)))
activated(x, w, b, "gelu_tanh")
activated(draw(3, 0, dtype=dv.float16), draw(4, 0, dtype=dv.float16), None, "gelu_tanh")
"""
    )


def test_activations_without_the_library(program, tmp_path):
    program(ACTIVATIONS + 'activated(draw(6, 8), draw(5, 8), draw(5), "relu")', DOVETAIL_CUDA_LIBS=str(tmp_path))


def test_what_it_cannot_take_is_copied_where_that_pays(program):
    program("""
wide = draw(40, 90)[:, ::2]
product(wide, draw(45, 33), "40 33 45 batch=1 nn")
product(wide, draw(45, 66)[:, ::2], "40 33 45 batch=1 nn")
product(wide, draw(66, 45).T[:, ::2], "40 33 45 batch=1 nt")  # its columns are lines
product(dv.broadcast_to(draw(1, 45), (40, 45)), draw(45, 33), "40 33 45 batch=1 nn")
product(draw(3, 40, 90)[..., ::2], draw(3, 45, 33), "40 33 45 batch=3 nn")
product(draw(4, 18)[:, ::2], draw(9, 3))  # too small: our own kernel takes it as it lies
""")


def test_calls_that_cublaslt_does_not_compute(program):
    program("""
for dtype in dv.int8, dv.uint8, dv.int32, dv.int64:
    x, y = draw(5, 7, dtype=dtype), draw(7, 3, dtype=dtype)
    np.testing.assert_array_equal((x @ y).numpy(), x.numpy() @ y.numpy())
product(draw(3, 0), draw(0, 4))
product(draw(0, 3), draw(3, 4))
product(draw(0, 5, 7), draw(0, 7, 3))
assert open(log).read() == ""
x = draw(400, dtype=dv.float16)  # from an odd element on: the fake one refuses such addresses
product(dv.reshape(x[1:36], (5, 7)), dv.reshape(x[40:61], (7, 3)))
""")


def test_tf32_needs_the_setting(program):
    code = 'product(draw(5, 7), draw(7, 3), "5 3 7 batch=1 nn{}")'
    program(code.format(""))
    program(code.format(""), DOVETAIL_CUDA_ALLOW_TF32="0")
    program(code.format(" tf32"), DOVETAIL_CUDA_ALLOW_TF32="1")
    program(code.replace("7)", "7, dtype=dv.float64)").format(""), DOVETAIL_CUDA_ALLOW_TF32="1")


def test_several_threads(program):
    program("""
import threading
from dovetail import Stream

x, y = draw(24, 40), draw(40, 16)
expected = numbers(x) @ numbers(y)
wrong = []
def work():
    with Stream(dv.device("cuda:0")):
        for n in range(1, 25):
            if not np.array_equal(numbers(x[:n] @ y), expected[:n]):
                wrong.append(n)
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not wrong
""")


def test_an_emulated_driver_gets_no_real_library(program, tmp_path):
    program("product(draw(5, 7), draw(7, 3))", DOVETAIL_CUDA_LIBS=str(tmp_path))
