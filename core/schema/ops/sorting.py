"""Sorting and the best k: a bitonic network on integers that are in the order of the values."""

from __future__ import annotations

from collections.abc import Iterator

from .. import dtypes as dt
from ..declare import Tensor, op
from ..lazy_numpy import np
from ..loops import loop
from ..number import largest
from ..samples import Sample, draw, given, sample
from ._float import bits, magnitude_bits
from .logic import bitwise_invert
from .movement import concat, take_along_axis
from .primitives import ANY, astype, full, iota, where
from .views import broadcast_to, moveaxis, reshape, set_slice, slice_, with_middle


def _argsort(x, axis, descending, stable):
    order = np.unique(x, return_inverse=True, equal_nan=True)[1].reshape(x.shape).astype(np.int64)
    if descending:
        order = np.where(np.isnan(x), x.size, -order) if x.dtype.kind == "f" else -order
    return np.argsort(order, axis=axis, kind="stable")


def _sort_samples() -> Iterator[Sample]:
    for n in (1, 2, 17, 100):
        yield sample(f"{n}", draw(3, n))
    yield sample("descending", draw(3, 33), descending=True)
    yield sample("axis0", draw(20, 3), axis=0)
    yield sample("ties", draw(4, 40, low=0, high=3, dtype=dt.int32), descending=True)
    yield sample("any_value", draw(2, 100, low=None))
    yield sample("any_value_down", draw(2, 100, low=None), descending=True)
    yield sample("zeros", given([0.0, -0.0, 1.0, -0.0, 0.0, float("nan"), -1.0]), only=dt.FLOATS)
    yield sample("empty", draw(3, 0))
    yield sample("bad_axis", draw(3), axis=1, error=ValueError)


def _order_key(x: Tensor, descending: bool) -> Tensor:
    """Integers in the order of x: zeros are one, NaN is last."""
    if x.dtype.kind != "f":
        key = astype(x, dt.int32) if x.dtype.kind == "b" else x  # L1 has no smaller integer
        return bitwise_invert(key) if descending else key
    b, most = bits(x + 0.0), magnitude_bits(x.dtype)
    key = where(b < 0, b ^ most, b)
    return where(x == x, bitwise_invert(key) if descending else key, most)


