"""Rotary position embedding."""

from __future__ import annotations

from collections.abc import Iterator

from ..declare import Tensor, op
from ..lazy_numpy import np
from ..samples import Draw, Sample, draw, sample
from .movement import concat
from .views import expand_dims, reshape


def _rotated(x, cos, sin, interleaved, join):
    """The elements of each pair, as join(terms of the first one, terms of the second one)."""
    n = 2 * cos.shape[-1]
    first, second = (slice(0, n, 2), slice(1, n, 2)) if interleaved else (slice(0, n // 2), slice(n // 2, n))
    a, b = x[..., first], x[..., second]
    out = np.array(x)
    out[..., first], out[..., second] = join(a * cos, -b * sin), join(b * cos, a * sin)
    return out


def _rotary_embedding(x, cos, sin, interleaved):
    return _rotated(x, cos, sin, interleaved, np.add)


def _rotary_embedding_scale(x, cos, sin, interleaved):
    return _rotated(x, cos, sin, interleaved, lambda a, b: np.abs(a) + np.abs(b))


def _tables(*shape: int) -> tuple[Draw, Draw]:
    return draw(*shape, low=-1, high=1), draw(*shape, low=-1, high=1)


def _rotary_embedding_samples() -> Iterator[Sample]:
    for id, interleaved in (("halves", False), ("interleaved", True)):
        yield sample(id, draw(2, 3, 5, 64), *_tables(5, 32), interleaved=interleaved)
        yield sample(f"{id}_partial", draw(2, 3, 5, 64), *_tables(5, 16), interleaved=interleaved)
        yield sample(f"{id}_odd", draw(3, 7, 11), *_tables(7, 3), interleaved=interleaved)
        yield sample(f"{id}_batch", draw(2, 3, 4, 16), *_tables(2, 1, 4, 8), interleaved=interleaved)
    yield sample("one_position", draw(2, 3, 1, 32), *_tables(16))
    yield sample("heads", draw(2, 3, 4, 16), *_tables(3, 1, 8))
    yield sample("vector", draw(6), *_tables(3))
    yield sample("empty", draw(2, 0, 5, 8), *_tables(5, 4))
    yield sample("no_positions", draw(2, 3, 0, 8), *_tables(0, 4))
    yield sample("angles_twice", draw(2, 5, 8), *_tables(5, 8), error=ValueError)
    yield sample("no_angles", draw(2, 5, 8), *_tables(5, 0), error=ValueError)
    yield sample("positions_mismatch", draw(2, 5, 8), *_tables(6, 4), error=ValueError)
    yield sample("batch_without_heads", draw(2, 3, 5, 8), *_tables(2, 5, 4), error=ValueError)
    yield sample("larger_tables", draw(5, 8), *_tables(2, 5, 4), error=ValueError)
    yield sample("sin_mismatch", draw(2, 5, 8), draw(5, 4), draw(5, 3), error=ValueError)


@op(
    shape="rotary_embedding",
    dtype="float",
    tier="extended",
    tol=2,
    reference=_rotary_embedding,
    scale=_rotary_embedding_scale,
    samples=_rotary_embedding_samples,
    space="nn",
)
def rotary_embedding(x: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool = False) -> Tensor:
    """Pairs of elements of x (..., sequence, size) rotated by angles given by their cos and sin (sequence, pairs).

    A pair (a, b) becomes (a cos - b sin, b cos + a sin): element i and i + pairs or, interleaved, 2 i and 2 i + 1.
    What lies behind the last pair stays as it is. cos and sin broadcast to (..., sequence, pairs); of tables by
    position, take(cos, positions, axis=0) gives those of other positions than 0, 1, 2.
    """
    pairs, size = cos.shape[-1], x.shape[-1]
    n = 2 * pairs
    a, b = (x[..., 0:n:2], x[..., 1:n:2]) if interleaved else (x[..., :pairs], x[..., pairs:n])
    rotated = [a * cos - b * sin, b * cos + a * sin]
    if interleaved:
        last = x.ndim
        rotated = [reshape(concat([expand_dims(r, axis=last) for r in rotated], axis=last), (*x.shape[:-1], n))]
    rest = [x[..., n:]] if n < size else []
    return concat([*rotated, *rest], axis=x.ndim - 1)
