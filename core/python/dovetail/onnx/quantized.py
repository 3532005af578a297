"""Quantised tensors and products: QuantizeLinear and its like, integer and QLinear products, on kernels of int8."""

from __future__ import annotations

from typing import Any

import dovetail as dt
from dovetail import _core
from dovetail._array import PACKED
from dovetail.onnx.elementwise import to_e8m0, to_float8
from dovetail.onnx.layers import channels
from dovetail.onnx.registry import Node, onnx_op
from dovetail.onnx.shape import padded
from dovetail.onnx.values import Dequantized, dtype_of_number, is_float, is_integer_dtype, prod, widened
from dovetail.onnx.window import Geometry, convolution

_op = _core.op_function
_SMALL = ("int8", "uint8", "int4", "uint4", "int2", "uint2")  # for which quantize and dequantize are ops


def _one(v: Any) -> bool:
    return all(type(n) is int and n == 1 for n in v.shape)


def _along(v: Any, x: Any, axis: int, block: int) -> Any:
    """A scale or zero point as it broadcasts to x."""
    if v is None or v.ndim == 0:
        return v
    if block:
        spread = dt.repeat(v, block, axis=axis)
        return spread[tuple(slice(0, n) if a == axis else slice(None) for a, n in enumerate(x.shape))]
    return dt.reshape(v, ()) if _one(v) else dt.reshape(v, (-1, *(1,) * (x.ndim - 1 - axis)))


def _flat(v: Any, block: int) -> Any:
    """A scale or zero point as the ops take it: without axes where it is one value."""
    return v if v is None or block or not _one(v) else dt.reshape(v, ())


def _parameters(node: Node, x: Any, *given: Any) -> tuple[int | None, int, list[Any]]:
    """The axis, the size of blocks or 0, and scale and zero point without dtypes that ops do not compute with."""
    block = node.get("block_size", 0)
    axis = node.get("axis", 1)
    axis = axis % x.ndim if x.ndim and -x.ndim <= axis < x.ndim else 0
    return axis, block, [_flat(v if v is None else widened(v), block) for v in given]


@onnx_op("QuantizeLinear", since=10)
def quantize_linear(node: Node, x: Any, scale: Any, zero_point: Any = None) -> Any:
    to = node.get("output_dtype", 0)
    name = zero_point.dtype.name if zero_point is not None else dtype_of_number(to or 2)
    axis, block, (scale, zero) = _parameters(node, x, scale, zero_point)
    x = x if is_float(x) else dt.astype(x, "float32")
    if name in _SMALL:
        if zero is not None and not is_integer_dtype(zero):
            zero = dt.astype(zero, "int32")
        one = scale.ndim == 0
        how = {"block_size": block} if block and not one else {}
        return dt.quantize(x, scale, zero, axis=None if one and not how else axis, dtype=name, **how)
    wide = "float64" if x.dtype == "float64" else "float32"
    y = dt.astype(x, wide) / dt.astype(_along(scale, x, axis, block), wide)
    if name == "float8_e8m0fnu":
        return to_e8m0(y, "up", True)
    if name.startswith("float8"):
        return to_float8(y, name, bool(node.get("saturate", 1)))
    if name == "float4_e2m1fn":
        return dt.astype(dt.astype(y, "float32"), name)
    y = dt.round(y)
    if zero is not None:
        y = y + dt.astype(_along(zero, x, axis, block), wide)
    limits = dt.iinfo(name)
    return dt.astype(dt.clip(y, float(limits.min), float(limits.max)), name)


@onnx_op("DequantizeLinear", since=10, may_grow=True)
def dequantize_linear(node: Node, x: Any, scale: Any, zero_point: Any = None) -> Any:
    to = node.get("output_dtype", 0)
    result = dtype_of_number(to) if to else scale.dtype.name
    axis, block, (scale, zero) = _parameters(node, x, scale, zero_point)
    if x.dtype.name in _SMALL and is_float(scale):
        one = scale.ndim == 0
        how = {"block_size": block} if block and not one else {}
        if x.dtype.name in ("int8", "uint8") and not how and result == scale.dtype.name:
            return Dequantized(x, scale, zero, None if one else axis)
        y = dt.dequantize(x, scale, zero, axis=None if one and not how else axis, **how)
        return y if y.dtype.name == result else dt.astype(y, result)
    wide = "float64" if result == "float64" else "float32"
    y = dt.astype(widened(x), wide)
    if zero is not None:
        y = y - dt.astype(_along(zero, x, axis, block), wide)
    return dt.astype(y * dt.astype(_along(scale, x, axis, block), wide), result)


