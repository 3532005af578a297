"""The primitives that every device has, in which decompositions end."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .. import dtypes as dt
from ..declare import DType, Index, Ints, Mask, Scalar, Tensor, Unsupported, op
from ..lazy_numpy import np
from ..samples import CASE, Draw, Sample, draw, given, indices, sample

EXACT, ROUNDED = 0.0, 0.501  # ROUNDED: correctly, up to the oracle's own rounding
ANY = dt.NOT_COMPLEX


def as_axes(axis: Ints | None) -> tuple[int, ...] | int | None:
    """An axis attribute as NumPy's functions take it."""
    return axis if axis is None or isinstance(axis, int) else tuple(axis)


# ---- copies ------------------------------------------------------------------------------------------------------


@op(shape="same", dtype="same", tier="must", half="native", dtypes=ANY, reference=np.copy)
def copy(x: Tensor, /) -> Tensor:
    """x itself, in memory of its own."""


def _nearest(x, d):
    """The nearest numbers of a stored float as float64, by a search among all: ties to even codes, of powers of two
    to the larger one."""
    numbers = np.unique(np.arange(2**d.bits, dtype=np.uint8).view(d.numpy).astype(np.float64))
    numbers = numbers[np.isfinite(numbers) & (numbers >= 0)]  # by code
    powers, saturates = d is dt.float8_e8m0fnu, d is dt.float4_e2m1fn
    numbers = np.append(numbers, numbers[-1] * 2 if powers else 2 * numbers[-1] - numbers[-2])
    size = np.abs(np.where(np.isnan(x), 0, x))
    at = np.clip(np.searchsorted(numbers, size), 1, len(numbers) - 1)
    low, high = numbers[at - 1], numbers[at]
    nearest = np.where(
        (size > (low + high) / 2) | ((size == (low + high) / 2) & (powers | (at % 2 == 0))), high, low
    )
    nearest = np.where(nearest == numbers[-1], numbers[-2] if saturates else np.nan, nearest)
    if powers:
        return np.where(x > 0, nearest, np.nan)
    nearest = np.where((nearest == 0) & (not saturates), 0.0, np.copysign(nearest, x))
    return np.where(np.isnan(x), -0.0 if saturates else np.nan, nearest)


def _astype(x, dtype):
    x = x.astype(np.int64) if dt.by_name.get(x.dtype.name) in dt.PACKED else x
    if dtype in dt.STORED and dtype.kind == "f":
        return _nearest(x.astype(np.float64), dtype)
    if dtype.kind == "f":
        return x if x.dtype.kind == "f" else x.astype(np.float64)
    return x != 0 if dtype.kind == "b" else np.trunc(x).astype(dtype.numpy)


def _astype_samples() -> Iterator[Sample]:
    for target in ANY:
        low = 0 if target.kind in "ub" else -100
        yield sample(f"to_{target.brief}", draw(7, 11, low=low, high=100), target)
    yield sample("rounds", draw(1000, low=None), dt.float32, only=(dt.float64, dt.int64, dt.float32))
    yield sample("empty", draw(0, 3), dt.int32)


@op(
    shape="same",
    dtype="given",
    tier="must",
    traits=("converts",),
    half="native",
    reference=_astype,
    samples=_astype_samples,
    tol=ROUNDED,
)
def astype(x: Tensor, dtype: DType, /) -> Tensor:
    """x converted to dtype: floats lose their fraction on the way to integers, and are True where not 0.

    An integer too large for a smaller type wraps; a float that an integer type cannot hold gives any value. What is
    too large for a float of 8 bits without an infinity is NaN, and so is what is not positive in float8_e8m0fnu,
    whose numbers are the powers of two; what is too large for float4_e2m1fn is its largest number, and NaN is -0.
    """


