"""Ops of com.microsoft and quantised models, by NumPy in float64; and the ops that programs of models have."""

import json

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
import dovetail.onnx  # noqa: E402

HEAD = '<ir_version: 9, opset_import: ["" : 21, "com.microsoft" : 1]>\n'
SEED = 20261129


@pytest.fixture
def rng():
    print("seed", SEED)
    return np.random.default_rng(SEED)


def run(body, inputs, outputs=("y",), dtypes=()):
    """The outputs of nodes in the text form of ONNX, and the ops of the program."""
    kinds = {"float32": "float", "float16": "float16", "int64": "int64", "int32": "int32", "int8": "int8",
             "uint8": "uint8", "bool": "bool"}  # fmt: skip
    given = ", ".join(f"{kinds[str(v.dtype)]}{list(v.shape) if v.ndim else ''} {k}" for k, v in inputs.items())
    names = ", ".join(f"{kind} {name}" for name, kind in zip(outputs, dtypes or ["float"] * len(outputs)))
    loaded = dovetail.onnx.load(onnx.parser.parse_model(f"{HEAD} g ({given}) => ({names}) {{ {body} }}"))
    made = [np.asarray(v) for v in loaded(**inputs).values()]
    return made, [node["op"] for node in json.loads(loaded.program.text())["nodes"]]


def near(made, expected, tolerance=1e-5):
    np.testing.assert_allclose(made.astype("float64"), expected, rtol=tolerance, atol=tolerance)


def draw(rng, *shape):
    return rng.normal(size=shape).astype("float32")


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attended(q, k, v, mask=0.0, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    return softmax(scores + mask) @ v


def heads(x, n):
    return x.reshape(*x.shape[:2], n, -1).swapaxes(1, 2)


def joined(x):
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


# ---- activations and normalisation -------------------------------------------------------------------------------


def test_gelu_with_a_bias(rng):
    from math import erf

    x, b = draw(rng, 3, 4), draw(rng, 4)
    total = (x + b).astype("float64")
    exact = total * 0.5 * (1 + np.vectorize(erf)(total / np.sqrt(2)))
    near(run("y = com.microsoft.BiasGelu (x, b)", {"x": x, "b": b})[0][0], exact)
    tanh = total * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (total + 0.044715 * total**3)))
    near(run("y = com.microsoft.FastGelu (x, b)", {"x": x, "b": b})[0][0], tanh)
    near(run("y = com.microsoft.QuickGelu (x)", {"x": x})[0][0], x / (1 + np.exp(-1.702 * x.astype("float64"))))


def test_skip_layer_normalization(rng):
    x, s, g, b, c = draw(rng, 2, 3, 8), draw(rng, 2, 3, 8), draw(rng, 8), draw(rng, 8), draw(rng, 8)
    total = (x + s + c).astype("float64")
    expected = (total - total.mean(-1, keepdims=True)) / np.sqrt(total.var(-1, keepdims=True) + 1e-5) * g + b
    (y, t), ops = run(
        "y, m, v, t = com.microsoft.SkipLayerNormalization <epsilon = 1e-5> (x, s, g, b, c)",
        {"x": x, "s": s, "g": g, "b": b, "c": c}, ("y", "t"),
    )  # fmt: skip
    near(y, expected)
    near(t, total)
    assert "layer_norm" in ops


def test_simplified_layer_normalization(rng):
    x, s, g = draw(rng, 2, 8), draw(rng, 2, 8), draw(rng, 8)
    total = (x + s).astype("float64")
    (y,), ops = run("y = com.microsoft.SkipSimplifiedLayerNormalization <epsilon = 1e-5> (x, s, g)",
                    {"x": x, "s": s, "g": g})  # fmt: skip
    near(y, total / np.sqrt((total**2).mean(-1, keepdims=True) + 1e-5) * g)
    assert "rms_norm" in ops


# ---- products ----------------------------------------------------------------------------------------------------


