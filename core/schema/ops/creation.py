"""Arrays from nothing but attributes."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .. import dtypes as dt
from ..declare import DType, Index, Ints, Scalar, Tensor, Unsupported, op
from ..lazy_numpy import np
from ..number import is_integer, largest, smallest
from ..samples import CASE, Sample, draw, indices, sample
from .primitives import add, astype, equal, full, iota, multiply
from .views import expand_dims, reshape, set_slice


def _shape_samples() -> Iterator[Sample]:
    for name, shape in {"scalar": (), "vector": 7, "cube": (2, 3, 4), "empty": (3, 0)}.items():
        yield sample(name, shape, dtype=CASE)
    yield sample("default", (2, 2))
    yield sample("negative", (2, -1), error=ValueError)
    yield sample("overflow", (2**40, 2**40), error=ValueError)


CREATION = {"dtype": "given", "half": "native"}


@op(shape="from_shape", samples=_shape_samples, reference=lambda shape, dtype: np.zeros(shape), **CREATION)
def zeros(shape: Ints, *, dtype: DType | None = None) -> Tensor:
    """0 everywhere; dtype is float32 by default."""
    return full(shape, 0, dtype=dtype or dt.float32)


@op(shape="from_shape", samples=_shape_samples, reference=lambda shape, dtype: np.ones(shape), **CREATION)
def ones(shape: Ints, *, dtype: DType | None = None) -> Tensor:
    """1 everywhere; dtype is float32 by default."""
    return full(shape, 1, dtype=dtype or dt.float32)


# ---- ranges ------------------------------------------------------------------------------------------------------


def _arange(start, stop, step, dtype):
    return np.arange(start, stop, step) if stop is not None else np.arange(0, start, step)


def _arange_samples() -> Iterator[Sample]:
    yield sample("stop", 10, dtype=CASE)
    yield sample("start_stop", 3, 11, dtype=CASE)
    yield sample("step", 1, 20, 3, dtype=CASE)
    yield sample("backward", 10, 0, -3, dtype=CASE)
    yield sample("nothing", 3, 3, dtype=CASE)
    yield sample("fraction", 0.0, 1.0, 0.125, dtype=CASE, only=dt.FLOATS)
    yield sample("default_int", 5)
    yield sample("default_float", 0.0, 5.0, 0.5)
    yield sample("no_step", 0, 5, 0, error=ValueError)


def default_dtype(*scalars: Scalar | None) -> DType:
    """The dtype of Python numbers without arrays."""
    return dt.int64 if all(s is None or is_integer(s) for s in scalars) else dt.float32


def _compute_dtype(d: DType) -> DType:
    """The dtype in which a range of d is computed, before one rounding."""
    if d.kind == "f":
        return dt.float64 if d is dt.float64 else dt.float32
    return dt.uint64 if d is dt.uint64 else dt.int64


@op(
    shape="arange",
    dtype="given",
    half="native",
    dtypes=dt.REAL,
    tol=2,
    samples=_arange_samples,
    reference=_arange,
    scale=lambda start, stop, step, dtype: abs(start) + abs(stop or 0),
)
def arange(start: Scalar, /, stop: Scalar | None = None, step: Scalar = 1, *, dtype: DType | None = None) -> Tensor:
    """start, start + step, ... before stop; arange(stop) counts from 0.

    dtype is int64 by default, float32 where an argument is a float.
    """
    if stop is None:
        start, stop = 0, start
    d = dtype or default_dtype(start, stop, step)
    if is_integer(start) and is_integer(stop) and is_integer(step):
        n = largest(0, -((start - stop) // step))
    else:
        n = largest(0, math.ceil((stop - start) / step))
    wide = _compute_dtype(d)
    x = iota(n, wide)
    if wide.kind != "f":
        start, step = (s if is_integer(s) else int(s) for s in (start, step))
    if wide is dt.uint64 and smallest(start, step) < 0:
        wide, x = dt.int64, iota(n, dt.int64)
    x = x if step == 1 else multiply(x, step)
    x = x if start == 0 else add(x, start)
    return x if wide is d else astype(x, d)


def _linspace_samples() -> Iterator[Sample]:
    yield sample("closed", 0.0, 1.0, 11, dtype=CASE)
    yield sample("open", -2.0, 3.0, 8, endpoint=False, dtype=CASE)
    yield sample("backward", 5.0, -5.0, 101, dtype=CASE)
    yield sample("one", 2.0, 3.0, 1, dtype=CASE)
    yield sample("none", 2.0, 3.0, 0, dtype=CASE)
    yield sample("default", 0.0, 1.0, 5)
    yield sample("negative", 0.0, 1.0, -1, error=ValueError)


@op(
    shape="linspace",
    dtype="given",
    half="native",
    dtypes=dt.FLOATS,
    tol=2,
    samples=_linspace_samples,
    reference=lambda start, stop, num, dtype, endpoint: np.linspace(start, stop, num, endpoint=endpoint),
    scale=lambda start, stop, num, dtype, endpoint: max(abs(start), abs(stop)),
)
def linspace(
    start: float, stop: float, /, num: int, *, dtype: DType | None = None, endpoint: bool = True
) -> Tensor:
    """num numbers from start to stop, evenly; the last one is stop itself, or the one before it."""
    d = dtype or dt.float32
    if d.kind != "f":
        raise Unsupported(f"dtype: got {d.name}, expected a floating one; astype the result")
    wide, gaps = _compute_dtype(d), num - 1 if endpoint else num
    x = iota(num, wide)
    if gaps > 0:
        x = add(multiply(x, (stop - start) / gaps), start)
    else:
        x = add(x, start)
    if endpoint and num > 1:
        x = set_slice(x, full((), stop, dtype=wide), start=(num - 1,), stop=(num,), step=(1,))
    return x if wide is d else astype(x, d)


# ---- diagonals ---------------------------------------------------------------------------------------------------


def _eye_samples() -> Iterator[Sample]:
    yield sample("square", 4, dtype=CASE)
    yield sample("wide", 3, 5, k=1, dtype=CASE)
    yield sample("tall", 5, 3, k=-2, dtype=CASE)
    yield sample("outside", 3, 3, k=7, dtype=CASE)
    yield sample("empty", 0, 3, dtype=CASE)
    yield sample("default", 3)


@op(
    shape="eye",
    samples=_eye_samples,
    reference=lambda n_rows, n_cols, k, dtype: np.eye(n_rows, n_cols, k),
    **CREATION,
)
def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DType | None = None) -> Tensor:
    """1 on the k-th diagonal, 0 elsewhere; dtype is float32 by default."""
    row = reshape(iota(n_rows, dt.int64), (n_rows, 1))
    column = iota(n_rows if n_cols is None else n_cols, dt.int64)
    return astype(equal(row if k == 0 else add(row, k), column), dtype or dt.float32)


def _one_hot_samples() -> Iterator[Sample]:
    yield sample("vector", indices(7, size=5)._replace(low=0), 5, dtype=CASE)
    yield sample("matrix", indices(2, 3, size=4)._replace(low=0), 4)
    yield sample("outside", indices(20, size=5), 3)
    yield sample("no_classes", draw(3, dtype=dt.int64), 0, error=ValueError)


@op(
    shape="one_hot",
    dtype="index",
    half="native",
    space="nn",
    dtypes=dt.NOT_COMPLEX,
    samples=_one_hot_samples,
    reference=lambda x, num_classes, dtype: np.expand_dims(x, -1) == np.arange(num_classes),
)
def one_hot(x: Index, num_classes: int, *, dtype: DType | None = None) -> Tensor:
    """1 at place x of a new last axis, 0 elsewhere.

    An x outside of it gives zeros. dtype is int64 by default.
    """
    return astype(equal(expand_dims(x, axis=x.ndim), iota(num_classes, dt.int64)), dtype or dt.int64)
