"""Documents of made-up runs."""

from dovetail.schema import dtypes as dt
from dovetail_conformance.cases import Case
from dovetail_conformance.reporting.document import document
from dovetail_conformance.reporting.live import Replay
from dovetail_conformance.results import Result, Status

CASES = [
    Case("device.memory[a]", "L0"),
    Case("add[f32,a]", "L1", "add", dt.float32),
    Case("mul[f32,a]", "L1", "mul", dt.float32),
    Case("add[i8,a]", "L2", "add", dt.int8),
]
WRONG = {"ulp": None, "tol": 1.0, "wrong": 1, "index": [0], "got": "1", "expected": "2"}
RESULTS = [
    Result("device.memory[a]", Status.PASS, 0.25),
    Result("add[f32,a]", Status.FAIL, 0.1, "why", WRONG | {"errors": [5, 0, 0, 0, 0, 0, 0, 0, 0, 1]}),
    Result("mul[f32,a]", Status.PASS, 0.1, "", {"ulp": 0.3, "tol": 1.0}),
    Result("add[i8,a]", Status.UNSUPPORTED, 0.0, "no row"),
]
RUN = {
    "level": "L2",
    "quick": False,
    "profile": None,
    "expression": None,
    "cases": [],
    "seed": 3,
    "workers": 2,
    "timeout": 60.0,
    "performance": False,
    "started": "2026-01-01T00:00:00+00:00",
    "seconds": 1.5,
    "complete": True,
    "stopped_by": None,
    "shard": None,
    "must_pass": {"version": 1, "sha256": "0" * 64},
    "cases_sha256": "0" * 64,
    "system": {"platform": "Linux", "machine": "x86_64", "processors": 2},
    "suite": "1.2.3",
}
DESCRIPTION = {
    "device": {"name": "x:0", "kind": "npu", "arch": "", "properties": {"name": "X", "caps": []}},
    "backend": {"name": "x", "version": "1.2", "build_info": "", "abi": "1.0"},
    "packs": [],
    "native": ["add"],
    "kernels": {"add": ["f32"]},
    "dovetail": "1.2.3",
    "python": "3.11.0",
    "numpy": "2.0.0",
}
LEVEL = {"reached": "L0", "asked": "L2", "profile": None, "text": "level L0"}


def made(results=RESULTS, cases=CASES, **others):
    """A valid document for any reader of results.json."""
    given = {"run": RUN, "description": DESCRIPTION, "level": LEVEL, "replay": Replay("x", 3)} | others
    return document(zip(cases, results), **given)
