"""The service "dovetail.toolchain", called as a plugin calls it."""

from __future__ import annotations

import ctypes
import json
import threading

from dovetail import _core

__all__ = ["Code", "Unbuilt", "build", "request"]

READY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)


class Table(ctypes.Structure):
    """dvt_toolchain."""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        (
            "build",
            ctypes.CFUNCTYPE(
                ctypes.c_int,
                ctypes.c_void_p,
                ctypes.c_char_p,
                ctypes.c_char_p,
                ctypes.c_size_t,
                READY,
                ctypes.c_void_p,
            ),
        ),
        ("entry", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)),
        ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]


CALLBACKS = []
TABLE = Table.from_address(_core.toolchain_table())


class Unbuilt(Exception):
    """There is no code; the text says why."""


class Code:
    """Code in memory, until it is collected."""

    def __init__(self, code: int) -> None:
        self._code = code

    def function(self, index: int, result: type | None, *arguments: type) -> ctypes._CFuncPtr:
        function = ctypes.CFUNCTYPE(result, *arguments)(TABLE.entry(self._code, index))
        function.code = self  # it lives as long as the function
        return function

    def __del__(self) -> None:
        TABLE.release(self._code)


def request(text: str, functions: list[str], target: str = "x86_64-linux-gnu", features: str = "") -> bytes:
    """A request to the tool "llvm"."""
    head = json.dumps({"target": target, "features": features, "functions": functions})
    return f"{head}\n{text}".encode()


def build(tool: str, what: bytes, timeout: float = 60) -> Code:
    """Asks for code and waits for it. Raises Unbuilt, and TimeoutError."""
    came = threading.Event()
    answers: list[tuple[int | None, bytes | None]] = []

    def ready(_: int, code: int | None, reason: bytes | None) -> None:
        answers.append((code, reason))
        came.set()

    callback = READY(ready)
    CALLBACKS.append(callback)  # an exception may end the wait
    assert TABLE.build(None, tool.encode(), what, len(what), callback, None) == 0
    if not came.wait(timeout):
        raise TimeoutError(f"{tool} does not answer")
    ((code, reason),) = answers
    if code is None:
        raise Unbuilt((reason or b"").decode())
    return Code(code)
