"""The domain ai.onnx.ml, against onnx.reference and onnxruntime."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
import dovetail.onnx  # noqa: E402
from onnx import helper  # noqa: E402

SEED = 20261130
# Two trees: a split on feature 0, below it one on feature 1; and a single split on feature 1.
TREES = {
    "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1], "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
    "nodes_featureids": [0, 1, 0, 0, 0, 1, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "BRANCH_LT", "LEAF", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"],
    "nodes_values": [0.0, 0.5, 0.0, 0.0, 0.0, -0.2, 0.0, 0.0], "nodes_truenodeids": [1, 3, 0, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [2, 4, 0, 0, 0, 2, 0, 0], "nodes_missing_value_tracks_true": [0, 1, 0, 0, 0, 0, 0, 0],
}  # fmt: skip
LEAVES = ([0, 0, 0, 1, 1], [2, 3, 4, 1, 2])


def rows(n=16):
    print("seed", SEED)
    return np.random.default_rng(SEED).normal(size=(n, 2)).astype("float32")


def run(op, x, n_out=1, second=1, by="onnx.reference", **attributes):
    node = helper.make_node(op, ["x"], [f"y{i}" for i in range(n_out)], domain="ai.onnx.ml", **attributes)
    kinds = [1] if n_out == 1 else [second, 1]
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", 1, [None, x.shape[1]])],
        [helper.make_tensor_value_info(f"y{i}", kind, None) for i, kind in enumerate(kinds)],
    )  # fmt: skip
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    )
    from onnx.reference import ReferenceEvaluator

    loaded = dovetail.onnx.load(model)
    expected = by_onnxruntime(model, x) if by == "onnxruntime" else ReferenceEvaluator(model).run(None, {"x": x})
    return [np.asarray(v) for v in loaded(x)], expected, loaded


def by_onnxruntime(model, x):
    runtime = pytest.importorskip("onnxruntime")
    model.ir_version = 10
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE"])
def test_trees_of_a_regressor(aggregate):
    trees, nodes = LEAVES
    made, expected, loaded = run(
        "TreeEnsembleRegressor", rows(), **TREES, target_treeids=trees * 2, target_nodeids=nodes * 2,
        target_ids=[0] * 5 + [1] * 5, target_weights=[0.1 * i - 0.3 for i in range(10)], n_targets=2,
        base_values=[0.5, -0.5], aggregate_function=aggregate,
    )  # fmt: skip
    np.testing.assert_allclose(made[0], expected[0], rtol=1e-5, atol=1e-6)
    assert loaded.program is not None


def test_values_that_are_missing():
    trees, nodes = LEAVES
    x = np.array([[-1.0, np.nan], [np.nan, 0.0]], "float32")
    made, _, _ = run("TreeEnsembleRegressor", x, **TREES, target_treeids=trees, target_nodeids=nodes,
                     target_ids=[0] * 5, target_weights=[1.0, 2.0, 4.0, 8.0, 16.0], n_targets=1)  # fmt: skip
    assert made[0].tolist() == [[2 + 16], [1 + 8]]


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("binary", [False, True])
def test_trees_of_a_classifier(binary, post):
    trees, nodes = LEAVES
    made, expected, _ = run(
        "TreeEnsembleClassifier", rows(), 2, 7, **TREES, class_treeids=trees, class_nodeids=nodes,
        class_ids=[0] * 5 if binary else [0, 1, 2, 0, 2], class_weights=[0.1, 0.7, 0.3, 0.2, 0.6],
        classlabels_int64s=[4, 5] if binary else [4, 5, 6], post_transform=post,
    )  # fmt: skip
    np.testing.assert_array_equal(made[0], expected[0])
    np.testing.assert_allclose(made[1], expected[1], rtol=1e-5, atol=1e-6)


def test_nodes_in_a_circle():
    trees, nodes = LEAVES
    circle = TREES | {"nodes_truenodeids": [1, 0, 0, 0, 0, 1, 0, 0]}
    with pytest.raises(ValueError, match="its nodes form a circle"):
        run("TreeEnsembleRegressor", rows(), **circle, target_treeids=trees, target_nodeids=nodes,
            target_ids=[0] * 5, target_weights=[1.0] * 5, n_targets=1)  # fmt: skip


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(norm):
    made, expected, _ = run("Normalizer", np.abs(rows()), norm=norm)
    np.testing.assert_allclose(made[0], expected[0], rtol=1e-6)


def test_scaler_and_imputer():
    made, expected, _ = run("Scaler", rows(), offset=[1.0, 2.0], scale=[3.0, 0.5])
    np.testing.assert_allclose(made[0], expected[0], rtol=1e-6)
    x = rows()
    x[3, 1] = np.nan
    made, expected, _ = run("Imputer", x, imputed_value_floats=[7.0, 8.0], replaced_value_float=float("nan"))
    np.testing.assert_array_equal(made[0], expected[0])


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_linear_models(post):
    made, expected, _ = run("LinearRegressor", rows(), coefficients=[1.0, 2.0, -1.0, 0.5], intercepts=[0.1, 0.2],
                            targets=2, post_transform="NONE")  # fmt: skip
    np.testing.assert_allclose(made[0], expected[0], rtol=1e-5, atol=1e-6)
    made, expected, _ = run(
        "LinearClassifier", rows(), 2, 7, coefficients=[1.0, 2.0, -1.0, 0.5, 0.3, -2.0], intercepts=[0.1, 0.2, 0.3],
        classlabels_ints=[7, 8, 9], multi_class=1, post_transform=post,
    )  # fmt: skip
    np.testing.assert_array_equal(made[0], expected[0])
    np.testing.assert_allclose(made[1], expected[1], rtol=1e-5, atol=1e-6)


# ---- support vectors ---------------------------------------------------------------------------------------------


def machine(n, seed, kernel="RBF", **attributes):
    """A classifier of n classes with made-up support vectors, as attributes of a node."""
    rng = np.random.default_rng(seed)
    counts = [int(c) for c in rng.integers(1, 5, n)]
    pairs = n * (n - 1) // 2
    return {
        "kernel_type": kernel, "kernel_params": [0.4, 0.3, 2.0], "vectors_per_class": counts,
        "support_vectors": rng.normal(size=2 * sum(counts)).tolist(),
        "coefficients": rng.normal(size=(n - 1) * sum(counts)).tolist(), "rho": rng.normal(size=pairs).tolist(),
    } | attributes  # fmt: skip


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("probabilities", [False, True])
def test_support_vectors_of_a_classifier(n, kernel, probabilities):
    """By onnxruntime: onnx.reference couples the probabilities of three classes and more by a sum of all pairs."""
    pairs = n * (n - 1) // 2
    rng = np.random.default_rng(SEED)
    given = machine(n, SEED + n, kernel, classlabels_ints=[7 + i for i in range(n)])
    if probabilities:
        given |= {"prob_a": (-1 - rng.random(pairs)).tolist(), "prob_b": rng.normal(size=pairs).tolist()}
    made, expected, loaded = run("SVMClassifier", rows(24), 2, 7, "onnxruntime", **given)
    np.testing.assert_array_equal(made[0], expected[0])
    np.testing.assert_allclose(made[1], expected[1], rtol=1e-4, atol=1e-5)
    assert loaded.program is not None


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("n", [2, 3])
def test_scores_of_a_support_vector_classifier(n, post):
    given = machine(n, SEED + n, classlabels_ints=[3, 1, 2][:n], post_transform=post)
    made, expected, _ = run("SVMClassifier", rows(), 2, 7, **given)
    np.testing.assert_array_equal(made[0], expected[0])
    np.testing.assert_allclose(made[1], expected[1], rtol=1e-4, atol=1e-5)


def test_a_linear_support_vector_classifier():
    coefficients = np.random.default_rng(SEED).normal(size=6).tolist()
    made, expected, _ = run("SVMClassifier", rows(), 2, 7, coefficients=coefficients, rho=[0.25, 0.0, 0.0],
                            classlabels_ints=[0, 1, 2], kernel_type="LINEAR")  # fmt: skip
    np.testing.assert_array_equal(made[0], expected[0])
    np.testing.assert_allclose(made[1], expected[1], rtol=1e-5, atol=1e-6)


def test_probit_scores():
    from statistics import NormalDist

    x = np.random.default_rng(SEED).uniform(0.05, 0.4, (16, 2)).astype("float32")
    given = {"coefficients": [0.7, 1.1], "intercepts": [0.02]}
    made, expected, _ = run("LinearRegressor", x, by="onnxruntime", **given, post_transform="PROBIT")
    np.testing.assert_allclose(made[0], expected[0], rtol=1e-4, atol=1e-5)
    exact = np.vectorize(NormalDist().inv_cdf)(x.astype("float64") @ [[0.7], [1.1]] + 0.02)
    np.testing.assert_allclose(made[0], exact, atol=6e-3)  # Winitzki's formula has such errors


@pytest.mark.parametrize("vectors", [False, True])
def test_two_classes_of_positive_weights(vectors):
    """By onnxruntime: with support vectors the votes count, without them scores of 0.5 are the second class's.
    onnx.reference returns the second class for all votes.
    """
    given = machine(2, SEED, classlabels_ints=[5, 6]) | {"rho": [-0.4]}
    if not vectors:
        given = {"coefficients": [0.3, 0.9, 0.7, 0.1], "rho": [0.1], "classlabels_ints": [5, 6],
                 "kernel_type": "LINEAR", "kernel_params": [0.0, 0.0, 0.0]}  # fmt: skip
    given["coefficients"] = np.abs(given["coefficients"]).tolist()
    made, expected, _ = run("SVMClassifier", rows(), 2, 7, "onnxruntime", **given)
    assert set(made[0]) == {5, 6}
    np.testing.assert_array_equal(made[0], expected[0])
    np.testing.assert_allclose(made[1], expected[1], rtol=1e-4, atol=1e-5)


def test_names_of_classes():
    given = machine(3, SEED, classlabels_strings=["a", "b", "c"])
    made, expected, _ = run("SVMClassifier", rows(), 2, 8, "onnxruntime", **given)
    assert made[0].tolist() == expected[0].tolist() and len(set(expected[0])) > 1


# ---- maps --------------------------------------------------------------------------------------------------------

F32, I64, TEXT, F64 = (getattr(onnx.TensorProto, name) for name in ("FLOAT", "INT64", "STRING", "DOUBLE"))


def of_map(op, key, value, out, sequence=False, **attributes):
    """A model of one node whose input is a map, or a sequence of maps."""
    kind = helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, []))
    node = helper.make_node(op, ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    kind = helper.make_sequence_type_proto(kind) if sequence else kind
    graph = helper.make_graph(
        [node], "g", [helper.make_value_info("x", kind)], [helper.make_tensor_value_info("y", out, None)]
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def by_reference(model, x):
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(model).run(None, {"x": x})[0]


@pytest.mark.parametrize(
    "key, value, x",
    [
        (TEXT, F32, {"a": 4.0, "c": 8.5}), (TEXT, F64, {"z": 0.1}), (TEXT, I64, {"b": 2**60, "a": -1}),
        (I64, F32, {3: 1.5}), (I64, F64, {1: 1 / 3, 3: -2.0}), (I64, TEXT, {3: "three"}),
    ],
)  # fmt: skip
def test_map_in_the_order_of_a_vocabulary(key, value, x):
    words = {"string_vocabulary": ["a", "c", "b", "z"]} if key == TEXT else {"int64_vocabulary": [3, 7, 1]}
    model = of_map("DictVectorizer", key, value, value, **words)
    (made,) = dovetail.onnx.load(model)(x)
    np.testing.assert_array_equal(np.asarray(made), by_reference(model, x))
    if value != TEXT:
        assert made.dtype.name == {F32: "float32", F64: "float64", I64: "int64"}[value]


def test_maps_as_rows():
    model = of_map("DictVectorizer", TEXT, F32, F32, sequence=True, string_vocabulary=["a", "c", "b"])
    x = [{"a": 4.0}, {"b": 1.5, "c": 2.5}]
    (made,) = dovetail.onnx.load(model)(x)
    np.testing.assert_array_equal(np.asarray(made), by_reference(model, x))
    assert made.dtype.name == "float32"


def test_map_within_a_graph():
    """ZipMap's maps as rows again, with what is left out as 0, and a tensor's ops behind them."""
    nodes = [
        helper.make_node("ZipMap", ["x"], ["maps"], domain="ai.onnx.ml", classlabels_strings=["p", "q"]),
        helper.make_node("DictVectorizer", ["maps"], ["v"], domain="ai.onnx.ml", string_vocabulary=["q", "r", "p"]),
        helper.make_node("Add", ["v", "v"], ["y"]),
    ]  # fmt: skip
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", F32, ["n", 2])],
                              [helper.make_tensor_value_info("y", F32, None)])  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    loaded = dovetail.onnx.load(helper.make_model(graph, opset_imports=opsets))
    x = rows(3)
    (made,) = loaded(x)
    np.testing.assert_array_equal(np.asarray(made), np.stack([x[:, 1] * 2, x[:, 0] * 0, x[:, 0] * 2], axis=1))


@pytest.mark.parametrize("sparse", [{}, {"map_form": "SPARSE", "max_map": 5}])
@pytest.mark.parametrize("to, out", [("TO_FLOAT", F32), ("TO_INT64", I64)])
def test_map_in_the_order_of_its_keys(to, out, sparse):
    """By onnxruntime: onnx.reference lacks the op."""
    model = of_map("CastMap", I64, F32, out, cast_to=to, **sparse)
    x = {3: 1.5, 1: -2.75, 4: 7.0}
    expected = by_onnxruntime(model, x)[0]
    (made,) = dovetail.onnx.load(model)(x)
    np.testing.assert_array_equal(np.asarray(made), expected)
    assert np.asarray(made).dtype == expected.dtype


def test_texts_of_a_map():
    """By ONNX's text, as no other implementation takes them: in the order of keys, or at their keys."""
    x = {3: "1.5", 1: "-2", 4: "7"}
    for to, out, expected in (
        ("TO_FLOAT", F32, [-2.0, 1.5, 7.0]),
        ("TO_INT64", I64, [-2, 1, 7]),
        ("TO_STRING", TEXT, ["-2", "1.5", "7"]),
    ):
        (made,) = dovetail.onnx.load(of_map("CastMap", I64, TEXT, out, cast_to=to))(x)
        assert np.asarray(made).tolist() == [expected]
    sparse = of_map("CastMap", I64, TEXT, F32, map_form="SPARSE", max_map=6)
    assert np.asarray(dovetail.onnx.load(sparse)(x)[0]).tolist() == [[0, -2, 0, 1.5, 7, 0]]
    (made,) = dovetail.onnx.load(of_map("CastMap", I64, F32, TEXT, cast_to="TO_STRING"))({2: 0.5, 1: 3.0})
    assert made.tolist() == [["3.0", "0.5"]]


