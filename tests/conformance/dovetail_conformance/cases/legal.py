"""Legal calls of every shape rule: the examples of property cases.

A rule's function names the arguments; Drawing makes them. The simplest of everything comes first: that is where
a failing call is shrunk to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dovetail.schema import Op
from dovetail.schema import dtypes as dt
from dovetail.schema.declare import REQUIRED
from dovetail.schema.dtypes import DType

from ..judging.oracle import promote
from .choices import Choices
from .errors import ONE_FOR_ALL
from .operand import ANY, KINDS, LAYOUTS, Call, Operand, Shared

# Primes, powers of two and the sizes just beyond kernels' vectors, blocks and unrolled loops.
SIZES = (1, 2, 3, 5, 7, 4, 8, 13, 15, 16, 17, 31, 33, 63, 64, 65, 97, 127, 129, 255, 257, 513, 1025)
SMALL = (1, 2, 3, 5, 4, 7)
MOST_ELEMENTS = 1 << 12
# Attributes that change no shape, by name, the default first; those not listed keep it.
ATTRIBUTES: dict[str, tuple] = {
    "negative_slope": (0.01, 0.0, 0.5),
    "alpha": (1.0, 0.5),
    "beta": (1.0, 2.0, 0.5),
    "approximate": ("none", "tanh"),
    "activation": ("relu", "gelu", "gelu_tanh"),
    "keepdims": (False, True),
    "descending": (False, True),
    "include_initial": (False, True),
    "correction": (0.0, 1.0),
    "ord": (2.0, 1.0, math.inf, -math.inf, 0.0, 3.0),
    "eps": (1e-5, 0.125),
    "endpoint": (True, False),
    "is_causal": (False, True),
    "scale": (None, 0.5),
    "label_smoothing": (0.0, 0.125),
    "reduction": ("mean", "sum", "none"),
    "count_include_pad": (True, False),
    "constant_values": (0, 1),
    "lambd": (0.5, 0.0, 1.5),
    "min_val": (-1.0, -0.5),
    "max_val": (1.0, 3.0),
    "threshold": (0.5, -1.0),
    "value": (0.0, 20.0),
}


class Drawing:
    """One call of an op and dtype in the making."""

    def __init__(self, choices: Choices, op: Op, d: DType, partners: Sequence[DType],
                 device_dtypes: Sequence[DType], sharing: bool = False):  # fmt: skip
        self.pick, self.integer, self.order = choices.pick, choices.integer, choices.order
        self.op, self.dtype, self.device_dtypes = op, d, device_dtypes
        self.partners = partners if len(op.operands) > 1 or any(p.variadic for p in op.operands) else ()
        self.names = {p.name for p in op.params}
        self.sharing = sharing  # are two operands to lie in the same memory?
        self.values = 0  # operands made so far
        exact = op.spec.tol == 0 or d.kind != "f"
        self.any = exact or op.spec.shape in ("same", "broadcast", "outer")  # no sum to overflow on the way

    # ---- choices ------------------------------------------------------------------------------------------------

    def rarely(self) -> bool:
        return self.pick((False,) * 7 + (True,))

    def attributes(self) -> dict[str, Any]:
        """The attributes that change nothing about the shapes."""
        return {n: self.pick(options) for n, options in ATTRIBUTES.items() if n in self.names}

    # ---- shapes -------------------------------------------------------------------------------------------------

    def shape(self, least: int = 0, most: int = 4, *, empty: bool = True) -> tuple[int, ...]:
        """One axis of any size, the others small."""
        rank = self.integer(least, most)
        if not rank:
            return ()
        long = self.integer(0, rank - 1)
        sizes = [self.pick(SIZES if i == long else SMALL) for i in range(rank)]
        if empty and self.rarely():
            sizes[long] = 0
        while math.prod(sizes) > MOST_ELEMENTS:
            sizes[sizes.index(max(n for i, n in enumerate(sizes) if i != long), 0)] = 1
        return tuple(sizes)

    def part_of(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that broadcasts to this one."""
        how = self.pick(("all", "all", "ones", "fewer", "scalar"))
        if how == "scalar":
            return ()
        if how == "fewer":
            return shape[self.integer(0, len(shape)) :]
        return tuple(1 if self.pick((False, True)) else n for n in shape) if how == "ones" else shape

    def axis(self, rank: int) -> int:
        return self.integer(-rank, rank - 1)

    def axes(self, rank: int, least: int = 0) -> Any:
        """None, one or several axes, each once."""
        if not least and self.pick((False, False, True)):
            return None
        chosen = self.order(rank)[: self.integer(min(least, rank), rank)]
        if len(chosen) == 1 and self.pick((True, False)):
            return chosen[0] - self.pick((0, rank))
        return tuple(a - self.pick((0, rank)) for a in chosen)

    # ---- operands -----------------------------------------------------------------------------------------------

    def operand(self, shape: tuple[int, ...], *, low: float = -4.0, high: float = 4.0) -> Operand:
        """A value operand: of the case's dtype, the later ones now and then of one that is promoted to it."""
        domain = self.op.domain[self.values] if self.values < len(self.op.domain) else None
        if domain and domain[0] is not None:
            low, high = domain
        self.values += 1
        d = self.dtype
        if self.values > 1 and self.partners and self.rarely():
            d, self.partners = self.pick(self.partners), ()  # two of them need not promote to each other
        kinds: tuple[str, ...] = KINDS if d.kind == "f" else KINDS[:2]
        if self.op.name in ("prod", "prod_middle", "cumulative_prod"):  # overflow on the way depends on the order
            kinds = tuple(k for k in kinds if k != "zeros")
            low, high = (-1.5, 1.5) if d.kind == "f" else (low, high)
        if self.any and (low, high) == (-4.0, 4.0) and (d.kind == "f" or d.kind == self.dtype.kind):
            kinds = (*kinds, ANY, ANY)
        return Operand(shape, d, self.pick(kinds), self.integer(0, 255), self.layout(shape), low, high)

    def layout(self, shape: tuple[int, ...]) -> str:
        fitting = [how for how in LAYOUTS[:4] if shape] or [""]
        return self.pick((*fitting, *LAYOUTS[4:]) if len(shape) > 1 else fitting)

    def mask(self, shape: tuple[int, ...]) -> Operand:
        return Operand(shape, dt.bool_, "uniform", self.integer(0, 255), self.layout(shape))

    def indices(self, shape: tuple[int, ...], size: int, *, low: int | None = None) -> Operand:
        """Indices of an axis, negative ones too; none where the axis has no elements."""
        shape = shape if size else (0, *shape)
        low = -size if low is None else low
        d = self.pick((dt.int64, dt.int32)) if "astype" in self.op.name else dt.int64
        return Operand(shape, d, "uniform", self.integer(0, 255), self.layout(shape), low, max(size - 1, low))

    # ---- complete calls
    # -------------------------------------------------------------------------------------------

    def call(self) -> Call:
        given = RULES[self.op.spec.shape](self)
        given |= {n: a for n, a in self.attributes().items() if n not in given}
        for p in self.op.attributes:
            if p.kind == "dtype" and p.name not in given and p.default is REQUIRED:
                given[p.name] = self.dtype
        self._share(given)
        ordered = {p.name: given[p.name] for p in self.op.params if p.name in given}
        return Call(self.op, ordered)

    def _share(self, given: dict[str, Any]) -> None:
        """On request, the second of two equal operands is the first one's array, or adjacent to it in memory."""
        alike = [n for n, a in given.items() if isinstance(a, Operand) and a.given is None]
        if len(alike) < 2 or not self.sharing:
            return
        a, b = (given[n] for n in alike[:2])
        fits = a.shape == b.shape or self.op.spec.shape == "broadcast"
        if fits and a.dtype is b.dtype and (a.low, a.high) == (b.low, b.high):
            shifted = bool(a.shape) and self.pick((False, True))
            given[alike[0]] = a._replace(layout="") if shifted else a
            given[alike[1]] = Shared(alike[0], shifted)


def partners_of(op: Op, d: DType) -> list[DType]:
    """The dtypes that promote to `d` together with an operand of it, by the op's dtype rule."""
    if op.spec.dtype not in ONE_FOR_ALL:
        return []
    found = []
    for other in dt.NOT_COMPLEX:
        if other is not d and not (other in dt.HALVES and d in dt.HALVES):
            try:
                found += [other] if promote(other, d) is d else []
            except TypeError:
                continue
    return found


RULES: dict[str, Callable[[Drawing], dict[str, Any]]] = {}


def legal(*names: str) -> Callable[[Callable], Callable]:
    def add(rule: Callable) -> Callable:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return add


from . import legal_grads, legal_moves, legal_sums  # noqa: E402, F401  they fill RULES
