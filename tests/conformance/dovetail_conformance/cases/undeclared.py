"""Calls that a device declines although it can serve them: no failure, but its author should know.

A kernel's `query` may decline a call; then the op's decomposition runs, slower. Here the row is made to run such
calls all the same, in a process of its own, since nothing is promised about what they do. Where all of them come
out right, the device declares less than it can. A call that some row serves, or would serve made compact, is not
declined.

    python -m dovetail_conformance.cases.undeclared '{"device": "cpu", ...}'
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dovetail.schema import Op, registry
from dovetail.schema import dtypes as dt
from dovetail.schema.samples import Sample

from ..results import Status
from ..running.target import Target
from . import Case, Outcome
from .call import must_answer
from .inputs import generator, lay_out

PATIENCE = 30.0  # seconds for the process; samples that take longer count as failures


@dataclass(slots=True)
class UndeclaredCase(Case):
    def run(self, target: Target, seed: int) -> Outcome:
        assert self.dtype
        if not target.may_decline(self.op, self.dtype):
            return Outcome(Status.PASS)
        declined = [s.id for s in self.samples() if self.declines(target, s, seed)]
        if not declined or self.right_anyway(target, declined, seed) != len(declined):
            return Outcome(Status.PASS)
        named = f"{declined[0]} and {len(declined) - 1} more" if len(declined) > 1 else declined[0]
        works = f"its kernel declines calls ({named}) that it computes right when it is run all the same"
        return Outcome(Status.PASS, "", {"undeclared": works})

    def samples(self) -> Iterator[Sample]:
        for s in registry[self.op].cases():
            if s.error is None and (s.dtypes is None or self.dtype in s.dtypes):
                yield s

    def arguments(self, target: Target, sample: Sample, seed: int) -> tuple[tuple, tuple]:
        """On the host and on the device."""
        assert self.dtype
        host = sample.make(generator(seed, f"{self.id}{sample.id}"), self.dtype)
        return host, lay_out(*host, "", target.place)

    def declines(self, target: Target, sample: Sample, seed: int) -> bool:
        before = target.declined(self.op)
        with suppress(NotImplementedError):  # no decomposition either
            target.call(self.op, *self.arguments(target, sample, seed)[1])
        return target.declined(self.op) > before

    def works(self, target: Target, sample: Sample, seed: int) -> bool:
        try:
            return must_answer(self, target, *self.arguments(target, sample, seed)).status is Status.PASS
        except Exception:
            return False

    def right_anyway(self, target: Target, declined: list[str], seed: int) -> int:
        """How many of the declined samples work, by the process's output; 0 if it prints none."""
        assert self.dtype
        asked = {"device": target.name, "api": target.api.__name__, "op": self.op, "dtype": self.dtype.brief,
                 "seed": seed, "samples": declined}  # fmt: skip
        command = [sys.executable, "-m", __name__, json.dumps(asked)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            return 0
        last = done.stdout.split()[-1:]
        return int(last[0]) if done.returncode == 0 and last and last[0].isdigit() else 0


def answer(asked: dict[str, Any]) -> int:
    """How many of the samples the device computes correctly when its rows run the calls that they decline."""
    target = Target(asked["device"], asked["api"])
    target.serve_declined()
    case = _case(registry[asked["op"]], asked["dtype"])
    chosen = [s for s in case.samples() if s.id in asked["samples"]]
    return sum(case.works(target, s, asked["seed"]) for s in chosen)


def _case(op: Op, brief: str) -> UndeclaredCase:
    return UndeclaredCase(f"{op.name}[{brief},undeclared]", "L2", op.name, dt.by_name[brief], quick=False)


def cases(op: Op) -> Iterator[Case]:
    if op.reference is None or op.spec.view or op.core:
        return
    for d in op.dtypes:
        yield _case(op, d.brief)


if __name__ == "__main__":
    print(answer(json.loads(sys.argv[1])), flush=True)
