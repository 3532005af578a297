"""dovetail.onnx.save: files that onnx.reference and our importer run with the program's results."""

import dovetail as dt
import numpy as np
import pytest
from dovetail import nn

onnx = pytest.importorskip("onnx")
import dovetail.onnx  # noqa: E402
from dovetail.onnx import saving  # noqa: E402

SEED = 20261128


def draw(*shape):
    return np.random.default_rng(SEED + len(shape)).normal(size=shape).astype("float32")


W, B, K = (dt.asarray(draw(*s)) for s in ((8, 4), (8,), (6, 3, 3, 3)))
GATES = [dt.asarray(draw(12, 4)), dt.asarray(draw(12, 3))]


def written(x):
    y = x + 0
    y[1:, 0] = 5.0
    return y


def recurrent(x):
    return nn.lstm(x, (dt.zeros((1, 2, 3)), dt.zeros((1, 2, 3))), GATES, has_biases=False)


CASES = {
    "mlp": (lambda x: nn.softmax(nn.linear(nn.gelu(x), W, B)), draw(5, 4)),
    "conv": (lambda x: nn.max_pool2d(nn.relu(nn.conv2d(x, K, padding=1)), 2), draw(2, 3, 8, 8)),
    "conv_transpose": (lambda x: nn.conv_transpose2d(x, K[:3], stride=2), draw(1, 3, 4, 4)),
    "logaddexp": (dt.logaddexp, draw(3, 4), draw(4)),
    "roll": (lambda x: dt.roll(x, 2, axis=1), draw(3, 4)),
    "attention": (lambda q: nn.scaled_dot_product_attention(q, q, q, is_causal=True), draw(2, 2, 5, 4)),
    "rms_norm": (lambda x: nn.rms_norm(x, (4,)), draw(3, 4)),
    "group_norm": (lambda x: nn.group_norm(x, 2), draw(2, 4, 3)),
    "index": (lambda x: x[1:, ::2] + x[:-1, None, 0], draw(3, 4)),
    "write": (written, draw(3, 4)),
    "cond": (lambda x: dt.cond(dt.any(x > 0), lambda: x + 1, lambda: x * 2), draw(3, 4)),
    "while": (lambda x: dt.while_loop(lambda s: dt.sum(s) < 100, lambda s: s * 2, dt.abs(x)), draw(3, 4)),
    "scan": (lambda x: dt.scan(lambda c, x: (c + x, c * x), x[0], x), draw(3, 4)),
    "lstm": (recurrent, draw(5, 2, 4)),
    "sort": (lambda x: (dt.sort(x, axis=0), dt.argsort(x, axis=1)), draw(5, 4)),
    "top_k": (lambda x: dt.top_k(x, 2), draw(6, 4)),
    "var": (lambda x: dt.var(x, axis=1), draw(5, 4)),
    "interpolate": (lambda x: nn.interpolate(x, scale_factor=2, mode="bilinear"), draw(1, 2, 4, 4)),
    "sizes": (lambda x: dt.reshape(x, (x.shape[1], -1)) * (x.shape[0] + x.shape[1] // 2), draw(6, 4)),
    "one_hot": (lambda x: nn.one_hot(x, 4), np.array([1, 2, 0])),
    "einsum": (lambda x, y: dt.einsum("bij,bjk->bik", x, y), draw(2, 3, 4), draw(2, 4, 5)),
    "quantize": (lambda x: dt.dequantize(dt.quantize(x, 0.1, 3, dtype="int8"), 0.1, 3), draw(3, 4)),
    "int8": (lambda x: dt.matmul_integer(x, dt.asarray(np.arange(12).reshape(4, 3), dtype="int8")),
             np.arange(-4, 4, dtype="int8").reshape(2, 4)),
    "cross_entropy": (nn.cross_entropy, draw(3, 4), np.array([1, 2, 0])),
    "put_along_axis": (lambda x: dt.put_along_axis(x, dt.asarray([[1], [0]]), 5.0, axis=1), draw(2, 4)),
    "scatter": (lambda x: dt.scatter(x, dt.asarray([1, 1]), 2.0, axis=1, mode="add"), draw(2, 4)),
    "det": (dt.linalg.det, draw(2, 3, 3)),
    "cumulative_prod": (lambda x: dt.cumulative_prod(x, axis=1), draw(2, 3)),
    "bools": (lambda x: dt.maximum(x > 0, x < -1), draw(2, 3)),
}  # fmt: skip
BITS = {  # decompositions that look at bits
    "expm1": (lambda x: dt.expm1(x) + dt.log1p(dt.abs(x)) + dt.atan2(x, x + 1), draw(5, 4)),
    "remainder": (lambda x: dt.remainder(x, 0.7), draw(5, 4)),
    "median": (dt.median, draw(5)),
}


def results(value):
    return [np.asarray(v) for v in (value if isinstance(value, tuple) else (value,))]


@pytest.mark.parametrize("name", [*CASES, *BITS])
def test_round_trip(name, tmp_path):
    from onnx.reference import ReferenceEvaluator

    function, *args = (CASES | BITS)[name]
    path = tmp_path / "m.onnx"
    given = [dt.asarray(x) for x in args]
    dovetail.onnx.save(dt.export(function, *given), path, opset=26 if name in BITS else 21)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=not model.functions)
    feeds = {port.name: x for port, x in zip(model.graph.input, args, strict=True)}
    by_reference = ReferenceEvaluator(model).run(None, feeds)
    own = dovetail.onnx.load(path)(**feeds).values()
    for expected, theirs, ours in zip(results(function(*given)), by_reference, own, strict=True):
        assert np.asarray(ours).dtype == expected.dtype == theirs.dtype
        np.testing.assert_allclose(theirs, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(np.asarray(ours), expected, rtol=1e-5, atol=1e-6)


def test_ops_without_an_equal_are_functions(tmp_path):
    program = dt.export(lambda x: dt.roll(x, 1, axis=0) + dt.roll(x, 1, axis=0), dt.spec(("n", 4)))
    dovetail.onnx.save(program, tmp_path / "m.onnx")
    model = onnx.load(tmp_path / "m.onnx")
    assert [(f.domain, f.name) for f in model.functions] == [("dovetail", "roll_float32")]
    assert [node.op_type for node in model.graph.node if node.domain == "dovetail"] == ["roll_float32"] * 2
    assert [d.dim_param or d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim] == ["n", 4]


def test_the_file_is_for_all_sizes(tmp_path):
    from onnx.reference import ReferenceEvaluator

    def function(x):
        return dt.reshape(nn.softmax(x, axis=-1), (x.shape[0] * 2, -1)) - dt.mean(x)

    dovetail.onnx.save(dt.export(function, dt.spec(("b", "t"))), tmp_path / "m.onnx")
    model = ReferenceEvaluator(str(tmp_path / "m.onnx"))
    loaded = dovetail.onnx.load(tmp_path / "m.onnx")
    for shape in ((2, 4), (5, 6), (1, 2)):
        x = draw(*shape)
        expected = np.asarray(function(dt.asarray(x)))
        np.testing.assert_allclose(model.run(None, {"x": x})[0], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(np.asarray(loaded(x)[0]), expected, rtol=1e-5, atol=1e-6)


def test_a_loaded_model_is_saved(tmp_path):
    proto = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 21]> '
        "g (float[n, 4] x) => (float[n, 4] y) { a = Relu (x) y = Softmax (a) }"
    )
    dovetail.onnx.save(dovetail.onnx.load(proto), tmp_path / "m.onnx", opset=28)
    saved = onnx.load(tmp_path / "m.onnx")
    assert saved.opset_import[0].version == 28
    assert [node.op_type for node in saved.graph.node] == ["Relu", "Softmax", "Identity"]


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(TypeError, match=r"^\[onnx.save\] got int, expected a dovetail.Program or an onnx Model"):
        dovetail.onnx.save(3, tmp_path / "m.onnx")
    with pytest.raises(ValueError, match="opset: got 20, expected 21 to 28"):
        dovetail.onnx.save(dt.export(dt.abs, dt.spec((2,))), tmp_path / "m.onnx", opset=20)
    with pytest.raises(NotImplementedError, match="a bitcast needs opset 26 or newer"):
        dovetail.onnx.save(dt.export(dt.signbit, dt.spec((2,))), tmp_path / "m.onnx")
    with pytest.raises(NotImplementedError, match="complex numbers: ONNX has no arithmetic of them"):
        dovetail.onnx.save(dt.export(lambda x: dt.fft.fft(x).real, dt.spec((4,))), tmp_path / "m.onnx", opset=26)
    assert not (tmp_path / "m.onnx").exists()


def sums(k):
    """A program with an array of 64 x 64."""
    w = dt.asarray(np.random.default_rng(k).normal(size=(64, 64)).astype("float32"))
    return dt.export(lambda x: x @ w + 1.0, dt.spec(("n", 64)))


def test_large_arrays_go_to_a_file_of_their_own(tmp_path, monkeypatch):
    """Which takes its place whole, as the model does: the one that was there can be read until then."""
    monkeypatch.setattr(saving, "_MOST_INSIDE", 1000)
    path, x = tmp_path / "m.onnx", draw(3, 64)
    names = []
    for k in (1, 2, 2):
        program = sums(k)
        dovetail.onnx.save(program, path)
        (data,) = (p for p in tmp_path.iterdir() if p != path)
        assert data.name.startswith("m.onnx.") and data.stat().st_size == 64 * 64 * 4 and path.stat().st_size < 2000
        names.append(data.name)
        np.testing.assert_allclose(np.asarray(dovetail.onnx.load(path)(x)[0]), np.asarray(program(x)), rtol=1e-5)
    assert names[0] != names[1] == names[2]
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}

    def fail(*args, **kwargs):
        raise OSError("no space")

    monkeypatch.setattr(onnx, "save_model", fail)
    with pytest.raises(OSError, match="no space"):
        dovetail.onnx.save(sums(3), path)
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before
    monkeypatch.undo()
    dovetail.onnx.save(sums(4), path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written(tmp_path):
    for path, error in ((tmp_path / "missing/m.onnx", FileNotFoundError), (tmp_path, IsADirectoryError)):
        with pytest.raises(error):
            dovetail.onnx.save(sums(1), path)
    assert list(tmp_path.iterdir()) == []
