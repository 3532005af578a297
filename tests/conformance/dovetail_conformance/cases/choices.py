"""The source of choices when a call is drawn: a seed, which is fast, or hypothesis, which can shrink a call.

The simplest is the first option, and the number nearest to 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from hypothesis import strategies as st


class Choices(Protocol):
    def pick(self, options: Sequence) -> Any: ...

    def integer(self, low: int, high: int) -> int:
        """Both ends included."""
        ...

    def order(self, n: int) -> list[int]:
        """The first n numbers in some order."""
        ...


class Simplest:
    def pick(self, options: Sequence) -> Any:
        return options[0]

    def integer(self, low: int, high: int) -> int:
        return min(max(0, low), high)

    def order(self, n: int) -> list[int]:
        return [*range(n)]


class Seeded:
    def __init__(self, rng: np.random.Generator):
        self.rng = rng

    def pick(self, options: Sequence) -> Any:
        return options[self.rng.integers(len(options))]

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high, endpoint=True))

    def order(self, n: int) -> list[int]:
        return self.rng.permutation(n).tolist()


class Shrinkable:
    def __init__(self, draw: Callable[[st.SearchStrategy], Any]):
        self.draw = draw

    def pick(self, options: Sequence) -> Any:
        return self.draw(st.sampled_from(options))

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def order(self, n: int) -> list[int]:
        return self.draw(st.permutations(range(n)))