def test_fused_products(rng):
    a, b, c = draw(rng, 5, 3), draw(rng, 5, 4), draw(rng, 4)
    wide = 0.5 * a.T.astype("float64") @ b
    near(run("y = com.microsoft.FusedMatMul <alpha = 0.5, transA = 1> (a, b)", {"a": a, "b": b})[0][0], wide)
    text = 'y = com.microsoft.FusedGemm <transA = 1, activation = "Relu"> (a, b, c)'
    near(run(text, {"a": a, "b": b, "c": c})[0][0], np.maximum(a.T.astype("float64") @ b + c, 0))


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", [False, True])
def test_weights_of_few_bits(rng, bits, zeros):
    n, k, block = 5, 48, 32
    blocks = 2
    w = rng.integers(0, 1 << bits, (n, blocks, block), dtype=np.uint8)
    scales = np.abs(draw(rng, n, blocks)) + 0.1
    z = rng.integers(0, 1 << bits, (n, blocks), dtype=np.uint8)
    each = 8 // bits

    def packed(v):
        spare = -v.shape[-1] % each
        v = np.concatenate([v, np.zeros((*v.shape[:-1], spare), np.uint8)], -1).reshape(*v.shape[:-1], -1, each)
        return (v << (np.arange(each, dtype=np.uint8) * bits)).sum(-1).astype(np.uint8)

    x = draw(rng, 3, k)
    middle = z if zeros else np.full_like(z, 1 << (bits - 1))
    wide = ((w.astype("float64") - middle[..., None]) * scales[..., None]).reshape(n, -1)[:, :k]
    given = {"x": x, "w": packed(w), "s": scales} | ({"z": packed(z)} if zeros else {})
    how = f"<K = {k}, N = {n}, bits = {bits}, block_size = {block}>"
    text = f"y = com.microsoft.MatMulNBits {how} ({', '.join(given)})"
    near(run(text, given)[0][0], x @ wide.T, 1e-4)


# ---- quantised ---------------------------------------------------------------------------------------------------


def quantized(x, scale, zero, dtype):
    limits = np.iinfo(dtype)
    return np.clip(np.rint(x / scale) + zero, limits.min, limits.max).astype(dtype)


def test_dynamic_products_use_kernels_of_int8(rng):
    a, b = draw(rng, 4, 16), rng.integers(-128, 128, (16, 8), dtype=np.int8)
    scale, zero, bias = np.float32(0.02), np.int8(3), draw(rng, 8)
    text = "y = com.microsoft.DynamicQuantizeMatMul (a, b, s, z, c)"
    (y,), ops = run(text, {"a": a, "b": b, "s": np.array(scale), "z": np.array(zero), "c": bias})
    assert "matmul_integer" in ops
    wide = a.astype("float64") @ ((b.astype("float64") - zero) * scale) + bias
    assert np.abs(y - wide).max() <= 0.01 * np.abs(wide).max()


def test_matmul_integer_to_float(rng):
    a, b = rng.integers(0, 256, (4, 16), dtype=np.uint8), rng.integers(-128, 128, (16, 8), dtype=np.int8)
    scales = np.abs(draw(rng, 8)) + 0.01
    given = {"a": a, "b": b, "s": np.array(np.float32(0.1)), "t": scales, "z": np.array(np.uint8(120))}
    (y,), ops = run("y = com.microsoft.MatMulIntegerToFloat (a, b, s, t, z)", given)
    near(y, (a.astype("float64") - 120) @ b * np.float32(0.1).astype("float64") * scales, 1e-4)
    assert ops.count("matmul_integer") == 1


def test_q_gemm(rng):
    a, b = rng.integers(0, 256, (4, 16), dtype=np.uint8), rng.integers(-128, 128, (8, 16), dtype=np.int8)
    c = rng.integers(-1000, 1000, 8, dtype=np.int32)
    given = {"a": a, "s": np.float32(0.05), "z": np.uint8(99), "b": b, "t": np.float32(0.1), "w": np.int8(1),
             "c": c, "u": np.float32(3.0), "v": np.uint8(128)}  # fmt: skip
    (y,), ops = run("y = com.microsoft.QGemm <transB = 1> (a, s, z, b, t, w, c, u, v)", given, dtypes=("uint8",))
    acc = (a.astype("int64") - 99) @ (b.T.astype("int64") - 1) + c
    expected = quantized(acc * (0.05 * 0.1), 3.0, 128, np.uint8)
    assert np.abs(y.astype(int) - expected.astype(int)).max() <= 1  # ties of float32
    assert (y == expected).mean() > 0.9
    assert "matmul_integer" in ops


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_quantised_arithmetic(rng, op):
    a, b = (rng.integers(0, 256, (4, 8), dtype=np.uint8) for _ in range(2))
    given = {"a": a, "s": np.float32(0.05), "z": np.uint8(128), "b": b, "t": np.float32(0.1), "w": np.uint8(99),
             "u": np.float32(0.5), "v": np.uint8(3)}  # fmt: skip
    (y,), _ = run(f"y = com.microsoft.{op} (a, s, z, b, t, w, u, v)", given, dtypes=("uint8",))
    x, z = (a.astype(float) - 128) * 0.05, (b.astype(float) - 99) * 0.1
    expected = quantized(x + z if op == "QLinearAdd" else x * z, 0.5, 3, np.uint8)
    assert np.abs(y.astype(int) - expected.astype(int)).max() <= 1
    assert (y == expected).mean() > 0.9


