"""Elementwise ops: arithmetic, comparisons, activations, casts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import dovetail as dt
from dovetail import _core, nn
from dovetail._array import FOREIGN, PACKED
from dovetail.onnx.registry import Node, onnx_op
from dovetail.onnx.values import (
    STRING,
    Sizes,
    constant,
    dtype_of_number,
    expect_known,
    is_float,
    is_strings,
    number_of_dtype,
    widened,
)

_op = _core.op_function


# ---- one operand -------------------------------------------------------------------------------------------------

_UNARY: dict[str, Callable[[Any], Any]] = {
    "Abs": dt.abs, "Acos": dt.acos, "Acosh": dt.acosh, "Asin": dt.asin, "Asinh": dt.asinh, "Atan": dt.atan,
    "Atanh": dt.atanh, "BitwiseNot": dt.bitwise_invert, "Ceil": dt.ceil, "Cos": dt.cos, "Cosh": dt.cosh,
    "Erf": dt.erf, "Exp": dt.exp, "Floor": dt.floor, "HardSwish": nn.hardswish, "Log": dt.log, "Mish": nn.mish,
    "Neg": dt.negative, "Not": dt.logical_not, "Reciprocal": dt.reciprocal, "Relu": nn.relu, "Round": dt.round,
    "Sigmoid": nn.sigmoid, "Sign": dt.sign, "Sin": dt.sin, "Sinh": dt.sinh, "Softplus": nn.softplus,
    "Softsign": nn.softsign, "Sqrt": dt.sqrt, "Tan": dt.tan, "Tanh": dt.tanh,
}  # fmt: skip


def _unary(function: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda node, x: function(x)


for _name, _function in _UNARY.items():
    onnx_op(_name)(_unary(_function))


@onnx_op("Identity")
def identity(node: Node, x: Any) -> Any:
    return x


@onnx_op("IsNaN")
def is_nan(node: Node, x: Any) -> Any:
    return dt.isnan(widened(x))


@onnx_op("IsInf")
def is_inf(node: Node, x: Any) -> Any:
    x = widened(x)
    found = dt.isinf(x)
    if not node.get("detect_negative", 1):
        found = dt.logical_and(found, x > 0)
    if not node.get("detect_positive", 1):
        found = dt.logical_and(found, x < 0)
    return found


# ---- two operands ------------------------------------------------------------------------------------------------


def aligned(node: Node, a: Any, b: Any) -> Any:
    """b as it broadcasts: before opset 7 its axes are those of a from `axis` on."""
    if node.opset >= 7 or not node.get("broadcast", 0) or not b.ndim:
        return b
    axis = node.get("axis", a.ndim - b.ndim)
    return dt.reshape(b, (*b.shape, *(1,) * (a.ndim - axis - b.ndim)))


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": dt.add, "And": dt.logical_and, "BitwiseAnd": dt.bitwise_and, "BitwiseOr": dt.bitwise_or,
    "BitwiseXor": dt.bitwise_xor, "Equal": dt.equal, "Greater": dt.greater, "GreaterOrEqual": dt.greater_equal,
    "Less": dt.less, "LessOrEqual": dt.less_equal, "Mul": dt.multiply, "Or": dt.logical_or, "Sub": dt.subtract,
    "Xor": dt.logical_xor,
}  # fmt: skip


def _binary(
    function: Callable[[Any, Any], Any], of_strings: Callable[[Any, Any], Any] | None
) -> Callable[..., Any]:
    def handler(node: Node, a: Any, b: Any) -> Any:
        if of_strings is not None and is_strings(a):
            return constant(of_strings(a, b).astype(bool))
        return function(a, aligned(node, a, b))

    return handler


for _name, _function in _BINARY.items():
    onnx_op(_name, may_grow=True)(_binary(_function, np.equal if _name == "Equal" else None))


@onnx_op("Div", may_grow=True)
def div(node: Node, a: Any, b: Any) -> Any:
    b = aligned(node, a, b)
    return dt.divide(a, b) if is_float(a) else _op("quotient")(a, b)


@onnx_op("Mod", may_grow=True)
def mod(node: Node, a: Any, b: Any) -> Any:
    if not node.get("fmod", 0):
        return dt.remainder(a, b)
    if is_float(a):
        return dt.copysign(dt.remainder(dt.abs(a), dt.abs(b)), a)
    return a - _op("quotient")(a, b) * b


@onnx_op("Pow", may_grow=True)
def power(node: Node, a: Any, b: Any) -> Any:
    b = aligned(node, a, b)
    if a.dtype == b.dtype:
        return dt.pow(a, b)
    if is_float(a) and b.dtype != "float64":
        return dt.pow(a, dt.astype(b, a.dtype))
    if is_float(a) or is_float(b):
        return dt.astype(dt.pow(dt.astype(a, "float64"), dt.astype(b, "float64")), a.dtype)
    return dt.pow(a, dt.astype(b, a.dtype))


@onnx_op("BitShift", may_grow=True)
def bit_shift(node: Node, a: Any, b: Any) -> Any:
    return dt.bitwise_left_shift(a, b) if node.get("direction") == "LEFT" else dt.bitwise_right_shift(a, b)


@onnx_op("PRelu", may_grow=True)
def prelu(node: Node, x: Any, slope: Any) -> Any:
    if node.opset < 9 and slope.ndim == 1 and x.ndim > 2:
        slope = dt.reshape(slope, (-1, *(1,) * (x.ndim - 2)))
    return dt.where(x < 0, x * slope, x)


# ---- any number of operands --------------------------------------------------------------------------------------


def fold(function: Callable[[Any, Any], Any], values: Any) -> Any:
    made = values[0]
    for value in values[1:]:
        made = function(made, value)
    return made


@onnx_op("Max", may_grow=True)
def maximum(node: Node, *xs: Any) -> Any:
    return fold(dt.maximum, xs)


@onnx_op("Min", may_grow=True)
def minimum(node: Node, *xs: Any) -> Any:
    return fold(dt.minimum, xs)


@onnx_op("Sum", may_grow=True)
def sum_of(node: Node, *xs: Any) -> Any:
    return fold(dt.add, xs)


@onnx_op("Mean", may_grow=True)
def mean_of(node: Node, *xs: Any) -> Any:
    return fold(dt.add, xs) / len(xs)


@onnx_op("Where", may_grow=True)
def where(node: Node, condition: Any, a: Any, b: Any) -> Any:
    if is_strings(a):
        return np.where(np.asarray(condition), a, b)
    return dt.where(condition, a, b)


@onnx_op("Clip")
def clip(node: Node, x: Any, low: Any = None, high: Any = None) -> Any:
    if node.opset < 11:
        low, high = node.get("min"), node.get("max")
    if low is not None:
        x = dt.maximum(x, low)
    return x if high is None else dt.minimum(x, high)


# ---- activations -------------------------------------------------------------------------------------------------


@onnx_op("LeakyRelu")
def leaky_relu(node: Node, x: Any) -> Any:
    return nn.leaky_relu(x, node.get("alpha", 0.01))


@onnx_op("Elu")
def elu(node: Node, x: Any) -> Any:
    return nn.elu(x, node.get("alpha", 1.0))


@onnx_op("Celu")
def celu(node: Node, x: Any) -> Any:
    return nn.celu(x, node.get("alpha", 1.0))


@onnx_op("Selu")
def selu(node: Node, x: Any) -> Any:
    old = node.opset < 6
    alpha = node.get("alpha", 1.6732 if old else 1.67326319217681884765625)
    return nn.elu(x, alpha) * node.get("gamma", 1.0507 if old else 1.05070102214813232421875)


@onnx_op("HardSigmoid")
def hard_sigmoid(node: Node, x: Any) -> Any:
    return dt.clip(x * node.get("alpha", 0.2) + node.get("beta", 0.5), 0.0, 1.0)


@onnx_op("ThresholdedRelu")
def thresholded_relu(node: Node, x: Any) -> Any:
    return dt.where(x > node.get("alpha", 1.0), x, 0)


@onnx_op("Shrink")
def shrink(node: Node, x: Any) -> Any:
    bias, limit = node.get("bias", 0.0), node.get("lambd", 0.5)
    if not is_float(x):
        wide = dt.astype(x, "float64")
        return dt.astype(dt.where(wide < -limit, wide + bias, dt.where(wide > limit, wide - bias, 0.0)), x.dtype)
    return dt.where(x < -limit, x + bias, dt.where(x > limit, x - bias, 0.0))


@onnx_op("Gelu")
def gelu(node: Node, x: Any) -> Any:
    return nn.gelu(x, node.get("approximate", "none"))


@onnx_op("Swish")
def swish(node: Node, x: Any) -> Any:
    alpha = node.get("alpha", 1.0)
    return nn.silu(x) if alpha == 1.0 else x * nn.sigmoid(x * alpha)


@onnx_op("Dropout", numbers=(1, 2))
def dropout(node: Node, x: Any, ratio: Any = None, training: Any = None) -> Any:
    from dovetail.onnx.values import scalar

    trains = bool(scalar(training)) if training is not None else node.opset < 7 and not node.get("is_test", 0)
    share = float(scalar(ratio)) if ratio is not None else node.get("ratio", 0.5)
    if not trains or share == 0:
        return (x, dt.ones(x.shape, dtype="bool" if node.opset >= 10 else x.dtype)) if node.wants(1) else x
    from dovetail.onnx.random import generator

    keep = dt.astype(generator(node).uniform(x.shape, dtype="float32") >= share, "bool")
    return dt.where(keep, x / (1.0 - share), 0.0), keep


# ---- casts -------------------------------------------------------------------------------------------------------

_SATURATED = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")


@onnx_op("Cast", may_grow=True)
def cast(node: Node, x: Any) -> Any:
    return cast_to(x, node.get("to"), bool(node.get("saturate", 1)), node.get("round_mode", "up"))


@onnx_op("CastLike", may_grow=True)
def cast_like(node: Node, x: Any, other: Any) -> Any:
    to = STRING if is_strings(other) else number_of_dtype(other.dtype.name)
    return cast_to(x, to, bool(node.get("saturate", 1)), node.get("round_mode", "up"))


def cast_to(x: Any, to: Any, saturate: bool = True, round_mode: str = "up") -> Any:
    """x in ONNX's dtype `to`, a number or, in opset 1 to 5, its name."""
    if isinstance(to, str):
        from onnx import TensorProto

        to = TensorProto.DataType.Value(to)
    if to == STRING:
        return _as_strings(x)
    name = dtype_of_number(to)
    if is_strings(x):
        from dovetail.onnx.text import from_strings

        return from_strings(x, name)
    if x.dtype.name == name:
        return x
    if name in PACKED and is_float(x):
        return _to_packed(x, name)
    if x.dtype.name in PACKED and name in PACKED:
        return dt.astype(dt.astype(x, PACKED[x.dtype.name]), name)
    if x.dtype.name in PACKED:
        x = dt.astype(x, PACKED[x.dtype.name])
    if name == "float8_e8m0fnu":
        return to_e8m0(x, round_mode, saturate)
    if name in _SATURATED:
        return to_float8(x, name, saturate)
    if x.dtype.name in FOREIGN and x.dtype.name != "bfloat16" and not name.startswith("float32"):
        x = dt.astype(x, "float32")
    return dt.astype(x, name)


