"""ONNX Runtime, which runs a model of one node for each point. Weights are part of the model, as in a real one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dovetail.cli.comparison.kinds import POOL
from dovetail.cli.comparison.peers import Call, Contender, NoKernel
from dovetail.cli.comparison.points import Point

_IR = 11
Attributes = Callable[[Point], dict[str, Any]]


class Node(NamedTuple):
    name: str
    attributes: Attributes = lambda p: {}
    weights: tuple[int, ...] = ()  # positions of operands that are part of the model
    constants: Callable[[Point], list[Any]] = lambda p: []  # inputs after the operands
    order: tuple[int, ...] | None = None  # of the operands
    outputs: int = 1
    opset: int = 21  # newer versions of some nodes have no kernels yet


def _axes(p: Point) -> list[Any]:
    return [] if p.axis is None else [np.array([p.axis], np.int64)]


def _conv(p: Point) -> dict[str, Any]:
    kernel, stride, groups = p.shape[5:]
    return {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4, "group": groups}


def _reduction(name: str) -> Node:
    return Node(name, lambda p: {"keepdims": 0}, constants=_axes)


def _index(name: str) -> Node:
    def attributes(p: Point) -> dict[str, Any]:
        if p.axis is None:
            raise NoKernel
        return {"axis": p.axis, "keepdims": 0}

    return Node(name, attributes)


_WINDOW = {
    "kernel_shape": [POOL["kernel_size"]] * 2,
    "strides": [POOL["stride"]] * 2,
    "pads": [POOL["padding"]] * 4,
}
_NODES = {
    "negative": Node("Neg"),
    "multiply": Node("Mul"),
    "divide": Node("Div"),
    "subtract": Node("Sub"),
    "maximum": Node("Max"),
    "minimum": Node("Min"),
    "matmul": Node("MatMul"),
    "linear": Node("Gemm", lambda p: {"transB": 1}, weights=(1, 2)),
    "sdpa": Node("Attention", lambda p: {"is_causal": int(p.causal)}, opset=23),
    "conv2d": Node("Conv", _conv, weights=(1,)),
    "max_pool2d": Node("MaxPool", lambda p: _WINDOW),
    "softmax": Node("Softmax", lambda p: {"axis": p.along}),
    "log_softmax": Node("LogSoftmax", lambda p: {"axis": p.along}),
    "layer_norm": Node("LayerNormalization", weights=(1, 2)),
    "rms_norm": Node("RMSNormalization", weights=(1,), opset=23),
    "sum": _reduction("ReduceSum"),
    "mean": _reduction("ReduceMean"),
    "max": _reduction("ReduceMax"),
    "min": _reduction("ReduceMin"),
    "prod": _reduction("ReduceProd"),
    "argmax": _index("ArgMax"),
    "argmin": _index("ArgMin"),
    "cumulative_sum": Node("CumSum", constants=lambda p: [np.array(p.along, np.int64)]),
    "top_k": Node("TopK", lambda p: {"axis": p.along}, constants=lambda p: [np.array([p.k], np.int64)], outputs=2),
    "transpose": Node("Transpose", lambda p: {"perm": list(p.perm or ())}),
    "astype": Node("Cast", lambda p: {"to": _tensor_type(p.to or p.dtype)}),
    "embedding": Node("Gather", weights=(1,), order=(1, 0)),
    "take_along_axis": Node("GatherElements", lambda p: {"axis": p.along}),
    "concat": Node("Concat", lambda p: {"axis": p.axis or 0}),
    "normal": Node("RandomNormal", lambda p: {"shape": list(p.shape), "dtype": _tensor_type(p.dtype)}),
} | {
    name: Node(name.capitalize())
    for name in ("abs", "add", "ceil", "cos", "cosh", "erf", "exp", "floor", "gelu", "log", "pow", "reciprocal",
                 "relu", "sigmoid", "sin", "sinh", "softplus", "sqrt", "tan", "tanh", "where")
}  # fmt: skip


def _tensor_type(dtype: str) -> int:
    from onnx import TensorProto

    found = TensorProto.DataType.Value({"float32": "FLOAT", "float64": "DOUBLE"}.get(dtype, dtype.upper()))
    return int(found)


class OnnxRuntime(Contender):
    module = "onnxruntime"

    def __init__(self, threads: int, device: str | None):
        super().__init__(threads, device)
        self.options = self.library.SessionOptions()
        self.options.intra_op_num_threads, self.options.inter_op_num_threads = threads, 1
        self.options.log_severity_level = 4

    def call(self, point: Point, operands: Sequence[Any]) -> Call:
        node = _NODES.get(point.op)
        if node is None or "bfloat16" in (point.dtype, point.to):
            raise NoKernel  # its kernels for bfloat16 are not for CPUs
        model, feeds = _model(point, node, operands)
        try:
            session = self.library.InferenceSession(model, self.options, providers=["CPUExecutionProvider"])
        except Exception as error:
            if "NOT_IMPLEMENTED" in str(error):
                raise NoKernel from error
            raise
        return partial(session.run, None, feeds)


def _model(point: Point, node: Node, operands: Sequence[Any]) -> tuple[bytes, dict[str, Any]]:
    """The model, and its inputs by name."""
    from onnx import helper, numpy_helper

    order = node.order or range(len(operands))
    named = {f"x{i}": operands[i] for i in order}
    constants = {f"c{i}": value for i, value in enumerate(node.constants(point))}
    inside = {name for name in named if int(name[1:]) in node.weights} | constants.keys()
    outputs = [f"y{i}" for i in range(node.outputs)]
    feeds = {name: x for name, x in named.items() if name not in inside}
    graph = helper.make_graph(
        [helper.make_node(node.name, [*named, *constants], outputs, **node.attributes(point))],
        "point",
        [helper.make_tensor_value_info(name, _tensor_type(x.dtype.name), x.shape) for name, x in feeds.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(x, name) for name, x in (named | constants).items() if name in inside],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", node.opset)], ir_version=_IR)
    return model.SerializeToString(), feeds
