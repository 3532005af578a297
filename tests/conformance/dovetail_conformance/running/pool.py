"""Runs cases in worker processes, so that a crash or a hang costs one case."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from ..results import Result, Status

START_SECONDS = 120.0  # to import, probe and open the device


class Config(NamedTuple):
    device: str
    seed: int = 0
    workers: int = 1
    timeout: float = 60.0  # seconds for one case
    api: str = "dovetail"
    profile: str | None = None
    debug_checks: bool = True  # calls and memory are checked for misuse, which takes time


class DeviceUnavailable(Exception):
    """With the device's own message, or that of a worker that died before."""


class Worker:
    """One process and a thread that reads its output; `events` gets (worker, message), None at its end."""

    def __init__(self, config: Config, events: queue.SimpleQueue):
        self.errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        arguments = {name: getattr(config, name) for name in ("device", "seed", "timeout", "api", "profile")}
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "dovetail_conformance.running.worker", json.dumps(arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=_environment(config),
            start_new_session=True,  # Ctrl-C reaches the runner alone
        )
        self.case: str | None = None
        self.call = ""  # the last one that it announced
        self.started = time.monotonic()
        self.deadline = self.started + START_SECONDS
        self.ready = self.timed_out = False
        threading.Thread(target=self._read, args=(events,), daemon=True).start()

    def _read(self, events: queue.SimpleQueue) -> None:
        assert self.process.stdout
        with self.process.stdout as printed:
            for line in printed:
                if (message := self._understood(line)) is not None:
                    events.put((self, message))
        events.put((self, None))

    def _understood(self, line: str) -> dict[str, Any] | None:
        """None for bytes that a device wrote into its host's pipe."""
        with suppress(ValueError, RecursionError):
            message = json.loads(line)
            known = isinstance(message, dict) and message.keys() & {"ready", "unavailable", "calling", "lost"}
            if known and message.get("id", self.case) == self.case:
                return message
        return None

    def run(self, case: str, timeout: float) -> None:
        assert self.process.stdin
        self.case, self.call, self.started = case, "", time.monotonic()
        self.deadline = self.started + timeout
        with suppress(BrokenPipeError):  # it died in between; the reader reports that
            self.process.stdin.write(case + "\n")
            self.process.stdin.flush()

    def kill(self) -> None:
        """And the processes that a device has forked: while one holds the pipe it has no end."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Ends it, whatever it is doing."""
        self.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.errors):
            with suppress(BrokenPipeError):
                stream.close()

    def last_words(self) -> str:
        """How the process ended, and the end of its error output."""
        code = self.process.wait()
        ended = f"exit code {code}" if code >= 0 else _signal_name(-code)
        self.errors.seek(0)
        lines = self.errors.read().strip().splitlines()
        return "\n".join([ended, *lines[-12:]])


def _signal_name(number: int) -> str:
    try:
        return f"signal {signal.Signals(number).name}"
    except ValueError:
        return f"signal {number}"


