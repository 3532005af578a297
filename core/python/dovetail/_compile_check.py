"""What f.check() gives: the groups of a compiled function beside their nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dovetail._array import numpy_dtype

__all__ = ["CompileCheck", "GroupCheck", "check_of"]


@dataclass(frozen=True)
class GroupCheck:
    """A result of a group, by the device's code for it and by its nodes one by one on the same operands."""

    group: str  # the ops, "multiply+add"
    nodes: tuple[int, ...]  # of the program that explain() prints
    where: str  # the user's line of the node that makes the result
    dtype: str
    shape: tuple[int, ...]
    different: int  # elements whose bits differ; two NaN are equal
    ulp: float  # the largest difference, in units of the last place of the larger one; of integers in ones
    index: tuple[int, ...] | None  # where that is
    by_group: Any  # the elements there
    by_nodes: Any

    def __str__(self) -> str:
        at = f" at {self.where}" if self.where else ""
        text = f"{self.group}, nodes {', '.join(map(str, self.nodes))}{at}: {self.dtype} {self.shape}"
        if not self.different:
            return f"{text}, equal"
        return (
            f"{text}, {self.different} elements differ, by up to {self.ulp:.4g} ulp: element {self.index} is "
            f"{self.by_group} by the group, {self.by_nodes} by its nodes"
        )


@dataclass(frozen=True)
class CompileCheck:
    """What f.check() found; print it. `results`: one for each result of each group, in the order of the runs."""

    name: str
    is_exact: bool  # numerics="eager", where groups have the bits of their nodes
    results: tuple[GroupCheck, ...]

    @cached_property
    def first(self) -> GroupCheck | None:
        """The first that differs. What later groups compute with comes from nodes, so each is judged by itself."""
        return next((r for r in self.results if r.different), None)

    @property
    def ulp(self) -> float:
        """The largest difference in units of the last place; 0.0 where all are equal."""
        return max((r.ulp for r in self.results), default=0.0)

    def __str__(self) -> str:
        if not self.results:
            return f"[compile] {self.name}: no nodes run as a group; explain() says why"
        groups = len({r.nodes for r in self.results})
        if self.first is None:
            head = f"[compile] {self.name}: all groups ({groups}) have the bits of their nodes"
        else:
            head = f"[compile] {self.name}: of {groups} groups the first that differs is {self.first}"
            if not self.is_exact:
                head += (
                    '\n  numerics="wide" lets a group round less than its nodes do; numerics="eager" has to have '
                    "their bits"
                )
        return "\n".join([head, *(f"  {r}" for r in self.results)])


def check_of(name: str, is_exact: bool, groups: Iterable[tuple[Sequence[int], str, list[Any]]]) -> CompileCheck:
    """groups: from _core.compare_groups."""
    results = [_compared(group, tuple(nodes), *r) for nodes, group, results in groups for r in results]
    return CompileCheck(name, is_exact, tuple(results))


def _compared(
    group: str,
    nodes: tuple[int, ...],
    dtype: str,
    shape: tuple[int, ...],
    where: str,
    one: bytes | None,
    other: Any,
) -> GroupCheck:
    if one is None:
        return GroupCheck(group, nodes, where, dtype, shape, 0, 0.0, None, None, None)
    a, b = _values(one, dtype), _values(other, dtype)
    distance = _distance(a, b, dtype)
    different = distance != 0
    if np.issubdtype(a.dtype, np.inexact):
        different |= (np.signbit(a) != np.signbit(b)) & ~(np.isnan(a) & np.isnan(b))  # zeros of two signs
    at = int(np.argmax(np.where(different, distance + 1, 0)))
    index = tuple(int(i) for i in np.unravel_index(at * int(np.prod(shape)) // a.size, shape))
    return GroupCheck(
        group, nodes, where, dtype, shape, int(different.sum()), float(distance[at]),
        index if different.any() else None, a[at].item(), b[at].item(),
    )  # fmt: skip


def _values(elements: bytes, dtype: str) -> np.ndarray[Any, Any]:
    """Flat; of complex numbers the parts, of bfloat16 the equal float32."""
    if dtype == "bfloat16":
        return (np.frombuffer(elements, np.uint16).astype(np.uint32) << 16).view(np.float32)
    values = np.frombuffer(elements, numpy_dtype(dtype))
    return values.view(values.real.dtype) if dtype.startswith("complex") else values


def _distance(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """In units of the last place of the larger of two, in float64; 0 where they are equal, or both NaN."""
    if a.dtype.kind in "biu":
        a, b = (x.astype(np.int64) if x.dtype != np.uint64 else x for x in (a, b))
        return np.where(a > b, a - b, b - a).astype(np.float64)
    unit = np.spacing(np.maximum(abs(a), abs(b))).astype(np.float64) * (65536 if dtype == "bfloat16" else 1)
    with np.errstate(all="ignore"):
        steps = abs(a.astype(np.float64) - b.astype(np.float64)) / unit
    steps[(a == b) | (np.isnan(a) & np.isnan(b))] = 0
    return np.where(np.isnan(steps), np.inf, steps)
