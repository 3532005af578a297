"""dovetail.onnx.load: programs of models, value guards, segments, control flow."""

import json

import dovetail as dt
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
import dovetail.onnx  # noqa: E402

HEAD = '<ir_version: 9, opset_import: ["" : 21]>\n'


def model(text, head=HEAD):
    return onnx.parser.parse_model(head + text)


def reference(proto, **given):
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(proto).run(None, given)


def expect_same(made, expected):
    for a, b in zip(made, expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-6, atol=1e-7)
        assert np.asarray(a).shape == np.shape(b)


SHAPES = """g (float[b, t, 8] x) => (float[b, n] y) {
  s = Shape (x)
  first = Constant <value_int = 0> ()
  b = Gather (s, first)
  axes = Constant <value_ints = [0]> ()
  row = Unsqueeze (b, axes)
  rest = Constant <value_ints = [-1]> ()
  sizes = Concat <axis = 0> (row, rest)
  r = Reshape (x, sizes)
  two = Constant <value_float = 2.0> ()
  y = Mul (r, two)
}"""


def test_shapes_stay_symbolic():
    loaded = dovetail.onnx.load(model(SHAPES))
    ops = [node["op"] for node in json.loads(loaded.program.text())["nodes"]]
    assert ops == ["reshape", "multiply"]
    assert loaded.inputs == (dovetail.onnx.Input("x", "float32", ("b", "t", 8)),)
    for b, t in ((2, 3), (1, 1), (5, 0), (3, 7)):
        x = np.random.default_rng(b).normal(size=(b, t, 8)).astype("float32")
        if t:
            expect_same(loaded(x), [x.reshape(b, -1) * 2])


def test_arguments_by_name_and_by_position():
    loaded = dovetail.onnx.load(
        model("g (float[2] a, float[2] b) => (float[2] c, float[2] d) { c = Add (a, b) d = Sub (a, b) }")
    )
    a, b = np.array([1, 2], "float32"), np.array([3, 5], "float32")
    assert loaded(b=b, a=a).keys() == {"c", "d"}
    expect_same(loaded(b=b, a=a).values(), [a + b, a - b])
    assert isinstance(loaded(a, b), tuple)
    expect_same(loaded(dt.asarray(a), b), [a + b, a - b])
    with pytest.raises(TypeError, match=r"\[model\] input 'b' is missing: expected a, b"):
        loaded(a)
    with pytest.raises(TypeError, match="there is no input 'e'"):
        loaded(a=a, b=b, e=b)
    with pytest.raises(TypeError, match="input 'a' is float64, expected float32; astype it"):
        loaded(a.astype("float64"), b)
    with pytest.raises(ValueError, match=r"input 'a' has shape \(3,\), expected \(2,\)"):
        loaded(np.zeros(3, "float32"), b)


def test_a_program_is_saved_compiled_and_exported(tmp_path, home):
    loaded = dovetail.onnx.load(model(SHAPES), device=home)
    x = np.arange(48, dtype="float32").reshape(2, 3, 8)
    expected = [x.reshape(2, -1) * 2]
    loaded.save(tmp_path / "m.dvt")
    given = dt.asarray(x, device=home)
    expect_same(dt.load(tmp_path / "m.dvt")(given), expected)
    expect_same(dt.compile(loaded.program)(given), expected)
    outer = dt.export(lambda x: loaded(x)[0] + 1, dt.spec((None, None, 8)))
    expect_same([outer(given)], [expected[0] + 1])