def test_maps_that_do_not_fit():
    vocabulary = dovetail.onnx.load(of_map("DictVectorizer", TEXT, F32, F32, string_vocabulary=["a"]))
    of = dovetail.onnx.load(of_map("DictVectorizer", TEXT, F32, F32, True, string_vocabulary=["a"]))
    with pytest.raises(ValueError, match=r"key 'b' is not in the vocabulary.*remove it"):
        vocabulary({"a": 1.0, "b": 2.0})
    with pytest.raises(TypeError, match="input 'x': got float, expected a dict"):
        of([1.0])
    with pytest.raises(TypeError, match="input 'x' is dict, expected a list of dicts"):
        of({"a": 1.0})
    with pytest.raises(TypeError, match="input 'x': got the key 1 in a map, expected string"):
        vocabulary({1: 1.0})
    with pytest.raises(TypeError, match="input 'x': got the value 'one' in a map, expected float32"):
        vocabulary({"a": "one"})
    with pytest.raises(ValueError, match="is no single program: input 'x' is a map, which is on the host"):
        _ = vocabulary.program
    cast = dovetail.onnx.load(of_map("CastMap", I64, F32, F32, map_form="SPARSE", max_map=3))
    for key in (3, -1):
        with pytest.raises(ValueError, match=f"got the key {key} in a map, expected 0 to 2"):
            cast({key: 1.0})


def test_ops_of_maps_are_there():
    assert dovetail.onnx.check(of_map("CastMap", I64, F32, F32)).ok
    assert dovetail.onnx.check(of_map("DictVectorizer", I64, F32, F32, int64_vocabulary=[1])).ok


def test_command_line_has_no_maps(tmp_path):
    from click.testing import CliRunner
    from dovetail.cli.app import dovetail as command

    onnx.save(of_map("CastMap", I64, F32, F32), tmp_path / "m.onnx")
    before = dovetail.fallback()  # the command sets it for its process
    try:
        result = CliRunner().invoke(command, ["run", str(tmp_path / "m.onnx"), "--device", "cpu", "--random", ""])
    finally:
        dovetail.fallback(before)
    assert result.exit_code == 1
    assert "input 'x' is a map, which no .npy file holds" in result.output
