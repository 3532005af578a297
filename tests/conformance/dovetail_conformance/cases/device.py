"""One case per check of the device itself: L0, but for the check that L1's kernels are there."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass

from ..device_checks import Check, Declined, Failed, checks
from ..results import Status
from ..running.target import Target
from . import Case, Outcome
from .inputs import generator


@dataclass(slots=True, kw_only=True)
class DeviceCase(Case):
    guarded = False
    check: Check

    def run(self, target: Target, seed: int) -> Outcome:
        gc.collect()  # garbage of earlier cases must not be freed in the middle of this one
        try:
            self.check.run(target, generator(seed, self.id))
        except Declined as why:
            return Outcome(Status.UNSUPPORTED, str(why))
        except Failed as why:
            return Outcome(Status.FAIL, str(why))
        return Outcome(Status.PASS)


def cases() -> Iterator[Case]:
    for check in checks():
        yield DeviceCase(f"device.{check.part}[{check.name}]", check.level, check=check, quick=not check.slow)
