"""Reductions, products, layers and quantisation that ONNX has, too."""

from __future__ import annotations

from typing import Any

from dovetail.onnx.values import number_of_dtype
from dovetail.onnx.writer import Node
from dovetail.onnx.writing import rule
from dovetail.onnx.writing_ops import FLOATS, each, listed

# ---- reductions --------------------------------------------------------------------------------------------------

_REDUCE = {"sum": "ReduceSum", "prod": "ReduceProd", "max": "ReduceMax", "min": "ReduceMin", "mean": "ReduceMean",
           "logsumexp": "ReduceLogSumExp"}  # fmt: skip


@rule(*_REDUCE)
def reduction(n: Node) -> Any:
    w, x, dtype = n.w, n.x(), n.out[0][0]
    if n.dtype() == "bool" and n.op in ("max", "min"):
        return None
    if n.dtype() != dtype:
        x = w.cast(x, dtype)
    axis = n.static("axis")
    if axis is not None and not listed(axis):
        return x  # over no axes; ONNX would reduce all
    axes = "" if axis is None else w.ints(*listed(axis))
    return w.add(_REDUCE[n.op], [x, axes], keepdims=int(bool(n.at["keepdims"])))


@rule("any", "all")
def any_all(n: Node) -> Any:
    w = n.w
    axis = n.static("axis")
    x = n.x() if n.dtype() == "bool" else w.cast(n.x(), "bool")
    if axis is not None and not listed(axis):
        return x
    axes = "" if axis is None else w.ints(*listed(axis))
    made = w.add("ReduceSum" if n.op == "any" else "ReduceMin", [w.cast(x, "int64"), axes],
                 keepdims=int(bool(n.at["keepdims"])))  # fmt: skip
    return w.cast(made, "bool")


@rule("argmax", "argmin")
def arg_extreme(n: Node) -> Any:
    axis = n.static("axis")
    x = n.x() if n.dtype() != "bool" else n.w.cast(n.x(), "uint8")
    if axis is None:
        x, axis = n.w.add("Reshape", [x, n.w.ints(-1)]), 0
        if n.at["keepdims"]:
            return None
    return n.w.add("ArgMax" if n.op == "argmax" else "ArgMin", [x], axis=axis, keepdims=int(bool(n.at["keepdims"])))


@rule("softmax", "log_softmax")
def softmax(n: Node) -> Any:
    return n.w.add("Softmax" if n.op == "softmax" else "LogSoftmax", n.xs(), axis=n.static("axis"))


@rule("cumulative_sum")
def cumulative_sum(n: Node) -> Any:
    axis, dtype = n.static("axis"), n.out[0][0]
    if n.at["include_initial"] or dtype not in ("int32", "int64", *FLOATS):
        return None
    x = n.x() if n.dtype() == dtype else n.w.cast(n.x(), dtype)
    return n.w.add("CumSum", [x, n.w.ints_scalar(0 if axis is None else axis)])


# ---- products ----------------------------------------------------------------------------------------------------


@rule("matmul")
def matmul(n: Node) -> Any:
    dtype = n.out[0][0]
    if dtype not in ("int32", "int64", "uint32", "uint64", *FLOATS):
        return None
    return n.w.add("MatMul", [x if n.dtype(i) == dtype else n.w.cast(x, dtype) for i, x in enumerate(n.xs())])


@rule("linear")
def linear(n: Node) -> Any:
    if n.rank() == 2 and n.has(2):
        return n.w.add("Gemm", n.xs(), transB=1)
    made = n.w.add("MatMul", [n.x(), n.w.add("Transpose", [n.x(1)], perm=[1, 0])])
    return n.w.add("Add", [made, n.x(2)]) if n.has(2) else made


@rule("matmul_integer")
def matmul_integer(n: Node) -> Any:
    return n.w.add("MatMulInteger", n.xs())


@rule("conv1d", "conv2d", "conv3d")
def conv(n: Node) -> Any:
    k = n.rank() - 2
    stride, padding, dilation = (each(n.static(name), k) for name in ("stride", "padding", "dilation"))
    return n.w.add("Conv", n.xs(), strides=stride, pads=padding * 2, dilations=dilation, group=n.static("groups"))


@rule("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(n: Node) -> Any:
    k = n.rank() - 2
    stride, padding, more, dilation = (
        each(n.static(name), k) for name in ("stride", "padding", "output_padding", "dilation")
    )
    return n.w.add("ConvTranspose", n.xs(), strides=stride, pads=padding * 2, output_padding=more,
                   dilations=dilation, group=n.static("groups"))  # fmt: skip


@rule("max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d")
def pool(n: Node) -> Any:
    k = n.rank() - 2
    kernel, padding = (each(n.static(name), k) for name in ("kernel_size", "padding"))
    stride = kernel if n.at["stride"] is None else each(n.static("stride"), k)
    if n.op.startswith("avg"):
        return n.w.add("AveragePool", n.xs(), kernel_shape=kernel, strides=stride, pads=padding * 2,
                       count_include_pad=int(bool(n.at["count_include_pad"])))  # fmt: skip
    return n.w.add("MaxPool", n.xs(), kernel_shape=kernel, strides=stride, pads=padding * 2,
                   dilations=each(n.static("dilation"), k))  # fmt: skip


# ---- normalisation and quantisation ------------------------------------------------------------------------------


@rule("layer_norm")
def layer_norm(n: Node) -> Any:
    if not n.has(1):
        return None
    axis = n.rank() - len(listed(n.at["normalized_shape"]))
    return n.w.add("LayerNormalization", n.xs(), axis=axis, epsilon=float(n.static("eps")))


@rule("batch_norm")
def batch_norm(n: Node) -> Any:
    if not n.has(3) or not n.has(4):
        return None
    x, mean, var, weight, bias = n.xs()
    return n.w.add("BatchNormalization", [x, weight, bias, mean, var], epsilon=float(n.static("eps")))


@rule("group_norm")
def group_norm(n: Node) -> Any:
    if not n.has(1) or not n.has(2):
        return None
    return n.w.add("GroupNormalization", n.xs(), num_groups=n.static("num_groups"), epsilon=float(n.static("eps")))


@rule("quantize")
def quantize(n: Node) -> Any:
    name = n.dtype_of("dtype")
    zero = ""
    if n.has(2):
        zero = n.x(2) if n.dtype(2) == name else n.w.cast(n.x(2), name)
    return n.w.add(
        "QuantizeLinear", [n.x(), n.x(1), zero], output_dtype=number_of_dtype(name), axis=n.static("axis")
    )


@rule("dequantize")
def dequantize(n: Node) -> Any:
    zero = ""
    if n.has(2):
        zero = n.x(2) if n.dtype(2) == n.dtype() else n.w.cast(n.x(2), n.dtype())
    return n.w.add("DequantizeLinear", [n.x(), n.x(1), zero], axis=n.static("axis"))


@rule("bitcast")
def bitcast(n: Node) -> Any:
    if n.dtype().startswith("complex") or n.dtype_of("dtype").startswith("complex"):
        raise NotImplementedError("[onnx.save] complex numbers: ONNX has no arithmetic of them; leave them out")
    if n.w.file.opset < 26:
        raise NotImplementedError("[onnx.save] a bitcast needs opset 26 or newer: save(program, path, opset=26)")
    return n.w.add("BitCast", n.xs(), to=number_of_dtype(n.dtype_of("dtype")))