def _full_samples() -> Iterator[Sample]:
    for name, shape in {"scalar": (), "vector": (19,), "cube": (2, 3, 4), "empty": (3, 0)}.items():
        yield sample(name, shape, 1, dtype=CASE)
    yield sample("fraction", (5,), -1.5, dtype=CASE, only=dt.FLOATS)
    yield sample("infinite", (5,), float("inf"), dtype=CASE, only=dt.FLOATS)
    yield sample("default", (2, 2), 3)
    yield sample("negative", (2, -1), 3, error=ValueError)


@op(
    shape="from_shape",
    dtype="given",
    tier="must",
    half="native",
    samples=_full_samples,
    reference=lambda shape, fill_value, dtype: np.full(shape, fill_value),
)
def full(shape: Ints, fill_value: Scalar, *, dtype: DType | None = None) -> Tensor:
    """fill_value everywhere."""


def _iota_samples() -> Iterator[Sample]:
    for size in (0, 1, 100):
        yield sample(f"{size}", size, CASE)
    yield sample("negative", -1, CASE, error=ValueError)


@op(
    shape="iota",
    dtype="given",
    tier="must",
    half="native",
    private=True,
    dtypes=dt.REAL,
    samples=_iota_samples,
    reference=lambda size, dtype: np.arange(size),
)
def iota(size: int, dtype: DType) -> Tensor:
    """0, 1, ... size - 1."""


def _take_samples() -> Iterator[Sample]:
    yield sample("vector", draw(9), indices(20, size=9))
    for axis in (0, 1, -1):
        n = (5, 6, 7)[axis]
        yield sample(f"axis{axis}", draw(5, 6, 7), indices(4, size=n), axis=axis)
    yield sample("matrix_of_indices", draw(5, 6), indices(2, 3, size=6), axis=1)
    yield sample("scalar_index", draw(5, 6), indices(size=5), axis=0)
    yield sample("nothing", draw(5, 6), indices(0, size=5), axis=0)
    yield sample("beyond", draw(5), given([0, 5], dtype=dt.int64), error=IndexError)
    yield sample("before", draw(5, 2), given([-6], dtype=dt.int64), axis=0, error=IndexError)
    yield sample("no_axis", draw(5, 6), indices(2, size=5), error=ValueError)
    yield sample("bad_axis", draw(5, 6), indices(2, size=5), axis=2, error=ValueError)


@op(
    shape="take",
    dtype="same",
    tier="must",
    half="native",
    dtypes=ANY,
    samples=_take_samples,
    reference=lambda x, indices, axis: np.take(x, indices, axis),
)
def take(x: Tensor, indices: Index, /, *, axis: int | None = None) -> Tensor:
    """The slices of x along axis that indices name; a negative index counts from the end.

    axis may be left out for a vector. An index outside of [-n, n) is an IndexError.
    """


def _where_samples() -> Iterator[Sample]:
    for one in (True, False):  # condition for all; of the others one is a scalar
        condition = Draw((), dtype=dt.bool_, values=(one,))
        yield sample(f"{one}_array_scalar".lower(), condition, draw(7, low=None), draw(low=None))
        yield sample(f"{one}_scalar_array".lower(), condition, draw(low=None), draw(7, low=None))


@op(
    shape="broadcast",
    dtype="promote",
    tier="must",
    half="native",
    dtypes=ANY,
    reference=np.where,
    samples=_where_samples,
)
def where(condition: Mask, x1: Tensor, x2: Tensor, /) -> Tensor:
    """x1 where condition holds, else x2; what is not chosen has no influence."""


# ---- arithmetic --------------------------------------------------------------------------------------------------


@op(shape="broadcast", dtype="numeric", tier="must", tol=ROUNDED, reference=np.add)
def add(x1: Tensor, x2: Tensor, /) -> Tensor:
    """x1 + x2; integers wrap."""


@op(shape="broadcast", dtype="numeric", tier="must", tol=ROUNDED, reference=np.subtract)
def subtract(x1: Tensor, x2: Tensor, /) -> Tensor:
    """x1 - x2; integers wrap."""


