"""What is tested: one case per op, dtype, sample and layout, and one per check of the device itself.

An id reads like `matmul[f32,m=64,k=64,n=1,layout=NT]` or `device.memory[odd_sizes]`. It never changes its meaning:
seed and id give the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import NamedTuple

from dovetail.schema import Op, registry
from dovetail.schema.dtypes import DType
from dovetail.schema.samples import Sample

from .inputs import layouts
from .must_pass import must_pass

LAID_OUT = 3  # samples of an op and dtype that come in other layouts too; --quick takes the first


class Case(NamedTuple):
    id: str
    level: str  # the lowest one that it belongs to
    op: str = ""  # "" for a check of the device
    dtype: DType | None = None
    sample: Sample | None = None
    layout: str = ""
    check: Callable | None = None
    quick: bool = True  # part of --quick

    @property
    def group(self) -> str:
        """The op, or the part of the device: what is named when it fails."""
        return self.id.partition("[")[0]


def device_cases() -> Iterator[Case]:
    from .device_checks import checks

    for check in checks():
        yield Case(f"device.{check.part}[{check.name}]", "L0", check=check.run, quick=not check.slow)


def op_cases(op: Op, dtypes: Iterable[DType], level_of: Callable[[str, DType], str]) -> Iterator[Case]:
    """The cases of an op; none where it has no oracle."""
    if op.reference is None:
        return
    samples = [(sample, layouts(sample, op.spec.shape)) for sample in op.cases()]
    for d in dtypes:
        left = LAID_OUT
        level = level_of(op.name, d)
        for sample, laid_out in samples:
            if sample.dtypes is not None and d not in sample.dtypes:
                continue
            yield Case(f"{op.name}[{d.brief},{sample.id}]", level, op.name, d, sample)
            others = laid_out if left else ()
            for layout in others:
                id = f"{op.name}[{d.brief},{sample.id},layout={layout}]"
                yield Case(id, level, op.name, d, sample, layout, quick=left == LAID_OUT)
            left -= bool(others)


def level_of(op: str, d: DType) -> str:
    """L1 where the must-pass list has it; everything else belongs to levels above."""
    return "L1" if d.brief in must_pass().ops.get(op, ()) else "L2"


@cache
def cases_of(op: str) -> dict[str, Case]:
    """Those of one op by their ids; of the device for ""."""
    declared = registry[op] if op else None
    made = op_cases(declared, declared.dtypes, level_of) if declared else device_cases()
    found: dict[str, Case] = {}
    for case in made:
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
