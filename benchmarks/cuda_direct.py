"""Builds cuda_direct.cpp, and calls it: cuBLASLt and cuDNN without dovetail-cuda."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from ctypes import c_char_p, c_double, c_int, c_int64, c_void_p
from importlib.metadata import files
from pathlib import Path

import dovetail as dt
from dovetail_conformance.device_checks.interchange import address

SOURCE = Path(__file__).with_name("cuda_direct.cpp")
HEADERS = (
    ("nvidia-cuda-runtime", "include/cuda_runtime_api.h"),
    ("nvidia-cublas", "include/cublasLt.h"),
    ("nvidia-cudnn-cu13", "include/cudnn.h"),
    ("nvidia-cudnn-frontend", "include/cudnn_frontend.h"),
)
LIBRARIES = (
    ("nvidia-cuda-runtime", "lib/libcudart.so.13"),
    ("nvidia-cublas", "lib/libcublasLt.so.13"),
    ("nvidia-cudnn-cu13", "lib/libcudnn.so.9"),
    ("nvidia-cuda-nvrtc", "lib/libnvrtc.so.13"),  # cuDNN's front end calls it
)


def file_of(distribution: str, end: str) -> Path:
    return next(Path(f.locate()).resolve() for f in files(distribution) or () if str(f).endswith(end))


def built(folder: Path) -> Path:
    """Build the library; cuDNN's front end makes that take half a minute."""
    library = folder / "libcuda_direct.so"
    command = ["c++", "-std=c++20", "-O2", "-shared", "-fPIC", SOURCE, "-o", library]
    for header in HEADERS:
        command += ["-isystem", file_of(*header).parent]
    for path in (file_of(*of) for of in LIBRARIES):
        command += [path, f"-Wl,-rpath,{path.parent}"]
    subprocess.run(list(map(str, command)), check=True)
    return library


class Plan:
    """A problem that a library has planned, over arrays of Dovetail's."""

    def __init__(self, direct: Direct, work: int, operands: tuple[dt.Array, ...]):
        self._direct, self._work, self._operands = direct, work, operands

    def time(self, calls: int, *, busy: bool = True) -> float:
        """Seconds of one of these calls, by events. busy: whether the device is busy when they begin."""
        microseconds = self._direct.library.direct_time(self._work, calls, busy)
        if microseconds < 0:
            raise RuntimeError(self._direct.failure())
        return microseconds * 1e-6

    def close(self) -> None:
        self._direct.library.direct_close(self._work)


class Direct:
    def __init__(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.library = ctypes.CDLL(str(built(Path(folder))))
        self.library.direct_failure.restype = c_char_p
        self.library.direct_gemm.argtypes = [c_char_p, c_int64] + [c_void_p] * 3
        self.library.direct_attention.argtypes = [c_int64] * 4 + [c_int] + [c_void_p] * 4
        self.library.direct_time.argtypes = [c_void_p, c_int, c_int]
        self.library.direct_close.argtypes = [c_void_p]
        self.library.direct_gemm.restype = self.library.direct_attention.restype = c_void_p
        self.library.direct_time.restype = c_double

    def failure(self) -> str:
        return self.library.direct_failure().decode()

    def _plan(self, function: str, arguments: tuple, operands: tuple[dt.Array, ...]) -> Plan:
        dt.synchronize(operands[0].device)
        work = getattr(self.library, function)(*arguments, *map(address, operands))
        if not work:
            raise RuntimeError(self.failure())
        return Plan(self, work, operands)

    def gemm(self, kind: str, a: dt.Array, b: dt.Array, c: dt.Array) -> Plan:
        """c = a b. kind: bf16, f16, f32, tf32."""
        return self._plan("direct_gemm", (kind.encode(), a.shape[0]), (a, b, c))

    def attention(self, q: dt.Array, k: dt.Array, v: dt.Array, o: dt.Array, *, causal: bool) -> Plan:
        return self._plan("direct_attention", (*q.shape, causal), (q, k, v, o))
