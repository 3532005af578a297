"""The cases. A case is one question to a device, answered in a worker process.

An id reads like `matmul[f32,m=64,k=64,n=1,layout=NT]` or `device.memory[odd_sizes]`. It never changes its meaning:
seed and id give the inputs. Every module of FAMILIES makes cases of one kind: `cases(op)` gives those of an op.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from dovetail.schema import Op, registry
from dovetail.schema.dtypes import DType

from ..levels import must_pass
from ..results import Status

if TYPE_CHECKING:
    from ..running.target import Target

# The order of an op's cases: cheap ones that find most first.
FAMILIES = (
    "samples", "beyond", "special", "conversions", "halves", "errors", "property", "undeclared", "random_numbers",
    "determinism", "steady", "compiled", "performance",
)  # fmt: skip


class Outcome(NamedTuple):
    """The result of running a case."""

    status: Status
    message: str = ""
    measured: dict[str, Any] = {}  # noqa: RUF012  goes into results.json as it is


@dataclass(slots=True)
class Case:
    """One check; the families' own classes define how it runs."""

    id: str
    level: str  # the lowest one that it belongs to
    op: str = ""  # "" for a check of the device
    dtype: DType | None = None
    quick: bool = field(default=True, kw_only=True)  # part of --quick
    guarded: ClassVar[bool] = True  # red zones around its arrays; not where time or the pool itself is looked at

    @property
    def group(self) -> str:
        """The op, or the part of the device, that is named if the case fails."""
        return self.id.partition("[")[0]

    def run(self, target: Target, seed: int) -> Outcome:
        """Asks the device. An exception is a failure, reported as it is."""
        raise NotImplementedError

    def call(self, seed: int, index: Sequence[int] = ()) -> str:
        """Its call, as a person would type it, with the operands of the element at the index; "" where it
        makes several calls, or its message has the call."""
        return ""

    def others(self) -> frozenset[DType]:
        """The further dtypes of its call: those of operands, and dtype attributes."""
        return frozenset()

    def further(self) -> frozenset[DType]:
        """The dtypes that its call names and that L1 does not ask for: a device need not have them."""
        named = self.others() | ({self.dtype} if self.dtype else set())
        return frozenset(d for d in named if d.brief not in must_pass.must_pass().dtypes)

    def needed(self) -> frozenset[DType]:
        """The dtypes of its call in which the device needs a row of the op: without one the case is unsupported."""
        return self.further() or frozenset([self.dtype] if self.dtype else ())

    def refused(self, target: Target, error: NotImplementedError) -> Outcome:
        """The outcome of a call that raised `error`: unsupported where one of its dtypes has no row."""
        assert self.dtype
        if self.level != "L1" and not all(target.has_row(self.op, d) for d in self.needed()):
            return Outcome(Status.UNSUPPORTED, str(error))
        return Outcome(Status.FAIL, f"not supported: {error}")


def _of_op(op: Op) -> Iterator[Case]:
    for family in FAMILIES:
        yield from import_module(f"{__name__}.{family}").cases(op)


@cache
def cases_of(op: str) -> dict[str, Case]:
    """The cases of one op by their ids; for "" those of the device."""
    from .device import cases as of_device

    found: dict[str, Case] = {}
    for case in _of_op(registry[op]) if op else of_device():
        if case.id in found:
            raise ValueError(f"two cases are called {case.id}: samples of an op need ids of their own")
        found[case.id] = case
    return found


def find(id: str) -> Case:
    """The case of that id, without making all others."""
    group = id.partition("[")[0]
    return cases_of("" if group.startswith("device.") else group)[id]


@cache
def all_cases() -> dict[str, Case]:
    """Every case by its id, in the order in which they run: the device first, then op by op."""
    return {id: case for op in ("", *registry) for id, case in cases_of(op).items()}


def choose_profile(profile: str | None) -> None:
    """Sets the profile whose levels the cases have."""
    before = must_pass.must_pass()
    must_pass.choose(profile)
    if must_pass.must_pass() is not before:
        cases_of.cache_clear()
        all_cases.cache_clear()