def _pairs(x: Tensor, step: int) -> tuple[Tensor, Tensor]:
    """Along the last axis, the elements and those `step` further, block by block."""
    x = reshape(x, (*x.shape[:-1], x.shape[-1] // (2 * step), 2, step))
    return x[..., 0:1, :], x[..., 1:2, :]


def _exchange(key: Tensor, index: Tensor, block: int, step: int) -> tuple[Tensor, Tensor]:
    """One round of the bitonic network: upwards in even blocks, downwards in odd ones."""
    (ka, kb), (ia, ib) = _pairs(key, step), _pairs(index, step)
    up = (iota(key.shape[-1] // (2 * step), dt.int32) * (2 * step) & block) == 0
    swap = ((kb < ka) | ((kb == ka) & (ib < ia))) == reshape(up, (-1, 1, 1))
    key = reshape(concat([where(swap, kb, ka), where(swap, ka, kb)], axis=-2), key.shape)
    return key, reshape(concat([where(swap, ib, ia), where(swap, ia, ib)], axis=-2), index.shape)


def _argsort_middle_samples() -> Iterator[Sample]:
    for n in (17, 64, 2, 1, 0):
        yield sample(f"{n}", draw(2, n, 3))
    yield sample("ties", draw(2, 40, 2, low=0, high=3, dtype=dt.int32), descending=True)
    yield sample("any_value", draw(1, 100, 2, low=None))
    yield sample("any_value_down", draw(2, 100, 1, low=None), descending=True)
    yield sample("no_rows", draw(0, 5, 3))
    yield sample("two_axes", draw(3, 4), error=ValueError)


@op(
    shape="middle",
    dtype="index",
    private=True,
    dtypes=ANY,
    samples=_argsort_middle_samples,
    reference=lambda x, descending: _argsort(x, 1, descending, True),
)
def argsort_middle(x: Tensor, /, *, descending: bool = False) -> Tensor:
    """argsort of x, which has three axes, along the middle one."""
    n = x.shape[1]
    key = moveaxis(_order_key(x, descending), 1, 2)
    size = 1 << largest(0, n - 1).bit_length()
    whole = (*key.shape[:2], size)
    if size > n:
        padded = full(whole, int(key.dtype.max), dtype=key.dtype)
        key = set_slice(padded, key, start=(0, 0, 0), stop=(*whole[:2], n), step=(1, 1, 1))
    index = broadcast_to(iota(size, dt.int32), whole)

    def merge(b: int, key: Tensor, index: Tensor) -> tuple[Tensor, ...]:
        """Sorts blocks of 2^(b + 1), in which both halves are sorted."""
        return loop(b + 1, lambda i, key, index: _exchange(key, index, block=2 << b, step=1 << (b - i)), key, index)

    if n > 1:
        key, index = loop((n - 1).bit_length(), merge, key, index)
    return moveaxis(astype(index[..., :n], dt.int64), 2, 1)


@op(shape="along_axis", dtype="index", tier="extended", dtypes=ANY, samples=_sort_samples, reference=_argsort)
def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort x along axis; NaN comes last, equal elements keep their order (in both directions)."""
    return reshape(argsort_middle(with_middle(x, axis), descending=descending), x.shape)


@op(
    shape="along_axis",
    dtype="same",
    tier="extended",
    dtypes=ANY,
    samples=_sort_samples,
    reference=lambda x, **how: np.take_along_axis(x, _argsort(x, **how), how["axis"]),
)
def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """x sorted along axis; NaN comes last, equal elements (zeros of both signs) keep their order."""
    return take_along_axis(x, argsort(x, axis=axis, descending=descending, stable=stable), axis=axis)


def _top_k(x, k, axis, mode):
    index = np.take(_argsort(x, axis, mode == "largest", True), range(k), axis)
    return np.take_along_axis(x, index, axis), index


def _top_k_samples() -> Iterator[Sample]:
    for n, k in ((1, 1), (17, 3), (100, 100), (1000, 5)):
        yield sample(f"{k}_of_{n}", draw(3, n), k)
    yield sample("smallest", draw(3, 33), 4, mode="smallest")
    yield sample("axis0", draw(20, 3), 2, axis=0)
    yield sample("ties", draw(4, 40, low=0, high=3, dtype=dt.int32), 9)
    yield sample("any_value", draw(2, 100, low=None), 60)
    yield sample("any_value_smallest", draw(2, 100, low=None), 60, mode="smallest")
    yield sample("zeros", given([0.0, -0.0, 1.0, -0.0, 0.0, float("nan"), -1.0]), 5, only=dt.FLOATS)
    yield sample("nan_last", given([float("nan"), 1.0, float("nan")]), 2, only=dt.FLOATS)
    yield sample("none", draw(3, 5), 0)
    yield sample("too_many", draw(3), 4, error=ValueError)
    yield sample("negative", draw(3), -1, error=ValueError)
    yield sample("bad_mode", draw(3), 1, mode="median", error=ValueError)


@op(
    shape="top_k",
    dtype="same_and_index",
    tier="extended",
    n_out=2,
    dtypes=ANY,
    samples=_top_k_samples,
    reference=_top_k,
)
def top_k(x: Tensor, k: int, /, *, axis: int = -1, mode: str = "largest") -> tuple[Tensor, Tensor]:
    """The k largest (or mode="smallest") elements of x along axis, in order, and their indices: (values, indices).

    As sort has them: NaN comes last in either mode, equal elements keep their order. Raises ValueError where x has
    fewer than k elements along axis.
    """
    order = argsort(x, axis=axis, descending=mode == "largest")
    indices = slice_(
        order, start=(0,) * x.ndim, stop=(*x.shape[:axis], k, *x.shape[axis + 1 :]), step=(1,) * x.ndim
    )
    return take_along_axis(x, indices, axis=axis), indices