@op(shape="broadcast", dtype="numeric", tier="must", tol=ROUNDED, reference=np.multiply)
def multiply(x1: Tensor, x2: Tensor, /) -> Tensor:
    """x1 * x2; integers wrap."""


@op(shape="broadcast", dtype="float", tier="must", tol=ROUNDED, reference=np.divide)
def divide(x1: Tensor, x2: Tensor, /) -> Tensor:
    """x1 / x2, correctly rounded."""


def _quotient(x1, x2):
    x1, x2 = np.asarray(x1), np.asarray(x2, None if np.ndim(x2) else np.asarray(x1).dtype)
    d = np.where(x2 == 0, x2.dtype.type(1), x2)
    q = x1 // d
    q = q + ((q * d != x1) & ((x1 < 0) != (d < 0))).astype(q.dtype)
    return np.where(x2 == 0, q.dtype.type(0), q)


@op(shape="broadcast", dtype="integer", tier="must", private=True, reference=_quotient)
def quotient(x1: Tensor, x2: Tensor, /) -> Tensor:
    """x1 / x2 of integers, truncated; x / 0 is 0, and the least integer / -1 wraps to itself."""


@op(shape="broadcast", dtype="promote", tier="must", dtypes=ANY, reference=np.maximum)
def maximum(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The larger one, or NaN where either is NaN; of zeros either."""


@op(shape="broadcast", dtype="promote", tier="must", dtypes=ANY, reference=np.minimum)
def minimum(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The smaller one, or NaN where either is NaN; of zeros either."""


@op(shape="broadcast", dtype="compare", tier="must", reference=np.equal)
def equal(x1: Tensor, x2: Tensor, /) -> Tensor:
    """x1 == x2; NaN equals nothing."""


@op(shape="broadcast", dtype="compare", tier="must", reference=np.less)
def less(x1: Tensor, x2: Tensor, /) -> Tensor:
    """x1 < x2; False where either is NaN."""


@op(shape="broadcast", dtype="bit", tier="must", reference=np.bitwise_and)
def bitwise_and(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The bits set in both; on bool logical and."""


@op(shape="broadcast", dtype="bit", tier="must", reference=np.bitwise_or)
def bitwise_or(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The bits set in either; on bool logical or."""


@op(shape="broadcast", dtype="bit", tier="must", reference=np.bitwise_xor)
def bitwise_xor(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The bits set in one of them; on bool logical exclusive or."""


SHIFTS = ((None, None), (0, 70))


@op(shape="broadcast", dtype="integer", tier="must", reference=np.left_shift, domain=SHIFTS)
def bitwise_left_shift(x1: Tensor, x2: Tensor, /) -> Tensor:
    """x1 shifted left by x2 >= 0 places; 0 from the type's width on."""


@op(shape="broadcast", dtype="integer", tier="must", reference=np.right_shift, domain=SHIFTS)
def bitwise_right_shift(x1: Tensor, x2: Tensor, /) -> Tensor:
    """x1 shifted right by x2 >= 0 places, keeping its sign; 0 or -1 from the type's width on."""


# ---- functions ---------------------------------------------------------------------------------------------------


@op(shape="same", dtype="same_real", tier="must", traits=("identity_on_ints",), reference=np.floor)
def floor(x: Tensor, /) -> Tensor:
    """The largest integer not above x, keeping -0; integers are themselves."""


@op(shape="same", dtype="float", tier="must", tol=ROUNDED, reference=np.sqrt)
def sqrt(x: Tensor, /) -> Tensor:
    """The square root, correctly rounded; NaN below 0, -0 at -0."""


@op(shape="same", dtype="float", autocast="float32", tier="must", tol=1, reference=np.exp)
def exp(x: Tensor, /) -> Tensor:
    """e to the power of x, below 1 ulp; exp(0) = 1; subnormal results are right too."""


@op(shape="same", dtype="float", autocast="float32", tier="must", tol=1, reference=np.log)
def log(x: Tensor, /) -> Tensor:
    """The natural logarithm, below 1 ulp; log(1) = 0, -inf at zeros, NaN below."""


@op(shape="same", dtype="float", tier="must", tol=1, reference=np.sin)
def sin(x: Tensor, /) -> Tensor:
    """The sine, below 1 ulp relatively over the whole range; NaN at infinities."""


# ---- reductions and products -------------------------------------------------------------------------------------


def accumulated(x, dtype):
    """x as its sum adds it up: small integers widened by the accum rule."""
    if dtype is None:
        return x if x.dtype.kind in "fc" else x.astype(np.uint64 if x.dtype.kind == "u" else np.int64)
    if dtype.kind == "f":
        return x if x.dtype.kind == "f" else x.astype(np.float64)
    return x.astype(dtype.numpy)


def reduction_samples() -> Iterator[Sample]:
    yield sample("all", draw(3, 4, 5))
    yield sample("first", draw(33, 5), axis=0)
    yield sample("last", draw(5, 129), axis=-1)
    yield sample("middle", draw(3, 17, 4), axis=1, keepdims=True)
    yield sample("two", draw(3, 4, 5), axis=(0, -1))
    yield sample("none", draw(3, 4), axis=())
    yield sample("scalar", draw())
    yield sample("long", draw(2, 5000), axis=1)
    yield sample("no_rows", draw(0, 3), axis=1)
    yield sample("bad_axis", draw(3, 4), axis=2, error=ValueError)
    yield sample("twice", draw(3, 4), axis=(0, -2), error=ValueError)


def _sum_samples() -> Iterator[Sample]:
    yield from reduction_samples()
    yield sample("empty", draw(0, 3), axis=0)
    yield sample("as_f32", draw(7, 6), dtype=dt.float32, axis=0)
    yield sample("as_i32", draw(7, 6), dtype=dt.int32, axis=0, only=dt.BOOL + dt.INTEGERS)


def _sum(x, axis, dtype, keepdims):
    return np.sum(accumulated(x, dtype), axis=as_axes(axis), keepdims=keepdims)


@op(
    shape="reduce",
    dtype="accum",
    autocast="float32",
    tier="must",
    tol=2,
    samples=_sum_samples,
    reference=_sum,
    scale=lambda x, **how: _sum(np.abs(x), **how),
)
def sum_(x: Tensor, /, *, axis: Ints | None = None, dtype: DType | None = None, keepdims: bool = False) -> Tensor:
    """The sum over axis, or over all; float16 and bfloat16 add up in float32. 0 of nothing."""


def extremum_samples() -> Iterator[Sample]:
    yield from reduction_samples()
    yield sample("any_value", draw(40, 60, low=None), axis=1)
    yield sample("empty", draw(0, 3), axis=0, error=ValueError)


@op(
    shape="reduce",
    dtype="same",
    tier="must",
    dtypes=ANY,
    samples=extremum_samples,
    reference=lambda x, axis, keepdims: np.max(x, axis=as_axes(axis), keepdims=keepdims),
)
def max_(x: Tensor, /, *, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    """The largest element over axis, NaN where there is one. Nothing to choose from is a ValueError."""


def _matmul_samples() -> Iterator[Sample]:
    for m, k, n in ((1, 1, 1), (3, 5, 7), (64, 64, 64), (1, 100, 33), (17, 128, 1)):
        yield sample(f"m={m},k={k},n={n}", draw(m, k), draw(k, n))
    yield sample("vectors", draw(9), draw(9))
    yield sample("vector_matrix", draw(9), draw(9, 4))
    yield sample("matrix_vector", draw(4, 9), draw(9))
    yield sample("batch", draw(3, 4, 5), draw(3, 5, 6))
    yield sample("broadcast", draw(2, 1, 4, 5), draw(3, 5, 6))
    yield sample("batch_vector", draw(3, 4, 5), draw(5))
    yield sample("no_terms", draw(3, 0), draw(0, 4))
    yield sample("no_rows", draw(0, 3), draw(3, 4))
    yield sample("mismatch", draw(2, 3), draw(4, 5), error=ValueError)
    yield sample("batch_mismatch", draw(2, 3, 4), draw(3, 4, 5), error=ValueError)
    yield sample("scalar", draw(), draw(3), error=ValueError)
    yield from _widened_samples()


SMALL_INTEGERS = (dt.int8, dt.uint8, dt.int16)  # whose products int32 holds


def _widened_samples() -> Iterator[Sample]:
    for wide, narrow in ((dt.float32, dt.HALVES), (dt.int32, SMALL_INTEGERS)):
        w = wide.brief
        for m, k, n in ((3, 5, 7), (64, 64, 64), (17, 128, 1), (2, 0, 3)):
            yield sample(f"to_{w},m={m},k={k},n={n}", draw(m, k), draw(k, n), dtype=wide, only=narrow)
        yield sample(f"to_{w}_vectors", draw(9), draw(9), dtype=wide, only=narrow)
        yield sample(f"to_{w}_batch", draw(2, 1, 4, 5), draw(3, 5, 6), dtype=wide, only=narrow)
    any_values = draw(9, 200, low=None), draw(200, 11, low=None)
    yield sample("to_i32_any_value", *any_values, dtype=dt.int32, only=SMALL_INTEGERS)
    yield sample("own_dtype", draw(3, 5), draw(5, 7), dtype=CASE)
    yield sample("floats_to_double", draw(3, 5), draw(5, 7), dtype=dt.float64, error=TypeError, only=(dt.float32,))
    yield sample("floats_to_half", draw(3, 5), draw(5, 7), dtype=dt.float16, error=TypeError, only=(dt.float32,))
    yield sample("integers_to_float", draw(3, 5), draw(5, 7), dtype=dt.float32, error=TypeError, only=(dt.int32,))


def dot_slack(terms: int) -> float:
    """The factor by which rounding errors of a sum of products, in any order, exceed those of a short sum.

    They add up as a random walk: with tol=2 this is five standard deviations, a fraction of the bound of terms / 2.
    """
    return max(1.0, math.sqrt(terms) / 2)


def dot_scale(size, terms: int, like: DType):
    """The scale of sums of products whose magnitudes come to `size`; subnormal ones share one ulp."""
    return np.maximum(size, like.tiny) * (size != 0) * dot_slack(terms)


def _matmul(x1, x2, dtype):
    if dtype is dt.int32:
        return np.matmul(x1.astype(np.int64), x2.astype(np.int64)).astype(np.int32)
    return np.matmul(x1, x2)


@op(
    shape="matmul",
    dtype="matmul",
    autocast="lower",
    tier="must",
    tol=2,
    reference=_matmul,
    samples=_matmul_samples,
    scale=lambda x1, x2, dtype, like: dot_scale(np.matmul(np.abs(x1), np.abs(x2)), x1.shape[-1], dtype or like),
    version=2,
    since={"dtype": 2},
)
def matmul(x1: Tensor, x2: Tensor, /, *, dtype: DType | None = None) -> Tensor:
    """The matrix product over the last two axes; the axes before them broadcast, a vector is a row or a column.

    float16 and bfloat16 add up in float32; integers wrap. The result has the dtype that x1 and x2 promote to.
    dtype=float32 leaves the sums of float16 or bfloat16 unrounded; with dtype=int32 sums of int8, uint8 or int16
    wrap at 32 bits. Other dtypes than the operands' own are a TypeError.
    """
    if dtype is None:
        raise Unsupported("without dtype it has no decomposition: it needs a kernel")
    return matmul(astype(x1, dtype), astype(x2, dtype))