@pytest.mark.parametrize(
    "outputs, channels, kernel, group, op",
    [
        (8, 4, 3, 1, "matmul_integer"),
        (8, 4, 1, 1, "matmul_integer"),
        (6, 1, 3, 6, "conv2d"),
        (8, 2, 3, 2, "conv2d"),
    ],
)
def test_quantised_convolution(rng, outputs, channels, kernel, group, op):
    x = rng.integers(0, 256, (2, channels * group, 6, 7), dtype=np.uint8)
    w = rng.integers(-128, 128, (outputs, channels, kernel, kernel), dtype=np.int8)
    z, v, pad = np.array(np.uint8(7)), rng.integers(-9, 9, outputs, dtype=np.int8), kernel // 2
    wide = np.pad(x.astype("int64") - 7, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (kernel, kernel), axis=(2, 3))
    for zeros in (np.array(v[0]), v):
        (y,), ops = run(f"y = ConvInteger <pads = [{pad}, {pad}, {pad}, {pad}], group = {group}> (x, w, z, v)",
                        {"x": x, "w": w, "z": z, "v": zeros}, dtypes=("int32",))  # fmt: skip
        taps = w.astype("int64") - zeros.reshape(-1, 1, 1, 1)
        parts = zip(np.split(windows, group, 1), np.split(taps, group, 0), strict=True)
        expected = np.concatenate([np.einsum("nchwij,ocij->nohw", a, b) for a, b in parts], 1)
        assert np.array_equal(y, expected)
        assert op in ops


# ---- attention ---------------------------------------------------------------------------------------------------


def test_attention_of_one_product(rng):
    x, w, b = draw(rng, 2, 5, 8), draw(rng, 8, 24), draw(rng, 24)
    mask = np.array([5, 3], np.int32)
    (y,), ops = run("y = com.microsoft.Attention <num_heads = 2> (x, w, b, m)", {"x": x, "w": w, "b": b, "m": mask})
    q, k, v = (heads(t, 2) for t in np.split(x.astype("float64") @ w + b, 3, -1))
    hidden = np.where(np.arange(5) < mask[:, None, None, None], 0, -np.inf)
    near(y, joined(attended(q, k, v, hidden)))
    assert "scaled_dot_product_attention" in ops


def test_multi_head_attention_with_a_cache(rng):
    q, k, v = (draw(rng, 2, 3, 8) for _ in range(3))
    past = [draw(rng, 2, 2, 4, 4) for _ in range(2)]
    text = "y, pk, pv = com.microsoft.MultiHeadAttention <num_heads = 2, unidirectional = 1> (q, k, v, , , , a, b)"
    given = {"q": q, "k": k, "v": v, "a": past[0], "b": past[1]}
    (y, present, _), _ = run(text, given, ("y", "pk", "pv"))
    keys, values = (np.concatenate([p, heads(t, 2)], 2).astype("float64") for p, t in zip(past, (k, v)))
    hidden = np.where(np.arange(7) <= np.arange(3)[:, None] + 4, 0, -np.inf)
    near(y, joined(attended(heads(q, 2), keys, values, hidden)))
    near(present, keys)