def _to_packed(x: Any, name: str) -> Any:
    """A float in fewer than 8 bits: float4 rounds to the nearest, integers are truncated and wrap."""
    x = widened(x)
    if name == "float4_e2m1fn":
        return dt.astype(x, name)
    return dt.astype(dt.astype(x, "int32"), name)


def to_float8(x: Any, name: str, saturate: bool) -> Any:
    """x rounded to a float of 8 bits: beyond its range the largest, or without saturation NaN or infinity."""
    x = widened(x)
    if saturate and is_float(x):
        limit = dt.finfo(name).max
        x = dt.where(dt.isnan(x), x, dt.clip(x, -limit, limit))
    return dt.astype(x, name)


def to_e8m0(x: Any, round_mode: str, saturate: bool) -> Any:
    """Powers of 2 from 2**-127 to 2**127, in the byte of the exponent: 255 is NaN."""
    bits = _op("bitcast")(dt.astype(widened(x), "float32"), "uint32")
    exponent = dt.bitwise_and(dt.bitwise_right_shift(bits, 23), 255)
    fraction = dt.bitwise_and(bits, 0x7FFFFF)
    if round_mode == "up":
        up = fraction > 0
    elif round_mode == "down":
        up = fraction > 0x7FFFFF
    else:
        up = fraction >= 0x400000
    exponent = dt.astype(exponent, "int32") + dt.astype(up, "int32")
    special = dt.logical_not(dt.isfinite(x if is_float(x) else dt.astype(x, "float32")))
    exponent = dt.minimum(exponent, 254 if saturate else 255)
    infinite = 254 if saturate else 255
    exponent = dt.where(special, dt.where(dt.isnan(widened(x)), 255, infinite), exponent)
    return _op("bitcast")(dt.astype(exponent, "uint8"), "float8_e8m0fnu")


def _as_strings(x: Any) -> Any:
    if is_strings(x):
        return x
    expect_known(x, "strings are on the host")
    x = x.array() if isinstance(x, Sizes) else x
    values = np.asarray(x)
    return np.array([_text(v) for v in values.reshape(-1)], dtype=object).reshape(values.shape)


def _text(v: Any) -> str:
    """A number as NumPy prints it; NaN and infinities as ONNX has them."""
    if isinstance(v, (np.floating, float)) and not math.isfinite(v):
        return "NaN" if math.isnan(v) else ("INF" if v > 0 else "-INF")
    return str(v)


@onnx_op("BitCast")
def bit_cast(node: Node, x: Any) -> Any:
    name = dtype_of_number(node.get("to"))
    return x if x.dtype.name == name else _op("bitcast")(x, name)
