"""dovetail.onnx.check and register."""

import dovetail as dt
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
import dovetail.onnx  # noqa: E402
from dovetail.onnx import registry  # noqa: E402

HEAD = '<ir_version: 9, opset_import: ["" : 21, "com.acme" : 3]>\n'


def model(text):
    return onnx.parser.parse_model(HEAD + text)


@pytest.fixture
def handlers():
    """Handlers of the test are gone after it."""
    before = {key: list(found) for key, found in registry._HANDLERS.items()}
    yield
    registry._HANDLERS.clear()
    registry._HANDLERS.update(before)


def test_a_report_of_ops_and_kernels(home):
    proto = model("g (float[b, 4] x) => (float[b, 4] y) { a = Softmax (x) y = Mish (a) }")
    report = dovetail.onnx.check(proto, device=home)
    assert report.ok
    assert report.device == home
    assert [(row.op, row.opset, row.count, row.by) for row in report.rows] == [
        ("Mish", 21, 1, "handler"), ("Softmax", 21, 1, "handler")
    ]  # fmt: skip
    assert {k.op for k in report.kernels} == {"softmax", "mish"}
    assert all(k.by in ("native", "decomposition") for k in report.kernels)
    assert "nothing is missing" in str(report)


def test_ops_by_definition():
    report = dovetail.onnx.check(
        model("g (float[2, 3] x, int64[2] t) => (float y) { y = NegativeLogLikelihoodLoss (x, t) }")
    )
    assert [row.by for row in report.rows] == ["function"]


def test_all_problems_at_once():
    proto = model("g (float[b] x) => (float[b] z) { y = com.acme.Foo (x) v = com.acme.Bar (y) z = Add (v, w) }")
    t = proto.graph.initializer.add()
    t.name, t.data_type, t.data_location = "w", 1, onnx.TensorProto.EXTERNAL
    u = proto.graph.initializer.add()
    u.name, u.data_type = "u", 77
    report = dovetail.onnx.check(proto, device="cpu")
    assert not report.ok
    assert len(report.problems) == 4
    text = str(report)
    assert all(part in text for part in ("com.acme.Foo-3", "com.acme.Bar-3", "external data", "dtype 77"))


def test_ops_within_subgraphs_are_checked():
    proto = model("""g (float[b] x, bool c) => (float[b] z) {
      z = If (c) <
        then_branch = t () => (float[b] p) { p = com.acme.Foo (x) },
        else_branch = e () => (float[b] q) { q = Abs (x) }
      >
    }""")
    assert [row.op for row in dovetail.onnx.check(proto).rows if row.by == "missing"] == ["com.acme.Foo"]


def test_a_handler_of_the_user(handlers):
    proto = model("g (float[b] x) => (float[b] y, float[b] z) { y, z = com.acme.Foo <alpha = 3.0> (x) }")
    with pytest.raises(NotImplementedError, match=r"op com.acme.Foo-3 has no handler; register one with"):
        dovetail.onnx.load(proto)

    def foo(node, x):
        assert node.opset == 3
        return x * node.get("alpha", 1.0), x + node.get("beta", 1.0)

    dovetail.onnx.register("com.acme", "Foo", since=2)(foo)
    x = np.array([1, 2], "float32")
    y, z = dovetail.onnx.load(proto)(x)
    assert np.array_equal(y, x * 3)
    assert np.array_equal(z, x + 1)
    assert dovetail.onnx.check(proto).ok


def test_without_variants_each_call_runs_node_by_node(handlers):
    calls = []
    dovetail.onnx.register("com.acme", "Foo")(lambda node, x: calls.append(x) or x + x)
    proto = model("g (float[b] x) => (float[b] y) { y = com.acme.Foo (x) }")
    x = np.array([1, 2], "float32")
    for variants, more in ((8, 0), (0, 3)):
        loaded = dovetail.onnx.load(proto, limits=dovetail.onnx.Limits(variants=variants))
        before = len(calls)
        for _ in range(3):
            assert np.array_equal(loaded(x)[0], x + x)
        assert len(calls) == before + more


def test_the_newest_handler_that_the_opset_knows(handlers):
    for since in (1, 3, 4):
        dovetail.onnx.register("com.acme", "Foo", since=since)(lambda node, x, k=since: x * k)
    loaded = dovetail.onnx.load(model("g (float[b] x) => (float[b] y) { y = com.acme.Foo (x) }"))
    assert np.array_equal(loaded(np.array([1], "float32"))[0], [3])


def test_a_handler_that_reads_a_shape(handlers):
    from dovetail.onnx.values import integers

    dovetail.onnx.register("com.acme", "Foo", numbers=(1,))(lambda node, x, s: dt.reshape(x, tuple(integers(s))))
    loaded = dovetail.onnx.load(model("g (float[b] x, int64[2] s) => (float[m, n] y) { y = com.acme.Foo (x, s) }"))
    x = np.arange(6, dtype="float32")
    for s in ((2, 3), (3, 2)):
        assert loaded(x, np.array(s))[0].shape == s


def test_what_cannot_be_registered():
    with pytest.raises(TypeError, match="expected two strings and an integer"):
        dovetail.onnx.register("com.acme", 3)
    with pytest.raises(TypeError, match="got int, expected a function"):
        dovetail.onnx.register("com.acme", "Foo")(3)


def test_dovetail_does_not_import_onnx():
    import subprocess
    import sys

    code = "import dovetail, sys; assert not any(m == 'onnx' or m.startswith('dovetail.onnx') for m in sys.modules)"
    subprocess.run([sys.executable, "-c", code + "; dovetail.onnx.load; assert 'onnx' in sys.modules"], check=True)
