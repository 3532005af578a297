"""Dovetail's API over NumPy: a device on which the suite runs without any hardware. Its ops return the results of
the suite's own oracle, so they are right by definition, unless FAKE_FAULT is "<what>:<op>" with one of FAULTS.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
from dovetail.schema import registry
from dovetail_conformance.judging import oracle

FAULTS = ("last", "crash", "hang", "nan", "unsupported", "fallback", "scribble", "dtype", "open", "absent", "exit",
          "unsteady", "threads", "together", "strides", "alias", "size", "flushes", "flushes_declared", "promises",
          "accepts", "modest", "modest_wrong", "modest_crash", "lost", "once", "packed")  # fmt: skip
_fault, _, _culprit = os.environ.get("FAKE_FAULT", "").partition(":")
_moved: list[dict[str, Any]] = []
DEVICE = SimpleNamespace(
    name="fake:0",
    kind="other",
    arch="numpy",
    backend="fake",
    index=0,
    synchronize=lambda: _expect_not_lost(),
    properties={"name": "Fake", "synchronous": True, "mem_total": 1 << 27},
)


_lost: list[str] = []  # the ops in which it was lost
_held: list[Any] = []  # locks


class DeviceLostError(RuntimeError):
    pass


def _expect_not_lost() -> None:
    if _lost:
        raise DeviceLostError(f"[{_lost[0]}] the device was lost")


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
    if _fault == "once" and not _held:
        _held.append(open(os.environ["FAKE_LOCK"], "w"))  # noqa: SIM115  as long as the process lives
        try:
            fcntl.flock(_held[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RuntimeError("another process has the device") from None
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
    if _fault == "orphan":  # a child that outlives it and keeps all its files open
        if not os.fork():
            time.sleep(60)
            os._exit(0)
        os.abort()
    if _fault == "chatter":  # into the pipe of the results, which a device can find
        for line in (
            b"not JSON\n",
            b"5\n",
            b'{"no": "answer"}\n',
            b'{"id": "another", "lost": false}\n',
            b"\xff\n",
        ):
            os.write(int(os.environ["FAKE_ANSWERS"]), line)
    if _fault == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if _fault == "exit":
        os._exit(7)
    if _fault == "lost":
        _lost.append(op)
        _expect_not_lost()
    if _fault == "hang":
        time.sleep(600)
    if _fault == "unsupported":
        raise NotImplementedError(f"[{op}] not supported on fake:0")
    if _fault == "fallback":
        _moved.append({"op": op, "device": "fake:0", "calls": 1})
    if _fault == "scribble" and arrays[0].a.size:
        arrays[0].a.flat[0] = 0 if arrays[0].a.flat[0] else 1


_threads = [2]
_calls: list[int] = [0, 0]  # allocated so far, and in progress


def _stray(out: np.ndarray) -> None:
    """Move the last element by the ulps that the fault makes of this call."""
    if _fault == "together":
        time.sleep(0.02)
    steps = {"unsteady": _calls[0], "threads": _threads[0], "together": _calls[1] > 1}[_fault]
    out.view(f"u{out.itemsize}").flat[-1] += steps


_given: list[Any] = [None]  # the culprit's last operand, in its last call
_modest = {"declined": 0, "serves": False}


def _decline(op: str) -> None:
    """All rows of the culprit decline calls that they could serve."""
    _modest["declined"] += 1
    if _modest["serves"] and _fault == "modest_crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if not _modest["serves"] and op == "multiply":
        raise NotImplementedError(f"[{op}] not supported on fake:0: modest")


def _dense(a: np.ndarray) -> np.ndarray:
    """The elements that a kernel reads if it ignores strides."""
    whole = a
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    return a if whole is a or whole.size < a.size else whole.reshape(-1)[: a.size].reshape(a.shape)


VIEWS = {"permute_dims": np.transpose, "broadcast_to": np.broadcast_to}


def _run(op: str, *args: Any, device: Any = None, **kwargs: Any) -> Array:
    _expect_not_lost()
    if op in VIEWS and op != _culprit and not kwargs:  # of the same memory
        return Array(VIEWS[op](args[0].a, args[1]))
    if op == _culprit and _fault == "accepts":
        with contextlib.suppress(Exception):
            return _answer(op, *args, **kwargs)
        return Array(np.zeros(1, np.float32))
    return _answer(op, *args, **kwargs)


def _answer(op: str, *args: Any, **kwargs: Any) -> Array:
    if op == _culprit and _fault == "strides":
        args = tuple(Array(_dense(a.a)) if isinstance(a, Array) else a for a in args)
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
        if _fault.startswith("modest"):
            _decline(op)
            out = out + 1 if _fault == "modest_wrong" else out
        if _fault == "alias" and len(arrays) > 1 and np.shares_memory(arrays[0].a, arrays[1].a):
            out.flat[0] += 1
        if _fault == "size" and out.size % 16 == 1 and out.size > 16:
            out.flat[-1] = 0
        if _fault.startswith("flushes") and out.dtype == np.float32:
            out[np.abs(out) < np.finfo(np.float32).tiny] = 0
        if _fault == "last" or (_fault == "packed" and _given[0] is args[-1]):
            out.flat[-1] += 1
        _given[0] = args[-1]
        if _fault == "nan" and out.dtype.kind == "f":
            out[np.isnan(out)] = 0
        if _fault == "dtype":
            out = out.astype(np.float64)
    return Array(out)


def _op_function(name: str) -> Any:
    return lambda *args, **kwargs: _run(name, *args, **kwargs)


def _row(op: str, flags: tuple[str, ...]) -> dict[str, Any]:
    flags += ("flushes_subnormals",) if _fault == "flushes_declared" else ()
    return {"op": op, "inputs": ["f32"], "outputs": ["f32"], "flags": flags,
            "max_ulp": 0.25 if _fault == "promises" else 0.0, "queries": _fault.startswith("modest"),
            "packs": _fault == "packed"}  # fmt: skip


_core = SimpleNamespace(
    op_function=_op_function,
    kernel_table=lambda _: [
        _row("add", ("deterministic",)),
        _row("multiply", ("deterministic",)),
        _row("matmul", ()),
    ],
    declined_calls=lambda op: _modest["declined"] if op == _culprit else 0,
    serve_declined=lambda on: _modest.update(serves=on),
    num_threads=lambda: _threads[0],
    set_num_threads=lambda n: _threads.__setitem__(0, n),
    guard_memory=lambda on=False: on,
    poison_calls=lambda on=False: on,
    memory_overruns=lambda device: [],
    backends=lambda: [{"name": "fake", "version": "1.2"}],
)
__version__ = "0"
