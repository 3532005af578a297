"""Arithmetic, comparisons, functions of one number, and activations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import dovetail as dt
import torch
from dovetail import nn

from dovetail_torch.compile.table import Call, Unsupported, cast, dtype_name, is_array, lower, op_function, truth

# ---- functions of one array --------------------------------------------------------------------------------------

_UNARY = {
    "abs": dt.abs, "acos": dt.acos, "acosh": dt.acosh, "asin": dt.asin, "asinh": dt.asinh, "atan": dt.atan,
    "atanh": dt.atanh, "bitwise_not": dt.bitwise_invert, "ceil": dt.ceil, "cos": dt.cos, "cosh": dt.cosh,
    "erf": dt.erf, "erfc": dt.erfc, "exp": dt.exp, "exp2": dt.exp2, "expm1": dt.expm1, "floor": dt.floor,
    "hardsigmoid": nn.hardsigmoid, "hardswish": nn.hardswish, "log": dt.log, "log10": dt.log10, "log1p": dt.log1p,
    "log2": dt.log2, "mish": nn.mish, "neg": dt.negative, "reciprocal": dt.reciprocal, "relu": nn.relu,
    "relu6": nn.relu6, "round": dt.round, "rsqrt": dt.rsqrt, "selu": nn.selu, "sgn": dt.sign,
    "sigmoid": nn.sigmoid, "sign": dt.sign, "silu": nn.silu, "sin": dt.sin, "sinh": dt.sinh, "sqrt": dt.sqrt,
    "square": dt.square, "tan": dt.tan, "tanh": dt.tanh, "trunc": dt.trunc,
}  # fmt: skip


def _unary(function: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda call, x: function(cast(x, call.dtype))


for _name, _function in _UNARY.items():
    lower(_name)(_unary(_function))


@lower("isnan", "isinf", "isfinite", "signbit")
def classify(call: Call, x: Any) -> Any:
    name = call.node.target.overloadpacket.__name__
    return op_function(name)(x)


@lower("logical_not")
def logical_not(call: Call, x: Any) -> Any:
    return dt.logical_not(truth(x))


# ---- functions of two --------------------------------------------------------------------------------------------

_ARITHMETIC = {
    "atan2": dt.atan2, "bitwise_and": dt.bitwise_and, "bitwise_left_shift": dt.bitwise_left_shift,
    "bitwise_or": dt.bitwise_or, "bitwise_right_shift": dt.bitwise_right_shift, "bitwise_xor": dt.bitwise_xor,
    "copysign": dt.copysign, "hypot": dt.hypot, "logaddexp": dt.logaddexp, "maximum": dt.maximum,
    "minimum": dt.minimum, "nextafter": dt.nextafter, "remainder": dt.remainder,
}  # fmt: skip
_COMPARED = {
    "eq": dt.equal, "ge": dt.greater_equal, "gt": dt.greater, "le": dt.less_equal, "lt": dt.less,
    "ne": dt.not_equal,
}  # fmt: skip


def _names(packet: str, *kinds: str) -> list[str]:
    known = getattr(torch.ops.aten, packet).overloads()
    return [f"{packet}.{kind}" for kind in kinds if kind in known]


def _in_dtype_of_result(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda call, x, y: function(cast(x, call.dtype), cast(y, call.dtype))


def _in_common_dtype(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def lowered(call: Call, x: Any, y: Any) -> Any:
        dtype = call.common_dtype()
        return function(cast(x, dtype), cast(y, dtype))

    return lowered


for _name, _binary in _ARITHMETIC.items():
    lower(*_names(_name, "default", "Tensor", "Scalar", "Scalar_Tensor", "Tensor_Scalar"))(
        _in_dtype_of_result(_binary)
    )
for _name, _binary in _COMPARED.items():
    lower(f"{_name}.Tensor", f"{_name}.Scalar")(_in_common_dtype(_binary))


@lower("logical_and", "logical_or", "logical_xor")
def logical(call: Call, x: Any, y: Any) -> Any:
    return op_function(call.node.target.overloadpacket.__name__)(truth(x), truth(y))


@lower("add.Tensor", "add.Scalar")
def add(call: Call, x: Any, y: Any, alpha: Any = 1) -> Any:
    return dt.add(cast(x, call.dtype), _scaled(cast(y, call.dtype), alpha))


@lower("sub.Tensor", "sub.Scalar")
def subtract(call: Call, x: Any, y: Any, alpha: Any = 1) -> Any:
    return dt.subtract(cast(x, call.dtype), _scaled(cast(y, call.dtype), alpha))


@lower("rsub.Tensor", "rsub.Scalar")
def subtract_from(call: Call, x: Any, y: Any, alpha: Any = 1) -> Any:
    return dt.subtract(cast(y, call.dtype), _scaled(cast(x, call.dtype), alpha))


def _scaled(y: Any, alpha: Any) -> Any:
    return y if isinstance(alpha, int) and alpha == 1 else y * alpha


def _factors(call: Call, x: Any, y: Any) -> tuple[Any, Any]:
    """The operands of a product or quotient: 16-bit floats in float32, with a number or array without axes that
    their dtype cannot hold. torch rounds nothing but the result, so that 1e-3 * 65536 is finite in float16."""
    dtype = call.dtype
    if dtype in ("float16", "bfloat16") and not (y.dtype == dtype or y.ndim if is_array(y) else _holds(dtype, y)):
        dtype = "float32"
    return cast(x, dtype), cast(y, dtype)


def _holds(dtype: str, n: Any) -> bool:
    """Whether a normal number of a dtype is this one, or 0."""
    if not isinstance(n, (int, float)):  # a number of the trace
        return False
    limits = dt.finfo(dtype)
    normal = limits.smallest_normal <= abs(n) <= limits.max
    return n == 0 or (normal and (math.frexp(n)[0] * 2 / limits.eps).is_integer())


@lower("mul.Tensor", "mul.Scalar")
def multiply(call: Call, x: Any, y: Any) -> Any:
    return dt.multiply(*_factors(call, x, y))


@lower("div.Tensor", "div.Scalar", "true_divide.Tensor", "true_divide.Scalar")
def divide(call: Call, x: Any, y: Any) -> Any:
    return dt.divide(*_factors(call, x, y))


@lower("div.Tensor_mode", "div.Scalar_mode")
def divide_rounded(call: Call, x: Any, y: Any, *, rounding_mode: str | None = None) -> Any:
    x, y = _factors(call, x, y)
    if rounding_mode == "floor":
        return _floor_quotient(x, y)
    if rounding_mode == "trunc" and x.dtype.kind != "real floating":
        return op_function("quotient")(x, y)
    quotient = dt.divide(x, y)
    return dt.trunc(quotient) if rounding_mode == "trunc" else quotient


@lower("floor_divide", "floor_divide.Scalar")
def floor_divide(call: Call, x: Any, y: Any) -> Any:
    return _floor_quotient(cast(x, call.dtype), cast(y, call.dtype))


def _floor_quotient(x: Any, y: Any) -> Any:
    """Of floats as Python's: from the remainder, which is exact. floor(x / y) is one more where it rounds up."""
    if not is_array(x) or x.dtype.kind != "real floating":
        return dt.floor_divide(x, y)
    dtype, exact = x.dtype, "float64" if x.dtype == "float64" else "float32"
    x, y = cast(x, exact), cast(y, exact)
    quotient, rest = dt.divide(x, y), _remainder_of_sign(x, y)
    below = (rest != 0) & ((rest < 0) != (y < 0))
    whole = dt.round(dt.divide(x - rest, y) - dt.astype(below, exact))
    whole = dt.where(whole == 0, quotient * 0, whole)  # keeps the sign of 0
    if is_array(y):
        whole = dt.where(y == 0, quotient, whole)
    return cast(whole if is_array(y) or y else quotient, str(dtype))