def _environment(config: Config) -> dict[str, str]:
    """Workers share the processors; each keeps two threads, so that races have a chance to show.

    What a kernel keeps of its call is gone when it returns, so that it cannot work by luck; what it writes outside
    its outputs is found, and what it does not write is full of junk.
    """
    threads = max(2, (os.cpu_count() or 1) // config.workers)
    debug_checks = {"DOVETAIL_POISON_CALLS": "1", "DOVETAIL_GUARD_MEMORY": "1"} if config.debug_checks else {}
    return {"DOVETAIL_NUM_THREADS": str(threads)} | debug_checks | os.environ


class Pool:
    """The workers of a run. `description` is the first one's description of the device.

    `note` gets what the user should know of the workers.
    """

    def __init__(self, config: Config, note: Callable[[str], None] = lambda _: None):
        self.config, self.note = config, note
        self.description: dict[str, Any] = {}
        self._events: queue.SimpleQueue = queue.SimpleQueue()
        self._workers: list[Worker] = []
        self._todo: deque[str] = deque()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends the workers, whatever they are doing."""
        for worker in self._workers:
            worker.stop()
        self._workers = []

    def open(self) -> dict[str, Any]:
        """Starts the first worker and waits for its device; raises DeviceUnavailable."""
        self._start()
        while not self.description:
            self._step()
        return self.description

    def run(self, cases: Iterable[str]) -> Iterator[Result]:
        """The results, as they come in."""
        if not self.description:
            self.open()
        self._todo = deque(cases)
        while len(self._workers) < min(self.config.workers, len(self._todo)):
            self._start()
        for worker in self._workers:
            if worker.ready and not worker.timed_out:
                self._next(worker)
        while self._todo or any(w.case for w in self._workers):
            if result := self._step():
                yield result

    def running(self) -> list[str]:
        return [w.case for w in self._workers if w.case]

    def _start(self) -> None:
        self._workers.append(Worker(self.config, self._events))

    def _next(self, worker: Worker) -> None:
        worker.case, worker.deadline = None, float("inf")
        if self._todo:
            worker.run(self._todo.popleft(), self.config.timeout)

    def _step(self) -> Result | None:
        """Waits for one thing to happen; the result that it brings."""
        now = time.monotonic()
        for worker in self._workers:
            if worker.deadline <= now and not worker.timed_out:
                worker.timed_out = True
                worker.kill()
        wait = min((w.deadline for w in self._workers if not w.timed_out), default=now + 1) - now
        try:
            worker, message = self._events.get(timeout=min(max(wait, 0.0), 1.0))
        except queue.Empty:
            for worker in self._workers:
                if worker.process.poll() is not None:
                    worker.kill()  # it died, and a child that it left keeps its pipe open
            return None
        if worker not in self._workers:
            return None
        if message is None:
            return self._ended(worker)
        if "unavailable" in message:
            return self._without_device(worker, message["unavailable"])
        if "calling" in message:
            worker.call = message["calling"]
            return None
        if "ready" in message:
            worker.ready = True
            self.description = self.description or message["ready"]
            self._next(worker)
            return None
        lost = message.pop("lost")
        if worker.timed_out:
            worker.case = None  # just in time, but its process is being killed
        elif lost:
            self._replace(worker)
        else:
            self._next(worker)
        return Result(**message | {"status": Status(message["status"])})

    def _ended(self, worker: Worker) -> Result | None:
        """The process is gone: its case pays, another one takes its place."""
        words, case = worker.last_words(), worker.case
        if not worker.ready:
            how = f"did not come up within {START_SECONDS:g} s" if worker.timed_out else "died while it was opened"
            return self._without_device(worker, f"{self.config.device} {how}: {words}")
        self._replace(worker)
        if case is None:
            return None
        seconds = time.monotonic() - worker.started
        where = f"\nin {worker.call}" if worker.call else ""
        if worker.timed_out:
            printed = "".join(words.partition("\n")[1:])  # not that it was killed
            return Result(
                case, Status.TIMEOUT, seconds, f"not done after {self.config.timeout:g} s{where}{printed}"
            )
        return Result(case, Status.CRASH, seconds, words + where)

    def _replace(self, worker: Worker) -> None:
        """Its process or its device is gone."""
        worker.stop()
        self._workers.remove(worker)
        if self._todo:
            self._start()

    def _without_device(self, worker: Worker, why: str) -> None:
        """The others continue if there are any: some devices can be opened only once."""
        worker.stop()
        self._workers.remove(worker)
        if not any(w.ready for w in self._workers):
            raise DeviceUnavailable(why)
        self.note(f"a worker has no device, {len(self._workers)} go on: {why}")


def run(config: Config, cases: Iterable[str], opened: Callable[[dict], None] = lambda _: None) -> Iterator[Result]:
    """All of it: workers are started, and stopped at the end or when the caller stops listening."""
    with Pool(config) as pool:
        opened(pool.open())
        yield from pool.run(cases)
