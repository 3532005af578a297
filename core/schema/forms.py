"""What people write for an op: a compiled function that holds one of these forms calls the op instead.

A form may differ from its op by rounding, and where the form gives NaN. Both sides are traced once for each rank
(decompositions.py) and looked for up to the order of commutative operands; the marks EPS and SCALE stand for any
constant. decompositions.py needs the runtime, and so do the traces: these functions take tracers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .ops.activation import gelu, sigmoid, silu
from .ops.arithmetic import rsqrt, square
from .ops.attention import scaled_dot_product_attention
from .ops.exponential import tanh
from .ops.nn import layer_norm, linear, rms_norm, softmax
from .ops.primitives import exp, matmul, max_, sqrt, sum_
from .ops.reduction import mean, var
from .ops.special import erf
from .ops.views import matrix_transpose

# Constants of forms that stand for any; float16 has them, too.
EPS, SCALE = 0.0009918212890625, 0.1171875


class Form(NamedTuple):
    name: str
    written: Callable[..., Any]
    op: Callable[..., Any]
    shapes: Sequence[Sequence[tuple[int, ...]]]  # of the operands, for each rank


def _rows(*others: tuple[int, ...]) -> list[list[tuple[int, ...]]]:
    """x of each rank whose last axis the other operands share."""
    return [[(2, 3, 4, 5)[4 - rank :], *others] for rank in (1, 2, 3, 4)]


ROWS, WEIGHT, AFFINE = _rows(), _rows((5,)), _rows((5,), (5,))
HEADS = [[(2, 3, 4, 5)[4 - r :], (2, 3, 6, 5)[4 - r :], (2, 3, 6, 7)[4 - r :]] for r in (2, 3, 4)]
LINEAR = [[(2, 3, 5)[3 - r :], (7, 5), (7,)] for r in (1, 2, 3)]
MASKED = [[*shapes, (4, 6)] for shapes in HEADS] + [[*HEADS[2], (2, 1, 4, 6)], [*HEADS[2], (2, 1, 1, 6)]]
LAST = {"axis": -1, "keepdims": True}


def _softmax(x):
    e = exp(x - max_(x, **LAST))
    return e / sum_(e, **LAST)


def _normed(x, variance=lambda d: mean(d * d, **LAST)):
    d = x - mean(x, **LAST)
    return d / sqrt(variance(d) + EPS)


def _by_var(x):
    return (x - mean(x, **LAST)) / sqrt(var(x, **LAST) + EPS)


def _by_rsqrt(x):
    d = x - mean(x, **LAST)
    return d * rsqrt(mean(d * d, **LAST) + EPS)


def _by_square(x):
    return _normed(x, lambda d: mean(square(d), **LAST))


def _rms(x, mean_square=lambda x: mean(x * x, **LAST)):
    return x / sqrt(mean_square(x) + EPS)


def _rms_by_rsqrt(x):
    return x * rsqrt(mean(x * x, **LAST) + EPS)


def _rms_by_square(x):
    return _rms(x, lambda x: mean(square(x), **LAST))


def _tanh_of(x, cube):
    return tanh(0.7978845608028654 * (x + 0.044715 * cube))


def _scores(q, k):
    return matmul(q, matrix_transpose(k))


def _softmax_op(x):
    return softmax(x, axis=-1)


def _attention(q, k, v, mask=None):
    return scaled_dot_product_attention(q, k, v, mask, scale=SCALE)


def _divided(q, k, v, mask=None):
    return scaled_dot_product_attention(q, k, v, mask, scale=1 / SCALE)


def _gelu_with_tanh(x):
    return gelu(x, "tanh")


FORMS = (
    Form("softmax", _softmax, lambda x: softmax(x, axis=-1), ROWS),
    *(
        Form(f"layer_norm{name}", written, op, shapes)
        for norm in (_normed, _by_var, _by_rsqrt, _by_square)
        for name, written, op, shapes in (
            (
                " with weight and bias",
                lambda x, w, b, norm=norm: norm(x) * w + b,
                lambda x, w, b: layer_norm(x, (x.shape[-1],), w, b, EPS),
                AFFINE,
            ),
            ("", norm, lambda x: layer_norm(x, (x.shape[-1],), None, None, EPS), ROWS),
        )
    ),
    *(
        Form(f"rms_norm{name}", written, op, shapes)
        for norm in (_rms, _rms_by_rsqrt, _rms_by_square)
        for name, written, op, shapes in (
            (
                " with weight",
                lambda x, w, norm=norm: norm(x) * w,
                lambda x, w: rms_norm(x, (x.shape[-1],), w, EPS),
                WEIGHT,
            ),
            ("", norm, lambda x: rms_norm(x, (x.shape[-1],), None, EPS), ROWS),
        )
    ),
    Form("silu", lambda x: x * sigmoid(x), silu, ROWS),
    Form("gelu", lambda x: 0.5 * x * (1.0 + erf(x / 1.4142135623730951)), gelu, ROWS),
    Form("gelu by a product", lambda x: 0.5 * x * (1.0 + erf(x * 0.7071067811865476)), gelu, ROWS),
    Form("gelu, 0.5 last", lambda x: x * (1.0 + erf(x / 1.4142135623730951)) * 0.5, gelu, ROWS),
    Form("gelu, product, 0.5 last", lambda x: x * (1.0 + erf(x * 0.7071067811865476)) * 0.5, gelu, ROWS),
    Form("gelu with tanh", lambda x: 0.5 * x * (1.0 + _tanh_of(x, x**3)), _gelu_with_tanh, ROWS),
    Form("gelu with tanh, products", lambda x: 0.5 * x * (1.0 + _tanh_of(x, x * x * x)), _gelu_with_tanh, ROWS),
    Form("linear", lambda x, w, b: matmul(x, matrix_transpose(w)) + b, linear, LINEAR),
    Form("attention", lambda q, k, v: matmul(_softmax_op(_scores(q, k) * SCALE), v), _attention, HEADS),
    Form("attention, q divided", lambda q, k, v: matmul(_softmax_op(_scores(q / SCALE, k)), v), _divided, HEADS),
    Form("attention, q scaled", lambda q, k, v: matmul(_softmax_op(_scores(q * SCALE, k)), v), _attention, HEADS),
    Form("attention, divisor", lambda q, k, v: matmul(_softmax_op(_scores(q, k) / SCALE), v), _divided, HEADS),
    Form("attention with a mask", lambda q, k, v, m: matmul(_softmax_op(_scores(q, k) * SCALE + m), v),
         _attention, MASKED),
    Form("attention, divisor, mask", lambda q, k, v, m: matmul(_softmax_op(_scores(q, k) / SCALE + m), v),
         _divided, MASKED),
)  # fmt: skip
