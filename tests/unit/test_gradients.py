"""The oracles of gradients against differences of the forward ops' oracles, along a random direction in float64.

Conformance compares every device with these oracles.
"""

from __future__ import annotations

import numpy as np
import pytest
from dovetail.schema import dtypes as dt
from dovetail.schema import registry

SEED = 20261127
STEP = 1e-5


@pytest.fixture
def rng():
    print("seed", SEED)
    return np.random.default_rng(SEED)


def first(result):
    return result[0] if isinstance(result, tuple) else result


def check(rng, forward, operands, attributes, *, backward=None, by=None, given=None):
    """The gradients `by` these operands, by default all; given: the arguments of backward beside grad and y."""
    forward, backward = registry[forward], registry[backward or f"{forward}_grad"]
    y = first(forward.expected(**operands, **attributes, like=dt.float64))
    grad = rng.standard_normal(y.shape)
    given = {"y": y, **(given or operands), **attributes, "grad": grad}
    known = {p.name for p in backward.params}
    results = backward.expected(**{n: a for n, a in given.items() if n in known}, like=dt.float64)
    for name, result in zip(by or operands, results if isinstance(results, tuple) else (results,), strict=True):
        along = rng.standard_normal(operands[name].shape)
        ends = (
            first(forward.expected(**operands | {name: operands[name] + h * along}, **attributes, like=dt.float64))
            for h in (STEP, -STEP)
        )
        difference = np.sum(grad * np.subtract(*ends)) / (2 * STEP)
        assert np.sum(result * along) == pytest.approx(difference, rel=1e-6, abs=1e-6), name


@pytest.mark.parametrize("name, how", [("silu", {}), *(("gelu", {"approximate": a}) for a in ("none", "tanh"))])
def test_activations(name, how, rng):
    check(rng, name, {"x": rng.uniform(-6, 6, 400)}, how)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax(name, axis, rng):
    check(rng, name, {"x": rng.standard_normal((4, 5, 6))}, {"axis": axis})


@pytest.mark.parametrize("shape", [(5,), (4, 5)])
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_normalisation_of_rows(name, shape, rng):
    operands = {"x": rng.standard_normal((3, 4, 5)) + 2, "weight": rng.standard_normal(shape)}
    if name == "layer_norm":
        operands["bias"] = rng.standard_normal(shape)
    check(rng, name, operands, {"normalized_shape": shape, "eps": 0.01})


def test_normalisation_of_a_batch(rng):
    vectors = {name: rng.standard_normal(3) for name in ("weight", "bias")}
    check(rng, "batch_norm_train", {"x": rng.standard_normal((6, 3, 4)), **vectors}, {"eps": 0.01})


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("smoothing", [0.0, 0.125])
def test_cross_entropy(reduction, smoothing, rng):
    how = {"target": np.array([[1, -100, 0], [4, 2, 2]]), "reduction": reduction, "label_smoothing": smoothing}
    check(rng, "cross_entropy", {"x": rng.standard_normal((2, 5, 3))}, how)


@pytest.mark.parametrize(
    "how", [{}, {"stride": 2, "padding": 1}, {"dilation": 2}, {"stride": (3, 2), "padding": (2, 0)}], ids=str
)
@pytest.mark.parametrize("groups", [1, 2])
def test_convolution(how, groups, rng):
    x, weight = rng.standard_normal((2, 4, 9, 8)), rng.standard_normal((6, 4 // groups, 3, 2))
    operands, how = {"x": x, "weight": weight}, {**how, "groups": groups}
    given = {**operands, "input_size": x.shape, "weight_size": weight.shape}
    check(rng, "conv2d", operands, how, backward="conv_grad_input", by=("x",), given=given)
    check(rng, "conv2d", operands, how, backward="conv_grad_weight", by=("weight",), given=given)


@pytest.mark.parametrize(
    "how", [{}, {"stride": 2, "padding": 1}, {"stride": 1}, {"stride": (4, 2), "padding": (0, 1)}], ids=str
)
def test_pools(how, rng):
    x, how = rng.standard_normal((2, 3, 9, 8)), {"kernel_size": 3, **how}
    check(rng, "max_pool2d", {"x": x}, how, backward="max_pool_grad")
    for count in (True, False):
        whole, given = {**how, "count_include_pad": count}, {"input_size": x.shape}
        check(rng, "avg_pool2d", {"x": x}, whole, backward="avg_pool_grad", given=given)


MASK = np.random.default_rng(SEED).standard_normal((9, 7))


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"is_causal": True},
        {"scale": 0.75},
        {"enable_gqa": True},
        {"dropout_p": 0.25, "dropout_key": np.array([1, 2, 3, 4], np.uint32)},
        {"attn_mask": MASK < 1},
        {"attn_mask": MASK},
    ],
    ids=lambda how: "_".join(how),
)
def test_attention(how, rng):
    heads = 2 if "enable_gqa" in how else 4
    shapes = {"query": (2, 4, 9, 8), "key": (2, heads, 7, 8), "value": (2, heads, 7, 5)}
    operands = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    forward = registry["scaled_dot_product_attention_with_logsumexp"]
    out, logsumexp = forward.expected(**operands, **how)
    given = {**operands, "out": out, "logsumexp": logsumexp}
    check(rng, forward.name, operands, how, backward="scaled_dot_product_attention_grad", given=given)
