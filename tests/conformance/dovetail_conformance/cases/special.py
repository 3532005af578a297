"""The inputs at which elementwise kernels go wrong: thresholds and adjacent numbers for ops of one operand,
all pairs of special values for those of two, and operands whose last axis has a stride of 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from dovetail.schema import Op
from dovetail.schema import dtypes as dt
from dovetail.schema.declare import REQUIRED
from dovetail.schema.dtypes import DType
from dovetail.schema.samples import Draw, Sample, draw, special_values

from . import Case
from .inputs import has_one_operand
from .samples import sample_case


class Listed(Draw):
    """The values that `values[0]` lists for a dtype, within low and high; the shape has a -1 for their number."""

    def make(self, rng: np.random.Generator, dtype: DType) -> np.ndarray:
        assert self.values
        listed: np.ndarray = self.values[0](self.dtype or dtype)
        if self.low is not None and self.high is not None:
            wide = listed.astype(np.float64)
            listed = listed[np.isnan(wide) | ((wide >= self.low) & (wide <= self.high))]
        return listed.reshape(self.shape)


def _listed(values: Callable[[DType], np.ndarray], *shape: int, within: tuple | None = None) -> Listed:
    low, high = within or (None, None)
    return Listed(shape, low, high, values=(values,))


class Columns(Draw):
    """Every row is one number, repeated: as the layout "columns" has it in memory."""

    def make(self, rng: np.random.Generator, dtype: DType) -> np.ndarray:
        return np.broadcast_to(Draw.make(self._replace(shape=(*self.shape[:-1], 1)), rng, dtype), self.shape)


# ---- one operand -------------------------------------------------------------------------------------------------


def neighbours(x: np.ndarray, steps: int) -> np.ndarray:
    """Positive finite numbers and those up to `steps` places from them."""
    bits = x.view(f"i{x.dtype.itemsize}")
    around = np.unique(np.concatenate([bits + bits.dtype.type(k) for k in range(-steps, steps + 1)]))
    return around[around >= 0].view(x.dtype)


def thresholds(d: DType) -> np.ndarray:
    """Magnitudes where functions turn, overflow or underflow, or where an argument's reduction is hard."""
    huge, tiny = math.log(d.max), -math.log(d.tiny) - math.log(d.eps / 2)
    turns = [0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 2.0**d.mant, 2.0 ** (d.mant - 1), 2.0 ** (d.mant + 1), d.max, d.tiny]
    natural = [huge, tiny, -math.log(d.tiny), -math.log(d.eps)]  # for exp; for erfc their roots
    of_powers = [n / math.log(base) for n in natural for base in (2, 10)]
    roots = [math.sqrt(n) for n in (*natural, d.max, d.tiny, d.eps)]
    quarters = [k * math.pi / 4 for k in (*range(1, 33), *(2**e + 1 for e in range(5, 30)))]
    with np.errstate(over="ignore"):
        x = np.array([*turns, *natural, *[2 * n for n in natural], *of_powers, *roots, *quarters]).astype(d.numpy)
    return x[np.isfinite(x.astype(np.float64))]


def every_exponent(d: DType) -> np.ndarray:
    """The powers of two, subnormal ones too, each with numbers between it and the next."""
    words = np.arange(1 << (d.bits - 1 - d.mant), dtype=f"u{d.itemsize}") << np.uint64(d.mant).astype(
        f"u{d.itemsize}"
    )
    between = np.array([0, 1, (1 << d.mant) // 3, (1 << d.mant) // 2, (1 << d.mant) - 1], words.dtype)
    low = np.array([1 << k for k in range(d.mant)], words.dtype)
    return np.concatenate([(words[:-1, None] + between).ravel(), low]).view(d.numpy)


def special(d: DType) -> np.ndarray:
    """Numbers at which a function of one operand may go wrong, as far as they can be listed."""
    if d.bits <= 8:
        return np.arange(2**d.bits, dtype=np.uint8).view(d.numpy)
    magnitudes = np.concatenate([neighbours(thresholds(d), 2), every_exponent(d)])
    return np.concatenate([special_values(d), magnitudes, -magnitudes, np.array([math.nan], d.numpy)])


# ---- two operands ------------------------------------------------------------------------------------------------


def grid(d: DType) -> np.ndarray:
    """One side of the grid of all pairs."""
    if d.kind == "f":
        return np.concatenate([special_values(d), np.array([math.nan], d.numpy)])
    if d.kind == "b":
        return np.array([False, True])
    least, most = int(d.min), int(d.max)
    if d.bits < 8:
        return np.array([*range(least, most + 1), least]).astype(d.numpy)  # the last byte is not full
    powers = [1 << k for k in range(0, d.bits - 1, 3)]
    listed = [0, 3, 5, 7, 10, most, most - 1, most // 2, *powers, *(p - 1 for p in powers)]
    if least:
        listed += [least, least + 1, *(-v for v in listed)]
    return np.unique(np.array(listed, d.numpy))


def _sample(op: Op) -> Sample | None:
    if has_one_operand(op):
        return Sample("special", (_listed(special, -1),), {})
    values = [p for p in op.operands if p.kind == "value" and not p.variadic]
    plain = len(op.operands) == len(values) == 2 and all(p.default is not REQUIRED for p in op.attributes)
    return Sample("grid", (_listed(grid, -1, 1), _listed(grid, 1, -1)), {}) if plain else None


def _within(op: Op, d: DType, sample: Sample) -> Sample:
    """Integers stay in the op's domain; floats do not: their special values are defined."""
    if d.kind == "f" or not op.domain:
        return sample
    args = tuple(a._replace(low=w[0], high=w[1]) if w else a for a, w in zip(sample.args, op.domain, strict=True))
    return sample._replace(args=args)


def _columns(op: Op) -> Sample | None:
    """No operand has elements of its own along the last axis: loops that take a scalar next to an array must not be
    given two scalars, and axes must not be merged as if this one were like the others."""
    values = [p for p in op.operands if p.kind == "value" and not p.variadic]
    given = min(len(values), max(2, sum(p.default is REQUIRED for p in values)))
    if not given or any(p.default is REQUIRED for p in op.params if p not in values):
        return None
    return Sample("rows", (Columns((5, 131)),) * given, {})


def _transposed(op: Op) -> Iterator[Case]:
    """Kernels copy transposed matrices tile by tile: some whole tiles, and the remainders on two sides."""
    for d in (*op.dtypes, dt.complex128):
        for rows, columns in ((131, 70), (257, 64)):
            matrix = draw(rows, columns)
            sample = Sample(f"{rows}x{columns}", (matrix if op.name == "copy" else [matrix, matrix],), {})
            yield sample_case(op, d, sample, layout="T")


def cases(op: Op) -> Iterator[Case]:
    if op.name in ("copy", "concat"):
        yield from _transposed(op)
    if op.reference is None or op.spec.shape not in ("same", "broadcast"):
        return
    sample, columns = _sample(op), _columns(op)
    for d in op.dtypes:
        if sample and (d.kind == "f" or sample.id == "grid"):
            yield sample_case(op, d, _within(op, d, sample))
        if columns:
            yield sample_case(op, d, _within(op, d, columns), layout="columns")
