"""Quantisation: floats as 8-bit integers or fp8, times a scale, the integers from a zero point on, and products."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from .. import dtypes as dt
from ..declare import DType, Index, Raw, Tensor, op
from ..lazy_numpy import np
from ..samples import Draw, Sample, draw, given, sample
from ._float import INF, NAN
from .arithmetic import clip, round_
from .logic import isnan
from .nn import linear
from .primitives import add, astype, dot_scale, matmul, multiply, subtract, where
from .views import reshape


def _along(v, x, axis):
    """One value for all, or one for each index of an axis of x."""
    return (
        np.reshape(v, ()) if axis is None or np.size(v) == 1 else np.reshape(v, (-1, *(1,) * (x.ndim - 1 - axis)))
    )


def _quantize(x, scale, zero_point, axis, dtype, like):
    """The quotient is rounded to the dtype that the op computes in: at ties that decides."""
    axis = axis if axis is None else axis % x.ndim
    t = np.float64 if like is dt.float64 else np.float32
    q = np.rint(x.astype(t) / _along(np.asarray(scale).astype(t), x, axis))
    q = np.where(np.isnan(q), t(0), q)
    q = q if zero_point is None else q + _along(np.asarray(zero_point), x, axis).astype(t)
    return np.clip(q, dtype.min, dtype.max).astype(dtype.numpy)


def _dequantize(x, scale, zero_point, axis):
    axis = axis if axis is None else axis % x.ndim
    d = x.astype(np.float64)
    d = d if zero_point is None else d - _along(np.asarray(zero_point), x, axis)
    return d * _along(np.asarray(scale), x, axis)


def _zero_points(*shape: int) -> Draw:
    return Draw(shape, 0, 127, dt.int64)


def _quantize_samples() -> Iterator[Sample]:
    scales = {"low": 0.01, "high": 0.1}
    for q in (dt.int8, dt.uint8):
        b = q.brief
        yield sample(f"tensor_{b}", draw(5, 33), draw(low=0.02, high=0.04), dtype=q)
        yield sample(f"zero_point_{b}", draw(5, 33), draw(**scales), _zero_points(), dtype=q)
        for axis, n in enumerate((3, 17, 5)):
            parameters = draw(n, **scales), _zero_points(n)
            yield sample(f"axis{axis}_{b}", draw(3, 17, 5), *parameters, axis=axis, dtype=q)
        yield sample(f"channels_{b}", draw(4, 3, 32), draw(3, **scales), axis=-2, dtype=q)
        ends = [-INF, INF, NAN, -1e4, 1e4, -128.5, -129, 127.5, 128, 255.5, 256, -0.5, -1, 0, -0.0]
        yield sample(f"ends_{b}", given(ends), 1.0, dtype=q)
        yield sample(f"ends_zero_point_{b}", given(ends), 1.0, 100, dtype=q)
        halves = [n + 0.5 for n in range(-9, 9)]
        yield sample(f"halves_{b}", given(halves), 1.0, 8, dtype=q)
        yield sample(f"halves_of_scale_{b}", given([h / 4 for h in halves]), 0.25, 8, dtype=q)
        yield sample(f"any_{b}", draw(4000, low=None), draw(4000, low=None), axis=0, dtype=q)
    for q in (dt.int4, dt.uint4, dt.int2, dt.uint2):
        b = q.brief
        yield sample(f"tensor_{b}", draw(5, 33), draw(low=0.3, high=0.6), dtype=q)
        yield sample(f"axis_{b}", draw(3, 17, 5), draw(17, low=0.3, high=0.6), _zero_points(17), axis=1, dtype=q)
        ends = [-INF, INF, NAN, -1e4, 1e4, -8.5, 7.5, 15.5, -2.5, 1.5, 2.5, 3.5, 0.5, -0.5, -0.0]
        yield sample(f"ends_{b}", given(ends), 1.0, dtype=q)
    plain = draw(2, 3, 4), draw(3, **scales)
    yield sample("one_zero_point", *plain, 128, axis=1, dtype=dt.uint8)
    yield sample("small_zero_points", *plain, draw(3, low=-9, high=9, dtype=dt.int8), axis=1, dtype=dt.int8)
    yield sample("one_scale", draw(7), draw(1, **scales), dtype=dt.int8)
    yield sample("scalar", draw(), draw(**scales), dtype=dt.int8)
    yield sample("zero_scale", given([0.0, 1.0, -1.0]), given([0.0], 1), dtype=dt.int8)
    yield sample("empty", draw(0, 3), draw(3, **scales), axis=1, dtype=dt.int8)
    yield sample("scales_without_axis", *plain, dtype=dt.int8, error=ValueError)
    yield sample("scale_mismatch", *plain, axis=2, dtype=dt.int8, error=ValueError)
    yield sample("one_scale_for_axis", draw(2, 3), draw(**scales), axis=1, dtype=dt.int8, error=ValueError)
    yield sample("zero_point_mismatch", *plain, _zero_points(2), axis=1, dtype=dt.int8, error=ValueError)
    yield sample("bad_axis", *plain, axis=3, dtype=dt.int8, error=ValueError)
    yield sample("wide", draw(3), draw(**scales), dtype=dt.int16, error=TypeError)
    yield sample("float_zero_point", draw(3), draw(**scales), draw(), dtype=dt.int8, error=TypeError)


def _dequantize_samples() -> Iterator[Sample]:
    scales = {"low": 0.01, "high": 0.1}
    for q in (dt.int8, dt.uint8):

        def whole(*shape: int, q: DType = q) -> Draw:
            return draw(*shape, low=None, dtype=q)

        b = q.brief
        yield sample(f"tensor_{b}", given(range(int(q.min), int(q.max) + 1), dtype=q), draw(**scales))
        yield sample(f"zero_point_{b}", whole(5, 33), draw(**scales), _zero_points())
        for axis, n in enumerate((3, 17, 5)):
            yield sample(f"axis{axis}_{b}", whole(3, 17, 5), draw(n, **scales), _zero_points(n), axis=axis)
        yield sample(f"channels_{b}", whole(4, 3, 32), draw(3, **scales), axis=-2)
    for q in (dt.int4, dt.uint4, dt.int2, dt.uint2):
        x = Draw((5, 17), q.min, q.max, q)
        yield sample(f"tensor_{q.brief}", x, draw(**scales))
        yield sample(f"axis_{q.brief}", x, draw(17, **scales), Draw((17,), 0, 3, dt.int64), axis=1)
    plain = draw(2, 3, 4, low=None, dtype=dt.int8), draw(3, **scales)
    yield sample("one_zero_point", *plain, -128, axis=1)
    yield sample("special_scales", draw(4000, low=None, dtype=dt.int8), draw(4000, low=None), axis=0)
    yield sample("scalar", draw(dtype=dt.uint8), draw(**scales))
    yield sample("empty", draw(0, 3, dtype=dt.int8), draw(3, **scales), axis=1)
    yield sample("scales_without_axis", *plain, error=ValueError)
    yield sample("scale_mismatch", *plain, axis=2, error=ValueError)
    yield sample("zero_point_mismatch", *plain, _zero_points(2), axis=1, error=ValueError)
    yield sample("floats", draw(3), draw(**scales), error=TypeError)


def _spread(v: Tensor, x: Tensor, axis: int | None) -> Tensor:
    if v.ndim == 0:
        return v
    return reshape(v, ()) if v.shape[0] == 1 else reshape(v, (-1, *(1,) * (x.ndim - 1 - axis)))


@op(
    shape="quantize",
    dtype="quantize",
    tier="extended",
    reference=_quantize,
    samples=_quantize_samples,
    dtypes=dt.FLOATS,
)
def quantize(
    x: Tensor, scale: Tensor, zero_point: Index | None = None, *, axis: int | None = None, dtype: DType
) -> Tensor:
    """round(x / scale) + zero_point as an integer of at most 8 bits: ties to even, the nearest where it is beyond.

    scale and zero_point are one value each, or one for each index of axis; without zero_point it is 0. NaN gives
    zero_point, and so does 0 / 0. dovetail.quantize takes block_size=, too: a value for each block along axis.
    """
    q = round_(x / _spread(scale, x, axis))
    q = where(isnan(q), 0.0, q)
    if zero_point is not None:
        q = add(q, astype(_spread(zero_point, x, axis), q.dtype))
    return astype(clip(q, dtype.min, dtype.max), dtype)


@op(
    shape="dequantize",
    dtype="float",
    tier="extended",
    tol=1,
    reference=_dequantize,
    samples=_dequantize_samples,
    dtypes=dt.FLOATS,
)
def dequantize(x: Raw, scale: Tensor, zero_point: Index | None = None, *, axis: int | None = None) -> Tensor:
    """(x - zero_point) * scale, in the dtype of scale: what quantize made integers of.

    scale and zero_point are one value each, or one for each index of axis; without zero_point it is 0.
    dovetail.dequantize takes block_size=, too: a value for each block along axis.
    """
    d = astype(x, scale.dtype)
    if zero_point is not None:
        d = subtract(d, astype(_spread(zero_point, x, axis), scale.dtype))
    return multiply(d, _spread(scale, x, axis))


EIGHT_BITS = (dt.int8, *dt.FLOAT8)


def _scaled_linear(x, weight, x_scale, weight_scale, bias, dtype):
    y = np.matmul(x.astype(np.float64), weight.T.astype(np.float64))
    y = y * np.reshape(x_scale, () if np.size(x_scale) == 1 else (*x.shape[:-1], 1))
    y = y * np.reshape(weight_scale, () if np.size(weight_scale) == 1 else -1)
    return y if bias is None else y + bias


def _scaled_linear_scale(x, weight, x_scale, weight_scale, bias, dtype, like):
    sizes = (
        None if a is None else np.abs(np.asarray(a).astype(np.float64))
        for a in (x, weight, x_scale, weight_scale, bias)
    )
    return dot_scale(_scaled_linear(*sizes, dtype), x.shape[-1], like)


def _scaled_linear_samples() -> Iterator[Sample]:
    scales = {"low": 0.01, "high": 0.1}

    def eight(*shape: int, d: DType) -> Draw:
        return draw(*shape, low=-100, high=100, dtype=d)

    for d in EIGHT_BITS:
        b, two = d.brief, (draw(**scales), draw(**scales))
        yield sample(f"{b}", eight(5, 48, d=d), eight(16, 48, d=d), *two)
        yield sample(f"{b}_odd", eight(7, 33, d=d), eight(5, 33, d=d), *two)
        yield sample(f"{b}_to_bf16", eight(32, 64, d=d), eight(48, 64, d=d), *two, dtype=dt.bfloat16)
        bias = draw(48, dtype=dt.bfloat16)
        yield sample(f"{b}_bias", eight(2, 16, 64, d=d), eight(48, 64, d=d), *two, bias, dtype=dt.bfloat16)
        yield sample(f"{b}_rows", eight(4, 48, d=d), eight(16, 48, d=d), draw(4, **scales), draw(16, **scales))
    one, other = eight(4, 32, d=dt.float8_e5m2), eight(16, 32, d=dt.float8_e4m3fn)
    yield sample("mixed", one, other, draw(1, **scales), draw(16, **scales), draw(16), dtype=dt.float16)
    yield sample("narrow", one, other, 0.01, 0.01, dtype=dt.float8_e4m3fn)
    x, w = eight(4, 32, d=dt.int8), eight(16, 32, d=dt.int8)
    yield sample("vector", eight(32, d=dt.int8), w, draw(), draw(16), draw(16, dtype=dt.float64), dtype=dt.float64)
    yield sample("batch", eight(2, 3, 32, d=dt.int8), w, draw(2, 3, **scales), 0.1)
    yield sample("kept_axes", eight(2, 3, 32, d=dt.int8), w, draw(2, 3, 1, **scales), draw(1, 1, **scales))
    yield sample("scales_of_two_dtypes", x, w, 1e-9, draw(dtype=dt.float16))
    yield sample("complex_scale", x, w, draw(dtype=dt.complex64), 0.1, error=TypeError)
    yield sample("complex_bias", x, w, 0.1, 0.1, draw(16, dtype=dt.complex64), error=TypeError)
    yield sample("no_rows", eight(0, 32, d=dt.int8), w, 0.1, 0.1)
    yield sample("mismatch", eight(4, 31, d=dt.int8), w, 0.1, 0.1, error=ValueError)
    yield sample("x_scale_mismatch", x, w, draw(3, **scales), 0.1, error=ValueError)
    yield sample("weight_scale_mismatch", x, w, 0.1, draw(4, **scales), error=ValueError)
    yield sample("bias_mismatch", x, w, 0.1, 0.1, draw(4), error=ValueError)
    yield sample("floats", draw(4, 32), w, 0.1, 0.1, error=TypeError)
    yield sample("to_integers", x, w, 0.1, 0.1, dtype=dt.int8, error=TypeError)


def _factor(scale: Tensor, shape: tuple[int, ...]) -> Tensor:
    return reshape(scale, () if math.prod(scale.shape) == 1 else shape)


@op(
    shape="scaled_linear",
    dtype="scaled",
    space="nn",
    tol=2,
    half="native",
    reference=_scaled_linear,
    scale=_scaled_linear_scale,
    samples=_scaled_linear_samples,
)
def scaled_linear(
    x: Raw,
    weight: Raw,
    x_scale: Tensor,
    weight_scale: Tensor,
    bias: Raw | None = None,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """x @ weight.T * x_scale * weight_scale + bias, of an x and a weight (out, in) in int8 or a float of 8 bits.

    x_scale is one value or one for each row of x, weight_scale one or one for each row of weight. Sums are made in
    float32, for a dtype of float64 in that, and rounded once to dtype, a float: float32 unless it is given.
    """
    wide = dt.float64 if dtype is dt.float64 else dt.float32
    y = linear(astype(x, wide), astype(weight, wide))
    y = y * _factor(x_scale, (*x.shape[:-1], 1)) * _factor(weight_scale, (-1,))
    if bias is not None:
        y = add(y, astype(bias, y.dtype))
    return astype(y, dtype or wide)


# ---- products of integers ----------------------------------------------------------------------------------------

BYTES = (dt.int8, dt.uint8)


def _matmul_integer(x1, x2, x1_zero_point, x2_zero_point):
    a, b = x1.astype(np.int64), x2.astype(np.int64)
    if x1_zero_point is not None:
        z = x1_zero_point.astype(np.int64)
        a = a - (z[:, None] if z.ndim and a.ndim > 1 else z)
    if x2_zero_point is not None:
        b = b - x2_zero_point.astype(np.int64)
    return np.matmul(a, b).astype(np.int32)


def _matmul_integer_samples() -> Iterator[Sample]:
    def some(*shape: int, d: DType) -> Draw:
        return draw(*shape, low=None, dtype=d)

    for d1, d2 in itertools.product(BYTES, BYTES):
        b = f"{d1.brief}_{d2.brief}"
        for m, k, n in ((1, 1, 1), (3, 5, 7), (33, 70, 65), (1, 100, 33), (17, 128, 1)):
            yield sample(f"{b},m={m},k={k},n={n}", some(m, k, d=d1), some(k, n, d=d2))
        x1, x2 = some(9, 37, d=d1), some(37, 21, d=d2)
        yield sample(f"{b}_zero_points", x1, x2, some(d=d1), some(d=d2))
        yield sample(f"{b}_rows_columns", x1, x2, some(9, d=d1), some(21, d=d2))
        yield sample(f"{b}_x1_zero_point", x1, x2, some(9, d=d1))
        yield sample(f"{b}_x2_zero_point", x1, x2, None, some(d=d2))
        ends = [[int(d.min), int(d.max)] * 150 for d in (d1, d2)]
        yield sample(f"{b}_ends", given(ends[0], 3, 100, dtype=d1), given(ends[1], 100, 3, dtype=d2))
    u, s = dt.uint8, dt.int8
    yield sample("vectors", some(9, d=u), some(9, d=s), some(d=u), some(1, d=s))
    yield sample("vector_matrix", some(9, d=u), some(9, 4, d=s), some(1, d=u), some(4, d=s))
    yield sample("matrix_vector", some(4, 9, d=u), some(9, d=s), some(4, d=u), some(d=s))
    yield sample("batch", some(3, 4, 5, d=u), some(3, 5, 6, d=s), some(4, d=u), some(6, d=s))
    yield sample("broadcast", some(2, 1, 4, 5, d=s), some(3, 5, 6, d=s), some(1, d=s), some(6, d=s))
    yield sample("no_terms", some(3, 0, d=u), some(0, 4, d=s), some(3, d=u), some(d=s))
    yield sample("no_rows", some(0, 3, d=u), some(3, 4, d=s), some(0, d=u))
    x1, x2 = some(4, 5, d=u), some(5, 6, d=s)
    yield sample("mismatch", x1, some(4, 6, d=s), error=ValueError)
    yield sample("rows_mismatch", x1, x2, some(6, d=u), error=ValueError)
    yield sample("columns_mismatch", x1, x2, None, some(4, d=s), error=ValueError)
    yield sample("zero_point_matrix", x1, x2, some(4, 1, d=u), error=ValueError)
    yield sample("vector_zero_points", some(5, d=u), x2, some(5, d=u), error=ValueError)
    yield sample("zero_point_dtype", x1, x2, some(d=s), error=TypeError)
    yield sample("x2_zero_point_dtype", x1, x2, None, some(d=u), error=TypeError)
    yield sample("floats", draw(4, 5), x2, error=TypeError)
    yield sample("wide", x1, draw(5, 6, dtype=dt.int32), error=TypeError)


@op(
    shape="matmul_integer",
    dtype="int32",
    tier="extended",
    reference=_matmul_integer,
    samples=_matmul_integer_samples,
    dtypes=(dt.int32,),
)
def matmul_integer(x1: Raw, x2: Raw, x1_zero_point: Raw | None = None, x2_zero_point: Raw | None = None) -> Tensor:
    """(x1 - x1_zero_point) @ (x2 - x2_zero_point) in int32, of int8 and uint8 in any combination.

    Shapes are those of matmul. A zero point has its operand's dtype and is one value, or one for each row of x1,
    (M,), and for each column of x2, (N,); without it, it is 0. Sums are exact; beyond int32 they wrap.
    """
    a, b = astype(x1, dt.int32), astype(x2, dt.int32)
    if x1_zero_point is not None:
        z = astype(x1_zero_point, dt.int32)
        a = subtract(a, reshape(z, (-1, 1)) if z.ndim and a.ndim > 1 else z)
    if x2_zero_point is not None:
        b = subtract(b, astype(x2_zero_point, dt.int32))
    return matmul(a, b)
