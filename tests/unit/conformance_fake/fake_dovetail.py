"""Dovetail's API over NumPy: a device that the suite can be run on without any device.

Its ops answer with the suite's own oracle, so they are right by definition, unless FAKE_FAULT says otherwise:
"<what>:<op>" with what of FAULTS.
"""

from __future__ import annotations

import os
import signal
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
from dovetail.schema import registry
from dovetail_conformance.judging import oracle

FAULTS = ("last", "crash", "hang", "nan", "unsupported", "fallback", "scribble", "dtype", "open", "absent", "exit",
          "unsteady", "threads", "together")  # fmt: skip
_fault, _, _culprit = os.environ.get("FAKE_FAULT", "").partition(":")
_moved: list[dict[str, Any]] = []
DEVICE = SimpleNamespace(
    name="fake:0",
    kind="other",
    arch="numpy",
    backend="fake",
    index=0,
    synchronize=lambda: None,
    properties={"name": "Fake", "synchronous": True, "mem_total": 1 << 27},
)


class DeviceLostError(RuntimeError):
    pass


class Array:
    device = DEVICE

    def __init__(self, a: np.ndarray):
        self.a = a

    shape = property(lambda self: self.a.shape)

    def __getitem__(self, key: Any) -> Array:
        return Array(self.a[key])

    def numpy(self) -> np.ndarray:
        return self.a


def device(name: Any) -> Any:
    if _fault == "open":
        os.kill(os.getpid(), signal.SIGSEGV)
    if name not in ("fake", "fake:0") or _fault == "absent":
        raise ValueError(f"there is no device {name!r}: did you mean 'fake:0'?")
    return DEVICE


def asarray(a: np.ndarray, *, device: Any = None) -> Array:
    return Array(np.array(a))


def set_default_device(_: Any) -> None:
    pass


def fallback(mode: str | None = None) -> str:
    return "error"


def fallback_report(reset: bool = False) -> list[dict[str, Any]]:
    report = list(_moved)
    _moved.clear()
    return report


def _misbehave(op: str, arrays: list[Array]) -> None:
    if _fault == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if _fault == "exit":
        os._exit(7)
    if _fault == "hang":
        time.sleep(600)
    if _fault == "unsupported":
        raise NotImplementedError(f"[{op}] not supported on fake:0")
    if _fault == "fallback":
        _moved.append({"op": op, "device": "fake:0", "calls": 1})
    if _fault == "scribble" and arrays[0].a.size:
        arrays[0].a.flat[0] = 0 if arrays[0].a.flat[0] else 1


_threads = [2]
_calls: list[int] = [0, 0]  # so far, and under way


def _stray(out: np.ndarray) -> None:
    """Moves the last element by as many units in the last place as the fault makes of this call."""
    if _fault == "together":
        time.sleep(0.02)
    steps = {"unsteady": _calls[0], "threads": _threads[0], "together": _calls[1] > 1}[_fault]
    out.view(f"u{out.itemsize}").flat[-1] += steps


def _run(op: str, *args: Any, device: Any = None, **kwargs: Any) -> Array:
    plain = [a.a if isinstance(a, Array) else [x.a for x in a] if isinstance(a, list) else a for a in args]
    arrays = [a for a in args if isinstance(a, Array)]
    answer = oracle.answers(registry[op], tuple(plain), kwargs)[0]
    if op == _culprit:
        _misbehave(op, arrays)
    with np.errstate(all="ignore"):
        out = np.array(answer.value).astype(answer.dtype.numpy)
    if op == _culprit and out.size:
        if _fault in ("unsteady", "threads", "together"):
            _calls[:] = _calls[0] + 1, _calls[1] + 1
            _stray(out)
            _calls[1] -= 1
        if _fault == "last":
            out.flat[-1] += 1
        if _fault == "nan" and out.dtype.kind == "f":
            out[np.isnan(out)] = 0
        if _fault == "dtype":
            out = out.astype(np.float64)
    return Array(out)


def _op_function(name: str) -> Any:
    return lambda *args, **kwargs: _run(name, *args, **kwargs)


_core = SimpleNamespace(
    op_function=_op_function,
    kernel_table=lambda _: [
        {"op": op, "inputs": ["f32"], "outputs": ["f32"], "flags": flags}
        for op, flags in (("add", ["deterministic"]), ("multiply", ["deterministic"]), ("matmul", []))
    ],
    num_threads=lambda: _threads[0],
    set_num_threads=lambda n: _threads.__setitem__(0, n),
    guard_memory=lambda on=False: on,
    memory_overruns=lambda device: [],
    backends=lambda: [{"name": "fake", "version": "1.2"}],
)
__version__ = "0"