@onnx_op("DynamicQuantizeLinear")
def dynamic_quantize_linear(node: Node, x: Any) -> Any:
    """uint8 over the range of x and 0, its scale, and the zero point."""
    low, high = dt.minimum(dt.min(x), 0.0), dt.maximum(dt.max(x), 0.0)
    scale = (high - low) / 255.0
    divisor = dt.where(scale == 0, 1.0, scale)
    zero = dt.astype(dt.clip(dt.round(0.0 - low / divisor), 0.0, 255.0), "uint8")
    return dt.quantize(x, scale, zero, dtype="uint8"), scale, zero


def real_product(a: Dequantized, b: Dequantized) -> Any:
    """a @ b by their integers; None where scales are not those of a itself and of b's columns."""
    if a.axis is not None or (b.axis is not None and b.axis != b.ndim - 1) or not _are_products(a, b):
        return None
    return dt.astype(integer_product(a.q, b.q, a.zero, b.zero), a.dtype) * (a.scale * b.scale)


def transposed(x: Dequantized) -> Dequantized:
    """A matrix transposed."""
    return Dequantized(dt.matrix_transpose(x.q), x.scale, x.zero, None if x.axis is None else 1 - x.axis)


def _are_products(a: Dequantized, b: Dequantized) -> bool:
    return a.dtype == b.dtype == "float32" and a.ndim > 0 and b.ndim > 0


def real_conv(node: Node, x: Dequantized, weight: Dequantized) -> Any:
    """A convolution by the integers; None where scales are not those of x itself and of the weight's channels."""
    if x.axis is not None or weight.axis not in (None, 0) or not _are_products(x, weight):
        return None
    if weight.axis == 0 and node.get("group", 1) != 1:
        return None
    acc = integer_conv(node, x.q, weight.q, x.zero, weight.zero)
    scale = x.scale * weight.scale
    return dt.astype(acc, x.dtype) * (scale if weight.axis is None else channels(scale, acc))


# ---- integer products --------------------------------------------------------------------------------------------


def _of_8_bits(x: Any) -> Any:
    return dt.astype(x, PACKED[x.dtype.name]) if x.dtype.name in PACKED else x


def _wide(x: Any, zero: Any, rows: bool) -> Any:
    """x - zero in int32."""
    x = dt.astype(x, "int32")
    if zero is None:
        return x
    zero = dt.astype(zero, "int32")
    if zero.ndim == 1 and not _one(zero) and rows:
        zero = dt.reshape(zero, (-1, 1))
    return x - (dt.reshape(zero, ()) if _one(zero) else zero)


def _vector(zero: Any) -> Any:
    """A zero point as matmul_integer takes it: one value or a vector."""
    if zero is None or zero.ndim == 0:
        return zero
    return dt.reshape(zero, ()) if _one(zero) else zero


