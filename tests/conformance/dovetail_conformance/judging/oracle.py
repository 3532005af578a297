"""The right answers: values from the schema's NumPy references, result dtypes by the rules' definitions.

Independent of the core's rules, of decompositions and of every device.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from dovetail.schema import Op
from dovetail.schema import dtypes as dt
from dovetail.schema import oracle as schema_oracle
from dovetail.schema.dtypes import DType
from dovetail.schema.rules import FLOATING, REAL_RESULTS

# Ops that may return either of two zeros; sums may begin with one.
EITHER_ZERO = frozenset({
    "maximum", "minimum", "max", "min", "clip", "max_pool1d", "max_pool2d", "max_pool3d", "relu", "relu6",
    "hardtanh", "sum", "mean", "avg_pool1d", "avg_pool2d", "avg_pool3d", "matmul", "linear",
    "linear_with_activation", "vecdot", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "scaled_dot_product_attention", "scaled_dot_product_attention_varlen",
    "scaled_dot_product_attention_with_logsumexp", "attention_scores", "block_attention", "layer_norm",
    "scaled_dot_product_attention_grad", "gelu_grad",
    "silu_grad", "softmax_grad", "log_softmax_grad", "layer_norm_grad", "rms_norm_grad", "batch_norm_train_grad",
    "cross_entropy_grad", "conv_grad_input", "conv_grad_weight", "max_pool_grad", "avg_pool_grad",
})  # fmt: skip

# The error of complex products and quotients, in units in the last place of their magnitude: Higham, Accuracy and
# Stability of Numerical Algorithms, Lemma 3.5.
COMPLEX_PRODUCT, COMPLEX_QUOTIENT = 2 * math.sqrt(2), 4 * math.sqrt(2)


class Answer(NamedTuple):
    """One output: its value in the oracle's precision, its dtype and the error allowed."""

    value: np.ndarray
    dtype: DType
    tol: float
    scale: Any
    signed_zeros: bool


def answers(op: Op, args: tuple, kwargs: dict[str, Any]) -> list[Answer]:
    """The answers that the op must return for these NumPy arguments."""
    d = result_dtype(op, op.bind(*args, **kwargs))
    wide = _wider(d)
    try:
        values = schema_oracle.expected(op, args, kwargs, wide=wide)
        scale = schema_oracle.scale(op, args, kwargs, wide=wide)
    except TypeError:
        if wide is np.float64:
            raise
        values = schema_oracle.expected(op, args, kwargs)  # a reference that stops at float64
        scale = schema_oracle.scale(op, args, kwargs)
    if op.spec.n_out == 1:
        values, scale = (values,), (scale,)
    dtypes = [_of_result(op, d, i) for i in range(op.spec.n_out)]
    is_complex = any(isinstance(a, np.ndarray) and a.dtype.kind == "c" for a in (*args, *kwargs.values()))
    return [
        Answer(
            np.asarray(v),
            t,
            tolerance(op, dt.complex64 if is_complex and t.kind == "f" else t),
            s,
            op.name not in EITHER_ZERO,
        )
        for v, t, s in zip(values, dtypes, scale, strict=True)
    ]


def _of_result(op: Op, d: DType, i: int) -> DType:
    """The dtype of result i if that of the first, as far as it may be complex, is `d`."""
    rule = op.spec.dtype
    if i in REAL_RESULTS.get(rule, ()):
        return dt.PART.get(d, d)
    if i == 0 or rule in ("floats", "eigh", "svd"):
        return d
    return dt.int64 if rule == "same_and_index" else dt.float32 if d in dt.NARROW else d


def _wider(d: DType) -> Any:
    """The type to compute in: for float64 something better, where the platform has it."""
    return np.longdouble if dt.PART.get(d, d) is dt.float64 and np.finfo(np.longdouble).nmant > 52 else np.float64


def tolerance(op: Op, d: DType) -> float:
    """In ulp of the result; of a complex one, of its magnitude. `d` is the result's, but complex if an operand is.

    Narrow floats that compute in float32 and round once err by hardly more than that rounding.
    """
    tol = op.spec.tol
    if d.kind == "c" and (op.spec.dtype == "part" or op.name == "sign"):
        return max(tol, 2)  # a root of a sum, or a quotient by one
    if d.kind == "c" and tol:
        of_function = op.spec.dtype == "float" and op.spec.shape == "same"  # mostly a product of two
        return max(tol, 1 + of_function) * (COMPLEX_QUOTIENT if op.name == "divide" else COMPLEX_PRODUCT)
    elementwise = op.spec.shape in ("same", "broadcast")
    return min(tol, 1.0) if d in dt.NARROW and elementwise and op.spec.half_in_f32 else tol


FIXED = {"index": dt.int64, "bits": dt.uint32, "int32": dt.int32}  # unless a dtype is asked for


def result_dtype(op: Op, given: dict[str, Any]) -> DType:
    """The dtype of the first result, by the definition of the op's dtype rule; complex if the op computes so."""
    rule, asked = op.spec.dtype, given.get("dtype")
    if asked is not None:
        return asked
    if rule in ("compare", "logical", "predicate"):
        return dt.bool_
    if rule in FIXED:
        return FIXED[rule]
    if rule == "scaled":
        return dt.float32
    if rule == "given":
        return _of_scalars([given[p.name] for p in op.attributes if p.kind == "scalar"])
    operands = [given[p.name] for p in op.operands if p.kind == "value"]
    flat = [x for o in operands for x in (o if isinstance(o, (list, tuple)) else [o]) if x is not None]
    if rule in ("same", "same_real"):
        return dt.of(flat[0])
    d = promoted(flat)
    if rule in FLOATING:
        return d if d.kind in "fc" else dt.float32
    if rule == "accum" and d.kind in "biu":
        return dt.uint64 if d.kind == "u" else dt.int64
    return d


def _of_scalars(values: list[Any]) -> DType:
    for kind, d in ((complex, dt.complex64), (float, dt.float32)):
        if any(isinstance(v, kind) for v in values):
            return d
    integers = [v for v in values if isinstance(v, int)]
    if not integers:
        return dt.float32
    return dt.bool_ if all(isinstance(v, bool) for v in integers) else dt.int64


def promoted(operands: list[Any]) -> DType:
    """The common dtype of arrays and Python numbers; the numbers are weak."""
    arrays = [dt.of(o) for o in operands if isinstance(o, np.ndarray)]
    d = reduce(promote, arrays)
    for o in operands:
        if isinstance(o, complex):
            d = d if d.kind == "c" else dt.complex128 if d is dt.float64 else dt.complex64
        elif isinstance(o, float) and d.kind in "biu":
            d = dt.float32
        elif isinstance(o, int) and not isinstance(o, bool) and d.kind == "b":
            d = dt.int64
    return d


def promote(a: DType, b: DType) -> DType:
    """The common dtype of two, as the array API defines it; mixed kinds take the float."""
    order = "biufc"
    if order.index(a.kind) > order.index(b.kind):
        a, b = b, a
    if a is b or a.kind == "b":
        return b
    if a.kind == b.kind:
        if a.itemsize == b.itemsize:
            return dt.float32
        return max(a, b, key=lambda d: d.itemsize)
    if b.kind == "u":  # with a signed one: the next size that holds both
        if b is dt.uint64:
            raise TypeError(f"{a.name} and {b.name} have no common dtype")
        return dt.by_name[f"i{8 * max(a.itemsize, 2 * b.itemsize)}"]
    if b.kind == "c" and a is dt.float64:
        return dt.complex128
    return b
