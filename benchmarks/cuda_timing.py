"""Shared by the CUDA benchmarks: the device, torch as a peer, times by the device's events, verdicts. Nothing is
measured where a time would mean nothing: without a GPU, on an emulated driver, without torch. `--tiny` still runs
the programs, on small operands and without peers, and marks each figure as meaningless.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import os
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import dovetail as dt
from dovetail_conformance.device_checks.table import Table

Work = Callable[[], object]  # enqueues without waiting


@dataclass(frozen=True)
class Aim:
    bound: float
    at_most: bool = False

    def __str__(self) -> str:
        return f"at {'most' if self.at_most else 'least'} {self.bound:g}"

    def verdict(self, figure: float) -> str:
        return "met" if (figure <= self.bound if self.at_most else figure >= self.bound) else "MISSED"


def spanned(begin: Work, end: Work, elapsed: Callable[[], float], work: Work, calls: int) -> float:
    work()  # the device is still busy when the first event is recorded
    begin()
    for _ in range(calls):
        work()
    end()
    return max(elapsed(), 1e-9) / calls


@dataclass(frozen=True)
class Bench:
    device: dt.Device
    tiny: bool
    torch: ModuleType | None  # no peer: tiny

    def choose(self, full: int, tiny: int) -> int:
        return tiny if self.tiny else full

    def time(self, work: Work, calls: int) -> float:
        """Seconds of one of these calls in a row, by the device's own events."""
        first, last = (dt.Event(self.device, timing=True) for _ in range(2))

        def elapsed() -> float:
            last.synchronize()
            return first.elapsed_ns(last) * 1e-9

        return spanned(first.record, last.record, elapsed, work, calls)

    def time_past(self, own: Table, stream: int, work: Work, calls: int) -> float:
        """The same for work that bypasses the runtime: the runtime's events only cover its own work."""
        first, last = (own.event(timing=True) for _ in range(2))

        def elapsed() -> float:
            own.call("ev_sync", last)
            return own.elapsed_ns(first, last) * 1e-9

        begin, end = (lambda event=event: own.call("ev_record", event, stream) for event in (first, last))
        return spanned(begin, end, elapsed, work, calls)

    def time_torch(self, work: Work, calls: int) -> float:
        """The same on torch's stream."""
        first, last = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))

        def elapsed() -> float:
            last.synchronize()
            return first.elapsed_time(last) * 1e-3

        return spanned(first.record, last.record, elapsed, work, calls)

    def shared(self, x: dt.Array):
        """torch's tensor of the same memory."""
        dt.synchronize(self.device)
        return self.torch.from_dlpack(x)

    def line(self, what: str, printed: str, figure: float | None = None, aim: Aim | None = None) -> None:
        """figure: compared with the target; None without a peer."""
        if self.tiny:
            verdict = "meaningless: --tiny"
        elif figure is None or aim is None:
            verdict = "no aim"
        else:
            verdict = f"aim {aim}: {aim.verdict(figure)}"
        print(f"{what:36} {printed:62} {verdict}", flush=True)


def medians(bench: Bench, *samplers: Callable[[], float], rounds: int = 15) -> list[float]:
    """Statistics of samples that are taken in turn, so that clocks and heat are equal for all, after a warm-up."""
    rounds, warm_up = (2, 1) if bench.tiny else (rounds, 3)
    samples = [[sampler() for sampler in samplers] for _ in range(warm_up + rounds)][warm_up:]
    return [statistics.median(column) for column in zip(*samples, strict=True)]


def is_emulated() -> bool:
    """Whether the driver is the emulator, which exports this symbol; the plugin uses the same test."""
    driver = os.environ.get("DOVETAIL_CUDA_DRIVER")
    return bool(driver) and hasattr(ctypes.CDLL(driver), "dovetail_cuda_emulator")


def torch_on_gpu() -> ModuleType:
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        sys.exit("nothing measured: there is no torch to compare with; make bench-cuda brings it")
    if not torch.cuda.is_available():
        sys.exit("nothing measured: this torch, to compare with, finds no GPU")
    torch.cuda.init()
    return torch


def parser(description: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--device", default="cuda")
    made.add_argument("--tiny", action="store_true", help="on small operands: figures mean nothing then")
    return made


def opened(options: argparse.Namespace) -> Bench:
    """End the program with a message if nothing can be measured."""
    try:
        device = dt.device(options.device)
    except ValueError as error:
        sys.exit(f"nothing measured: {error}")
    if is_emulated() and not options.tiny:
        sys.exit("nothing measured: the driver is emulated, and its times mean nothing; --tiny runs the programs")
    dt.set_default_device(device)
    return Bench(device, options.tiny, None if options.tiny else torch_on_gpu())
