"""A call as a person would type it: operands by shape, dtype, kind of values and layout, and attributes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from dovetail.schema import Op
from dovetail.schema.dtypes import DType
from dovetail.schema.samples import Draw

from ..running.target import Target

LAYOUTS = ("", "strided", "offset", "rows", "T", "F", "repeated")  # see inputs.place_as
KINDS = ("whole", "uniform", "zeros", "nan", "inf")  # of values, the simplest first
ANY = "any"  # one more, where whatever the dtype has makes sense
TYPED = 8  # elements that are printed one by one


class Operand(NamedTuple):
    shape: tuple[int, ...]
    dtype: DType
    values: str = "whole"
    seed: int = 0
    layout: str = ""
    low: float = -4.0
    high: float = 4.0
    given: tuple | None = None  # these very values

    def host(self) -> np.ndarray:
        """Its values; with the layout "repeated" they are the same all along the first axis."""
        rng = np.random.default_rng(self.seed)
        shape = (1, *self.shape[1:]) if self.layout == "repeated" and self.shape[0] else self.shape
        if self.values == ANY:
            a = Draw(shape, None, None).make(rng, self.dtype)
        else:
            a = Draw(shape, self.low, self.high, values=self.given).make(rng, self.dtype)
            if self.dtype.kind == "f" and self.given is None:
                self._sprinkle(a, rng)
        return np.array(np.broadcast_to(a, self.shape), order="C")

    def _sprinkle(self, a: np.ndarray, rng: np.random.Generator) -> None:
        d = self.dtype
        if self.values == "whole":
            a[...] = np.clip(np.rint(a.astype(np.float64)), self.low, self.high).astype(d.numpy)
        least = d.tiny * d.eps
        rare = {
            "zeros": (0.0, -0.0, least, -least, d.tiny / 2, d.tiny) if self.low < 0 else (0.0, least, d.tiny),
            "nan": (np.nan,),
            "inf": (np.inf, -np.inf) if self.low < 0 else (np.inf,),
        }.get(self.values)
        if rare and self.low <= 0 < self.high:
            a[rng.random(a.shape) < max(0.1, 1 / max(1, a.size))] = np.array(rng.choice(rare), d.numpy)

    def __str__(self) -> str:
        text = f"{self.dtype.brief}{self.shape}".replace(",)", ")")
        return f"{text} {self.layout}".rstrip() + f" {'given' if self.given else self.values}"


class Shared(NamedTuple):
    """An operand that is another one's array, or a view of the same memory one element further on."""

    of: str
    shifted: bool

    def __str__(self) -> str:
        return f"{self.of} one further on" if self.shifted else f"{self.of} itself"


@dataclass(slots=True)
class Call:
    """Arguments by the op's parameter names; lists for a variadic operand."""

    op: Op
    given: dict[str, Any]
    host: dict[str, Any] = field(init=False)  # with NumPy arrays for operands

    def __post_init__(self) -> None:
        self.host = {}
        for name, a in self.given.items():
            if isinstance(a, Shared):
                self._share(name, a)
            elif isinstance(a, list):
                self.host[name] = [x.host() if isinstance(x, Operand) else x for x in a]
            else:
                self.host[name] = a.host() if isinstance(a, Operand) else a

    def _share(self, name: str, shared: Shared) -> None:
        self.host[name] = self.host[shared.of]
        if shared.shifted:
            first: Operand = self.given[shared.of]
            both = first._replace(shape=(first.shape[0] + 1, *first.shape[1:]), layout="").host()
            self.host[shared.of], self.host[name] = both[:-1], both[1:]

    def place(self, target: Target) -> tuple[dict[str, Any], list[tuple[Any, np.ndarray]]]:
        """The arguments on the device, and each array there with its values."""
        placed: list[tuple[Any, np.ndarray]] = []

        def put(a: Any, host: Any) -> Any:
            if isinstance(a, list):
                return [put(x, h) for x, h in zip(a, host, strict=True)]
            if not isinstance(a, Operand):
                return a
            placed.append((target.place(host, a.layout), host))
            return placed[-1][0]

        there = {name: put(a, self.host[name]) for name, a in self.given.items() if not isinstance(a, Shared)}
        for name, a in self.given.items():
            if isinstance(a, Shared):
                there[name] = there[a.of]
                if a.shifted:
                    memory = target.asarray(np.concatenate([self.host[a.of], self.host[name][-1:]]))
                    there[a.of], there[name] = memory[:-1], memory[1:]
                    placed += [(there[n], self.host[n]) for n in (a.of, name)]
        return there, placed

    def arguments(self, by_name: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """The arguments in the order that the op takes."""
        positional = [p for p in self.op.params if not p.keyword_only]
        while positional and positional[-1].name not in by_name:
            positional.pop()
        return tuple(by_name.get(p.name, p.default) for p in positional), {
            p.name: by_name[p.name] for p in self.op.params if p.keyword_only and p.name in by_name
        }

    def __str__(self) -> str:
        def shown(a: Any, host: Any) -> str:
            if isinstance(a, list):
                return f"[{', '.join(map(shown, a, host))}]"
            if isinstance(a, Operand) and host.size <= TYPED:
                return f"{a} {host.tolist()}"
            return str(a) if isinstance(a, (Operand, Shared)) else repr(a)

        return (
            f"{self.op.name}({', '.join(f'{name}={shown(a, self.host[name])}' for name, a in self.given.items())})"
        )
