"""What benchmarks beside peers share: contenders that take turns, and a process for each number of threads."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

LIBRARIES = ("DOVETAIL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # which read these when imported


def least(contenders: list[Callable[[], Any]], seconds: float) -> list[float]:
    """The time of one call of each."""
    best, end = [float("inf")] * len(contenders), time.perf_counter() + seconds
    while time.perf_counter() < end:
        for i, run in enumerate(contenders):
            for _ in range(4):
                start = time.perf_counter()
                run()
                best[i] = min(best[i], time.perf_counter() - start)
    return best


def main(description: str | None, measure: Callable[[list[str], float, int], None]) -> None:
    """Runs measure(names, seconds, threads) for each --threads, in a process of its own."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help="the beginning of cases' names")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=0.5, help="for each case")
    options = parser.parse_args()
    if len(options.threads) == 1 and os.environ.get("DOVETAIL_NUM_THREADS") == str(options.threads[0]):
        measure(options.names, options.seconds, options.threads[0])
        return
    for n in options.threads:
        given = [*options.names, "--threads", str(n), "--seconds", str(options.seconds)]
        environment = os.environ | dict.fromkeys(LIBRARIES, str(n))
        subprocess.run([sys.executable, sys.argv[0], *given], env=environment, check=True)