@lower("fmod.Tensor", "fmod.Scalar")
def remainder_of_sign(call: Call, x: Any, y: Any) -> Any:
    return _remainder_of_sign(cast(x, call.dtype), cast(y, call.dtype))


def _remainder_of_sign(x: Any, y: Any) -> Any:
    rest = dt.remainder(dt.abs(x), dt.abs(y) if is_array(y) else abs(y))
    return dt.copysign(rest, x) if x.dtype.kind == "real floating" else dt.sign(x) * rest


@lower("pow.Tensor_Tensor", "pow.Scalar")
def power(call: Call, x: Any, y: Any) -> Any:
    return dt.pow(cast(x, call.dtype), cast(y, call.dtype))


@lower("pow.Tensor_Scalar")
def power_of_number(call: Call, x: Any, y: Any) -> Any:
    x = cast(x, call.dtype)
    exact = {2: dt.square, 1: dt.positive}
    roots = {0.5: dt.sqrt, -0.5: dt.rsqrt, -1: dt.reciprocal}
    known = exact | roots if x.dtype.kind == "real floating" else exact
    if isinstance(y, (int, float)) and y in known:
        return known[y](x)
    return dt.pow(x, y)


@lower("where.self", "where.ScalarOther", "where.ScalarSelf")
def where(call: Call, condition: Any, x: Any, y: Any) -> Any:
    return dt.where(truth(condition), cast(x, call.dtype), cast(y, call.dtype))


