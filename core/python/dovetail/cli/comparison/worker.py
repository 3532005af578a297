"""The process of one contender: python -m dovetail.cli.comparison.worker NAME THREADS [DEVICE]

It answers each line of JSON on its input with one on its output: {"prepare": point, "seconds": s}, {"time": pause}.
"""

from __future__ import annotations

import ctypes
import gc
import json
import math
import os
import signal
import sys
import time
from itertools import repeat
from typing import Any

import numpy as np

from dovetail.cli.comparison import kinds
from dovetail.cli.comparison.peers import Call, Contender, NoKernel, contender
from dovetail.cli.comparison.points import Point

_SAMPLES = 4096  # of a result, to compare
_TICK = 1e-9
_PR_SET_PDEATHSIG = 1  # of Linux's prctl
_WARM = 0.25  # of a batch, before one of several calls: the other contenders have used the caches


class Worker:
    def __init__(self, of: Contender):
        self.of = of
        self.call: Call | None = None
        self.count = 1

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if "prepare" in request:
            return self.prepare(Point(**_tuples(request["prepare"])), request["seconds"])
        return {"seconds": self.time(request["time"])}

    def prepare(self, point: Point, seconds: float) -> dict[str, Any]:
        """Makes the operands, calls once, and finds how many calls take so many seconds."""
        self.call = None
        kind = kinds.kind(point.op)
        assert kind is not None  # of a point that was parsed
        try:
            operands = kind.operands(point, kinds.Values(point))
            self.call = self.of.call(point, operands)
            results = self.call()
        except NoKernel:
            return {"kernel": False}
        except Exception as error:
            self.call = None
            return {"error": f"{type(error).__name__}: {error}".partition("\n")[0]}
        self.of.wait()
        hosts = [self.of.host(x) for x in (results if isinstance(results, (tuple, list)) else (results,))]
        seen = kind.seen(point, operands, hosts) if kind.seen else hosts[0]
        read = kind.read(point, operands) if kind.read else sum(x.nbytes for x in operands)
        del results
        self.calibrate(seconds)
        return {"read": float(read), "written": float(sum(x.nbytes for x in hosts)), "sample": sample(seen)}

    def calibrate(self, seconds: float) -> None:
        self.count = 1
        while (took := self.batch(self.count)) < seconds:
            factor = 1.1 * seconds / took
            self.count = math.ceil(self.count * min(10, max(1.2, factor)))

    def time(self, pause: float) -> float:
        """Seconds of one call, after a pause in which threads that spun when the process was stopped give up."""
        time.sleep(pause)
        if self.count > 1:
            self.batch(max(1, int(self.count * _WARM)))
        return self.batch(self.count) / self.count

    def batch(self, count: int) -> float:
        call = self.call
        assert call is not None
        gc.disable()
        start = time.perf_counter()
        for _ in repeat(None, count):
            call()
        self.of.wait()
        took = time.perf_counter() - start
        gc.enable()
        return max(took, _TICK)


def sample(x: Any) -> dict[str, Any]:
    """The shape of a result and some of its values, at the same positions in every process."""
    flat = np.ascontiguousarray(x).reshape(-1)
    if flat.size > _SAMPLES:
        flat = flat[np.random.default_rng(1).integers(0, flat.size, _SAMPLES)]
    if flat.dtype.kind == "c":
        flat = flat.view(flat.real.dtype)
    return {"shape": list(np.shape(x)), "values": flat.astype(np.float64).tolist()}


def _tuples(given: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}


def _end_with_parent() -> None:
    """A process that is stopped does not see that the one which asks has been killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def main(name: str, threads: str, device: str | None = None) -> None:
    _end_with_parent()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is not an answer

    def send(answer: dict[str, Any]) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    try:
        worker = Worker(contender(name, int(threads), device))
    except Exception as error:
        send({"error": f"{type(error).__name__}: {error}".partition("\n")[0]})
        return
    send({"version": worker.of.version()})
    for line in sys.stdin:
        send(worker.answer(json.loads(line)))


if __name__ == "__main__":
    main(*sys.argv[1:])
