"""The views that the core serves: metadata only, over the same memory where strides can express them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .. import dtypes as dt
from ..declare import DType, Ints, Tensor, op
from ..lazy_numpy import np
from ..samples import Sample, draw, sample
from .primitives import ANY, as_axes


def _reshape_samples() -> Iterator[Sample]:
    yield sample("merge", draw(3, 4, 5), (12, 5))
    yield sample("split", draw(12, 5), (3, -1, 5))
    yield sample("flat", draw(2, 3), -1)
    yield sample("scalar", draw(1, 1), ())
    yield sample("empty", draw(0, 4), (2, 0))
    yield sample("too_many", draw(2, 3), (7,), error=ValueError)
    yield sample("two_unknown", draw(2, 3), (-1, -1), error=ValueError)


@op(
    shape="reshape",
    dtype="same",
    view=True,
    half="native",
    dtypes=ANY,
    samples=_reshape_samples,
    reference=lambda x, shape: np.reshape(x, shape),
)
def reshape(x: Tensor, /, shape: Ints) -> Tensor:
    """The elements of x in row-major order, in another shape; copied where strides cannot express it."""


def with_middle(x: Tensor, axis: int, n_axes: int = 1) -> Tensor:
    """x as (outer, middle, inner): n_axes axes from `axis` on as one, those before and those behind as one each.

    What depends on ranks and axes stays outside of the op that works along the middle axis: a decomposition that is
    long, or has loops, then needs few programs.
    """
    axis = int(axis)  # each axis has a program of its own
    end = axis + n_axes
    return reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:end]), math.prod(x.shape[end:])))


def _permute_samples() -> Iterator[Sample]:
    yield sample("reversed", draw(2, 3, 4), (2, 1, 0))
    yield sample("cycle", draw(2, 3, 4), (1, 2, 0))
    yield sample("negative", draw(2, 3), (-1, 0))
    yield sample("short", draw(2, 3, 4), (0, 1), error=ValueError)
    yield sample("twice", draw(2, 3), (0, 0), error=ValueError)


@op(
    shape="permute_dims",
    dtype="same",
    view=True,
    half="native",
    dtypes=ANY,
    samples=_permute_samples,
    reference=lambda x, axes: np.transpose(x, axes),
)
def permute_dims(x: Tensor, /, axes: Ints) -> Tensor:
    """x with axis i being its axis axes[i]."""


def _expand_samples() -> Iterator[Sample]:
    yield sample("front", draw(2, 3))
    yield sample("back", draw(2, 3), axis=-1)
    yield sample("several", draw(2, 3), axis=(0, 2))
    yield sample("beyond", draw(2, 3), axis=3, error=ValueError)


@op(
    shape="expand_dims",
    dtype="same",
    view=True,
    half="native",
    dtypes=ANY,
    samples=_expand_samples,
    reference=lambda x, axis: np.expand_dims(x, as_axes(axis)),
)
def expand_dims(x: Tensor, /, axis: Ints = 0) -> Tensor:
    """x with new axes of size 1 at the places axis of the result."""


def _squeeze_samples() -> Iterator[Sample]:
    yield sample("one", draw(1, 3), 0)
    yield sample("several", draw(1, 3, 1), (0, -1))
    yield sample("not_one", draw(2, 3), 0, error=ValueError)


@op(
    shape="squeeze",
    dtype="same",
    view=True,
    half="native",
    dtypes=ANY,
    samples=_squeeze_samples,
    reference=lambda x, axis: np.squeeze(x, as_axes(axis)),
)
def squeeze(x: Tensor, /, axis: Ints) -> Tensor:
    """x without the axes axis, which have size 1."""


def _broadcast_samples() -> Iterator[Sample]:
    yield sample("rows", draw(3), (2, 3))
    yield sample("columns", draw(3, 1), (3, 4))
    yield sample("scalar", draw(), (2, 0))
    yield sample("shrink", draw(2, 3), (3,), error=ValueError)


@op(
    shape="broadcast_to",
    dtype="same",
    view=True,
    half="native",
    dtypes=ANY,
    samples=_broadcast_samples,
    reference=lambda x, shape: np.broadcast_to(x, shape),
)
def broadcast_to(x: Tensor, /, shape: Ints) -> Tensor:
    """x repeated along axes of size 1 and new leading ones."""


def region(start: Ints, stop: Ints, step: Ints) -> tuple:
    """The index that slice and set_slice stand for."""
    return tuple(map(slice, start, stop, step))


def _slice_samples() -> Iterator[Sample]:
    yield sample("part", draw(7, 8), (1, 2), (6, 8), (1, 1))
    yield sample("steps", draw(7, 8), (0, 1), (7, 8), (3, 2))
    yield sample("nothing", draw(7), (3,), (3,), (1,))
    yield sample("beyond", draw(7), (0,), (8,), (1,), error=ValueError)
    yield sample("backward", draw(7), (0,), (7,), (-1,), error=ValueError)


@op(
    shape="slice",
    dtype="same",
    view=True,
    half="native",
    private=True,
    dtypes=ANY,
    samples=_slice_samples,
    reference=lambda x, start, stop, step: x[region(start, stop, step)],
)
def slice_(x: Tensor, start: Ints, stop: Ints, step: Ints) -> Tensor:
    """x[start:stop:step] on every axis; 0 <= start <= stop <= size, step > 0."""


def _set_slice(x, updates, start, stop, step):
    out = np.array(x)
    out[region(start, stop, step)] = updates
    return out


def _set_slice_samples() -> Iterator[Sample]:
    yield sample("part", draw(7, 8), draw(5, 6), start=(1, 2), stop=(6, 8), step=(1, 1))
    yield sample("steps", draw(7, 8), draw(3, 4), start=(0, 1), stop=(7, 8), step=(3, 2))
    yield sample("broadcast", draw(7, 8), draw(), start=(2, 0), stop=(3, 8), step=(1, 1))
    yield sample("mismatch", draw(7), draw(3), start=(0,), stop=(2,), step=(1,), error=ValueError)


@op(
    shape="set_slice",
    dtype="promote",
    core=True,
    traits=("set_slice",),
    half="native",
    private=True,
    dtypes=ANY,
    reference=_set_slice,
    samples=_set_slice_samples,
)
def set_slice(x: Tensor, updates: Tensor, *, start: Ints, stop: Ints, step: Ints) -> Tensor:
    """x with x[start:stop:step] replaced by updates, broadcast to it."""


def _bitcast(x, dtype):
    x, parts = np.ascontiguousarray(x).reshape(x.shape), x.dtype.itemsize / dtype.itemsize
    shape = (*x.shape, int(parts)) if parts > 1 else x.shape[: x.ndim - (parts < 1)]
    return np.frombuffer(x.tobytes(), dtype.numpy).reshape(shape)


def _bitcast_samples() -> Iterator[Sample]:
    for d, twin in dt.TWIN.items():
        yield sample(f"{d.brief}_bits", draw(50, low=None), twin, only=(d,))
        yield sample(f"{d.brief}_value", draw(50), d, only=(twin,))
    yield sample("same", draw(50, low=None), dt.int64, only=(dt.int64,))
    yield sample("parts", draw(3, 5, low=None), dt.int16, only=(dt.float32, dt.float64))
    yield sample("whole", draw(3, 2, low=None), dt.float32, only=(dt.int16,))
    yield sample("odd", draw(3, 5), dt.float32, only=(dt.int16,), error=ValueError)
    yield sample("bools", draw(3, 5), dt.bool_, only=(dt.uint8, dt.int64), error=TypeError)
    yield sample("row", draw(), dt.float32, only=(dt.int16,), error=ValueError)


@op(
    shape="bitcast",
    dtype="given",
    view=True,
    half="native",
    private=True,
    dtypes=dt.REAL + dt.FLOAT8,
    samples=_bitcast_samples,
    reference=_bitcast,
)
def bitcast(x: Tensor, dtype: DType) -> Tensor:
    """The bits of x, read as another dtype.

    The parts of a larger element are a last axis: complex64 (n,) is float32 (n, 2).
    """


def _reinterpret_samples() -> Iterator[Sample]:
    yield sample("float", draw(3, 8, low=None), (2, 3), dt.float32, only=(dt.uint8,))
    yield sample("row", draw(3, 8, low=None), (-1,), dt.int16, only=(dt.uint8,))
    yield sample("bytes", draw(3, 5, low=None), (-1,), dt.uint8, only=(dt.float16, dt.int32))
    yield sample("empty", draw(0, 3), (0, 7), dt.int64, only=(dt.uint8,))
    yield sample("odd", draw(7), (-1,), dt.int32, only=(dt.uint8,), error=ValueError)
    yield sample("bools", draw(7), (-1,), dt.bool_, only=(dt.uint8,), error=TypeError)
    yield sample("more", draw(8), (3,), dt.int32, only=(dt.uint8,), error=ValueError)


@op(
    shape="reinterpret",
    dtype="given",
    view=True,
    half="native",
    private=True,
    dtypes=dt.REAL + dt.FLOAT8,
    samples=_reinterpret_samples,
    reference=lambda x, shape, dtype: np.frombuffer(x.tobytes(), dtype.numpy).reshape(shape),
)
def reinterpret(x: Tensor, shape: Ints, dtype: DType) -> Tensor:
    """The bytes of x in order, read as an array of another shape and dtype that has as many bytes."""


def _diagonal_samples() -> Iterator[Sample]:
    for k in (0, 2, -1):
        yield sample(f"offset{k}", draw(2, 4, 5), offset=k)
    yield sample("outside", draw(3, 3), offset=3)
    yield sample("vector", draw(3), error=ValueError)


@op(
    shape="diagonal",
    dtype="same",
    view=True,
    half="native",
    space="linalg",
    dtypes=ANY,
    samples=_diagonal_samples,
    reference=lambda x, offset: np.diagonal(x, offset, -2, -1),
)
def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonal of the last two axes, offset columns to the right of the main one."""