@lower("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(call: Call, x: Any, mask: Any, value: Any) -> Any:
    return dt.where(mask, cast(value, call.dtype), x)


@lower("clamp", "clamp.Tensor")
def clamp(call: Call, x: Any, low: Any = None, high: Any = None) -> Any:
    return dt.clip(cast(x, call.dtype), cast(low, call.dtype), cast(high, call.dtype))


@lower("clamp_min", "clamp_min.Tensor")
def clamp_min(call: Call, x: Any, low: Any) -> Any:
    return dt.maximum(cast(x, call.dtype), cast(low, call.dtype))


@lower("clamp_max", "clamp_max.Tensor")
def clamp_max(call: Call, x: Any, high: Any) -> Any:
    return dt.minimum(cast(x, call.dtype), cast(high, call.dtype))


@lower("addcmul")
def add_product(call: Call, x: Any, y: Any, z: Any, *, value: Any = 1) -> Any:
    return dt.add(cast(x, call.dtype), _scaled(cast(y, call.dtype) * cast(z, call.dtype), value))


@lower("addcdiv")
def add_quotient(call: Call, x: Any, y: Any, z: Any, *, value: Any = 1) -> Any:
    return dt.add(cast(x, call.dtype), _scaled(dt.divide(cast(y, call.dtype), cast(z, call.dtype)), value))


@lower("lerp.Scalar", "lerp.Tensor")
def interpolate(call: Call, x: Any, y: Any, weight: Any) -> Any:
    return x + weight * (y - x)


# ---- activations -------------------------------------------------------------------------------------------------


@lower("gelu")
def gelu(call: Call, x: Any, *, approximate: str = "none") -> Any:
    return nn.gelu(x, approximate)


@lower("leaky_relu")
def leaky_relu(call: Call, x: Any, slope: float = 0.01) -> Any:
    return nn.leaky_relu(x, slope)


@lower("elu")
def elu(call: Call, x: Any, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    if input_scale != 1:
        raise Unsupported(f"an input_scale of {input_scale}")
    made = nn.elu(x, alpha)
    return made if scale == 1 else made * scale


@lower("hardtanh")
def hardtanh(call: Call, x: Any, low: float = -1.0, high: float = 1.0) -> Any:
    return dt.clip(x, low, high)


@lower("softplus")
def softplus(call: Call, x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    made = nn.softplus(x, beta)
    return made if threshold >= 20 else dt.where(x * beta > threshold, x, made)  # from 20 on they are equal


@lower("prelu", "_prelu_kernel")
def prelu(call: Call, x: Any, weight: Any) -> Any:
    if weight.ndim == 1 and x.ndim > 1:
        weight = dt.reshape(weight, (-1, *(1,) * (x.ndim - 2)))
    return dt.where(x > 0, x, weight * x)


@lower("glu")
def glu(call: Call, x: Any, dim: int = -1) -> Any:
    return nn.glu(x, dim)


@lower("threshold")
def threshold(call: Call, x: Any, least: float, value: float) -> Any:
    return nn.threshold(x, least, value)


@lower("log_sigmoid")
def log_sigmoid(call: Call, x: Any) -> Any:
    return nn.logsigmoid(x)


# ---- casts -------------------------------------------------------------------------------------------------------


@lower("_to_copy", "to.dtype", "to.dtype_layout", "type_as")
def to_dtype(call: Call, x: Any, *args: Any, **kwargs: Any) -> Any:
    device = kwargs.get("device")
    source = call.node.args[0].meta["val"].device
    if device is not None and torch.device(device).type != source.type:
        raise Unsupported(f"a copy from {source} to {device}")
    return cast(x, call.dtype)


@lower("convert_element_type", of=torch.ops.prims)
def convert(call: Call, x: Any, dtype: Any) -> Any:
    return cast(x, call.dtype)


@lower("_conj_physical", "conj_physical")
def conjugate(call: Call, x: Any) -> Any:
    return dt.conj(x)


@lower("view.dtype")
def reinterpret(call: Call, x: Any, dtype: Any) -> Any:
    if x.dtype.bits != dt._core.to_dtype(dtype_name(dtype)).bits:
        raise Unsupported("a view in a dtype of another size")
    return op_function("bitcast")(x, dtype_name(dtype))
