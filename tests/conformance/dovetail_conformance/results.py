"""The result of a case."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple


class Status(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    CRASH = "crash"  # the worker process died
    TIMEOUT = "timeout"
    UNSUPPORTED = "unsupported"  # and declared so: no row in the kernel table, no decomposition, no such feature
    WAIVED = "waived"
    FALLBACK = "fallback"  # another device did the work
    NOT_RUN = "not-run"


WORDS = {
    Status.PASS: "passed", Status.FAIL: "failed", Status.CRASH: "crashed", Status.TIMEOUT: "timed out",
    Status.UNSUPPORTED: "unsupported", Status.WAIVED: "waived", Status.FALLBACK: "fell back",
    Status.NOT_RUN: "not run",
}  # fmt: skip
BAD = frozenset({Status.FAIL, Status.CRASH, Status.TIMEOUT, Status.FALLBACK})


class Result(NamedTuple):
    id: str
    status: Status
    seconds: float = 0.0
    message: str = ""  # why it did not pass; several lines at most when something crashed
    measured: Mapping[str, Any] = MappingProxyType({})  # ulp, tol; index, got, expected of the worst element

    @property
    def bad(self) -> bool:
        return self.status in BAD

    @property
    def group(self) -> str:
        return self.id.partition("[")[0]