def _sliding_window(x, kernel_size, stride, dilation):
    n = len(kernel_size)
    reach = [d * (k - 1) + 1 for k, d in zip(kernel_size, dilation, strict=True)]
    w = np.lib.stride_tricks.sliding_window_view(x, reach, tuple(range(x.ndim - n, x.ndim)))
    places = (slice(None, None, s) for s in stride)
    return w[(..., *places, *(slice(None, None, d) for d in dilation))]


def _sliding_window_samples() -> Iterator[Sample]:
    yield sample("vector", draw(9), (3,), stride=(1,), dilation=(1,))
    yield sample("steps", draw(2, 9, 8), (3, 2), stride=(2, 1), dilation=(1, 3))
    yield sample("whole", draw(2, 9), (9,), stride=(4,), dilation=(1,))
    yield sample("one", draw(2, 9), (1,), stride=(3,), dilation=(1,))
    yield sample("empty", draw(0, 9), (2,), stride=(1,), dilation=(1,))
    yield sample("too_large", draw(2, 3), (4,), stride=(1,), dilation=(1,), error=ValueError)


@op(
    shape="sliding_window",
    dtype="same",
    view=True,
    half="native",
    private=True,
    dtypes=ANY,
    samples=_sliding_window_samples,
    reference=_sliding_window,
)
def sliding_window(x: Tensor, kernel_size: Ints, *, stride: Ints, dilation: Ints) -> Tensor:
    """The windows of the last axes, stride apart, as further axes: (..., places..., kernel_size...).

    The elements of a window are dilation apart. kernel_size has one int for each axis.
    """


def _moveaxis_samples() -> Iterator[Sample]:
    yield sample("first_last", draw(2, 3, 4), 0, -1)
    yield sample("two", draw(2, 3, 4), (0, 1), (-1, 0))
    yield sample("uneven", draw(2, 3), (0, 1), (0,), error=ValueError)


@op(
    shape="moveaxis",
    dtype="same",
    view=True,
    samples=_moveaxis_samples,
    reference=lambda x, source, destination: np.moveaxis(x, source, destination),
    half="native",
    dtypes=ANY,
)
def moveaxis(x: Tensor, source: Ints, destination: Ints, /) -> Tensor:
    """x with the axes source at the places destination, the others in their order."""


def _matrix_samples() -> Iterator[Sample]:
    yield sample("matrix", draw(3, 4))
    yield sample("batch", draw(2, 3, 4))
    yield sample("vector", draw(3), error=ValueError)


@op(
    shape="matrix_transpose",
    dtype="same",
    view=True,
    samples=_matrix_samples,
    reference=lambda x: np.swapaxes(x, -1, -2),
    half="native",
    dtypes=ANY,
)
def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two axes swapped."""
