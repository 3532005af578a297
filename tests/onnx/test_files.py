"""Files of models: external data, versions, errors, and files made to do harm."""

import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
import dovetail.onnx  # noqa: E402
from dovetail.onnx import Limits, load  # noqa: E402

HEAD = '<ir_version: 9, opset_import: ["" : 21]>\n'


def model(text, head=HEAD):
    return onnx.parser.parse_model(head + text)


def with_external(location, **more):
    data = np.arange(4, dtype="float32")
    proto = model("g (float[4] x) => (float[4] y) { y = Add (x, w) }")
    t = proto.graph.initializer.add()
    t.name, t.data_type, t.data_location = "w", 1, onnx.TensorProto.EXTERNAL
    t.dims.extend(data.shape)
    for key, value in ({"location": location} | {k: str(v) for k, v in more.items()}).items():
        entry = t.external_data.add()
        entry.key, entry.value = key, value
    return proto


def saved(folder, proto, name="m.onnx"):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(proto.SerializeToString())
    return path


X = np.ones(4, "float32")


# ---- external data -----------------------------------------------------------------------------------------------


def test_external_data_in_the_folder(tmp_path):
    raw = b"skip" + np.arange(4, dtype="<f4").tobytes()
    (tmp_path / "data").mkdir()
    (tmp_path / "data/w.bin").write_bytes(raw)
    path = saved(tmp_path, with_external("data/w.bin", offset=4, length=16))
    assert np.array_equal(load(path)(X)[0], [1, 2, 3, 4])
    assert np.array_equal(load(str(path))(X)[0], [1, 2, 3, 4])


@pytest.mark.parametrize("location", ["../w.bin", "data/../../w.bin", "/etc/hostname", "..\\w.bin", ""])
def test_external_data_outside_of_the_folder(tmp_path, location):
    (tmp_path / "w.bin").write_bytes(bytes(16))
    path = saved(tmp_path / "model", with_external(location))
    with pytest.raises(ValueError, match="leaves the model's folder; put it next to the model"):
        load(path)
    assert any("leaves the model's folder" in p for p in dovetail.onnx.check(path).problems)


def test_a_link_that_leaves_the_folder(tmp_path):
    (tmp_path / "secret").write_bytes(bytes(16))
    path = saved(tmp_path / "model", with_external("w.bin"))
    os.symlink(tmp_path / "secret", tmp_path / "model/w.bin")
    with pytest.raises(ValueError, match=r"'w.bin' is a link that leaves the model's folder"):
        load(path)
    (tmp_path / "model/sub").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="is a link that leaves the model's folder"):
        load(saved(tmp_path / "model", with_external("sub/secret")))


