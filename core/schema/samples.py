"""Conformance samples: calls described without values, so that a suite can make them for any dtype and seed.

    def _samples():
        yield sample("rows", draw(4, 5), axis=-1)
        yield sample("bad_axis", draw(4, 5), axis=2, error=ValueError)

`draw` stands for an array of the case's dtype, wherever an operand stands in the call. Random numbers come from the
generator that the suite hands to `Draw.make`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from . import dtypes as dt
from .declare import REQUIRED
from .dtypes import DType

if TYPE_CHECKING:
    import numpy as np

    from .declare import Op

# Numbers where elementary functions turn, overflow or vanish; each with both signs.
SPECIAL = (
    0, 1, 0.5, 1.5, 2, 2.5, 3, 20, 88.7, 104, 200, 1e-45, 1e-40, 1.1754944e-38, 1e30, 3.4028235e38, 8388607.5,
    16777217, 2147483648, math.inf,
)  # fmt: skip
SPECIAL_64 = (
    5e-324, 1e-310, 2.2250738585072014e-308, 709.7, 745.1, 1e300, 1.7976931348623157e308, 4503599627370495.5,
    9007199254740993,
)  # fmt: skip


class Draw(NamedTuple):
    """An array to be made, of the case's dtype unless it has its own."""

    shape: tuple[int, ...]
    low: float | None = -4.0  # None: any value at all, special ones first
    high: float | None = 4.0
    dtype: DType | None = None
    values: tuple | None = None  # these very values
    distinct: bool = False  # no two are equal, where the dtype has enough values
    wide: bool = False  # float32 where the case has fewer digits, as sums and their logarithms

    def make(self, rng: np.random.Generator, dtype: DType) -> np.ndarray:
        """The array; `dtype` is the case's."""
        import numpy as np

        d = self.dtype or (dt.float32 if self.wide and dtype in dt.NARROW else dtype)
        n = math.prod(self.shape)
        with np.errstate(all="ignore"):
            if self.values is not None:
                flat = np.asarray(self.values)
            elif self.distinct:
                flat = rng.permutation(n) - (n // 2 if d.kind != "u" else 0)
            elif d.kind == "b":
                flat = rng.integers(0, 2, n)
            elif d.kind in "iu":
                flat = self._integers(rng, n, d)
            elif self.low is None or self.high is None:
                flat = _any_float(rng, n, d) if d.kind == "f" else _any_float(rng, 2 * n, dt.PART[d]).view(d.numpy)
            else:
                flat = rng.uniform(self.low, self.high, n)
                if d.kind == "c":
                    flat = flat + 1j * rng.uniform(self.low, self.high, n)
            return np.asarray(flat).astype(d.numpy).reshape(self.shape)

    def _integers(self, rng: np.random.Generator, n: int, d: DType) -> np.ndarray:
        import numpy as np

        least, most = int(d.min), int(d.max)
        drawn = dt.READ_AS.get(d, d).numpy
        if self.low is None or self.high is None:
            ends = np.array([0, 1, least, most, 2, 3, max(least, -1), most - 1, least + 1], drawn)
            rest = rng.integers(least, most, n, endpoint=True, dtype=drawn)
            small = rng.integers(max(least, -9), 9, n, endpoint=True, dtype=drawn)
            return np.concatenate([ends, np.where(rng.random(n) < 0.5, rest, small)])[:n]
        low, high = max(least, math.ceil(self.low)), min(most, math.floor(self.high))
        return rng.integers(low, max(low, high), n, endpoint=True, dtype=drawn)


def special_values(d: DType) -> np.ndarray:
    """The special values that a floating dtype has."""
    import numpy as np

    v = np.array(SPECIAL + (SPECIAL_64 if d is dt.float64 else ()), np.float64)
    with np.errstate(all="ignore"):
        if d in dt.NARROW:  # its own smallest and largest, and where adding 1 is lost
            v = np.concatenate([v, [d.tiny, d.tiny * d.eps, d.max, 2.0**d.mant - 0.5, 2.0 ** (d.mant + 1) + 2]])
        return np.unique(np.concatenate([v, -v]).astype(d.numpy).view(f"u{d.itemsize}")).view(d.numpy)


def _any_float(rng: np.random.Generator, n: int, d: DType) -> np.ndarray:
    import numpy as np

    special = np.concatenate([special_values(d), np.array([math.nan], d.numpy)])
    bits = rng.integers(0, 2**d.bits - 1, n, endpoint=True, dtype=f"u{d.itemsize}").view(d.numpy)
    near = rng.uniform(-1, 1, n) * rng.choice([1.0, 10.0, 100.0], n)
    rest = np.where(rng.random(n) < 0.5, bits, near.astype(d.numpy))
    return np.concatenate([special if n >= 2 * special.size else rng.permutation(special)[: n // 2], rest])[:n]


CASE = type("Case", (), {"__repr__": lambda self: "CASE"})()  # as an attribute: the case's dtype


class Sample(NamedTuple):
    """One call of an op; `args` and `kwargs` as in Python, with a Draw for each array."""

    id: str
    args: tuple
    kwargs: dict[str, Any]
    error: type[Exception] | None = None  # the call must raise it, and leave the device usable
    dtypes: tuple[DType, ...] | None = None  # only for these

    def make(self, rng: np.random.Generator, dtype: DType) -> tuple[tuple, dict[str, Any]]:
        """args and kwargs with NumPy arrays."""

        def fill(a: Any) -> Any:
            if isinstance(a, Draw):
                return a.make(rng, dtype)
            if a is CASE:
                return dtype
            return [fill(x) for x in a] if isinstance(a, list) else a

        return tuple(fill(a) for a in self.args), {k: fill(a) for k, a in self.kwargs.items()}


def sample(
    id: str, *args: Any, error: type[Exception] | None = None, only: tuple | None = None, **kwargs: Any
) -> Sample:
    return Sample(id, args, kwargs, error, only)


def draw(
    *shape: int,
    low: float | None = -4.0,
    high: float | None = 4.0,
    dtype: DType | None = None,
    distinct: bool = False,
    wide: bool = False,
) -> Draw:
    """Uniform values between low and high; for low=None any value."""
    return Draw(shape, low, None if low is None else high, dtype, None, distinct, wide)


def indices(*shape: int, size: int) -> Draw:
    """Legal indices of an axis, negative ones too."""
    return Draw(shape, -size, size - 1, dt.int64)


def mask(*shape: int) -> Draw:
    return Draw(shape, dtype=dt.bool_)


def given(values: list | tuple, *shape: int, dtype: DType | None = None) -> Draw:
    """These very values, as a vector unless a shape is named."""
    return Draw(shape or (len(values),), dtype=dtype, values=tuple(values))


SHAPES = {
    "scalar": (),
    "one": (1,),
    "odd": (17,),
    "matrix": (4, 33),
    "cube": (2, 3, 5),
    "empty": (0,),
    "hollow": (3, 0, 2),
}
PAIRS = {
    "scalars": ((), ()),
    "vectors": ((257,), (257,)),
    "row_column": ((5, 1), (1, 7)),
    "trailing": ((3, 4), (4,)),
    "scalar_array": ((), (6,)),
    "both_ways": ((2, 1, 3), (4, 1)),
    "empty": ((0, 3), (1, 3)),
}
MANY = 4000  # values, to meet every exponent and the special ones


def _elementwise(op: Op) -> Iterator[Sample]:
    operands = op.operands
    domain = op.domain or (None,) * len(operands)

    def values(i: int, shape: tuple[int, ...]) -> Draw:
        low, high = domain[i] if i < len(domain) and domain[i] else (None, None)
        return Draw(shape, low, high, dt.bool_ if operands[i].kind == "mask" else None)

    def call(shapes: list[tuple[int, ...]]) -> tuple[Draw, ...]:
        return tuple(values(i, shape) for i, shape in enumerate(shapes))

    yield Sample("values", call([(MANY,)] * len(operands)), {})
    if len(operands) == 1:
        for name, shape in SHAPES.items():
            yield Sample(name, call([shape]), {})
        return
    for name, (a, b) in PAIRS.items():
        yield Sample(name, call([a, *[b] * (len(operands) - 1)]), {})
    if len(operands) == 2 and op.spec.dtype != "logical":
        one = 1 if op.spec.dtype in ("integer", "bit", "compare", "promote", "numeric") else 1.5
        if dt.bool_ not in op.dtypes:
            yield Sample("python_scalar", (values(0, (2, 3)), one), {})
    yield Sample("mismatch", call([(2, 3), *[(4,)] * (len(operands) - 1)]), {}, ValueError)


def samples_of(op: Op) -> Iterator[Sample]:
    """Its own, and those of any elementwise op; of two with one id its own."""
    own = [] if op.samples is None else list(op.samples())
    yield from own
    elementwise = op.spec.shape == "broadcast" or (op.spec.shape == "same" and len(op.operands) == 1)
    if elementwise and all(p.default is not REQUIRED for p in op.attributes):
        taken = {s.id for s in own}
        yield from (s for s in _elementwise(op) if s.id not in taken)