def test_group_query_attention_with_rotation(rng):
    q, k, v = draw(rng, 1, 3, 16), draw(rng, 1, 3, 8), draw(rng, 1, 3, 8)
    past = [draw(rng, 1, 2, 2, 4) for _ in range(2)]
    angle = np.arange(8)[:, None] * np.array([1.0, 0.1])
    cos, sin = np.cos(angle).astype("float32"), np.sin(angle).astype("float32")
    text = ("y, pk, pv = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2, do_rotary = 1> "
            "(q, k, v, a, b, n, t, c, s)")  # fmt: skip
    given = {"q": q, "k": k, "v": v, "a": past[0], "b": past[1], "n": np.array([4], np.int32),
             "t": np.array(5, np.int32), "c": cos, "s": sin}  # fmt: skip
    (y, _, _), _ = run(text, given, ("y", "pk", "pv"))

    def rotated(x):
        a, b = x[..., :2], x[..., 2:]
        c, s = (t[2:5].astype("float64") for t in (cos, sin))
        return np.concatenate([a * c - b * s, b * c + a * s], -1)

    keys = np.concatenate([past[0], rotated(heads(k, 2))], 2)
    values = np.concatenate([past[1], heads(v, 2)], 2)
    hidden = np.where(np.arange(5) <= np.arange(3)[:, None] + 2, 0, -np.inf)
    near(y, joined(attended(rotated(heads(q, 4)), keys.repeat(2, 1), values.repeat(2, 1), hidden)))


# ---- ops of the schema -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body, op", [
    ("y = Conv <pads = [0, 0, 1, 1]> (x, w)", "conv2d"),
    ("y = ConvTranspose (x, w)", "conv_transpose2d"),
    ("y = MaxPool <kernel_shape = [2, 2], ceil_mode = 1> (x)", "max_pool2d"),
    ("y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)", "avg_pool2d"),
    ("y = InstanceNormalization (x, b, b)", "group_norm"),
    ("y = GroupNormalization <num_groups = 2> (x, b, b)", "group_norm"),
    ("y = GlobalAveragePool (x)", "mean"),
])  # fmt: skip
def test_ops_are_those_of_the_schema(rng, body, op):
    given = {"x": draw(rng, 1, 4, 5, 5), "w": draw(rng, 4, 4, 2, 2), "b": draw(rng, 4)}
    used = {k: v for k, v in given.items() if f"{k})" in body or f"{k}," in body}
    assert op in run(body, used)[1]


def test_a_recurrent_network_is_a_scan(rng):
    given = {"x": draw(rng, 5, 2, 3), "w": draw(rng, 1, 16, 3), "r": draw(rng, 1, 16, 4)}
    _, ops = run("y, h, c = LSTM <hidden_size = 4> (x, w, r)", given)
    assert ops.count("scan") == 1
    assert len(ops) < 30


# ---- QuantizeLinear and DequantizeLinear around float ops --------------------------------------------------------


def dequantized(q, scale, zero):
    return (q.astype("float64") - zero) * scale


def test_products_between_dequantized_tensors_are_of_int8(rng):
    a, b = rng.integers(0, 256, (4, 16), dtype=np.uint8), rng.integers(-128, 128, (16, 64), dtype=np.int8)
    scales, c = (np.abs(draw(rng, 64)) + 0.01).astype("float32"), draw(rng, 64)
    given = {
        "a": a,
        "s": np.float32(0.05),
        "z": np.uint8(99),
        "b": b,
        "t": scales,
        "w": np.zeros(64, np.int8),
        "c": c,
    }
    text = (
        "p = DequantizeLinear (a, s, z) q = DequantizeLinear <axis = 1> (b, t, w) m = MatMul (p, q) y = Add (m, c)"
    )
    (y,), ops = run(text, given)
    near(y, dequantized(a, 0.05, 99) @ dequantized(b, scales, 0) + c, 1e-4)
    assert ops.count("matmul_integer") == 1
    assert "dequantize" not in ops
    text = (
        "p = DequantizeLinear (a, s, z) q = DequantizeLinear <axis = 0> (b, t, w) y = Gemm <transB = 1> (p, q, c)"
    )
    (y,), ops = run(text, {**given, "b": b.T.copy()})
    near(y, dequantized(a, 0.05, 99) @ dequantized(b, scales, 0) + c, 1e-4)
    assert ops.count("matmul_integer") == 1


