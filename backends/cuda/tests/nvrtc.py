"""The real NVRTC, of NVIDIA's wheel: it needs no driver."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from functools import cache

from cuda_programs import NVIDIA


class Refused(Exception):
    """A text does not compile: NVRTC's words."""


@cache
def library() -> ctypes.CDLL:
    return ctypes.CDLL(str(NVIDIA / "cu13/lib/libnvrtc.so.13"))


def compile(text: str, *options: str) -> bytes:
    """The machine code of a text, as a cubin; raises Refused."""
    nvrtc, program = library(), c_void_p()
    assert nvrtc.nvrtcCreateProgram(byref(program), text.encode(), b"text.cu", 0, None, None) == 0
    try:
        result = nvrtc.nvrtcCompileProgram(
            program, c_int(len(options)), (c_char_p * len(options))(*map(str.encode, options))
        )
        if result:
            raise Refused(_read(program, "nvrtcGetProgramLog").decode())
        return _read(program, "nvrtcGetCUBIN")
    finally:
        nvrtc.nvrtcDestroyProgram(byref(program))


def _read(program: c_void_p, function: str) -> bytes:
    size = c_size_t()
    assert library()[f"{function}Size"](program, byref(size)) == 0
    buffer = ctypes.create_string_buffer(size.value)
    assert library()[function](program, buffer) == 0
    return buffer.raw
