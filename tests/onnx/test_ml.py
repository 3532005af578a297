"""The domain ai.onnx.ml, against onnx.reference."""

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


def run(op, x, n_out=1, second=1, **attributes):
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
    return [np.asarray(v) for v in loaded(x)], ReferenceEvaluator(model).run(None, {"x": x}), loaded


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