def test_convolutions_between_dequantized_tensors_are_of_int8(rng):
    x, w = rng.integers(0, 256, (1, 4, 6, 6), dtype=np.uint8), rng.integers(-128, 128, (8, 4, 3, 3), dtype=np.int8)
    scales = (np.abs(draw(rng, 8)) + 0.01).astype("float32")
    given = {"x": x, "s": np.float32(0.05), "z": np.uint8(7), "w": w, "t": scales, "v": np.zeros(8, np.int8)}
    text = """p = DequantizeLinear (x, s, z) q = DequantizeLinear <axis = 0> (w, t, v)
              y = Conv <pads = [1, 1, 1, 1]> (p, q)"""
    (y,), ops = run(text, given)
    wide = np.pad(dequantized(x, 0.05, 7), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), axis=(2, 3))
    kernel = w.astype("float64") * scales[:, None, None, None]
    near(y, np.einsum("nchwij,ocij->nohw", windows, kernel), 1e-4)
    assert "matmul_integer" in ops
    assert "conv2d" not in ops


def test_dequantized_tensors_are_computed_where_reals_are_needed(rng):
    x = rng.integers(0, 256, (3, 4), dtype=np.uint8)
    given = {"x": x, "s": np.float32(0.05), "z": np.uint8(7)}
    expected = dequantized(x, 0.05, 7)
    (y, d), ops = run("d = DequantizeLinear (x, s, z) r = Relu (d) y = Add (r, d)", given, ("y", "d"))
    near(y, np.maximum(expected, 0) + expected)
    near(d, expected)
    assert ops.count("dequantize") == 1


# ---- packed attention and integer weights of an LSTM -------------------------------------------------------------


@pytest.mark.parametrize("biased", [False, True])
def test_packed_operands_of_attention(rng, biased):
    n, size = 2, 4
    qkv, bias = draw(rng, 2, 5, n, 3, size), draw(rng, 3 * n * size)
    given = {"x": qkv} | ({"b": bias} if biased else {})
    added = bias.astype("float64").reshape(3, 1, n, 1, size) if biased else np.zeros((3, 1, 1, 1, 1))
    q, k, v = (qkv[..., i, :].swapaxes(1, 2) + added[i] for i in range(3))
    text = "y = com.microsoft.MultiHeadAttention <num_heads = 2> (x" + (", , , b)" if biased else ")")
    (y,), _ = run(text, given)
    near(y, joined(attended(q, k, v)))


def test_a_packed_key_and_value_of_attention(rng):
    n, size = 2, 4
    q, kv = draw(rng, 2, 3, n * size), draw(rng, 2, 5, n, 2, size)
    (y,), _ = run("y = com.microsoft.MultiHeadAttention <num_heads = 2> (q, kv)", {"q": q, "kv": kv})
    k, v = (kv[..., i, :].swapaxes(1, 2) for i in range(2))
    near(y, joined(attended(heads(q.astype("float64"), n), k, v)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, w, r, b):
    """One direction in float64, gates i o f c: the outputs (L, N, H)."""
    hidden = r.shape[0]
    h = c = np.zeros((x.shape[1], hidden))
    made = []
    for row in x.astype("float64"):
        gates = row @ w + h @ r + b[: 4 * hidden] + b[4 * hidden :]
        i, o, f, g = np.split(gates, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        made.append(h)
    return np.stack(made)


@pytest.mark.parametrize("per_column", [False, True])
def test_an_lstm_of_integer_weights(rng, per_column):
    length, batch, size, hidden = 4, 2, 3, 5
    x, b = draw(rng, length, batch, size), draw(rng, 1, 8 * hidden)
    columns = (1, 4 * hidden) if per_column else (1,)
    given = {"x": x, "b": b}
    real = []
    for name, rows in (("w", size), ("r", hidden)):
        q = rng.integers(0, 256, (1, rows, 4 * hidden)).astype("uint8")
        scale = (rng.random(columns) * 0.01 + 0.002).astype("float32")
        zero = rng.integers(100, 150, columns).astype("uint8")
        given |= {name: q, f"{name}s": scale, f"{name}z": zero}
        wide = (-1,) if per_column else ()
        real.append((q[0].astype("float64") - zero.reshape(wide)) * scale.reshape(wide))
    text = "y = com.microsoft.DynamicQuantizeLSTM <hidden_size = 5> (x, w, r, b, , , , , ws, wz, rs, rz)"
    (y,), _ = run(text, given)
    near(y[:, 0], lstm(x, *real, b[0].astype("float64")))
