"""What benchmarks beside peers share: contenders that take turns, and a process for each number of threads."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

LIBRARIES = ("DOVETAIL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # which read these when imported
BLOCKS, PAUSE = 7, 0.15  # turns of each contender in medians(), and seconds before each


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


def medians(calls: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """Milliseconds of the calls, which take turns of blocks of calls, with a pause before each."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for name in list(calls) * BLOCKS:
        time.sleep(PAUSE)  # threads that spin after a call go to sleep
        calls[name]()
        end = time.perf_counter() + seconds / BLOCKS / len(calls)
        while (start := time.perf_counter()) < end:
            calls[name]()
            times[name].append((time.perf_counter() - start) * 1e3)
    return {name: statistics.median(found) for name, found in times.items()}


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