def test_the_cache_of_hugging_face(tmp_path):
    """Model and data are links to files of one folder."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots/1234"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    (blobs / "aa").write_bytes(with_external("w.bin").SerializeToString())
    (blobs / "bb").write_bytes(np.arange(4, dtype="<f4").tobytes())
    (snapshot / "m.onnx").symlink_to("../../blobs/aa")
    (snapshot / "w.bin").symlink_to("../../blobs/bb")
    assert np.array_equal(load(snapshot / "m.onnx")(X)[0], [1, 2, 3, 4])


def test_external_data_that_does_not_fit(tmp_path):
    (tmp_path / "w.bin").write_bytes(bytes(12))
    with pytest.raises(ValueError, match="external data has 12 bytes, expected 16 for float32 of shape"):
        load(saved(tmp_path, with_external("w.bin")))
    with pytest.raises(ValueError, match=r"from byte 8 to 24, but 'w.bin' has 12 bytes; copy the whole file"):
        load(saved(tmp_path, with_external("w.bin", offset=8, length=16)))
    with pytest.raises(ValueError, match="expected integers"):
        load(saved(tmp_path, with_external("w.bin", offset="x")))
    with pytest.raises(ValueError, match=r"offset|from byte"):
        load(saved(tmp_path, with_external("w.bin", offset=-4, length=16)))
    with pytest.raises(FileNotFoundError, match=r"'v.bin' is not in .*; copy it there with the model"):
        load(saved(tmp_path, with_external("v.bin")))
    with pytest.raises(ValueError, match="of a model that is no file; load it from its path"):
        load(with_external("w.bin"))


# ---- errors ------------------------------------------------------------------------------------------------------


def test_what_is_no_model(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"\x80\x81not a model")
    with pytest.raises(ValueError, match=r"\[m.onnx\] not an ONNX model: it is no protobuf"):
        load(tmp_path / "m.onnx")
    with pytest.raises(ValueError, match="it has no graph or no opset"):
        load(b"")
    with pytest.raises(TypeError, match=r"got int, expected a path, bytes or an onnx.ModelProto"):
        load(3)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.onnx")


def test_an_opset_of_tomorrow():
    proto = model("g (float[n] x) => (float[n] y) { y = Abs (x) }", '<ir_version: 9, opset_import: ["" : 99]>\n')
    with pytest.raises(
        ValueError, match=r"opset 99 of ai.onnx is newer than 28, .*pip install -U dovetail-runtime"
    ):
        load(proto)


def test_an_error_names_the_node():
    proto = model("g (float[2, 3] x, float[4] b) => (float[2, 3] y) { [first] y = Add (x, b) }")
    with pytest.raises(ValueError, match=r"\[model\] node 0 'first' \(Add\): .*shapes"):
        load(proto)


def test_sizes_that_do_not_fit_are_found_at_the_call():
    loaded = load(model("g (float[a] x, float[b] y) => (float[c] z) { z = Add (x, y) }"))
    assert np.array_equal(loaded(np.ones(3, "float32"), np.ones(3, "float32"))[0], [2, 2, 2])
    assert np.array_equal(loaded(np.ones(3, "float32"), np.ones(1, "float32"))[0], [2, 2, 2])
    with pytest.raises(ValueError, match=r"[Aa]dd.*shapes \(3,\) and \(2,\)"):
        loaded(np.ones(3, "float32"), np.ones(2, "float32"))


def test_all_missing_ops_are_named_at_once():
    head = '<ir_version: 9, opset_import: ["" : 21, "com.acme" : 1, "com.foo" : 2]>\n'
    proto = model("g (float[n] x) => (float[n] z) { y = com.acme.Foo (x) z = com.foo.Bar (y) }", head)
    with pytest.raises(
        NotImplementedError, match=r"2 ops have no handler: com.acme.Foo-1 \(1 times\), com.foo.Bar-2"
    ):
        load(proto)


def test_unknown_dtypes():
    proto = model("g (float[n] x) => (float[n] y) { y = Add (x, w) }")
    t = proto.graph.initializer.add()
    t.name, t.data_type = "w", 99
    with pytest.raises(NotImplementedError, match="its dtype 99 is not one of dovetail's"):
        load(proto)


# ---- files that do harm ------------------------------------------------------------------------------------------


def loop(rounds, body="Add (s, s)"):
    return model(f"""g (float[2] x) => (float[2] z) {{
      n = Constant <value_int = {rounds}> ()
      go = Constant <value = bool {{1}}> ()
      z = Loop (n, go, x) <
        body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {{ d = Identity (c) t = {body} }}
      >
    }}""")


def test_a_loop_of_many_rounds_is_not_unrolled():
    begin = time.monotonic()
    loaded = load(loop(10**9))
    assert "scan(" in repr(loaded.program)
    assert time.monotonic() - begin < 20


def test_an_endless_loop_in_an_import():
    text = """g (float[2] x) => (float[2] z) {
      go = Constant <value = bool {1}> ()
      z, s = Loop (, go, x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t, float[2] o) {
        d = Identity (c) t = Add (s, s) o = Identity (t)
      }>
    }"""
    with pytest.raises(ValueError, match=r"visits more than 500 nodes, loops unrolled; allow more with limits"):
        load(model(text), limits=Limits(nodes=500))(np.ones(2, "float32"))


def test_an_import_that_takes_long():
    with pytest.raises(ValueError, match="the import takes longer than"):
        load(loop(3), limits=Limits(seconds=-1.0))


def test_subgraphs_within_subgraphs():
    graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["x"], ["y"])], "g", [],
                                   [onnx.helper.make_tensor_value_info("y", 1, [2])])  # fmt: skip
    for _ in range(40):
        c = onnx.helper.make_node("Constant", [], ["c"], value=onnx.helper.make_tensor("c", 9, [], [True]))
        node = onnx.helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=graph)
        small = onnx.helper.make_graph([c, node], "g", [], [onnx.helper.make_tensor_value_info("y", 1, [2])])
        graph = small
        if graph.ByteSize() > 1 << 20:
            break
    graph.input.append(onnx.helper.make_tensor_value_info("x", 1, [2]))
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)])
    with pytest.raises(ValueError, match=r"nested more than 8 deep; .*Limits\(depth=16\)"):
        load(proto, limits=Limits(depth=8))


def test_functions_that_call_themselves():
    head = '<ir_version: 9, opset_import: ["" : 21, "acme" : 1]>\n'
    text = """g (float[n] x) => (float[n] y) { y = acme.f (x) }
    <domain: "acme", opset_import: ["" : 21, "acme" : 1]>
    f (a) => (b) { b = acme.f (a) }"""
    with pytest.raises(ValueError, match="nested more than 32 deep"):
        load(model(text, head))
    assert dovetail.onnx.check(model(text, head)).ok  # ends, too


def test_constants_that_would_fill_memory():
    text = """g (float[1] x) => (float[1] y) {
      sizes = Constant <value_ints = [100000, 100000, 100]> ()
      huge = ConstantOfShape (sizes)
      total = ReduceSum <keepdims = 0> (huge)
      y = Add (x, total)
    }"""
    loaded = load(model(text))  # the elements are not made
    assert "full(" in repr(loaded.program)


@pytest.mark.parametrize("dims, raw", [([-1], b""), ([2**62, 2**62], b""), ([4], b"123"), ([2**40], bytes(4))])
def test_tensors_that_do_not_fit(dims, raw):
    proto = model("g (float[n] x) => (float[n] y) { y = Add (x, w) }")
    proto.graph.initializer.append(onnx.TensorProto(name="w", data_type=1, dims=dims, raw_data=raw))
    with pytest.raises(ValueError, match=r"\[model\] tensor 'w'"):
        load(proto)


def test_names_that_no_node_makes():
    proto = model("g (float[n] x) => (float[n] y) { y = Add (x, x) }")
    proto.graph.node[0].input[1] = "nothing"
    with pytest.raises(ValueError, match=r"^\[model\] .*value 'nothing' is used before a node makes it"):
        load(proto)
    proto = model("g (float[n] x) => (float[n] y) { z = Add (x, x) }")
    with pytest.raises(ValueError, match=r"^\[model\] output 'y': no node makes it; export the model again"):
        load(proto)
    assert dovetail.onnx.check(proto).problems == ("output 'y': no node makes it",)


def twice(part):
    proto = model("g (float[n] x) => (float[n] y) <float[1] w = {1}> { a = Add (x, w) y = Abs (a) }")
    items = getattr(proto.graph, part)
    items.append(items[0])
    return proto


@pytest.mark.parametrize(
    "proto, why",
    [
        (twice("input"), "input 'x' is there twice"),
        (twice("output"), "output 'y' is there twice"),
        (twice("initializer"), "initializer 'w' is there twice"),
        (twice("node"), "value 'a' is made twice: by node 0 Add and by node 2 Add"),
        (model("g (float[n] x) => (float[n] y) { x = Abs (x) y = Abs (x) }"),
         "value 'x' is made twice: by an input or initializer and by node 0 Abs"),
        (model("g (float[n] x) => (float[n] y) { y, y = Split (x) }"),
         "value 'y' is made twice: by node 0 Split and by node 0 Split"),
        (model("""g (float[n] x, bool c) => (float[n] y) {
           y = If (c) <then_branch = t () => (float[n] p) { p = Abs (x) p = Neg (x) },
                       else_branch = e () => (float[n] q) { q = Abs (x) }> }"""),
         "in the subgraph 't': value 'p' is made twice"),
        (model("""g (float[n] x) => (float[n] y) { y = acme.f (x) }
           <domain: "acme", opset_import: ["" : 21]> f (a) => (b) { b = Abs (a) b = Neg (a) }""",
               '<ir_version: 9, opset_import: ["" : 21, "acme" : 1]>\n'),
         "in the function 'f': value 'b' is made twice"),
    ],
)  # fmt: skip
def test_names_that_are_there_twice(proto, why):
    with pytest.raises(ValueError, match=r"^\[model\] " + re.escape(why) + r".*; export the model again$"):
        load(proto)
    assert any(problem.startswith(why) for problem in dovetail.onnx.check(proto).problems)


def test_a_name_that_is_no_text():
    raw = model("g (float[n] x) => (float[n] y) { y = Abs (x) }").SerializeToString()
    with pytest.raises(ValueError, match=r"^\[model\] node 0: a name: b'\\xffbs' is no text in UTF-8"):
        load(raw.replace(b"Abs", b"\xffbs"))
    raw = model("g (float[size] x) => (float[size] y) { y = Abs (x) }").SerializeToString()
    with pytest.raises(ValueError, match=r"initializer or size: b'\\xffize' is no text in UTF-8"):
        load(raw.replace(b"size", b"\xffize"))


def test_a_definition_that_cannot_be_made():
    text = """g (float[1, 1, 2, 4] q, float[1, 1, 2, 4] k, float[1, 1, 2, 4] v) => (float[1, 1, 2, 4] y) {
      y = ai.onnx.preview.FlexAttention <score_mod = f (float[a,b,c,d] s) => (float[a,b,c,d] t) <float c = {2}>
        { t = Mul (s, c) }> (q, k, v)
    }"""
    proto = model(text, '<ir_version: 13, opset_import: ["" : 26, "ai.onnx.preview" : 1]>\n')
    x = np.ones((1, 1, 2, 4), "float32")
    assert np.array_equal(load(proto)(x, x, x)[0], x)
    proto.graph.node[0].attribute[0].g.initializer[0].name = "\u202e"
    with pytest.raises(
        ValueError, match=r"^\[model\] node 0 'y' \(ai.onnx.preview.FlexAttention\): ONNX's def"
    ) as e:
        load(proto)
    assert "\u202e" not in str(e.value) and "\n" not in str(e.value)


def test_names_of_ops_cannot_move_the_cursor():
    proto = model("g (float[n] x) => (float[n] y) { y = com.acme.Foo (x) }",
                  '<ir_version: 9, opset_import: ["" : 21, "com.acme" : 1]>\n')  # fmt: skip
    proto.graph.node[0].op_type = "Fo\x1b[2Jo\u202eev\ni"
    spelled = r"com.acme.Fo\x1b[2Jo\u202eev\ni-1"
    with pytest.raises(NotImplementedError, match=re.escape(f"op {spelled} has no handler")):
        load(proto)
    assert spelled in str(dovetail.onnx.check(proto))
    proto.graph.node.append(onnx.helper.make_node("Ba\rr", ["x"], ["z"], domain="com.acme"))
    with pytest.raises(NotImplementedError, match=re.escape(f"com.acme.Ba\\rr-1 (1 times), {spelled}")):
        load(proto)


def test_an_error_outside_of_nodes_names_the_model():
    proto = model("g (float[n] x) => (float[n] y) { y = Abs (x) }")
    proto.graph.sparse_initializer.append(
        onnx.helper.make_sparse_tensor(
            onnx.helper.make_tensor("s", 1, [1], [1.0]), onnx.helper.make_tensor("i", 7, [1], [9]), [4]
        )
    )
    with pytest.raises(IndexError, match=r"^\[model\] .*out of bounds"):
        load(proto)


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize(
    "given, error, why",
    [
        ([1.0, 2.0], TypeError, "is list, expected an array of float32; numpy.asarray makes one"),
        (None, TypeError, "is NoneType, expected an array of float32"),
        (np.array(["a", "b"]), TypeError, "is string, expected float32"),
        (np.ones(2), TypeError, "is float64, expected float32; astype it"),
        (np.ones((2, 1), "float32"), ValueError, r"has shape (2, 1), expected ('n',)"),
        (np.array(["2026-01-01"], "datetime64[D]"), TypeError, ": "),
    ],
)
def test_an_input_of_a_wrong_type_is_named(given, error, why, by_name):
    loaded = load(model("g (float[n] x, float[n] z) => (float[n] y) { y = Add (x, z) }"))
    z = np.ones(2, "float32")
    with pytest.raises(error, match=r"^\[model\] input 'x'.*" + re.escape(why)):
        loaded(x=given, z=z) if by_name else loaded(given, z)


def test_inputs_that_are_sequences_and_strings():
    loaded = load(model("g (seq(float[n]) s) => (float[m] y) { y = ConcatFromSequence <axis = 0> (s) }"))
    assert np.array_equal(loaded([X, X[:2]])[0], np.ones(6))
    with pytest.raises(TypeError, match=r"^\[model\] input 's' is ndarray, expected a list of arrays"):
        loaded(X)
    loaded = load(model("g (string[n] a) => (string[m] y) { y = StringConcat (a, a) }"))
    with pytest.raises(TypeError, match=r"^\[model\] input 'a' is float32, expected string"):
        loaded(X)


def test_changed_files():
    """Of the suite, field by field: `python tests/onnx/mutate.py --cases 100000` changes more."""
    seed = int(os.environ.get("DOVETAIL_SEED", "20261128"))
    print("seed", seed)
    command = [sys.executable, Path(__file__).with_name("mutate.py"), "--cases", "400", "--seed", str(seed)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    print(ended.stdout)
    assert ended.returncode == 0, ended.stderr
    (counts,) = ended.stdout.splitlines()
    assert re.search(r"\b\d+ loaded", counts) and re.search(r"\b\d+ ValueError", counts)


def test_mutated_files(tmp_path):
    """Bytes of small models are changed: an import ends with a model or an error of Python."""
    seed = 20240817
    print("seed", seed)
    draw = random.Random(seed)
    texts = [
        "g (float[b, t] x) => (float[n] y) "
        "{ s = Shape (x) r = Flatten (x) q = Softmax (r) k, i = TopK (q, s) y = Relu (k) }",
        "g (float[4, 4] x) => (float[4, 4] y) <float[4] w = {1, 2, 3, 4}> { a = Add (x, w) y = MatMul (a, a) }",
    ]
    files = [model(text).SerializeToString() for text in texts] + [loop(4).SerializeToString()]
    limits = Limits(nodes=1000, seconds=5.0, folded_bytes=1 << 24)
    ends = {"loaded": 0}
    for _ in range(600):
        raw = bytearray(draw.choice(files))
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(raw))
            if draw.random() < 0.5:
                raw[at] = draw.choice([0, 1, 7, 0x7F, 0x80, 0xFF, draw.randrange(256)])
            else:
                raw[at : at + draw.randint(0, 3)] = bytes(draw.randrange(256) for _ in range(draw.randint(0, 3)))
        try:
            load(bytes(raw), limits=limits)
            ends["loaded"] += 1
        except (ValueError, TypeError, IndexError, NotImplementedError, MemoryError) as error:
            assert str(error).startswith("[model] "), error
            kind = re.sub(r"[^a-z ]", "", str(error))[:12]
            ends[kind] = ends.get(kind, 0) + 1
    assert 0 < ends["loaded"] < 600