def integer_product(a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    """(a - a_zero) @ (b - b_zero) in int32."""
    a, b, a_zero, b_zero = (v if v is None else _of_8_bits(v) for v in (a, b, a_zero, b_zero))
    flat_a, flat_b = _vector(a_zero), _vector(b_zero)
    if all(v is None or v.ndim <= 1 for v in (flat_a, flat_b)) and {a.dtype.name, b.dtype.name} <= {
        "int8",
        "uint8",
    }:
        return dt.matmul_integer(a, b, flat_a, flat_b)
    return dt.matmul(_wide(a, a_zero, True), _wide(b, b_zero, False))


@onnx_op("MatMulInteger", may_grow=True)
def matmul_integer(node: Node, a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    return integer_product(a, b, a_zero, b_zero)


def integer_conv(node: Node, x: Any, weight: Any, x_zero: Any, weight_zero: Any) -> Any:
    """A convolution in int32. Padding counts as x's zero point."""
    g = Geometry(node, x.shape[2:], [int(k) for k in weight.shape[2:]])
    groups = node.get("group", 1)
    if groups == 1:
        return _product_with_windows(g, x, weight, x_zero, weight_zero)
    weight = _wide(_of_8_bits(weight), None, False)
    if weight_zero is not None:
        zero = dt.astype(weight_zero, "int32")
        weight = weight - dt.reshape(zero, (-1, *(1,) * (weight.ndim - 1)))
    return convolution(g, _wide(_of_8_bits(x), x_zero, False), weight, None, groups)


def _product_with_windows(g: Geometry, x: Any, weight: Any, x_zero: Any, weight_zero: Any) -> Any:
    (n, c), o, axes = x.shape[:2], weight.shape[0], range(g.n)
    if not all(type(v) is int and v == 0 for pair in g.pads for v in pair):
        zero = 0 if x_zero is None else _of_8_bits(x_zero)
        x = padded(_of_8_bits(x), [(0, 0), (0, 0), *g.pads], value=zero)
    windows = _op("sliding_window")(x, g.kernel, stride=g.strides, dilation=g.dilations)
    places = windows.shape[2 : g.n + 2]
    columns = dt.permute_dims(windows, (0, 1, *(2 + g.n + i for i in axes), *(2 + i for i in axes)))
    columns = dt.reshape(columns, (n, c * prod(g.kernel), prod(places)))
    made = integer_product(dt.reshape(weight, (o, -1)), columns, weight_zero, x_zero)
    return dt.reshape(made, (n, o, *places))


@onnx_op("ConvInteger", may_grow=True)
def conv_integer(node: Node, x: Any, weight: Any, x_zero: Any = None, weight_zero: Any = None) -> Any:
    return integer_conv(node, x, weight, x_zero, weight_zero)


def requantized(acc: Any, factor: Any, zero: Any, dtype: str | None = None) -> Any:
    """round(acc * factor) + zero, in zero's dtype."""
    name = zero.dtype.name if dtype is None else dtype
    y = dt.round(dt.astype(acc, "float32") * factor) + dt.astype(widened(zero), "float32")
    limits = dt.iinfo(name)
    return dt.astype(dt.clip(y, float(limits.min), float(limits.max)), name)


def _f32(v: Any) -> Any:
    v = dt.astype(v, "float32")
    return dt.reshape(v, ()) if _one(v) else v


@onnx_op("QLinearMatMul", may_grow=True)
def qlinear_matmul(
    node: Node, a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, y_scale: Any, y_zero: Any
) -> Any:
    if is_float(y_zero):  # floats of 8 bits have no zero point
        wide = [dt.astype(v, "float32") for v in (a, b)]
        y = dt.matmul(*wide) * (_rows(_f32(a_scale)) * _f32(b_scale) / _f32(y_scale))
        return to_float8(y, y_zero.dtype.name, True)
    acc = integer_product(a, b, a_zero, b_zero)
    return requantized(acc, _rows(_f32(a_scale)) * _f32(b_scale) / _f32(y_scale), y_zero)


def _rows(scale: Any) -> Any:
    return dt.reshape(scale, (-1, 1)) if scale.ndim == 1 else scale


@onnx_op("QLinearConv", may_grow=True)
def qlinear_conv(
    node: Node, x: Any, x_scale: Any, x_zero: Any, w: Any, w_scale: Any, w_zero: Any, y_scale: Any, y_zero: Any,
    bias: Any = None,
) -> Any:  # fmt: skip
    acc = integer_conv(node, x, w, x_zero, w_zero)
    if bias is not None:
        acc = acc + channels(bias, acc)
    factor = _f32(x_scale) * _f32(w_scale) / _f32(y_scale)
    return requantized(acc, channels(factor, acc) if factor.ndim else factor, y_zero)