def test_nodes_have_their_place_in_the_file(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(model(SHAPES), path)
    assert "m.onnx:7" in repr(dovetail.onnx.load(path).program)  # Reshape


def test_an_initializer_may_be_an_input():
    text = "g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {3, 4}> { y = Mul (x, w) }"
    loaded = dovetail.onnx.load(model(text))
    x = np.array([1, 2], "float32")
    expect_same(loaded(x), [[3, 8]])
    expect_same(loaded(x=x, w=x).values(), [[1, 4]])
    expect_same(loaded(x), [[3, 8]])


# ---- values of inputs --------------------------------------------------------------------------------------------

TOP = "g (float[b] x, int64[1] k) => (float[n] y, int64[n] i) { y, i = TopK (x, k) }"


def test_a_program_is_made_for_values_that_decide_about_shapes():
    loaded = dovetail.onnx.load(model(TOP))
    with pytest.raises(
        ValueError, match=r"no single program: node 0 TopK computes shapes from elements of the input 'k'"
    ):
        _ = loaded.program
    x = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], "float32")
    for k in (2, 3, 2, *range(11)):  # more values than there may be programs
        made = loaded(x, np.array([k]))
        expect_same(made[:1], [np.sort(x)[::-1][:k]])
    assert "8 programs" in repr(loaded)


def test_inputs_can_be_made_constants():
    loaded = dovetail.onnx.load(model(TOP), values={"k": [2]})
    assert [port.name for port in loaded.inputs] == ["x"]
    expect_same(loaded(np.array([1, 5, 3], "float32"))[:1], [[5, 3]])
    assert loaded.program is not None
    with pytest.raises(ValueError, match="there is no input 'q'"):
        dovetail.onnx.load(model(TOP), values={"q": [2]})


def test_values_that_are_computed_from_an_input():
    text = """g (float[b, c] x, int64[n] shape) => (float[m, l] y) {
      two = Constant <value_int = 2> ()
      sizes = Mul (shape, two)
      y = Reshape (x, sizes)
    }"""
    loaded = dovetail.onnx.load(model(text))
    x = np.arange(24, dtype="float32").reshape(6, 4)
    for shape in ((3, 2), (2, 3), (1, 6)):
        expect_same(loaded(x, np.array(shape)), [x.reshape([2 * n for n in shape])])


def test_sizes_that_a_handler_looks_at():
    """A loop over an axis is unrolled for its size, and imported again for another."""
    text = """g (float[b] x) => (float[n, m] y) {
      s = SplitToSequence <axis = 0> (x)
      y = ConcatFromSequence <axis = 0, new_axis = 1> (s)
    }"""
    loaded = dovetail.onnx.load(model(text))
    for n in (3, 5, 3, 1):
        x = np.arange(n, dtype="float32")
        expect_same(loaded(x), [x[:, None]])


# ---- segments ----------------------------------------------------------------------------------------------------

FOUND = """g (float[b] x) => (float[n] z) {
  a = Add (x, x)
  found = NonZero (a)
  axes = Constant <value_ints = [0]> ()
  places = Squeeze (found, axes)
  y = Gather (a, places)
  z = Mul (y, y)
}"""


def test_a_result_of_unknown_size_ends_a_segment(home):
    loaded = dovetail.onnx.load(model(FOUND), device=home)
    with pytest.raises(
        ValueError, match="node 1 NonZero runs by itself, as the size of its result depends on elements"
    ):
        loaded.save("x.dvt")
    for x in ([1, 0, 2], [1, 0, 2, 0, 4], [0, 0], []):
        x = np.array(x, "float32")
        expect_same(loaded(x), [(2 * x[x != 0]) ** 2])
    assert repr(loaded).count("1 program") == 2


def test_a_region_of_another_size_after_a_segment():
    text = """g (float[b] x, int64[1] k) => (float[n] y) {
      u, i, j, c = Unique <sorted = 1> (x)
      y, w = TopK (u, k)
    }"""
    loaded = dovetail.onnx.load(model(text))
    x = np.array([3, 1, 3, 2, 1], "float32")
    for k in (1, 2, 3):
        expect_same(loaded(x, np.array([k])), [[3, 2, 1][:k]])


def test_limits_of_variants_run_node_by_node():
    loaded = dovetail.onnx.load(model(FOUND), limits=dovetail.onnx.Limits(variants=0))
    expect_same(loaded(np.array([1, 0, 2], "float32")), [[4, 16]])


