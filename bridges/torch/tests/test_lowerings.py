"""Each lowering against torch on the CPU: the samples of torch's op_db, through AOTAutograd's decompositions.

A graph runs on arrays, node by node. No trace and no program is made: test_compile.py and test_exported.py do that.
"""

import operator

import dovetail as dt
import numpy as np
import pytest
import torch
import torch.utils._pytree as pytree
from dovetail_torch.compile import decompositions
from dovetail_torch.compile.graph import Lowering, is_of_tensors, needed_nodes
from dovetail_torch.compile.table import find
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db

SEED = 20261128
DECOMPOSITIONS = decompositions.for_aot()
TOLERANCES = {torch.float32: 1e-4, torch.float64: 1e-9}
OTHERS = ("sparse.", "linalg.", "fft.", "jiterator_", "_native_batch_norm_legit", "torch.ops.")
UNDEFINED = {  # elements that torch leaves open: memory as it was, or the order of equal ones
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "topk",
}  # fmt: skip
NOT_OF_A_CLONE = {"partial_views"}  # samples that reach beyond their own elements
OPS = [
    op
    for op in op_db
    if not op.name.startswith(OTHERS) and op.name not in UNDEFINED and op.variant_test_name not in NOT_OF_A_CLONE
]


class Left(Exception):
    """Why a graph is none of lowerings."""


def ran(graph, tensors):
    """The results of a graph by its lowerings. Raises Left where torch would run a node."""
    nodes = needed_nodes(graph)
    calls = [n for n in graph.nodes if n.op == "call_function" and (n in nodes or _writes(n))]
    left = {str(n.target) for n in calls if n.target is not operator.getitem and not find(n.target)}
    if left or any(n.op == "get_attr" for n in nodes):
        raise Left(", ".join(sorted(left)) or "a constant")
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    lowering = Lowering({n: dt.from_dlpack(t) for n, t in zip(placeholders, tensors)})
    try:
        problems = lowering.run([n for n in graph.nodes if n in nodes and is_of_tensors(n)])
    except (
        TypeError,
        ValueError,
        IndexError,
    ) as error:  # a rule refuses what torch takes
        raise Left(str(error)) from error
    if problems:
        raise Left("; ".join(f"{p.op}: {p.reason}" for p in problems))
    (output,) = next(n for n in graph.nodes if n.op == "output").args
    return [lowering.argument(x) for x in pytree.tree_leaves(output)]


def _writes(node):
    return getattr(getattr(node.target, "_schema", None), "is_mutable", False)


def graph_of(op, sample):
    """(graph, tensors, torch's results) of a call with a sample."""
    leaves, tree = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
    tensors = [leaves[i].detach() for i in places]

    def call(*given):
        now = list(leaves)
        for i, x in zip(places, given):
            now[i] = x
        x, args, kwargs = pytree.tree_unflatten(now, tree)
        return op(x, *args, **kwargs)

    expected = pytree.tree_leaves(call(*(t.clone() for t in tensors)))
    try:
        made = make_fx(torch.func.functionalize(call), decomposition_table=DECOMPOSITIONS, tracing_mode="fake")
        return made(*tensors).graph, tensors, expected
    except (RuntimeError, AssertionError, NotImplementedError) as error:  # no graph without elements
        raise Left(f"{type(error).__name__} of torch") from error


def expect_equal(got, expected, dtype):
    for g, e in zip(got, expected, strict=True):
        if not isinstance(e, torch.Tensor):
            assert g == e
            continue
        assert g.dtype == str(e.dtype).removeprefix("torch.")
        e = e.detach().resolve_conj().resolve_neg()
        if e.dtype == torch.bfloat16:  # NumPy has no such dtype
            e, g = e.float(), dt.astype(g, "float32")
        e, g = e.numpy(), np.asarray(g)
        assert g.shape == e.shape and g.dtype == e.dtype
        if e.dtype.kind not in "fc":
            np.testing.assert_array_equal(g, e)
            continue
        tolerance = TOLERANCES.get(dtype, 1e-4)
        largest = max(1.0, np.abs(e[np.isfinite(e)]).max(initial=0))
        np.testing.assert_allclose(g, e, rtol=tolerance, atol=tolerance * largest)


@pytest.mark.parametrize(
    ("name", "n_samples"),
    [
        ("float32", 3),
        pytest.param("float32", 12, marks=pytest.mark.slow),
        pytest.param("int64", 6, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("op", OPS, ids=lambda op: f"{op.name}.{op.variant_test_name}".rstrip("."))
def test_a_lowering_computes_what_torch_does(op, name, n_samples):
    dtype = getattr(torch, name)
    if dtype not in op.supported_dtypes("cpu"):
        pytest.skip(f"torch has no {op.name} of {dtype}")
    torch.manual_seed(SEED)
    samples = list(op.sample_inputs("cpu", dtype))
    samples = samples[:: max(1, len(samples) // n_samples)][:n_samples]
    left = []
    for sample in samples:
        try:
            graph, tensors, expected = graph_of(op.op, sample)
            got = ran(graph, tensors)
        except Left as why:
            left.append(str(why))
            continue
        expect_equal(got, expected, dtype)
    if len(left) == len(samples):
        pytest.skip(f"torch runs it: {left[0] if left else 'no samples'}")


def test_floor_division_of_floats_is_exact():
    class Model(torch.nn.Module):
        def forward(self, x, y):
            return x // 0.1, x.div(y, rounding_mode="floor"), x // 0.0

    x = torch.tensor([1.0, 5.0, -5.0, 0.3, 0.0, float("inf"), -1e-3])
    y = torch.tensor([0.1, -0.1, 0.1, float("inf"), 0.3, 1.0, float("inf")])
    program = dt.from_exported(torch.export.export(Model(), (x, y)))
    got = program(dt.from_dlpack(x), dt.from_dlpack(y))
    for a, b in zip(got, Model()(x, y), strict=True):
        np.testing.assert_array_equal(np.asarray(a), b.numpy())
