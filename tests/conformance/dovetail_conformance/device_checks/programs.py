"""L3: random programs of every op that the device has, compiled and eager."""

from __future__ import annotations

from typing import Any

from . import check, expect

CHECKS, PROGRAMS = 10, 30


def _check(number: int) -> None:
    def programs(t: Any, rng: Any) -> None:
        from ..programs.run import check as differs

        for seed in rng.integers(0, 2**31, PROGRAMS):
            report = differs(t, int(seed))
            expect(not report, report)

    programs.__doc__ = f"Random programs, {number + 1} of {CHECKS}."
    programs.__name__ = f"random_{number}"
    check(level="L3")(programs)


for _number in range(CHECKS):
    _check(_number)