def test_strings_run_on_the_host():
    text = "g (string[n] a, string[n] b) => (string[n] c, bool[n] e) { c = StringConcat (a, b) e = Equal (a, b) }"
    loaded = dovetail.onnx.load(model(text))
    a, b = np.array(["x", "y"], object), np.array(["z", "y"], object)
    c, e = loaded(a, b)
    assert c.tolist() == ["xz", "yy"]
    assert np.asarray(e).tolist() == [False, True]
    with pytest.raises(ValueError, match="no single program"):
        _ = loaded.program


def test_threads_share_a_model():
    """Programs are made by several threads at once, for other values in each."""
    from concurrent.futures import ThreadPoolExecutor

    loaded, found = dovetail.onnx.load(model(TOP)), dovetail.onnx.load(model(FOUND))
    x = np.arange(24, dtype="float32") % 7

    def call(k):
        made = np.asarray(loaded(x, np.array([k]))[0])
        return np.array_equal(made, np.sort(x)[::-1][:k]) and np.array_equal(
            np.asarray(found(x[:k])[0]), (2 * x[:k][x[:k] != 0]) ** 2
        )

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, [k % 12 for k in range(48)]))


# ---- control flow ------------------------------------------------------------------------------------------------


def branches(then, other):
    return model(f"""g (float[b] x, bool c) => (float[n] z) {{
      z = If (c) <
        then_branch = t () => (float[n] p) {{ p = {then} }}, else_branch = e () => (float[n] q) {{ q = {other} }}
      >
    }}""")


def test_if_is_a_node_where_its_branches_have_one_type():
    loaded = dovetail.onnx.load(branches("Add (x, x)", "Mul (x, x)"))
    assert "cond(" in repr(loaded.program)
    x = np.array([1, 0, 3], "float32")
    expect_same(loaded(x, np.array(True)), [x + x])
    expect_same(loaded(x, np.array(False)), [x * x])


def test_if_is_eager_where_its_branches_differ():
    loaded = dovetail.onnx.load(branches("Add (x, x)", "Concat <axis = 0> (x, x)"))
    x = np.array([1, 0, 3], "float32")
    expect_same(loaded(x, np.array(True)), [x + x])
    expect_same(loaded(x, np.array(False)), [[1, 0, 3, 1, 0, 3]])
    assert "If: eager" in repr(loaded)


@pytest.mark.parametrize("rounds", [0, 1, 5])
def test_a_loop_with_rounds_from_an_input(rounds):
    text = """g (float[b] x, int64 n) => (float[b] z) {
      go = Constant <value = bool {1}> ()
      z = Loop (n, go, x) <body = b (int64 i, bool c, float[b] s) => (bool d, float[b] t) {
        d = Identity (c)
        t = Add (s, x)
      }>
    }"""
    loaded = dovetail.onnx.load(model(text))
    assert "while_loop(" in repr(loaded.program)
    x = np.array([1, 2], "float32")
    expect_same(loaded(x, np.array(rounds)), [x * (rounds + 1)])


def test_a_loop_over_a_size_is_a_scan():
    text = """g (float[t, 3] x) => (float[3] z, float[t, 3] ys) {
      size = Shape <start = 0, end = 1> (x)
      axes = Constant <value_ints = [0]> ()
      n = Squeeze (size, axes)
      go = Constant <value = bool {1}> ()
      first = ReduceMin <keepdims = 0> (x, axes)
      z, ys = Loop (n, go, first) <body = b (int64 i, bool c, float[3] s) => (bool d, float[3] t, float[3] o) {
        d = Identity (c)
        row = Gather (x, i)
        t = Add (s, row)
        o = Identity (t)
      }>
    }"""
    loaded = dovetail.onnx.load(model(text))
    assert "scan(" in repr(loaded.program)
    for n in (1, 4):
        x = np.random.default_rng(n).normal(size=(n, 3)).astype("float32")
        sums = x.min(0) + np.cumsum(x, 0)
        expect_same(loaded(x), [sums[-1], sums])


