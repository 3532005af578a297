"""The workers as their parent sees them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

OURS = "dovetail"
_THREADS = ("DOVETAIL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # read at start

_STOP, _CONTINUE = getattr(signal, "SIGSTOP", None), getattr(signal, "SIGCONT", None)  # Windows has none


class WorkerError(RuntimeError):
    """A worker that did not start, or that ended."""


class Process:
    """A worker. It is stopped except while it answers: threads of libraries spin after a call, some for a second.

    Ctrl-C does not reach it: its parent closes it.
    """

    def __init__(self, name: str, threads: int, device: str | None):
        self.name = name
        self._arguments = [name, str(threads), *([device] if device else [])]
        self._environment = os.environ | dict.fromkeys(_THREADS, str(threads))
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dovetail.cli.comparison.worker", *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self._environment,
            start_new_session=True,
        )
        answer = self._read()
        if error := answer.get("error"):
            self.close()
            raise WorkerError(f"{self.name} cannot be used: {error}")
        self.version: str = answer["version"]
        self._signal(_STOP)

    def _signal(self, number: int | None) -> None:
        if number is not None:
            self._process.send_signal(number)

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer to a request. A worker that ends instead is started again, and WorkerError raised."""
        assert self._process.stdin is not None
        try:
            self._signal(_CONTINUE)
            print(json.dumps(request), file=self._process.stdin, flush=True)
            answer = self._read()
            self._signal(_STOP)
            return answer
        except (WorkerError, BrokenPipeError):
            status = self._process.wait()
            self.close()
            self._start()
            raise WorkerError(f"the process of {self.name} ended with status {status}") from None

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise WorkerError(f"the process of {self.name} ended with status {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        process = self._process
        if process.poll() is None:
            process.kill()  # in the middle of a call at Ctrl-C
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue
