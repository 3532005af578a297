"""A small host for the CPU backend: loads the library through ctypes and runs rows of its table on NumPy arrays.

Kernels are tested here without the runtime: no dispatch, no casts, no pool. Every instruction set level is a copy
of the library of its own, because a library chooses its level once.
"""

from __future__ import annotations

import ctypes as ct
import fcntl
import importlib.util
import mmap
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
from abi import (
    ALIAS,
    ANY,
    EXTENSION,
    FAIL,
    HOST_SCALAR,
    LOG,
    NUM_THREADS,
    OK,
    OPTIONAL,
    PACKABLE,
    PARALLEL_FOR,
    STRIDED,
    TRACE,
    UNSUPPORTED,
    Answer,
    Attr,
    BackendTable,
    Call,
    DLDataType,
    DLTensor,
    Host,
    Kernel,
    Operand,
    Packed,
)

HERE = Path(__file__).resolve().parent
LEVELS = ("default", "avx2", "avx512") if platform.machine() == "x86_64" else ("default", "neon_bf16")
EMULATED = "QEMU_CPU" in os.environ  # everything takes 20 to 50 times as long: large cases have fewer numbers
bfloat16 = np.dtype(ml_dtypes.bfloat16)
FLOAT8 = (np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2))
float16, float32, float64 = np.dtype("f2"), np.dtype("f4"), np.dtype("f8")
FLOATS = (float16, bfloat16, float32, float64)
SIGNED = tuple(np.dtype(f"i{n}") for n in (1, 2, 4, 8))
UNSIGNED = tuple(np.dtype(f"u{n}") for n in (1, 2, 4, 8))
INTEGERS = SIGNED + UNSIGNED
BOOL = np.dtype(bool)
COMPLEX = (np.dtype("c8"), np.dtype("c16"))


# ---- running a row -------------------------------------------------------------------------------------------
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
# Codes and bits of DLPack. NumPy's elements of the last ones take a byte each, packed ones fewer.
FOREIGN = {bfloat16: (4, 16), FLOAT8[0]: (10, 8), FLOAT8[1]: (12, 8)} | {
    np.dtype(getattr(ml_dtypes, name)): code
    for name, code in {
        "float8_e4m3fnuz": (11, 8), "float8_e5m2fnuz": (13, 8), "float8_e8m0fnu": (14, 8), "float4_e2m1fn": (17, 4),
        "int4": (0, 4), "int2": (0, 2), "uint4": (1, 4), "uint2": (1, 2),
    }.items()
}  # fmt: skip
STORED = tuple(FOREIGN)[3:]


def dl_dtype(dtype: np.dtype) -> DLDataType:
    code, bits = FOREIGN.get(dtype) or (CODES[dtype.kind], dtype.itemsize * 8)
    return DLDataType(code, bits, 1)


class KernelError(Exception):
    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code


@dataclass
class Scalar:
    """An operand that is a scalar in host memory: ndim 0."""

    value: np.ndarray


class Guarded:
    """A dense output between guard bytes that a kernel must leave alone."""

    GUARD = 64

    def __init__(self, shape: Sequence[int], dtype: np.dtype, initial: np.ndarray | None = None):
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self.bytes = np.full(size + 2 * self.GUARD, 0xA5, np.uint8)
        self.array = self.bytes[self.GUARD : self.GUARD + size].view(dtype).reshape(shape)
        if initial is not None:
            self.array[...] = initial

    def check(self) -> None:
        ends = np.concatenate([self.bytes[: self.GUARD], self.bytes[len(self.bytes) - self.GUARD :]])
        assert (ends == 0xA5).all(), "the kernel wrote outside its output"


@cache
def _mprotect() -> Callable[[int, int, int], int] | None:
    if platform.system() != "Linux":
        return None
    f = ct.CDLL(None, use_errno=True).mprotect
    f.argtypes = [ct.c_void_p, ct.c_size_t, ct.c_int]
    return f


def before_a_hole(a: np.ndarray) -> np.ndarray:
    """A dense array, unless large, in memory that ends with it: a kernel that reads beyond dies by SIGSEGV."""
    protect, page = _mprotect(), mmap.PAGESIZE
    if not protect or not 0 < a.nbytes <= 1 << 18:
        return a
    end = -(-a.nbytes // page) * page
    memory = mmap.mmap(-1, end + page)
    copied = np.ndarray(a.shape, a.dtype, memory, end - a.nbytes)
    copied[...] = a
    assert protect(copied.ctypes.data + a.nbytes, page, 0) == 0, os.strerror(ct.get_errno())
    return copied


class Session:
    """The library at one level, and a host for it."""

    def __init__(self, path: Path, level: str | None = None, env: dict[str, str] | None = None, threads: int = 3):
        self.failure: tuple[int, str] | None = None
        self.packed: Packed | None = None  # of the last run(pack=...)
        self.threads = threads
        self.logged: list[str] = []
        self.keep: list[object] = []  # callbacks live as long as the library
        env = {**(env or {}), **({"DOVETAIL_CPU_CAPABILITY": level} if level else {})}
        saved = {k: os.environ.get(k) for k in ("DOVETAIL_CPU_CAPABILITY", "DOVETAIL_CPU_KERNELS", *env)}
        try:
            for k in saved:
                os.environ.pop(k, None)
            os.environ.update(env)
            self.library = ct.CDLL(str(path), mode=os.RTLD_LOCAL | os.RTLD_NOW)
            self.host = self._make_host(path)
            table = ct.POINTER(BackendTable)()
            entry = self.library.dvt_backend_v1
            entry.argtypes = [ct.POINTER(Host), ct.POINTER(ct.POINTER(BackendTable))]
            entry.restype = ct.c_int32
            self.check(entry(ct.byref(self.host), ct.byref(table)))
            self.table = table.contents
        finally:
            for k, v in saved.items():
                os.environ.pop(k, None)
                if v is not None:
                    os.environ[k] = v
        self.rows = [self.table.kernels[i].contents for i in range(self.table.n_kernels)]
        self.by_op: dict[str, list[Kernel]] = {}
        for row in self.rows:
            self.by_op.setdefault(row.op.decode().removeprefix("dvt."), []).append(row)

    def _make_host(self, path: Path) -> Host:
        def fail(_self, code, _correlation, _file, _line, message):
            self.failure = (code, message.decode())
            return code

        def parallel_for(_self, n, grain, body, ctx):
            chunk = max(grain, -(-n // self.threads))
            for worker, begin in enumerate(range(0, n, chunk)):
                body(ctx, begin, min(begin + chunk, n), worker)

        callbacks = (
            FAIL(fail),
            LOG(lambda _self, _level, message: self.logged.append(message.decode())),
            NUM_THREADS(lambda _: self.threads),
            PARALLEL_FOR(parallel_for),
            TRACE(lambda *_: None),
            EXTENSION(lambda *_: None),
        )
        self.keep.append(callbacks)
        return Host(ct.sizeof(Host), 1, 0, 0, str(path).encode(), *callbacks)

    def check(self, status: int) -> None:
        failure, self.failure = self.failure, None
        if status != OK:
            raise KernelError(status, failure[1] if failure else "")

    def device_count(self) -> int:
        n = ct.c_uint32()
        self.check(self.table.device_count(ct.byref(n)))
        return n.value

    def open(self) -> ct.c_void_p:
        device = ct.c_void_p()
        self.check(self.table.device_open(0, ct.byref(device)))
        return device

    def supports(self, op: str, ins: Sequence[np.dtype | None], outs: Sequence[np.dtype]) -> bool:
        return self.find(op, ins, outs) is not None

    def find(self, op: str, ins: Sequence[np.dtype | None], outs: Sequence[np.dtype]) -> Kernel | None:
        for row in self.by_op.get(op, []):
            if row.n_out != len(outs) or row.n_in < len(ins):
                continue
            operands = [row.operands[i] for i in range(row.n_in + row.n_out)]
            given = [*ins, *[None] * (row.n_in - len(ins)), *outs]
            if all(_fits(o, d) for o, d in zip(operands, given, strict=True)):
                return row
        return None

    def run(
        self,
        op: str,
        *ins: np.ndarray | Scalar | None,
        out: np.dtype | Sequence[np.dtype],
        shape: Sequence[int] | None = None,
        attrs: Sequence[object] = (),
        inplace: bool = False,
        into: np.ndarray | None = None,
        row: Kernel | None = None,
        pack: int | None = None,
    ):
        """Runs the op's row for these operands. `shape` of the output: the broadcast of the inputs' by default.

        inplace: the output is the first input's memory (a copy of it). into: the output as given, with its strides.
        pack: this input comes packed; KernelError with UNSUPPORTED where the row would not have it so.
        """
        outs = [np.dtype(d) for d in (out if isinstance(out, (list, tuple)) else [out])]
        arrays = [None if a is None else a.value if isinstance(a, Scalar) else a for a in ins]
        row = row or self.find(op, [None if a is None else a.dtype for a in arrays], outs)
        assert row, f"no row of {op} for {[a if a is None else a.dtype.name for a in arrays]} -> {outs}"
        keep: list[object] = []
        if shape is None:
            shape = np.broadcast_shapes(*(a.shape for a in arrays if a is not None))
        shapes = shape if shape and isinstance(shape[0], (tuple, list)) else [shape]
        results = [Guarded(s, d) for s, d in zip(shapes, outs, strict=True)]
        if inplace:
            assert row.operands[0].flags & ALIAS, f"{op}: input 0 may not be the output's memory"
            results[0] = Guarded(shapes[0], outs[0], arrays[0])
            ins = (results[0].array, *ins[1:])
        tensors = []
        for i, a in enumerate(ins):
            flags = row.operands[i].flags
            if isinstance(a, np.ndarray) and not flags & STRIDED:
                a = np.ascontiguousarray(a).reshape(a.shape)
            if isinstance(a, np.ndarray) and a.flags.c_contiguous and not (inplace and i == 0):
                a = before_a_hole(a)
            if isinstance(a, Scalar):
                assert flags & HOST_SCALAR, f"{op}: input {i} takes no host scalar"
            tensors.append(_tensor(a, keep))
        tensors += [None] * (row.n_in - len(tensors))
        targets = [into] if into is not None else [r.array for r in results]
        out_tensors = [_tensor(t, keep) for t in targets]
        records = (Attr * max(1, len(attrs)))(*[_attr(a, keep) for a in attrs])
        call = Call(
            struct_size=ct.sizeof(Call),
            n_in=row.n_in,
            n_out=row.n_out,
            n_attr=len(attrs),
            ins=_pointers(tensors, keep),
            outs=_pointers(out_tensors, keep),
            attrs=records,
        )
        self._query(row, call, keep)
        if pack is not None:
            self._pack(row, call, pack, keep)
        self.check(row.run(None, ct.byref(call)))
        for r in results:
            r.check()
        finished = targets
        return finished[0] if len(finished) == 1 else finished

    def _query(self, row: Kernel, call: Call, keep: list[object]) -> None:
        if not row.query:
            return
        answer = Answer(struct_size=ct.sizeof(Answer))
        status = row.query(None, ct.byref(call), ct.byref(answer))
        if status == UNSUPPORTED:
            raise KernelError(status, (answer.reason or b"").decode())
        self.check(status)
        if answer.workspace:
            buffer = np.empty(answer.workspace + 64, np.uint8)
            keep.append(buffer)
            call.workspace = (buffer.ctypes.data + 63) // 64 * 64
            call.workspace_size = answer.workspace

    def _pack(self, row: Kernel, call: Call, operand: int, keep: list[object]) -> None:
        if not row.operands[operand].flags & PACKABLE:
            raise KernelError(UNSUPPORTED, f"{row.op!r}: input {operand} is never packed")
        size, layout = ct.c_uint64(), ct.c_uint64()
        self.check(row.pack_size(None, ct.byref(call), operand, ct.byref(size), ct.byref(layout)))
        guarded = np.full(size.value + 2 * 64, 0xA5, np.uint8)
        start = -guarded.ctypes.data % 64
        of_all = (Packed * row.n_in)()
        of_all[operand] = self.packed = Packed(guarded.ctypes.data + start, size, layout)
        keep.extend([guarded, of_all])
        self.check(row.pack(None, ct.byref(call), operand, ct.byref(self.packed)))
        call.packed = of_all
        assert (guarded[:start] == 0xA5).all() and (guarded[start + size.value :] == 0xA5).all(), (
            "packed outside its bytes"
        )


def _fits(operand: Operand, dtype: np.dtype | None) -> bool:
    if dtype is None:
        return bool(operand.flags & OPTIONAL)
    want, have = operand.dtype, dl_dtype(dtype)
    if want.code == ANY:
        return want.bits in (0, have.bits)
    return (want.code, want.bits) == (have.code, have.bits)


def _tensor(a: np.ndarray | Scalar | None, keep: list[object]):
    if a is None:
        return None
    if isinstance(a, Scalar):
        a = np.ascontiguousarray(a.value).reshape(())
    n = a.ndim
    shape = (ct.c_int64 * max(1, n))(*a.shape)
    strides = (ct.c_int64 * max(1, n))(*[s // a.itemsize for s in a.strides])
    assert all(s >= 0 and s % a.itemsize == 0 for s in a.strides), "no device sees such strides"
    t = DLTensor(a.ctypes.data, 1, 0, n, dl_dtype(a.dtype), shape, strides, 0)
    keep.extend([a, shape, strides, t])
    return t


def _pointers(tensors: Sequence[DLTensor | None], keep: list[object]):
    null = ct.POINTER(DLTensor)()
    array = (ct.POINTER(DLTensor) * max(1, len(tensors)))(*[ct.pointer(t) if t else null for t in tensors])
    keep.append(array)
    return array


def _attr(value: object, keep: list[object]) -> Attr:
    a = Attr()
    if value is None:
        a.kind = 0
    elif isinstance(value, bool):
        a.kind, a.v.i = 3, int(value)
    elif isinstance(value, (int, np.integer)):
        a.kind, a.v.raw = (1 if value < 2**63 else 7), int(value) & (2**64 - 1)
    elif isinstance(value, float):
        a.kind, a.v.f = 2, value
    elif isinstance(value, complex):
        floats = (ct.c_double * 2)(value.real, value.imag)
        keep.append(floats)
        a.kind, a.count, a.v.floats = 8, 2, floats
    elif isinstance(value, str):
        text = value.encode()
        keep.append(text)
        a.kind, a.count, a.v.s = 4, len(text), text
    elif isinstance(value, np.dtype):
        a.kind, a.v.dtype = 6, dl_dtype(value)
    elif isinstance(value, (tuple, list)):
        ints = (ct.c_int64 * max(1, len(value)))(*value)
        keep.append(ints)
        a.kind, a.count, a.v.ints = 5, len(value), ints
    else:
        raise TypeError(f"no attribute kind for {value!r}")
    return a


# ---- finding and loading the library -------------------------------------------------------------------------
def library_path() -> Path:
    """DOVETAIL_CPU_LIBRARY, else the installed package's, else one built once into build/cpu-tests."""
    if path := os.environ.get("DOVETAIL_CPU_LIBRARY"):
        return Path(path)
    if spec := importlib.util.find_spec("dovetail_cpu"):
        for folder in spec.submodule_search_locations or []:
            if found := sorted(Path(folder).rglob("libdovetail_cpu.so")):
                return found[0]
    build = HERE.parents[2] / "build" / "cpu-tests"
    build.mkdir(parents=True, exist_ok=True)
    with open(build / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one of several test processes builds, the others wait
        for command in (
            ["cmake", "-G", "Ninja", "-S", HERE.parent, "-B", build, f"-DPython_EXECUTABLE={sys.executable}"],
            ["cmake", "--build", build],
        ):
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
    return build / "libdovetail_cpu.so"


@cache
def copies() -> Path:
    """A folder for copies of the library; dlopen distinguishes files, not names."""
    folder = Path(tempfile.mkdtemp(prefix="dovetail-cpu-"))
    import atexit

    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def fresh(level: str | None = None, **env: str) -> Session:
    """Load the library once more."""
    source = library_path()
    folder = Path(tempfile.mkdtemp(dir=copies()))
    for sibling in source.parent.iterdir():
        if sibling != source:
            (folder / sibling.name).symlink_to(sibling)
    return Session(Path(shutil.copy2(source, folder)), level, env)


@cache
def session(level: str) -> Session:
    return fresh(level)


@cache
def absent(level: str) -> str:
    """Why the level cannot be tested here; empty if it can."""
    try:
        session(level).device_count()
    except KernelError as e:
        if "leaves out" in str(e):
            return f"{level} is not built: `make test` builds all levels that this machine can run"
        return f"this processor lacks {level}"
    return ""


@cache
def without_amx() -> Session | None:
    """The level of AVX-512 where its kernels could use AMX and must not; None: they never do on this machine."""
    if "avx512" not in LEVELS or absent("avx512") or not has_amx(session("avx512")):
        return None
    return fresh("avx512", DOVETAIL_CPU_AMX="0")


def has_amx(session: Session) -> bool:
    return b"; AMX;" in session.table.build_info


def available(level: str) -> bool:
    return not absent(level)


def forked_meanwhile(work: Callable[[], None], children: int, patience: int) -> list[int]:
    """Exit codes of processes that do `work` once, forked while two threads do it; `patience` in seconds."""
    done = False

    def works() -> None:
        while not done:
            work()

    threads = [threading.Thread(target=works) for _ in range(2)]
    for thread in threads:
        thread.start()
    forked = []
    for _ in range(children):
        work()
        child = os.fork()
        if not child:
            signal.alarm(patience)
            work()
            os._exit(0)
        forked.append(child)
    done = True
    for thread in threads:
        thread.join()
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in forked]