def test_functions_of_the_model():
    head = '<ir_version: 9, opset_import: ["" : 21, "acme" : 1]>\n'
    text = """g (float[n] x) => (float[n] y) { y = acme.twice <by = 3.0> (x) }
    <domain: "acme", opset_import: ["" : 21]>
    twice <by> (a) => (b) { k = Constant <value_float: float = @by> () b = Mul (a, k) }"""
    expect_same(dovetail.onnx.load(model(text, head))(np.array([1, 2], "float32")), [[3, 6]])


@pytest.mark.parametrize("opset", [1, 6, 7, 12, 13, 28])
def test_old_opsets(opset):
    """softmax over all axes from 1 on before opset 13; broadcasting by an attribute before 7."""
    head = f'<ir_version: 3, opset_import: ["" : {opset}]>\n'
    loaded = dovetail.onnx.load(model("g (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax (x) }", head))
    x = np.random.default_rng(opset).normal(size=(2, 3, 4)).astype("float32")
    rows = np.exp(x.astype("float64"))
    expect_same(loaded(x), [rows / rows.sum(-1 if opset >= 13 else (1, 2), keepdims=True)])
    if opset < 7:
        text = "g (float[2, 3, 4] x, float[3] b) => (float[2, 3, 4] y) { y = Add <broadcast = 1, axis = 1> (x, b) }"
        b = np.array([1, 2, 3], "float32")
        expect_same(dovetail.onnx.load(model(text, head))(x, b), [x + b[:, None]])


def test_constants_are_folded_but_never_to_what_is_larger():
    weight = np.arange(4096, dtype="int8").reshape(64, 64)
    proto = model(
        "g (float[n, 64] x) => (float[n, 64] y) <int8[64, 64] w> "
        "{ f = Cast <to = 1> (w) t = Transpose (f) y = MatMul (x, t) }"
    )
    del proto.graph.initializer[:]
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    text = repr(dovetail.onnx.load(proto).program)
    assert "int8[64, 64] is constant" in text
    assert "astype" in text
    proto = model(
        "g (float[n, 4] x) => (float[n, 4] y) <float[4] w = {1, 2, 3, 4}> "
        "{ f = Sqrt (w) e = Exp (f) y = Mul (x, e) }"
    )
    assert repr(dovetail.onnx.load(proto).program).count(" = ") == 1


@pytest.mark.parametrize(("op", "gates"), [("LSTM", 4), ("GRU", 3)])
def test_gates_of_constant_weights_are_put_in_order_once(op, gates):
    """By the import, not by each run; and nothing is kept twice."""
    draw = np.random.default_rng(gates)
    shapes = {"W": (2, gates * 5, 3), "R": (2, gates * 5, 5), "B": (2, gates * 10)}
    weights = {name: draw.normal(size=shape).astype("float32") for name, shape in shapes.items()}
    how = 'hidden_size = 5, direction = "bidirectional"' + (", linear_before_reset = 1" if op == "GRU" else "")
    proto = model(f"g (float[t, n, 3] x) => (float[t, 2, n, 5] y) {{ y = {op} <{how}> (x, W, R, B) }}")
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(w, name) for name, w in weights.items())
    loaded = dovetail.onnx.load(proto)
    program = json.loads(loaded.program.text())
    assert [node["op"] for node in program["nodes"]].count("concat") == 1  # of both directions' results
    kept = sum(np.prod(t["shape"]) for t in program["tensors"].values())
    assert kept <= sum(w.size for w in weights.values())
    x = draw.normal(size=(7, 2, 3)).astype("float32")
    np.testing.assert_allclose(np.asarray(loaded(x)[0]), reference(proto, x=x)[0], rtol=1e-4, atol=1e-5)
